package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Begin implements ports.Row.
func (r *Rows) Begin(ctx context.Context, query core.Begin) core.Begun {
	begun := core.Begun{Ending: core.BeginRecorded}
	err := r.in(ctx, func(tx *sql.Tx) error {
		return r.edit(ctx, tx, query.JobID, query.Attempt, func(snapshot core.JobSnapshot, taskID string) (core.JobSnapshot, error) {
			// An un-archive changes the task before it looks for jobs to cancel.
			terminal, err := r.terminal(ctx, tx, query.TaskID)
			switch {
			case err != nil:
				return snapshot, err
			case taskID != query.TaskID:
				return snapshot, fmt.Errorf("%w: it is another task's", ports.ErrRowLost)
			case !terminal:
				return snapshot, fmt.Errorf("%w: the task is not archived or deleted any more", ports.ErrRowLost)
			}
			if on, err := r.stopped(ctx, tx); err != nil {
				return snapshot, fmt.Errorf("the stop-all switch cannot be read: %w", err)
			} else if on {
				return snapshot, errHalted
			}
			return snapshot.WithBegun(query)
		})
	})
	switch {
	case err == nil:
	case errors.Is(err, ports.ErrRowLost):
		begun = core.Begun{Ending: core.BeginWithdrawn, Detail: err.Error()}
	case errors.Is(err, errHalted):
		begun = core.Begun{Ending: core.BeginHalted, Detail: "removals are stopped for this installation"}
	default:
		begun = core.Begun{Ending: core.BeginFailed, Detail: err.Error()}
	}
	return begun
}

var errHalted = errors.New("the stop-all switch is on")

// Conclude implements ports.Row.
func (r *Rows) Conclude(ctx context.Context, c ports.Conclusion) error {
	return r.in(ctx, func(tx *sql.Tx) error {
		return r.edit(ctx, tx, c.JobID, c.Attempt, func(snapshot core.JobSnapshot, _ string) (core.JobSnapshot, error) {
			return c.Fold(snapshot)
		})
	})
}

// edit rewrites the snapshot of a job that is running the given attempt, in one
// transaction. The first statement takes the row: on SQLite that is the
// database's one writer's place, on PostgreSQL the row's lock, so that nothing
// changes between reading and writing whatever the transaction's mode.
func (r *Rows) edit(ctx context.Context, tx *sql.Tx, jobID string, attempt int, change func(core.JobSnapshot, string) (core.JobSnapshot, error)) error {
	const held = ` WHERE id = ? AND state = 'running' AND attempts = ?`
	n, err := r.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET attempts = attempts`+held, jobID, attempt)
	if err != nil {
		return err
	}
	if n != 1 {
		return ports.ErrRowLost
	}
	var raw []byte
	var taskID string
	if err := r.row(ctx, tx, `SELECT COALESCE(resource_snapshot, ''), task_id FROM task_resource_cleanup_jobs WHERE id = ?`, jobID).Scan(&raw, &taskID); err != nil {
		return err
	}
	snapshot, err := core.ParseJobSnapshot(raw)
	if err != nil {
		return err
	}
	if snapshot, err = change(snapshot, taskID); err != nil {
		return err
	}
	now, err := r.now(ctx, tx)
	if err != nil {
		return err
	}
	n, err = r.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET resource_snapshot = ?, updated_at = ?`+held,
		string(snapshot.Bytes()), r.at(now), jobID, attempt)
	if err == nil && n != 1 {
		err = ports.ErrRowLost
	}
	return err
}

// stopped reads the stop-all switch. A host's database has none.
func (r *Rows) stopped(ctx context.Context, q queryer) (bool, error) {
	if !r.ours {
		return false, nil
	}
	on := 0
	err := r.row(ctx, q, `SELECT is_on FROM reclaim_switches WHERE name = 'stop-all'`).Scan(&on)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return on != 0, err
}
