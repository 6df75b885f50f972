package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
)

// The program as people get it.
func TestTheProgram(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "reclaim")
	if _, err := os.ReadFile("reclaim/main.go"); err != nil { // Go sees what this test reads, not what a program does
		t.Fatal(err)
	}
	command := exec.Command("go", "build", "-o", binary, "./reclaim")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("names itself", func(t *testing.T) {
		out, err := exec.Command(binary, "version").Output()
		if err != nil || !strings.Contains(string(out), core.Digest()) || !strings.Contains(string(out), "OPA 1.") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("shows every reason in its demo and leaves nothing behind", func(t *testing.T) { demonstrated(t, binary) })
	t.Run("works until it is interrupted", func(t *testing.T) { works(t, binary) })
	t.Run("cancels an attempt that is interrupted", func(t *testing.T) { interrupted(t, binary) })
}

func demonstrated(t *testing.T, binary string) {
	temp := t.TempDir()
	command := exec.Command(binary, "demo", "--json")
	// Whoever calls has a home and settings of his own; none of it counts.
	home := t.TempDir()
	write(t, filepath.Join(home, ".gitconfig"), "[core]\n\thooksPath = /nowhere\n[commit]\n\tgpgsign = true\n[init]\n\tdefaultBranch = trunk\n")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + temp, "GIT_DIR=/nowhere"}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	var shown struct{ Results []core.Result }
	if err := json.Unmarshal(stdout.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	outcomes := map[string]int{}
	for _, r := range shown.Results {
		outcomes[r.Outcome]++
		if r.Reason != "" && !slices.Contains(reasons, string(r.Reason)) {
			reasons = append(reasons, string(r.Reason))
		}
		if r.Cure == nil || r.Checkouts == nil {
			t.Errorf("%s: a list is null", r.TaskID)
		}
	}
	var want []string
	for _, r := range core.Reasons() {
		want = append(want, string(r))
	}
	slices.Sort(reasons)
	slices.Sort(want)
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}
	if outcomes[core.OutcomeRemoved] < 2 || outcomes[core.OutcomeFailed] < 2 {
		t.Errorf("%v", outcomes)
	}
	for _, dir := range []string{temp, home} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != ".gitconfig" {
				t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
			}
		}
	}
}

// A find that comes first on PATH tells that it was called and then waits, so
// that the signal comes in the middle of the inventory.
func interrupted(t *testing.T, binary string) {
	m := newMachine(t)
	bin, called, hold := filepath.Join(m.home, "bin"), filepath.Join(m.home, "called"), filepath.Join(m.home, "hold")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, fifo := range []string{called, hold} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\necho >'" + called + "'\nread never <'" + hold + "'\n"
	if err := os.WriteFile(filepath.Join(bin, "find"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "attempt", m.caseFile, "--local", "--json")
	command.Env = append(append([]string{}, m.env...), "PATH="+bin+":"+os.Getenv("PATH"))
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(called); err != nil { // returns once find was called
		t.Fatal(err)
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	var r core.Result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s%s", err, &stdout, &stderr)
	}
	if code := command.ProcessState.ExitCode(); code != exitKept || r.Outcome != core.OutcomeCancelled {
		t.Errorf("exit %d, %s: %s", code, r.Outcome, r.Detail)
	}
	if _, err := os.Stat(m.dir); err != nil {
		t.Error(err)
	}
	if r := m.finish(t, "attempt", m.caseFile, "--local", "--json"); r.Outcome != core.OutcomeRemoved {
		t.Errorf("afterwards: %s", headline(r))
	}
}

// The worker takes what becomes due while it runs, and puts everything down when
// it is told to end.
func works(t *testing.T, binary string) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary, append(args, "--db", dsn)...).Output()
		if err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
		return string(out)
	}
	run("db", "init")
	db, err := openDatabase(t.Context(), dsn, writes)
	if err != nil {
		t.Fatal(err)
	}
	var d demo
	target := core.Target{Host: "127.0.0.1", Port: 1, User: "dev", Fingerprint: "SHA256:" + strings.Repeat("A", 43), WorkdirRoot: "/srv/kandev", TaskDir: "/srv/kandev/tasks/t-1", Enabled: true}
	if err := errors.Join(d.profiles(t.Context(), db.DB), d.launch(t.Context(), db.DB, situation{name: "t-1"}, target), db.Close()); err != nil {
		t.Fatal(err)
	}
	run("task", "archive", "t-1")
	worker := exec.Command(binary, "work", "--db", dsn)
	var stdout, stderr bytes.Buffer
	worker.Stdout, worker.Stderr = &stdout, &stderr
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(run("jobs", "--state", "retry_wait"), "t-1"); {
		if time.Now().After(deadline) {
			t.Fatal("the job was not attempted")
		}
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil || stdout.Len() > 0 || !strings.Contains(stderr.String(), "task_id=t-1") {
		t.Errorf("%v, stdout %q, the log %s", err, &stdout, &stderr)
	}
}
