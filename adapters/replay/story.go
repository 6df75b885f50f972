package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
)

// Story is a record for people: each question, what was answered, and where it
// was decided.
type Story struct {
	Opening  []string // what was known before anything was asked, a sentence each
	Chapters []Chapter
	Ending   string
}

// Chapter is one question.
type Chapter struct {
	Query     core.Query
	Asked     string   // the question, as a person would put it
	Answer    []string // a sentence each
	Checkouts []core.Checkout
	Findings  []core.Finding
	Decided   bool // the attempt ended here
}

// Tell tells a record.
func Tell(r core.Record) Story {
	s := Story{Opening: opening(r.Snapshot)}
	for _, e := range r.Transcript {
		c := chapter(e)
		if _, owns := e.Answer.(core.Ownership); owns && assumed(r.Snapshot) {
			c.Answer = append([]string{"Nobody was asked; this is assumed."}, c.Answer...)
		}
		s.Chapters = append(s.Chapters, c)
	}
	pending, open := core.Next(r.Snapshot, r.Transcript).(core.Ask)
	if n := len(s.Chapters); n > 0 && !open {
		s.Chapters[n-1].Decided = true
	}
	s.Ending = ending(r, pending, open)
	return s
}

func opening(s core.Snapshot) []string {
	says := []string{fmt.Sprintf("Task %s ended (%s).", s.TaskID, s.Trigger),
		fmt.Sprintf("Attempt %d of job %s looked at its directory on %s.", s.Attempt, s.JobID, time.Unix(s.At, 0).UTC().Format("2 January 2006 at 15:04 UTC"))}
	switch {
	case assumed(s):
		says = append([]string{"Only the directory was asked about: that its task has ended, owns it and had opted in is taken as given."}, says[1:]...)
	case s.Target.Enabled:
		says = append(says, "When it was made, the executor profile had opted in.")
	default:
		says = append(says, "When it was made, the executor profile had not opted in.")
	}
	if s.Target.Disposable != "" {
		says = append(says, "Build output of these kinds might go with it: "+strings.ReplaceAll(s.Target.Disposable, ",", ", ")+".")
	}
	switch s.Hook {
	case core.HookRan:
		says = append(says, "The profile's cleanup script had run to its end.")
	case core.HookNone:
		says = append(says, "The profile has no cleanup script.")
	default:
		says = append(says, "The profile's cleanup script had not run to its end.")
	}
	if s.Begun {
		says = append(says, "An earlier attempt had begun to remove it.")
	}
	return says
}

// assumed says that the record is reclaim inspect's: it asked of the directory
// alone.
func assumed(s core.Snapshot) bool { return s.JobID == "inspect" && s.TaskID == "inspect" }

// Question is a question as a person would put it.
func Question(q core.Query) string {
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
	return "An unknown question."
}

func chapter(e core.Exchange) Chapter {
	c := Chapter{Query: e.Query, Asked: Question(e.Query)}
	switch a := e.Answer.(type) {
	case core.Ownership:
		c.Answer = ownership(a)
	case core.Ruling:
		c.Answer = Ruling(a)
	case core.Begun:
		c.Answer = []string{sentence("Storage: " + strings.TrimSuffix(string(a.Ending)+": "+a.Detail, ": "))}
	case core.Heard:
		c.heard(a)
	default:
		c.Answer = []string{"Nothing was recorded."}
	}
	return c
}

func ownership(o core.Ownership) []string {
	if o.Error != "" {
		return []string{sentence("Storage could not answer: " + o.Error)}
	}
	says := []string{"The task has not ended: it was taken up again."}
	if o.TaskTerminal {
		says[0] = "The task has ended."
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
		goes := "goes on"
		if b.TaskTerminal {
			goes = "has ended"
		}
		in := "it"
		if b.Lender != "" {
			in = "the environment of task " + b.Lender
		}
		says = append(says, fmt.Sprintf("Session %s (%s) of task %s runs in %s; that task %s.", b.SessionID, b.State, b.TaskID, in, goes))
	}
	for _, c := range o.Claims {
		says = append(says, claim(c))
	}
	if len(o.Borrowers)+len(o.Claims) == 0 {
		says = append(says, "No other task is near.")
	}
	return says
}

func claim(c core.Claim) string {
	if c.Unreadable {
		return fmt.Sprintf("What task %s ran in cannot be read.", c.TaskID)
	}
	var is []string
	for _, fact := range []struct {
		holds    bool
		yes, not string
	}{
		{c.TaskTerminal, "has ended", "goes on"}, {c.Stopped, "was stopped", "was not stopped"},
		{c.OptedIn, "had opted in", "had not opted in"}, {c.CleanupOpen, "is being cleaned up", "is not being cleaned up"},
	} {
		if fact.holds {
			is = append(is, fact.yes)
		} else {
			is = append(is, fact.not)
		}
	}
	return fmt.Sprintf("Task %s has run in %s on %s; that task %s.", c.TaskID, c.TaskDir, c.Host, strings.Join(is, ", "))
}

// Ruling tells what the policy said, a sentence each.
func Ruling(r core.Ruling) []string {
	if r.Error != "" {
		return []string{sentence("The policy could not rule: " + r.Error)}
	}
	var says []string
	for _, refusal := range r.Refusals {
		says = append(says, sentence(fmt.Sprintf("The barrier %s refuses by its rule %s: %s", refusal.Barrier, refusal.Rule, refusal.Says)))
	}
	for _, denial := range r.Denials {
		verb := "denies"
		if denial.Retry {
			verb = "holds"
		}
		says = append(says, sentence(fmt.Sprintf("The operator's policy %s %s it: %s", denial.Policy, verb, denial.Says)))
	}
	switch {
	case len(says) > 0:
	case r.Allow:
		says = append(says, "Yes.")
	default:
		says = append(says, "No, and no reason is given.")
	}
	if len(r.Passed) > 0 {
		says = append(says, "Barriers passed: "+strings.Join(r.Passed, ", ")+".")
	}
	return says
}

