package core

import "fmt"

// Step is what an attempt does next: Ask, Done or Withdraw.
//
//sumtype:decl
type Step interface{ step() }

// Ask is the next question. The driver puts it to its port, records the answer
// and calls Next again.
type Ask struct{ Query Query }

// Done is the end, with an outcome.
type Done struct{ Outcome Outcome }

// Withdraw is the end without an outcome: the attempt is cancelled, because the
// task is not terminal any more or the job's row is in other hands. Nothing was
// touched.
type Withdraw struct{ Detail string }

func (Ask) step()      {}
func (Done) step()     {}
func (Withdraw) step() {}

// Next is the whole decision: it runs one straight-line procedure over the
// recorded answers and returns the question asked next or the end. It is total
// and pure: for every snapshot and transcript it returns a step, never nil, and
// the same one every time. A transcript that does not belong to the snapshot
// keeps the directory.
func Next(s Snapshot, t Transcript) Step {
	step, err := run(s, t)
	if err != nil {
		return Done{skip(Finding{Reason: ProbeFailed, Cause: ProbeError, Detail: err.Error()})}
	}
	return step
}

// Replay decides again from a recorded transcript. The error is *Incomplete
// when the record ends in a question (a dry run, an attempt cut short),
// *Withdrawn when the attempt was cancelled, and *Diverged when today's core
// would have asked something else.
func Replay(s Snapshot, t Transcript) (Outcome, error) {
	step, err := run(s, t)
	if err != nil {
		return nil, err
	}
	switch step := step.(type) {
	case Done:
		return step.Outcome, nil
	case Withdraw:
		return nil, &Withdrawn{step.Detail}
	}
	ask, _ := step.(Ask)
	return nil, &Incomplete{ask.Query}
}

// Incomplete says that a transcript ends before an outcome; Pending is the
// question that was not answered.
type Incomplete struct{ Pending Query }

func (e *Incomplete) Error() string {
	return fmt.Sprintf("the record ends at the question %q", QueryName(e.Pending))
}

// Withdrawn says that the attempt was cancelled and has no outcome.
type Withdrawn struct{ Detail string }

func (e *Withdrawn) Error() string { return "the attempt was cancelled: " + e.Detail }

// Diverged says that today's core, given the same answers, asks another
// question than the record holds at exchange At (counted from 0), or none.
type Diverged struct {
	At     int
	Detail string
}

func (e *Diverged) Error() string {
	return fmt.Sprintf("the record diverges at exchange %d: %s", e.At+1, e.Detail)
}

func run(s Snapshot, t Transcript) (Step, error) {
	a := attempt{snapshot: s, transcript: t}
	step := a.decide()
	if a.diverged != nil {
		return nil, a.diverged
	}
	if a.asked < len(t) {
		return nil, &Diverged{a.asked, fmt.Sprintf("the procedure had ended, but the record goes on with %q", QueryName(t[a.asked].Query))}
	}
	return step, nil
}

// attempt is one run of the procedure over a transcript.
type attempt struct {
	snapshot   Snapshot
	transcript Transcript
	asked      int
	diverged   *Diverged
	evidence   Evidence // of the inventory, once it was answered
	disposable string   // the kinds of build output that may go: what was frozen, less what was taken back since
	righted    bool     // nothing is left of an earlier removal, or it was put right
	clock      int64    // the host's, by the greeting, once righted
}

// ask reads the recorded answer to q, or returns the step that ends this run:
// the question itself when it has not been answered yet.
func ask[A Answer](a *attempt, q Query) (answer A, pending Step) {
	if a.asked == len(a.transcript) {
		return answer, Ask{q}
	}
	recorded := a.transcript[a.asked]
	if !sameQuery(recorded.Query, q) {
		a.diverged = &Diverged{a.asked, fmt.Sprintf("the record asks %q, today's procedure another %q", QueryName(recorded.Query), QueryName(q))}
		return answer, Withdraw{}
	}
	answer, ok := recorded.Answer.(A)
	if !ok {
		a.diverged = &Diverged{a.asked, fmt.Sprintf("the answer to %q is of another kind", QueryName(q))}
		return answer, Withdraw{}
	}
	a.asked++
	return answer, nil
}
