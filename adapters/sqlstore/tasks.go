package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Archive implements ports.TaskEnds.
func (s *Store) Archive(ctx context.Context, taskIDs []string, cascade bool) ([]string, error) {
	return s.terminate(ctx, taskIDs, ending{trigger: core.Archive, whole: core.CascadeArchive, commit: s.archive}, cascade)
}

// Delete implements ports.TaskEnds.
func (s *Store) Delete(ctx context.Context, taskIDs []string, cascade bool) ([]string, error) {
	return s.terminate(ctx, taskIDs, ending{trigger: core.Delete, whole: core.CascadeDelete, commit: s.delete}, cascade)
}

// ending is one way a task ends.
type ending struct {
	trigger, whole core.Trigger // whole: with every task below it
	commit         func(ctx context.Context, taskID, jobID, cascadeID string, with []string) error
}

// terminate prepares every task before it changes any: one that cannot be
// prepared leaves them all as they were.
func (s *Store) terminate(ctx context.Context, taskIDs []string, how ending, cascade bool) (jobIDs []string, err error) {
	trigger, cascadeID := how.trigger, ""
	if cascade {
		trigger, cascadeID = how.whole, uuid.NewString()
		if taskIDs, err = s.trees(ctx, taskIDs); err != nil {
			return nil, err
		}
	}
	if taskIDs, err = s.endable(ctx, taskIDs, trigger); err != nil {
		return nil, err
	}
	var prepared []string
	for _, task := range taskIDs {
		id, err := s.prepare(ctx, task, trigger, cascadeID)
		if id != "" {
			prepared = append(prepared, id)
		}
		if err != nil {
			err = fmt.Errorf("task %.200q: %w", task, err)
			return nil, errors.Join(err, s.abandon(ctx, prepared))
		}
	}
	for i, task := range taskIDs {
		err := how.commit(ctx, task, prepared[i], cascadeID, taskIDs)
		if err != nil {
			err = s.reconsider(ctx, prepared[i], task, trigger, err)
		}
		if err != nil {
			err = fmt.Errorf("task %.200q: %w", task, err)
			return prepared[:i], errors.Join(err, s.abandon(ctx, prepared[i+1:]))
		}
		if err := s.activate(ctx, prepared[i]); err != nil {
			return prepared[:i], errors.Join(fmt.Errorf("task %.200q has ended, its job waits for the worker's start: %w", task, err), s.abandon(ctx, prepared[i+1:]))
		}
	}
	return prepared, nil
}

