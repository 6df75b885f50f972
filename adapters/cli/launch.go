package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kandev/reclaim/adapters/launch"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/core/taskpath"
	"github.com/kandev/reclaim/ports"
)

type profileAddCommand struct {
	ID            string `arg:"" help:"The new profile's id."`
	Host          string `placeholder:"[USER@]HOST[:PORT]" help:"The host its tasks run on."`
	Alias         string `placeholder:"ALIAS" help:"A Host of ~/.ssh/config. It is resolved when a task is launched and not looked up again."`
	Fingerprint   string `required:"" placeholder:"SHA256:..." help:"The host key's fingerprint."`
	Identity      string `placeholder:"FILE" type:"path" help:"The private key to log in with. Left out: the SSH agent, else ~/.ssh/id_ed25519."`
	ProxyJump     string `placeholder:"J" help:"Jump hosts on the way, as in ssh -J."`
	Shell         string `placeholder:"S" help:"The shell to run scripts with on the host. Left out: the account's login shell."`
	WorkdirRoot   string `placeholder:"ROOT" help:"Tasks get directories below ROOT/tasks/. Left out: ~/.kandev."`
	CleanupScript string `placeholder:"FILE" type:"path" help:"A script to run in the directory when its task ends, before anything is judged."`
	Name          string `help:"A name for people. Left out: the id."`
	DB            string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON          bool   `help:"Print one JSON document."`
}

func (profileAddCommand) Help() string {
	return `Reclamation is off for a new profile; reclaim profile set ID --reclaim on turns it
on for the tasks that are launched after that.

Examples:

  reclaim profile add build1 --host dev@build1 --fingerprint SHA256:...
  reclaim profile add build2 --alias build2 --fingerprint SHA256:... \
    --workdir-root /srv/kandev --cleanup-script push-all.sh`
}

func (c profileAddCommand) Run(ctx context.Context, t *terminal) error {
	p := sqlstore.NewProfile{ID: c.ID, Name: c.Name, Executor: map[string]string{"ssh_host_fingerprint": c.Fingerprint}, Profile: map[string]string{}}
	set := func(config map[string]string, key, value string) {
		if value != "" {
			config[key] = value
		}
	}
	switch {
	case strings.TrimSpace(c.ID) == "":
		return usage("a profile needs an id")
	case c.Host == "" && c.Alias == "":
		return usage("say where its tasks run: --host [USER@]HOST[:PORT], or --alias")
	case sshhost.CheckPin(c.Fingerprint) != nil:
		return notAPin(c.Fingerprint)
	}
	if c.Host != "" {
		address, err := sshhost.ParseAddress(c.Host)
		if err != nil {
			return usage("--host: %w", err)
		}
		set(p.Executor, "ssh_host", address.Host)
		set(p.Executor, "ssh_user", address.User)
		if address.Port != 0 {
			set(p.Executor, "ssh_port", strconv.Itoa(address.Port))
		}
	}
	set(p.Executor, "ssh_host_alias", c.Alias)
	set(p.Executor, "ssh_proxy_jump", c.ProxyJump)
	if c.Identity != "" {
		set(p.Executor, "ssh_identity_source", "file")
		set(p.Executor, "ssh_identity_file", c.Identity)
		if _, err := os.Stat(c.Identity); err != nil {
			t.say("reclaim: --identity %s: %s; it must be there when a task is launched or cleaned up", c.Identity, unwrapPath(err))
		}
	}
	if _, err := taskpath.ParseRoot(c.WorkdirRoot, "/home/nobody"); err != nil {
		return usage("--workdir-root: %w", err)
	}
	set(p.Profile, "ssh_workdir_root", c.WorkdirRoot)
	set(p.Profile, "ssh_shell", c.Shell)
	if c.CleanupScript != "" {
		script, err := os.ReadFile(c.CleanupScript)
		if err != nil {
			return usage("%s cannot be read: %w", c.CleanupScript, unwrapPath(err))
		}
		p.CleanupScript = string(script)
	}
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	if err := store.AddProfile(ctx, p); err != nil {
		return at("profile "+c.ID, err)
	}
	if c.JSON {
		return t.json(map[string]string{"profile": c.ID})
	}
	t.printf("%s  profile %s, reclaim off\n", t.paint(good, "added"), clean(c.ID))
	return nil
}

type taskLaunchCommand struct {
	ID         string   `arg:"" help:"The task's id; one that is not there yet is made."`
	Profile    string   `required:"" placeholder:"ID" help:"The executor profile to launch it with."`
	Repository []string `placeholder:"URL" sep:"none" help:"A repository, URL or URL#BRANCH. The first is the task's directory itself; each further one is NAME=URL, a directory in it. Left out: those of the task's last launch."`
	Title      string   `help:"What a new task is called. Left out: its id."`
	Parent     string   `placeholder:"ID" help:"The task above a new one."`
	DB         string   `name:"db" placeholder:"DSN" help:"${db}"`
	JSON       bool     `help:"Print one JSON document."`
}

func (taskLaunchCommand) Help() string {
	return `A small stand-in for a backend's own launch: it makes ROOT/tasks/task-ID on the
profile's host, checks the repositories out and starts an agent that does
nothing. A checkout that is there is used again, whatever is in it.

Examples:

  reclaim task launch fix-login --profile build1 \
    --repository https://git.example.org/app.git#main
  reclaim task launch fix-login --profile build1 --repository git@h:app.git \
    --repository lib=git@h:lib.git`
}

