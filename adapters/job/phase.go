// Package job is the reclamation phase of a cleanup job: the only imperative
// loop between the pure decision in core and the ports. A backend that has its
// own jobs, tables and schema embeds exactly this:
//
//	phase := &job.Phase{Dialer: dialer, Owners: store, Row: store, Policy: rules}
//	report, err := phase.Run(ctx, job.Job{
//		ID: row.ID, TaskID: row.TaskID, Trigger: core.Trigger(row.Trigger), Attempt: row.Attempts,
//		Snapshot: row.ResourceSnapshot, Stops: job.StopsSucceeded, Hook: core.HookNone,
//	})
//	row.ResourceSnapshot = report.Snapshot // outcomes folded in, everything else byte for byte
//	if report.Withdrawn { cancel(row) } else if err != nil { retryOrFail(row, err, job.Final(err), job.Held(err)) }
//
// Run is called once the row is running and the task's sessions are stopped. A
// kept directory is no error: the job succeeds, and the snapshot says why. Final
// errors end the job, held ones are tried again and are no try, the others are
// tried eight times. Example_fakePorts and Example_database are whole programs.
package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Stops says how the stop phase before this one went. The zero value is that
// nobody said, and the phase does not run.
type Stops int

const (
	StopsUnknown Stops = iota
	StopsFailed
	StopsSucceeded
)

// Job is what the host knows of one cleanup job whose row is running.
type Job struct {
	ID       string
	TaskID   string
	Trigger  core.Trigger
	Attempt  int    // the row's attempts, counted by the lease; the token of every write
	Snapshot []byte // the row's resource_snapshot
	Stops    Stops
	Hook     core.Hook // what became of the profile's cleanup script
	Labels   map[string]string
}

// Phase runs the reclamation of jobs. Its fields must not change once Run was
// called; Run may be called from many goroutines.
type Phase struct {
	Dialer ports.Dialer
	Owners ports.Owners
	Policy ports.Policy
	Row    ports.Row

	Records ports.Records // nil keeps no records; the snapshot still holds outcome, reason, cause and detail
	Log     *slog.Logger  // nil is silent

	PerHost int           // targets in flight per host identity, over all jobs; 0 means 4
	Limit   time.Duration // of one attempt at one target; 0 means 15 minutes
	Observe bool          // judge everything, never begin

	// Watch, where set, is told of every attempt when it starts, from as many
	// goroutines as attempts are in flight.
	Watch func(context.Context, core.Snapshot) Watched

	mu    sync.Mutex
	slots map[identity]chan struct{}
}

// Watched hears of one attempt, in the order of what happens. It must return at
// once and changes nothing.
type Watched interface {
	Asked(core.Query)
	Answered(core.Exchange) // not called for an answer that is dropped
	Ended(core.Record)
}

type unwatched struct{}

func (unwatched) Asked(core.Query)       {}
func (unwatched) Answered(core.Exchange) {}
func (unwatched) Ended(core.Record)      {}

// TargetReport is what one attempt at one target came to.
type TargetReport struct {
	Result core.Result
	Record core.Record
	// Attempted is false where the attempt was cut short or never started: no
	// outcome is recorded then.
	Attempted bool
}

// Report is what a run of the phase came to.
type Report struct {
	// Targets in the order of the snapshot; those already removed are left out.
	Targets []TargetReport
	// Snapshot is the job's snapshot with the begins and the outcomes folded in, as
	// the row holds them; every unknown key and everything untouched is as it was,
	// byte for byte.
	Snapshot []byte
	// Withdrawn says that the task was found not terminal any more, or the row in
	// other hands: the job is to be cancelled.
	Withdrawn bool
	// NotRun says, in a sentence, why the phase did nothing at all; empty when it ran.
	NotRun string
}

// TargetError is one target's failure. errors.As finds it in Run's error.
type TargetError struct {
	Target  core.Target
	Failure core.Failed
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("%s:%s: %s: %s", e.Target.Host, e.Target.TaskDir, e.Failure.Fault, e.Failure.Detail)
}

// ErrCutShort is wrapped by the error of a target whose attempt did not come to
// an outcome: the context ended, or the attempt's limit passed.
var ErrCutShort = errors.New("the attempt was cut short")

// Final reports whether retrying err, an error of Run, can change nothing: every
// target that failed did so finally, and nothing else went wrong.
func Final(err error) bool {
	return only(err, func(f core.Failed) bool { return f.Final })
}

