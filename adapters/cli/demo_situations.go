package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kandev/reclaim/core"
)

// situation is one task directory in a state that real ones are found in, and
// what must become of it.
type situation struct {
	name  string // of the directory and the task
	there string // for people
	build func(*workshop, string) error

	optedOut bool // the profile had not opted in when it was launched
	sharer   bool // another task that goes on has run in it
	wrongPin bool // the pinned fingerprint is another machine's

	want []want // of each attempt, in order
}

type want struct {
	outcome string
	reason  core.Reason
	cause   core.Cause
	fault   core.Fault
}

var situations = []situation{
	{name: "fix-login", there: "two clones, all pushed", build: (*workshop).pushed,
		want: []want{{outcome: core.OutcomeRemoved}}},
	{name: "no-consent", there: "the profile had not opted in", build: (*workshop).pushed, optedOut: true,
		want: []want{{outcome: core.OutcomeSkipped, reason: core.Disabled, cause: core.OptOut}}},
	{name: "two-tasks", there: "another task works here", build: (*workshop).pushed, sharer: true,
		want: []want{{outcome: core.OutcomeSkipped, reason: core.Shared, cause: core.Claimed}}},
	{name: "half-written", there: "a file that git never saw", build: (*workshop).untracked,
		want: []want{{outcome: core.OutcomeSkipped, reason: core.DirtyWorktree, cause: core.Untracked}}},
	{name: "one-commit", there: "a commit nobody pushed", build: (*workshop).unpushed,
		want: []want{{outcome: core.OutcomeSkipped, reason: core.UnpushedCommits, cause: core.OnBranch}}},
	{name: "stashed-idea", there: "a stash in the second clone", build: (*workshop).stashed,
		want: []want{{outcome: core.OutcomeSkipped, reason: core.StashPresent, cause: core.Stashed}}},
	{name: "plain-folder", there: "files, but no repository", build: (*workshop).plain,
		want: []want{{outcome: core.OutcomeSkipped, reason: core.NotACheckout, cause: core.NoRepository}}},
	{name: "crashed-git", there: "a lock that git left behind", build: (*workshop).locked,
		want: []want{{outcome: core.OutcomeSkipped, reason: core.ProbeFailed, cause: core.LockPresent}}},
	{name: "new-machine", there: "the host shows another key", build: (*workshop).pushed, wrongPin: true,
		want: []want{{outcome: core.OutcomeFailed, fault: core.HostKeyMismatch}}},
	{name: "power-cut", there: "its removal is cut short", build: (*workshop).cut,
		want: []want{{outcome: core.OutcomeFailed, fault: core.HalfRemoved}, {outcome: core.OutcomeRemoved}}},
}

// workshop makes repositories and task directories in one folder, and touches
// nothing outside it.
type workshop struct {
	folder string // everything
	home   string // of the demo's host
	env    []string
}

