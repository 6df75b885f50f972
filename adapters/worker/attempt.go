package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Attempt runs one job that this worker leased to the end of its attempt: it
// keeps the lease, passes through the job and writes how it ended, whoever
// decided that the job is to run now. When ctx ends the job is put down, due at
// once for whoever comes next.
func (w *Worker) Attempt(ctx context.Context, j ports.Job) Ended {
	token := ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: w.Name}
	log := w.log().With("job_id", j.ID, "task_id", j.TaskID, "attempt", j.Attempts)
	held := &lease{trusted: w.stale() * 3 / 4}
	began := time.Now()
	held.renewed.Store(&began)
	leased, lose := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, held))
	// The heart beats on through a shutdown until the job was put down.
	beating, still := context.WithCancel(context.WithoutCancel(ctx))
	heart := make(chan struct{})
	go func() {
		defer close(heart)
		w.keepLease(beating, token, held, lose)
	}()
	end := w.pass(leased, j, token)
	still()
	<-heart
	defer lose(nil)

	ended := Ended{ID: j.ID, TaskID: j.TaskID, Attempts: j.Attempts, Results: []core.Result{}}
	for _, t := range end.report.Targets {
		ended.Results = append(ended.Results, t.Result)
	}
	if cause := context.Cause(leased); errors.Is(cause, errLeaseLost) || errors.Is(cause, errNoBeat) {
		log.WarnContext(ctx, "put down without a word", "reason", cause.Error())
		ended.State = w.fate(ctx, j.TaskID)
		return ended
	}
	w.finish(ctx, j, token, end, &ended, log)
	return ended
}

// passed is one pass through a job.
type passed struct {
	withdrawn bool // the task is not terminal any more
	report    job.Report
	err       error
}

// pass stops the task's sessions, has the phase run, and cleans up after the
// sessions that were stopped. The task is asked for again before each step that
// touches anything.
func (w *Worker) pass(ctx context.Context, j ports.Job, token ports.Token) passed {
	if gone, err := w.unarchived(ctx, j.TaskID); gone || err != nil {
		return passed{withdrawn: gone, err: err}
	}
	stopped, stopErr := w.Stops.Stop(ctx, j, token)
	if ctx.Err() != nil {
		return passed{err: errors.Join(stopErr, cutShort(ctx))}
	}
	if gone, err := w.unarchived(ctx, j.TaskID); gone || err != nil {
		return passed{withdrawn: gone, err: errors.Join(stopErr, err)}
	}
	if stopErr == nil && stopped.Stops != job.StopsSucceeded {
		stopErr = errors.New("the task's sessions were not all stopped")
	}
	report, phaseErr := w.Phase.Run(ctx, phaseJob(j, stopped))
	if report.Withdrawn || ctx.Err() != nil {
		return passed{withdrawn: report.Withdrawn, report: report, err: errors.Join(stopErr, phaseErr, cutShort(ctx))}
	}
	var cleanErr error
	if len(stopped.Sessions) > 0 {
		if cleanErr = w.Sessions.Forget(ctx, j.TaskID, stopped.Sessions); cleanErr != nil {
			cleanErr = fmt.Errorf("forgetting the stopped sessions: %w", cleanErr)
		}
	}
	return passed{report: report, err: errors.Join(stopErr, phaseErr, cleanErr)}
}

func phaseJob(j ports.Job, stopped Stopped) job.Job {
	return job.Job{ID: j.ID, TaskID: j.TaskID, Trigger: j.Trigger, Attempt: j.Attempts, Snapshot: j.Snapshot,
		Stops: stopped.Stops, Hook: stopped.Hook}
}

// unarchived reports whether the task is not terminal any more.
func (w *Worker) unarchived(ctx context.Context, taskID string) (bool, error) {
	terminal, err := w.Tasks.Terminal(ctx, taskID)
	if err != nil {
		return false, fmt.Errorf("whether the task is still archived or deleted cannot be told: %w", err)
	}
	return !terminal, nil
}

func cutShort(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", job.ErrCutShort, context.Cause(ctx))
}

// finish writes how the attempt ended for its job, and says the state the row
// is in then, as far as it is known: a row that could not be written stays
// running until its lease is stale.
func (w *Worker) finish(ctx context.Context, j ports.Job, token ports.Token, end passed, ended *Ended, log *slog.Logger) {
	if end.withdrawn {
		log.InfoContext(ctx, "cancelled: the task is not archived or deleted any more")
		ended.State = w.write(ctx, j, log, ports.Cancelled, func(ctx context.Context) error { return w.Jobs.Cancel(ctx, token) })
		return
	}
	ending := ports.Ending{State: ports.Succeeded}
	if end.err != nil {
		ending = ports.Ending{State: ports.JobFailed, Error: lastError(end.err)}
		tries, held := token.Attempt, 1
		if snapshot, err := core.ParseJobSnapshot(j.Snapshot); err == nil {
			tries, held = snapshot.Tries(token.Attempt), snapshot.Uncounted()+1
		}
		delay, again := core.RetryAfter(tries)
		switch {
		case ctx.Err() != nil: // a shutdown is not the job's failure: due at once for whoever comes next
			ending.State, ending.Uncounted = ports.RetryWait, true
		case job.Held(end.err): // neither is what an operator holds
			ending.State, ending.Uncounted, ending.Delay = ports.RetryWait, true, core.HoldAfter(held)
		case again && !job.Final(end.err):
			ending.State, ending.Delay = ports.RetryWait, delay
		}
	}
	ended.State = w.write(ctx, j, log, ending.State, func(ctx context.Context) error { return w.Jobs.Finish(ctx, token, ending) })
	ended.Delay, ended.Error = ending.Delay, ending.Error
	level := slog.LevelInfo
	if end.err != nil {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "job attempted", "state", string(ended.State), "delay", ending.Delay, "error", ending.Error)
}