// Held reports whether err, an error of Run, says no more than that somebody holds
// the removal for now: stop-all, or a policy's denial that says retry. Such an
// attempt is not one of a job's eight tries.
func Held(err error) bool {
	return only(err, func(f core.Failed) bool { return f.Fault == core.PolicyHeld })
}

// only reports whether err is made of failures of targets and of nothing else, and
// every one of them is such.
func only(err error, such func(core.Failed) bool) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *TargetError:
		return such(e.Failure)
	case interface{ Unwrap() error }:
		return only(e.Unwrap(), such)
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(part error) bool { return !only(part, such) })
	}
	return false
}

const stateWrite = 5 * time.Second // a host gives its own state writes as long, detached from cancellation

// Run attempts every target of the job once. The error joins what failed; each
// part is a *TargetError, wraps ErrCutShort, or is storage's. A skip is no
// error. One target's failure never prevents another's attempt. Nothing is
// begun once ctx has ended.
func (p *Phase) Run(ctx context.Context, j Job) (Report, error) {
	report := Report{Snapshot: j.Snapshot}
	switch {
	case ctx.Err() != nil:
		report.NotRun = "the context had ended before the phase began"
		return report, fmt.Errorf("%w: %w", ErrCutShort, context.Cause(ctx))
	case j.Stops != StopsSucceeded:
		report.NotRun = "the task's sessions were not all stopped"
		return report, nil
	case !j.Trigger.Reclaims():
		report.NotRun = fmt.Sprintf("jobs of the trigger %q never reclaim", j.Trigger)
		return report, nil
	}
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return report, fmt.Errorf("the job's snapshot: %w", err)
	}
	var due []core.Snapshot
	for _, target := range snapshot.Targets() {
		if target.Outcome == core.OutcomeRemoved {
			continue
		}
		due = append(due, core.Snapshot{JobID: j.ID, TaskID: j.TaskID, Trigger: j.Trigger, Attempt: j.Attempt,
			At: time.Now().Unix(), Begun: target.Begun > 0, BegunUntil: target.BegunUntil, Hook: j.Hook, Environment: snapshot.Environment(),
			Target: target.Target, Baseline: target.Baseline, Invalid: target.Invalid, Labels: j.Labels, Window: int64(p.limit() / time.Second)})
	}

	hosts := connections{dialer: p.Dialer, open: map[identity]*connection{}}
	defer hosts.close()
	reports := make([]TargetReport, len(due))
	errs := make([]error, len(due))
	var attempts sync.WaitGroup
	for i, s := range due {
		attempts.Go(func() { reports[i], errs[i] = p.attempt(ctx, s, &hosts) })
	}
	attempts.Wait()

	report.Targets = reports
	for i, r := range reports {
		if begun, is := begin(r.Record.Transcript); is {
			if folded, err := snapshot.WithBegun(begun); err != nil {
				errs[i] = errors.Join(errs[i], fmt.Errorf("folding the begin into the snapshot: %w", err))
			} else {
				snapshot = folded
			}
		}
		if !r.Attempted {
			report.Withdrawn = report.Withdrawn || r.Result.Outcome == core.OutcomeCancelled && errs[i] == nil
			continue
		}
		outcome, err := core.Replay(r.Record.Snapshot, r.Record.Transcript)
		if err != nil {
			continue // reclaimable: observed, nothing to fold
		}
		conclusion := ports.Conclusion{Target: r.Record.Snapshot.Target, Outcome: outcome, Bytes: r.Result.Bytes}
		if folded, err := conclusion.Fold(snapshot); err != nil {
			errs[i] = errors.Join(errs[i], fmt.Errorf("folding the outcome into the snapshot: %w", err))
		} else {
			snapshot = folded
		}
	}
	report.Snapshot = snapshot.Bytes()
	return report, errors.Join(errs...)
}

// begin is the begin that an attempt recorded in the row.
func begin(t core.Transcript) (core.Begin, bool) {
	for _, e := range t {
		q, is := e.Query.(core.Begin)
		if a, _ := e.Answer.(core.Begun); is && a.Ending == core.BeginRecorded {
			return q, true
		}
	}
	return core.Begin{}, false
}

func (p *Phase) limit() time.Duration {
	if p.Limit > 0 {
		return p.Limit
	}
	return core.DefaultWindow * time.Second
}

