package memstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

func (s *Store) due() []ports.Job {
	now := s.now()
	busy := map[string]bool{}
	for _, j := range s.jobs {
		busy[j.TaskID] = busy[j.TaskID] || j.State == ports.Running
	}
	return sorted(s.jobs, func(j ports.Job) bool {
		return j.Trigger.Reclaims() && !busy[j.TaskID] && (j.State == ports.Pending || j.State == ports.RetryWait && !j.NextAttemptAt.After(now))
	}, func(a, b ports.Job) int { return a.CreatedAt.Compare(b.CreatedAt) })
}

// Due implements ports.Jobs.
func (s *Store) Due(ctx context.Context, limit int) (all []ports.Job, err error) {
	err = s.locked(ctx, func() error {
		all = s.due()
		all = all[:min(limit, len(all))]
		return nil
	})
	return all, err
}

// Lease implements ports.Jobs.
func (s *Store) Lease(ctx context.Context, worker string, hold []string) (job ports.Job, ok bool, err error) {
	err = s.locked(ctx, func() error {
		for _, j := range s.due() {
			if names(j, hold) {
				continue
			}
			j.State, j.Attempts, j.NextAttemptAt, j.UpdatedAt = ports.Running, j.Attempts+1, time.Time{}, s.now()
			s.jobs[j.ID], s.leases[j.ID] = j, lease{j.Attempts, worker, s.now()}
			job, ok = j, true
			return nil
		}
		return nil
	})
	return job, ok, err
}

func names(j ports.Job, hosts []string) bool {
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	return err == nil && slices.ContainsFunc(snapshot.Targets(), func(t core.JobTarget) bool { return slices.Contains(hosts, t.Target.Host) })
}

// held is the job of a token, while the token holds it.
func (s *Store) held(token ports.Token) (ports.Job, error) {
	j, err := s.running(token.JobID, token.Attempt)
	if l := s.leases[token.JobID]; err == nil && (l.attempt != token.Attempt || l.worker != token.Worker) {
		err = ports.ErrRowLost
	}
	return j, err
}

// Beat implements ports.Jobs.
func (s *Store) Beat(ctx context.Context, token ports.Token) error {
	return s.locked(ctx, func() error {
		if _, err := s.held(token); err != nil {
			return err
		}
		s.leases[token.JobID] = lease{token.Attempt, token.Worker, s.now()}
		return nil
	})
}

// Recover implements ports.Jobs.
func (s *Store) Recover(ctx context.Context, stale time.Duration) (recovered int, err error) {
	err = s.locked(ctx, func() error {
		now := s.now()
		for id, j := range s.jobs {
			l, leased := s.leases[id]
			if j.State != ports.Running || !j.Trigger.Reclaims() || leased && l.attempt == j.Attempts && l.beat.After(now.Add(-stale)) {
				continue
			}
			j.State, j.NextAttemptAt, j.UpdatedAt = ports.RetryWait, now, now
			if snapshot, err := core.ParseJobSnapshot(j.Snapshot); err == nil && snapshot.Held() {
				j = uncounted(j)
			}
			s.jobs[id] = j
			recovered++
		}
		return nil
	})
	return recovered, err
}

// Finish implements ports.Jobs.
func (s *Store) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	return s.locked(ctx, func() error {
		j, err := s.held(token)
		if err != nil {
			return err
		}
		now := s.now()
		if end.Uncounted {
			j = uncounted(j)
		}
		j.State, j.NextAttemptAt, j.LastError, j.UpdatedAt = end.State, time.Time{}, end.Error, now
		switch end.State {
		case ports.Succeeded:
			j.LastError, j.CompletedAt = "", now
		case ports.JobFailed:
			j.CompletedAt = now
		case ports.RetryWait:
			j.NextAttemptAt = now.Add(max(end.Delay, 0))
		default:
			return fmt.Errorf("no attempt ends in the state %q", end.State)
		}
		s.put(j)
		return nil
	})
}