func newWorkshop(folder string) (*workshop, error) {
	w := &workshop{folder: folder, home: filepath.Join(folder, "home")}
	for _, dir := range []string{w.tasks(), w.path("remotes"), w.path("records"), w.path("bin")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	w.env = []string{"HOME=" + w.home, "PATH=" + w.path("bin") + string(os.PathListSeparator) + os.Getenv("PATH"), "LC_ALL=C", "TMPDIR=" + folder,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	for _, name := range []string{"app", "lib"} {
		if err := w.remote(name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *workshop) path(names ...string) string {
	return filepath.Join(append([]string{w.folder}, names...)...)
}
func (w *workshop) root() string            { return filepath.Join(w.home, ".kandev") }
func (w *workshop) tasks() string           { return filepath.Join(w.root(), "tasks") }
func (w *workshop) task(name string) string { return filepath.Join(w.tasks(), name) }
func (w *workshop) url(name string) string  { return w.path("remotes", name+".git") }

func (w *workshop) git(dir string, args ...string) error {
	command := exec.Command("git", args...)
	command.Dir = dir
	command.Env = append(w.env, "GIT_AUTHOR_NAME=Demo", "GIT_AUTHOR_EMAIL=demo@example.org", "GIT_COMMITTER_NAME=Demo", "GIT_COMMITTER_EMAIL=demo@example.org")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// run makes the steps one after the other, up to the first error.
func run(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func file(path, text string) func() error {
	return func() error {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}
}

func (w *workshop) do(dir string, args ...string) func() error {
	return func() error { return w.git(dir, args...) }
}

// remote makes a repository that stands for one on a forge, with one commit.
func (w *workshop) remote(name string) error {
	seed := w.path("seed-" + name)
	return run(
		w.do(w.folder, "init", "-q", "--bare", w.url(name)),
		w.do(w.url(name), "symbolic-ref", "HEAD", "refs/heads/main"),
		w.do(w.folder, "init", "-q", seed),
		w.do(seed, "symbolic-ref", "HEAD", "refs/heads/main"),
		file(filepath.Join(seed, name+".go"), "package "+name+"\n"),
		w.do(seed, "add", "."),
		w.do(seed, "commit", "-qm", "Start "+name),
		w.do(seed, "push", "-q", w.url(name), "main"),
		func() error { return os.RemoveAll(seed) },
	)
}

// pushed is a clone with another clone inside, as a task on two repositories
// has them, and a branch that was worked on and pushed.
func (w *workshop) pushed(dir string) error {
	return run(
		w.do(w.folder, "clone", "-q", "--no-hardlinks", w.url("app"), dir),
		w.do(w.folder, "clone", "-q", "--no-hardlinks", w.url("lib"), filepath.Join(dir, "lib")),
		file(filepath.Join(dir, ".git", "info", "exclude"), "/.kandev/\n/lib/\n"),
		file(filepath.Join(dir, ".kandev", "notes"), "the backend's own\n"),
		w.do(dir, "checkout", "-q", "-b", filepath.Base(dir)),
		file(filepath.Join(dir, "login.go"), "package app\n\nfunc Login() {}\n"),
		w.do(dir, "add", "login.go"),
		w.do(dir, "commit", "-qm", "Log in"),
		w.do(dir, "push", "-q", "-u", "origin", filepath.Base(dir)),
	)
}

// cut is a pushed clone that the host's rm fails on, once.
func (w *workshop) cut(dir string) error {
	return run(func() error { return w.pushed(dir) },
		file(filepath.Join(dir, "power-cut"), "here the power fails\n"),
		w.do(dir, "add", "power-cut"),
		w.do(dir, "commit", "-qm", "Tempt fate"),
		w.do(dir, "push", "-q"))
}

func (w *workshop) untracked(dir string) error {
	return run(func() error { return w.pushed(dir) }, file(filepath.Join(dir, "idea.go"), "package app // not yet\n"))
}

func (w *workshop) unpushed(dir string) error {
	return run(func() error { return w.pushed(dir) },
		file(filepath.Join(dir, "more.go"), "package app\n"),
		w.do(dir, "add", "more.go"),
		w.do(dir, "commit", "-qm", "One more"))
}

func (w *workshop) stashed(dir string) error {
	lib := filepath.Join(dir, "lib")
	return run(func() error { return w.pushed(dir) },
		file(filepath.Join(lib, "lib.go"), "package lib // another way\n"),
		w.do(lib, "stash", "-q"))
}

func (w *workshop) plain(dir string) error {
	return file(filepath.Join(dir, "README"), "unpacked by hand\n")()
}

func (w *workshop) locked(dir string) error {
	return run(func() error { return w.pushed(dir) }, file(filepath.Join(dir, ".git", "index.lock"), ""))
}

// powerCut puts an rm first on the host's PATH that, once, in the middle of one
// removal, removes a part and kills the script and itself.
func (w *workshop) powerCut() error {
	rm, err := exec.LookPath("rm")
	if err != nil {
		return err
	}
	flag := w.path("power-cut")
	script := fmt.Sprintf(`#!/bin/sh
# Fails once, in the middle of one removal.
for last; do :; done
if [ -e %[1]s ] && [ -e "$last/power-cut" ]; then
	%[2]s -f %[1]s
	%[2]s -rf "$last/.git"
	kill -9 0
fi
exec %[2]s "$@"
`, shellWord(flag), shellWord(rm))
	// Where a login shell finds programs is what its profile says.
	profile := "PATH=" + shellWord(w.path("bin")) + ":$PATH\nexport PATH\n"
	return run(file(flag, ""), file(filepath.Join(w.home, ".profile"), profile), func() error { return os.WriteFile(w.path("bin", "rm"), []byte(script), 0o755) })
}

// shellWord quotes a path for the shell.
func shellWord(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
