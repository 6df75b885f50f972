package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Lease implements ports.Jobs.
func (s *Store) Lease(ctx context.Context, worker string, hold []string) (job ports.Job, ok bool, err error) {
	// With hosts that may not be started now the first may be far down the queue:
	// each look reads eight times as many as the one before, and locks none.
	batch := 1
	if len(hold) > 0 {
		batch = 64
	}
	var passed []string
	for {
		more := false
		job, ok = ports.Job{}, false
		err = s.in(ctx, func(tx *sql.Tx) error {
			now, err := s.leasing(ctx, tx)
			if err != nil {
				return err
			}
			candidates, err := s.due(ctx, tx, now, batch, passed, len(hold) == 0)
			if err != nil {
				return err
			}
			free := slices.IndexFunc(candidates, func(j ports.Job) bool { return !names(j, hold) })
			if free < 0 {
				more = len(candidates) == batch
				return nil
			}
			job = candidates[free]
			ok, err = s.take(ctx, tx, &job, worker, now)
			return err
		})
		switch {
		case err != nil && !oneRunning(err):
			return ports.Job{}, false, fmt.Errorf("leasing a job: %w", err)
		case err == nil && ok:
			return job, true, nil
		case job.ID != "": // another worker was faster, or one of its task's is running since this moment
			passed = append(passed, job.ID)
		case more:
			batch *= 8
		default:
			return ports.Job{}, false, nil
		}
	}
}

// leasing is the database's clock for a look at the queue. On PostgreSQL it also
// keeps the transaction from sorting: the queue lies in the order of an index,
// and a planner that believes it to be short, as its statistics may say from
// before a burst, would read and sort all of it for its first row.
func (s *Store) leasing(ctx context.Context, tx *sql.Tx) (time.Time, error) {
	if s.dialect != PostgreSQL {
		return s.now(ctx, tx)
	}
	var at stamp
	var off string
	if err := tx.QueryRowContext(ctx, `SELECT clock_timestamp() AT TIME ZONE 'UTC', set_config('enable_sort', 'off', true)`).Scan(&at, &off); err != nil {
		return time.Time{}, fmt.Errorf("the database's clock: %w", err)
	}
	return at.Time, nil
}

