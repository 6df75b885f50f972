package core

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inNamespace runs the calling test once more in a mount namespace of its own
// and reports whether this is that run.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv("RECLAIM_MOUNT_NAMESPACE") == t.Name() {
		must(0, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		return true
	}
	cmd := exec.Command("unshare", "-m", os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "RECLAIM_MOUNT_NAMESPACE="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func (p *plot) mount(kind, from, to string, flags uintptr, data string) {
	p.t.Helper()
	if err := syscall.Mount(from, to, kind, flags, data); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = syscall.Unmount(to, syscall.MNT_DETACH) })
}

// verdict is an outcome in two words.
func verdict(o Outcome) string {
	switch o := o.(type) {
	case Removed:
		return "removed"
	case Skipped:
		return "skipped " + string(o.Reason) + " " + string(o.Cause)
	case Failed:
		return "failed " + string(o.Fault)
	}
	return fmt.Sprintf("%#v", o)
}

func TestAC_D22_WhateverStandsInTheWayIsSeenBeforeAnythingMoves(t *testing.T) {
	sleeper := func(p *plot, dir string, open string) {
		cmd := exec.Command("sleep", "600")
		cmd.Dir = dir
		if open != "" {
			cmd.Stdin = must(os.Open(open))
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
		must(0, cmd.Start())
		p.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	for _, c := range []struct {
		what string
		do   func(p *plot, q *Remove)
		ends string
	}{
		{"the clock is past the limit", func(p *plot, q *Remove) { q.NotAfter = time.Now().Unix() - 1 }, "failed remove_rejected"},
		{"another directory took its place", func(p *plot, q *Remove) { p.rename(p.at(), p.at()+"-aside"); p.make(p.at(), "a") }, "skipped probe_failed changed"},
		{"it went away", func(p *plot, q *Remove) { p.rename(p.at(), p.at()+"-aside") }, "failed busy"},
		{"it became a link", func(p *plot, q *Remove) {
			p.rename(p.at(), p.at()+"-aside")
			must(0, os.Symlink(p.at()+"-aside", p.at()))
		}, "skipped not_a_checkout target_is_symlink"},
		{"it became a file", func(p *plot, q *Remove) { p.rename(p.at(), p.at()+"-aside"); p.touch(p.at()) }, "skipped not_a_checkout no_repository"},
		{"tasks became a link", func(p *plot, q *Remove) {
			p.rename(p.tasks(), p.tasks()+"-aside")
			must(0, os.Symlink(p.tasks()+"-aside", p.tasks()))
		}, "skipped not_a_checkout tasks_is_symlink"},
		{"tasks is gone", func(p *plot, q *Remove) { p.rename(p.tasks(), p.tasks()+"-aside") }, "skipped probe_failed tasks_missing"},
		{"a file was written", func(p *plot, q *Remove) { p.make(p.at(), "d/late") }, "skipped probe_failed changed"},
		{"a file was changed in place", func(p *plot, q *Remove) {
			info := must(os.Stat(p.at("a")))
			must(0, os.WriteFile(p.at("a"), []byte("b\n"), 0))
			must(0, os.Chtimes(p.at("a"), info.ModTime(), info.ModTime()))
		}, "skipped probe_failed changed"},
		{"something outside that belongs to it changed", func(p *plot, q *Remove) {
			q.Manifest = p.inspect(filepath.Join(p.top(), "outside"))
			p.make(filepath.Join(p.top(), "outside"), "late")
		}, "skipped probe_failed changed"},
		{"another user's file", func(p *plot, q *Remove) { must(0, os.Lchown(p.at("d/e/f"), 1, 1)) }, "skipped probe_failed foreign_owner"},
		{"a process works in it", func(p *plot, q *Remove) { sleeper(p, p.at("d/e"), "") }, "skipped shared live_process"},
		{"a process works in it itself", func(p *plot, q *Remove) { sleeper(p, p.at(), "") }, "skipped shared live_process"},
		{"a process has a file of it open", func(p *plot, q *Remove) { sleeper(p, "/", p.at("a")) }, "skipped shared live_process"},
		{"a session's process runs", func(p *plot, q *Remove) {
			p.mkdir(p.at(".kandev/sessions/s1"))
			must(0, os.WriteFile(p.at(".kandev/sessions/s1/agentctl.pid"), []byte("1\n"), 0o644))
			p.give(1000)
			q.Manifest = p.inspect()
		}, "skipped shared live_process"},
		{"a pid file that is a pipe was written", func(p *plot, q *Remove) {
			p.mkdir(p.at(".kandev/sessions/s1"))
			must(0, syscall.Mkfifo(p.at(".kandev/sessions/s1/agentctl.pid"), 0o644))
		}, "skipped probe_failed changed"},
		{"the parent is read-only", func(p *plot, q *Remove) { must(0, os.Chmod(p.tasks(), 0o555)) }, "failed remove_rejected"},
		{"a live holder", func(p *plot, q *Remove) {
			p.mkdir(p.holder())
			p.note("g1", fmt.Sprintf("remove,%d,?,%s,?.?,1,1,j", os.Getpid(), must(os.Hostname())))
		}, "failed busy"},
		{"a dead holder", func(p *plot, q *Remove) { p.mkdir(p.holder()); p.note("g1", p.dead("remove")) }, "failed half_removed"},
		{"a file in the holder's place", func(p *plot, q *Remove) { p.touch(p.holder()) }, "failed half_removed"},
		{"a link in the holder's place", func(p *plot, q *Remove) { must(0, os.Symlink("/tmp", p.holder())) }, "failed half_removed"},
		{"a manifest without a digest", func(p *plot, q *Remove) { q.Manifest.Digest = "" }, "failed half_removed"},
		{"the zero question", func(p *plot, q *Remove) { *q = Remove{Root: p.root, Segment: p.segment} }, "failed half_removed"},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := newPlot(t)
			p.give(1000)
			q := p.question()
			c.do(p, &q)
			if c.what != "another user's file" {
				p.give(1000)
			}
			if strings.HasPrefix(c.what, "another user") {
				q.Manifest = p.inspect()
			}
			before := p.told()
			out := p.remove(q)
			if got := verdict(out); got != c.ends {
				t.Errorf("%s, not %s: %+v", got, c.ends, out)
			}
			after := p.told()
			if strings.Contains(c.what, "written") || strings.Contains(c.what, "changed") {
				// It was renamed and put back: nothing but its own ctime tells.
				before, after = p.lessTarget(before), p.lessTarget(after)
			}
			if after != before {
				t.Errorf("left\n%s", differ(before, after))
			}
			_ = os.Chmod(p.tasks(), 0o755)
		})
	}
}