// endable is the tasks, each once, where every one of them may end so: nothing is
// written where one is only spelled wrong. The error names every one that may not.
func (s *Store) endable(ctx context.Context, taskIDs []string, trigger core.Trigger) ([]string, error) {
	archived := map[string]bool{}
	for part := range slices.Chunk(taskIDs, 500) {
		err := s.each(ctx, s.db, `SELECT id, archived_at IS NOT NULL FROM tasks WHERE id IN (`+marks(len(part))+`)`, anys(part), func(scan func(...any) error) error {
			var id string
			var is bool
			err := scan(&id, &is)
			archived[id] = is
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("the tasks: %w", err)
		}
	}
	var once []string
	var wrong []error
	seen := map[string]bool{}
	for _, task := range taskIDs {
		if seen[task] {
			continue
		}
		seen[task] = true
		once = append(once, task)
		switch is, there := archived[task]; {
		case !there:
			wrong = append(wrong, fmt.Errorf("the task %.200q: %w", task, ports.ErrNotFound))
		case is && !trigger.Deletes():
			wrong = append(wrong, fmt.Errorf("task %.200q: %w: it is archived already", task, ports.ErrRefused))
		}
	}
	return once, errors.Join(wrong...)
}

// trees adds every task below the given ones that has not ended the same way,
// each parent before its children, each task once.
func (s *Store) trees(ctx context.Context, taskIDs []string) ([]string, error) {
	seen := map[string]bool{}
	var all []string
	for next := taskIDs; len(next) > 0; {
		var fresh []string
		for _, id := range next {
			if !seen[id] {
				seen[id] = true
				fresh = append(fresh, id)
			}
		}
		all, next = append(all, fresh...), nil
		for part := range slices.Chunk(fresh, 500) {
			children, err := column[string](ctx, s.Rows, s.db, `SELECT id FROM tasks WHERE parent_id IN (`+marks(len(part))+`) AND archived_at IS NULL ORDER BY created_at, id`, anys(part)...)
			if err != nil {
				return nil, fmt.Errorf("the tasks below: %w", err)
			}
			next = append(next, children...)
		}
	}
	return all, nil
}

// prepare makes the job's row, which bars new sessions of the task, and then
// takes the inventory. The id is empty when nothing was made.
func (s *Store) prepare(ctx context.Context, task string, trigger core.Trigger, cascadeID string) (id string, err error) {
	id = uuid.NewString()
	operation := string(trigger) + ":" + task + ":" + id
	if cascadeID != "" {
		operation = string(trigger) + ":" + cascadeID + ":" + task
	}
	err = s.in(ctx, func(tx *sql.Tx) error {
		archived, err := s.hold(ctx, tx, task)
		if err != nil {
			return err
		}
		if archived && !trigger.Deletes() {
			return fmt.Errorf("%w: it is archived already", ports.ErrRefused)
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		_, err = s.changed(ctx, tx, `INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, created_at, updated_at)
			VALUES (?, ?, ?, ?, 'prepared', ?, ?) ON CONFLICT (operation_id) DO NOTHING`, id, operation, task, string(trigger), s.at(now), s.at(now))
		if err != nil {
			return err
		}
		return s.row(ctx, tx, `SELECT id FROM task_resource_cleanup_jobs WHERE operation_id = ?`, operation).Scan(&id)
	})
	if err != nil {
		return "", err
	}
	return id, s.in(ctx, func(tx *sql.Tx) error {
		if _, err := s.hold(ctx, tx, task); err != nil {
			return err
		}
		snapshot, err := s.capture(ctx, tx, task, trigger)
		if err != nil {
			return err
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		n, err := s.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET resource_snapshot = ?, updated_at = ? WHERE operation_id = ? AND state = 'prepared'`,
			string(snapshot), s.at(now), operation)
		if err == nil && n != 1 {
			err = fmt.Errorf("%w: its cleanup job was changed meanwhile", ports.ErrRefused)
		}
		return err
	})
}

// hold takes the task's row until the transaction ends and says whether the
// task is archived. ErrNotFound says that there is none.
func (s *Store) hold(ctx context.Context, tx *sql.Tx, task string) (archived bool, err error) {
	n, err := s.changed(ctx, tx, `UPDATE tasks SET updated_at = updated_at WHERE id = ?`, task)
	if err == nil && n != 1 {
		err = fmt.Errorf("the task %.200q: %w", task, ports.ErrNotFound)
	}
	if err != nil {
		return false, err
	}
	return s.terminal(ctx, tx, task)
}

// capture takes the inventory of a task.
func (s *Store) capture(ctx context.Context, tx *sql.Tx, task string, trigger core.Trigger) ([]byte, error) {
	c := core.Captured{Deletes: trigger.Deletes()}
	err := s.each(ctx, tx, `SELECT r.session_id, COALESCE(r.agent_execution_id, ''), COALESCE(r.execution_profile_id, ''), COALESCE(r.metadata, ''), COALESCE(e.state, '')
		FROM executors_running r LEFT JOIN task_sessions e ON e.id = r.session_id WHERE r.task_id = ? ORDER BY r.updated_at DESC, r.id`,
		[]any{task}, func(scan func(...any) error) error {
			var session, execution, profile, state string
			var metadata []byte
			if err := scan(&session, &execution, &profile, &metadata, &state); err != nil {
				return err
			}
			launch, err := core.ParseLaunch(metadata)
			if err != nil {
				c.Unreadable++
			}
			if profile != "" {
				launch.Profile = profile
			}
			launch.SessionID, launch.ExecutionID = session, execution
			launch.Ended = slices.Contains([]string{"COMPLETED", "FAILED", "CANCELLED", "IDLE"}, state)
			c.Launches = append(c.Launches, launch)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("the task's launches: %w", err)
	}
	var e core.CapturedEnvironment
	var created, updated stamp
	err = s.row(ctx, tx, `SELECT id, task_id, executor_type, COALESCE(executor_id, ''), COALESCE(executor_profile_id, ''), status,
		COALESCE(workspace_path, ''), COALESCE(task_dir_name, ''), created_at, updated_at
		FROM task_environments WHERE task_id = ? ORDER BY created_at DESC, id DESC LIMIT 1`, task).
		Scan(&e.ID, &e.TaskID, &e.ExecutorType, &e.ExecutorID, &e.ExecutorProfileID, &e.Status, &e.WorkspacePath, &e.TaskDirName, &created, &updated)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return nil, fmt.Errorf("the task's environment: %w", err)
	default:
		e.CreatedAt, e.UpdatedAt = created.Format(time.RFC3339Nano), updated.Format(time.RFC3339Nano)
		c.Environment = &e
		executor, err := s.config(ctx, tx, "executors", e.ExecutorID)
		if err != nil {
			return nil, err
		}
		profile, err := s.config(ctx, tx, "executor_profiles", e.ExecutorProfileID)
		if err != nil {
			return nil, err
		}
		c.Fallback = core.ExecutorTarget(executor, profile)
	}
	return core.Capture(c)
}

// Foreseen is the snapshot that archiving the task now would make. Nothing is
// written. ports.ErrNotFound: there is no such task, or it is archived already.
func (s *Store) Foreseen(ctx context.Context, task string) (snapshot []byte, err error) {
	terminal, err := s.Terminal(ctx, task)
	if err != nil {
		return nil, err
	}
	if terminal {
		return nil, fmt.Errorf("an open task %.200q: %w", task, ports.ErrNotFound)
	}
	err = s.in(ctx, func(tx *sql.Tx) error {
		snapshot, err = s.capture(ctx, tx, task, core.Archive)
		return err
	})
	return snapshot, err
}

func (r *Rows) config(ctx context.Context, q queryer, table, id string) (config []byte, err error) {
	err = r.row(ctx, q, `SELECT COALESCE(config, '') FROM `+table+` WHERE id = ?`, id).Scan(&config)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return config, err
}

func (s *Store) archive(ctx context.Context, task, job, cascadeID string, _ []string) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		switch _, err := s.hold(ctx, tx, task); {
		case errors.Is(err, ports.ErrNotFound):
			return fmt.Errorf("%w: it is gone", ports.ErrRefused)
		case err != nil:
			return err
		}
		if err := s.stillPrepared(ctx, tx, job); err != nil {
			return err
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		n, err := s.changed(ctx, tx, `UPDATE tasks SET archived_at = ?, archived_by_cascade_id = ?, updated_at = ? WHERE id = ? AND archived_at IS NULL`,
			s.at(now), cascadeID, s.at(now), task)
		if err == nil && n != 1 {
			err = fmt.Errorf("%w: it is archived already, or gone", ports.ErrRefused)
		}
		if err == nil {
			err = s.cancelSessions(ctx, tx, task, now)
		}
		return err
	})
}

// stillPrepared takes the row of a prepared job until the transaction ends.
// ErrRefused: whoever settles what a crash left has taken it for that; a task must
// not end without a job.
func (s *Store) stillPrepared(ctx context.Context, tx *sql.Tx, job string) error {
	n, err := s.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET attempts = attempts WHERE id = ? AND state = 'prepared'`, job)
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: its cleanup job was cancelled meanwhile; try again", ports.ErrRefused)
	}
	return err
}

func (s *Store) cancelSessions(ctx context.Context, tx *sql.Tx, task string, now time.Time) error {
	_, err := s.changed(ctx, tx, `UPDATE task_sessions SET state = 'CANCELLED', completed_at = ?, updated_at = ?
		WHERE task_id = ? AND state IN ('CREATED', 'STARTING', 'RUNNING', 'WAITING_FOR_INPUT')`, s.at(now), s.at(now), task)
	return err
}

// delete removes the task's rows. An environment that a session of a surviving
// task runs in goes to that task first.
func (s *Store) delete(ctx context.Context, task, job, _ string, with []string) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		if _, err := s.hold(ctx, tx, task); err != nil {
			return err
		}
		if err := s.stillPrepared(ctx, tx, job); err != nil {
			return err
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		heirs := map[string]string{}
		err = s.each(ctx, tx, `SELECT e.id, b.task_id FROM task_environments e JOIN task_sessions b ON b.task_environment_id = e.id
			JOIN tasks t ON t.id = b.task_id WHERE e.task_id = ? AND b.task_id <> ? AND t.archived_at IS NULL ORDER BY b.started_at DESC, b.id`,
			[]any{task, task}, func(scan func(...any) error) error {
				var environment, heir string
				err := scan(&environment, &heir)
				if err == nil && !slices.Contains(with, heir) {
					heirs[environment] = heir
				}
				return err
			})
		if err != nil {
			return fmt.Errorf("who borrows the environment: %w", err)
		}
		for environment, heir := range heirs {
			if _, err := s.changed(ctx, tx, `UPDATE task_environments SET task_id = ?, updated_at = ? WHERE id = ? AND task_id = ?`, heir, s.at(now), environment, task); err != nil {
				return err
			}
		}
		for _, statement := range []string{`DELETE FROM task_sessions WHERE task_id = ?`, `DELETE FROM task_environments WHERE task_id = ?`, `DELETE FROM tasks WHERE id = ?`} {
			if _, err := s.changed(ctx, tx, statement, task); err != nil {
				return err
			}
		}
		return nil
	})
}

// unknownOutcome is the host's marker in last_error of a prepared row.
const unknownOutcome = "task mutation outcome requires reconciliation"

// stateWrite is how long a state write may take, detached from cancellation, as
// in a host.
const stateWrite = 5 * time.Second

func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), stateWrite)
}

