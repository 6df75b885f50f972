package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// NewProfile is an executor and its one profile, as a stand-alone install needs
// them. Reclamation is off.
type NewProfile struct {
	ID            string
	Name          string
	Executor      map[string]string // ssh_host and its like
	Profile       map[string]string // ssh_workdir_root, ssh_shell
	CleanupScript string
}

// AddProfile writes it. ErrRefused: there is one of that id.
func (s *Store) AddProfile(ctx context.Context, p NewProfile) error {
	executor, err := json.Marshal(p.Executor)
	if err != nil {
		return err
	}
	profile, err := json.Marshal(p.Profile)
	if err != nil {
		return err
	}
	return s.in(ctx, func(tx *sql.Tx) error {
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		name := cmp.Or(p.Name, p.ID)
		n, err := s.changed(ctx, tx, `INSERT INTO executors (id, name, type, config, created_at, updated_at) VALUES (?, ?, 'ssh', ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
			p.ID, name, string(executor), s.at(now), s.at(now))
		if err == nil && n != 1 {
			err = fmt.Errorf("%w: there is one already", ports.ErrRefused)
		}
		if err == nil {
			_, err = s.changed(ctx, tx, `INSERT INTO executor_profiles (id, executor_id, name, config, cleanup_script, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
				p.ID, p.ID, name, string(profile), p.CleanupScript, s.at(now), s.at(now))
		}
		return err
	})
}

// NewSession is a session to be started. A task that is not there yet is made.
type NewSession struct {
	TaskID       string
	Title        string
	ParentID     string
	Profile      string
	Repositories []core.Repository // none: the task's own
}

// Starting is a session that has its rows and nothing on its host yet, as far
// as storage knows.
type Starting struct {
	SessionID    string
	Inputs       core.Projected
	Repositories []core.Repository
}

