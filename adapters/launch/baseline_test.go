package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
)

// prepared is a launched directory whose agent has ended, and what the backend
// recorded of it.
type prepared struct {
	base, root, dir, remote, baseline string
	order                             Order
}

// prepare launches against a remote with a branch, an annotated tag and a review.
func prepare(t *testing.T) prepared {
	t.Helper()
	b, base := on(t, core.Target{Host: "h", Fingerprint: "SHA256:x"})
	p := prepared{base: base, root: base + "/k root", dir: b.dir, remote: base + "/main.git", order: b.order}
	sh(t, base, `cd main
		git tag -a v2 -m v2
		git checkout -q -b review && echo review >review && git add review && git commit -qm review
		git push -q ../main.git v2 HEAD:refs/pull/1/head
		git checkout -q --detach main && git commit -q --allow-empty -m released && git tag -a v3 -m v3 && git push -q ../main.git v3
		git checkout -q other && echo other >other && git add other && git commit -qm other
		git push -q ../main.git other`)
	p.order.Repositories = b.order.Repositories[:1]
	got, err := (&Launcher{Dialer: localhost.Dialer{}}).Launch(t.Context(), p.order)
	if err != nil {
		t.Fatal(err)
	}
	end(t, got.PID)
	if err := os.RemoveAll(p.dir + "/.kandev/sessions"); err != nil {
		t.Fatal(err)
	}
	left(t, p.dir)
	launch, err := core.ParseLaunch(got.Metadata)
	if err != nil || launch.Baseline == "" {
		t.Fatalf("%+v %v", launch, err)
	}
	p.baseline = launch.Baseline
	return p
}

// left waits until no process works in dir: what the agent ran outlives it.
func left(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		inside := 0
		cwds, _ := filepath.Glob("/proc/[0-9]*/cwd")
		for _, cwd := range cwds {
			if to, err := os.Readlink(cwd); err == nil && (to == dir || strings.HasPrefix(to, dir+"/")) {
				inside++
			}
		}
		if inside == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes still work in %s", inside, dir)
		}
	}
}

