package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
			again := replayOf(record)
			r.Recorded, r.Replayed = &record.Result, &again
			r.Detail = differs(record, again)
			r.Same = r.Detail == ""
			r.Drift = drift(ctx, rules, record.Transcript)
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

// replayOf is what a record comes to, decided again. What was measured and not
// decided is the record's.
func replayOf(record core.Record) core.Result {
	again := core.Conclude(record.Snapshot, record.Transcript)
	again.Record, again.RoundTrips, again.DurationMS = record.Result.Record, record.Result.RoundTrips, record.Result.DurationMS
	return again
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

// differs says how today's outcome differs from the recorded one, or "". By the
// same core every word must be the same; by another one, what is decided.
func differs(record core.Record, again core.Result) string {
	was := record.Result
	var diverged *core.Diverged
	if _, err := core.Replay(record.Snapshot, record.Transcript); errors.As(err, &diverged) {
		return diverged.Error()
	}
	if was.Outcome == core.OutcomeCancelled && len(record.Transcript) == 0 {
		return "" // never started: nothing was decided
	}
	recorded, replayed := decided(was), decided(again)
	if recorded != replayed {
		return fmt.Sprintf("the record says %s, the replay %s", recorded, replayed)
	}
	if record.Core != core.DigestFor(record.Snapshot) || was.Outcome == core.OutcomeCancelled {
		return ""
	}
	x, errX := json.Marshal(was)
	y, errY := json.Marshal(again)
	if errX != nil || errY != nil || string(x) != string(y) {
		return fmt.Sprintf("it is decided as recorded (%s), but the record's own words about it are not what this core says", recorded)
	}
	return ""
}

// decided is what of a result is decided, in words.
func decided(r core.Result) string {
	text := r.Outcome
	if word := why(string(r.Reason), string(r.Cause)); word != "" {
		text += ", " + word
	}
	if r.Fault != "" {
		text += ", " + string(r.Fault)
	}
	if r.Final {
		text += ", final"
	}
	return text
}

// drift asks today's barriers about the recorded facts and tells where they
// rule otherwise. Operator policies are not in the record, so that what they
// denied is left out.
func drift(ctx context.Context, rules *policy.Policy, t core.Transcript) []string {
	told := []string{}
	for _, e := range t {
		q, is := e.Query.(core.Rule)
		was, answered := e.Answer.(core.Ruling)
		if !is || !answered || was.Error != "" {
			continue
		}
		now := rules.Rule(ctx, q.Facts)
		before, today := barriers(was), barriers(now)
		if now.Error != "" {
			today = now.Error
		}
		if before != today {
			told = append(told, fmt.Sprintf("at %s: %s, and today %s", q.Facts.Moment, before, today))
		}
	}
	return told
}

func barriers(r core.Ruling) string {
	var refused []string
	for _, refusal := range r.Refusals {
		refused = append(refused, refusal.Barrier+"/"+refusal.Rule)
	}
	slices.Sort(refused)
	passed := slices.Sorted(slices.Values(r.Passed))
	if len(refused) == 0 {
		return fmt.Sprintf("passed %v", passed)
	}
	return fmt.Sprintf("passed %v, refused %v", passed, refused)
}
