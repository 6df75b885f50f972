package core

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools is a directory of stand-ins for the commands a script runs, each of
// which runs before, then the command itself, then after.
func (p *plot) tools(before, after string, names ...string) string {
	p.t.Helper()
	if len(names) == 0 {
		names = strings.Fields("env sed find stat git awk od id date mkdir uname ln readlink chmod mv rm grep cat rmdir tr")
	}
	dir := filepath.Join(p.top(), "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	for _, name := range names {
		real, err := exec.LookPath(name)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/dash\n"+before+"\n"+real+" \"$@\"\ns=$?\n"+after+"\nexit $s\n"), 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	return dir
}

// recover is what attempts after a killed one do; it returns how it ended.
func (p *plot) recover() string {
	p.t.Helper()
	for range 4 {
		g := p.greet()
		switch g.Holder {
		case NoHolder:
			if g.Target == Absent {
				return "removed"
			}
			q := p.question()
			out := p.remove(q)
			if _, ok := out.(Removed); !ok {
				p.t.Fatalf("put back, and then %#v", out)
			}
			return "put back"
		case HolderEmpty, HolderQuarantined, HolderCommitted:
			s, failed := p.settle(g.Holder)
			if failed != nil {
				p.t.Fatalf("%+v: %+v", g, *failed)
			}
			if s.Finished && s.Target == Absent {
				return "finished"
			}
		default:
			p.t.Fatalf("%+v", g)
		}
	}
	p.t.Fatal("four attempts and no end")
	return ""
}

func (p *plot) kill(s Script, env ...string) {
	p.t.Helper()
	cmd, _, _ := p.command(s, env...)
	_ = cmd.Run()
}

func TestARemovalKilledAtAnyStepIsFinishedOrPutBackWhole(t *testing.T) {
	const count = `: >"$COUNT/$$"; set_n() { n=$#; }; set_n "$COUNT"/*; `
	const cut = `[ "$n" != "$KILL" ] || kill -KILL 0`
	for when, stand := range map[string][2]string{
		"before": {count + cut, ""},
		"after":  {count, cut},
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			ends := map[string]int{}
			steps := 1
			for n := 0; n <= steps; n++ { // 0 kills nothing and counts the steps
				// After one step is before the next: in the short form each is met once.
				if !long && n > 0 && (n%2 == 0) == (when == "before") {
					continue
				}
				p := newPlot(t)
				tools := p.tools(stand[0], stand[1])
				counter := filepath.Join(p.top(), "count")
				p.mkdir(counter)
				p.give(1000)
				before := p.elsewhere()
				old := inode(t, p.at())
				p.kill(p.question().Script(), "PATH="+tools+":"+os.Getenv("PATH"), "COUNT="+counter, fmt.Sprintf("KILL=%d", n))
				if n == 0 {
					steps = len(must(os.ReadDir(counter)))
				}
				if there(p.at()) && inode(t, p.at()) != old {
					t.Fatalf("kill %d: another directory is at the target", n)
				}
				ends[p.recover()]++
				if there(p.at()) || there(p.holder()) {
					t.Fatalf("kill %d: something is left", n)
				}
				if after := p.elsewhere(); strip(after, counter) != strip(before, counter) {
					t.Fatalf("kill %d: elsewhere:\n%s", n, differ(before, after))
				}
			}
			t.Log(steps, ends)
			if steps < 20 || ends["put back"] == 0 || ends["finished"] == 0 || ends["removed"] == 0 {
				t.Errorf("not every state was met: %v", ends)
			}
		})
	}
}

