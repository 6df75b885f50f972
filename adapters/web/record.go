package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// row is one question of a record, for people.
type row struct {
	Number   int
	Name     string // on the wire
	Asked    string
	Answer   []string
	Findings []core.Finding
	Checks   []core.Checkout
	Lines    []string // what a script said, decoded
	Raw      []string // question and answer as recorded
	Decides  bool
}

type recordPage struct {
	Filed    ports.Filed
	Result   core.Result
	Opening  []string
	Rows     []row
	Pending  string // the question that was not asked any more
	Changed  *comparison
	Replayed *replayed
}

func (c *Console) record(r *http.Request) (answer, error) {
	filed, err := c.Store.Record(r.Context(), r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	page := story(filed)
	page.Changed = c.previews.compare(filed.Record)
	a := answer{page: "record", nav: "kept", title: "Record"}
	if r.FormValue("replay") != "" {
		page.Replayed = c.replay(r.Context(), filed.Record)
		a.fragment = "replayed"
	}
	a.body = page
	return a, nil
}

// replayed is what deciding again came to.
type replayed struct {
	Same    bool
	Says    string
	Differs []string
	Core    bool // another core decides today than decided then
	Policy  bool // likewise the policy
}

// replay decides again from the record, and has the policy rule again over the
// recorded facts.
func (c *Console) replay(ctx context.Context, r core.Record) *replayed {
	out := &replayed{Core: r.Core != core.DigestFor(r.Snapshot)}
	_, err := core.Replay(r.Snapshot, r.Transcript)
	var diverged *core.Diverged
	if errors.As(err, &diverged) {
		out.Differs = append(out.Differs, diverged.Error())
	}
	now := core.Conclude(r.Snapshot, r.Transcript)
	for _, field := range []struct {
		name      string
		then, now any
	}{
		{"outcome", r.Result.Outcome, now.Outcome}, {"reason", r.Result.Reason, now.Reason}, {"cause", r.Result.Cause, now.Cause},
		{"fault", r.Result.Fault, now.Fault}, {"final", r.Result.Final, now.Final}, {"detail", r.Result.Detail, now.Detail},
	} {
		if field.then != field.now {
			out.Differs = append(out.Differs, fmt.Sprintf("%s: recorded %q, today %q", field.name, fmt.Sprint(field.then), fmt.Sprint(field.now)))
		}
	}
	if c.Policy != nil {
		for i, e := range r.Transcript {
			asked, isRule := e.Query.(core.Rule)
			then, isRuling := e.Answer.(core.Ruling)
			if !isRule || !isRuling {
				continue
			}
			today := c.Policy.Rule(ctx, asked.Facts)
			out.Policy = out.Policy || today.Digest != then.Digest
			today.Digest = then.Digest
			if !reflect.DeepEqual(today, then) {
				out.Differs = append(out.Differs, fmt.Sprintf("question %d: today's policy rules otherwise", i+1))
			}
		}
	}
	out.Same = len(out.Differs) == 0
	out.Says = outcomeSays(now.Outcome)
	return out
}

func story(filed ports.Filed) recordPage {
	r := filed.Record
	s := r.Snapshot
	page := recordPage{Filed: filed, Result: r.Result}
	page.Opening = append(page.Opening, fmt.Sprintf("Attempt %d of job %s for task %s (%s), %s.", s.Attempt, s.JobID, s.TaskID, s.Trigger, seen(time.Unix(s.At, 0))))
	if s.Target.Enabled {
		page.Opening = append(page.Opening, "When the directory was launched, the profile had opted in.")
	} else {
		page.Opening = append(page.Opening, "When the directory was launched, the profile had not opted in.")
	}
	if s.Target.Disposable != "" {
		page.Opening = append(page.Opening, "Build output of these kinds might go with it: "+strings.ReplaceAll(s.Target.Disposable, ",", ", ")+".")
	}
	switch s.Hook {
	case core.HookRan:
		page.Opening = append(page.Opening, "The profile's cleanup script ran to its end.")
	case core.HookNone:
		page.Opening = append(page.Opening, "The profile has no cleanup script.")
	default:
		page.Opening = append(page.Opening, "The profile's cleanup script did not run to its end.")
	}
	if s.Begun {
		page.Opening = append(page.Opening, "An earlier attempt had begun to remove the directory.")
	}
	for i, e := range r.Transcript {
		page.Rows = append(page.Rows, told(i+1, e))
	}
	if ask, open := core.Next(s, r.Transcript).(core.Ask); open {
		page.Pending = questionSays(ask.Query)
	} else if n := len(page.Rows); n > 0 {
		page.Rows[n-1].Decides = true
	}
	return page
}

func told(number int, e core.Exchange) row {
	out := row{Number: number, Name: core.QueryName(e.Query), Asked: questionSays(e.Query)}
	if raw, err := json.MarshalIndent(e, "", "  "); err == nil {
		out.Raw = strings.Split(string(raw), "\n")
	}
	switch a := e.Answer.(type) {
	case core.Ownership:
		out.Answer = ownershipSays(a)
	case core.Ruling:
		out.Answer = rulingSays(a)
	case core.Begun:
		out.Answer = []string{strings.TrimSuffix("Storage: "+string(a.Ending)+". "+a.Detail, " ")}
	case core.Heard:
		out.heard(e.Query, a)
	}
	return out
}

func questionSays(q core.Query) string {
	switch q := q.(type) {
	case core.Owner:
		if q.Look == core.LastLook {
			return "A last look: does the directory still belong to this task alone?"
		}
		return "Has the task ended, and does the directory belong to it alone?"
	case core.Rule:
		if q.Facts.Moment == core.RemoveNow {
			return "Does the policy allow the removal?"
		}
		return "Does the policy allow a connection?"
	case core.Greet:
		return "Which host is this, what stands there, and did an earlier removal leave anything?"
	case core.Settle:
		return "Put right what an earlier removal left."
	case core.Inventory:
		return "Would anything in the directory be lost?"
	case core.Begin:
		return "Record the intent before anything is touched."
	case core.Remove:
		return "Set it aside, compare it with what was judged, remove it."
	}
	return "An unknown question"
}

func ownershipSays(o core.Ownership) []string {
	if o.Error != "" {
		return []string{"Storage could not answer: " + o.Error}
	}
	says := []string{"The task has not ended (any more)."}
	if o.TaskTerminal {
		says[0] = "The task has ended."
	}
	says = append(says, "The profile's switch now: "+string(o.OptInNow)+".")
	if o.Environment == nil {
		says = append(says, "The environment's row is gone.")
	} else {
		says = append(says, fmt.Sprintf("Environment %s belongs to task %s.", o.Environment.ID, o.Environment.TaskID))
	}
	for _, b := range o.Borrowers {
		says = append(says, fmt.Sprintf("Session %s of task %s (%s) runs in this environment; that task has ended: %s.", b.SessionID, b.TaskID, b.State, yesNo(b.TaskTerminal)))
	}
	for _, claim := range o.Claims {
		says = append(says, fmt.Sprintf("Task %s has run in %s on %s; ended: %s, stopped: %s, opted in: %s, being cleaned up: %s.",
			claim.TaskID, claim.TaskDir, claim.Host, yesNo(claim.TaskTerminal), yesNo(claim.Stopped), yesNo(claim.OptedIn), yesNo(claim.CleanupOpen)))
	}
	if len(o.Borrowers)+len(o.Claims) == 0 {
		says = append(says, "No other task runs or has run there.")
	}
	return says
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func rulingSays(r core.Ruling) (says []string) {
	if r.Error != "" {
		says = append(says, "The policy could not rule: "+r.Error)
	}
	for _, refusal := range r.Refusals {
		says = append(says, fmt.Sprintf("The barrier %s refuses (%s): %s", refusal.Barrier, refusal.Rule, refusal.Says))
	}
	for _, denial := range r.Denials {
		verb := "denies"
		if denial.Retry {
			verb = "holds"
		}
		says = append(says, fmt.Sprintf("The operator's policy %s %s it: %s", denial.Policy, verb, denial.Says))
	}
	if len(says) == 0 && r.Allow {
		says = append(says, "Allowed.")
	} else if len(says) == 0 {
		says = append(says, "Not allowed, and no reason is given.")
	}
	if len(r.Passed) > 0 {
		says = append(says, "Barriers passed: "+strings.Join(r.Passed, ", ")+".")
	}
	if r.Digest != "" {
		says = append(says, "Policy "+r.Digest+".")
	}
	return says
}

func (out *row) heard(q core.Query, h core.Heard) {
	switch reply := h.Reply.(type) {
	case core.NeverRan:
		out.Answer = []string{"It was not asked: " + faultSays(reply.Fault) + " (" + string(reply.Fault) + "). " + reply.Detail}
	case core.Unclear:
		out.Answer = []string{"No clear answer (" + string(reply.Doubt) + "): " + reply.Detail}
	case core.Said:
		out.Lines = decoded(reply.Body)
		out.said(q, reply)
		if reply.Exit != 0 {
			out.Answer = append(out.Answer, fmt.Sprintf("The script ended with status %d.", reply.Exit))
		}
	}
}

func (out *row) said(q core.Query, said core.Said) {
	switch q := q.(type) {
	case core.Greet:
		g, err := q.Judge(said)
		if err != nil {
			out.Answer = []string{"The answer cannot be read: " + err.Error()}
			return
		}
		git := g.Git
		if git == "" {
			git = "none"
		}
		out.Answer = []string{fmt.Sprintf("Platform %s, git %s, home %s.", g.Platform, git, g.Home),
			fmt.Sprintf("The directory that holds the tasks: %s. The target: %s.", g.Tasks, g.Target), "Left by an earlier removal: " + string(g.Holder) + ". " + g.Note}
	case core.Settle:
		settled, failed := q.Judge(said)
		switch {
		case failed != nil:
			out.Answer = []string{string(failed.Fault) + ": " + failed.Detail}
		case settled.Finished:
			out.Answer = []string{"The interrupted removal was finished."}
		case settled.Restored:
			out.Answer = []string{"The directory is back under its name."}
		default:
			out.Answer = []string{"The target now: " + string(settled.Target) + "."}
		}
	case core.Inventory:
		e := q.Judge(said)
		out.Findings, out.Checks = e.Findings, e.Checkouts
		verdict := "Something would be lost, or it is not certain that nothing would."
		if e.Safe() {
			verdict = "Nothing would be lost."
		}
		out.Answer = []string{verdict, fmt.Sprintf("%d entries, %s.", e.Entries, bytesOf(e.Bytes))}
		if len(e.Excused) > 0 {
			out.Answer = append(out.Answer, "Build output that may go: "+core.ExcusedText(e.Excused)+".")
		}
		out.Answer = append(out.Answer, e.Notes...)
	case core.Remove:
		switch o := q.Judge(said).(type) {
		case core.Removed:
			out.Answer = []string{strings.TrimSpace(o.Detail), fmt.Sprintf("%d entries, %s.", o.Entries, bytesOf(o.Bytes))}
		case core.Skipped:
			out.Answer = []string{"Kept: " + o.Detail}
			out.Findings = append([]core.Finding{o.Finding}, o.Others...)
		case core.Failed:
			out.Answer = []string{"Failed: " + faultSays(o.Fault) + ". " + o.Detail}
		default:
			out.Answer = []string{"The answer says nothing."}
		}
	}
}

// decoded is a script's answer with the bytes that came from the host written
// out, a line each.
func decoded(body string) []string {
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	for i, line := range lines {
		words := strings.Split(line, " ")
		for j, word := range words {
			if hexed, is := strings.CutPrefix(word, "~"); is {
				if raw, err := hex.DecodeString(hexed); err == nil {
					words[j] = string(raw)
				}
			} else if text, is := strings.CutPrefix(word, "="); is {
				words[j] = text
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return lines
}
