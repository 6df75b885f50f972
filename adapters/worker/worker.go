// Package worker is the stand-alone backend around the phase: it leases cleanup
// jobs, stops what the task still runs, has the phase judge and reclaim the
// directories, cleans up after the task and ends the job. The job's row is the
// record and the fence: every write is a compare-and-set on the attempt that was
// leased, and a worker that lost its lease writes nothing more.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Phase judges and reclaims the directories of one job. *job.Phase is the one.
type Phase interface {
	Run(ctx context.Context, j job.Job) (job.Report, error)
}

// Stops ends what a job's task still runs. *Stopping is the one.
type Stops interface {
	// Stop runs what is due and waits for it. The error says what kept a session
	// from being stopped, or the ending of its cleanup script from being
	// recorded.
	Stop(ctx context.Context, j ports.Job, token ports.Token) (Stopped, error)
	// Look says what Stop has to go on with and what it would do first, and does
	// nothing.
	Look(ctx context.Context, j ports.Job) (Stopped, error)
}

// Stopped is how a stop phase went. Its zero value keeps every directory.
type Stopped struct {
	Stops job.Stops
	Hook  core.Hook
	// Sessions are those of which nothing of ours runs any more: their rows may
	// go.
	Sessions []string
	// First are the things that Stop would do and Look does not, in words: until
	// they are done nobody knows what would be found.
	First []string
}

// Worker runs cleanup jobs. Its fields must not change once Run or Once was
// called. It waits, spawns and chooses only through its ports and package time.
type Worker struct {
	// Name tells this worker's leases from every other's, also from those of an
	// earlier process on the same machine. It must not be empty.
	Name string

	Jobs     ports.Jobs
	Tasks    ports.Tasks
	Sessions ports.Sessions
	Stops    Stops
	Phase    Phase

	// Prepared settles prepared jobs that a crash left (ports.TaskEnds), at every
	// look for stale leases: one that nobody settles keeps its directory from
	// everybody for ever. Nil where the backend does it.
	Prepared interface {
		Reconcile(ctx context.Context, before time.Time) (int, error)
	}

	Log  *slog.Logger    // nil is silent
	Wake <-chan struct{} // where set, a receive looks for due jobs at once

	// Observe has every due job judged and takes none: nothing is leased,
	// stopped, begun or written, so nothing counts against a job. A job is
	// judged again when its row has moved on, or after AgainAfter. The Phase must
	// observe too.
	Observe    bool
	AgainAfter time.Duration // 0 means an hour

	AtOnce  int // jobs in flight; 0 means 32
	PerHost int // jobs in flight that name one host; 0 means 4

	Poll  time.Duration // between two looks at an idle queue; 0 means 5 s
	Beat  time.Duration // between two heartbeats; 0 means 20 s
	Stale time.Duration // age of a heartbeat after which a lease is anybody's; 0 means 60 s
	Grace time.Duration // for jobs in flight at a shutdown; 0 means 30 s
}

// Ended is what one job came to in this worker's hands.
type Ended struct {
	ID       string        `json:"id"`
	TaskID   string        `json:"task_id"`
	State    ports.State   `json:"state"`
	Attempts int           `json:"attempts"`
	Results  []core.Result `json:"results"`

	Delay time.Duration `json:"-"` // until the next attempt, in RetryWait
	Error string        `json:"-"` // as it stands in the row's last_error
}

// ErrAbandoned says that jobs were still in flight when the grace of a shutdown
// had passed. Their leases go stale and they are resumed by another worker.
var ErrAbandoned = errors.New("jobs were left in flight")

var (
	errLeaseLost = errors.New("the lease was lost: the job's row is in other hands")
	errNoBeat    = errors.New("the lease could not be renewed in time")
)

// writeLimit bounds a write that must not be cut short by a shutdown, as a host
// bounds its own.
const writeLimit = 5 * time.Second

// poll is the pause between two looks at an idle queue (D36).
const poll = 5 * time.Second

// leaseTries is how often in a row Once asks for the next job before it gives
// up.
const leaseTries = 4

