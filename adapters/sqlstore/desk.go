package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Desk implements ports.Desk over either kind of database.
type Desk struct{ *Rows }

// ErrNoTasks says that a database is neither ours nor a backend's: it has no
// table of cleanup jobs.
var ErrNoTasks = errors.New("this database holds no cleanup jobs: it is neither reclaim's nor a backend's")

// DeskOver is the desk of any database that holds jobs: a host's is only read,
// and its changes are ErrNotOurs. Any other database is ErrNoTasks.
func DeskOver(ctx context.Context, db *sql.DB, dialect Dialect) (*Desk, error) {
	r := Over(db, dialect)
	err := r.Ours(ctx)
	if err != nil && !errors.Is(err, ErrNotOurs) {
		return nil, err
	}
	r.ours = err == nil
	if has, err := r.hasTable(ctx, "task_resource_cleanup_jobs"); err != nil || !has {
		return nil, cmp.Or(err, ErrNoTasks)
	}
	return &Desk{r}, nil
}

// Desk is the store's desk.
func (s *Store) Desk() *Desk { return &Desk{s.Rows} }

// writes runs a change on a database of ours.
func (d *Desk) writes(ctx context.Context, do func(*sql.Tx) error) error {
	if err := d.Ours(ctx); err != nil {
		return err
	}
	return d.in(ctx, do)
}

// Profiles implements ports.Desk.
func (d *Desk) Profiles(ctx context.Context) ([]ports.Profile, error) {
	var all []ports.Profile
	err := d.each(ctx, d.db, `SELECT p.id, p.name, e.name, COALESCE(e.config, ''), COALESCE(p.config, '') FROM executor_profiles p
		JOIN executors e ON e.id = p.executor_id WHERE e.type = 'ssh' AND e.deleted_at IS NULL ORDER BY p.name, p.id`, nil, func(scan func(...any) error) error {
		var p ports.Profile
		var executor, profile []byte
		if err := scan(&p.ID, &p.Name, &p.Executor, &executor, &profile); err != nil {
			return err
		}
		p.Host, p.Alias = core.ConfigText(executor, "ssh_host"), core.ConfigText(executor, "ssh_host_alias")
		p.User, p.Port = core.ConfigText(executor, "ssh_user"), core.ConfigText(executor, "ssh_port")
		p.Root, p.Reclaim = core.ConfigText(profile, "ssh_workdir_root"), core.ConfigText(profile, "ssh_reclaim_task_dir")
		p.Disposable = core.ConfigText(profile, "ssh_reclaim_disposable")
		all = append(all, p)
		return nil
	})
	return all, err
}

// SetReclaim implements ports.Desk.
func (d *Desk) SetReclaim(ctx context.Context, profileID string, on bool) error {
	return d.configure(ctx, profileID, func(config []byte) ([]byte, error) { return core.WithOptIn(config, on) })
}

// SetDisposable implements ports.Desk.
func (d *Desk) SetDisposable(ctx context.Context, profileID, kinds string) error {
	if _, err := core.WriteDisposable(kinds); err != nil {
		return fmt.Errorf("%w: %w", ports.ErrRefused, err)
	}
	return d.configure(ctx, profileID, func(config []byte) ([]byte, error) { return core.WithDisposable(config, kinds) })
}

// configure edits one profile's config where it stands.
func (d *Desk) configure(ctx context.Context, profileID string, edit func([]byte) ([]byte, error)) error {
	return d.writes(ctx, func(tx *sql.Tx) error {
		n, err := d.changed(ctx, tx, `UPDATE executor_profiles SET updated_at = updated_at WHERE id = ?`, profileID)
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("the profile %.200q: %w", profileID, ports.ErrNotFound)
		}
		var config []byte
		if err := d.row(ctx, tx, `SELECT COALESCE(config, '') FROM executor_profiles WHERE id = ?`, profileID).Scan(&config); err != nil {
			return err
		}
		if config, err = edit(config); err != nil {
			return err
		}
		now, err := d.now(ctx, tx)
		if err == nil {
			_, err = d.changed(ctx, tx, `UPDATE executor_profiles SET config = ?, updated_at = ? WHERE id = ?`, string(config), d.at(now), profileID)
		}
		return err
	})
}

// Jobs implements ports.Desk.
func (d *Desk) Jobs(ctx context.Context, state ports.State, limit int) ([]ports.Job, error) {
	where, args := "", []any{}
	if state != "" {
		where, args = ` WHERE state = ?`, append(args, string(state))
	}
	return d.list(ctx, d.db, where+` ORDER BY created_at DESC, id DESC LIMIT ?`, append(args, limit)...)
}

// Job implements ports.Desk.
func (d *Desk) Job(ctx context.Context, id string) (ports.Job, error) { return d.job(ctx, d.db, id) }

