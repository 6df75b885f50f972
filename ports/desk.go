package ports

import (
	"context"
	"errors"
	"time"

	"github.com/kandev/reclaim/core"
)

// ErrNotFound says that storage has no row of that name.
var ErrNotFound = errors.New("not found")

// ErrRefused is wrapped by the error of a change that the row's state does not
// allow. Its text is for the person who asked.
var ErrRefused = errors.New("refused")

// ErrRemoving is wrapped by the refusal to un-archive a task while a removal of
// its directory has begun and not ended. It wraps ErrRefused.
var ErrRemoving = refusal{"a removal of the task's directory has begun; try again in a moment"}

type refusal struct{ text string }

func (r refusal) Error() string   { return r.text }
func (r refusal) Is(e error) bool { return e == ErrRefused }

// TaskEnds are a task's terminal outcomes and the way back, each through
// prepare, commit and activate.
type TaskEnds interface {
	// Archive archives the tasks, with every task below them where cascade says
	// so (one cascade id then stands in all of them), and returns the ids of the
	// jobs it made, in the order of the tasks. Each task's job is durable before
	// the task changes; from then on BarSession refuses new sessions of it. Where a
	// task is not found or has ended already, nothing changes and the error names
	// every one of them.
	Archive(ctx context.Context, taskIDs []string, cascade bool) (jobIDs []string, err error)
	// Delete is the same for the rows' removal.
	Delete(ctx context.Context, taskIDs []string, cascade bool) (jobIDs []string, err error)
	// Unarchive opens a task again and cancels its archive jobs that have not
	// ended; with cascade also the tasks of the same cascade. ErrRemoving: nothing
	// was changed.
	Unarchive(ctx context.Context, taskID string, cascade bool) error
	// Reconcile settles prepared jobs that a crash left: activated where the task
	// is terminal, cancelled where it is not and the job is older than before.
	// It says how many it settled.
	Reconcile(ctx context.Context, before time.Time) (int, error)
}

// Desk is what people see of jobs and directories, and their levers. The
// changes are refused on a database that is not ours.
type Desk interface {
	// Profiles are the SSH executor profiles, ordered by name.
	Profiles(ctx context.Context) ([]Profile, error)
	// SetReclaim stores the switch of one profile.
	SetReclaim(ctx context.Context, profileID string, on bool) error
	// SetDisposable stores which kinds of build output may go with directories of
	// one profile, as core.WriteDisposable spells them. A word that is no kind
	// refuses the whole setting (ErrRefused) and changes nothing.
	SetDisposable(ctx context.Context, profileID, kinds string) error
	// Jobs lists jobs, newest first, at most limit of them. An empty state means
	// every state.
	Jobs(ctx context.Context, state State, limit int) ([]Job, error)
	Job(ctx context.Context, id string) (Job, error)
	// Retry makes a waiting job due now and a failed one into a new job from the
	// same snapshot; it names the job that is due. Any other state is ErrRefused.
	Retry(ctx context.Context, id string) (string, error)
	// Cancel ends a job that waits. Any other state is ErrRefused, and so is a job
	// with a removal that has begun and not ended.
	Cancel(ctx context.Context, id string) error
	// Kept lists the directories whose latest verdict left them in place, the most
	// recent first.
	Kept(ctx context.Context) ([]Kept, error)
	// JudgeAgain makes a new job from the same snapshot (D29) and names it.
	JudgeAgain(ctx context.Context, jobID string) (string, error)
	// Record and RecordsOf are the kept records, newest first; a host's database
	// has none.
	Record(ctx context.Context, id string) (Filed, error)
	RecordsOf(ctx context.Context, jobID string) ([]Filed, error)
	// Stopped and SetStopped are the stop-all switch, read at every begin.
	Stopped(ctx context.Context) (bool, error)
	SetStopped(ctx context.Context, on bool) error
}

// Profile is one SSH executor profile as it is stored: nothing is trimmed.
type Profile struct {
	ID         string
	Name       string
	Executor   string // the executor's name
	Host       string // ssh_host
	Alias      string // ssh_host_alias
	User       string // ssh_user
	Port       string // ssh_port
	Root       string // ssh_workdir_root, as typed
	Reclaim    string // ssh_reclaim_task_dir, as stored
	Disposable string // ssh_reclaim_disposable, as stored
}

// Kept is one directory that is still there, and why.
type Kept struct {
	Result    core.Result // of the latest attempt; its Record is the record's id, empty when none was kept
	TaskTitle string      // empty when the task's row is gone
	At        time.Time   // when it was last judged
	Judging   string      // the unfinished job that judges it again, empty when there is none
	Begun     bool        // a removal began and was not seen to end
}

// Filed is one record as it was kept.
type Filed struct {
	ID     string
	At     time.Time
	Record core.Record
}
