package core

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// Network and union file systems give inode numbers of all 64 bits (EFS, CIFS,
// mergerfs, overlays with xino): what the inventory proves there may go.
func TestADirectoryWhoseInodeNumberTakesAllSixtyFourBitsIsRemoved(t *testing.T) {
	for _, inode := range []string{"9223372036854775808", "18446744073709551615"} {
		q := recordedRemove
		q.Manifest.Inode, q.Manifest.Device = inode, inode
		q.Manifest.Digest = strings.Repeat("0a", 20)
		if !q.Manifest.usable() {
			t.Fatalf("the inventory does not take the inode %s", inode)
		}
		if want := "expected='" + inode + " " + inode + "'"; !strings.Contains(q.Script().Body, want) {
			t.Errorf("the script is not sent %s", want)
		}
		answer := strings.Replace(recordedAnswer(), about(recordedRemove), about(q), 1)
		if out := q.Judge(Said{Body: answer}); verdict(out) != "removed" {
			t.Errorf("%s: %+v", inode, out)
		}
	}
}

// An account may export variables of any name: none of them is one of ours.
func TestNoVariableOfTheAccountIsTakenForOneOfAScript(t *testing.T) {
	p := newPlot(t)
	p.give(1000)
	q, names := p.question(), map[string]bool{}
	for _, script := range []Script{Greet{}.Script(), Settle{}.Script(), q.Script()} {
		file := must(syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script.Body), script.Name))
		syntax.Walk(file, func(node syntax.Node) bool {
			if p, is := node.(*syntax.ParamExp); is && p.Param != nil && strings.ToLower(p.Param.Value) == p.Param.Value && syntax.ValidName(p.Param.Value) {
				names[p.Param.Value] = true
			}
			return true
		})
	}
	if len(names) < 40 {
		t.Fatalf("only %d names were found", len(names))
	}
	for _, value := range []string{"7", "7 8*"} {
		p := newPlot(t)
		p.give(1000)
		q := p.question()
		for name := range names {
			p.env = append(p.env, name+"="+value)
		}
		changed := q
		changed.Manifest.Digest = strings.Repeat("0", len(q.Manifest.Digest))
		for _, c := range []struct {
			q    Remove
			ends string
		}{
			{Remove{Root: p.root, Segment: "nothing", Manifest: q.Manifest, NotAfter: q.NotAfter}, "failed busy"},
			{changed, "skipped probe_failed changed"}, {q, "removed"}} {
			if out := p.remove(c.q); verdict(out) != c.ends {
				t.Errorf("%q: %s, not %s: %+v", value, verdict(out), c.ends, out)
			}
		}
		for _, state := range []Holder{HolderEmpty, HolderQuarantined, HolderCommitted} {
			p := newPlot(t)
			p.abandoned(map[Holder][]string{HolderQuarantined: {"plan", "q"}, HolderCommitted: {"plan", "mark", "x"}}[state]...)
			p.give(1000)
			for name := range names {
				p.env = append(p.env, name+"="+value)
			}
			if g := p.greet(); g.Holder != state {
				t.Errorf("%q: %+v", value, g)
			}
			if s, failed := p.settle(state); failed != nil || there(p.holder()) {
				t.Errorf("%q, %s: %+v %+v", value, state, s, failed)
			}
		}
	}
}

// A file system without symbolic links takes no notes: nothing is removed on it,
// and nothing of ours stays there, least of all a holder that nobody can claim.
func TestWhereNoLinkCanBeMadeNoHolderStays(t *testing.T) {
	p := newPlot(t)
	tools := p.tools("exit 1", "", "ln")
	p.give(1000)
	q := p.question()
	p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH")}
	before := p.told()
	if out := p.remove(q); verdict(out) != "failed remove_rejected" {
		t.Errorf("%+v", out)
	}
	if after := p.told(); after != before {
		t.Errorf("left\n%s", differ(before, after))
	}
	// Killed right after it was made.
	p.mkdir(p.holder())
	p.give(1000)
	if g := p.greet(); g.Holder != HolderEmpty {
		t.Fatalf("%+v", g)
	}
	if s, failed := p.settle(HolderEmpty); failed != nil || s.Target != IsDirectory || there(p.holder()) {
		t.Errorf("%+v %+v", s, failed)
	}
}

