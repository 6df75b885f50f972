package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Stopping is the stop phase of a cleanup job: for every session of the task
// its captured cleanup script, once, over SSH on the intact directory, also
// where the profile had not opted in; then its helper is ended. A session that
// was stopped before and has no script costs no connection.
type Stopping struct {
	Dialer   ports.Dialer
	Sessions ports.Sessions
	Jobs     interface {
		Hooked(ctx context.Context, token ports.Token, target core.Target, hook core.SessionHook) error
	}
	Log *slog.Logger // nil is silent

	HookLimit time.Duration // of one cleanup script; 0 means 60 s
	EndLimit  time.Duration // of ending one helper; 0 means 20 s
}

// chore is what one session still needs.
type chore struct {
	session string
	target  core.Target
	script  string // to be run; empty when there is none or it ran
	live    bool
	row     bool // it has a row
}

// Stop runs what is due, session after session. A host that cannot be reached,
// a helper that cannot be ended and a row that cannot be written are failed
// stops: the session's row stays and the phase does not run. A cleanup script
// that did not run to its end is no failed stop: it keeps the directory.
func (s *Stopping) Stop(ctx context.Context, j ports.Job, token ports.Token) (Stopped, error) {
	chores, hook, err := s.chores(ctx, j)
	if err != nil {
		return Stopped{}, err
	}
	stopped := Stopped{Stops: job.StopsSucceeded}
	sessions := map[core.Target]ports.Session{}
	defer func() {
		for _, session := range sessions {
			session.Close()
		}
	}()
	var errs []error
	for _, c := range chores {
		ran, err := s.do(ctx, c, token, sessions)
		if err != nil {
			errs = append(errs, fmt.Errorf("stopping the session %s: %w", c.session, err))
			stopped.Stops = job.StopsFailed
			if errors.Is(err, ports.ErrRowLost) || ctx.Err() != nil {
				break
			}
			continue
		}
		hook = worse(hook, ran)
		if c.row {
			stopped.Sessions = append(stopped.Sessions, c.session)
		}
	}
	stopped.Hook = hook
	return stopped, errors.Join(errs...)
}

// Look says how far an earlier stop phase came. A cleanup script that still has
// to run counts as not run: what it would do to the directory is not known yet.
func (s *Stopping) Look(ctx context.Context, j ports.Job) (Stopped, error) {
	chores, hook, err := s.chores(ctx, j)
	if err != nil {
		return Stopped{}, err
	}
	looked := Stopped{Stops: job.StopsSucceeded}
	for _, c := range chores {
		if c.script != "" {
			hook = worse(hook, core.HookFailed)
			looked.First = append(looked.First, "run the cleanup script of session "+c.session)
		}
		if c.live {
			looked.First = append(looked.First, "stop the agent of session "+c.session)
		}
	}
	looked.Hook = hook
	return looked, nil
}

// chores are the task's sessions with what each still needs, and what became of
// the cleanup scripts that need nothing more.
func (s *Stopping) chores(ctx context.Context, j ports.Job) ([]chore, core.Hook, error) {
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return nil, "", fmt.Errorf("the job's snapshot: %w", err)
	}
	targets := snapshot.Targets()
	if len(targets) == 0 {
		return nil, core.HookNone, nil // a row without targets does nothing
	}
	rows, err := s.Sessions.Sessions(ctx, j.TaskID)
	if err != nil {
		return nil, "", fmt.Errorf("the task's sessions cannot be listed: %w", err)
	}
	hook := core.HookNone
	ended := map[string]core.SessionHook{}
	again := map[string]core.Target{}
	for _, t := range targets {
		for _, h := range t.Hooks {
			ended[h.SessionID] = h
			switch {
			case h.Ending == core.HookRan:
				hook = worse(hook, core.HookRan)
			case h.Script != "" && t.Outcome != core.OutcomeRemoved:
				again[h.SessionID] = t.Target
			default:
				hook = worse(hook, core.HookFailed)
			}
		}
	}
	var chores []chore
	for _, row := range rows {
		if row.Runtime != "" && row.Runtime != "ssh" {
			chores = append(chores, chore{session: row.SessionID, row: true}) // another executor's, and stopped by it
			continue
		}
		launch, err := core.ParseLaunch(row.Metadata)
		if err != nil {
			return nil, "", fmt.Errorf("the session %s: %w", row.SessionID, err)
		}
		c := chore{session: row.SessionID, target: launch.Target, live: row.Live(), row: true}
		if ended[row.SessionID].Ending != core.HookRan {
			c.script = launch.CleanupScript
		}
		if t := launch.Target; (c.live || c.script != "") && (t.Host == "" || t.TaskDir == "") {
			if c.live = false; c.script != "" { // it never came to a directory: nothing there to stop
				hook = worse(hook, core.HookFailed)
				c.script = ""
			}
		}
		delete(again, row.SessionID)
		chores = append(chores, c)
	}
	for session, target := range again {
		chores = append(chores, chore{session: session, target: target, script: ended[session].Script})
	}
	return chores, hook, nil
}