// Run works until ctx ends. Then it leases nothing more and has no further
// question put; a removal in flight is left to its host, and its job is resumed
// later. It returns once every job in flight was put down, at the latest after
// Grace: nil, or ErrAbandoned.
func (w *Worker) Run(ctx context.Context) error {
	_, err := w.work(ctx, false)
	return err
}

// Once runs every job that is due and returns when each one it touched has
// ended or waits for its retry, in the order in which they did. The error says
// what kept it from seeing all that was due.
func (w *Worker) Once(ctx context.Context) ([]Ended, error) {
	return w.work(ctx, true)
}

// flight is one attempt at a job in this worker's hands. A lease that went stale
// may be this worker's own again before the earlier attempt was put down, so a
// job can be in flight twice.
type flight struct {
	hosts []string
}

type flightKey struct {
	job     string
	attempt int
}

func (w *Worker) work(ctx context.Context, once bool) ([]Ended, error) {
	if w.Name == "" {
		return nil, errors.New("a worker without a name cannot hold a lease")
	}
	var (
		all      = []Ended{}
		flights  = map[flightKey]flight{}
		ended    = make(chan Ended)
		seen     = map[string]time.Time{} // observed: row and attempt, and when
		failures int
		recovery time.Time  // when stale leases were last looked for
		passed   passedOver // when nothing was due past the held hosts
		idle     = time.NewTimer(0)
	)
	defer idle.Stop()
	put := func(e Ended) {
		delete(flights, flightKey{e.ID, e.Attempts})
		if once {
			all = append(all, e)
		}
	}
	for ctx.Err() == nil {
		empty, failed := false, w.revive(ctx, &recovery)
		if failed == nil {
			empty, failed = w.fill(ctx, flights, seen, &passed, ended)
		}
		switch {
		case failed != nil && ctx.Err() == nil:
			failures++
			w.log().WarnContext(ctx, "the next job cannot be had", "worker", w.Name, "error", failed)
			if once && failures >= leaseTries && len(flights) == 0 {
				return all, fmt.Errorf("the next job cannot be had: %w", failed)
			}
		case failed == nil:
			failures = 0
			if once && empty && len(flights) == 0 {
				return all, nil
			}
		}
		idle.Reset(w.pause(failures))
		select {
		case e := <-ended:
			put(e)
		case <-idle.C:
		case <-w.Wake:
			passed = passedOver{}
		case <-ctx.Done():
		}
	}
	grace := time.NewTimer(or(w.Grace, 30*time.Second))
	defer grace.Stop()
	for len(flights) > 0 {
		select {
		case e := <-ended:
			put(e)
		case <-grace.C:
			go drain(ended, len(flights))
			return all, fmt.Errorf("%d %w", len(flights), ErrAbandoned)
		}
	}
	return all, nil
}

func drain(ended <-chan Ended, n int) {
	for range n {
		<-ended
	}
}

// pause is how long to wait for the next look: soon after a failure, so that a
// store that fails now and then costs little.
func (w *Worker) pause(failures int) time.Duration {
	idle := or(w.Poll, poll)
	if failures == 0 {
		return idle
	}
	return min(idle, time.Duration(failures)*250*time.Millisecond)
}

// fill takes due jobs until nothing more may start now. empty says that nothing
// more was due for what may start.
func (w *Worker) fill(ctx context.Context, flights map[flightKey]flight, seen map[string]time.Time, passed *passedOver, ended chan<- Ended) (empty bool, err error) {
	for ctx.Err() == nil && len(flights) < w.atOnce() {
		j, ok, err := w.next(ctx, flights, seen, passed)
		if err != nil || !ok {
			return err == nil, err
		}
		flights[flightKey{j.ID, j.Attempts}] = flight{hosts: hostsOf(j)}
		go func() {
			if w.Observe {
				ended <- w.observe(ctx, j)
			} else {
				ended <- w.Attempt(ctx, j)
			}
		}()
	}
	return false, nil
}

