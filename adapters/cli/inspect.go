package cli

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/core/taskpath"
)

type inspectCommand struct {
	Dir         string   `arg:"" name:"TASKDIR" help:"The task directory, as its host sees it: ROOT/tasks/NAME."`
	Local       bool     `xor:"where" help:"The directory is on this machine; ~ is $$HOME."`
	Host        string   `xor:"where" placeholder:"[USER@]HOST[:PORT]" help:"The directory is on a host reached over SSH."`
	WorkdirRoot string   `placeholder:"ROOT" help:"The executor profile's workdir root. Left out, it is read from TASKDIR (what stands before /tasks/NAME)."`
	Fingerprint string   `placeholder:"SHA256:..." help:"The host key's fingerprint. Needed with --host: a host that is not proved is not asked."`
	Identity    string   `placeholder:"FILE" help:"The private key to log in with. Left out: the SSH agent, else ~/.ssh/id_ed25519."`
	ProxyJump   string   `placeholder:"J" help:"Jump hosts on the way, as in ssh -J."`
	Shell       string   `placeholder:"S" help:"The shell to run scripts with on the host. Left out: the account's login shell."`
	Disposable  string   `placeholder:"KINDS" help:"Kinds of build output that may go with it, parted by commas: ${kinds}."`
	Record      string   `placeholder:"FILE" help:"Keep the record in FILE, for replay and explain."`
	Policy      []string `placeholder:"FILE" sep:"none" help:"An operator's policy to ask as well; may be given more than once."`
	JSON        bool     `help:"Print the result as one JSON document."`
}

func (inspectCommand) Help() string {
	return `It answers only for the directory: that the profile opted in and that the task
owns it and has ended is taken as given. Nothing is changed, on the host or here.

Examples:

  reclaim inspect ~/.kandev/tasks/fix-login --local
  reclaim inspect /home/dev/.kandev/tasks/fix-login --host dev@build1 \
    --fingerprint SHA256:...
  ssh-keyscan build1 | ssh-keygen -lf -     # shows the fingerprint to compare`
}

func (c inspectCommand) Run(ctx context.Context, t *terminal) error {
	target, err := c.target(t)
	if err != nil {
		return err
	}
	if target.Disposable, err = core.WriteDisposable(c.Disposable); err != nil {
		return usage("--disposable: %w", err)
	}
	task := "inspect"
	environment := &core.Environment{ID: "inspect", TaskID: task}
	rules, err := rulesFrom(c.Policy)
	if err != nil {
		return err
	}
	p := pass{rules: rules, dry: true, dialer: dialerFor(t, c.Local), reached: target,
		owners: caseFile{Ownership: core.Ownership{TaskTerminal: true, OptInNow: core.On, Disposable: target.Disposable, Environment: environment}},
		snapshot: core.Snapshot{JobID: "inspect", TaskID: task, Trigger: core.Archive, Attempt: 1, At: time.Now().Unix(),
			Hook: core.HookNone, Environment: environment, Target: target}}
	record := p.run(ctx, t)
	record.Result.Record = c.Record
	if c.Record != "" {
		if err := keep(c.Record, record); err != nil {
			return err
		}
	}
	if err := t.result(record.Result, c.JSON); err != nil {
		return err
	}
	return ending(record.Result)
}

func (c inspectCommand) target(t *terminal) (core.Target, error) {
	target := core.Target{TaskDir: c.Dir, WorkdirRoot: c.WorkdirRoot, Enabled: true, Fingerprint: c.Fingerprint,
		ProxyJump: c.ProxyJump, Shell: c.Shell, IdentityFile: c.Identity}
	if !c.Local && c.Host == "" {
		return core.Target{}, usage("say where the directory is: --local, or --host [USER@]HOST[:PORT]")
	}
	if c.Local {
		target.Host = "localhost"
		if rest, is := strings.CutPrefix(c.Dir, "~/"); is && t.env["HOME"] != "" {
			target.TaskDir = t.env["HOME"] + "/" + rest
		} else if c.Dir != "" && !filepath.IsAbs(c.Dir) {
			absolute, err := filepath.Abs(c.Dir)
			if err != nil {
				return core.Target{}, err
			}
			target.TaskDir = absolute
		}
	} else {
		address, err := sshhost.ParseAddress(c.Host)
		if err != nil {
			return core.Target{}, usage("--host: %w", err)
		}
		target.Host, target.Port, target.User = address.Host, address.Port, address.User
		if c.Fingerprint != "" && sshhost.CheckPin(c.Fingerprint) != nil {
			return core.Target{}, notAPin(c.Fingerprint)
		}
		if c.Fingerprint == "" {
			return core.Target{}, usage("--host needs --fingerprint: a host that is not proved is not asked. See the key with `ssh-keyscan %s | ssh-keygen -lf -`, and compare it with what the host's keeper says", keyscan(address))
		}
		if !strings.HasPrefix(c.Dir, "/") {
			return core.Target{}, usage("write TASKDIR as the host sees it, from / on (is %q)", c.Dir)
		}
		if c.Identity != "" {
			target.IdentitySource = "file"
		}
	}
	if target.WorkdirRoot == "" {
		target.WorkdirRoot = rootIn(target.TaskDir)
	}
	return target, nil
}

func keyscan(a sshhost.Address) string {
	if a.Port != 0 && a.Port != 22 {
		return "-p " + strings.TrimPrefix(a.String()[strings.LastIndexByte(a.String(), ':'):], ":") + " " + a.Host
	}
	return a.Host
}

// rootIn is the workdir root that a directory of the right shape tells; blank,
// which means ~/.kandev, where it tells none.
func rootIn(dir string) string {
	segment, err := taskpath.LastSegment(dir)
	if err != nil {
		return ""
	}
	above := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(dir, "/"), segment), "/")
	return strings.TrimRight(strings.TrimSuffix(above, "tasks"), "/")
}

func notAPin(fingerprint string) error {
	return usage("--fingerprint is %q; it must be SHA256: and 43 characters, as ssh-keygen -lf shows it", fingerprint)
}
