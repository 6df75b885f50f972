package riverqueue_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// clockJump makes a program of jumping write this many seconds, and itself say
// so, from its third second on.
const clockJump = "RECLAIM_TEST_CLOCK_JUMP"

// jumping is this test program, made with a package time whose clock jumps: a
// process has no clock of its own that could be set. The monotonic clock goes on
// as it does when somebody sets a machine's clock.
func jumping(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	standard := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	source, err := os.ReadFile(filepath.Join(standard, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const read = "sec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), "func Now() Time {\n\t"+read) != 1 {
		t.Fatal("the package time reads its clock otherwise than this test knows")
	}
	files := map[string]string{
		"time.go": strings.Replace(string(source), "func Now() Time {\n\t"+read, "func Now() Time {\n\t"+read+"\tif mono-startNano > 3e9 {\n\t\tsec += clockJump\n\t}\n", 1),
		"jump.go": `package time

import "syscall"

var clockJump = func() (n int64) {
	text, _ := syscall.Getenv("` + clockJump + `")
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n = n*10 + int64(c-'0')
		}
	}
	if text != "" && text[0] == '-' {
		n = -n
	}
	return n
}()
`}
	replaced := map[string]string{}
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(standard, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "jumping")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(folder, "overlay.json"), "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
