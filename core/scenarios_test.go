package core

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A scenario is a directory state: fixtures/scenarios/ID/build.sh makes it for
// real, expect.json says what must be answered.
type scenario struct {
	ID        string            `json:"id"`
	Expect    string            `json:"expect"` // safe or skip
	Reason    Reason            `json:"reason"`
	Cause     Cause             `json:"cause"`
	Either    bool              `json:"either"`  // both answers are defensible
	Env       map[string]string `json:"env"`     // what a login profile would export
	RootArg   string            `json:"rootarg"` // another spelling of the root
	Mount     string            `json:"mount"`   // tmpfs:PATH or bind:FROM:TO
	Chown     string            `json:"chown"`   // the target is given away
	noisy     bool              // a tool of it complains on standard error
	seeds     string            // where remotes to copy are kept, or empty
	GitWrites string            `json:"git_itself_writes"` // why git writes in spite of us

	Disposable *disposed `json:"disposable"` // what is answered where kinds of build output may go; nil: the same
	kinds      string    // those kinds
}

func scenarios(t *testing.T) []scenario {
	t.Helper()
	all, _ := allScenarios(t)
	return all
}

// allScenarios are the states that are judged as every profile has them judged,
// and those of build output.
func allScenarios(t *testing.T) (strict, heaps []scenario) {
	t.Helper()
	files, err := filepath.Glob("../fixtures/scenarios/*/expect.json")
	if err != nil || len(files) < 136 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s scenario
		if err := json.Unmarshal(raw, &s); err != nil || s.ID != filepath.Base(filepath.Dir(file)) {
			t.Fatalf("%s: %v", file, err)
		}
		if s.Disposable != nil {
			heaps = append(heaps, s)
		} else {
			strict = append(strict, s)
		}
	}
	return strict, heaps
}

// disposed is a scenario's other verdict.
type disposed struct {
	Kinds   string `json:"kinds"`
	Expect  string `json:"expect"`
	Reason  Reason `json:"reason"`
	Says    string `json:"says"`    // in the finding's detail
	Excused string `json:"excused"` // the kinds that went
}

const person = 1000

// asPerson runs the command as an unprivileged user where the test is root.
func asPerson(cmd *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: person, Gid: person}}
	}
	return cmd
}