func strip(told, path string) string {
	var kept []string
	for line := range strings.Lines(told) {
		if !strings.HasPrefix(line, strings.TrimSuffix(fmt.Sprintf("%q", path), `"`)) {
			kept = append(kept, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(kept, "\n")
}

func TestAC_005_ARemovalKilledInTheMiddleOfRmIsFinishedAndNeverSkipped(t *testing.T) {
	const total = 14
	for n := range total {
		p := newPlot(t)
		// rm takes n entries, then everything is killed.
		tools := p.tools(`case " $* " in *" x "*) `+fmt.Sprintf(`
			find x -depth ! -name x -exec sh -c 'n=$(cat "$COUNT"); [ "$n" -lt %d ] || kill -KILL 0; echo $((n + 1)) >"$COUNT"
				[ -d "$1" ] && [ ! -L "$1" ] && { chmod u+w "$1"; exec rmdir -- "$1"; }
				chmod u+w "${1%%/*}"; exec /bin/rm -f -- "$1"' sh {} \; ;; esac`, n), "", "rm")
		counter := filepath.Join(p.top(), "home", "count")
		must(0, os.WriteFile(counter, []byte("0\n"), 0o666))
		p.give(1000)
		before := p.elsewhere()
		q := p.question()
		p.kill(q.Script(), "PATH="+tools+":"+os.Getenv("PATH"), "COUNT="+counter)
		if g := p.greet(); g.Holder != HolderCommitted {
			t.Fatalf("after %d entries: %+v", n, g)
		}
		must(0, os.WriteFile(counter, []byte("0\n"), 0o666))
		if end := p.recover(); end != "finished" {
			t.Errorf("after %d entries: %s", n, end)
		}
		if after := p.elsewhere(); strip(after, counter) != strip(before, counter) {
			t.Errorf("elsewhere:\n%s", differ(before, after))
		}
	}
}

// A settlement can be killed as well.
func TestASettlementKilledAtAnyStepIsFinishedByTheNext(t *testing.T) {
	for first, c := range []struct {
		names  string
		holder Holder
	}{{"plan q mark", HolderQuarantined}, {"plan mark x", HolderCommitted}, {"plan", HolderEmpty}} {
		t.Run(string(c.holder), func(t *testing.T) {
			t.Parallel()
			for n := first + 1; n <= 40; n += inLong(1, 3) {
				p := newPlot(t)
				tools := p.tools(`: >"$COUNT/$$"; set_n() { n=$#; }; set_n "$COUNT"/*; [ "$n" != "$KILL" ] || kill -KILL 0`, "")
				counter := filepath.Join(p.top(), "count")
				p.mkdir(counter)
				p.give(1000)
				// A registration goes with a committed tree and never with one that is put back.
				admin := filepath.Join(p.top(), "cache.git/worktrees/w")
				p.make(admin, "gitdir")
				must(0, os.WriteFile(filepath.Join(admin, "gitdir"), []byte(p.at()+"/.git\n"), 0o644))
				p.abandoned(strings.Fields(c.names)...)
				p.note("r1.dir", filepath.Join(p.top(), "cache.git"))
				p.note("r1.file", p.at()+"/.git")
				p.note("r1.name", "w")
				p.give(1000)
				before := p.outsideRegistration(c.holder)
				p.kill(Settle{Root: p.root, Segment: p.segment, Holder: c.holder}.Script(), "PATH="+tools+":"+os.Getenv("PATH"), "COUNT="+counter, fmt.Sprintf("KILL=%d", n))
				end := p.recover()
				if (c.holder == HolderCommitted) == (end == "put back") {
					t.Errorf("kill %d: %s", n, end)
				}
				if there(admin) == (c.holder == HolderCommitted) {
					t.Errorf("kill %d: the registration is there: %v", n, there(admin))
				}
				if after := p.outsideRegistration(c.holder); strip(after, counter) != strip(before, counter) {
					t.Fatalf("kill %d: elsewhere:\n%s", n, differ(before, after))
				}
			}
		})
	}
}

// outsideRegistration is elsewhere, less a registration that is to go.
func (p *plot) outsideRegistration(h Holder) string {
	if h == HolderCommitted {
		return p.told(p.at(), p.holder(), filepath.Join(p.top(), "cache.git"))
	}
	return p.elsewhere()
}

// The connection may end at any moment: nobody reads, the terminal hangs up.
func TestARemovalWhoseReaderIsGoneRunsToItsEnd(t *testing.T) {
	for _, shell := range shells {
		p := newPlot(t)
		p.give(1000)
		p.shell = shell
		q := p.question()
		cmd, _, _ := p.command(q.Script())
		r, w := must2(os.Pipe())
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		w.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", shell, err)
		}
		if there(p.at()) || there(p.holder()) {
			t.Errorf("%v: something is left", shell)
		}
	}
}

func must2(r, w *os.File, err error) (*os.File, *os.File) {
	if err != nil {
		panic(err)
	}
	return r, w
}

func TestProgressTellsHowFarARemovalIs(t *testing.T) {
	p := newPlot(t)
	p.give(1000)
	ask := func() (Stage, int64) {
		t.Helper()
		q := Progress{Root: p.root, Segment: p.segment}
		stage, left, ok := q.Judge(p.run(q.Script()))
		if !ok {
			t.Fatal("unreadable")
		}
		return stage, left
	}
	if stage, _ := ask(); stage != StageNone {
		t.Error(stage)
	}
	count := p.question().Manifest.Count
	p.abandoned("plan", "q")
	p.give(1000)
	if stage, _ := ask(); stage != StageChecking {
		t.Error(stage)
	}
	p.rename(p.holder("q"), p.holder("x"))
	if stage, left := ask(); stage != StageRemoving || left != count {
		t.Error(stage, left, count)
	}
}
