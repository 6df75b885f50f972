package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
)

type explainCommand struct {
	Record string `arg:"" name:"RECORD.json" help:"A record, as attempt, inspect and work keep them."`
	JSON   bool   `help:"Print the story as one JSON document."`
}

func (explainCommand) Help() string {
	return `Tells each question in order, what was answered, where it was decided, and what
to do about it. Nothing is asked again.

Example:

  reclaim explain attempt.json`
}

// chapter is one question of a story.
type chapter struct {
	Question string   `json:"question"` // its name on the wire
	Asked    string   `json:"asked"`
	Answer   []string `json:"answer"`
	Decided  bool     `json:"decided"` // the attempt ended here
}

type story struct {
	Target  core.Target `json:"target"`
	Result  core.Result `json:"result"`
	Opening string      `json:"opening"`
	Story   []chapter   `json:"story"`
	Ending  string      `json:"ending"`
	Replay  string      `json:"replay"` // empty when it replays the same
}

func (c explainCommand) Run(t *terminal) error {
	record, err := readRecord(c.Record)
	if err != nil {
		return err
	}
	s := tell(record)
	if c.JSON {
		return t.json(s)
	}
	t.printf("%s\n%s\n\n", clean(place(s.Target)), t.paint(outcomeStyle(s.Result.Outcome), headline(s.Result)))
	t.paragraph("", s.Opening)
	for i, chapter := range s.Story {
		t.printf("\n%2d. %s\n", i+1, t.paint(strong, chapter.Asked))
		for _, line := range chapter.Answer {
			t.paragraph("    ", line)
		}
		if chapter.Decided {
			t.printf("    %s\n", t.paint(outcomeStyle(s.Result.Outcome), "This decided it."))
		}
	}
	t.printf("\n")
	t.paragraph("", s.Ending)
	t.cures(s.Result.Cure)
	if s.Replay != "" {
		t.printf("\n")
		t.paragraph("", "Replayed today it differs: "+s.Replay)
	}
	return nil
}

func tell(r core.Record) story {
	s := story{Target: r.Snapshot.Target, Result: r.Result, Story: []chapter{}, Replay: differs(r, replayOf(r))}
	if s.Result.Cure == nil {
		s.Result.Cure = []core.Remedy{}
	}
	if s.Result.Checkouts == nil {
		s.Result.Checkouts = []core.Checkout{}
	}
	s.Opening = opening(r.Snapshot)
	for _, e := range r.Transcript {
		s.Story = append(s.Story, chapter{Question: core.QueryName(e.Query), Asked: asked(e.Query), Answer: answered(e)})
	}
	pending, open := core.Next(r.Snapshot, r.Transcript).(core.Ask)
	if n := len(s.Story); n > 0 && !open {
		s.Story[n-1].Decided = true
	}
	s.Ending = finale(r, pending, open)
	return s
}

func opening(s core.Snapshot) string {
	text := fmt.Sprintf("Task %s ended (%s). Attempt %d of job %s looked at its directory on %s.",
		s.TaskID, s.Trigger, s.Attempt, s.JobID, time.Unix(s.At, 0).UTC().Format("2 January 2006 at 15:04 UTC"))
	if s.Target.Enabled {
		text += " When it was made, the executor profile had opted in."
	} else {
		text += " When it was made, the executor profile had not opted in."
	}
	if s.Target.Disposable != "" {
		text += " Build output of these kinds might go with it: " + strings.ReplaceAll(s.Target.Disposable, ",", ", ") + "."
	}
	switch s.Hook {
	case core.HookRan:
		text += " The profile's cleanup script had run to its end."
	case core.HookNone:
		text += " The profile has no cleanup script."
	default:
		text += " The profile's cleanup script had not run to its end."
	}
	if s.Begun {
		text += " An earlier attempt had begun to remove it."
	}
	return text
}

