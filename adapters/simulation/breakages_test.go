package simulation

import (
	"slices"
	"testing"
)

// breakages lie to the machinery, each in one place, and stand for a guard of
// ours that does not work. Each must be caught by an invariant: the first it
// breaks, and some can break more than one.
var breakages = []struct {
	name   string
	stands string // for what is broken
	caught []invariant
	seed   uint64 // one that shows it; where it does no more, others are tried
}{
	{"the probe is blind to untracked files", "inventory.sh", []invariant{nothingLost}, 62},
	{"the manifest is not compared", "remove.sh", []invariant{nothingLost}, 62},
	{"rm is believed", "the look after rm in remove.sh", []invariant{removedIsGone}, 1},
	{"the begin compares nothing", "ports.Row", []invariant{othersRights, nothingForgot}, 53},
	{"no other task's right is seen", "ports.Owners", []invariant{othersRights}, 15},
	{"another claimant's borrower is not seen", "ports.Owners", []invariant{othersRights}, 692},
	{"the switch is read as it was", "ports.Owners", []invariant{othersRights}, 21},
	{"the holder is no lock", "holder.sh", []invariant{oneRemoval}, 1269},
	{"a half-removed directory is a skip", "ports.Row", []invariant{nothingForgot}, 85},
	{"stale leases stay", "ports.Jobs", []invariant{jobsEnd}, 1},
	{"a hold is a try", "the worker", []invariant{eightTries}, 32},
	{"rm reaches one name too far", "remove.sh", []invariant{siblingsStand}, 1},
	{"a repository-wide prune", "holder.sh", []invariant{siblingsStand}, 909},
	{"a record loses an exchange", "ports.Records", []invariant{recordsReplay}, 1},
	{"an un-archive does not look at the begin", "ports.TaskEnds", []invariant{othersRights, nothingForgot}, 53},
	{"leftovers are not looked at", "greet.sh", []invariant{nothingForgot, removedIsGone}, 37},
}

// within is how many seeds a breakage may go unseen.
const within = 3000

func TestEveryInvariantCanFail(t *testing.T) {
	shown := map[invariant]bool{}
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			catches := func(seed uint64) bool {
				o := simulate(t, seed, b.name)
				if o.failure == nil || !slices.Contains(b.caught, o.failure.invariant) {
					return false
				}
				shown[o.failure.invariant] = true
				t.Logf("seed %d, after %d lines: %s", seed, len(o.story), o.failure)
				return true
			}
			if b.seed > 0 && catches(b.seed) {
				return
			}
			for seed := range uint64(within) {
				if catches(seed + 1) {
					return
				}
			}
			t.Errorf("what stands for a broken guard in %s is not caught within %d seeds", b.stands, within)
		})
	}
	for _, i := range []invariant{nothingLost, removedIsGone, othersRights, oneRemoval, jobsEnd, nothingForgot, siblingsStand, eightTries, recordsReplay} {
		if !shown[i] {
			t.Errorf("nothing shows that %q can fail", i)
		}
	}
}
