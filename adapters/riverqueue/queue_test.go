package riverqueue_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// busy waits until the host runs a script.
func (w *world) busy(host string) {
	w.Helper()
	w.until("a script runs on "+host, func() (is bool) {
		w.hosts.at(func() { is = w.hosts.scripts[host] > 0 })
		return is
	})
}

func (w *world) archive(tasks ...string) {
	w.Helper()
	if _, err := w.store.Archive(w.Context(), tasks, false); err != nil {
		w.Fatal(err)
	}
}

func TestAnUnArchiveCancelsTheRiverJobWaitingOrAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 30*time.Second) // a script is not seen to end
	w.put("at-work", "host-a", false)
	w.put("waiting", "host-b", false)
	w.archive("at-work", "waiting")
	w.exec(`UPDATE task_resource_cleanup_jobs SET state = 'retry_wait', attempts = 3, next_attempt_at = now() + interval '1 hour' WHERE task_id = 'waiting'`)
	w.here("m")
	w.busy("host-a")
	w.until("River waits as the row does", func() bool { return w.river("waiting").State == "scheduled" })
	for _, task := range []string{"at-work", "waiting"} {
		if err := w.store.Unarchive(t.Context(), task, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range []string{"at-work", "waiting"} {
		w.until("River's job of "+task+" is cancelled", func() bool { return w.river(task).State == "cancelled" })
		if j := w.job(task); j.State != string(ports.Cancelled) {
			t.Errorf("%s: %+v", task, j)
		}
	}
	w.until("the host is left", func() (left bool) {
		w.hosts.at(func() { left = w.hosts.sessions["host-a"]["m"] == 0 })
		return left
	})
	if w.hosts.removals != 0 || len(w.hosts.wrong) > 0 {
		t.Errorf("%d removals, %v", w.hosts.removals, w.hosts.wrong)
	}
}

func TestStopAllCancelsWhatHasNotBegunAndEverythingComesBackAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 100*time.Millisecond)
	w.o.PerHost = 1
	tasks := []string{"a", "b", "c", "d"}
	for _, task := range tasks {
		w.put(task, "host", false)
	}
	w.archive(tasks...)
	w.here("m")
	w.busy("host")
	if err := w.store.Desk().SetStopped(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	w.until("River has nothing more to do", func() bool {
		return w.riverJobs("running")+w.riverJobs("available")+w.riverJobs("scheduled")+w.riverJobs("retryable") == 0
	})
	removed := w.hosts.removals
	if removed > 1 || w.ended() > 1 {
		t.Errorf("%d removals, %d jobs ended: none may begin once all are stopped", removed, w.ended())
	}
	if w.ended()+w.riverJobs("cancelled") < len(tasks) {
		t.Errorf("%d ended, %d cancelled", w.ended(), w.riverJobs("cancelled"))
	}
	if err := w.store.Desk().SetStopped(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.until("every job has ended", func() bool { return w.ended() == len(tasks) })
	w.right()
}

func TestARiverJobThatIsRescuedAndRunsTwiceDoesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 700*time.Millisecond)
	w.put("t", "host", false)
	w.archive("t")
	w.here("first")
	w.busy("host")
	w.here("second")
	w.exec(`UPDATE reclaim_river.river_job SET state = 'available' WHERE state = 'running'`) // as River's rescue does, by age
	w.until("it ran a second time", func() bool { return w.river("t").Runs == 2 })
	w.until("it has ended", func() bool { return w.ended() == 1 })
	w.until("River knows", func() bool { return w.river("t").State == "completed" })
	if j := w.job("t"); j.Attempts != 1 {
		t.Errorf("it was attempted %d times", j.Attempts)
	}
	w.right()
	w.within()
}

func TestRiverFollowsTheRowsScheduleNeverItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), time.Millisecond)
	w.put("t", "host", false)
	w.archive("t")
	w.here("m", func(m *worker.Worker) { m.Phase = refusing{} })
	for attempt := 1; attempt <= 8; attempt += 2 {
		w.exec(`UPDATE task_resource_cleanup_jobs SET state = 'retry_wait', attempts = $1, next_attempt_at = now() WHERE task_id = 't'`, attempt-1)
		w.until("it was attempted", func() bool { return w.job("t").Attempts == attempt && w.job("t").State == "retry_wait" })
		delay, _ := core.RetryAfter(attempt)
		w.until("River waits as long as the row", func() bool {
			j, r := w.job("t"), w.river("t")
			return r.State == "retryable" && r.At.Sub(j.Next).Abs() < time.Second
		})
		if left := time.Until(w.job("t").Next); left > delay || left < delay-time.Minute {
			t.Errorf("attempt %d is followed in %s", attempt, left)
		}
		if r := w.river("t"); !strings.Contains(r.Told, "connection refused by the test") {
			t.Errorf("River was told %q", r.Told)
		}
	}
	w.exec(`UPDATE task_resource_cleanup_jobs SET state = 'retry_wait', attempts = 7, next_attempt_at = now() WHERE task_id = 't'`)
	w.until("it was given up", func() bool { return w.job("t").State == "failed" })
	w.until("River gave it up", func() bool { return w.river("t").State == "cancelled" })
	if r := w.river("t"); !strings.Contains(r.Told, "given up after attempt 8") {
		t.Errorf("River was told %q", r.Told)
	}
	var jobs int
	if err := w.db.QueryRow(`SELECT count(*) FROM reclaim_river.river_job`).Scan(&jobs); err != nil || jobs != 1 {
		t.Errorf("%d River jobs for one operation: %v", jobs, err)
	}
}