// uncounted notes that the job's attempt was no try, where its snapshot can hold
// that.
func uncounted(j ports.Job) ports.Job {
	if snapshot, err := core.ParseJobSnapshot(j.Snapshot); err == nil {
		if snapshot, err = snapshot.WithUncounted(); err == nil {
			j.Snapshot = snapshot.Bytes()
		}
	}
	return j
}

// put stores a job that no worker holds any more.
func (s *Store) put(j ports.Job) {
	s.jobs[j.ID] = j
	delete(s.leases, j.ID)
}

// Cancel implements ports.Jobs.
func (s *Store) Cancel(ctx context.Context, token ports.Token) error {
	return s.locked(ctx, func() error {
		j, err := s.held(token)
		if err == nil {
			s.cancel(j)
		}
		return err
	})
}

func (s *Store) cancel(j ports.Job) {
	j.State, j.NextAttemptAt, j.CompletedAt, j.UpdatedAt = ports.Cancelled, time.Time{}, s.now(), s.now()
	s.put(j)
}

// Hooked implements ports.Jobs.
func (s *Store) Hooked(ctx context.Context, token ports.Token, target core.Target, hook core.SessionHook) error {
	return s.locked(ctx, func() error {
		j, err := s.held(token)
		if err != nil {
			return err
		}
		return s.edit(j, func(snapshot core.JobSnapshot) (core.JobSnapshot, error) { return snapshot.WithHook(target, hook) })
	})
}

func (s *Store) launchesOf(task string) []Launch {
	return sorted(s.launches, func(l Launch) bool { return l.TaskID == task }, func(a, b Launch) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
}

// Sessions implements ports.Sessions.
func (s *Store) Sessions(ctx context.Context, taskID string) (all []core.Running, err error) {
	err = s.locked(ctx, func() error {
		for _, l := range s.launchesOf(taskID) {
			all = append(all, l.Running)
		}
		return nil
	})
	return all, err
}

// MarkStopped implements ports.Sessions.
func (s *Store) MarkStopped(ctx context.Context, sessionID string) error {
	return s.locked(ctx, func() error {
		if l, ok := s.launches[sessionID]; ok {
			l.Status, l.PID, l.UpdatedAt = core.Stopped, 0, s.now()
			s.launches[sessionID] = l
		}
		return nil
	})
}

// Forget implements ports.Sessions.
func (s *Store) Forget(ctx context.Context, taskID string, sessionIDs []string) error {
	return s.locked(ctx, func() error {
		for _, id := range sessionIDs {
			if s.launches[id].TaskID == taskID {
				delete(s.launches, id)
			}
		}
		return nil
	})
}

// Keep implements ports.Records.
func (s *Store) Keep(ctx context.Context, record core.Record) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("the record: %w", err)
	}
	sum := sha256.Sum256(raw)
	f := ports.Filed{ID: fmt.Sprintf("%s.%d.%s", record.Snapshot.JobID, record.Snapshot.Attempt, hex.EncodeToString(sum[:6])), Record: record}
	return s.locked(ctx, func() error {
		f.At = s.now()
		s.records = slices.DeleteFunc(s.records, func(old ports.Filed) bool { return old.ID == f.ID || old.At.Before(f.At.Add(-90*24*time.Hour)) })
		s.records = append(s.records, f)
		return nil
	})
}

// Archive implements ports.TaskEnds.
func (s *Store) Archive(ctx context.Context, taskIDs []string, cascade bool) ([]string, error) {
	return s.terminate(ctx, taskIDs, core.Archive, core.CascadeArchive, cascade)
}

// Delete implements ports.TaskEnds.
func (s *Store) Delete(ctx context.Context, taskIDs []string, cascade bool) ([]string, error) {
	return s.terminate(ctx, taskIDs, core.Delete, core.CascadeDelete, cascade)
}