// take makes a waiting job running under a lease, in the caller's transaction.
// ok is false when its row changed since it was read.
func (s *Store) take(ctx context.Context, tx *sql.Tx, job *ports.Job, worker string, now time.Time) (ok bool, err error) {
	n, err := s.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET state = 'running', attempts = attempts + 1, next_attempt_at = NULL, updated_at = ?
		WHERE id = ? AND state = ? AND attempts = ?`, s.at(now), job.ID, string(job.State), job.Attempts)
	if err != nil || n != 1 {
		return false, err
	}
	job.State, job.Attempts, job.NextAttemptAt, job.UpdatedAt = ports.Running, job.Attempts+1, time.Time{}, now
	_, err = s.changed(ctx, tx, `INSERT INTO reclaim_leases (job_id, attempt, worker, beat_ms) VALUES (?, ?, ?, ?)
		ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, worker = excluded.worker, beat_ms = excluded.beat_ms`,
		job.ID, job.Attempts, worker, now.UnixMilli())
	return err == nil, err
}

// LeaseJob leases one job by its id, where a queue beside this one decided that
// it should run now. The job is returned as its row stands; when it was not
// taken, wait says for how long it is not due yet, in database time, and a due
// job was held back: another job of its task is running, or admit refused it.
//
// admit, where given, is asked last, for a job that would be taken: what it
// writes in the transaction is kept whatever it answers, and is durable together
// with the lease when it says yes. ports.ErrNotFound says that there is no such
// job.
func (s *Store) LeaseJob(ctx context.Context, worker, id string, admit func(context.Context, *sql.Tx, ports.Job) (bool, error)) (job ports.Job, taken bool, wait time.Duration, err error) {
	err = s.in(ctx, func(tx *sql.Tx) error {
		if job, err = s.Desk().held(ctx, tx, id); err != nil {
			return err
		}
		if job.State != ports.Pending && job.State != ports.RetryWait || !job.Trigger.Reclaims() {
			return nil
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		if job.State == ports.RetryWait {
			if wait = max(0, job.NextAttemptAt.Sub(now)); wait > 0 {
				return nil
			}
		}
		var running bool
		if err := s.row(ctx, tx, `SELECT EXISTS (SELECT 1 FROM task_resource_cleanup_jobs WHERE task_id = ? AND state = 'running')`, job.TaskID).Scan(&running); err != nil || running {
			return err
		}
		next := job
		next.Attempts++
		if admit != nil {
			if admitted, err := admit(ctx, tx, next); err != nil || !admitted {
				return err
			}
		}
		taken, err = s.take(ctx, tx, &job, worker, now)
		return err
	})
	if err != nil {
		taken = false
		if oneRunning(err) {
			return job, false, 0, nil // a job of the same task was leased at the same moment
		}
		err = fmt.Errorf("leasing the job %.200s: %w", id, err)
	}
	return job, taken, wait, err
}

// oneRunning recognises the refusal of the index that lets one job of a task
// run at a time; both drivers name it or its column.
func oneRunning(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "ux_cleanup_one_running") ||
		strings.Contains(err.Error(), "UNIQUE constraint failed: task_resource_cleanup_jobs.task_id"))
}

// due lists at most limit jobs that Lease may take, the oldest first: waiting,
// the time come, the trigger in core's list, no other job of the task running.
// Each way to wait is read in the order of an index of ours, so that the cost does
// not grow with the queue: new jobs as they were made, retries as they came due.
func (s *Store) due(ctx context.Context, q queryer, now time.Time, limit int, passed []string, locked bool) ([]ports.Job, error) {
	without := ""
	if len(passed) > 0 {
		without = ` AND j.id NOT IN (` + marks(len(passed)) + `)`
	}
	lock := ""
	if locked && s.dialect == PostgreSQL {
		lock = ` FOR UPDATE OF j SKIP LOCKED`
	}
	var all []ports.Job
	for _, waiting := range []struct {
		where, order string
		args         []any
	}{
		{`j.state = 'pending'`, `j.created_at, j.id`, nil},
		{`j.state = 'retry_wait' AND j.next_attempt_at <= ?`, `j.next_attempt_at, j.created_at`, []any{s.at(now)}},
		{`j.state = 'retry_wait' AND j.next_attempt_at IS NULL`, `j.next_attempt_at, j.created_at`, nil},
	} {
		err := s.each(ctx, q, `SELECT `+jobColumns+` FROM task_resource_cleanup_jobs j WHERE `+waiting.where+` AND j.trigger IN (?, ?, ?, ?)`+without+`
			AND NOT EXISTS (SELECT 1 FROM task_resource_cleanup_jobs o WHERE o.task_id = j.task_id AND o.state = 'running')
			ORDER BY `+waiting.order+` LIMIT ?`+lock, slices.Concat(waiting.args, reclaims(), anys(passed), []any{limit}), func(scan func(...any) error) error {
			j, err := scanJob(scan)
			all = append(all, j)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b ports.Job) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return all[:min(limit, len(all))], nil
}

// Due implements ports.Jobs.
func (s *Store) Due(ctx context.Context, limit int) ([]ports.Job, error) {
	now, err := s.now(ctx, s.db)
	if err != nil {
		return nil, err
	}
	return s.due(ctx, s.db, now, limit, nil, false)
}

// names reports whether the job has a directory on one of the hosts.
func names(j ports.Job, hosts []string) bool {
	if len(hosts) == 0 {
		return false
	}
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(snapshot.Targets(), func(t core.JobTarget) bool { return slices.Contains(hosts, t.Target.Host) })
}

// Beat implements ports.Jobs.
func (s *Store) Beat(ctx context.Context, token ports.Token) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		n, err := s.changed(ctx, tx, `UPDATE reclaim_leases SET beat_ms = ? WHERE job_id = ? AND attempt = ? AND worker = ?
			AND EXISTS (SELECT 1 FROM task_resource_cleanup_jobs j WHERE j.id = job_id AND j.state = 'running' AND j.attempts = attempt)`,
			now.UnixMilli(), token.JobID, token.Attempt, token.Worker)
		if err == nil && n != 1 {
			err = ports.ErrRowLost
		}
		return err
	})
}

// Recover implements ports.Jobs. A running row without a lease is stale.
func (s *Store) Recover(ctx context.Context, stale time.Duration) (recovered int, err error) {
	err = s.in(ctx, func(tx *sql.Tx) error {
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		ids, err := column[string](ctx, s.Rows, tx, `UPDATE task_resource_cleanup_jobs SET state = 'retry_wait', next_attempt_at = ?, updated_at = ?
			WHERE state = 'running' AND trigger IN (?, ?, ?, ?) AND NOT EXISTS (
				SELECT 1 FROM reclaim_leases l WHERE l.job_id = task_resource_cleanup_jobs.id AND l.attempt = task_resource_cleanup_jobs.attempts AND l.beat_ms > ?)
			RETURNING id`, append([]any{s.at(now), s.at(now)}, append(reclaims(), now.Add(-stale).UnixMilli())...)...)
		if err != nil {
			return err
		}
		recovered = len(ids)
		for _, id := range ids {
			if err := s.uncount(ctx, tx, id, core.JobSnapshot.Held); err != nil {
				return err
			}
		}
		return nil
	})
	return recovered, err
}

// Finish implements ports.Jobs.
func (s *Store) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	switch end.State {
	case ports.Succeeded, ports.JobFailed, ports.RetryWait:
	default:
		return fmt.Errorf("no attempt ends in the state %q", end.State)
	}
	return s.end(ctx, token, end.Uncounted, func(now time.Time) (string, []any) {
		if end.State == ports.RetryWait {
			return `state = 'retry_wait', next_attempt_at = ?, last_error = ?`, []any{s.at(now.Add(max(end.Delay, 0))), clean(end.Error)}
		}
		message := clean(end.Error)
		if end.State == ports.Succeeded {
			message = ""
		}
		return `state = ?, next_attempt_at = NULL, last_error = ?, completed_at = ?`, []any{string(end.State), message, s.at(now)}
	})
}

// Cancel implements ports.Jobs.
func (s *Store) Cancel(ctx context.Context, token ports.Token) error {
	return s.end(ctx, token, false, func(now time.Time) (string, []any) {
		return `state = 'cancelled', next_attempt_at = NULL, completed_at = ?`, []any{s.at(now)}
	})
}

func (s *Store) end(ctx context.Context, token ports.Token, uncounted bool, set func(time.Time) (string, []any)) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		how, args := set(now)
		n, err := s.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET `+how+`, updated_at = ?
			WHERE id = ? AND state = 'running' AND attempts = ?
			AND EXISTS (SELECT 1 FROM reclaim_leases l WHERE l.job_id = task_resource_cleanup_jobs.id AND l.attempt = task_resource_cleanup_jobs.attempts AND l.worker = ?)`,
			append(args, s.at(now), token.JobID, token.Attempt, token.Worker)...)
		if err != nil {
			return err
		}
		if n != 1 {
			return ports.ErrRowLost
		}
		if uncounted {
			if err := s.uncount(ctx, tx, token.JobID, func(core.JobSnapshot) bool { return true }); err != nil {
				return err
			}
		}
		_, err = s.changed(ctx, tx, `DELETE FROM reclaim_leases WHERE job_id = ?`, token.JobID)
		return err
	})
}

