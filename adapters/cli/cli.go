// Package cli is reclaim's command line: it reads what a person or a program
// gives it, puts the questions of core to real ports, and shows what came of
// it. It decides nothing.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/kandev/reclaim/core"
)

// Invocation is one call of the command: what a process gets from its parent.
// Scripts of --local and the SSH agent still see the process's own environment
// and working directory.
type Invocation struct {
	Args   []string // without the program's name
	Env    []string // NAME=value; HOME, RECLAIM_DB, NO_COLOR are read
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// The exit statuses.
const (
	exitDone   = 0 // as hoped: removed, reclaimable, equal
	exitFailed = 1
	exitUsage  = 2 // or unreadable input; nothing was touched
	exitKept   = 3 // skipped, or cancelled
)

// exit ends a command with a status other than 0. An empty Err prints nothing:
// the output has said it.
type exit struct {
	status int
	err    error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// usage is an error of whoever called: nothing was done.
func usage(format string, args ...any) error {
	return exit{exitUsage, fmt.Errorf(format, args...)}
}

func statusOf(r core.Result) int {
	switch r.Outcome {
	case core.OutcomeRemoved, core.OutcomeReclaimable:
		return exitDone
	case core.OutcomeSkipped, core.OutcomeCancelled:
		return exitKept
	}
	return exitFailed
}

type grammar struct {
	Verbose bool `short:"v" help:"Tell on standard error what is being done: every question of inspect and attempt as it is asked, the log of work --once."`

	Demo     demoCommand     `cmd:"" help:"Show the whole job on real parts, in a temporary folder."`
	Inspect  inspectCommand  `cmd:"" help:"Say what would happen to one task directory, and why. Never removes anything."`
	Attempt  attemptCommand  `cmd:"" help:"Make one complete attempt from a case file: judge, and remove what may be removed."`
	Replay   replayCommand   `cmd:"" help:"Decide again, offline, from recorded attempts."`
	Explain  explainCommand  `cmd:"" help:"Tell a recorded attempt as a story."`
	DB       dbCommand       `cmd:"" name:"db" help:"Make the database of a stand-alone install."`
	Task     taskCommand     `cmd:"" help:"Launch, stop and end tasks, and take them up again."`
	Work     workCommand     `cmd:"" help:"The worker: run the cleanup jobs that are due."`
	Serve    serveCommand    `cmd:"" help:"The worker and the operator's console."`
	Jobs     jobsCommand     `cmd:"" help:"List cleanup jobs."`
	Job      jobCommand      `cmd:"" help:"Look at one job, retry or cancel it."`
	Kept     keptCommand     `cmd:"" help:"List what was kept, and why; have it judged again."`
	StopAll  stopAllCommand  `cmd:"" help:"Stop every removal that has not begun."`
	Profiles profilesCommand `cmd:"" help:"List the executor profiles and their switches."`
	Profile  profileCommand  `cmd:"" help:"Add a profile; turn its switch on or off."`

	Policy  policyCommand  `cmd:"" help:"Test the rules; check an operator's policy; ask for one ruling."`
	Version versionCommand `cmd:"" help:"Show the version and what decides."`
}

const description = `Decides whether a task directory on somebody else's machine may be deleted, and proves it from a record.

Does nothing unless the executor profile opted in. Exit status: 0 done as hoped, 3 kept on purpose or cancelled, 1 failed, 2 usage or unreadable input.`

// exiting is how kong's --help leaves its parser.
type exiting int

// Run carries out one command line and returns the exit status. When ctx ends
// nothing more is asked or begun; a removal that was sent is left to its host.
func Run(ctx context.Context, in Invocation) (status int) {
	t := newTerminal(in)
	defer func() {
		if code, is := recover().(exiting); is {
			status = int(code)
		}
	}()
	commands := grammar{}
	parser, err := kong.New(&commands, kong.Name("reclaim"), kong.Description(description),
		kong.Writers(t.stdout, t.stderr), kong.Exit(func(code int) { panic(exiting(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 80}),
		kong.Vars{"db": "The database: sqlite:FILE or postgres://USER@HOST/NAME. Left out: RECLAIM_DB.", "kinds": kindWords()},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t))
	if err != nil {
		return t.fail(err)
	}
	args := in.Args
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // as other programs have it
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return t.fail(exit{exitUsage, fmt.Errorf("%s; see %s --help", misused(err), where(err))})
	}
	t.verbose = commands.Verbose
	t.watching = t.watching || commands.Verbose
	err = parsed.Run()
	if t.stdout.err != nil && err == nil {
		err = fmt.Errorf("what was to be told could not be written: %w", t.stdout.err)
	}
	return t.fail(err)
}

// where is the command that a usage error is of.
func where(err error) string {
	command := "reclaim"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			command += " " + strings.Join(commandPath(node), " ")
		}
	}
	return command
}

// commandPath is the words that lead to a command.
func commandPath(node *kong.Node) []string {
	var path []string
	for ; node != nil && node.Type == kong.CommandNode; node = node.Parent {
		path = append([]string{node.Name}, path...)
	}
	return path
}

// fail prints an error in one sentence and returns its status; nil is 0.
func (t *terminal) fail(err error) int {
	if err == nil {
		return exitDone
	}
	status := exitFailed
	var e exit
	if errors.As(err, &e) {
		status = e.status
		if e.err == nil {
			return status
		}
	}
	t.say("reclaim: %s", err)
	return status
}