// worse is the ending that keeps more.
func worse(a, b core.Hook) core.Hook {
	for _, h := range []core.Hook{core.HookFailed, core.HookRan, core.HookNone} {
		if a == h || b == h {
			return h
		}
	}
	return core.HookFailed
}

// do gives one session what it needs, and says what became of its cleanup
// script in this pass: none where there was none to run.
func (s *Stopping) do(ctx context.Context, c chore, token ports.Token, sessions map[core.Target]ports.Session) (core.Hook, error) {
	if !c.live && c.script == "" {
		return core.HookNone, nil
	}
	way := c.target
	way.TaskDir, way.WorkdirRoot, way.Enabled = "", "", false
	host := sessions[way]
	if host == nil {
		session, refusal := s.Dialer.Dial(ctx, c.target)
		if session == nil {
			return "", fmt.Errorf("%s: %s", refusal.Fault, refusal.Detail)
		}
		host, sessions[way] = session, session
	}
	hook := core.HookNone
	if c.script != "" {
		q := core.RunHook{TaskDir: c.target.TaskDir, Shell: c.target.Shell, Program: c.script, Limit: or(s.HookLimit, time.Minute)}
		reply := host.Run(ctx, q.Script())
		if ctx.Err() != nil {
			return "", cutShort(ctx) // it is run again: nobody knows how far it came
		}
		if refused, never := reply.(core.NeverRan); never {
			return "", fmt.Errorf("%s: %s", refused.Fault, refused.Detail)
		}
		ended := core.SessionHook{SessionID: c.session}
		ended.Ending, ended.Detail = q.Judge(reply)
		if hook = ended.Ending; hook != core.HookRan {
			ended.Script = c.script
		}
		s.tell(ctx, c, ended)
		if err := s.Jobs.Hooked(ctx, token, c.target, ended); err != nil {
			return "", fmt.Errorf("recording how its cleanup script ended: %w", err)
		}
		if unclear, is := reply.(core.Unclear); is && unclear.Doubt == core.ConnectionLost {
			delete(sessions, way)
			host.Close()
			if host = nil; c.live {
				session, refusal := s.Dialer.Dial(ctx, c.target)
				if session == nil {
					return "", fmt.Errorf("%s: %s", refusal.Fault, refusal.Detail)
				}
				host, sessions[way] = session, session
			}
		}
	}
	if c.live {
		q := core.EndSession{TaskDir: c.target.TaskDir, SessionID: c.session, Limit: or(s.EndLimit, 20*time.Second)}
		if err := q.Judge(host.Run(ctx, q.Script())); err != nil {
			return "", err
		}
		if c.row {
			if err := s.Sessions.MarkStopped(ctx, c.session); err != nil {
				return "", fmt.Errorf("writing that it was stopped: %w", err)
			}
		}
	}
	return hook, nil
}

func (s *Stopping) tell(ctx context.Context, c chore, h core.SessionHook) {
	if s.Log == nil {
		return
	}
	level := slog.LevelInfo
	if h.Ending != core.HookRan {
		level = slog.LevelWarn
	}
	s.Log.Log(ctx, level, "cleanup script", "session_id", c.session, "host", c.target.Host, "remote_task_dir", c.target.TaskDir,
		"ending", string(h.Ending), "detail", h.Detail)
}
