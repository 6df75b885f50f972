package sshhost_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sshhost"
)

// BenchmarkManyTargets reclaims many directories of one host over one connection,
// one by one and four at a time, in turn: "x" is how many times as fast four are.
// What is kept in memory must not grow with the number of targets.
func BenchmarkManyTargets(b *testing.B) {
	y := newYard(b)
	y.template(b, 1)
	for _, trip := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		b.Run(fmt.Sprintf("targets=%d/rtt=%s", inLong(200, 16), trip), func(b *testing.B) {
			var one, four time.Duration
			var first, last memory
			for b.Loop() {
				b.StopTimer()
				var segments []string
				y.relay.SetRoundTrip(0)
				for range 2 * inLong(200, 16) {
					segments = append(segments, y.task(b))
				}
				before := y.relay.Connections()
				pool := sshhost.New(sshhost.Options{}).Pool()
				y.greet(b, dial(b, pool, y.target), segments[0]) // connected, and the PATH is learnt
				y.relay.SetRoundTrip(trip)
				b.StartTimer()
				// In turn, some of each: what the machine does meanwhile meets both.
				for batch := 0; batch < len(segments); batch += 8 {
					one += y.many(b, pool, segments[batch:batch+4], 1)
					four += y.many(b, pool, segments[batch+4:batch+8], 4)
					if last = used(b); first == (memory{}) {
						first = last
					}
				}
				if n := y.relay.Connections() - before; n != 1 {
					b.Errorf("%d connections", n)
				}
				pool.Close()
			}
			b.ReportMetric(one.Seconds()/four.Seconds(), "x")
			b.ReportMetric(float64(last.heap-first.heap)/1024, "heap-KiB-more")
			b.ReportMetric(float64(last.resident-first.resident), "rss-KiB-more")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// many reclaims the directories, some at a time, each with a session of its own.
func (y *yard) many(b *testing.B, pool *sshhost.Pool, segments []string, atOnce int) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, segment := range segments {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			session, refusal := pool.Dial(b.Context(), y.target)
			if session == nil {
				b.Errorf("%+v", refusal)
				return
			}
			defer session.Close()
			y.greet(b, session, segment)
			y.reclaim(b, session, segment)
		})
	}
	all.Wait()
	return time.Since(began)
}

// memory is what this process uses after a collection: the heap in bytes, the
// resident set in KiB.
type memory struct{ heap, resident int64 }

func used(b *testing.B) memory {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rss, _ := strings.Cut(string(status), "VmRSS:")
	resident, err := strconv.ParseInt(strings.Fields(rss)[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return memory{int64(stats.HeapAlloc), resident}
}
