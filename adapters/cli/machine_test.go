package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/core"
)

// The command under test is this test binary, called again under another name:
// it is killed for real, at a place of the test's choice.
func TestMain(m *testing.M) {
	if os.Getenv("RECLAIM_TEST_CALLED") != "" {
		os.Exit(doomed())
	}
	testscript.Main(m, map[string]func(){"reclaim": func() { os.Exit(doomed()) }})
}

// doomed runs the command and kills its own process, as kill -9 does, when it
// writes the line of RECLAIM_TEST_KILL_AT_LINE to standard error, or before or
// after it writes the result.
func doomed() int {
	at, _ := strconv.Atoi(os.Getenv("RECLAIM_TEST_KILL_AT_LINE"))
	if path := os.Getenv("RECLAIM_TEST_PID_IN"); path != "" {
		if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			return exitFailed
		}
	}
	return Run(context.Background(), Invocation{Args: os.Args[1:], Env: os.Environ(), Stdin: os.Stdin,
		Stdout: &killing{to: os.Stdout, before: os.Getenv("RECLAIM_TEST_KILL_AT_RESULT") == "before", after: os.Getenv("RECLAIM_TEST_KILL_AT_RESULT") == "after"},
		Stderr: &killing{to: os.Stderr, line: at}})
}

type killing struct {
	to            io.Writer
	line          int // 0: never
	before, after bool

	written int
}

func (k *killing) Write(p []byte) (int, error) {
	if k.before {
		die()
	}
	n, err := k.to.Write(p)
	k.written += bytes.Count(p, []byte("\n"))
	if k.after || k.line > 0 && k.written >= k.line {
		die()
	}
	return n, err
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it arrives
}

// machine is a home directory with a workdir root, a remote outside it, and
// one task that could be reclaimed.
type machine struct {
	home, root, dir, caseFile string
	env                       []string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	base := t.TempDir()
	m := machine{home: filepath.Join(base, "home")}
	m.root = filepath.Join(m.home, ".kandev")
	m.dir = filepath.Join(m.root, "tasks", "fix-login")
	m.caseFile = filepath.Join(base, "case.json")
	m.env = []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=d", "GIT_AUTHOR_EMAIL=d@example.org", "GIT_COMMITTER_NAME=d", "GIT_COMMITTER_EMAIL=d@example.org"}
	for _, dir := range []string{filepath.Dir(m.dir), filepath.Join(base, "remotes")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	remote := filepath.Join(base, "remotes", "app.git")
	m.git(t, base, "init", "-q", "--bare", "-b", "main", remote)
	m.git(t, base, "clone", "-q", remote, m.dir)
	write(t, filepath.Join(m.dir, "app.go"), "package app\n")
	m.git(t, m.dir, "checkout", "-q", "-B", "main")
	m.git(t, m.dir, "add", ".")
	m.git(t, m.dir, "commit", "-qm", "app")
	m.git(t, m.dir, "push", "-q", "-u", "origin", "main")
	write(t, filepath.Join(m.root, "tasks", "sibling"), "not ours\n")
	m.writeCase(t, func(map[string]any) {})
	return m
}

func (m machine) git(t *testing.T, in string, args ...string) {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir, command.Env = in, m.env
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// writeCase writes the case file of the task, changed as asked.
func (m machine) writeCase(t *testing.T, change func(map[string]any)) {
	t.Helper()
	c := map[string]any{"job_id": "job-7", "task_id": "t-1", "trigger": "archive", "stops_succeeded": true, "hook": "none",
		"target":    map[string]any{"host": "localhost", "workdir_root": "~/.kandev", "task_dir": m.dir, "enabled": true},
		"ownership": map[string]any{"task_terminal": true, "opt_in_now": "on", "environment": map[string]any{"id": "env-1", "task_id": "t-1"}}}
	change(c)
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, m.caseFile, string(raw))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reclaim runs the command as a process of its own.
func (m machine) reclaim(t *testing.T, env []string, args ...string) called {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, args...)
	command.Env = append(append(m.env, "RECLAIM_TEST_CALLED=1"), env...)
	command.Dir = m.home
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	err = command.Wait()
	c := called{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	if err != nil && !command.ProcessState.Exited() {
		c.status = -1 // killed
	}
	return c
}

func (c called) result(t *testing.T) core.Result {
	t.Helper()
	var r core.Result
	if err := json.Unmarshal([]byte(c.stdout), &r); err != nil {
		t.Fatalf("%v: exit %d, stdout %q, stderr %q", err, c.status, c.stdout, c.stderr)
	}
	return r
}

// finish runs the attempt again until it comes to an end; a removal that runs
// on without its controller is waited for.
func (m machine) finish(t *testing.T, args ...string) core.Result {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r := m.reclaim(t, nil, args...).result(t)
		if r.Fault != core.Busy || time.Now().After(deadline) {
			return r
		}
	}
}

// gone checks that the directory and every name a removal gives it are gone, and
// nothing else is.
func (m machine) gone(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(m.dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "sibling" {
		t.Errorf("below tasks stand %q, want only the sibling", got)
	}
}

// writeIdentity makes a private key that logs in nowhere.
func writeIdentity(path string) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "test")
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}