func sh(t *testing.T, dir, script string, args ...string) {
	t.Helper()
	command := exec.Command("sh", append([]string{"-ec", "git() { command git -c user.name=n -c user.email=e@x -c advice.detachedHead=false \"$@\"; }\n" + script, "sh"}, args...)...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// judged is what an inventory of the directory says, with a baseline recorded or
// with none.
func judged(t *testing.T, root, baseline string) core.Evidence {
	t.Helper()
	host, refusal := localhost.Dialer{}.Dial(t.Context(), core.Target{Host: "h"})
	if host == nil {
		t.Fatal(refusal)
	}
	defer host.Close()
	q := core.Inventory{Root: root, Segment: "task-t1", Baseline: baseline}
	said, is := host.Run(t.Context(), q.Script()).(core.Said)
	if !is {
		t.Fatal("the inventory did not answer")
	}
	return q.Judge(said)
}

const work = `echo work >work; git add work; git commit -qm work; `

// What a clone's own files cannot tell, the launch can: it asked the remote before
// anybody worked in the directory.
func TestABaselineDecidesWhatCannotBeDecidedWithoutIt(t *testing.T) {
	p := prepare(t)
	for name, row := range map[string]struct {
		script       string
		alone, known bool // safe without a baseline, and with it
	}{
		"as it was launched":                      {"", true, true},
		"a tag that a later fetch brought":        {`git fetch -q --tags`, false, true},
		"the remote was removed":                  {`git remote remove origin`, false, true},
		"a fetch rule onto the branches":          {`git config remote.origin.fetch '+refs/heads/*:refs/heads/*'`, false, true},
		"a review that was fetched":               {`git fetch -q origin refs/pull/1/head:review`, false, true},
		"a review that is checked out, detached":  {`git fetch -q origin refs/pull/1/head; git checkout -q FETCH_HEAD`, false, true},
		"a review, then the branch again":         {`git fetch -q origin refs/pull/1/head; git checkout -q FETCH_HEAD; git checkout -q main`, false, true},
		"an older commit, the remote removed":     {`git checkout -q -b old origin/other~1; git remote remove origin`, false, true},
		"work that was committed":                 {work, false, false},
		"work, the remote removed":                {work + `git remote remove origin`, false, false},
		"work on a review":                        {`git fetch -q origin refs/pull/1/head; git checkout -q FETCH_HEAD; ` + work, false, false},
		"work that was reset away":                {work + `git reset -q --hard HEAD~1`, false, false},
		"a file nobody committed":                 {`git fetch -q --tags; echo x >new`, false, false},
		"a stash":                                 {`echo x >file; git stash -q; git remote remove origin`, false, false},
		"a tag that was moved":                    {`git fetch -q --tags; ` + work + `git tag -f -a v2 -m mine >/dev/null; git reset -q --hard HEAD~1`, false, false},
		"a tag of one's own on what came":         {`git tag -a mine -m words`, false, false},
		"a tracking ref that was pruned":          {`git branch mine origin/other; git branch -qdr origin/other`, false, false},
		"a tracking ref that moved":               {`git branch mine origin/other; git update-ref refs/remotes/origin/other origin/main`, false, false},
		"forged: the work is appended":            {work + `printf '%s\trefs/tags/x\t.\n' "$(git rev-parse HEAD)" >>.kandev/baseline; git tag x`, false, false},
		"forged: written anew from what is there": {work + `{ printf 'remote\t%s\t.\n' "$(git config remote.origin.url)"; git for-each-ref --format='%(objectname)%09%(refname)%09.'; } >.kandev/baseline`, false, false},
		"forged: the remote is another":           {`git fetch -q --tags; sed -i.bak 's,main.git,lib.git,' .kandev/baseline; rm .kandev/baseline.bak`, false, false},
		"forged: of a remote nobody can ask":      {work + `printf 'remote\thttps://git.example.org/app.git\t.\n%s\trefs/pull/1\t.\n' "$(git rev-parse HEAD)" >.kandev/baseline`, false, false},
		"the baseline is gone":                    {`git remote remove origin; rm .kandev/baseline`, false, false},
		"the baseline is a directory":             {`git remote remove origin; rm .kandev/baseline; mkdir .kandev/baseline`, false, false},
		"the baseline is a pipe":                  {`git remote remove origin; rm .kandev/baseline; mkfifo .kandev/baseline`, false, false},
		"the environment says what came":          {work + `git remote remove origin`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(sshdtest.OpenDir(t), "k root")
			sh(t, "/", `cp -a "$1" "$2"; cd "$2/tasks/task-t1"; `+row.script, p.root, root)
			if name == "the environment says what came" {
				out, err := exec.Command("git", "-C", root+"/tasks/task-t1", "rev-parse", "HEAD").Output()
				if err != nil {
					t.Fatal(err)
				}
				t.Setenv("came", "remote\t"+p.remote+"\t.\n"+string(out[:40])+"\trefs/pull/1\t.")
				t.Setenv("baseline", p.baseline)
				t.Setenv("proven_here", string(out[:40]))
			}
			if row.known { // what is kept with it is kept without it
				if e := judged(t, root, ""); e.Safe() != row.alone || !e.Complete {
					t.Errorf("without a baseline: %+v", e)
				}
			}
			if e := judged(t, root, p.baseline); e.Safe() != row.known || !e.Complete {
				t.Errorf("with its baseline: %+v", e)
			}
		})
	}
}

func TestABaselineIsReadTheSameInEveryShell(t *testing.T) {
	p := prepare(t)
	sh(t, p.dir, `git fetch -q --tags; git remote remove origin`)
	q := core.Inventory{Root: p.root, Segment: "task-t1", Baseline: p.baseline}
	tools := t.TempDir()
	for _, name := range []string{"awk", "sed", "dd", "find", "stat"} {
		sh(t, tools, `printf '#!/bin/sh\nexec busybox %s "$@"\n' "$1" >"$1"; chmod +x "$1"`, name)
	}
	for _, shell := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}, {"zsh", "--emulate", "sh"}, {"env", "PATH=" + tools + ":" + os.Getenv("PATH"), "sh"}} {
		command := exec.Command(shell[0], append(shell[1:], "-c", q.Script().Body)...)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.base}
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %v", shell, err)
		}
		if e := q.Judge(core.Said{Body: string(out)}); !e.Safe() {
			t.Errorf("%v: %+v\n%s", shell, e.Findings, out)
		}
	}
}