func asked(q core.Query) string {
	switch q := q.(type) {
	case core.Owner:
		if q.Look == core.LastLook {
			return "A last look: is the directory still the task's alone?"
		}
		return "Has the task ended, and is the directory its own?"
	case core.Rule:
		if q.Facts.Moment == core.RemoveNow {
			return "Does the policy allow the removal?"
		}
		return "Does the policy allow a connection?"
	case core.Greet:
		return "Who is the host, and did an earlier removal leave anything?"
	case core.Settle:
		return "Put right what an earlier removal left."
	case core.Inventory:
		return "Would anything in the directory be lost?"
	case core.Begin:
		return "Record the intent, for good, before anything is touched."
	case core.Remove:
		return "Move it aside, compare it with what was judged, remove it."
	}
	return "?"
}

func answered(e core.Exchange) []string {
	switch a := e.Answer.(type) {
	case core.Ownership:
		return ownershipSays(a)
	case core.Ruling:
		return rulingSays(a)
	case core.Begun:
		return []string{"Storage: " + string(a.Ending) + detail(a.Detail)}
	case core.Heard:
		return hostSays(e.Query, a)
	}
	return nil
}

func detail(text string) string {
	if text == "" {
		return "."
	}
	return ": " + text
}

func ownershipSays(o core.Ownership) []string {
	if o.Error != "" {
		return []string{"Storage could not answer: " + o.Error}
	}
	var says []string
	if o.TaskTerminal {
		says = append(says, "The task has ended.")
	} else {
		says = append(says, "The task has not ended: it was taken up again.")
	}
	switch o.OptInNow {
	case core.On:
		says = append(says, "The profile's switch is on.")
	case core.Off:
		says = append(says, "The profile's switch is off now.")
	default:
		says = append(says, fmt.Sprintf("Whether the profile's switch is on now: %q.", o.OptInNow))
	}
	if o.Environment == nil {
		says = append(says, "There is no environment row.")
	} else {
		says = append(says, fmt.Sprintf("Environment %s belongs to task %s.", o.Environment.ID, o.Environment.TaskID))
	}
	for _, b := range o.Borrowers {
		says = append(says, fmt.Sprintf("Session %s (%s) of task %s runs in it%s.", b.SessionID, b.State, b.TaskID, ended(b.TaskTerminal)))
	}
	for _, c := range o.Claims {
		says = append(says, fmt.Sprintf("Task %s has run in %s on %s%s.", c.TaskID, c.TaskDir, c.Host, ended(c.TaskTerminal)))
	}
	if len(o.Borrowers)+len(o.Claims) == 0 {
		says = append(says, "No other task is near.")
	}
	return []string{strings.Join(says, " ")}
}

func ended(terminal bool) string {
	if terminal {
		return "; that task has ended"
	}
	return "; that task goes on"
}

func rulingSays(r core.Ruling) []string {
	if r.Error != "" {
		return []string{"The policy could not rule: " + r.Error}
	}
	var says []string
	if len(r.Passed) > 0 {
		says = append(says, "Passed: "+strings.Join(r.Passed, ", ")+".")
	}
	for _, refusal := range r.Refusals {
		says = append(says, fmt.Sprintf("The barrier %s refuses by its rule %s: %s", refusal.Barrier, refusal.Rule, refusal.Says))
	}
	for _, denial := range r.Denials {
		says = append(says, fmt.Sprintf("The operator's policy %s denies: %s", denial.Policy, denial.Says))
	}
	return says
}

func hostSays(q core.Query, h core.Heard) []string {
	switch reply := h.Reply.(type) {
	case core.NeverRan:
		return []string{"It was never asked (" + string(reply.Fault) + "): " + reply.Detail}
	case core.Unclear:
		return []string{"No clear answer (" + string(reply.Doubt) + "): " + reply.Detail}
	case core.Said:
		switch q := q.(type) {
		case core.Greet:
			return greetingSays(q, reply)
		case core.Settle:
			return settlementSays(q, reply)
		case core.Inventory:
			return inventorySays(q.Judge(reply))
		case core.Remove:
			return removalSays(q.Judge(reply))
		}
	}
	return []string{"Nothing was recorded."}
}