func (p *plot) lessTarget(told string) string {
	var kept []string
	for line := range strings.Lines(told) {
		if !strings.HasPrefix(line, fmt.Sprintf("%q ", p.at())) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestAMountInsideIsNeverEmptied(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for what, mount := range map[string]func(p *plot){
		"B40 another device":              func(p *plot) { p.mount("tmpfs", "tmpfs", p.at("d/e"), 0, "size=64k") },
		"a bind mount on the same device": func(p *plot) { p.mount("", filepath.Join(p.top(), "outside"), p.at("d/e"), syscall.MS_BIND, "") },
		"a name with blanks and a backslash": func(p *plot) {
			p.mkdir(p.at("a b\\c"))
			p.mount("", filepath.Join(p.top(), "outside"), p.at("a b\\c"), syscall.MS_BIND, "")
		},
		"the target itself":                    func(p *plot) { p.mount("", p.at(), p.at(), syscall.MS_BIND, "") },
		"the target itself, of another device": func(p *plot) { p.mount("tmpfs", "tmpfs", p.at(), 0, "size=64k") },
		"a file":                               func(p *plot) { p.mount("", filepath.Join(p.top(), "outside/shared"), p.at("a"), syscall.MS_BIND, "") },
	} {
		t.Run(what, func(t *testing.T) {
			for _, bsd := range []bool{false, true} {
				p := newPlot(t)
				mount(p)
				if bsd {
					p.edit = func(s string) string { return strings.ReplaceAll(s, "/proc/self/mountinfo", "/no-proc/self/mountinfo") }
				}
				q := p.question()
				before := p.told()
				out := p.remove(q)
				if got := verdict(out); got != "skipped probe_failed mount_inside" && !(bsd && strings.Contains(what, "backslash") && got != "removed") {
					t.Errorf("%s: %+v", got, out)
				}
				if after := p.told(); after != before {
					t.Errorf("left\n%s", differ(before, after))
				}
				// The same in what an earlier removal committed.
				p2 := newPlot(t)
				p2.abandoned("plan", "mark", "x")
				if what == "a bind mount on the same device" {
					p2.mount("", filepath.Join(p2.top(), "outside"), p2.holder("x/d/e"), syscall.MS_BIND, "")
					if _, failed := p2.settle(HolderCommitted); failed == nil || failed.Fault != HalfRemoved || !there(filepath.Join(p2.top(), "outside/shared")) {
						t.Errorf("%v", failed)
					}
					must(0, syscall.Unmount(p2.holder("x/d/e"), 0))
				}
			}
		})
	}
}

func TestAFullDiskIsNoObstacle(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	p := newPlot(t)
	must(0, os.RemoveAll(p.root))
	p.mkdir(p.root)
	p.mount("tmpfs", "tmpfs", p.root, 0, "size=256k")
	p.make(p.tasks(), "sibling/kept", "sibling/hard")
	p.target()
	p.give(1000)
	q := p.question()
	fill := must(os.Create(filepath.Join(p.root, "fill")))
	for {
		if _, err := fill.Write(make([]byte, 512)); err != nil {
			break
		}
	}
	fill.Close()
	if err := os.WriteFile(filepath.Join(p.root, "more"), make([]byte, 8192), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	if out := p.remove(q); verdict(out) != "removed" {
		t.Errorf("%+v", out)
	}
	if there(p.at()) || there(p.holder()) {
		t.Error("something is left")
	}
}

// Space is wanted most where there is none left: a look must need none.
func TestAFullDiskKeepsNothing(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	p := newPlot(t)
	must(0, os.RemoveAll(p.root))
	p.mkdir(p.root)
	p.mount("tmpfs", "tmpfs", p.root, 0, "size=1m")
	p.mkdir(p.tasks())
	script := `git init -q work && cd work && echo x >file && git add . && git -c user.name=n -c user.email=e@x commit -qm first && git clone -q --bare . ../origin.git && git clone -q --no-hardlinks ../origin.git "$1" && touch -d 'next hour' "$1/file"`
	clone := exec.Command("sh", "-ec", script, "sh", p.at())
	clone.Dir = p.top()
	clone.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TEMPLATE_DIR=")
	if out, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.give(1000)
	fill := must(os.Create(filepath.Join(p.root, "fill")))
	for {
		if _, err := fill.Write(make([]byte, 512)); err != nil {
			break
		}
	}
	fill.Close()
	if err := os.WriteFile(filepath.Join(p.at(), ".git", "more"), make([]byte, 8192), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	must(0, os.Remove(p.at(".git/more")))
	q := Inventory{Root: p.root, Segment: p.segment}
	e := q.Judge(p.run(q.Script()))
	if !e.Safe() {
		t.Fatalf("%+v", e.Findings)
	}
	if out := p.remove(Remove{Root: p.root, Segment: p.segment, Manifest: e.Manifest, JobID: "job-1", Attempt: 1, NotAfter: time.Now().Unix() + 900}); verdict(out) != "removed" {
		t.Errorf("%+v", out)
	}
}

func TestATargetWithoutWritePermissionIsRemovedOrLeftAsItWas(t *testing.T) {
	p := newPlot(t)
	must(0, os.Chmod(p.at(), 0o555))
	p.give(1000)
	q := p.question()
	changed := q
	changed.Manifest.Digest = strings.Repeat("0", len(q.Manifest.Digest))
	if out := p.remove(changed); verdict(out) != "skipped probe_failed changed" {
		t.Fatalf("%+v", out)
	}
	if mode := must(os.Lstat(p.at())).Mode().Perm(); mode != 0o555 {
		t.Fatalf("its mode is %o", mode)
	}
	if out := p.remove(q); verdict(out) != "removed" {
		t.Errorf("%+v", out)
	}
	// Killed when the permission was given and the rename not yet done.
	p = newPlot(t)
	p.give(1000)
	p.mkdir(p.holder())
	p.note("g1", p.dead("remove"))
	p.note("plan", p.plan(p.at(), "closed"))
	must(0, os.Chmod(p.at(), 0o755))
	p.give(1000)
	if _, failed := p.settle(HolderEmpty); failed != nil {
		t.Fatal(*failed)
	}
	if mode := must(os.Lstat(p.at())).Mode().Perm(); mode != 0o555 {
		t.Errorf("its mode is %o", mode)
	}
}

func TestAC_D22_AMoveThatWouldCopyIsStoppedAndNothingIsLost(t *testing.T) {
	p := newPlot(t)
	tools := p.tools("cp -a \"$3\" \"$4\" && rm -rf \"$3\"; exit", "", "mv")
	body := must(os.ReadFile(filepath.Join(tools, "mv")))
	must(0, os.WriteFile(filepath.Join(tools, "mv"), []byte(strings.Replace(string(body), "#!/bin/dash\n", "#!/bin/dash\n[ \"$1\" != -f ] || shift; [ \"$1\" != -- ] || shift; set -- -f -- \"$@\"\n", 1)), 0o755))
	p.give(1000)
	q := p.question()
	before := p.told()
	p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH")}
	out := p.remove(q)
	if verdict(out) != "failed remove_rejected" {
		t.Errorf("%+v", out)
	}
	if after := p.told(); after != before {
		t.Errorf("left\n%s", differ(before, after))
	}
}

func TestB52_B54_AnRmThatLiesOrFailsIsNoRemoval(t *testing.T) {
	for _, c := range []struct{ what, stand, ends, then string }{
		{"it fails and leaves", "exit 1", "failed still_present", "finished"},
		{"it says zero and leaves", "exit 0", "failed still_present", "finished"},
		{"it fails and nothing is left", "/bin/rm \"$@\"; exit 1", "failed remove_rejected", "removed"},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := newPlot(t)
			tools := p.tools(`case " $* " in *" x "*) `+c.stand+` ;; esac`, "", "rm")
			p.give(1000)
			q := p.question()
			p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH")}
			if out := p.remove(q); verdict(out) != c.ends {
				t.Errorf("%+v", out)
			}
			p.env = nil
			if end := p.recover(); end != c.then {
				t.Error(end)
			}
		})
	}
}

func TestATreeTooDeepForRmIsRemoved(t *testing.T) {
	for _, tool := range []string{"busybox rm", "rm"}[:inLong(2, 1)] {
		p := newPlot(t)
		dir := must(syscall.Open(p.at(), syscall.O_DIRECTORY, 0))
		for range 6000 {
			must(0, syscall.Mkdirat(dir, "n", 0o755))
			next := must(syscall.Openat(dir, "n", syscall.O_DIRECTORY, 0))
			syscall.Close(dir)
			dir = next
		}
		syscall.Close(dir)
		if tool != "rm" {
			tools := filepath.Join(p.top(), "tools")
			p.mkdir(tools)
			must(0, os.WriteFile(filepath.Join(tools, "rm"), []byte("#!/bin/dash\nexec busybox rm \"$@\"\n"), 0o755))
			p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH")}
		}
		before := p.elsewhere()
		if out := p.remove(p.question()); verdict(out) != "removed" {
			t.Errorf("%s: %+v", tool, out)
		}
		if after := p.elsewhere(); after != before {
			t.Errorf("%s: elsewhere:\n%s", tool, differ(before, after))
		}
	}
}

func TestNamesOfEveryByteAndNestedClosedDirectoriesAreRemoved(t *testing.T) {
	for _, shell := range shells {
		p := newPlot(t)
		p.shell = shell
		for b := 1; b < 256; b++ {
			if b != '/' && b != '.' {
				p.make(p.at("bytes", string([]byte{byte(b)})), "f")
			}
		}
		p.make(p.at(), "o/o/o/f", "o/o/g")
		p.give(1000)
		q := p.question()
		// Closed after the inspection there could be no reading; so close what
		// can be read all the same: directories without the write bit.
		for _, d := range []string{"o/o/o", "o/o", "o"} {
			must(0, os.Chmod(p.at(d), 0o555))
		}
		q.Manifest = p.inspect()
		before := p.elsewhere()
		if out := p.remove(q); verdict(out) != "removed" {
			t.Errorf("%v: %+v", shell, out)
		}
		if after := p.elsewhere(); after != before {
			t.Errorf("%v: elsewhere:\n%s", shell, differ(before, after))
		}
	}
}

func TestB55_AnUnreadableNestedDirectoryInACommittedTreeIsRemoved(t *testing.T) {
	p := newPlot(t)
	p.make(p.at(), "o/o/o/f")
	p.give(1000)
	p.abandoned("plan", "mark", "x")
	for _, d := range []string{"o/o/o", "o/o", "o"} {
		must(0, os.Chmod(p.holder("x", d), 0))
	}
	p.give(1000)
	if s, failed := p.settle(HolderCommitted); failed != nil || !s.Finished {
		t.Errorf("%+v %v", s, failed)
	}
}

// bsd makes the host one without GNU tools and without /proc.
func (p *plot) bsd() {
	p.t.Helper()
	tools := filepath.Join(p.top(), "tools")
	p.mkdir(tools)
	for name, body := range map[string]string{
		"find": `for a; do case $a in -printf | -lname | -newerBm | -cnewer | -quit) exit 1 ;; esac; done; exec /usr/bin/find "$@"`,
		"stat": `case $1 in -f) ;; *) exit 1 ;; esac
f=$(printf %s "$2" | sed 's/%Sp/%A/;s/%z/%s/;s/%Mp%Lp/%a/;s/%l/%h/;s/%Fm/%.9Y/;s/%Fc/%.9Z/;s/%N/%n/'); shift 2; exec /usr/bin/stat -c "$f" "$@"`,
		"mv": `for a; do case $a in --) break ;; -*T*) exit 64 ;; esac; done; exec /bin/mv "$@"`,
	} {
		must(0, os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/dash\n"+body+"\n"), 0o755))
	}
	p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH")}
	p.edit = func(s string) string { return strings.ReplaceAll(s, "/proc/", "/no-proc/") }
}

func TestAHostWithBSDToolsAndWithoutProcRemovesAndSettles(t *testing.T) {
	for _, sh := range [][]string{{"dash"}, {"zsh", "--emulate", "sh"}, {"ksh"}} {
		p := newPlot(t)
		p.shell = sh
		p.bsd()
		p.give(1000)
		if out := p.remove(p.question()); verdict(out) != "removed" {
			t.Errorf("%v: %+v", sh, out)
		}
		for _, c := range []struct {
			names  string
			holder Holder
		}{{"plan q mark", HolderQuarantined}, {"plan mark x", HolderCommitted}} {
			p := newPlot(t)
			p.shell = sh
			p.bsd()
			p.give(1000)
			p.abandoned(strings.Fields(c.names)...)
			p.give(1000)
			if g := p.greet(); g.Holder != c.holder {
				t.Errorf("%v: %+v", sh, g)
			}
			if s, failed := p.settle(c.holder); failed != nil {
				t.Errorf("%v: %+v %+v", sh, s, *failed)
			}
		}
		// A live holder is seen without /proc, too; and so is a live process.
		p = newPlot(t)
		p.bsd()
		p.give(1000)
		p.mkdir(p.holder())
		body := preludeShell + manifestShell + shell(holderSource) + `here; born ` + fmt.Sprint(os.Getpid()) + `; echo "` + fmt.Sprint(os.Getpid()) + `,$born,$node,$boot"`
		p.note("g1", "remove,"+strings.TrimSpace(p.run(Script{Name: "x", Body: body}).Body)+",1,1,j")
		p.give(1000)
		if g := p.greet(); g.Holder != HolderAlive {
			t.Errorf("%+v", g)
		}
		must(0, os.RemoveAll(p.holder()))
		cmd := exec.Command("sleep", "600")
		cmd.Dir = p.at("d")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
		must(0, cmd.Start())
		out := p.remove(p.question())
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if verdict(out) != "skipped shared live_process" {
			t.Errorf("%+v", out)
		}
	}
}

// A writer by absolute path never loses a byte: either its file is where it
// wrote it, or it was told that there is no such directory.
func TestAC_Race_AWriterByPathNeverLosesAByte(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	tally := map[string]int{}
	last := time.Second // how long the removal before this one took: load changes it
	for round := range inLong(60, 20) {
		p := newPlot(t) // writer and scripts are the same user
		q := p.question()
		began := time.Now()
		wait := p.start(q.Script())
		stop := make(chan bool)
		done := make(chan []string)
		pause := time.Duration(dice.Int64N(int64(last)))
		go func() {
			var wrote []string
			defer func() { done <- wrote }()
			timer := time.NewTimer(pause)
			<-timer.C
			for n := 0; n < 3; n++ {
				name := p.at("d", fmt.Sprintf("late%d", n))
				if f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
					f.Close()
					wrote = append(wrote, name)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		said, _ := wait()
		last = min(time.Since(began), 3*time.Second)
		close(stop)
		wrote := <-done
		out := q.Judge(said)
		tally[fmt.Sprintf("%s, %v written", verdict(out), len(wrote) > 0)]++
		for _, name := range wrote {
			if !there(name) {
				t.Errorf("round %d: %s: lost %s", round, verdict(out), name)
			}
		}
	}
	t.Log(tally)
}

// A writer that holds a directory of the target open, and whom the host does not
// show to this account, is the one who can lose something (doc.go). A file it
// makes at any one moment is either seen, and everything is put back with it, or
// it was made between the second reading of its directory and the end of rm: that
// window is measured. One whom the host shows keeps the directory.
func TestTheWindowOfAWriterWithAnOpenDirectory(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	last, took, lost, rounds := time.Second, time.Duration(0), 0, inLong(200, 4)
	for round := range rounds {
		p := newPlot(t)
		p.give(1000) // the writer is root's
		q := p.question()
		dir := must(os.Open(p.at("d")))
		began := time.Now()
		wait := p.start(q.Script())
		timer := time.NewTimer(time.Duration(dice.Int64N(int64(last))))
		<-timer.C
		var made uint64
		if fd, err := syscall.Openat(int(dir.Fd()), "late", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			var st syscall.Stat_t
			must(0, syscall.Fstat(fd, &st))
			made = st.Ino
			must(0, syscall.Close(fd))
		}
		said, _ := wait()
		last = min(time.Since(began), 3*time.Second)
		took += last
		dir.Close()
		out := q.Judge(said)
		kept := there(p.at("d/late")) && inode(t, p.at("d/late")) == made || there(p.holder("x/d/late"))
		switch v := verdict(out); {
		case v == "removed" && made != 0 && !kept:
			lost++
		case strings.HasPrefix(v, "skipped ") && (made == 0 || kept):
		case v == "removed" && made == 0:
		case v == "failed still_present" && kept: // it came between two passes of rm
		default:
			t.Errorf("round %d: %s, made %v, kept %v", round, v, made != 0, kept)
		}
	}
	took /= time.Duration(rounds)
	t.Logf("%d of %d files were lost: a window of about %s in removals of %s", lost, rounds, took*time.Duration(lost)/time.Duration(rounds), took)

	p := newPlot(t) // and now the scripts' own account
	dir := must(os.Open(p.at("d")))
	defer dir.Close()
	if out := p.remove(p.question()); verdict(out) != "skipped shared live_process" {
		t.Errorf("%+v", out)
	}
}

// What ended and was not waited for works nowhere: the removal says of a pid
// file what the inventory says.
func TestASessionThatEndedAndWasNotWaitedForHoldsNoRemovalUp(t *testing.T) {
	for _, bsd := range []bool{false, true} {
		p := newPlot(t)
		if bsd {
			p.bsd()
		}
		p.mkdir(p.at(".kandev/sessions/s1"))
		ended := exec.Command("true")
		must(0, ended.Start())
		pid := fmt.Sprint(ended.Process.Pid)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			raw := string(must(os.ReadFile("/proc/" + pid + "/stat")))
			if strings.HasPrefix(raw[strings.LastIndex(raw, ")"):], ") Z") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(raw)
			}
		}
		must(0, os.WriteFile(p.at(".kandev/sessions/s1/agentctl.pid"), []byte(pid+"\n"), 0o644))
		p.give(1000)
		if out := p.remove(p.question()); verdict(out) != "removed" {
			t.Errorf("without /proc %v: %+v", bsd, out)
		}
		_ = ended.Wait()
	}
}
