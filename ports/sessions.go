package ports

import (
	"context"

	"github.com/kandev/reclaim/core"
)

// Tasks answers the un-archive checks of a job.
type Tasks interface {
	// Terminal reports whether the task is archived or its row is gone.
	Terminal(ctx context.Context, taskID string) (bool, error)
}

// Sessions are the executors_running rows of tasks, as the stop phase and the
// rest of a task's cleanup need them.
type Sessions interface {
	// Sessions lists the task's rows, the most recently updated first.
	Sessions(ctx context.Context, taskID string) ([]core.Running, error)
	// MarkStopped gives the session's row the status stopped, once nothing of
	// it runs any more. A row that is gone is no error.
	MarkStopped(ctx context.Context, sessionID string) error
	// Forget deletes the rows of those sessions of the task, whose directory is
	// then nobody's by them. Rows that are gone are no error.
	Forget(ctx context.Context, taskID string, sessionIDs []string) error
}