// StartSession writes the rows of a session that is about to be launched, so
// that whatever the launch leaves on its host is somebody's. ErrRefused while
// the task is archived or being cleaned up; ErrNotFound for an unknown profile
// or parent.
func (s *Store) StartSession(ctx context.Context, n NewSession) (started Starting, err error) {
	started.SessionID = uuid.NewString()
	err = s.in(ctx, func(tx *sql.Tx) error {
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		if n.ParentID != "" {
			if err := s.BarSession(ctx, tx, n.ParentID); err != nil {
				return err
			}
		}
		metadata := "{}"
		if len(n.Repositories) > 0 {
			if metadata, err = withRepositories("{}", n.Repositories); err != nil {
				return err
			}
		}
		made, err := s.changed(ctx, tx, `INSERT INTO tasks (id, title, parent_id, metadata, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
			n.TaskID, cmp.Or(n.Title, n.TaskID), n.ParentID, metadata, s.at(now), s.at(now))
		if err == nil {
			err = s.BarSession(ctx, tx, n.TaskID)
		}
		if err == nil && made == 0 && len(n.Repositories) > 0 {
			if err = s.row(ctx, tx, `SELECT COALESCE(metadata, '') FROM tasks WHERE id = ?`, n.TaskID).Scan(&metadata); err == nil {
				if metadata, err = withRepositories(metadata, n.Repositories); err == nil {
					_, err = s.changed(ctx, tx, `UPDATE tasks SET metadata = ?, updated_at = ? WHERE id = ?`, metadata, s.at(now), n.TaskID)
				}
			}
		}
		if err != nil {
			return err
		}
		var executor string
		err = s.row(ctx, tx, `SELECT executor_id FROM executor_profiles WHERE id = ?`, n.Profile).Scan(&executor)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("the profile %.200q: %w", n.Profile, ports.ErrNotFound)
		}
		if err != nil {
			return err
		}
		environment := uuid.NewString()
		_, err = s.changed(ctx, tx, `INSERT INTO task_environments (id, task_id, executor_type, executor_id, executor_profile_id, created_at, updated_at) VALUES (?, ?, 'ssh', ?, ?, ?, ?)`,
			environment, n.TaskID, executor, n.Profile, s.at(now), s.at(now))
		if err == nil {
			_, err = s.changed(ctx, tx, `INSERT INTO task_sessions (id, task_id, state, task_environment_id, executor_id, executor_profile_id, started_at, updated_at)
				VALUES (?, ?, 'STARTING', ?, ?, ?, ?, ?)`, started.SessionID, n.TaskID, environment, executor, n.Profile, s.at(now), s.at(now))
		}
		if err != nil {
			return err
		}
		return s.starting(ctx, tx, n.TaskID, executor, n.Profile, now, &started)
	})
	return started, err
}

// ResumeSession takes up the task's newest session again. ErrRefused while the
// task is archived or being cleaned up, or was never launched.
func (s *Store) ResumeSession(ctx context.Context, task string) (started Starting, err error) {
	err = s.in(ctx, func(tx *sql.Tx) error {
		if err := s.BarSession(ctx, tx, task); err != nil {
			return err
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		var executor, profile string
		err = s.row(ctx, tx, `SELECT id, COALESCE(executor_id, ''), COALESCE(executor_profile_id, '') FROM task_sessions WHERE task_id = ? ORDER BY started_at DESC, id DESC LIMIT 1`, task).
			Scan(&started.SessionID, &executor, &profile)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: it was never launched", ports.ErrRefused)
		}
		if err == nil {
			_, err = s.changed(ctx, tx, `UPDATE task_sessions SET state = 'STARTING', completed_at = NULL, updated_at = ? WHERE id = ?`, s.at(now), started.SessionID)
		}
		if err != nil {
			return err
		}
		return s.starting(ctx, tx, task, executor, profile, now, &started)
	})
	return started, err
}

// starting writes the session's executors_running row, which says live from here
// on, and reads what the launch is made from.
func (s *Store) starting(ctx context.Context, tx *sql.Tx, task, executor, profile string, now time.Time, into *Starting) error {
	_, err := s.changed(ctx, tx, `INSERT INTO executors_running (id, session_id, task_id, executor_id, execution_profile_id, runtime, status, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, 'ssh', 'starting', ?, ?) ON CONFLICT (session_id) DO UPDATE SET status = 'starting', updated_at = excluded.updated_at`,
		uuid.NewString(), into.SessionID, task, executor, profile, s.at(now), s.at(now))
	if err != nil {
		return err
	}
	into.Inputs = core.Projected{TaskID: task, ExecutorID: executor}
	var metadata []byte
	if err := s.row(ctx, tx, `SELECT COALESCE(metadata, '') FROM tasks WHERE id = ?`, task).Scan(&metadata); err != nil {
		return err
	}
	if into.Repositories, into.Inputs.Task, err = repositoriesOf(metadata); err != nil {
		return err
	}
	if len(into.Repositories) == 0 {
		return fmt.Errorf("%w: no repository is known for it; name one", ports.ErrRefused)
	}
	if into.Inputs.Executor, err = s.config(ctx, tx, "executors", executor); err != nil {
		return err
	}
	p := core.Profile{ID: profile}
	switch err := s.row(ctx, tx, `SELECT COALESCE(config, ''), COALESCE(cleanup_script, '') FROM executor_profiles WHERE id = ?`, profile).Scan(&p.Config, &p.CleanupScript); {
	case err == nil:
		into.Inputs.Profile = &p
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	return nil
}

// SessionRuns writes what a launch came to: target and metadata are its own,
// reused says that the checkout had been there before. A directory that was
// there keeps the opt-ins and the baseline it was made with, so that a switch
// turned on since never reaches it, and what was done in it since never counts as
// what came with it. ErrRefused: the task ended meanwhile; where the launch led is
// written all the same, because what it left there is still the task's.
func (s *Store) SessionRuns(ctx context.Context, session string, target core.Target, metadata []byte, pid int64, reused bool) error {
	var ended error
	err := s.in(ctx, func(tx *sql.Tx) error {
		var task, environment string
		err := s.row(ctx, tx, `SELECT task_id, COALESCE(task_environment_id, '') FROM task_sessions WHERE id = ?`, session).Scan(&task, &environment)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("the session %.200q: %w", session, ports.ErrNotFound)
		}
		if err == nil {
			err = s.BarSession(ctx, tx, task)
		}
		if errors.Is(err, ports.ErrRefused) {
			ended, err = err, nil
		}
		if err == nil && reused {
			metadata, err = s.asItWasMade(ctx, tx, task, target.TaskDir, metadata)
		}
		if err != nil {
			return err
		}
		now, err := s.now(ctx, tx)
		if err == nil {
			_, err = s.changed(ctx, tx, `UPDATE executors_running SET status = 'running', pid = ?, metadata = ?, updated_at = ? WHERE session_id = ?`, pid, string(metadata), s.at(now), session)
		}
		if err == nil {
			_, err = s.changed(ctx, tx, `UPDATE task_environments SET status = 'ready', workspace_path = ?, updated_at = ? WHERE id = ?`, target.TaskDir, s.at(now), environment)
		}
		if err == nil && ended == nil {
			_, err = s.changed(ctx, tx, `UPDATE task_sessions SET state = 'RUNNING', updated_at = ? WHERE id = ?`, s.at(now), session)
		}
		return err
	})
	return cmp.Or(err, ended)
}

// asItWasMade takes the opt-in, and whatever else may be removed, out of a
// launch's metadata as far as not every launch known to have led to the directory
// since it was made had it, and there is one; and puts in the baseline, if those
// that have one agree.
func (s *Store) asItWasMade(ctx context.Context, tx *sql.Tx, task, dir string, metadata []byte) ([]byte, error) {
	now, err := core.ParseLaunch(metadata)
	if err != nil {
		return nil, err
	}
	known, on, kinds, baselines := false, true, now.Target.Disposable, map[string]bool{}
	saw := func(then core.Target, baseline string) {
		known, on, kinds = true, on && then.Enabled, core.BothDisposable(kinds, then.Disposable)
		if baseline != "" {
			baselines[baseline] = true
		}
	}
	err = s.each(ctx, tx, `SELECT COALESCE(metadata, '') FROM executors_running WHERE task_id = ?`, []any{task}, func(scan func(...any) error) error {
		var earlier []byte
		if err := scan(&earlier); err != nil {
			return err
		}
		launch, err := core.ParseLaunch(earlier)
		switch {
		case err != nil:
			saw(core.Target{}, "")
		case launch.Target.TaskDir == dir:
			saw(launch.Target, launch.Baseline)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the task's launches: %w", err)
	}
	gone := false
	err = s.each(ctx, tx, `SELECT COALESCE(resource_snapshot, '') FROM task_resource_cleanup_jobs WHERE task_id = ? ORDER BY created_at DESC, id`, []any{task}, func(scan func(...any) error) error {
		var raw []byte
		if err := scan(&raw); err != nil || gone {
			return err
		}
		snapshot, err := core.ParseJobSnapshot(raw)
		if err != nil {
			saw(core.Target{}, "")
			return nil
		}
		for _, t := range snapshot.Targets() {
			switch {
			case t.Target.TaskDir != dir:
			case t.Outcome == core.OutcomeRemoved:
				gone = true
			default:
				saw(t.Target, t.Baseline)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the task's earlier jobs: %w", err)
	}
	if !known {
		on, kinds = false, ""
	}
	if !on {
		if metadata, err = core.WithOptIn(metadata, false); err != nil {
			return nil, err
		}
	}
	if kinds != now.Target.Disposable {
		if metadata, err = core.WithDisposable(metadata, kinds); err != nil {
			return nil, err
		}
	}
	if len(baselines) == 1 {
		for digest := range baselines {
			return core.WithBaseline(metadata, digest)
		}
	}
	return metadata, nil
}

// SessionFailed writes that a session's launch did not come to its end. Its
// executors_running row stays as it is: something of it may be on the host.
func (s *Store) SessionFailed(ctx context.Context, session string) error {
	return s.in(ctx, func(tx *sql.Tx) error {
		now, err := s.now(ctx, tx)
		if err == nil {
			_, err = s.changed(ctx, tx, `UPDATE task_sessions SET state = 'FAILED', updated_at = ? WHERE id = ? AND state = 'STARTING'`, s.at(now), session)
		}
		return err
	})
}

// StopTask writes that nobody works on the task for now, and returns the
// sessions that ran. Nothing is asked of any host: the directory stays, and what
// runs there is ended with the task. ErrRefused: it is archived.
func (s *Store) StopTask(ctx context.Context, task string) (sessions []string, err error) {
	err = s.in(ctx, func(tx *sql.Tx) error {
		archived, err := s.hold(ctx, tx, task)
		if err != nil {
			return err
		}
		if archived {
			return fmt.Errorf("the task %.200q is archived: %w", task, ports.ErrRefused)
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		const running = `task_id = ? AND state IN ('CREATED', 'STARTING', 'RUNNING', 'WAITING_FOR_INPUT')`
		if sessions, err = column[string](ctx, s.Rows, tx, `SELECT id FROM task_sessions WHERE `+running+` ORDER BY started_at, id`, task); err != nil {
			return err
		}
		if _, err = s.changed(ctx, tx, `UPDATE task_sessions SET state = 'IDLE', updated_at = ? WHERE `+running, s.at(now), task); err != nil {
			return err
		}
		// ready: its helper is there, nobody uses it. Only the end of the task may
		// say stopped, once it has seen to that.
		_, err = s.changed(ctx, tx, `UPDATE executors_running SET status = 'ready', updated_at = ? WHERE task_id = ? AND status IN ('starting', 'running')`, s.at(now), task)
		return err
	})
	return sessions, err
}

// repository is one of a task's, under "repositories" in its metadata.
type repository struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url"`
	Base string `json:"base,omitempty"`
}

const repositoriesKey = "repositories"

func withRepositories(metadata string, all []core.Repository) (string, error) {
	object := map[string]json.RawMessage{}
	if metadata != "" {
		if err := json.Unmarshal([]byte(metadata), &object); err != nil {
			return "", fmt.Errorf("the task's metadata is no JSON object")
		}
	}
	stored := make([]repository, len(all))
	for i, r := range all {
		stored[i] = repository(r)
	}
	raw, err := json.Marshal(stored)
	if err != nil {
		return "", err
	}
	object[repositoriesKey] = raw
	whole, err := json.Marshal(object)
	return string(whole), err
}

// repositoriesOf takes the repositories out of a task's metadata: where they are
// fetched from may hold a credential, and goes no further.
func repositoriesOf(metadata []byte) (all []core.Repository, rest []byte, err error) {
	object := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &object); err != nil {
			return nil, metadata, nil // a task that cannot be read says nothing
		}
	}
	var stored []repository
	if raw, is := object[repositoriesKey]; is {
		if err := json.Unmarshal(raw, &stored); err != nil {
			return nil, nil, fmt.Errorf("the task's repositories cannot be read: %w", err)
		}
	}
	for _, r := range stored {
		all = append(all, core.Repository(r))
	}
	delete(object, repositoriesKey)
	rest, err = json.Marshal(object)
	return all, rest, err
}
