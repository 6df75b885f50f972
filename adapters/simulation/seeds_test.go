package simulation

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

var ctxNone = context.Background()

// short is the part of a story that leads to its end.
func short(o outcome) string {
	lines := o.story
	if len(lines) > 120 {
		lines = append([]string{"..."}, lines[len(lines)-120:]...)
	}
	return strings.Join(lines, "\n")
}

func TestOneSeed(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("RECLAIM_SEED"), 10, 64)
	o := simulate(t, seed, os.Getenv("RECLAIM_BROKEN"))
	t.Log("\n" + strings.Join(o.story, "\n"))
	t.Log(o.counts)
	if o.failure != nil {
		t.Error(o.failure)
	}
}

func TestSeeds(t *testing.T) {
	n := 1000
	if s := os.Getenv("RECLAIM_SEEDS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	var next atomic.Int64
	var mu sync.Mutex
	counts := map[string]int{}
	failures := 0
	t.Run("all", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("processor ", i), func(t *testing.T) {
				t.Parallel()
				for {
					seed := next.Add(1)
					if seed > int64(n) {
						return
					}
					o := simulate(t, uint64(seed), "")
					mu.Lock()
					for k, v := range o.counts {
						counts[k] += v
					}
					if o.failure != nil {
						failures++
						if failures <= 20 {
							t.Errorf("seed %d: %s", seed, o.failure)
						}
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Log(counts, failures)
}

func TestOneSeedIsOneHistory(t *testing.T) {
	for seed := range uint64(200) {
		a, b := simulate(t, seed, ""), simulate(t, seed, "")
		if a.digest != b.digest {
			t.Errorf("seed %d: two histories", seed)
			for i := range a.story {
				if i >= len(b.story) || a.story[i] != b.story[i] {
					t.Log(strings.Join(a.story[max(0, i-3):min(i+3, len(a.story))], "\n"))
					t.Log(strings.Join(b.story[max(0, i-3):min(i+3, len(b.story))], "\n"))
					break
				}
			}
		}
	}
}
