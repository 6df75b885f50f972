package simulation

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// breakages lie to the machinery, each in one place: what they stand for is a
// guard of ours that does not work. Each must be caught by its invariant.
var breakages = []struct {
	name   string
	caught []invariant // any of them; a broken guard shows where it hurts first
	stands string
}{
	{"the probe is blind to untracked files", []invariant{nothingLost}, "inventory.sh"},
	{"the manifest is not compared", []invariant{nothingLost}, "remove.sh"},
	{"rm is believed", []invariant{removedIsGone}, "remove.sh, the look after rm"},
	{"the begin compares nothing", []invariant{othersRights, nothingForgot}, "ports.Row"},
	{"no other task's right is seen", []invariant{othersRights}, "ports.Owners"},
	{"the switch is read as it was", []invariant{othersRights}, "ports.Owners"},
	{"the holder is no lock", []invariant{oneRemoval, nothingForgot}, "holder.sh"},
	{"a half-removed directory is a skip", []invariant{nothingForgot}, "ports.Row"},
	{"stale leases stay", []invariant{jobsEnd}, "ports.Jobs"},
	{"rm reaches one name too far", []invariant{siblingsStand}, "remove.sh"},
	{"a repository-wide prune", []invariant{siblingsStand}, "holder.sh"},
	{"a record loses an exchange", []invariant{recordsReplay}, "ports.Records"},
	{"an un-archive does not look at the begin", []invariant{othersRights}, "ports.TaskEnds"},
	{"leftovers are not looked at", []invariant{nothingForgot, removedIsGone}, "greet.sh"},
}

const breakageSeeds = 1500

func TestEveryInvariantCanFail(t *testing.T) {
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			found := parallel(t, breakageSeeds, func(seed uint64) bool {
				o := simulate(t, seed, b.name)
				if o.failure == nil {
					return false
				}
				for _, i := range b.caught {
					if o.failure.invariant == i {
						t.Logf("seed %d, after %d lines: %s", seed, len(o.story), o.failure)
						return true
					}
				}
				t.Logf("seed %d: %s", seed, o.failure)
				return false
			})
			if !found {
				t.Errorf("%s is not caught by %s", b.name, strings.Trim(strings.Join(strings.Fields(string(b.caught[0])), " "), " "))
			}
		})
	}
}

// parallel runs seeds until one stops it.
func parallel(t *testing.T, n int64, run func(seed uint64) (stop bool)) bool {
	var next atomic.Int64
	var stopped atomic.Bool
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for !stopped.Load() {
				seed := next.Add(1)
				if seed > n {
					return
				}
				if run(uint64(seed)) {
					stopped.Store(true)
				}
			}
		})
	}
	all.Wait()
	return stopped.Load()
}