// Looking takes as long as the tree is big, the disk slow or the machine asleep.
// Whoever greeted the host after the limit and saw no holder counts on it that
// nothing is removed any more.
func TestARemovalWhoseLooksLastPastItsLimitTouchesNothing(t *testing.T) {
	p := newPlot(t)
	p.tools(`case "$*" in *"! -user"*) echo 2000000001 >`+filepath.Join(p.top(), "now")+` ;; esac`, "", "find")
	tools := p.tools(`read -r now <`+filepath.Join(p.top(), "now")+` && echo "$now"; exit`, "", "date")
	must(0, os.WriteFile(filepath.Join(p.top(), "now"), []byte("2000000000\n"), 0o644))
	p.give(1000)
	q := p.question()
	q.NotAfter = 2000000000
	p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH")}
	if out := p.remove(q); verdict(out) != "failed remove_rejected" || !strings.Contains(fmt.Sprint(out), "after the time") {
		t.Errorf("%+v", out)
	}
	if !there(p.at()) || there(p.holder()) {
		t.Error("the target went, or the holder stays")
	}
}

// A name that stands in its directory is not absent because nothing more can be
// learned of it: a dead FUSE mount, a bad disk.
func TestANameThatIsListedAndCannotBeSeenIsNotAbsent(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, shell := range shells {
		p := newPlot(t)
		p.shell = shell
		device := must(syscall.Open("/dev/fuse", syscall.O_RDWR, 0))
		p.mount("fuse", "nobody", p.at(), 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device))
		must(0, syscall.Close(device))
		if _, err := os.Lstat(p.at()); err == nil || os.IsNotExist(err) {
			t.Fatalf("it is not dead: %v", err)
		}
		if g := p.greet(); g.Target != CannotSee || g.Holder != NoHolder {
			t.Errorf("%v: %+v", shell, g)
		}
		must(0, syscall.Unmount(p.at(), syscall.MNT_DETACH))
	}
}

// Between the look at .kandev and the end of the helper's own, the helper may put
// anything in its place.
func TestEndingASessionRemovesNothingThroughALinkMadeMeanwhile(t *testing.T) {
	base := t.TempDir()
	dir, keep := filepath.Join(base, "t"), filepath.Join(base, "out/sessions/s/keep")
	must(0, os.MkdirAll(filepath.Dir(keep), 0o755))
	must(0, os.WriteFile(keep, nil, 0o644))
	must(0, os.Mkdir(dir, 0o755))
	session(t, dir, "s", "trap 'mv "+dir+"/.kandev "+dir+"/.aside; ln -s "+base+"/out "+dir+"/.kandev; exit' TERM")
	q := EndSession{TaskDir: dir, SessionID: "s", Limit: time.Minute}
	if err := q.Judge(sayIn(t, []string{"dash"}, q.Script())); err != nil {
		t.Log(err)
	}
	if !there(filepath.Join(dir, ".aside")) {
		t.Fatal("nothing was put in its place")
	}
	if !there(keep) {
		t.Error("what the link leads to was removed")
	}
}

// Bash takes the options of another shell from SHELLOPTS and BASHOPTS where an
// account exports them.
func TestNoExportedOptionOfBashBendsAScript(t *testing.T) {
	for _, shell := range [][]string{{"bash"}, {"bash", "--posix"}} {
		odd := func(p *plot) *plot {
			p.shell = shell
			p.env = []string{"SHELLOPTS=allexport:errexit:keyword:noclobber:noglob:pipefail", "BASHOPTS=dotglob:failglob:nocaseglob:nocasematch:nullglob"}
			return p
		}
		p := odd(newPlot(t))
		p.give(1000)
		if g := p.greet(); g.Target != IsDirectory || g.Holder != NoHolder {
			t.Errorf("%v: %+v", shell, g)
		}
		if out := p.remove(p.question()); verdict(out) != "removed" {
			t.Errorf("%v: %+v", shell, out)
		}
		p = odd(newPlot(t))
		common := filepath.Join(p.top(), "cache.git")
		p.make(common, "worktrees/w/HEAD", "worktrees/w/logs/HEAD")
		must(0, os.WriteFile(filepath.Join(common, "worktrees/w/gitdir"), []byte(p.at(".git")+"\n"), 0o644))
		p.abandoned("plan", "mark", "x")
		p.note("r1.dir", common)
		p.note("r1.file", p.at(".git"))
		p.note("r1.name", "w")
		p.give(1000)
		if g := p.greet(); g.Holder != HolderCommitted {
			t.Errorf("%v: %+v", shell, g)
		}
		if s, failed := p.settle(HolderCommitted); failed != nil || there(p.holder()) || there(filepath.Join(common, "worktrees/w")) {
			t.Errorf("%v: %+v %+v", shell, s, failed)
		}
	}
}