func greetingSays(q core.Greet, said core.Said) []string {
	g, err := q.Judge(said)
	if err != nil {
		return []string{"It cannot be read: " + err.Error()}
	}
	git := "no git"
	if g.Git != "" {
		git = "git " + strings.TrimPrefix(g.Git, "git version ")
	}
	says := fmt.Sprintf("%s, %s, home %s. The tasks' folder: %s; the directory: %s.", g.Platform, git, g.Home, g.Tasks, g.Target)
	if g.Holder == core.NoHolder {
		return []string{says + " Nothing is left of an earlier removal."}
	}
	return []string{says, strings.TrimSpace(fmt.Sprintf("An earlier removal left its holder (%s). %s", g.Holder, g.Note))}
}

func settlementSays(q core.Settle, said core.Said) []string {
	settlement, failed := q.Judge(said)
	switch {
	case failed != nil:
		return []string{string(failed.Fault) + ": " + failed.Detail}
	case settlement.Finished:
		return []string{fmt.Sprintf("What had been verified for removal was removed to its end (%s). At the directory now: %s.", bytesOf(settlement.Bytes), settlement.Target)}
	case settlement.Restored:
		return []string{fmt.Sprintf("The directory is back under its name. At the directory now: %s.", settlement.Target)}
	}
	return []string{fmt.Sprintf("At the directory now: %s.", settlement.Target)}
}

func inventorySays(e core.Evidence) []string {
	says := []string{fmt.Sprintf("%s in %d entries; checkouts judged: %d.", bytesOf(e.Bytes), e.Entries, len(e.Checkouts))}
	says = append(says, excusedSays(e.Excused)...)
	for _, c := range e.Checkouts {
		line := fmt.Sprintf("%s (%s): %s", c.Path, c.Kind, c.Verdict)
		if word := why(string(c.Reason), string(c.Cause)); word != "" {
			line += ", " + word
		}
		says = append(says, line)
	}
	for _, f := range e.Findings {
		says = append(says, why(string(f.Reason), string(f.Cause))+": "+f.Detail)
	}
	return append(says, e.Notes...)
}

// excusedSays tells what build output goes as well, a line a kind.
func excusedSays(all []core.Excused) (says []string) {
	for _, e := range all {
		says = append(says, fmt.Sprintf("Build output that may go, %s: %s in %d entries of %d trees.", e.Kind, bytesOf(e.Bytes), e.Entries, e.Trees))
	}
	return says
}

func removalSays(o core.Outcome) []string {
	switch o := o.(type) {
	case core.Removed:
		return []string{o.Detail}
	case core.Skipped:
		return []string{"It was put back: " + o.Detail}
	case core.Failed:
		return []string{string(o.Fault) + ": " + o.Detail}
	}
	return []string{"The answer says nothing."}
}

func finale(r core.Record, pending core.Ask, open bool) string {
	if open {
		switch pending.Query.(type) {
		case core.Begin:
			return "Only looked: an attempt would now begin to remove it."
		case core.Settle:
			return "Only looked: an attempt would first put right what an earlier removal left."
		case core.Remove:
			return "The record ends here: the removal may have been sent, and nobody has recorded its answer. The next attempt sees how far it came."
		}
		return "The attempt was cut short before it asked the next question: " + asked(pending.Query)
	}
	if len(r.Transcript) == 0 {
		return "It was decided before anything was asked: " + r.Result.Detail
	}
	return map[string]string{
		core.OutcomeRemoved: "So it was removed: ", core.OutcomeSkipped: "So it was kept: ", core.OutcomeFailed: "So the attempt failed: ",
		core.OutcomeCancelled: "So the attempt was called off, and nothing was touched: ",
	}[r.Result.Outcome] + r.Result.Detail
}
