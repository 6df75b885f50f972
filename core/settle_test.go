package core

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func (p *plot) note(name, says string) {
	p.t.Helper()
	if err := os.Symlink("="+says, p.holder(name)); err != nil {
		p.t.Fatal(err)
	}
}

// dead is a claim of a process that has ended on this very machine.
func (p *plot) dead(kind string) string {
	p.t.Helper()
	body := preludeShell + manifestShell + shell(holderSource) + `here; born $$; echo "$$,$born,$node,$boot"`
	said := p.run(Script{Name: "here", Body: body})
	return kind + "," + strings.TrimSpace(said.Body) + "," + fmt.Sprint(time.Now().Unix()) + ",1,job-1"
}

// plan is what a removal notes about the directory at path.
func (p *plot) plan(path, how string) string {
	p.t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		p.t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d %d %s", st.Dev, st.Ino, how)
}

func (p *plot) mkdir(path string) {
	p.t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plot) rename(from, to string) {
	p.t.Helper()
	if err := os.Rename(from, to); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plot) touch(path string) {
	p.t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// abandoned is a holder whose removal died with these names in it.
func (p *plot) abandoned(names ...string) {
	p.t.Helper()
	p.mkdir(p.holder())
	p.note("g1", p.dead("remove"))
	plan := ""
	if there(p.at()) {
		plan = p.plan(p.at(), "open")
	}
	for _, name := range names {
		switch name {
		case "plan":
			p.note(name, plan)
		case "mark":
			p.touch(p.holder(name))
			// What was there before is older than the mark, whatever the clock's grain.
			soon := time.Now().Add(time.Second)
			if err := os.Chtimes(p.holder(name), soon, soon); err != nil {
				p.t.Fatal(err)
			}
		case "q", "x":
			if there(p.at()) {
				p.rename(p.at(), p.holder(name))
			} else {
				p.mkdir(p.holder(name))
			}
		default:
			p.touch(p.holder(name))
		}
	}
}

func TestAC_D38_EveryLeftoverStateIsReadAndPutRight(t *testing.T) {
	const (
		kept     = "kept"    // the old directory is at the target
		gone     = "gone"    // nothing is at the target
		renewed  = "renewed" // the new directory is at the target
		nothing  = "nothing" // not touched at all
		untaken  = ""        // no new directory
		newThere = "new"     // a new directory at the target
	)
	for _, c := range []struct {
		what   string
		names  string
		target string
		holder Holder
		ends   string
	}{
		{"a holder made and not claimed", "-", untaken, HolderEmpty, kept},
		{"a claim", "", untaken, HolderEmpty, kept},
		{"a plan", "plan", untaken, HolderEmpty, kept},
		{"renamed", "plan q", untaken, HolderQuarantined, kept},
		{"renamed and marked", "plan q mark", untaken, HolderQuarantined, kept},
		{"committed", "plan mark x", untaken, HolderCommitted, gone},
		{"committed, target made anew", "plan mark x", newThere, HolderCommitted, renewed},
		{"renamed, target made anew", "plan q", newThere, HolderContradictory, nothing},
		{"both tombstones", "plan mark x q", untaken, HolderContradictory, nothing},
		{"renamed without a plan", "q", untaken, HolderContradictory, nothing},
		{"committed without a plan", "mark x", untaken, HolderContradictory, nothing},
		{"committed without a mark", "plan x", untaken, HolderContradictory, nothing},
		{"a mark alone", "mark", untaken, HolderContradictory, nothing},
		{"a name nobody knows", "plan strange", untaken, HolderContradictory, nothing},
		{"a person's file named as a note is", "r2notes", untaken, HolderContradictory, nothing},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := newPlot(t)
			p.give(1000)
			old := inode(t, p.at())
			whole := p.inspect()
			if c.names == "-" {
				p.mkdir(p.holder())
			} else {
				p.abandoned(strings.Fields(c.names)...)
			}
			if c.target == newThere {
				p.make(p.at(), "new")
			}
			p.give(1000)
			before, all := p.elsewhere(), p.told()
			g := p.greet()
			if g.Holder != c.holder {
				t.Fatalf("greeted as %+v", g)
			}
			if after := p.told(); after != all {
				t.Fatalf("the greeting changed\n%s", differ(all, after))
			}
			s, failed := p.settle(c.holder)
			if c.ends == nothing {
				if failed == nil || failed.Fault != HalfRemoved {
					t.Errorf("%+v %v", s, failed)
				}
				if after := p.told(); after != all {
					t.Errorf("touched:\n%s", differ(all, after))
				}
				if out, ok := p.remove(Remove{Root: p.root, Segment: p.segment, Manifest: whole, NotAfter: time.Now().Unix() + 9}).(Removed); ok {
					t.Errorf("%#v", out)
				}
				if after := p.told(); after != all {
					t.Errorf("the removal touched:\n%s", differ(all, after))
				}
				return
			}
			if failed != nil {
				t.Fatal(*failed)
			}
			if there(p.holder()) {
				t.Error("the holder is left")
			}
			if after := p.elsewhere(); after != before {
				t.Errorf("elsewhere:\n%s", differ(before, after))
			}
			switch c.ends {
			case kept:
				if s.Finished || s.Restored != (c.holder == HolderQuarantined) || s.Target != IsDirectory || inode(t, p.at()) != old || p.inspect().Digest != whole.Digest {
					t.Errorf("%+v", s)
				}
			case gone:
				if !s.Finished || s.Target != Absent || s.Entries == 0 || there(p.at()) {
					t.Errorf("%+v", s)
				}
			case renewed:
				if !s.Finished || s.Target != IsDirectory || !there(p.at("new")) {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

func TestAHolderIsBusyAsLongAsItsProcessMayRun(t *testing.T) {
	for _, c := range []struct {
		what string
		edit func(fields []string)
		ends Holder
	}{
		{"the process runs", func(f []string) {}, HolderAlive},
		{"the number was given to another process", func(f []string) { f[2] = "1" }, HolderQuarantined},
		{"the host restarted", func(f []string) { f[4] = "0000." + strings.SplitN(f[4], ".", 2)[1] }, HolderQuarantined},
		{"the container restarted", func(f []string) { f[4] = strings.SplitN(f[4], ".", 2)[0] + ".1" }, HolderQuarantined},
		{"another machine's, lately", func(f []string) { f[3] = "elsewhere" }, HolderAlive},
		{"another machine's, a day ago", func(f []string) { f[3] = "elsewhere"; f[5] = fmt.Sprint(time.Now().Unix() - 86400) }, HolderQuarantined},
		{"a start time that is not told", func(f []string) { f[2] = "?" }, HolderAlive},
		{"a process number that is none", func(f []string) { f[1] = "x" }, HolderAlive},
		{"a process of another user", func(f []string) { f[1] = "1"; f[2] = "?" }, HolderAlive},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := newPlot(t)
			sleeper := exec.Command("sleep", "600")
			if err := sleeper.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
			p.give(1000)
			p.abandoned("plan", "q")
			body := preludeShell + manifestShell + shell(holderSource) + fmt.Sprintf(`born %d; echo "$born"`, sleeper.Process.Pid)
			born := strings.TrimSpace(p.run(Script{Name: "born", Body: body}).Body)
			fields := strings.Split(p.dead("remove"), ",")
			fields[1], fields[2] = fmt.Sprint(sleeper.Process.Pid), born
			c.edit(fields)
			if err := os.Remove(p.holder("g1")); err != nil {
				t.Fatal(err)
			}
			p.note("g1", strings.Join(fields, ","))
			p.give(1000)
			all := p.told()
			if g := p.greet(); g.Holder != c.ends {
				t.Fatalf("%+v", g)
			}
			if c.ends == HolderAlive {
				if _, failed := p.settle(HolderQuarantined); failed == nil || failed.Fault != Busy {
					t.Errorf("%v", failed)
				}
				if after := p.told(); after != all {
					t.Errorf("touched:\n%s", differ(all, after))
				}
			}
		})
	}
}

func TestACommittedTreeWithSomethingNewInItIsKept(t *testing.T) {
	for what, later := range map[string]func(p *plot) func(){
		"a file written after the mark": func(p *plot) func() {
			p.make(p.holder("x"), "d/late")
			soon := time.Now().Add(5 * time.Second)
			if err := os.Chtimes(p.holder("x/d/late"), soon, soon); err != nil {
				p.t.Fatal(err)
			}
			return func() {}
		},
		"a process whose directory is inside": func(p *plot) func() {
			sleeper := exec.Command("sleep", "600")
			sleeper.Dir = p.holder("x/d")
			sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
			if err := sleeper.Start(); err != nil {
				p.t.Fatal(err)
			}
			return func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPlot(t)
			p.give(1000)
			p.abandoned("plan", "mark", "x")
			if strings.HasPrefix(what, "a file") {
				now := time.Now().Add(-time.Second)
				if err := os.Chtimes(p.holder("mark"), now, now); err != nil {
					t.Fatal(err)
				}
			}
			defer later(p)()
			p.give(1000)
			if _, failed := p.settle(HolderCommitted); failed == nil || failed.Fault != HalfRemoved {
				t.Fatalf("%v", failed)
			}
			if !there(p.holder("x/d/e/f")) {
				t.Error("it was removed")
			}
		})
	}
}

// Every removal of half a tree must go on, also where files have dates in the
// future or lost a hard link to the removal itself.
func TestAHalfRemovedTreeIsFinishedWhateverItsDates(t *testing.T) {
	p := newPlot(t)
	if err := os.Link(p.at("a"), p.at("d/again")); err != nil {
		t.Fatal(err)
	}
	future := time.Now().Add(1000 * time.Hour)
	if err := os.Chtimes(p.at("d/hard"), future, future); err != nil {
		t.Fatal(err)
	}
	p.give(1000)
	p.abandoned("plan", "x")
	time.Sleep(20 * time.Millisecond) // the grain of file times
	p.touch(p.holder("mark"))
	time.Sleep(20 * time.Millisecond)
	if err := os.Remove(p.holder("x/a")); err != nil {
		t.Fatal(err)
	}
	p.give(1000)
	if s, failed := p.settle(HolderCommitted); failed != nil || !s.Finished {
		t.Fatalf("%+v %v", s, failed)
	}
}

func TestAC_001_2_ARegistrationIsRemovedExactlyAndLaterIfInterrupted(t *testing.T) {
	for _, how := range []string{"at once", "tree gone, registration left", "half of the registration gone", "only its directory left"} {
		t.Run(how, func(t *testing.T) {
			p := newPlot(t)
			common := filepath.Join(p.top(), "cache.git")
			git := func(args ...string) {
				t.Helper()
				cmd := exec.Command("git", args...)
				cmd.Env = append(os.Environ(), "HOME="+p.top(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			if err := exec.Command("chmod", "-R", "u+rwx", p.at()).Run(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(p.at()); err != nil {
				t.Fatal(err)
			}
			git("init", "-q", "--bare", common)
			tree := strings.TrimSpace(string(must(exec.Command("git", "-C", common, "hash-object", "-wt", "tree", "/dev/null").Output())))
			commit := exec.Command("git", "-C", common, "commit-tree", "-m", "x", tree)
			commit.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
			id := strings.TrimSpace(string(must(commit.Output())))
			git("-C", common, "worktree", "add", "-q", "--detach", p.at(), id)
			// B74: another worktree of the repository, quarantined meanwhile.
			other := filepath.Join(p.tasks(), "other")
			git("-C", common, "worktree", "add", "-q", "--detach", other, id)
			p.rename(other, other+"-aside")
			p.give(1000)
			name := plotted
			admin := filepath.Join(common, "worktrees", name)
			registration := Registration{CommonDir: common, Name: name, GitDirFile: strings.TrimSpace(string(must(os.ReadFile(filepath.Join(admin, "gitdir")))))}
			q := p.question()
			q.Manifest = p.inspect(common)
			q.Manifest.Registrations = []Registration{registration}
			before := p.told(p.at(), p.holder(), admin)
			before = strings.ReplaceAll(before, worktreesLine(before, common), "")
			if how == "at once" {
				if out, ok := p.remove(q).(Removed); !ok {
					t.Fatalf("%#v", p.remove(q))
				} else if out.Entries == 0 {
					t.Error("no entries")
				}
			} else {
				p.abandoned("plan", "mark")
				if err := os.RemoveAll(p.at()); err != nil {
					t.Fatal(err)
				}
				p.note("r1.dir", registration.CommonDir)
				p.note("r1.file", registration.GitDirFile)
				p.note("r1.name", registration.Name)
				p.give(1000)
				switch how {
				case "half of the registration gone":
					must(0, os.Remove(filepath.Join(admin, "HEAD")))
				case "only its directory left":
					must(0, os.RemoveAll(admin))
					p.mkdir(admin)
					p.give(1000)
				}
				if g := p.greet(); g.Holder != HolderCommitted {
					t.Fatalf("%+v", g)
				}
				if s, failed := p.settle(HolderCommitted); failed != nil || !s.Finished || s.Target != Absent {
					t.Fatalf("%+v %v", s, failed)
				}
			}
			if there(admin) || there(p.holder()) || there(p.at()) {
				t.Error("something is left")
			}
			after := p.told(p.at(), p.holder(), admin)
			if after = strings.ReplaceAll(after, worktreesLine(after, common), ""); how == "at once" && after != before {
				t.Errorf("elsewhere:\n%s", differ(before, after))
			}
			p.rename(other+"-aside", other)
			check := exec.Command("git", "-c", "safe.directory=*", "-C", other, "rev-parse", "HEAD")
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("the other worktree died: %s", out)
			}
		})
	}
}

func TestAC_D28_ARegistrationThatSpeaksOfAnotherDirectoryStays(t *testing.T) {
	p := newPlot(t)
	admin := filepath.Join(p.top(), "cache.git/worktrees/w")
	p.make(admin, "HEAD")
	must(0, os.WriteFile(filepath.Join(admin, "gitdir"), []byte("/moved/elsewhere/.git\n"), 0o644))
	p.give(1000)
	q := p.question()
	q.Manifest.Registrations = []Registration{{CommonDir: filepath.Join(p.top(), "cache.git"), Name: "w", GitDirFile: p.at(".git")}}
	before := p.elsewhere()
	if out, ok := p.remove(q).(Removed); !ok {
		t.Fatalf("%#v", out)
	}
	if after := p.elsewhere(); after != before {
		t.Errorf("elsewhere:\n%s", differ(before, after))
	}
}

// The target was made again while an interrupted removal waited to be finished:
// the same worktree, under the same name, with the same words in its entry.
func TestARegistrationWhoseDirectoryStandsAgainStays(t *testing.T) {
	for _, relative := range []bool{false, true} {
		p := newPlot(t)
		common := filepath.Join(p.top(), "cache.git")
		admin := filepath.Join(common, "worktrees/w")
		spelled := p.at(".git")
		if relative {
			spelled = "../../../root/tasks/" + plotted + "/.git"
		}
		p.make(admin, "HEAD", "index", "logs/HEAD")
		must(0, os.WriteFile(filepath.Join(admin, "gitdir"), []byte(spelled+"\n"), 0o644))
		p.abandoned("plan", "mark")
		must(0, os.WriteFile(p.at(".git"), []byte("gitdir: "+admin+"\n"), 0o644))
		p.note("r1.dir", common)
		p.note("r1.file", spelled)
		p.note("r1.name", "w")
		p.give(1000)
		before := p.told(p.holder())
		if s, failed := p.settle(HolderCommitted); failed != nil || !s.Finished || s.Target != IsDirectory {
			t.Fatalf("%+v %v", s, failed)
		}
		if after := p.told(p.holder()); after != before {
			t.Errorf("relative %v:\n%s", relative, differ(before, after))
		}
	}
}

func worktreesLine(told, common string) string {
	for line := range strings.Lines(told) {
		if strings.HasPrefix(line, fmt.Sprintf("%q ", filepath.Join(common, "worktrees"))) {
			return line
		}
	}
	return "\x00"
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
