package riverqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
)

func signalled() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM)
}

func TestThreeMachinesEndEveryJobOnceUnderTheCapOfEveryHost(t *testing.T) {
	t.Parallel()
	jobs, over := 60, 6
	if long {
		jobs, over = 2000, 20
	}
	w := newWorld(t, postgres(), 20*time.Millisecond)
	w.archived(jobs, over)
	began := time.Now()
	for range 3 {
		w.start()
	}
	w.until("every job has ended", func() bool { return w.ended() == jobs })
	t.Logf("%d jobs on %d hosts in %s; at most %v at once", jobs, over, time.Since(began), w.hosts.crowd)
	w.right()
	w.within()
	w.until("River knows of the end of every job", func() bool { return w.riverJobs("completed") == jobs })
}

// riverJobs counts River's jobs in a state.
func (w *world) riverJobs(state string) (n int) {
	w.Helper()
	if err := w.db.QueryRow(`SELECT count(*) FROM reclaim_river.river_job WHERE state::text = $1`, state).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// Machines die, stand still for longer than a lease lasts, lose their database
// and have their clocks set, at random moments.
func TestNothingIsLostOrDoneTwiceWhateverHappensToMachinesAndDatabase(t *testing.T) {
	t.Parallel()
	jobs, over, blows := 40, 5, 4
	if long {
		jobs, over, blows = 2000, 20, 40
	}
	server := pgtest.Start(t, "fsync=off")
	w := newWorld(t, server, 60*time.Millisecond)
	w.o.Stale = 6 * time.Second
	w.archived(jobs, over)
	machines := []*child{w.start(), w.start(), w.start()}
	if long { // one machine's clock jumps three hours ahead, one's back; CI sees what that does to River's times below
		program := jumping(t)
		machines = append(machines, w.startProgram(program, clockJump+"=10800"), w.startProgram(program, clockJump+"=-10800"))
	}
	stood := []*child{}
	struck := map[string]int{}
	for i := range blows {
		// A blow falls where work is done, or nothing is left to do.
		before := w.ended()
		w.until("work is done", func() bool { n := w.ended(); return n > before || n == jobs })
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // into the next step, not in place of a condition
		at := rand.IntN(3)
		switch []string{"kill", "stop", "kill", "database"}[i%4] {
		case "kill":
			struck["killed"]++
			machines[at].kill()
			machines[at] = w.start()
		case "stop":
			struck["stood still"]++
			if err := machines[at].Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			stood = append(stood, machines[at])
			machines[at] = w.start()
		case "database":
			struck["database"]++
			server.Restart(t)
		}
		w.hurry()
		if len(stood) > 1 {
			_ = stood[0].Process.Signal(syscall.SIGCONT)
			machines, stood = append(machines, stood[0]), stood[1:]
		}
	}
	w.until("every job has ended", func() bool { w.hurry(); return w.ended() == jobs })
	for _, c := range stood { // it wakes up late, with jobs in its hands that others have ended
		_ = c.Process.Signal(syscall.SIGCONT)
	}
	w.until("River has nothing more to do", func() bool {
		return w.riverJobs("running")+w.riverJobs("available")+w.riverJobs("scheduled")+w.riverJobs("retryable") == 0
	})
	w.right()
	for host, n := range w.hosts.most {
		if n > w.o.PerHost {
			t.Errorf("%s had %d scripts at once, and the cap is %d", host, n, w.o.PerHost)
		}
	}
	t.Logf("%v; at most %v scripts at once", struck, w.hosts.most)
}

// hurry lets a test not wait for a retry's delay.
func (w *world) hurry() {
	if _, err := w.db.Exec(`UPDATE task_resource_cleanup_jobs SET next_attempt_at = NULL, attempts = least(attempts, 5) WHERE state = 'retry_wait'`); err != nil {
		w.Logf("the rows cannot be hurried now: %v", err)
	}
}

// More machines have more jobs in flight until every host has as many as it
// may.
func TestMoreMachinesDoMoreUntilTheCapsBind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 0)
	w.atOnce = 3
	open := make(chan struct{})
	w.hosts.held = map[string]chan struct{}{"greet": open}
	w.archived(24, 4) // room for eight
	inFlight := func(want int) func() bool {
		return func() (is bool) {
			w.hosts.at(func() {
				n := 0
				for _, running := range w.hosts.scripts {
					n += running
				}
				is = n == want
			})
			return is
		}
	}
	for machines, want := range []int{3, 6, 8} {
		w.start()
		w.until(fmt.Sprintf("%d machines have %d jobs in flight", machines+1, want), inFlight(want))
	}
	w.start()
	w.until("the others wait for room", func() bool {
		var n int
		if err := w.db.QueryRow(`SELECT count(*) FROM reclaim_river.reclaim_waiting`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n >= 4
	})
	if !inFlight(8)() {
		t.Error("the fourth machine had room")
	}
	close(open)
	w.until("every job has ended", func() bool { return w.ended() == 24 })
	w.right()
	w.within()
}

