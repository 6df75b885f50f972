package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Desk implements ports.Desk over a Store.
type Desk struct{ s *Store }

// Desk is the store's desk.
func (s *Store) Desk() *Desk { return &Desk{s} }

// Profiles implements ports.Desk.
func (d *Desk) Profiles(ctx context.Context) (all []ports.Profile, err error) {
	err = d.s.locked(ctx, func() error {
		for _, p := range sorted(d.s.profiles, func(Profile) bool { return true }, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) }) {
			text := func(config, name string) string { return core.ConfigText([]byte(config), name) }
			all = append(all, ports.Profile{ID: p.ID, Name: p.Name, Executor: p.Executor, Host: text(p.ExecutorConfig, "ssh_host"), Alias: text(p.ExecutorConfig, "ssh_host_alias"),
				User: text(p.ExecutorConfig, "ssh_user"), Port: text(p.ExecutorConfig, "ssh_port"),
				Root: text(p.Config, "ssh_workdir_root"), Reclaim: text(p.Config, "ssh_reclaim_task_dir"), Disposable: text(p.Config, "ssh_reclaim_disposable")})
		}
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
	return d.s.locked(ctx, func() error {
		p, ok := d.s.profiles[profileID]
		if !ok {
			return fmt.Errorf("the profile %.200q: %w", profileID, ports.ErrNotFound)
		}
		config, err := edit([]byte(p.Config))
		if err != nil {
			return err
		}
		p.Config = string(config)
		d.s.profiles[profileID] = p
		return nil
	})
}

// Jobs implements ports.Desk.
func (d *Desk) Jobs(ctx context.Context, state ports.State, limit int) (all []ports.Job, err error) {
	err = d.s.locked(ctx, func() error {
		all = sorted(d.s.jobs, func(j ports.Job) bool { return state == "" || j.State == state }, func(a, b ports.Job) int { return a.CreatedAt.Compare(b.CreatedAt) })
		slices.Reverse(all)
		all = all[:min(limit, len(all))]
		return nil
	})
	return all, err
}

// Job implements ports.Desk.
func (d *Desk) Job(ctx context.Context, id string) (j ports.Job, err error) {
	err = d.s.locked(ctx, func() error { j, err = d.job(id); return err })
	return j, err
}

func (d *Desk) job(id string) (ports.Job, error) {
	j, ok := d.s.jobs[id]
	if !ok {
		return j, fmt.Errorf("the job %.200q: %w", id, ports.ErrNotFound)
	}
	return j, nil
}

// Retry implements ports.Desk.
func (d *Desk) Retry(ctx context.Context, id string) (due string, err error) {
	err = d.s.locked(ctx, func() error {
		j, err := d.job(id)
		if err != nil {
			return err
		}
		switch due = id; j.State {
		case ports.Pending:
			return nil
		case ports.RetryWait:
			j.NextAttemptAt, j.UpdatedAt = d.s.now(), d.s.now()
			d.s.jobs[id] = j
			return nil
		case ports.JobFailed:
			due, err = d.again(j)
			return err
		}
		return fmt.Errorf("the job %s is %s: %w", id, j.State, ports.ErrRefused)
	})
	return due, err
}

