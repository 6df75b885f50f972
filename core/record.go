package core

import (
	"crypto/sha256"
	"encoding/hex"
)

// Exchange is one question of an attempt with its recorded answer.
type Exchange struct {
	Query  Query
	Answer Answer
}

// Transcript is what an attempt asked and was told, in order.
type Transcript []Exchange

// Record is everything one attempt at one target was decided from, and what it
// came to. It replays offline to the same outcome.
type Record struct {
	Version    int        `json:"version"`
	Core       string     `json:"core"`               // Digest of the core that decided
	Policy     string     `json:"policy"`             // digest of the policy that ruled last, empty when none did
	Observed   bool       `json:"observed,omitempty"` // made by a look that would have begun nothing; no attempt of the job
	Snapshot   Snapshot   `json:"snapshot"`
	Transcript Transcript `json:"transcript"`
	Result     Result     `json:"result"`
}

// Result is the outcome as people and other programs read it.
type Result struct {
	TaskID     string     `json:"task_id"`
	JobID      string     `json:"job_id"`
	Attempt    int        `json:"attempt"`
	Outcome    string     `json:"outcome"` // removed, skipped, failed, cancelled, reclaimable
	Reason     Reason     `json:"reason"`
	Cause      Cause      `json:"cause"`
	Fault      Fault      `json:"fault"`
	Final      bool       `json:"final"`
	Detail     string     `json:"detail"`
	Cure       []Remedy   `json:"cure"`
	Others     []Finding  `json:"others,omitempty"`
	Target     Target     `json:"target"`
	Checkouts  []Checkout `json:"checkouts"`
	Bytes      int64      `json:"bytes"`
	Excused    []Excused  `json:"excused,omitempty"` // build output judged disposable, by kind
	RoundTrips int        `json:"round_trips"`
	DurationMS int64      `json:"duration_ms"`
	Record     string     `json:"record"`
}

// Outcome words of a Result.
const (
	OutcomeRemoved     = "removed"
	OutcomeSkipped     = "skipped"
	OutcomeFailed      = "failed"
	OutcomeCancelled   = "cancelled"
	OutcomeReclaimable = "reclaimable" // a dry run that would begin
)

// Conclude is the result of what was asked and answered so far. A transcript
// that ends where the begin would be asked is reclaimable; one that ends in any
// other question is cut short, and where that question would put leftovers
// right it is failed(half_removed), because a dry run puts nothing right.
func Conclude(s Snapshot, t Transcript) Result {
	a := attempt{snapshot: s, transcript: t}
	step := a.decide()
	r := Result{TaskID: s.TaskID, JobID: s.JobID, Attempt: s.Attempt, Target: s.Target,
		Checkouts: a.evidence.Checkouts, Bytes: a.evidence.Bytes, Excused: a.evidence.Excused, Outcome: OutcomeCancelled}
	if a.diverged != nil || a.asked < len(t) {
		step = Next(s, t)
	}
	switch step := step.(type) {
	case Withdraw:
		r.Detail = step.Detail
	case Ask:
		switch step.Query.(type) {
		case Begin:
			r.Outcome, r.Detail = OutcomeReclaimable, "nothing in the directory would be lost; an attempt would now begin to remove it"
			if len(r.Excused) > 0 {
				r.Detail += "; build output would go with it: " + ExcusedText(r.Excused)
			}
		case Settle:
			r.tell(fail(HalfRemoved, "an interrupted removal is here; an attempt would first put it right, which looking does not"))
		default:
			r.Detail = "cut short before the question " + QueryName(step.Query)
		}
	case Done:
		r.tell(step.Outcome)
	}
	if r.Cure == nil {
		r.Cure = []Remedy{}
	}
	if r.Checkouts == nil {
		r.Checkouts = []Checkout{}
	}
	return r
}

// tell folds an outcome into the result.
func (r *Result) tell(o Outcome) {
	switch o := o.(type) {
	case Removed:
		r.Outcome, r.Detail = OutcomeRemoved, o.Detail
		if o.Bytes > 0 {
			r.Bytes = o.Bytes
		}
	case Skipped:
		r.Outcome, r.Reason, r.Cause, r.Detail, r.Cure, r.Others = OutcomeSkipped, o.Reason, o.Cause, o.Detail, o.Cure, o.Others
	case Failed:
		r.Outcome, r.Fault, r.Final, r.Detail, r.Cure = OutcomeFailed, o.Fault, o.Final, o.Detail, o.Cure
	}
}

// NewRecord is the record of an attempt that has ended or was cut short.
func NewRecord(s Snapshot, t Transcript) Record {
	r := Record{Version: RecordVersion, Core: DigestFor(s), Snapshot: s, Transcript: t, Result: Conclude(s, t)}
	for _, e := range t {
		if ruling, ok := e.Answer.(Ruling); ok {
			r.Policy = ruling.Digest
		}
	}
	return r
}

// Version names this core's decision; it changes whenever a recorded
// transcript may lead elsewhere.
const Version = "1"

// Digest names what decides and what is sent: the version and every script as
// it is rendered for an empty question.
func Digest() string { return DigestFor(Snapshot{}) }

// DigestFor is Digest with the inventory as it is rendered for the snapshot's
// kinds of build output.
func DigestFor(s Snapshot) string {
	if ReadDisposable(s.Target.Disposable) == "" {
		return plainDigest
	}
	return digestOf(s.Target.Disposable)
}

var plainDigest = digestOf("")

func digestOf(disposable string) string {
	h := sha256.New()
	h.Write([]byte(Version))
	for _, q := range []HostQuery{Greet{}, Settle{}, Inventory{Disposable: disposable}, Remove{}} {
		h.Write([]byte(q.Script().Body))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// ScriptDigest names one script's text in a Heard.
func ScriptDigest(s Script) string {
	sum := sha256.Sum256([]byte(s.Body))
	return hex.EncodeToString(sum[:])
}