// uncount notes that a job's attempt was no try, where its snapshot says so and
// can hold that. The caller's transaction has changed the row, so that nobody else
// writes it.
func (s *Store) uncount(ctx context.Context, tx *sql.Tx, id string, where func(core.JobSnapshot) bool) error {
	var raw []byte
	if err := s.row(ctx, tx, `SELECT COALESCE(resource_snapshot, '') FROM task_resource_cleanup_jobs WHERE id = ?`, id).Scan(&raw); err != nil {
		return err
	}
	snapshot, err := core.ParseJobSnapshot(raw)
	if err != nil || !where(snapshot) {
		return nil
	}
	if snapshot, err = snapshot.WithUncounted(); err != nil {
		return nil
	}
	_, err = s.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET resource_snapshot = ? WHERE id = ?`, string(snapshot.Bytes()), id)
	return err
}

// Hooked implements ports.Jobs.
func (s *Store) Hooked(ctx context.Context, token ports.Token, target core.Target, hook core.SessionHook) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		return s.edit(ctx, tx, token.JobID, token.Attempt, func(snapshot core.JobSnapshot, _ string) (core.JobSnapshot, error) {
			return snapshot.WithHook(target, hook)
		})
	})
}

// Sessions implements ports.Sessions.
func (s *Store) Sessions(ctx context.Context, taskID string) ([]core.Running, error) {
	return s.sessions(ctx, s.db, taskID)
}

func (s *Store) sessions(ctx context.Context, q queryer, taskID string) ([]core.Running, error) {
	var all []core.Running
	err := s.each(ctx, q, `SELECT session_id, task_id, COALESCE(runtime, ''), status, COALESCE(pid, 0), COALESCE(metadata, '')
		FROM executors_running WHERE task_id = ? ORDER BY updated_at DESC, id`, []any{taskID}, func(scan func(...any) error) error {
		var r core.Running
		err := scan(&r.SessionID, &r.TaskID, &r.Runtime, &r.Status, &r.PID, &r.Metadata)
		all = append(all, r)
		return err
	})
	return all, err
}

// MarkStopped implements ports.Sessions.
func (s *Store) MarkStopped(ctx context.Context, sessionID string) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		now, err := s.now(ctx, tx)
		if err == nil {
			_, err = s.changed(ctx, tx, `UPDATE executors_running SET status = ?, pid = 0, updated_at = ? WHERE session_id = ?`, core.Stopped, s.at(now), sessionID)
		}
		return err
	})
}

// Forget implements ports.Sessions.
func (s *Store) Forget(ctx context.Context, taskID string, sessionIDs []string) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		for part := range slices.Chunk(sessionIDs, 500) {
			if _, err := s.changed(ctx, tx, `DELETE FROM executors_running WHERE task_id = ? AND session_id IN (`+marks(len(part))+`)`,
				append([]any{taskID}, anys(part)...)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// clean bounds an error's text and drops what PostgreSQL cannot store.
func clean(text string) string {
	const most = 8192
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " [...]"
	}
	return text
}

// Depth counts the jobs that have not ended, and those that were given up, by
// state.
func (s *Store) Depth(ctx context.Context) (map[ports.State]int, error) {
	depth := map[ports.State]int{}
	err := s.each(ctx, s.db, `SELECT state, COUNT(*) FROM task_resource_cleanup_jobs WHERE state IN ('prepared', 'pending', 'running', 'retry_wait', 'failed') GROUP BY state`, nil,
		func(scan func(...any) error) error {
			var state ports.State
			var n int
			err := scan(&state, &n)
			depth[state] = n
			return err
		})
	return depth, err
}
