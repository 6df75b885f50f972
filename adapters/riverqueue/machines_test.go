package riverqueue_test

import (
	"context"
	"math/rand/v2"
	"os/signal"
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

// Machines die, stand still for longer than a lease lasts, and lose their
// database, at random moments.
func TestNothingIsLostOrDoneTwiceWhateverHappensToMachinesAndDatabase(t *testing.T) {
	t.Parallel()
	jobs, over, blows := 40, 5, 4
	if long {
		jobs, over, blows = 2000, 20, 40
	}
	server := pgtest.Start(t, "fsync=off")
	w := newWorld(t, server, 60*time.Millisecond)
	w.archived(jobs, over)
	machines := []*child{w.start(), w.start(), w.start()}
	stood := []*child{}
	struck := map[string]int{}
	for i := range blows {
		// A blow falls where work is done, or nothing is left to do.
		before := w.ended()
		w.until("work is done", func() bool { n := w.ended(); return n > before || n == jobs })
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // into the next step, not in place of a condition
		at := rand.IntN(len(machines))
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
