package riverqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/ports"
)

// floor is one machine's part: it works what River hands it. Whatever River
// believes, the row decides: a River job that was rescued and runs twice finds
// the row in other hands, or ended, and does nothing.
type floor struct {
	river.WorkerDefaults[Args]
	queue  *Queue
	worker *worker.Worker

	mu       sync.Mutex
	draining bool
	flights  map[string]*flight
}

// flight is a job in this machine's hands.
type flight struct{ cancel context.CancelCauseFunc }

var errDraining = errors.New("this machine is being shut down")

// heldBack is how long a job sleeps that waits for room on its host. It is
// called earlier, when a slot is given back.
const heldBack = 30 * time.Second

// Timeout implements river.Worker: none, an attempt has limits of its own.
func (f *floor) Timeout(*river.Job[Args]) time.Duration { return -1 }

// NextRetry implements river.Worker: the row's schedule, never River's own.
func (f *floor) NextRetry(j *river.Job[Args]) time.Time { return f.queue.clock.Now().Add(j.Args.after) }

// Work implements river.Worker.
func (f *floor) Work(ctx context.Context, r *river.Job[Args]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !f.enter(r.Args.JobID, &flight{cancel}) {
		return river.JobSnooze(time.Second) // a second run of a job that is in our hands, or a shutdown
	}
	defer f.leave(r.Args.JobID)

	stopped, err := f.queue.stops(ctx)
	if err != nil {
		return f.later(ctx, err)
	}
	if stopped {
		return river.JobCancel(errors.New("all removals are stopped; the job comes back when they go on"))
	}
	j, taken, wait, err := f.queue.lease(ctx, f.worker.Name, r.Args.JobID)
	switch {
	case errors.Is(err, ports.ErrNotFound):
		return river.JobCancel(errors.New("the job's row is gone"))
	case err != nil:
		return f.later(ctx, err)
	case taken:
		return f.attempt(ctx, r, j)
	case wait > 0: // tried again by a person's hand, or by a clock that is not ours
		return river.JobSnooze(wait)
	}
	switch j.State {
	case ports.Pending, ports.RetryWait:
		return river.JobSnooze(heldBack + rand.N(heldBack/2))
	case ports.Running: // its holder may be dead; then the row is due again when its lease is stale
		return river.JobSnooze(f.queue.o.Stale)
	case ports.JobFailed:
		return river.JobCancel(fmt.Errorf("given up after attempt %d: %s", j.Attempts, j.LastError))
	}
	return nil // it has ended
}

// later puts off what the database could not answer.
func (f *floor) later(ctx context.Context, err error) error {
	f.queue.o.Log.WarnContext(ctx, "a job cannot be had", "worker", f.worker.Name, "error", err)
	return river.JobSnooze(2 * time.Second)
}

func (f *floor) attempt(ctx context.Context, r *river.Job[Args], j ports.Job) error {
	ended := f.worker.Attempt(ctx, j)
	// An attempt that lost its lease wrote nothing and still has its slots.
	token := ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: f.worker.Name}
	detached, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if err := f.queue.release(detached, token); err != nil {
		f.queue.o.Log.WarnContext(ctx, "the host's slot could not be given back; it is free when it is stale", "job_id", j.ID, "error", err)
	}
	switch ended.State {
	case ports.Succeeded:
		return nil
	case ports.Cancelled:
		return river.JobCancel(errors.New("the task was taken up again"))
	case ports.JobFailed:
		return river.JobCancel(fmt.Errorf("given up after attempt %d: %s", ended.Attempts, ended.Error))
	case ports.RetryWait:
		if ended.Delay == 0 {
			return river.JobSnooze(0) // put down at a shutdown
		}
		r.Args.after = ended.Delay
		return fmt.Errorf("attempt %d: %s", ended.Attempts, ended.Error)
	}
	return river.JobSnooze(f.queue.o.Stale) // in other hands, or not written
}

func (f *floor) enter(id string, new *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, is := f.flights[id]; is || f.draining {
		return false
	}
	f.flights[id] = new
	return true
}

func (f *floor) leave(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.flights, id)
}

// drain stops fetching, puts down what has not begun a removal, and waits for
// the rest; what is left after most of the grace is cut short.
func (f *floor) drain(ctx context.Context, client *river.Client[pgx.Tx]) error {
	grace := cmp.Or(f.worker.Grace, 30*time.Second)
	f.mu.Lock()
	f.draining = true
	var ids []string
	for id := range f.flights {
		ids = append(ids, id)
	}
	f.mu.Unlock()

	asked, done := context.WithTimeout(ctx, grace/6)
	removing, err := f.queue.removing(asked, ids)
	done()
	if err != nil {
		f.queue.o.Log.WarnContext(ctx, "which removals have begun cannot be told; everything is put down", "error", err)
	}
	f.putDown(func(id string) bool { return !removing[id] })

	soft, done := context.WithTimeout(ctx, grace*2/3)
	defer done()
	if err = client.Stop(soft); err == nil {
		return nil
	}
	f.putDown(func(string) bool { return true })
	hard, done := context.WithTimeout(ctx, grace/3)
	defer done()
	if err = client.StopAndCancel(hard); err == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.flights) == 0 {
		return fmt.Errorf("the queue did not stop: %w", err)
	}
	return fmt.Errorf("%d %w", len(f.flights), worker.ErrAbandoned)
}

func (f *floor) putDown(which func(id string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, flight := range f.flights {
		if which(id) {
			flight.cancel(errDraining)
		}
	}
}