// terminate does at once what takes a database three steps: in memory nothing
// comes between them.
func (s *Store) terminate(ctx context.Context, taskIDs []string, one, whole core.Trigger, cascade bool) (ids []string, err error) {
	err = s.locked(ctx, func() error {
		trigger, cascadeID := one, ""
		if cascade {
			trigger, cascadeID, taskIDs = whole, s.id("cascade"), s.trees(taskIDs)
		}
		now := s.now()
		snapshots := map[string][]byte{}
		var once []string
		var wrong []error
		for _, id := range taskIDs {
			if _, twice := snapshots[id]; twice {
				continue
			}
			snapshot, err := s.prepare(id, trigger)
			if err != nil {
				wrong = append(wrong, err)
			}
			snapshots[id], once = snapshot, append(once, id)
		}
		if len(wrong) > 0 {
			return errors.Join(wrong...)
		}
		taskIDs = once
		for _, id := range taskIDs {
			j := ports.Job{ID: s.id("job"), TaskID: id, Trigger: trigger, State: ports.Prepared, Snapshot: snapshots[id], CreatedAt: now, UpdatedAt: now}
			j.OperationID = fmt.Sprintf("%s:%s:%s", trigger, id, j.ID)
			if cascade {
				j.OperationID = fmt.Sprintf("%s:%s:%s", trigger, cascadeID, id)
			}
			s.jobs[j.ID] = j
			ids = append(ids, j.ID)
		}
		for i, id := range taskIDs {
			if trigger.Deletes() {
				s.remove(id, taskIDs)
			} else {
				row := s.tasks[id]
				row.ArchivedAt, row.Cascade = now, cascadeID
				s.tasks[id] = row
				for key, session := range s.sessions {
					if session.TaskID == id && slices.Contains([]string{"CREATED", "STARTING", "RUNNING", "WAITING_FOR_INPUT"}, session.State) {
						session.State = "CANCELLED"
						s.sessions[key] = session
					}
				}
			}
			j := s.jobs[ids[i]]
			j.State = ports.Pending
			s.jobs[j.ID] = j
		}
		return nil
	})
	return ids, err
}

func (s *Store) trees(taskIDs []string) (all []string) {
	for next := taskIDs; len(next) > 0; {
		var below []string
		for _, id := range next {
			if slices.Contains(all, id) {
				continue
			}
			all = append(all, id)
			for _, row := range sorted(s.tasks, func(t Task) bool { return t.Parent == id && t.ArchivedAt.IsZero() }, func(a, b Task) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
				below = append(below, row.ID)
			}
		}
		next = below
	}
	return all
}

func (s *Store) prepare(id string, trigger core.Trigger) ([]byte, error) {
	row, ok := s.tasks[id]
	switch {
	case !ok:
		return nil, fmt.Errorf("the task %.200q: %w", id, ports.ErrNotFound)
	case !row.ArchivedAt.IsZero() && !trigger.Deletes():
		return nil, fmt.Errorf("the task %.200q is archived already: %w", id, ports.ErrRefused)
	}
	c := core.Captured{Deletes: trigger.Deletes()}
	for _, l := range s.launchesOf(id) {
		launch, err := core.ParseLaunch(l.Metadata)
		if err != nil {
			c.Unreadable++
		}
		if l.ProfileID != "" {
			launch.Profile = l.ProfileID
		}
		launch.SessionID = l.SessionID
		launch.Ended = slices.Contains([]string{"COMPLETED", "FAILED", "CANCELLED", "IDLE"}, s.sessions[l.SessionID].State)
		c.Launches = append(c.Launches, launch)
	}
	if e := s.environmentOf(id); e != nil {
		p := s.profiles[e.ProfileID]
		c.Environment = &core.CapturedEnvironment{ID: e.ID, TaskID: e.TaskID, ExecutorType: e.ExecutorType, ExecutorProfileID: e.ProfileID,
			WorkspacePath: e.WorkspacePath, CreatedAt: e.CreatedAt.Format(time.RFC3339Nano), UpdatedAt: e.UpdatedAt.Format(time.RFC3339Nano)}
		c.Fallback = core.ExecutorTarget([]byte(p.ExecutorConfig), []byte(p.Config))
	}
	return core.Capture(c)
}

