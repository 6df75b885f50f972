package ports

import (
	"context"
	"errors"
	"time"

	"github.com/kandev/reclaim/core"
)

// Owners answers who owns a directory now. It never fails silently: what could
// not be looked up is an Ownership with an Error.
type Owners interface {
	// Owner selects a superset of what can matter for the target (bounded;
	// more than the bound is an Error) and lets core decide. Its cost does not
	// grow with the number of tasks in storage.
	Owner(ctx context.Context, query core.Owner) core.Ownership
}

// Row is the durable job row as the phase writes it. Every write is a
// compare-and-set on "running, attempt N", the same row an un-archive changes.
type Row interface {
	// Begin makes the intent durable in the row's snapshot. Anything but
	// BeginRecorded means nothing may be touched: BeginWithdrawn when the row no
	// longer is this attempt's, BeginHalted while the stop-all switch is on,
	// BeginFailed when storage could not say.
	Begin(ctx context.Context, query core.Begin) core.Begun
	// Conclude folds one target's outcome into the row's snapshot. ErrRowLost
	// says that the row no longer is this attempt's.
	Conclude(ctx context.Context, c Conclusion) error
}

// Conclusion is one target's outcome on its way into the row.
type Conclusion struct {
	JobID   string
	Attempt int
	Target  core.Target
	Outcome core.Outcome
	Bytes   int64 // of the directory, as the attempt found it; 0: not known
}

// Fold writes the conclusion into the row's snapshot.
func (c Conclusion) Fold(snapshot core.JobSnapshot) (core.JobSnapshot, error) {
	folded, err := snapshot.WithOutcome(c.Target, c.Outcome)
	if err != nil || c.Bytes <= 0 {
		return folded, err
	}
	return folded.WithSize(c.Target, c.Bytes)
}

// ErrRowLost says that a compare-and-set found the row in other hands.
var ErrRowLost = errors.New("the job row is no longer this attempt's")

// Records keeps what an attempt was decided from. An embedding host may leave
// it out.
type Records interface {
	Keep(ctx context.Context, record core.Record) error
}

// State is a job row's state. The list is the host's; an unknown state is never
// leased.
type State string

const (
	Prepared  State = "prepared"
	Pending   State = "pending"
	Running   State = "running"
	RetryWait State = "retry_wait"
	Succeeded State = "succeeded"
	JobFailed State = "failed"
	Cancelled State = "cancelled"
)

// Job is one cleanup job's row.
type Job struct {
	ID, OperationID, TaskID string
	Trigger                 core.Trigger
	State                   State
	Snapshot                []byte // resource_snapshot, byte for byte
	Attempts                int    // counts leases; the running attempt's token. core.JobSnapshot.Tries says how many were tries
	NextAttemptAt           time.Time
	LastError               string
	CreatedAt, UpdatedAt    time.Time
	CompletedAt             time.Time // zero until the job ended
}

// Counted splits the job's attempts into tries, of which it has eight, and those
// that were none: held, or cut short by a shutdown.
func (j Job) Counted() (tries, others int) {
	if snapshot, err := core.ParseJobSnapshot(j.Snapshot); err == nil {
		others = min(snapshot.Uncounted(), j.Attempts)
	}
	return j.Attempts - others, others
}

// Jobs is what the stand-alone worker needs from the queue. Every method that
// takes a token acts only on a row that is running that attempt, and says
// ErrRowLost otherwise.
type Jobs interface {
	// Lease takes the oldest due job (pending, or retry_wait whose time has
	// come) of a trigger in core's list whose task has no other running job,
	// counts its attempt and makes it running. ok is false when none is due.
	// hold names hosts (Target.Host) not to be started now; jobs whose targets
	// name one of them are passed over.
	Lease(ctx context.Context, worker string, hold []string) (job Job, ok bool, err error)
	// Beat renews the lease, in database time.
	Beat(ctx context.Context, token Token) error
	// Recover makes running jobs whose lease went stale due again, attempts
	// unchanged, and says how many. One whose snapshot is held (core) was no try.
	Recover(ctx context.Context, stale time.Duration) (int, error)
	// Finish ends the attempt: succeeded (last_error cleared), failed, or
	// retry_wait after the given delay, in database time.
	Finish(ctx context.Context, token Token, end Ending) error
	// Cancel ends a job that was un-archived meanwhile.
	Cancel(ctx context.Context, token Token) error
	// Hooked folds the ending of one session's cleanup script into the row's
	// snapshot, under the target whose directory it ran in.
	Hooked(ctx context.Context, token Token, target core.Target, hook core.SessionHook) error
	// Due lists the jobs Lease would take now, oldest first, at most limit of
	// them, and takes none: for judging without touching anything.
	Due(ctx context.Context, limit int) ([]Job, error)
}

// Token is a worker's hold on one attempt.
type Token struct {
	JobID   string
	Attempt int
	Worker  string
}

// Ending is how an attempt ends for its job.
type Ending struct {
	State State // Succeeded, JobFailed or RetryWait
	// Uncounted says that the attempt was no try of the job's: it is noted in the
	// row's snapshot, in the same write that ends the attempt.
	Uncounted bool
	Delay     time.Duration
	Error     string
}
