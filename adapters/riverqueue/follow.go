package riverqueue

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/kandev/reclaim/core"
)

// slack is by how much River may differ from a row before it is put right.
const slack = 10 * time.Second

// batch is how many rows one look takes on.
const batch = 2000

// follow makes River follow the rows, in database time: every open row has one
// live River job, due when the row is; a River job whose row has ended is
// cancelled, one whose machine died is rescued as soon as the row's lease was.
// Any machine does it, one at a time; a failure is made good by the next look.
func (q *Queue) follow(ctx context.Context) {
	err := errors.Join(q.clock.set(ctx, q.pool), q.revive(ctx))
	if stopped, failed := q.stops(ctx); failed != nil {
		err = errors.Join(err, failed)
	} else {
		err = errors.Join(err, q.inTx(ctx, func(tx pgx.Tx) error {
			var mine bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, "reclaim river follow "+q.schema).Scan(&mine); err != nil || !mine {
				return err
			}
			return q.followIn(ctx, tx, stopped)
		}), q.prune(ctx))
	}
	if err != nil && ctx.Err() == nil {
		q.o.Log.WarnContext(ctx, "River could not be made to follow the jobs' rows; the next look tries again", "error", err)
	}
}

// revive makes rows due again whose worker is silent.
func (q *Queue) revive(ctx context.Context) error {
	n, err := q.store.Recover(ctx, q.o.Stale)
	if n > 0 {
		q.o.Log.InfoContext(ctx, "jobs whose lease went stale are due again", "jobs", n)
	}
	return err
}

// archiving is for how long a prepared row is left to whoever prepared it,
// which may be a process on any machine.
const archiving = 15 * time.Minute

// settle activates or cancels prepared rows that a crash left.
func (q *Queue) settle(ctx context.Context) {
	n, err := q.store.Reconcile(ctx, q.clock.Now().Add(-archiving))
	switch {
	case err != nil && ctx.Err() == nil:
		q.o.Log.WarnContext(ctx, "the prepared jobs cannot be settled", "error", err)
	case n > 0:
		q.o.Log.InfoContext(ctx, "prepared jobs that a crash left were settled", "jobs", n)
	}
}

// reclaiming are the rows that are worked, as sqlstore leases them.
const reclaiming = `j.trigger IN ('archive', 'delete', 'cascade_archive', 'cascade_delete')`

func (q *Queue) followIn(ctx context.Context, tx pgx.Tx, stopped bool) error {
	if err := q.end(ctx, tx, stopped); err != nil || stopped {
		return err
	}
	if err := q.rescue(ctx, tx); err != nil {
		return err
	}
	if err := q.hurry(ctx, tx); err != nil {
		return err
	}
	return q.insert(ctx, tx)
}

// prune drops slots and waits that count no more, and calls who waits for a
// host that has room: its slots may have grown stale.
func (q *Queue) prune(ctx context.Context) error {
	if _, err := q.pool.Exec(ctx, q.in(`DELETE FROM {schema}.reclaim_slots WHERE beat < clock_timestamp() - $1 * interval '1 ms'`), q.o.Stale.Milliseconds()); err != nil {
		return err
	}
	if _, err := q.pool.Exec(ctx, q.in(`DELETE FROM {schema}.reclaim_waiting w WHERE NOT EXISTS (
		SELECT 1 FROM task_resource_cleanup_jobs j WHERE j.id = w.job_id AND j.state IN ('pending', 'retry_wait'))`)); err != nil {
		return err
	}
	rows, err := q.pool.Query(ctx, q.in(`SELECT DISTINCT host FROM {schema}.reclaim_waiting`))
	if err != nil {
		return err
	}
	waited, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, host := range waited {
		err = errors.Join(err, q.inTx(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, hostLock, host); err != nil {
				return err
			}
			return q.call(ctx, tx, host)
		}))
	}
	return err
}

