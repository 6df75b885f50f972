package core

import (
	"fmt"
	"time"
)

// Settle puts right what an earlier removal left, before anything else.
type Settle struct {
	Root    string `json:"root"` // expanded, absolute
	Segment string `json:"segment"`
	Holder  Holder `json:"holder"` // what the greeting saw; anything else now is refused
}

// Settlement says how a Settle ended, and what stands at the target now.
type Settlement struct {
	Finished bool // a committed tombstone was removed to its end, by us
	Restored bool // a quarantined directory is back under its name
	Target   Presence
	Bytes    int64
	Entries  int64
}

// Script looks at everything again and claims the holder before it touches
// anything; of two at once, one works.
func (q Settle) Script() Script {
	return holderScript("settle", 10*time.Minute, settleShell,
		"root", q.Root, "segment", q.Segment, "holder", holderName(q.Segment),
		"expected_state", string(q.Holder), "who", claimant("settle", 0), "about", about(q))
}

// Judge reads the answer. Anything that is no whole yes is a failure that the
// next attempt looks at again.
func (q Settle) Judge(said Said) (Settlement, *Failed) {
	failed := func(fault Fault, detail string) (Settlement, *Failed) {
		f := fail(fault, detail, Remedy{What: "look at " + q.Root + "/tasks/" + holderName(q.Segment) + " on the host"})
		return Settlement{}, &f
	}
	records, err := parseRecords("settle", said.Body)
	if err != nil || said.Exit != 0 || len(records) != 3 {
		return failed(HalfRemoved, "the answer about what an earlier removal left cannot be read")
	}
	for i, want := range []struct {
		kind   string
		fields int
	}{{"about", 1}, {"target", 1}, {"settled", 4}} {
		if records[i].kind != want.kind || len(records[i].fields) != want.fields {
			return failed(HalfRemoved, "the answer about what an earlier removal left cannot be read")
		}
	}
	if records[0].fields[0] != about(q) {
		return failed(HalfRemoved, "the answer is to another question")
	}
	target, ok := presence(records[1].fields[0])
	end := records[2].fields
	what, okWhat := text(end[1])
	bytes, okBytes := number(end[2])
	entries, okEntries := number(end[3])
	if !ok || !okWhat || !okBytes || !okEntries {
		return failed(HalfRemoved, "the answer about what an earlier removal left cannot be read")
	}
	s := Settlement{Target: target, Bytes: bytes, Entries: entries}
	switch how := end[0]; how {
	case "empty", "quarantined", "committed":
		if how != string(q.Holder) || what != "" || (how == "quarantined" && target != IsDirectory) || target == CannotSee {
			return failed(HalfRemoved, "the answer about what an earlier removal left contradicts itself")
		}
		s.Finished, s.Restored = how == "committed", how == "quarantined"
		return s, nil
	case "complained":
		return failed(RemoveRejected, "rm reported an error though the rest of the interrupted removal is gone; the next attempt looks again")
	case "alive":
		return failed(Busy, "another removal of this directory is at work on the host: "+inWords(what))
	case "other":
		return failed(Busy, fmt.Sprintf("what an earlier removal left changed meanwhile (%s)", what))
	case "contradictory":
		return failed(HalfRemoved, fmt.Sprintf("what an earlier removal left contradicts itself (%s); nothing was touched", what))
	case "held":
		return failed(HalfRemoved, fmt.Sprintf("the quarantined directory could not be put back; the work is in %q", what))
	case "live":
		return failed(HalfRemoved, fmt.Sprintf("a process is at work in what remains of a removal (%q)", what))
	case "mount":
		return failed(HalfRemoved, fmt.Sprintf("something is mounted in what remains of a removal (%q)", what))
	case "newer":
		return failed(HalfRemoved, fmt.Sprintf("something was written into what remains of a removal after it was committed (%q)", what))
	case "left":
		return failed(StillPresent, fmt.Sprintf("the rest of an interrupted removal could not be removed (%q)", what))
	case "stuck":
		return failed(UnregisterFailed, fmt.Sprintf("the worktree registration %q could not be removed", what))
	case "unseen":
		return failed(HalfRemoved, fmt.Sprintf("the %s of the host cannot be read, so what a removal left was not touched", what))
	}
	return failed(HalfRemoved, "the answer about what an earlier removal left cannot be read")
}