// fate is the state of a row that is in other hands: cancelled by an un-archive,
// or running for another worker.
func (w *Worker) fate(ctx context.Context, taskID string) ports.State {
	detached, done := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer done()
	if gone, err := w.unarchived(detached, taskID); gone && err == nil {
		return ports.Cancelled
	}
	return ports.Running
}

// write makes one end durable, also during a shutdown, and tries again while a
// store that fails may recover.
func (w *Worker) write(ctx context.Context, j ports.Job, log *slog.Logger, state ports.State, put func(context.Context) error) ports.State {
	detached, done := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer done()
	pause := 100 * time.Millisecond
	for {
		err := put(detached)
		if err == nil {
			return state
		}
		if errors.Is(err, ports.ErrRowLost) {
			log.WarnContext(ctx, "put down without a word", "reason", errLeaseLost.Error())
			return w.fate(ctx, j.TaskID)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-detached.Done():
			timer.Stop()
			log.ErrorContext(ctx, "the job's end could not be written; it is attempted again when its lease is stale", "error", err)
			return ports.Running
		}
	}
}

// keepLease renews the lease until ctx ends. It gives the lease up when the row
// says so, and when it could not be renewed for so long that another worker may
// soon take it.
func (w *Worker) keepLease(ctx context.Context, token ports.Token, held *lease, lose context.CancelCauseFunc) {
	trusted := held.trusted // how long a renewal is relied on, from before it was sent
	renewed := *held.renewed.Load()
	pause := w.beat()
	for {
		timer := time.NewTimer(min(pause, time.Until(renewed.Add(trusted))))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		sent := time.Now()
		bounded, done := context.WithDeadline(ctx, renewed.Add(trusted))
		err := w.Jobs.Beat(bounded, token)
		done()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			renewed, pause = sent, w.beat()
			held.renewed.Store(&sent)
		case errors.Is(err, ports.ErrRowLost):
			lose(errLeaseLost)
			return
		case time.Since(renewed) >= trusted:
			lose(fmt.Errorf("%w: %w", errNoBeat, err))
			return
		default:
			pause = w.beat() / 8
		}
	}
}

// observe judges a job as it stands and writes nothing.
func (w *Worker) observe(ctx context.Context, j ports.Job) Ended {
	ended := Ended{ID: j.ID, TaskID: j.TaskID, State: j.State, Attempts: j.Attempts, Results: []core.Result{}}
	log := w.log().With("job_id", j.ID, "task_id", j.TaskID, "attempt", j.Attempts+1)
	if gone, err := w.unarchived(ctx, j.TaskID); gone || err != nil {
		log.InfoContext(ctx, "observed: nothing to judge", "withdrawn", gone, "error", err)
		return ended
	}
	looked, err := w.Stops.Look(ctx, j)
	if err != nil {
		log.WarnContext(ctx, "observed: the task's sessions cannot be read", "error", err)
		return ended
	}
	next := phaseJob(j, looked)
	next.Attempt++
	report, err := w.Phase.Run(ctx, next)
	for _, t := range report.Targets {
		r := undecided(t.Result, looked.First)
		ended.Results = append(ended.Results, r)
		log.InfoContext(ctx, "observed", "host", r.Target.Host, "remote_task_dir", r.Target.TaskDir,
			"outcome", r.Outcome, "reason", cmp.Or(string(r.Reason), string(r.Fault)), "cause", string(r.Cause), "detail", r.Detail)
	}
	if err != nil {
		log.WarnContext(ctx, "observed", "error", err)
	}
	return ended
}

// undecided is what an observer may say of a directory where an attempt would do
// something first: what was found only because that has not been done is no
// verdict.
func undecided(r core.Result, first []string) core.Result {
	if len(first) == 0 || r.Outcome == core.OutcomeFailed {
		return r
	}
	would := "an attempt would first " + strings.Join(first, ", then ") + ", then look again"
	if r.Cause == core.LiveProcess || r.Cause == core.HookNotRun {
		r.Outcome, r.Reason, r.Cause, r.Detail, r.Others, r.Cure = core.OutcomeCancelled, "", "", "not decided: "+would, nil, []core.Remedy{}
	} else {
		r.Detail += "; " + would
	}
	return r
}

// lastError is an attempt's error as the row keeps it: bounded, on lines of its
// own for each target.
func lastError(err error) string {
	const most = 4096
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " [...]"
	}
	return text
}