// end cancels River jobs whose row was cancelled or is gone, and while
// everything is stopped all that have not begun a removal. A running one hears
// of it at once, wherever it runs. Those whose row ended otherwise end as it
// did.
func (q *Queue) end(ctx context.Context, tx pgx.Tx, stopped bool) error {
	rows, err := tx.Query(ctx, q.in(`SELECT r.id, r.state::text, r.attempted_at < now() - $3 * interval '1 ms' AND (r.metadata ? 'cancel_attempted_at' OR j.state IS DISTINCT FROM 'cancelled'), COALESCE(j.state, 'gone'), COALESCE(j.resource_snapshot, '')
		FROM {schema}.river_job r LEFT JOIN task_resource_cleanup_jobs j ON j.id = r.args->>'job_id'
		WHERE r.kind = $1 AND r.state IN `+live+` AND ($2 OR j.id IS NULL OR j.state NOT IN ('pending', 'retry_wait', 'running'))
		AND NOT (r.state = 'running' AND j.state IN ('succeeded', 'failed') AND r.attempted_at > now() - $3 * interval '1 ms')
		ORDER BY r.id LIMIT $4`), Kind, stopped, slack.Milliseconds(), batch)
	if err != nil {
		return err
	}
	type entry struct {
		ID       int64
		River    rivertype.JobState
		Dead     *bool // if it is running: for too long, and it was told
		Row      string
		Snapshot string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
	if err != nil {
		return err
	}
	var dead []int64
	for _, e := range all {
		open := e.Row == "pending" || e.Row == "retry_wait" || e.Row == "running"
		switch {
		case open && e.Row == "running" && begun([]byte(e.Snapshot)):
			continue // a removal is left to run to its end
		case !open && e.River == rivertype.JobStateRunning && e.Dead != nil && *e.Dead:
			dead = append(dead, e.ID) // its machine ended the row and died before it could say so
			continue
		case !stopped && (e.Row == "succeeded" || e.Row == "failed"):
			if _, err := q.client.JobRetryTx(ctx, tx, e.ID); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
				return err
			}
			continue // it hears from the row how it ended
		}
		if _, err := q.client.JobCancelTx(ctx, tx, e.ID); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			return err
		}
	}
	return q.restate(ctx, tx, dead, rivertype.JobStateCompleted, "its row had ended; the machine that ran it did not say so")
}

// begun reports whether a removal has begun and was not seen to end. What cannot
// be read has.
func begun(raw []byte) bool {
	snapshot, err := core.ParseJobSnapshot(raw)
	return err != nil || snapshot.Removing()
}

// removing are those of the jobs whose removal has begun and was not seen to
// end.
func (q *Queue) removing(ctx context.Context, ids []string) (map[string]bool, error) {
	rows, err := q.pool.Query(ctx, `SELECT id, resource_snapshot FROM task_resource_cleanup_jobs WHERE id = ANY($1)`, ids)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	var id, raw string
	_, err = pgx.ForEachRow(rows, []any{&id, &raw}, func() error {
		all[id] = begun([]byte(raw))
		return nil
	})
	return all, err
}

// rescue makes River jobs available that count as running although their row
// waits: the machine that ran them died, or stands still.
func (q *Queue) rescue(ctx context.Context, tx pgx.Tx) error {
	ids, err := numbers(ctx, tx, q.in(`SELECT r.id FROM {schema}.river_job r JOIN task_resource_cleanup_jobs j ON j.id = r.args->>'job_id'
		WHERE r.kind = $1 AND r.state = 'running' AND r.attempted_at < now() - $2 * interval '1 ms' AND j.state IN ('pending', 'retry_wait')
		AND j.updated_at < clock_timestamp() AT TIME ZONE 'UTC' - $2 * interval '1 ms' ORDER BY r.id LIMIT $3`), Kind, q.quiet().Milliseconds(), batch)
	if err != nil {
		return err
	}
	return q.restate(ctx, tx, ids, rivertype.JobStateAvailable, "its row waits; the machine that ran it is silent")
}