// The ps of macOS cuts a process's words to 79 columns where nobody looks on.
func TestASessionsHelperIsKnownByItsWholeWords(t *testing.T) {
	dir, tools := t.TempDir(), t.TempDir()
	must(0, os.WriteFile(filepath.Join(tools, "ps"), []byte("#!/bin/sh\ncase \"$*\" in *-ww*) exec /bin/ps \"$@\" ;; esac\n/bin/ps \"$@\" | cut -c 1-79\n"), 0o755))
	id := "s-" + strings.Repeat("0123456789", 8)
	helper := session(t, dir, id, "")
	q := EndSession{TaskDir: dir, SessionID: id}
	script := q.Script()
	script.Body = strings.ReplaceAll(script.Body, "/proc/", "/nowhere/")
	reply := sayIn(t, []string{"dash"}, script, "PATH="+tools+":"+os.Getenv("PATH"))
	if said := reply.(Said); said.Body != "reclaim 1 endsession\nended\nend 1\n" {
		t.Errorf("%q", said.Body)
		_ = helper.Process.Kill()
	}
	if state, err := helper.Process.Wait(); err != nil || state.Success() {
		t.Errorf("the helper ended %v %v", state, err)
	}
}

// A disk that has room for the holder and not for the mark in it: in a shell
// that ends where a special builtin cannot be redirected, too.
func TestADiskWithoutRoomForTheMarkGetsTheDirectoryBack(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, shell := range shells {
		p := newPlot(t)
		p.shell = shell
		must(0, os.RemoveAll(p.root))
		p.mkdir(p.root)
		p.mount("tmpfs", "tmpfs", p.root, 0, "size=1m,nr_inodes=200")
		p.make(p.tasks(), "sibling/kept", "sibling/hard")
		p.target()
		p.give(1000)
		q := p.question()
		n := 0
		for os.WriteFile(filepath.Join(p.root, fmt.Sprint("fill", n)), nil, 0o600) == nil {
			n++
		}
		for range 3 { // the holder, its claim, its plan
			n--
			must(0, os.Remove(filepath.Join(p.root, fmt.Sprint("fill", n))))
		}
		if out := p.remove(q); verdict(out) != "failed remove_rejected" {
			t.Errorf("%v: %+v", shell, out)
		}
		if !there(p.at("a")) || there(p.holder()) {
			t.Errorf("%v: the target is not back, or the holder stays", shell)
		}
	}
}

// A holder that could not be taken away is no part of a kept directory: somebody
// must come back for it.
func TestAHolderThatStaysIsNotForgottenWithAKeptDirectory(t *testing.T) {
	p := newPlot(t)
	tools := p.tools("exit 1", "", "rmdir")
	p.give(1000)
	q := p.question()
	q.Manifest.Digest = strings.Repeat("0", len(q.Manifest.Digest))
	p.env = []string{"PATH=" + tools + ":" + os.Getenv("PATH")}
	if out := p.remove(q); verdict(out) != "failed half_removed" {
		t.Errorf("%+v", out)
	}
	p.env = nil
	if g := p.greet(); g.Holder != HolderEmpty || g.Target != IsDirectory {
		t.Errorf("%+v", g)
	}
}

// Where a tombstone is listed and cannot be looked at, its holder is not empty:
// the plan that will put it back one day stays.
func TestAHolderWhoseTombstoneCannotBeSeenKeepsItsPlan(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	p := newPlot(t)
	p.abandoned("plan", "q")
	p.mount("tmpfs", "tmpfs", filepath.Join(p.top(), "outside"), 0, "")
	layers := filepath.Join(p.top(), "outside/layers")
	for _, dir := range []string{"low", "work", "up/q"} {
		p.mkdir(filepath.Join(layers, dir))
	}
	for _, link := range []string{"g1", "plan"} {
		must(0, os.Symlink(must(os.Readlink(p.holder(link))), filepath.Join(layers, "up", link)))
	}
	must(0, syscall.Setxattr(filepath.Join(layers, "up/q"), "trusted.overlay.redirect", []byte("a/../b"), 0))
	p.mount("overlay", "overlay", p.holder(), 0, "redirect_dir=on,lowerdir="+layers+"/low,upperdir="+layers+"/up,workdir="+layers+"/work")
	if _, err := os.Lstat(p.holder("q")); err == nil || os.IsNotExist(err) {
		t.Fatalf("it can be seen: %v", err)
	}
	if g := p.greet(); g.Holder != HolderContradictory {
		t.Errorf("%+v", g)
	}
	if _, failed := p.settle(HolderEmpty); failed == nil || failed.Fault != HalfRemoved {
		t.Errorf("%+v", failed)
	}
	if _, err := os.Readlink(p.holder("plan")); err != nil {
		t.Errorf("the plan is gone: %v", err)
	}
}