// A machine whose clock is wrong told River a wrong time, or leads River and
// does not see that it is time.
func TestARiverJobAtAWrongTimeIsPutRightByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{
		"hours ahead":     `UPDATE reclaim_river.river_job SET state = 'scheduled', scheduled_at = now() + interval '3 hours'`,
		"hours late":      `UPDATE reclaim_river.river_job SET state = 'scheduled', scheduled_at = now() - interval '3 hours'`,
		"lost":            `DELETE FROM reclaim_river.river_job`,
		"discarded":       `UPDATE reclaim_river.river_job SET state = 'discarded', finalized_at = now()`,
		"running nowhere": `UPDATE reclaim_river.river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 minute', attempted_by = '{nobody}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, postgres(), time.Millisecond)
			w.o.Stale = 4 * time.Second
			w.put("t", "host", false)
			w.archive("t")
			_, end := w.here("first", func(m *worker.Worker) { m.Phase = refusing{} })
			w.until("it was attempted", func() bool { return w.river("t").State == "retryable" })
			if err := end(); err != nil {
				t.Fatal(err)
			}
			w.exec(wrong)
			w.exec(`UPDATE task_resource_cleanup_jobs SET next_attempt_at = now(), updated_at = now() - interval '1 minute'`)
			w.here("second")
			w.until("it has ended", func() bool { return w.ended() == 1 })
			w.right()
		})
	}
}

func TestTheCapHoldsOverAllMachinesAndAHostThatSwallowsEverythingDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 10*time.Millisecond)
	w.atOnce = 6
	var swallowed atomic.Int32
	for i := range 40 {
		w.put("hole-"+string(rune('a'+i%26))+string(rune('a'+i/26)), "hole", false)
	}
	for i := range 20 {
		w.put("good-"+string(rune('a'+i)), "good", false)
	}
	for task := range w.want {
		if strings.HasPrefix(task, "hole") {
			w.archive(task)
		}
	}
	for task := range w.want {
		if strings.HasPrefix(task, "good") {
			w.archive(task)
		}
	}
	hole := func(m *worker.Worker) { m.Phase = swallowing{m.Phase, &swallowed} }
	queue, _ := w.here("first", hole)
	w.here("second", hole)
	w.until("the good host's jobs have ended", func() bool { return w.ended() == 20 })
	if n := swallowed.Load(); n != int32(w.o.PerHost) {
		t.Errorf("%d jobs of the dead host were started, and the cap is %d", n, w.o.PerHost)
	}
	w.until("the figures say so", func() bool {
		seen, err := queue.Hosts(t.Context())
		return err == nil && len(seen) == 1 && seen[0].Host == "hole" && seen[0].Running == 2 && seen[0].PerHost == 2 && seen[0].Waiting > 0
	})
	w.within()
}

// An embedded worker on the same database (work --once) takes its share under
// the same cap.
func TestAnEmbeddedWorkerBesideRiverKeepsToTheSameCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 30*time.Millisecond)
	w.archived(30, 2)
	w.here("m")
	queue, mine, close, err := machine(t.Context(), w.dsn, w.hosts.socket, "embedded", w.o, w.atOnce)
	if err != nil {
		t.Fatal(err)
	}
	defer close()
	mine.Jobs = queue.Jobs()
	took := 0
	for w.ended() < 30 {
		ended, err := mine.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		took += len(ended)
		time.Sleep(5 * time.Millisecond)
	}
	if took == 0 {
		t.Error("it took nothing")
	}
	w.right()
	w.within()
}

func TestAnEmbeddedWorkerLooksPastAnyNumberOfJobsOfAFullHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres(), 0)
	w.put("first", "full", false)
	w.put("last", "free", false)
	w.archive("first")
	w.exec(`INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, resource_snapshot, created_at, updated_at)
		SELECT 'more-' || n, 'more-' || n, 'more-' || n, trigger, state, resource_snapshot, created_at, updated_at FROM task_resource_cleanup_jobs, generate_series(1, 300) n`)
	w.archive("last")
	queue, _, close, err := machine(t.Context(), w.dsn, w.hosts.socket, "m", w.o, w.atOnce)
	if err != nil {
		t.Fatal(err)
	}
	defer close()
	jobs := queue.Jobs()
	for want := range 3 {
		j, ok, err := jobs.Lease(t.Context(), "m", nil)
		if err != nil || !ok || (j.TaskID == "last") != (want == 2) {
			t.Fatalf("%d: %s %v %v", want, j.TaskID, ok, err)
		}
	}
	if j, ok, err := jobs.Lease(t.Context(), "m", nil); ok || err != nil {
		t.Errorf("%s beyond the cap: %v", j.TaskID, err)
	}
}