// revive makes jobs due again that another worker left, once every poll.
func (w *Worker) revive(ctx context.Context, last *time.Time) error {
	if w.Observe || !last.IsZero() && time.Since(*last) < or(w.Poll, poll) {
		return nil
	}
	n, err := w.Jobs.Recover(ctx, w.stale())
	if err != nil {
		return err
	}
	*last = time.Now()
	if n > 0 {
		w.log().InfoContext(ctx, "jobs whose lease went stale are due again", "jobs", n)
	}
	if w.Prepared == nil {
		return nil
	}
	switch n, err := w.Prepared.Reconcile(ctx, time.Now().Add(-archiving)); {
	case err != nil:
		w.log().WarnContext(ctx, "the prepared jobs cannot be settled", "worker", w.Name, "error", err)
	case n > 0:
		w.log().InfoContext(ctx, "prepared jobs that a crash left were settled", "jobs", n)
	}
	return nil
}

// archiving is for how long a prepared row is left to whoever prepared it.
const archiving = 15 * time.Minute

// next is the oldest due job whose hosts have room.
func (w *Worker) next(ctx context.Context, flights map[flightKey]flight, seen map[string]time.Time, passed *passedOver) (ports.Job, bool, error) {
	held := w.held(flights)
	if !w.Observe {
		if passed.covers(held, or(w.Poll, poll)) {
			return ports.Job{}, false, nil
		}
		j, ok, err := w.Jobs.Lease(ctx, w.Name, held)
		if err == nil && !ok {
			*passed = passedOver{held, time.Now()}
		}
		return j, ok, err
	}
	due, err := w.Jobs.Due(ctx, observed)
	if err != nil {
		return ports.Job{}, false, err
	}
	for _, j := range due {
		key := fmt.Sprintf("%s %d", j.ID, j.Attempts)
		at, was := seen[key]
		if was && time.Since(at) < or(w.AgainAfter, time.Hour) || inFlight(flights, j) || names(j, held) {
			continue
		}
		seen[key] = time.Now()
		return j, true, nil
	}
	return ports.Job{}, false, nil
}

// passedOver is when nothing was found due that names none of some hosts. To find
// that out costs a look at all that is queued for them, so it is believed for as
// long as an idle queue is, while those hosts and perhaps more are held.
type passedOver struct {
	hosts []string
	at    time.Time
}

func (p passedOver) covers(held []string, last time.Duration) bool {
	if len(p.hosts) == 0 || time.Since(p.at) >= last {
		return false
	}
	for _, host := range p.hosts {
		if !slices.Contains(held, host) {
			return false
		}
	}
	return true
}

// observed is how many due jobs an observer looks at.
const observed = 10000

func inFlight(flights map[flightKey]flight, j ports.Job) bool {
	_, is := flights[flightKey{j.ID, j.Attempts}]
	return is
}

func names(j ports.Job, held []string) bool {
	for _, host := range hostsOf(j) {
		for _, h := range held {
			if h == host {
				return true
			}
		}
	}
	return false
}

// held are the hosts that have as many jobs in flight as they may: a host that
// swallows packets then delays nobody but itself.
func (w *Worker) held(flights map[flightKey]flight) []string {
	count := map[string]int{}
	for _, f := range flights {
		for _, host := range f.hosts {
			count[host]++
		}
	}
	var held []string
	for host, n := range count {
		if n >= w.perHost() {
			held = append(held, host)
		}
	}
	return held
}

// hostsOf are the hosts a job will dial, each once.
func hostsOf(j ports.Job) []string {
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return nil
	}
	var hosts []string
	known := map[string]bool{}
	for _, t := range snapshot.Targets() {
		if t.Outcome != core.OutcomeRemoved && !known[t.Target.Host] {
			known[t.Target.Host] = true
			hosts = append(hosts, t.Target.Host)
		}
	}
	return hosts
}

func (w *Worker) stale() time.Duration { return or(w.Stale, time.Minute) }
func (w *Worker) beat() time.Duration  { return or(w.Beat, 20*time.Second) }

func (w *Worker) atOnce() int {
	if w.AtOnce > 0 {
		return w.AtOnce
	}
	return 32
}

func (w *Worker) perHost() int {
	if w.PerHost > 0 {
		return w.PerHost
	}
	return 4
}

func (w *Worker) log() *slog.Logger {
	if w.Log != nil {
		return w.Log
	}
	return slog.New(slog.DiscardHandler)
}

func or(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