func (c taskLaunchCommand) Run(ctx context.Context, t *terminal) error {
	n := sqlstore.NewSession{TaskID: c.ID, Title: c.Title, ParentID: c.Parent, Profile: c.Profile}
	for i, text := range c.Repository {
		r := core.Repository{URL: text}
		if i > 0 {
			name, url, named := strings.Cut(text, "=")
			if !named {
				return usage("--repository %s: each but the first is NAME=URL", text)
			}
			r.Name, r.URL = name, url
		}
		if url, base, has := strings.Cut(r.URL, "#"); has {
			r.URL, r.Base = url, base
		}
		if info, err := os.Stat(r.URL); err == nil && info.IsDir() && !filepath.IsAbs(r.URL) {
			return usage("--repository %s: write it as the host sees it, from / on", text)
		}
		n.Repositories = append(n.Repositories, r)
	}
	if segment, err := core.LaunchSegment(c.ID); err != nil {
		return usage("task %s: %w", c.ID, err)
	} else if len(n.Repositories) > 0 {
		if err := (core.Prepare{Segment: segment, SessionID: "s", Repositories: n.Repositories}).Check(); err != nil {
			return usage("%w", err)
		}
	}
	return t.launch(ctx, c.DB, c.JSON, "task "+c.ID, func(store *sqlstore.Store) (sqlstore.Starting, error) { return store.StartSession(ctx, n) })
}

type taskResumeCommand struct {
	ID   string `arg:"" help:"The task's id."`
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

func (taskResumeCommand) Help() string {
	return `Takes up the task's last session: its directory and agent are found again, or
made again where they were reclaimed.

Example:

  reclaim task unarchive fix-login && reclaim task resume fix-login`
}

func (c taskResumeCommand) Run(ctx context.Context, t *terminal) error {
	return t.launch(ctx, c.DB, c.JSON, "task "+c.ID, func(store *sqlstore.Store) (sqlstore.Starting, error) { return store.ResumeSession(ctx, c.ID) })
}

// launch launches the session that start makes, and tells how it stands.
func (t *terminal) launch(ctx context.Context, dsn string, asJSON bool, what string, start func(*sqlstore.Store) (sqlstore.Starting, error)) error {
	store, done, err := t.ours(ctx, dsn)
	if err != nil {
		return err
	}
	defer done()
	started, err := start(store)
	if errors.Is(err, ports.ErrNotFound) {
		return usage("%s: there is none", strings.TrimSuffix(sentence(err), ": not found")) // it names which of task, parent and profile
	}
	if err != nil {
		return at(what, err)
	}
	t.progress("launching the session %s", started.SessionID)
	dialer := sshhost.New(sshhost.Options{Home: t.env["HOME"], User: t.env["USER"], AgentSocket: t.env["SSH_AUTH_SOCK"]})
	launched, err := (&launch.Launcher{Dialer: dialer, Resolve: dialer.Resolve}).Launch(ctx, launch.Order{SessionID: started.SessionID, Inputs: started.Inputs, Repositories: started.Repositories})
	if err == nil {
		err = store.SessionRuns(ctx, started.SessionID, launched.Target, launched.Metadata, launched.PID, launched.Reused)
	}
	if err != nil {
		err = fmt.Errorf("%s is not launched: %w", what, errors.Join(err, store.SessionFailed(context.WithoutCancel(ctx), started.SessionID)))
		if begun := (*launch.Begun)(nil); errors.As(err, &begun) {
			err = fmt.Errorf("%w; what it made by then stays in %s on %s: the same launch goes on from there, and nothing there is removed by it", err, begun.Dir, begun.Host)
		}
		return err
	}
	if asJSON {
		return t.json(struct {
			Task    string `json:"task"`
			Session string `json:"session"`
			Host    string `json:"host"`
			TaskDir string `json:"task_dir"`
			Reused  bool   `json:"reused"`
			Resumed bool   `json:"resumed"`
			PID     int64  `json:"pid"`
		}{started.Inputs.TaskID, started.SessionID, launched.Target.Host, launched.TaskDir, launched.Reused, launched.Resumed, launched.PID})
	}
	word, found := "launched", "checked out"
	if launched.Resumed {
		word = "resumed"
	}
	if launched.Reused {
		found = "the checkout that was there"
	}
	t.printf("%s  %s in %s on %s\n  %s; agent %d\n", t.paint(good, word), clean(what), clean(launched.TaskDir), clean(launched.Target.Host), found, launched.PID)
	return nil
}

type taskStopCommand struct {
	ID   string `arg:"" help:"The task's id."`
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

func (taskStopCommand) Help() string {
	return `The task can be resumed. Nothing is asked of its host: the directory stays as it
is, and the agent there is ended with the task, by archive or delete.

Example:

  reclaim task stop fix-login`
}

func (c taskStopCommand) Run(ctx context.Context, t *terminal) error {
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	sessions, err := store.StopTask(ctx, c.ID)
	if err != nil {
		return at("task "+c.ID, err)
	}
	if c.JSON {
		return t.json(map[string]any{"task": c.ID, "sessions": append([]string{}, sessions...)})
	}
	word := cmp.Or(map[bool]string{true: "nothing ran"}[len(sessions) == 0], "stopped")
	t.printf("%s  task %s; its directory stays\n", t.paint(good, word), clean(c.ID))
	return nil
}