// reconsider looks whether a task's change that errored was made after all. Nil
// says that it was; otherwise the job is cancelled, or marked where nobody can
// tell.
func (s *Store) reconsider(ctx context.Context, job, task string, trigger core.Trigger, failure error) error {
	detachedCtx, done := detached(ctx)
	defer done()
	committed, err := s.committed(detachedCtx, s.db, task, trigger)
	switch {
	case err != nil:
		now := time.Now()
		_, markErr := s.changed(detachedCtx, s.db, `UPDATE task_resource_cleanup_jobs SET last_error = ?, updated_at = ? WHERE id = ? AND state = 'prepared'`, unknownOutcome, s.at(now), job)
		return errors.Join(failure, err, markErr)
	case committed && !errors.Is(failure, ports.ErrRefused):
		return nil
	}
	return errors.Join(failure, s.abandon(detachedCtx, []string{job}))
}

// committed reports whether the task has ended the way the trigger says.
func (s *Store) committed(ctx context.Context, q queryer, task string, trigger core.Trigger) (bool, error) {
	var archived bool
	err := s.row(ctx, q, `SELECT archived_at IS NOT NULL FROM tasks WHERE id = ?`, task).Scan(&archived)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return archived && !trigger.Deletes(), err
}

// activate hands a prepared job to the worker, trying again for five seconds.
func (s *Store) activate(ctx context.Context, job string) error {
	detachedCtx, done := detached(ctx)
	defer done()
	for {
		err := s.move(detachedCtx, s.db, job, `state = 'pending', last_error = ''`, "prepared")
		if errors.Is(err, ports.ErrRowLost) {
			// A worker's look at what a crash left may have been faster.
			var state ports.State
			if failed := s.row(detachedCtx, s.db, `SELECT state FROM task_resource_cleanup_jobs WHERE id = ?`, job).Scan(&state); failed == nil && state != ports.Prepared && state != ports.Cancelled {
				return nil
			}
		}
		if err == nil || errors.Is(err, ports.ErrRowLost) {
			return err
		}
		select {
		case <-detachedCtx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// abandon cancels prepared jobs.
func (s *Store) abandon(ctx context.Context, jobs []string) error {
	detachedCtx, done := detached(ctx)
	defer done()
	var errs []error
	for _, job := range jobs {
		now, err := s.now(detachedCtx, s.db)
		if err == nil {
			err = s.move(detachedCtx, s.db, job, `state = 'cancelled', completed_at = ?`, "prepared", s.at(now))
		}
		if err != nil && !errors.Is(err, ports.ErrRowLost) {
			errs = append(errs, fmt.Errorf("cancelling the prepared job %s: %w", job, err))
		}
	}
	return errors.Join(errs...)
}

// move changes a job that is in the given state.
func (s *Store) move(ctx context.Context, q queryer, job, set, from string, args ...any) error {
	now, err := s.now(ctx, q)
	if err != nil {
		return err
	}
	n, err := s.changed(ctx, q, `UPDATE task_resource_cleanup_jobs SET `+set+`, updated_at = ? WHERE id = ? AND state = ?`, append(args, s.at(now), job, from)...)
	if err == nil && n != 1 {
		err = ports.ErrRowLost
	}
	return err
}

// Unarchive implements ports.TaskEnds.
func (s *Store) Unarchive(ctx context.Context, taskID string, cascade bool) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		archived, err := s.hold(ctx, tx, taskID)
		if err != nil {
			return err
		}
		if !archived {
			return fmt.Errorf("the task %.200q is not archived: %w", taskID, ports.ErrRefused)
		}
		tasks := []string{taskID}
		if cascade {
			var id string
			if err := s.row(ctx, tx, `SELECT COALESCE(archived_by_cascade_id, '') FROM tasks WHERE id = ?`, taskID).Scan(&id); err != nil {
				return err
			}
			if id != "" {
				if tasks, err = column[string](ctx, s.Rows, tx, `SELECT id FROM tasks WHERE archived_by_cascade_id = ? AND archived_at IS NOT NULL ORDER BY created_at, id`, id); err != nil {
					return err
				}
			}
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			if err := s.reopen(ctx, tx, task, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// reopen cancels the task's archive jobs that have not ended and opens it.
func (s *Store) reopen(ctx context.Context, tx *sql.Tx, task string, now time.Time) error {
	if _, err := s.hold(ctx, tx, task); err != nil {
		return err
	}
	const open = `task_id = ? AND trigger IN ('archive', 'cascade_archive') AND state IN ('prepared', 'pending', 'retry_wait', 'running')`
	// The rows are taken before they are read: a begin that was first is seen.
	if _, err := s.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET attempts = attempts WHERE `+open, task); err != nil {
		return err
	}
	var jobs []string
	err := s.each(ctx, tx, `SELECT id, COALESCE(resource_snapshot, '') FROM task_resource_cleanup_jobs WHERE `+open, []any{task}, func(scan func(...any) error) error {
		var id string
		var raw []byte
		if err := scan(&id, &raw); err != nil {
			return err
		}
		jobs = append(jobs, id)
		if snapshot, err := core.ParseJobSnapshot(raw); err == nil && snapshot.Removing() {
			return fmt.Errorf("the task %.200q: %w (job %s)", task, ports.ErrRemoving, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := s.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET state = 'cancelled', next_attempt_at = NULL, completed_at = ?, updated_at = ? WHERE `+open, s.at(now), s.at(now), task); err != nil {
		return err
	}
	for _, job := range jobs {
		if _, err := s.changed(ctx, tx, `DELETE FROM reclaim_leases WHERE job_id = ?`, job); err != nil {
			return err
		}
	}
	_, err = s.changed(ctx, tx, `UPDATE tasks SET archived_at = NULL, archived_by_cascade_id = '', updated_at = ? WHERE id = ?`, s.at(now), task)
	return err
}

// BarSession is the creation barrier: who creates a session or a working tree
// of a task calls it inside the transaction that does. It is ErrRefused while
// the task is archived or a cleanup job of it has not ended, ErrNotFound when
// there is no such task; it also keeps a cleanup job from being prepared until
// the transaction ends.
func (s *Store) BarSession(ctx context.Context, tx *sql.Tx, taskID string) error {
	archived, err := s.hold(ctx, tx, taskID)
	if err != nil {
		return err
	}
	if archived {
		return fmt.Errorf("the task %.200q is archived: %w", taskID, ports.ErrRefused)
	}
	var open bool
	err = s.row(ctx, tx, `SELECT EXISTS (SELECT 1 FROM task_resource_cleanup_jobs WHERE task_id = ? AND state IN ('prepared', 'pending', 'running', 'retry_wait', 'waiting_for_clean'))`, taskID).Scan(&open)
	if err == nil && open {
		err = fmt.Errorf("the task %.200q is being cleaned up: %w", taskID, ports.ErrRefused)
	}
	return err
}

// Reconcile implements ports.TaskEnds.
func (s *Store) Reconcile(ctx context.Context, before time.Time) (settled int, err error) {
	var all []ports.Job
	err = s.each(ctx, s.db, `SELECT `+jobColumns+` FROM task_resource_cleanup_jobs j WHERE state = 'prepared' AND trigger IN (?, ?, ?, ?) ORDER BY created_at, id`,
		reclaims(), func(scan func(...any) error) error {
			j, err := scanJob(scan)
			all = append(all, j)
			return err
		})
	if err != nil {
		return 0, fmt.Errorf("the prepared jobs: %w", err)
	}
	for _, j := range all {
		moved := false
		err := s.in(ctx, func(tx *sql.Tx) error {
			// The row is taken before the task is read: a task that ends at this moment
			// has taken it, and has ended then.
			if err := s.stillPrepared(ctx, tx, j.ID); err != nil {
				return err
			}
			committed, err := s.committed(ctx, tx, j.TaskID, j.Trigger)
			if err != nil {
				return err
			}
			now, err := s.now(ctx, tx)
			switch {
			case err != nil:
				return err
			case committed:
				moved = true
				return s.move(ctx, tx, j.ID, `state = 'pending', last_error = ''`, "prepared")
			case j.CreatedAt.Before(before) || j.LastError == unknownOutcome:
				moved = true
				return s.move(ctx, tx, j.ID, `state = 'cancelled', completed_at = ?`, "prepared", s.at(now))
			}
			return nil
		})
		switch {
		case errors.Is(err, ports.ErrRefused): // somebody else settled it
		case err != nil:
			return settled, fmt.Errorf("job %s: %w", j.ID, err)
		case moved:
			settled++
		}
	}
	return settled, nil
}
