package cli

import (
	"context"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
)

type replayCommand struct {
	Records []string `arg:"" name:"RECORD.json" help:"Records, as attempt, inspect and work keep them."`
	JSON    bool     `help:"Print what came of it as one JSON document."`
}

func (replayCommand) Help() string {
	return `Runs today's decision over the recorded answers; no host, no storage and no clock
is asked. Exit status 0 only if every outcome is the recorded one: reason, cause,
fault and, by the same core, every word. What today's policy would rule
differently is told apart and changes nothing.

Examples:

  reclaim replay attempt.json
  reclaim replay records/*.json --json`
}

// replayed is what one record came to, again.
type replayed struct {
	Record   string       `json:"record"` // the file
	Same     bool         `json:"same"`
	Detail   string       `json:"detail"` // how it differs, or why it cannot be read
	Recorded *core.Result `json:"recorded"`
	Replayed *core.Result `json:"replayed"`
	Drift    []string     `json:"drift"` // what today's policy rules otherwise
	unread   bool
}

func (c replayCommand) Run(ctx context.Context, t *terminal) error {
	rules, err := policy.New()
	if err != nil {
		return err
	}
	all := []replayed{}
	for _, path := range c.Records {
		r := replayed{Record: path, Drift: []string{}}
		record, err := readRecord(path)
		if err != nil {
			r.Detail, r.unread = err.Error(), true
		} else {
			again := replay.Again(record)
			r.Recorded, r.Replayed = &record.Result, &again.Result
			r.Detail = again.Differs
			r.Same = r.Detail == ""
			r.Drift = replay.Drift(ctx, rules, record.Transcript)
		}
		all = append(all, r)
	}
	if c.JSON {
		if err := t.json(map[string]any{"replays": all}); err != nil {
			return err
		}
	}
	status := exitDone
	for _, r := range all {
		if !c.JSON {
			t.replayed(r)
		}
		switch {
		case r.unread:
			if c.JSON {
				t.say("reclaim: %s", r.Detail)
			}
			status = exitUsage
		case !r.Same && status == exitDone:
			status = exitFailed
		}
	}
	if status != exitDone {
		return exit{status: status}
	}
	return nil
}

func (t *terminal) replayed(r replayed) {
	switch {
	case r.unread:
		t.say("reclaim: %s", r.Detail)
		return
	case r.Same:
		t.printf("%s  %s\n", t.paint(good, "the same"), clean(r.Record))
	default:
		t.printf("%s  %s\n", t.paint(bad, "differs "), clean(r.Record))
		t.paragraph("  ", r.Detail)
	}
	t.paragraph("  ", headline(*r.Replayed)+": "+r.Replayed.Detail)
	for _, d := range r.Drift {
		t.paragraph("  ", "today's policy rules otherwise: "+d)
	}
}