// remove deletes a task's rows; an environment that a surviving task's session
// runs in goes to that task.
func (s *Store) remove(id string, with []string) {
	for key, e := range s.environments {
		if e.TaskID != id {
			continue
		}
		heirs := sorted(s.sessions, func(b Session) bool {
			return b.EnvironmentID == e.ID && b.TaskID != id && !s.terminal(b.TaskID) && !slices.Contains(with, b.TaskID)
		}, nil)
		if len(heirs) > 0 {
			e.TaskID = heirs[0].TaskID
			s.environments[key] = e
		} else {
			delete(s.environments, key)
		}
	}
	for key, row := range s.sessions {
		if row.TaskID == id {
			delete(s.sessions, key)
		}
	}
	delete(s.tasks, id)
}

// Unarchive implements ports.TaskEnds.
func (s *Store) Unarchive(ctx context.Context, taskID string, cascade bool) error {
	return s.locked(ctx, func() error {
		row, ok := s.tasks[taskID]
		switch {
		case !ok:
			return fmt.Errorf("the task %.200q: %w", taskID, ports.ErrNotFound)
		case row.ArchivedAt.IsZero():
			return fmt.Errorf("the task %.200q is not archived: %w", taskID, ports.ErrRefused)
		}
		tasks := []Task{row}
		if cascade && row.Cascade != "" {
			tasks = sorted(s.tasks, func(t Task) bool { return t.Cascade == row.Cascade && !t.ArchivedAt.IsZero() }, nil)
		}
		var cancelled []ports.Job
		for _, t := range tasks {
			for _, j := range s.jobs {
				if j.TaskID != t.ID || j.Trigger != core.Archive && j.Trigger != core.CascadeArchive ||
					!slices.Contains([]ports.State{ports.Prepared, ports.Pending, ports.RetryWait, ports.Running}, j.State) {
					continue
				}
				if snapshot, err := core.ParseJobSnapshot(j.Snapshot); err == nil && snapshot.Removing() {
					return fmt.Errorf("the task %.200q: %w (job %s)", t.ID, ports.ErrRemoving, j.ID)
				}
				cancelled = append(cancelled, j)
			}
		}
		for _, j := range cancelled {
			s.cancel(j)
		}
		for _, t := range tasks {
			t.ArchivedAt, t.Cascade = time.Time{}, ""
			s.tasks[t.ID] = t
		}
		return nil
	})
}

// BarSession is the creation barrier: ErrRefused while the task is archived or
// a cleanup job of it has not ended, ErrNotFound when there is no such task.
func (s *Store) BarSession(ctx context.Context, taskID string) error {
	return s.locked(ctx, func() error {
		row, ok := s.tasks[taskID]
		switch {
		case !ok:
			return fmt.Errorf("the task %.200q: %w", taskID, ports.ErrNotFound)
		case !row.ArchivedAt.IsZero():
			return fmt.Errorf("the task %.200q is archived: %w", taskID, ports.ErrRefused)
		}
		for _, j := range s.jobs {
			if j.TaskID == taskID && slices.Contains([]ports.State{ports.Prepared, ports.Pending, ports.Running, ports.RetryWait, "waiting_for_clean"}, j.State) {
				return fmt.Errorf("the task %.200q is being cleaned up: %w", taskID, ports.ErrRefused)
			}
		}
		return nil
	})
}

// Reconcile implements ports.TaskEnds.
func (s *Store) Reconcile(ctx context.Context, before time.Time) (settled int, err error) {
	err = s.locked(ctx, func() error {
		for _, j := range sorted(s.jobs, func(j ports.Job) bool { return j.State == ports.Prepared && j.Trigger.Reclaims() }, nil) {
			row, there := s.tasks[j.TaskID]
			switch {
			case !there || !j.Trigger.Deletes() && !row.ArchivedAt.IsZero():
				j.State, j.LastError, j.UpdatedAt = ports.Pending, "", s.now()
				s.jobs[j.ID] = j
			case j.CreatedAt.Before(before) || strings.Contains(j.LastError, "requires reconciliation"):
				s.cancel(j)
			default:
				continue
			}
			settled++
		}
		return nil
	})
	return settled, err
}
