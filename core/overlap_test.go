package core

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stepped is a script that stops before every command that changes or asks
// something, until it is told to go on.
type stepped struct {
	t       *testing.T
	script  HostQuery
	ask     string // FIFO: the script writes when it stops
	gate    string // FIFO: what it waits for
	gates   *os.File
	stopped chan bool
	ended   chan Said
	said    *Said
	pid     int
}

// gated are the commands that a stepped script stops at.
const gated = "date mkdir ln readlink mv chmod rm rmdir"

func (p *plot) step(n int, q HostQuery, script Script, stops string) *stepped {
	p.t.Helper()
	s := &stepped{t: p.t, script: q, ask: filepath.Join(p.top(), fmt.Sprintf("ask%d", n)), gate: filepath.Join(p.top(), fmt.Sprintf("gate%d", n)),
		stopped: make(chan bool), ended: make(chan Said, 1)}
	for _, fifo := range []string{s.ask, s.gate} {
		must(0, syscall.Mkfifo(fifo, 0o666))
		must(0, os.Chmod(fifo, 0o666))
	}
	cmd, out, _ := p.command(script, "PATH="+stops+":"+os.Getenv("PATH"), "ASK="+s.ask, "GATE="+s.gate)
	// Both ways, so that neither side waits in open: two commands of a pipeline
	// may stop at once, and each takes one line.
	asks := must(os.OpenFile(s.ask, os.O_RDWR, 0))
	s.gates = must(os.OpenFile(s.gate, os.O_RDWR, 0))
	go func() {
		var b [1]byte
		for {
			if n, err := asks.Read(b[:]); err != nil || n == 0 {
				return
			}
			s.stopped <- true
		}
	}()
	must(0, cmd.Start())
	s.pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait()
		s.ended <- Said{Body: out.String(), Exit: cmd.ProcessState.ExitCode()}
		asks.Close()
		s.gates.Close()
	}()
	return s
}

// patience bounds how long a script may take to its next stop or its end: no
// machine is that slow, so one that takes longer hangs.
const patience = 3 * time.Minute

// rest waits until the script stops or ends, and reports whether it goes on.
func (s *stepped) rest() bool {
	s.t.Helper()
	select {
	case <-s.stopped:
		return true
	case said := <-s.ended:
		s.said = &said
		return false
	case <-time.After(patience):
		_ = syscall.Kill(-s.pid, syscall.SIGKILL)
		s.t.Fatalf("the script %s has neither stopped at a command nor ended within %s: it hangs", s.script.Script().Name, patience)
		return false
	}
}

// next lets the script run to its next stop.
func (s *stepped) next() bool {
	_, _ = s.gates.Write([]byte("\n")) // it may have ended meanwhile
	return s.rest()
}

func (s *stepped) kill() {
	s.t.Helper()
	_ = syscall.Kill(-s.pid, syscall.SIGKILL)
	select {
	case said := <-s.ended:
		s.said = &said
	case <-time.After(patience):
		s.t.Fatalf("the killed script %s has not ended within %s: something of it lives on", s.script.Script().Name, patience)
	}
}

// Removals and settlements of one target run at once, are stopped for any
// length and killed, while a person makes the directory anew whenever it is
// gone and writes to it by its path. Whatever the order: what was never
// inspected survives, what was inspected is whole or wholly gone, and at most
// one removal says so.
func TestOverlappingRemovalsLoseNothingWhateverTheirOrder(t *testing.T) {
	workers, rounds := 2, inLong(500, 75)
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			tally := map[string]int{}
			stops := newPlot(t).tools(`echo >"$ASK"; read -r go <"$GATE"`, "", strings.Fields(gated)...)
			for round := range rounds {
				seed := uint64(w*rounds + round)
				if !t.Run(fmt.Sprint(seed), func(t *testing.T) { interleave(t, seed, stops, tally) }) {
					t.Fatalf("seed %d", seed)
				}
			}
			t.Log(tally)
			if tally["removed"] == 0 || tally["kept"] == 0 || tally["killed"] == 0 || tally["anew"] == 0 || tally["written"] == 0 || tally["busy"] == 0 {
				t.Errorf("the interleavings meet too little: %v", tally)
			}
		})
	}
}

