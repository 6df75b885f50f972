package web

import (
	"context"
	"errors"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// ErrNotFound says that storage has no row of that name. ErrRefused is wrapped
// by the error of a change that the row's state does not allow; its text is for
// the person who asked.
var (
	ErrNotFound = errors.New("not found")
	ErrRefused  = errors.New("refused")
)

// Store is what the console reads and steers.
type Store interface {
	Profiles
	Jobs
	Directories
	Records
	StopAll
}

// Profiles are the SSH executor profiles, ordered by name.
type Profiles interface {
	Profiles(ctx context.Context) ([]Profile, error)
	// SetReclaim stores the switch of one profile.
	SetReclaim(ctx context.Context, id string, on bool) error
}

// Jobs is the queue as people see it.
type Jobs interface {
	// Jobs lists jobs, newest first, at most limit of them. An empty state means
	// every state.
	Jobs(ctx context.Context, state ports.State, limit int) ([]ports.Job, error)
	Job(ctx context.Context, id string) (ports.Job, error)
	// Retry makes a failed or waiting job due now; Cancel ends one that does not
	// run. A job in another state is ErrRefused.
	Retry(ctx context.Context, id string) error
	Cancel(ctx context.Context, id string) error
}

// Directories is what became of every directory a job ever named.
type Directories interface {
	// Kept lists the directories whose latest verdict left them in place, largest
	// first.
	Kept(ctx context.Context) ([]Kept, error)
	// JudgeAgain makes a new job from the same snapshot (D29) and names it.
	JudgeAgain(ctx context.Context, jobID string) (string, error)
	// Hosts tells every host a job ever named.
	Hosts(ctx context.Context) ([]Host, error)
}

// Records keeps what attempts were decided from.
type Records interface {
	Record(ctx context.Context, id string) (Filed, error)
	// RecordsOf lists the records of one job, newest first.
	RecordsOf(ctx context.Context, jobID string) ([]Filed, error)
}

// StopAll is the switch that every removal reads before it begins.
type StopAll interface {
	Stopped(ctx context.Context) (bool, error)
	SetStopped(ctx context.Context, on bool) error
}

// Kept is one directory that is still there, and why.
type Kept struct {
	Result    core.Result // of the latest attempt; its Record is the record's id, empty when none was kept
	TaskTitle string      // empty when the task's row is gone
	At        time.Time   // when it was last judged
	Judging   string      // the unfinished job that judges it again, empty when there is none
}

// Filed is one record as it was kept.
type Filed struct {
	ID     string
	At     time.Time
	Record core.Record
}

// Host is one machine, over all its targets.
type Host struct {
	Name      string
	Targets   int
	Removed   int
	Kept      int
	Freed     int64 // bytes removed
	Held      int64 // bytes of what was kept, as last seen
	Leftovers []Leftover
	Fault     core.Fault // the latest, empty when the latest attempt had none
	FaultSays string
	FaultAt   time.Time
}

// Leftover is a removal that began and has not been seen to end.
type Leftover struct {
	JobID   string
	TaskDir string
	Since   time.Time
}