// A remote that can be asked is asked; one that cannot proves nothing by what it
// once had where the checkout itself shows that it has moved on.
func TestABaselineProvesNothingThatTheRemoteNoLongerHas(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		afar   bool // safe where the remote cannot be asked
	}{
		"dropped and pruned":             {`git -C "$1" branch -qD other; git branch mine origin/other; git fetch -qp`, false},
		"rewound and fetched":            {`git -C "$1" branch -qf other main; git branch mine origin/other; git fetch -q`, false},
		"dropped by a push of our own":   {`git branch mine origin/other; git push -q origin :other`, false},
		"a tag moved and fetched":        {`git fetch -q --tags; git checkout -q --detach v3; git -C "$1" tag -f v3 main >/dev/null; git fetch -q --tags -f`, false},
		"dropped, and the remote too":    {`git -C "$1" branch -qD other; git branch mine origin/other; git remote remove origin`, true},
		"a tag dropped":                  {`git fetch -q --tags; git -C "$1" tag -d v2 >/dev/null`, true},
		"a review dropped after a fetch": {`git fetch -q origin refs/pull/1/head:review; git -C "$1" update-ref -d refs/pull/1/head`, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t)
			sh(t, p.dir, row.script, p.remote)
			if e := judged(t, p.root, p.baseline); e.Safe() || !e.Complete {
				t.Errorf("%+v", e)
			}
			// The same, launched from a remote that is not on this machine.
			afar := p.dir + "/.kandev/baseline"
			sh(t, p.dir, `sed "s,$1,https://git.example.org/app.git," .kandev/baseline >.kandev/b && mv .kandev/b .kandev/baseline`, p.remote)
			if e := judged(t, p.root, git(t, "/", "hash-object", afar)); e.Safe() != row.afar || !e.Complete {
				t.Errorf("afar: %+v", e)
			}
		})
	}
}

// An agent that makes its directory look fresh, or half made, gets no baseline of
// what it holds.
func TestALaunchIntoWhatWasThereMakesNoBaseline(t *testing.T) {
	for name, script := range map[string]string{
		"the branch it was on is gone":           work + `git branch saved; git update-ref -d HEAD; rm .kandev/baseline`,
		"its own branch stands where HEAD names": work + `git branch saved; git symbolic-ref HEAD refs/heads/none; rm -rf .kandev`,
		"the checkout as it is":                  work + `rm -rf .kandev`,
	} {
		t.Run(name, func(t *testing.T) {
			p := prepare(t)
			sh(t, p.dir, script)
			got, err := (&Launcher{Dialer: localhost.Dialer{}}).Launch(t.Context(), p.order)
			if err == nil {
				end(t, got.PID)
			}
			if got.Baseline != "" {
				t.Errorf("it has the baseline %q", got.Baseline)
			}
			if launch, err := core.ParseLaunch(got.Metadata); err != nil || launch.Baseline != "" {
				t.Errorf("%+v %v", launch, err)
			}
			if e := judged(t, p.root, p.baseline); e.Safe() {
				t.Errorf("%+v", e)
			}
		})
	}
}