func interleave(t *testing.T, seed uint64, stops string, tally map[string]int) {
	dice := rand.New(rand.NewPCG(seed, 7))
	p := newPlot(t) // the person and the scripts are the same user
	before := p.elsewhere()
	original := inode(t, p.at())
	q := p.question()
	var running, all []*stepped
	start := func(n int) {
		next := q
		next.Attempt = n
		var s *stepped
		// Three of four settle what there is to settle.
		if there(p.holder()) && dice.IntN(4) > 0 {
			settle := Settle{Root: p.root, Segment: p.segment, Holder: HolderEmpty}
			switch {
			case there(p.holder("q")):
				settle.Holder = HolderQuarantined
			case there(p.holder("x")), there(p.holder("mark")):
				settle.Holder = HolderCommitted
			}
			s = p.step(n, settle, settle.Script(), stops)
		} else {
			s = p.step(n, next, next.Script(), stops)
		}
		all = append(all, s)
		if s.rest() {
			running = append(running, s)
		}
	}
	var anew []uint64
	var written []string
	disturbed := dice.IntN(2) == 0 // half of the rounds without a person
	for n := 1; n <= 4 || len(running) > 0; {
		switch roll := dice.IntN(100); {
		case n <= 4 && (len(running) == 0 || roll < 8):
			start(n)
			n++
		case len(running) == 0:
		case roll < 11:
			i := dice.IntN(len(running))
			running[i].kill()
			running = append(running[:i], running[i+1:]...)
			tally["killed"]++
		case disturbed && roll < 14 && !there(p.at()):
			p.mkdir(p.at())
			p.make(p.at(), fmt.Sprintf("anew%d", len(anew)))
			anew = append(anew, inode(t, p.at()))
			tally["anew"]++
		case disturbed && roll < 17 && there(p.at()):
			name := fmt.Sprintf("written%d", len(written))
			p.make(p.at(), name)
			written = append(written, name)
			tally["written"]++
		default:
			i := dice.IntN(len(running))
			if !running[i].next() {
				running = append(running[:i], running[i+1:]...)
			}
		}
	}
	removed := 0
	for _, s := range all {
		switch q := s.script.(type) {
		case Remove:
			switch out := q.Judge(*s.said).(type) {
			case Removed:
				removed++
			case Failed:
				tally[string(out.Fault)]++
			case Skipped:
				tally[string(out.Cause)]++
			}
		case Settle:
			if settled, failed := q.Judge(*s.said); failed != nil {
				tally["settle "+string(failed.Fault)]++
			} else if settled.Finished {
				tally["finished"]++
			} else if settled.Restored {
				tally["restored"]++
			}
		}
	}
	contradiction := false
	for range 5 {
		g := p.greet()
		if g.Holder == NoHolder {
			break
		}
		if g.Holder == HolderContradictory {
			contradiction = true
			break
		}
		if _, failed := p.settle(g.Holder); failed != nil {
			t.Fatalf("%+v: %+v", g, *failed)
		}
	}
	if !contradiction && there(p.holder()) {
		t.Fatal("the holder is never settled")
	}
	if removed > 1 {
		t.Errorf("%d removals say removed", removed)
	}
	place := map[uint64]string{}
	for _, at := range []string{p.at(), p.holder("q"), p.holder("x")} {
		if there(at) {
			place[inode(t, at)] = at
		}
	}
	// The number alone would not do: it is given again once the old is gone.
	at, whole := place[original]
	for n, ino := range anew {
		if ino == original && there(filepath.Join(at, fmt.Sprintf("anew%d", n))) {
			whole = false
		}
	}
	switch {
	case whole && removed > 0:
		t.Error("removed, and it is there")
	case whole:
		tally["kept"]++
		for _, name := range []string{"a", "d/e/f", "-rf", "closed/in/file", "d/hard", "linked", "d/link"} {
			if !there(filepath.Join(at, name)) {
				t.Errorf("%s of the kept directory is gone", name)
			}
		}
	default:
		tally["removed"]++
	}
	for n, ino := range anew {
		if at := place[ino]; at == "" || !there(filepath.Join(at, fmt.Sprintf("anew%d", n))) {
			t.Errorf("directory %d that was made anew is lost", n)
		}
	}
	for _, name := range written {
		found := false
		for _, at := range place {
			found = found || there(filepath.Join(at, name))
		}
		if !found {
			t.Errorf("%s is lost", name)
		}
	}
	if contradiction {
		tally["contradiction"]++
	}
	scaffold := filepath.Join(p.top(), "ask")
	if after := strip(strip(p.elsewhere(), scaffold), filepath.Join(p.top(), "gate")); lessTop(after, p.top()) != lessTop(before, p.top()) {
		t.Errorf("elsewhere:\n%s", differ(before, after))
	}
}

// lessTop leaves out the plot's own directory, in which a test puts its things.
func lessTop(told, top string) string {
	var kept []string
	for line := range strings.Lines(told) {
		if !strings.HasPrefix(line, fmt.Sprintf("%q ", top)) {
			kept = append(kept, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(kept, "\n")
}