// attempt is one pass at one target, from an empty transcript to its outcome in
// the row.
func (p *Phase) attempt(ctx context.Context, s core.Snapshot, hosts *connections) (TargetReport, error) {
	slot := p.slot(identityOf(s.Target))
	select {
	case slot <- struct{}{}:
		defer func() { <-slot }()
	case <-ctx.Done():
	}
	started := time.Now()
	bounded, cancel := context.WithTimeoutCause(ctx, p.limit(), errors.New("the attempt's limit passed"))
	defer cancel()
	trips := 0
	var watched Watched = unwatched{}
	if p.Watch != nil {
		watched = p.Watch(ctx, s)
	}
	driver := Driver{Owners: p.Owners, Policy: p.Policy, Row: p.Row, Dry: p.Observe,
		Connect: func(ctx context.Context) (ports.Session, core.NeverRan) {
			trips++
			return hosts.session(ctx, s.Target)
		},
		Asked: func(q core.Query) {
			p.log().DebugContext(ctx, "asking", "task_id", s.TaskID, "question", core.QueryName(q))
			watched.Asked(q)
		},
		Answered: watched.Answered}
	transcript := driver.Run(bounded, s)

	record := core.NewRecord(s, transcript)
	record.Observed = p.Observe
	record.Result.RoundTrips = trips
	record.Result.DurationMS = time.Since(started).Milliseconds()
	watched.Ended(record)
	report := TargetReport{Result: record.Result, Record: record, Attempted: true}
	p.keep(ctx, record)
	detached, done := context.WithTimeout(context.WithoutCancel(ctx), stateWrite)
	defer done()

	switch step := core.Next(s, transcript).(type) {
	case core.Ask:
		report.Attempted = record.Result.Outcome == core.OutcomeReclaimable && p.Observe
		if p.Observe && bounded.Err() == nil {
			return report, nil
		}
		return report, fmt.Errorf("%s:%s: %w before %s: %w", s.Target.Host, s.Target.TaskDir, ErrCutShort, core.QueryName(step.Query), context.Cause(bounded))
	case core.Withdraw:
		report.Attempted = false
		p.tell(ctx, record)
		return report, nil
	case core.Done:
		p.tell(ctx, record)
		var errs []error
		if failed, ok := step.Outcome.(core.Failed); ok {
			errs = append(errs, &TargetError{s.Target, failed})
		}
		if !p.Observe {
			conclusion := ports.Conclusion{JobID: s.JobID, Attempt: s.Attempt, Target: s.Target, Outcome: step.Outcome, Bytes: record.Result.Bytes}
			if err := p.conclude(detached, conclusion); err != nil {
				errs = append(errs, fmt.Errorf("%s:%s: recording the outcome %q: %w", s.Target.Host, s.Target.TaskDir, record.Result.Outcome, err))
			}
		}
		return report, errors.Join(errs...)
	}
	return report, fmt.Errorf("%s:%s: %w", s.Target.Host, s.Target.TaskDir, ErrCutShort)
}

// conclude writes an outcome, and tries again while ctx lasts where storage could
// not: the attempt is over, and to repeat it would not tell what it told.
func (p *Phase) conclude(ctx context.Context, c ports.Conclusion) error {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		err := p.Row.Conclude(ctx, c)
		if err == nil || errors.Is(err, ports.ErrRowLost) {
			return err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return err
		}
	}
}

func (p *Phase) keep(ctx context.Context, record core.Record) {
	if p.Records == nil {
		return
	}
	detached, done := context.WithTimeout(context.WithoutCancel(ctx), stateWrite)
	defer done()
	if err := p.Records.Keep(detached, record); err != nil {
		p.log().WarnContext(ctx, "the record could not be kept", "task_id", record.Snapshot.TaskID, "error", err)
	}
}

// tell writes the one line an operator greps for.
func (p *Phase) tell(ctx context.Context, record core.Record) {
	r := record.Result
	reason, level := string(r.Reason), slog.LevelInfo
	if r.Outcome == core.OutcomeFailed {
		reason, level = string(r.Fault), slog.LevelWarn
	}
	p.log().Log(ctx, level, "reclamation", "task_id", r.TaskID, "host", r.Target.Host, "remote_task_dir", r.Target.TaskDir,
		"outcome", r.Outcome, "reason", reason, "cause", string(r.Cause), "detail", r.Detail, "attempt", r.Attempt,
		"duration", time.Duration(r.DurationMS)*time.Millisecond, "bytes", r.Bytes)
}

func (p *Phase) log() *slog.Logger {
	if p.Log != nil {
		return p.Log
	}
	return slog.New(slog.DiscardHandler)
}

func (p *Phase) slot(id identity) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots == nil {
		p.slots = map[identity]chan struct{}{}
	}
	if p.slots[id] == nil {
		n := p.PerHost
		if n <= 0 {
			n = 4
		}
		p.slots[id] = make(chan struct{}, n)
	}
	return p.slots[id]
}