// openTemp is a directory of the unprivileged user below parent.
func openTemp(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "scenario-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		exec.Command("find", dir, "-type", "d", "!", "-perm", "-700", "-exec", "chmod", "u+rwx", "{}", ";").Run()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, person, person); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tape is what builds the scenario, as a tar. It is read here and not by a program,
// so that Go knows what the test depends on and runs it again when that changes.
func (s scenario) tape(t *testing.T) *bytes.Buffer {
	t.Helper()
	var tape bytes.Buffer
	w := tar.NewWriter(&tape)
	add := func(name string) {
		content, err := os.ReadFile(filepath.Join("../fixtures/scenarios", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	add("lib.sh")
	files, err := os.ReadDir(filepath.Join("../fixtures/scenarios", s.ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		add(s.ID + "/" + file.Name())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &tape
}

// build makes the scenario below root.
func (s scenario) build(t *testing.T, root string) {
	t.Helper()
	tape := s.tape(t)
	cmd := asPerson(exec.Command("sh", "-c", "mkdir .b && cd .b && tar xf - && cd / && exec sh "+quote(root+"/.b/"+s.ID+"/build.sh")+" "+quote(root)+" </dev/null"))
	cmd.Stdin = tape
	cmd.Dir = root
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + root, "LC_ALL=C", "SEEDS=" + s.seeds}
	out, err := cmd.CombinedOutput()
	t.Cleanup(func() {
		raw, _ := os.ReadFile(root + "/pids")
		for _, word := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
				syscall.Kill(pid, syscall.SIGTERM)
			}
		}
	})
	if err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	if s.Chown != "" {
		if out, err := exec.Command("chown", "-R", s.Chown, root+"/tasks/task-7").CombinedOutput(); err != nil {
			t.Fatalf("chown: %v\n%s", err, out)
		}
	}
	traps, _ := filepath.Glob(root + "/PWNED*")
	for _, trap := range traps { // sprung while building
		os.Remove(trap)
	}
}

// seeds makes the remotes that most scenarios begin with, once; in the long
// form each makes its own.
func seeds(t *testing.T) string {
	t.Helper()
	if long {
		return ""
	}
	root := openTemp(t, quickTemp())
	cmd := exec.Command("sh", "-c", `. ./lib.sh && mkremote app && mkremote lib`, "sh", root)
	cmd.Dir = "../fixtures/scenarios"
	cmd.Env = []string{"PATH=" + hostPath, "HOME=" + root}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("chown", "-R", fmt.Sprint(person), root).CombinedOutput(); os.Getuid() == 0 && err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root + "/remotes"
}

func metadata(dir string) string {
	out, _ := exec.Command("find", dir, "-printf", `%p %i %s %m %T@ %C@\n`).Output()
	return string(out)
}

// ask runs the real script, in the given shell and with the given PATH.
func (s scenario) ask(t *testing.T, root, path string, shell ...string) (Inventory, Said) {
	t.Helper()
	spelled := root
	if s.RootArg != "" {
		spelled = strings.ReplaceAll(s.RootArg, "@ROOT@", root)
	}
	q := Inventory{Root: spelled, Segment: "task-7", Disposable: s.kinds}
	args := append(append([]string{}, shell...), "-c", q.Script().Body)
	cmd := asPerson(exec.Command(args[0], args[1:]...))
	if s.Mount != "" {
		if os.Getuid() != 0 {
			t.Fatal("a scenario with a mount needs root")
		}
		part := strings.Split(s.Mount, ":")
		mount := "mount -t tmpfs -o size=1m,mode=777 lab " + quote(root+"/tasks/task-7/"+part[1])
		if part[0] == "bind" {
			mount = "mount --bind " + quote(root+"/"+part[1]) + " " + quote(root+"/tasks/task-7/"+part[2])
		}
		cmd = exec.Command("unshare", append([]string{"-m", "sh", "-c", mount + ` && exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"`, "sh"}, args...)...)
	}
	cmd.Dir = root + "/home"
	cmd.Env = []string{"PATH=" + path, "HOME=" + root + "/home", "LANG=C.UTF-8", "USER=lab", "GIT_CONFIG_NOSYSTEM=1"}
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+strings.ReplaceAll(value, "@ROOT@", root))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if stderr.Len() > 0 && !s.noisy {
		t.Errorf("standard error: %s", stderr.String())
	}
	return q, Said{Body: stdout.String(), Exit: cmd.ProcessState.ExitCode()}
}

// verdict says what is wrong with the evidence, or "".
func (s scenario) verdict(e Evidence) string {
	got := "safe"
	var reason Reason
	var causes []string
	if !e.Safe() {
		got = "skip"
		if len(e.Findings) == 0 {
			return "not safe and no finding"
		}
		reason = e.Findings[0].Reason
		for _, f := range e.Findings {
			if f.Reason == reason {
				causes = append(causes, string(f.Cause))
			}
		}
	}
	told := fmt.Sprintf("want %s %s %s, got %s %s %v", s.Expect, s.Reason, s.Cause, got, reason, causes)
	for _, f := range e.Findings {
		told += "\n    " + fmt.Sprint(f.Reason, " ", f.Cause, " ", f.Checkout, ": ", f.Detail)
	}
	switch {
	case s.Either:
		return ""
	case got == "safe" && s.Expect == "skip":
		return "FALSE SAFE: " + told
	case got == "skip" && s.Expect == "safe":
		return "FALSE KEEP: " + told
	case s.Expect == "skip" && (reason != s.Reason || (s.Cause != "" && !strings.Contains(strings.Join(causes, " "), string(s.Cause)))):
		return "REASON: " + told
	}
	return ""
}

const hostPath = "/usr/local/bin:/usr/bin:/bin"

func TestAC_002_1_EveryScenarioIsJudgedAsItMustBeAndAC_002_6_NothingIsWrittenOrRun(t *testing.T) {
	boxes, seeds := toolboxes(t), seeds(t)
	for n, s := range scenarios(t) {
		s.seeds = seeds
		t.Run(s.ID, func(t *testing.T) {
			t.Parallel()
			root := openTemp(t, quickTemp())
			s.build(t, root)
			before := metadata(root + "/tasks/task-7")
			for _, w := range s.ways(n) {
				q, said := s.ask(t, root, boxes[w.tools]+hostPath, w.shell...)
				if wrong := s.verdict(q.Judge(said)); wrong != "" {
					t.Errorf("%v with %s: %s\n%s", w.shell, w.tools, wrong, said.Body)
				}
				if *update {
					keepAnswer(t, s, root, said.Body)
				}
			}
			if after := metadata(root + "/tasks/task-7"); after != before && s.GitWrites == "" {
				t.Errorf("the probe wrote: %s", onlyIn(after, before))
			}
			if traps, _ := filepath.Glob(root + "/PWNED*"); len(traps) > 0 {
				t.Errorf("the probe ran what the repository names: %v", traps)
			}
		})
	}
}

func onlyIn(a, b string) string {
	var out []string
	for line := range strings.Lines(a) {
		if !strings.Contains(b, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
