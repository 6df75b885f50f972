package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/kandev/reclaim/core"
)

type attemptCommand struct {
	Case   string   `arg:"" name:"CASE.json" help:"The case file: target, stops, hook and ownership."`
	Local  bool     `help:"Run the scripts on this machine, through /bin/sh, instead of over SSH; ~ is $HOME."`
	DryRun bool     `help:"Stop before the intent is recorded; remove nothing."`
	Record string   `placeholder:"FILE" help:"Keep the record in FILE. An existing record of the same case tells whether a removal had begun."`
	Policy []string `placeholder:"FILE" sep:"none" help:"An operator's policy to ask as well; may be given more than once."`
	JSON   bool     `help:"Print the result as one JSON document."`
}

func (attemptCommand) Help() string {
	return `The command owns the removal: kill it anywhere and run it again, it finishes.
The intent is durable before anything is touched, in the record or, without
--record, in CASE.json.begun beside the case.

Examples:

  reclaim attempt case.json --dry-run
  reclaim attempt case.json --record attempt.json --json
  reclaim attempt case.json --local`
}

func (c attemptCommand) Run(ctx context.Context, t *terminal) error {
	file, err := readCase(c.Case)
	if err != nil {
		return err
	}
	intent, err := c.intentOf(file, t)
	if err != nil {
		return err
	}
	rules, err := rulesFrom(c.Policy)
	if err != nil {
		return err
	}
	if host := file.Target.Target.Host; c.Local && host != "localhost" {
		t.say("reclaim: --local: this machine is asked, not %s", host)
	}
	p := pass{rules: rules, owners: file, dialer: dialerFor(t, c.Local), reached: file.reached(), dry: c.DryRun, begin: intent.begin,
		snapshot: core.Snapshot{JobID: file.JobID, TaskID: file.TaskID, Trigger: file.Trigger, Attempt: intent.attempt,
			At: time.Now().Unix(), Begun: file.Begun || intent.begun, BegunUntil: intent.until, Hook: file.Hook, Target: file.Target.Target}}
	var record core.Record
	if file.StopsSucceeded {
		record = p.run(ctx, t)
	} else {
		record = core.NewRecord(p.snapshot, nil)
		record.Result = core.Result{TaskID: file.TaskID, JobID: file.JobID, Attempt: intent.attempt, Outcome: core.OutcomeCancelled,
			Detail: "the task's sessions were not all stopped, so nothing was asked and nothing touched", Target: p.snapshot.Target,
			Cure: []core.Remedy{{What: "stop the task's sessions, then set stops_succeeded"}}, Checkouts: []core.Checkout{}}
	}
	record.Result.Record = c.Record
	if c.Record != "" {
		if err := keep(c.Record, record); err != nil {
			record.Result.Record = ""
			return errors.Join(t.result(record.Result, c.JSON), err)
		}
	}
	if err := t.result(record.Result, c.JSON); err != nil {
		return err // nobody was told: the intent stays, and running it again tells
	}
	return intent.conclude(record)
}

func keep(path string, record core.Record) error {
	raw, err := encodeRecord(record)
	if err == nil {
		err = writeDurably(path, raw)
	}
	if err != nil {
		return errors.New("the record could not be written to " + path + ": " + unwrapPath(err).Error())
	}
	return nil
}

// intent is what an earlier run of the command left behind, and where this one
// leaves it.
type intent struct {
	begun   bool
	until   int64 // by the host's clock: how long that begin's removal may still start
	attempt int
	begin   func(core.Record) error
	// conclude forgets the intent once the outcome was told, and turns the
	// outcome into the exit status.
	conclude func(core.Record) error
}

func (c attemptCommand) intentOf(file caseFile, t *terminal) (intent, error) {
	if c.Record != "" {
		return c.intentInRecord(file)
	}
	mark := c.Case + ".begun"
	i := intent{attempt: 1}
	raw, err := os.ReadFile(mark)
	switch {
	case err == nil:
		var earlier core.Snapshot
		if err := decodeStrictly(raw, &earlier, nil); err != nil {
			return intent{}, usage("%s cannot be read: %w; it says that a removal had begun: look at the directory, then delete the file", mark, err)
		}
		if file.same(earlier) {
			i.begun, i.until, i.attempt = true, earlier.BegunUntil, earlier.Attempt+1
		} else {
			t.say("reclaim: %s is of another case (job %s, %s) and does not count", mark, earlier.JobID, earlier.Target.TaskDir)
		}
	case !os.IsNotExist(err):
		return intent{}, usage("%s cannot be read: %w", mark, unwrapPath(err))
	}
	i.begin = func(r core.Record) error {
		noted := r.Snapshot
		noted.BegunUntil = begunUntil(r)
		raw, err := json.Marshal(noted)
		if err != nil {
			return err
		}
		return writeDurably(mark, append(raw, '\n'))
	}
	i.conclude = func(r core.Record) error {
		ended := r.Result.Outcome == core.OutcomeRemoved || r.Result.Outcome == core.OutcomeSkipped || r.Result.Final
		if i.begun || begunIn(r) {
			if ended && !c.DryRun {
				if err := removeDurably(mark); err != nil {
					return err
				}
			}
		}
		return ending(r.Result)
	}
	return i, nil
}

func (c attemptCommand) intentInRecord(file caseFile) (intent, error) {
	if folder, err := os.Stat(filepath.Dir(c.Record)); err != nil || !folder.IsDir() {
		return intent{}, usage("the record cannot be kept in %s: its folder is not there", c.Record)
	}
	i := intent{attempt: 1, begin: func(r core.Record) error {
		r.Result.Record = c.Record
		return keep(c.Record, r)
	}, conclude: func(r core.Record) error { return ending(r.Result) }}
	info, err := os.Lstat(c.Record)
	switch {
	case os.IsNotExist(err):
		return i, nil
	case err != nil:
		return intent{}, usage("%s cannot be read: %w", c.Record, unwrapPath(err))
	case !info.Mode().IsRegular():
		return intent{}, usage("%s is no regular file; a record would take its place", c.Record)
	case info.Size() == 0:
		return i, nil
	}
	earlier, err := readRecord(c.Record)
	switch {
	case err != nil:
		return intent{}, usage("%w; it would be overwritten: name another file with --record", err)
	case file.same(earlier.Snapshot):
		i.begun, i.until, i.attempt = begunIn(earlier), begunUntil(earlier), earlier.Snapshot.Attempt+1
	case openEnded(earlier):
		return intent{}, usage("record %s is of another case (job %s, %s) whose removal has begun and not ended; it must not be overwritten: name another file with --record",
			c.Record, earlier.Snapshot.JobID, earlier.Snapshot.Target.TaskDir)
	}
	return i, nil
}

// ending is the exit status an outcome has.
func ending(r core.Result) error {
	if status := statusOf(r); status != exitDone {
		return exit{status: status}
	}
	return nil
}