func (d *Desk) again(j ports.Job) (string, error) {
	switch {
	case !j.Trigger.Reclaims():
		return "", fmt.Errorf("jobs of the trigger %q never reclaim: %w", j.Trigger, ports.ErrRefused)
	case !d.s.terminal(j.TaskID):
		return "", fmt.Errorf("the task %.200q is not archived or deleted any more: %w", j.TaskID, ports.ErrRefused)
	}
	for _, other := range d.s.jobs {
		if other.TaskID == j.TaskID && !over(other.State) {
			return "", fmt.Errorf("the job %s of the same task has not ended: %w", other.ID, ports.ErrRefused)
		}
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
	fresh := ports.Job{ID: d.s.id("job"), TaskID: j.TaskID, Trigger: j.Trigger, State: ports.Pending, Snapshot: snapshot.Bytes(), CreatedAt: d.s.now(), UpdatedAt: d.s.now()}
	fresh.OperationID = fmt.Sprintf("%s:%s:%s", j.Trigger, j.TaskID, fresh.ID)
	d.s.jobs[fresh.ID] = fresh
	return fresh.ID, nil
}

// JudgeAgain implements ports.Desk.
func (d *Desk) JudgeAgain(ctx context.Context, jobID string) (id string, err error) {
	err = d.s.locked(ctx, func() error {
		j, err := d.job(jobID)
		if err != nil {
			return err
		}
		if j.State != ports.Succeeded && j.State != ports.JobFailed {
			return fmt.Errorf("the job %s is %s: %w", jobID, j.State, ports.ErrRefused)
		}
		id, err = d.again(j)
		return err
	})
	return id, err
}

// Cancel implements ports.Desk.
func (d *Desk) Cancel(ctx context.Context, id string) error {
	return d.s.locked(ctx, func() error {
		j, err := d.job(id)
		if err != nil {
			return err
		}
		if j.State != ports.Pending && j.State != ports.RetryWait {
			return fmt.Errorf("the job %s is %s: %w", id, j.State, ports.ErrRefused)
		}
		if snapshot, err := core.ParseJobSnapshot(j.Snapshot); err == nil && snapshot.Removing() {
			return fmt.Errorf("the job %s began a removal that was not seen to end; retry it instead: %w", id, ports.ErrRefused)
		}
		d.s.cancel(j)
		return nil
	})
}

// Kept implements ports.Desk.
func (d *Desk) Kept(ctx context.Context) (kept []ports.Kept, err error) {
	type place struct{ task, host, dir string }
	err = d.s.locked(ctx, func() error {
		latest := map[place]ports.Kept{}
		var order []place
		for _, j := range sorted(d.s.jobs, func(j ports.Job) bool { return j.Trigger.Reclaims() }, func(a, b ports.Job) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
			snapshot, err := core.ParseJobSnapshot(j.Snapshot)
			if err != nil {
				continue
			}
			for _, t := range snapshot.Targets() {
				at := place{j.TaskID, strings.ToLower(t.Target.Host), t.Target.TaskDir}
				k, seen := latest[at]
				if t.Outcome != "" {
					if !seen {
						order = append(order, at)
					}
					k, seen = ports.Kept{Result: t.Result(j.TaskID, j.ID, j.Attempts), TaskTitle: d.s.tasks[j.TaskID].Title, At: j.UpdatedAt, Begun: t.Begun > 0 && !t.Settled()}, true
					for _, f := range d.s.records {
						if !f.Record.Observed && f.Record.Snapshot.JobID == j.ID && f.Record.Snapshot.Target.TaskDir == t.Target.TaskDir {
							k.Result.Record, k.Result.Bytes = f.ID, max(f.Record.Result.Bytes, k.Result.Bytes)
						}
					}
				}
				if !over(j.State) {
					k.Judging = j.ID
				}
				if seen {
					latest[at] = k
				}
			}
		}
		kept = []ports.Kept{}
		for _, at := range order {
			if k := latest[at]; k.Result.Outcome != core.OutcomeRemoved {
				kept = append(kept, k)
			}
		}
		slices.SortStableFunc(kept, func(a, b ports.Kept) int { return b.At.Compare(a.At) })
		return nil
	})
	return kept, err
}

// Record implements ports.Desk.
func (d *Desk) Record(ctx context.Context, id string) (found ports.Filed, err error) {
	err = d.s.locked(ctx, func() error {
		for _, f := range d.s.records {
			if f.ID == id {
				found = f
				return nil
			}
		}
		return fmt.Errorf("the record %.200q: %w", id, ports.ErrNotFound)
	})
	return found, err
}

// RecordsOf implements ports.Desk.
func (d *Desk) RecordsOf(ctx context.Context, jobID string) (all []ports.Filed, err error) {
	err = d.s.locked(ctx, func() error {
		for _, f := range slices.Backward(d.s.records) {
			if f.Record.Snapshot.JobID == jobID {
				all = append(all, f)
			}
		}
		return nil
	})
	return all, err
}

// Stopped implements ports.Desk.
func (d *Desk) Stopped(ctx context.Context) (on bool, err error) {
	err = d.s.locked(ctx, func() error { on = d.s.stopAll; return nil })
	return on, err
}

// SetStopped implements ports.Desk.
func (d *Desk) SetStopped(ctx context.Context, on bool) error {
	return d.s.locked(ctx, func() error { d.s.stopAll = on; return nil })
}
