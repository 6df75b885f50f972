// Package launch is the small stand-in for the SSH executor's launch that a
// stand-alone backend needs: it makes a task's directory on its host, checks the
// repositories out, starts a stand-in agent, and says what the session's row
// has to hold. Whatever of a launch decides a later reclamation comes from the
// profile and the executor record; a task's own metadata decides none of it.
//
// An ordinary stop, a forced one, a failed agent and a shutdown need nothing
// here: nothing of ours runs then and no connection is made. Resume is Launch
// again: a checkout and an agent that are there are found and kept.
package launch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/core/taskpath"
	"github.com/kandev/reclaim/ports"
)

// Launcher launches sessions. Resolve makes the way to the host concrete: what an
// alias of the backend's ssh configuration stands for, where there is one, and
// what the backend's environment would fill in. It is recorded and not looked up
// again at clean-up. Nil takes an alias for the host's name and fills in nothing.
type Launcher struct {
	Dialer  ports.Dialer
	Resolve func(alias string, target core.Target) (core.Target, error)
	Limit   time.Duration // of the preparation on the host; 0 means 10 minutes
}

// Order is one session to launch.
type Order struct {
	SessionID    string
	Inputs       core.Projected
	Repositories []core.Repository // the first is the task directory itself
}

// Launched is a session that runs.
type Launched struct {
	core.Prepared
	Target   core.Target // as a job will capture it
	Metadata []byte      // of the session's executors_running row
}

// Begun is the error of a preparation that reached its host and did not end: what
// it had made by then stays there.
type Begun struct {
	Host string
	Dir  string // as the root was typed: a leading ~ is the account's home
	err  error
}

func (b *Begun) Error() string { return "preparing the directory: " + b.err.Error() }
func (b *Begun) Unwrap() error { return b.err }

// Launch prepares the directory and starts or finds the agent. An error names
// what is wrong for a person; what was prepared by then stays, and launching
// again goes on from there.
func (l *Launcher) Launch(ctx context.Context, o Order) (Launched, error) {
	metadata, err := core.Project(o.Inputs)
	if err != nil {
		return Launched{}, err
	}
	target, alias, err := core.LaunchTarget(metadata)
	if err != nil {
		return Launched{}, err
	}
	if l.Resolve != nil {
		if target, err = l.Resolve(alias, target); err != nil {
			return Launched{}, fmt.Errorf("the way to the executor's host: %w", err)
		}
	}
	target.Host = cmp.Or(target.Host, alias)
	segment, err := core.LaunchSegment(o.Inputs.TaskID)
	if err != nil {
		return Launched{}, err
	}
	q := core.Prepare{Root: target.WorkdirRoot, Segment: segment, SessionID: o.SessionID, Repositories: o.Repositories, Limit: cmp.Or(l.Limit, 10*time.Minute)}
	if err := q.Check(); err != nil {
		return Launched{}, err
	}
	host, refusal := l.Dialer.Dial(ctx, target)
	if host == nil {
		return Launched{}, fmt.Errorf("%s: %s", refusal.Fault, refusal.Detail)
	}
	defer host.Close()
	prepared, err := q.Judge(host.Run(ctx, q.Script()))
	if err != nil {
		return Launched{}, &Begun{Host: target.Host, Dir: cmp.Or(target.WorkdirRoot, taskpath.DefaultRoot) + "/tasks/" + segment, err: err}
	}
	target.TaskDir = prepared.TaskDir
	metadata, err = core.WithLaunched(metadata, target, map[string]string{
		"ssh_remote_session_dir":  prepared.TaskDir + "/.kandev/sessions/" + o.SessionID,
		"ssh_remote_agentctl_pid": fmt.Sprint(prepared.PID),
	})
	if err == nil {
		metadata, err = core.WithBaseline(metadata, prepared.Baseline)
	}
	return Launched{Prepared: prepared, Target: target, Metadata: metadata}, err
}
