// Package replay reads a record again: it decides it anew, asks today's policy
// about the recorded facts, and tells it to people question by question. No
// host, no storage and no clock is asked.
//
//	again := replay.Again(record)
//	if again.Differs != "" { ... }
//	for _, chapter := range replay.Tell(record).Chapters { ... }
//
// What comes from a host stands in it as it came: whoever prints it makes it inert.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Replayed is what a record comes to, decided again.
type Replayed struct {
	Result core.Result
	// Differs says, in words, how it is not what the record says; empty when it
	// is: outcome, reason, cause, fault and, by the same core, every word.
	Differs string
	// OtherCore says that another core decides today than decided then.
	OtherCore bool
}

// Again decides a record again. What was measured and not decided is the
// record's.
func Again(record core.Record) Replayed {
	was := record.Result
	now := core.Conclude(record.Snapshot, record.Transcript)
	now.Record, now.RoundTrips, now.DurationMS = was.Record, was.RoundTrips, was.DurationMS
	r := Replayed{Result: now, OtherCore: record.Core != core.DigestFor(record.Snapshot)}
	recorded, replayed := decided(was), decided(now)
	otherwise := fmt.Sprintf("the record says %s, the replay %s", recorded, replayed)
	var diverged *core.Diverged
	_, err := core.Replay(record.Snapshot, record.Transcript)
	switch {
	case errors.As(err, &diverged) && recorded != replayed:
		r.Differs = diverged.Error() + "; " + otherwise
	case diverged != nil:
		r.Differs = diverged.Error()
	case was.Outcome == core.OutcomeCancelled && len(record.Transcript) == 0:
		// never started: nothing was decided
	case recorded != replayed:
		r.Differs = otherwise
	case r.OtherCore || was.Outcome == core.OutcomeCancelled:
	default:
		x, errX := json.Marshal(was)
		y, errY := json.Marshal(now)
		if errX != nil || errY != nil || string(x) != string(y) {
			r.Differs = fmt.Sprintf("it is decided as recorded (%s), but the record's own words about it are not what this core says", recorded)
		}
	}
	return r
}

// decided is what of a result is decided, in words.
func decided(r core.Result) string {
	text := r.Outcome
	if word := Why(r.Reason, r.Cause); word != "" {
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

// Why is a reason with its cause.
func Why(reason core.Reason, cause core.Cause) string {
	if reason == "" || cause == "" {
		return string(reason) + string(cause)
	}
	return string(reason) + " (" + string(cause) + ")"
}

// Drift asks today's barriers about the recorded facts and tells, a sentence for
// each, where they rule otherwise. Operator policies are not in a record, so what
// they denied is left out.
func Drift(ctx context.Context, rules ports.Policy, t core.Transcript) []string {
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
	passed := strings.Join(slices.Sorted(slices.Values(r.Passed)), " ")
	if len(refused) == 0 {
		return fmt.Sprintf("passed [%s]", passed)
	}
	return fmt.Sprintf("passed [%s], refused [%s]", passed, strings.Join(refused, " "))
}