// BenchmarkMachines is how many jobs a second one, two and three machines work
// off, where every host takes a quarter of a second for each: on 20 hosts, and on
// 4, whose caps bind. The ratios are to one machine.
func BenchmarkMachines(b *testing.B) {
	const jobs = 80
	rate := map[string][]float64{}
	run := func(what string, machines, over int) {
		w := newWorld(b, postgres(), 250*time.Millisecond)
		w.atOnce = 8
		w.archived(jobs, over)
		var all []*child
		for range machines {
			all = append(all, w.start())
		}
		w.until("the machines are at work", func() bool { return w.ended() > 0 })
		began, from := time.Now(), w.ended()
		w.until("every job has ended", func() bool { return w.ended() == jobs })
		rate[what] = append(rate[what], float64(jobs-from)/time.Since(began).Seconds())
		for _, c := range all {
			c.kill()
		}
		w.right()
		w.within()
	}
	name := func(machines, hosts int) string { return fmt.Sprintf("%d-on-%d-hosts", machines, hosts) }
	for range b.N {
		for machines := 1; machines <= 3; machines++ {
			for _, hosts := range []int{20, 4} {
				run(name(machines, hosts), machines, hosts)
			}
		}
	}
	for machines := 1; machines <= 3; machines++ {
		for _, hosts := range []int{20, 4} {
			r := slices.Max(rate[name(machines, hosts)])
			b.ReportMetric(r, name(machines, hosts)+"-jobs/s")
			if machines > 1 {
				b.ReportMetric(r/slices.Max(rate[name(1, hosts)]), name(machines, hosts)+"-ratio")
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

func TestAMachineThatIsToldToEndPutsDownWhatHasNotBegunAndWaitsForARemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 0)
	removal, look := make(chan struct{}), make(chan struct{})
	w.hosts.held = map[string]chan struct{}{"a remove": removal, "b inventory": look}
	w.put("removing", "a", false)
	w.put("looking", "b", false)
	w.put("waiting", "b", false)
	w.archive("removing", "looking", "waiting")
	w.o.PerHost = 1
	c := w.start()
	w.until("both are at work", func() (is bool) {
		w.hosts.at(func() { is = w.hosts.dirs["a/srv/k/tasks/removing"].leaving && w.hosts.scripts["b"] == 1 })
		return is
	})
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.until("the look is put down", func() (is bool) {
		w.hosts.at(func() { is = w.hosts.sessions["b"][c.name] == 0 })
		return is
	})
	w.until("it is due at once", func() bool {
		var n int
		if err := w.db.QueryRow(`SELECT count(*) FROM task_resource_cleanup_jobs WHERE state = 'pending' OR state = 'retry_wait' AND next_attempt_at <= now() AT TIME ZONE 'UTC'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 2
	})
	if j := w.job("removing"); j.State != "running" {
		t.Errorf("the removal was not waited for: %+v", j)
	}
	close(removal)
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if j := w.job("removing"); j.State != "succeeded" || j.Attempts != 1 {
		t.Errorf("the removal: %+v", j)
	}
	var slots, running int
	if err := w.db.QueryRow(`SELECT (SELECT count(*) FROM reclaim_river.reclaim_slots), (SELECT count(*) FROM reclaim_river.river_job WHERE state = 'running')`).Scan(&slots, &running); err != nil || slots+running > 0 {
		t.Errorf("%d slots and %d River jobs are left in its hands: %v", slots, running, err)
	}
	close(look)
	w.start()
	w.until("the next machine goes on", func() bool { return w.ended() == 3 })
	w.right()
	w.within()
}