// quiet is for how long a machine may take between River and the row.
func (q *Queue) quiet() time.Duration { return min(slack, q.o.Stale/2) }

// restate gives running River jobs another state.
func (q *Queue) restate(ctx context.Context, tx pgx.Tx, ids []int64, state rivertype.JobState, why string) error {
	if len(ids) == 0 {
		return nil
	}
	now := q.clock.Now()
	p := riverdriver.JobRescueManyParams{Schema: q.schema, StuckHorizon: now}
	told, err := json.Marshal(rivertype.AttemptError{At: now, Error: why})
	if err != nil {
		return err
	}
	var ended *time.Time
	if state == rivertype.JobStateCompleted {
		ended = &now
	}
	for _, id := range ids {
		p.ID, p.Error, p.State = append(p.ID, id), append(p.Error, told), append(p.State, string(state))
		p.FinalizedAt, p.ScheduledAt = append(p.FinalizedAt, ended), append(p.ScheduledAt, now)
	}
	q.o.Log.InfoContext(ctx, "River jobs were rescued", "jobs", len(ids), "reason", why)
	_, err = riverpgxv5.New(q.pool).UnwrapExecutor(tx).JobRescueMany(ctx, &p)
	return err
}

// hurry makes River jobs available whose row is due and which River would leave
// for later: the row was made due by a person or a stale lease, or River was
// told a wrong time. Those that wait for room on a host are left alone.
func (q *Queue) hurry(ctx context.Context, tx pgx.Tx) error {
	ids, err := numbers(ctx, tx, q.in(`SELECT r.id FROM {schema}.river_job r JOIN task_resource_cleanup_jobs j ON j.id = r.args->>'job_id'
		WHERE r.kind = $1 AND r.state IN ('scheduled', 'retryable') AND abs(extract(epoch FROM r.scheduled_at - now())) * 1000 > $2
		AND (j.state = 'pending' OR j.state = 'retry_wait' AND (j.next_attempt_at IS NULL OR j.next_attempt_at <= clock_timestamp() AT TIME ZONE 'UTC'))
		AND NOT EXISTS (SELECT 1 FROM {schema}.reclaim_waiting w WHERE w.job_id = j.id AND r.scheduled_at < now() + interval '1 minute')
		ORDER BY r.id LIMIT $3`), Kind, q.quiet().Milliseconds(), batch)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := q.client.JobRetryTx(ctx, tx, id); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			return err
		}
	}
	return nil
}

// insert gives every open row that has none a River job.
func (q *Queue) insert(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, q.in(`SELECT j.id, j.operation_id, j.task_id, CASE WHEN j.state = 'retry_wait' THEN j.next_attempt_at AT TIME ZONE 'UTC' END, now()
		FROM task_resource_cleanup_jobs j LEFT JOIN (SELECT args->>'job_id' AS job_id FROM {schema}.river_job WHERE kind = $1 AND state IN `+live+`) r ON r.job_id = j.id
		WHERE r.job_id IS NULL AND j.state IN ('pending', 'retry_wait') AND `+reclaiming+` ORDER BY j.created_at, j.id LIMIT $2`), Kind, batch)
	if err != nil {
		return err
	}
	type missing struct {
		ID, Operation, Task string
		Due                 *time.Time
		Now                 time.Time
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[missing])
	if err != nil || len(all) == 0 {
		return err
	}
	var jobs []river.InsertManyParams
	for _, m := range all {
		p := river.InsertManyParams{Args: Args{OperationID: m.Operation, JobID: m.ID, TaskID: m.Task}}
		if m.Due != nil && m.Due.After(m.Now) {
			p.InsertOpts = &river.InsertOpts{ScheduledAt: *m.Due}
		}
		jobs = append(jobs, p)
	}
	_, err = q.client.InsertManyTx(ctx, tx, jobs)
	return err
}

func numbers(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]int64, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
