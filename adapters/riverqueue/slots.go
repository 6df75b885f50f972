package riverqueue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// A host's slots are counted and changed by whoever holds its lock, so that two
// machines never take the last one both.
const hostLock = `SELECT pg_advisory_xact_lock(hashtextextended('reclaim slots ' || $1, 0))`

// hosts are those a job will dial, in the order in which they are locked.
func hosts(j ports.Job) []string {
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return nil
	}
	var all []string
	for _, t := range snapshot.Targets() {
		if t.Outcome != core.OutcomeRemoved {
			all = append(all, t.Target.Host)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// admit takes a slot on every host of the job, in the transaction of its lease;
// or none, and has the job wait for the host that has no room.
func (q *Queue) admit(worker string) func(context.Context, *sql.Tx, ports.Job) (bool, error) {
	return func(ctx context.Context, tx *sql.Tx, j ports.Job) (bool, error) {
		for _, host := range hosts(j) {
			if _, err := tx.ExecContext(ctx, hostLock, host); err != nil {
				return false, err
			}
			var used int
			if err := tx.QueryRowContext(ctx, q.in(`SELECT count(*) FROM {schema}.reclaim_slots WHERE host = $1 AND beat > clock_timestamp() - $2 * interval '1 ms'`),
				host, q.o.Stale.Milliseconds()).Scan(&used); err != nil {
				return false, err
			}
			if used >= q.o.PerHost {
				if _, err := tx.ExecContext(ctx, q.in(`DELETE FROM {schema}.reclaim_slots WHERE job_id = $1 AND attempt = $2`), j.ID, j.Attempts); err != nil {
					return false, err
				}
				_, err := tx.ExecContext(ctx, q.in(`INSERT INTO {schema}.reclaim_waiting (host, job_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`), host, j.ID)
				return false, err
			}
			if _, err := tx.ExecContext(ctx, q.in(`INSERT INTO {schema}.reclaim_slots (host, job_id, attempt, worker) VALUES ($1, $2, $3, $4)`), host, j.ID, j.Attempts, worker); err != nil {
				return false, err
			}
		}
		_, err := tx.ExecContext(ctx, q.in(`DELETE FROM {schema}.reclaim_waiting WHERE job_id = $1`), j.ID)
		return true, err
	}
}

// lease takes one job if its row is due and its hosts have room.
func (q *Queue) lease(ctx context.Context, worker, id string) (ports.Job, bool, time.Duration, error) {
	return q.store.LeaseJob(ctx, worker, id, q.admit(worker))
}

// release gives an attempt's slots back, and calls jobs that wait for them.
func (q *Queue) release(ctx context.Context, token ports.Token) error {
	return q.inTx(ctx, func(tx pgx.Tx) error {
		freed, err := texts(ctx, tx, q.in(`SELECT host FROM {schema}.reclaim_slots WHERE job_id = $1 AND attempt = $2 ORDER BY host`), token.JobID, token.Attempt)
		if err != nil {
			return err
		}
		for _, host := range freed {
			if _, err := tx.Exec(ctx, hostLock, host); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, q.in(`DELETE FROM {schema}.reclaim_slots WHERE host = $1 AND job_id = $2 AND attempt = $3`), host, token.JobID, token.Attempt); err != nil {
				return err
			}
			if err := q.call(ctx, tx, host); err != nil {
				return err
			}
		}
		return nil
	})
}

// call has River run as many of the jobs that wait for a host as it has room
// for. The host's lock must be held.
func (q *Queue) call(ctx context.Context, tx pgx.Tx, host string) error {
	var used int
	if err := tx.QueryRow(ctx, q.in(`SELECT count(*) FROM {schema}.reclaim_slots WHERE host = $1 AND beat > clock_timestamp() - $2 * interval '1 ms'`),
		host, q.o.Stale.Milliseconds()).Scan(&used); err != nil || used >= q.o.PerHost {
		return err
	}
	rows, err := tx.Query(ctx, q.in(`SELECT w.job_id, r.id FROM {schema}.reclaim_waiting w JOIN {schema}.river_job r ON r.args @> jsonb_build_object('job_id', w.job_id) AND r.kind = $2
		WHERE w.host = $1 AND r.state = 'scheduled' ORDER BY w.since LIMIT $3`), host, Kind, q.o.PerHost-used)
	if err != nil {
		return err
	}
	type called struct {
		JobID   string
		RiverID int64
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[called])
	if err != nil {
		return err
	}
	for _, c := range all {
		if _, err := q.client.JobRetryTx(ctx, tx, c.RiverID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, q.in(`DELETE FROM {schema}.reclaim_waiting WHERE host = $1 AND job_id = $2`), host, c.JobID); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) inTx(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, q.pool, do)
}

func texts(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Host is how busy one host is, over all machines.
type Host struct {
	Host    string
	Running int // slots in use
	Waiting int // due jobs held back by the cap
	PerHost int // the cap
}

// Hosts lists the hosts that have jobs in flight or held back, by name.
func (q *Queue) Hosts(ctx context.Context) ([]Host, error) {
	rows, err := q.pool.Query(ctx, q.in(`SELECT host, count(*) FILTER (WHERE busy), count(*) FILTER (WHERE NOT busy), $2::int FROM (
			SELECT host, true AS busy FROM {schema}.reclaim_slots WHERE beat > clock_timestamp() - $1 * interval '1 ms'
			UNION ALL SELECT w.host, false FROM {schema}.reclaim_waiting w JOIN task_resource_cleanup_jobs j ON j.id = w.job_id AND j.state IN ('pending', 'retry_wait')) both_kinds
		GROUP BY host ORDER BY host`), q.o.Stale.Milliseconds(), q.o.PerHost)
	if err != nil {
		return nil, fmt.Errorf("the hosts' slots: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Host])
}

// Saturation tells of every host what Hosts lists; it is for telemetry.
func (q *Queue) Saturation(ctx context.Context, tell func(host string, running, waiting, perHost int)) error {
	all, err := q.Hosts(ctx)
	for _, h := range all {
		tell(h.Host, h.Running, h.Waiting, h.PerHost)
	}
	return err
}

// Jobs is the install's queue under the cap: a lease takes a slot on the job's
// hosts with it, a heartbeat renews both, an end gives them back. Run uses it,
// and so may an embedded worker that takes its share on the same database.
func (q *Queue) Jobs() ports.Jobs { return capped{q.store, q} }

type capped struct {
	Store
	queue *Queue
}

// Lease implements ports.Jobs.
func (c capped) Lease(ctx context.Context, worker string, hold []string) (ports.Job, bool, error) {
	full, err := c.queue.Hosts(ctx)
	if err != nil {
		return ports.Job{}, false, err
	}
	for _, h := range full {
		if h.Running >= h.PerHost {
			hold = append(hold, h.Host)
		}
	}
	tried := map[string]bool{}
	for limit := 256; ; limit *= 8 { // the oldest may all wait for one host
		due, err := c.Due(ctx, limit)
		if err != nil {
			return ports.Job{}, false, err
		}
		for _, j := range due {
			if tried[j.ID] || slices.ContainsFunc(hosts(j), func(host string) bool { return slices.Contains(hold, host) }) {
				continue
			}
			tried[j.ID] = true
			leased, ok, _, err := c.queue.lease(ctx, worker, j.ID)
			switch {
			case errors.Is(err, ports.ErrNotFound):
			case err != nil:
				return ports.Job{}, false, err
			case ok:
				return leased, true, nil
			}
		}
		if len(due) < limit {
			return ports.Job{}, false, nil
		}
	}
}

// Beat implements ports.Jobs. The slots are renewed also where the lease is
// lost: they are the worker's until it has put the job down.
func (c capped) Beat(ctx context.Context, token ports.Token) error {
	_, err := c.queue.pool.Exec(ctx, c.queue.in(`UPDATE {schema}.reclaim_slots SET beat = clock_timestamp() WHERE job_id = $1 AND attempt = $2`), token.JobID, token.Attempt)
	return errors.Join(c.Store.Beat(ctx, token), err)
}

// Finish implements ports.Jobs.
func (c capped) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	return c.ended(ctx, token, c.Store.Finish(ctx, token, end))
}

// Cancel implements ports.Jobs.
func (c capped) Cancel(ctx context.Context, token ports.Token) error {
	return c.ended(ctx, token, c.Store.Cancel(ctx, token))
}

// ended gives the slots back once the row is written or another's. Where that
// fails they grow stale.
func (c capped) ended(ctx context.Context, token ports.Token, err error) error {
	if err == nil || errors.Is(err, ports.ErrRowLost) {
		if failed := c.queue.release(ctx, token); failed != nil {
			c.queue.o.Log.WarnContext(ctx, "the host's slot could not be given back; it is free when it is stale", "job_id", token.JobID, "error", failed)
		}
	}
	return err
}
