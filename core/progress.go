package core

import "time"

// Progress asks how far a removal in flight has come. It only reads, over a
// channel of its own, so that asking neither signals nor blocks the removal.
// It is no question of an attempt: nothing is decided from it.
type Progress struct {
	Root    string // expanded, absolute
	Segment string
}

// Stage is how far a removal has come.
type Stage string

const (
	StageNone      Stage = "none"      // no holder: not begun, or over
	StagePreparing Stage = "preparing" // nothing moved
	StageChecking  Stage = "checking"  // renamed, being compared
	StageRemoving  Stage = "removing"  // committed
)

// Script counts; it changes nothing.
func (q Progress) Script() Script {
	return holderScript("progress", 30*time.Second, progressShell,
		"root", q.Root, "segment", q.Segment, "holder", holderName(q.Segment))
}

// Judge reads the answer: the stage and, while removing, the entries left.
// It reports false where the answer cannot be read.
func (q Progress) Judge(said Said) (Stage, int64, bool) {
	records, err := parseRecords("progress", said.Body)
	if err != nil || said.Exit != 0 || len(records) != 1 || records[0].kind != "progress" || len(records[0].fields) != 2 {
		return "", 0, false
	}
	entries, ok := number(records[0].fields[1])
	switch stage := Stage(records[0].fields[0]); stage {
	case StageNone, StagePreparing, StageChecking, StageRemoving:
		return stage, entries, ok
	}
	return "", 0, false
}