func (c *Chapter) heard(h core.Heard) {
	said, is := h.Reply.(core.Said)
	switch reply := h.Reply.(type) {
	case core.NeverRan:
		c.Answer = []string{sentence("It was never asked (" + string(reply.Fault) + "): " + reply.Detail)}
	case core.Unclear:
		c.Answer = []string{sentence("No clear answer (" + string(reply.Doubt) + "): " + reply.Detail)}
	case nil:
		c.Answer = []string{"Nothing was recorded."}
	}
	if !is {
		return
	}
	switch q := c.Query.(type) {
	case core.Greet:
		c.Answer = greeting(q, said)
	case core.Settle:
		c.Answer = settlement(q, said)
	case core.Inventory:
		c.inventory(q.Judge(said))
	case core.Remove:
		c.removal(q.Judge(said))
	}
	if said.Exit != 0 {
		c.Answer = append(c.Answer, fmt.Sprintf("The script ended with status %d.", said.Exit))
	}
}

func greeting(q core.Greet, said core.Said) []string {
	g, err := q.Judge(said)
	if err != nil {
		return []string{sentence("It cannot be read: " + err.Error())}
	}
	git := "no git"
	if g.Git != "" {
		git = "git " + strings.TrimPrefix(g.Git, "git version ")
	}
	says := []string{fmt.Sprintf("%s, %s, home %s.", g.Platform, git, g.Home), fmt.Sprintf("The tasks' folder: %s; the directory: %s.", g.Tasks, g.Target)}
	if g.Holder == core.NoHolder {
		return append(says, "Nothing is left of an earlier removal.")
	}
	return append(says, strings.TrimSpace(fmt.Sprintf("An earlier removal left its holder (%s). %s", g.Holder, g.Note)))
}

func settlement(q core.Settle, said core.Said) []string {
	settled, failed := q.Judge(said)
	if failed != nil {
		return []string{sentence(string(failed.Fault) + ": " + failed.Detail)}
	}
	now := fmt.Sprintf("At the directory now: %s.", settled.Target)
	switch {
	case settled.Finished:
		return []string{fmt.Sprintf("What had been verified for removal was removed to its end (%s).", Size(settled.Bytes)), now}
	case settled.Restored:
		return []string{"The directory is back under its name.", now}
	}
	return []string{now}
}

func (c *Chapter) inventory(e core.Evidence) {
	c.Findings, c.Checkouts = e.Findings, e.Checkouts
	verdict := "Something would be lost, or it is not certain that nothing would."
	if e.Safe() {
		verdict = "Nothing would be lost."
	}
	c.Answer = []string{verdict, fmt.Sprintf("%s in %d entries; checkouts judged: %d.", Size(e.Bytes), e.Entries, len(e.Checkouts))}
	c.Answer = append(c.Answer, Excused(e.Excused)...)
	for _, note := range e.Notes { // they begin small and end open
		if note != "" {
			c.Answer = append(c.Answer, sentence(strings.ToUpper(note[:1])+note[1:]))
		}
	}
}

// Excused tells what build output goes as well, a sentence a kind.
func Excused(all []core.Excused) (says []string) {
	for _, e := range all {
		says = append(says, fmt.Sprintf("Build output that may go, %s: %s in %d entries of %d trees.", e.Kind, Size(e.Bytes), e.Entries, e.Trees))
	}
	return says
}

func (c *Chapter) removal(o core.Outcome) {
	switch o := o.(type) {
	case core.Removed:
		c.Answer = []string{sentence(o.Detail)}
	case core.Skipped:
		c.Answer = []string{sentence("It was put back: " + o.Detail)}
		c.Findings = append([]core.Finding{o.Finding}, o.Others...)
	case core.Failed:
		c.Answer = []string{sentence(string(o.Fault) + ": " + o.Detail)}
	default:
		c.Answer = []string{"The answer says nothing."}
	}
}

func ending(r core.Record, pending core.Ask, open bool) string {
	if open {
		switch pending.Query.(type) {
		case core.Begin:
			return "Only looked: an attempt would now begin to remove it."
		case core.Settle:
			return "Only looked: an attempt would first put right what an earlier removal left."
		case core.Remove:
			return "The record ends here: the removal may have been sent, and nobody has recorded its answer. The next attempt sees how far it came."
		}
		return "The attempt was cut short before it asked the next question: " + Question(pending.Query)
	}
	if len(r.Transcript) == 0 {
		return sentence("It was decided before anything was asked: " + r.Result.Detail)
	}
	return sentence(map[string]string{
		core.OutcomeRemoved: "So it was removed: ", core.OutcomeSkipped: "So it was kept: ", core.OutcomeFailed: "So the attempt failed: ",
		core.OutcomeCancelled: "So the attempt was called off, and nothing was touched: ",
	}[r.Result.Outcome] + r.Result.Detail)
}

// sentence ends a text as a sentence ends.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsRune(".!?", rune(text[len(text)-1])) {
		return text
	}
	return strings.TrimRight(text, ":,; ") + "."
}

// Size is a number of bytes for people.
func Size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n), ""
	for _, p := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < unit {
			break
		}
		value, prefix = value/unit, p
	}
	return fmt.Sprintf("%.1f %s", value, prefix)
}