func (d *Desk) job(ctx context.Context, q queryer, id string) (ports.Job, error) {
	found, err := d.list(ctx, q, ` WHERE id = ?`, id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("the job %.200q: %w", id, ports.ErrNotFound)
	}
	if err != nil {
		return ports.Job{}, err
	}
	return found[0], nil
}

func (d *Desk) list(ctx context.Context, q queryer, rest string, args ...any) ([]ports.Job, error) {
	var all []ports.Job
	err := d.each(ctx, q, `SELECT `+jobColumns+` FROM task_resource_cleanup_jobs j`+rest, args, func(scan func(...any) error) error {
		j, err := scanJob(scan)
		all = append(all, j)
		return err
	})
	return all, err
}

// Retry implements ports.Desk.
func (d *Desk) Retry(ctx context.Context, id string) (due string, err error) {
	err = d.writes(ctx, func(tx *sql.Tx) error {
		j, err := d.held(ctx, tx, id)
		if err != nil {
			return err
		}
		switch due = id; j.State {
		case ports.Pending:
			return nil
		case ports.RetryWait:
			now, err := d.now(ctx, tx)
			if err == nil {
				_, err = d.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET next_attempt_at = ?, updated_at = ? WHERE id = ?`, d.at(now), d.at(now), id)
			}
			return err
		case ports.JobFailed:
			due, err = d.again(ctx, tx, j)
			return err
		}
		return fmt.Errorf("the job %s is %s: %w", id, j.State, ports.ErrRefused)
	})
	return due, err
}

// held takes the job's row until the transaction ends and reads it.
func (d *Desk) held(ctx context.Context, tx *sql.Tx, id string) (ports.Job, error) {
	if _, err := d.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET attempts = attempts WHERE id = ?`, id); err != nil {
		return ports.Job{}, err
	}
	return d.job(ctx, tx, id)
}

// again makes a new job from an ended one's snapshot. Every barrier is asked
// anew; the begin it recorded stays, for what it may have left on the host.
func (d *Desk) again(ctx context.Context, tx *sql.Tx, j ports.Job) (string, error) {
	if !j.Trigger.Reclaims() {
		return "", fmt.Errorf("jobs of the trigger %q never reclaim: %w", j.Trigger, ports.ErrRefused)
	}
	// The task's row is taken before it is read, as an un-archive does: of the two
	// one is first, and an un-archive that comes second cancels the new job.
	if _, err := d.changed(ctx, tx, `UPDATE tasks SET updated_at = updated_at WHERE id = ?`, j.TaskID); err != nil {
		return "", err
	}
	terminal, err := d.terminal(ctx, tx, j.TaskID)
	if err != nil {
		return "", err
	}
	if !terminal {
		return "", fmt.Errorf("the task %.200q is not archived or deleted any more: %w", j.TaskID, ports.ErrRefused)
	}
	open, err := column[string](ctx, d.Rows, tx, `SELECT id FROM task_resource_cleanup_jobs WHERE task_id = ? AND state NOT IN `+ended, j.TaskID)
	if err != nil {
		return "", err
	}
	if len(open) > 0 {
		return "", fmt.Errorf("the job %s of the same task has not ended: %w", open[0], ports.ErrRefused)
	}
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return "", err
	}
	if snapshot, err = snapshot.Again(); err != nil {
		return "", err
	}
	if !slices.ContainsFunc(snapshot.Targets(), func(t core.JobTarget) bool { return t.Outcome != core.OutcomeRemoved }) {
		return "", fmt.Errorf("the job %s keeps no directory: %w", j.ID, ports.ErrRefused)
	}
	now, err := d.now(ctx, tx)
	if err != nil {
		return "", err
	}
	id := uuid.NewString()
	_, err = d.changed(ctx, tx, `INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, resource_snapshot, created_at, updated_at)
		VALUES (?, ?, ?, ?, 'pending', ?, ?, ?)`, id, string(j.Trigger)+":"+j.TaskID+":"+id, j.TaskID, string(j.Trigger), string(snapshot.Bytes()), d.at(now), d.at(now))
	return id, err
}

// JudgeAgain implements ports.Desk.
func (d *Desk) JudgeAgain(ctx context.Context, jobID string) (id string, err error) {
	err = d.writes(ctx, func(tx *sql.Tx) error {
		j, err := d.held(ctx, tx, jobID)
		if err != nil {
			return err
		}
		if j.State != ports.Succeeded && j.State != ports.JobFailed {
			return fmt.Errorf("the job %s is %s: %w", jobID, j.State, ports.ErrRefused)
		}
		id, err = d.again(ctx, tx, j)
		return err
	})
	return id, err
}

// Cancel implements ports.Desk.
func (d *Desk) Cancel(ctx context.Context, id string) error {
	return d.writes(ctx, func(tx *sql.Tx) error {
		j, err := d.held(ctx, tx, id)
		if err != nil {
			return err
		}
		if j.State != ports.Pending && j.State != ports.RetryWait {
			return fmt.Errorf("the job %s is %s: %w", id, j.State, ports.ErrRefused)
		}
		if snapshot, err := core.ParseJobSnapshot(j.Snapshot); err == nil && snapshot.Removing() {
			return fmt.Errorf("the job %s began a removal that was not seen to end; retry it instead: %w", id, ports.ErrRefused)
		}
		now, err := d.now(ctx, tx)
		if err == nil {
			_, err = d.changed(ctx, tx, `UPDATE task_resource_cleanup_jobs SET state = 'cancelled', next_attempt_at = NULL, completed_at = ?, updated_at = ? WHERE id = ?`, d.at(now), d.at(now), id)
		}
		return err
	})
}

// Kept implements ports.Desk.
func (d *Desk) Kept(ctx context.Context) ([]ports.Kept, error) {
	records, err := d.latestRecords(ctx)
	if err != nil {
		return nil, err
	}
	type place struct{ task, host, dir string }
	latest := map[place]*ports.Kept{}
	var order []place
	err = d.each(ctx, d.db, `SELECT `+jobColumns+`, COALESCE(t.title, '') FROM task_resource_cleanup_jobs j LEFT JOIN tasks t ON t.id = j.task_id
		WHERE j.trigger IN (?, ?, ?, ?) ORDER BY j.created_at, j.id`, reclaims(), func(scan func(...any) error) error {
		var title string
		j, err := scanJob(func(into ...any) error { return scan(append(into, &title)...) })
		if err != nil {
			return err
		}
		snapshot, err := core.ParseJobSnapshot(j.Snapshot)
		if err != nil {
			return nil // job show tells it
		}
		for _, t := range snapshot.Targets() {
			at := place{j.TaskID, strings.ToLower(t.Target.Host), t.Target.TaskDir}
			if t.Outcome == "" {
				if k := latest[at]; k != nil && !over(j.State) {
					k.Judging = j.ID
				}
				continue
			}
			if latest[at] == nil {
				order = append(order, at)
			}
			k := &ports.Kept{Result: t.Result(j.TaskID, j.ID, j.Attempts), TaskTitle: title, At: j.UpdatedAt, Begun: t.Begun > 0 && !t.Settled()}
			if record, ok := records[recorded{j.ID, t.Target.TaskDir}]; ok {
				k.Result.Record, k.Result.Bytes = record.id, max(record.bytes, k.Result.Bytes)
			}
			if !over(j.State) {
				k.Judging = j.ID
			}
			latest[at] = k
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := []ports.Kept{}
	for _, at := range order {
		if k := latest[at]; k.Result.Outcome != core.OutcomeRemoved {
			kept = append(kept, *k)
		}
	}
	slices.SortStableFunc(kept, func(a, b ports.Kept) int { return b.At.Compare(a.At) })
	return kept, nil
}

func over(s ports.State) bool {
	return s == ports.Succeeded || s == ports.JobFailed || s == ports.Cancelled
}

type recorded struct{ job, dir string }

type lastRecord struct {
	id    string
	bytes int64
}

// latestRecords are the newest record of every directory of every job, of which
// only the result is read.
func (d *Desk) latestRecords(ctx context.Context) (map[recorded]lastRecord, error) {
	has, err := d.hasTable(ctx, "reclaim_records")
	if err != nil || !has {
		return nil, err
	}
	latest := map[recorded]lastRecord{}
	err = d.each(ctx, d.db, `SELECT id, job_id, record FROM reclaim_records ORDER BY kept_ms, id`, nil, func(scan func(...any) error) error {
		var id, job string
		var raw []byte
		if err := scan(&id, &job, &raw); err != nil {
			return err
		}
		var record struct {
			Observed bool `json:"observed"`
			Result   struct {
				Bytes  int64       `json:"bytes"`
				Target core.Target `json:"target"`
			} `json:"result"`
		}
		if json.Unmarshal(raw, &record) == nil && !record.Observed { // what a look came to is not what the job says
			latest[recorded{job, record.Result.Target.TaskDir}] = lastRecord{id, record.Result.Bytes}
		}
		return nil
	})
	return latest, err
}

// Stopped implements ports.Desk.
func (d *Desk) Stopped(ctx context.Context) (bool, error) { return d.stopped(ctx, d.db) }

// SetStopped implements ports.Desk.
func (d *Desk) SetStopped(ctx context.Context, on bool) error {
	value := 0
	if on {
		value = 1
	}
	return d.writes(ctx, func(tx *sql.Tx) error {
		_, err := d.changed(ctx, tx, `INSERT INTO reclaim_switches (name, is_on) VALUES ('stop-all', ?) ON CONFLICT (name) DO UPDATE SET is_on = excluded.is_on`, value)
		return err
	})
}
