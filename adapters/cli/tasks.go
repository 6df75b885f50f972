package cli

import (
	"context"
	"strings"
)

type taskCommand struct {
	Launch    taskLaunchCommand    `cmd:"" help:"Launch a session of a task: its directory, checkouts, a stand-in agent."`
	Stop      taskStopCommand      `cmd:"" help:"Put a task aside; its directory stays."`
	Resume    taskResumeCommand    `cmd:"" help:"Take up a task's last session."`
	Archive   taskArchiveCommand   `cmd:"" help:"Archive tasks; their cleanup jobs become due."`
	Delete    taskDeleteCommand    `cmd:"" help:"Delete tasks; their cleanup jobs become due."`
	Unarchive taskUnarchiveCommand `cmd:"" help:"Take a task up again; its cleanup jobs are cancelled."`
}

type taskArchiveCommand struct {
	IDs     []string `arg:"" name:"ID" help:"The tasks' ids."`
	Cascade bool     `help:"With every task below them."`
	DB      string   `name:"db" placeholder:"DSN" help:"${db}"`
	JSON    bool     `help:"Print one JSON document."`
}

func (c taskArchiveCommand) Run(ctx context.Context, t *terminal) error {
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	jobs, err := store.Archive(ctx, c.IDs, c.Cascade)
	if err != nil {
		return at("archiving "+strings.Join(c.IDs, ", "), err)
	}
	return t.made(jobs, "archived", c.JSON)
}

type taskDeleteCommand struct {
	IDs     []string `arg:"" name:"ID" help:"The tasks' ids."`
	Cascade bool     `help:"With every task below them."`
	DB      string   `name:"db" placeholder:"DSN" help:"${db}"`
	JSON    bool     `help:"Print one JSON document."`
}

func (c taskDeleteCommand) Run(ctx context.Context, t *terminal) error {
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	jobs, err := store.Delete(ctx, c.IDs, c.Cascade)
	if err != nil {
		return at("deleting "+strings.Join(c.IDs, ", "), err)
	}
	return t.made(jobs, "deleted", c.JSON)
}

func (t *terminal) made(jobs []string, word string, asJSON bool) error {
	if asJSON {
		return t.json(map[string][]string{"jobs": append([]string{}, jobs...)})
	}
	for _, id := range jobs {
		t.printf("%s  job %s\n", t.paint(good, word), clean(id))
	}
	return nil
}

type taskUnarchiveCommand struct {
	ID      string `arg:"" help:"The task's id."`
	Cascade bool   `help:"With every task that was archived together with it."`
	DB      string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON    bool   `help:"Print one JSON document."`
}

func (c taskUnarchiveCommand) Run(ctx context.Context, t *terminal) error {
	store, done, err := t.ours(ctx, c.DB)
	if err != nil {
		return err
	}
	defer done()
	if err := store.Unarchive(ctx, c.ID, c.Cascade); err != nil {
		return at("task "+c.ID, err)
	}
	if c.JSON {
		return t.json(map[string]string{"task": c.ID})
	}
	t.printf("%s  task %s\n", t.paint(good, "open again"), clean(c.ID))
	return nil
}
