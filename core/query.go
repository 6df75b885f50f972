package core

// Query is one question of an attempt. Queries are semantic values: a script is
// rendered from its query, so that mending a script does not make an old record
// diverge. Two queries are the same when their JSON is.
//
//sumtype:decl
type Query interface{ query() }

// Look tells the first look at ownership from the last.
type Look string

const (
	FirstLook Look = "first" // before any connection (after leftovers, where a begin is recorded)
	LastLook  Look = "last"  // between the verdict and the begin
)

// Owner asks storage who owns the directory now. The answer is an Ownership.
type Owner struct {
	Look        Look   `json:"look"`
	JobID       string `json:"job_id"`
	TaskID      string `json:"task_id"`
	Environment string `json:"environment,omitempty"` // id of the snapshot's copy
	Target      Target `json:"target"`
}

// Moment is when a ruling is asked for.
type Moment string

const (
	Connect   Moment = "connect"
	RemoveNow Moment = "remove"
)

// Rule asks the policy for a ruling. The answer is a Ruling.
type Rule struct {
	Facts Facts `json:"facts"`
}

// Begin asks storage to make the intent durable, by compare-and-set on the job
// row that an un-archive also changes. The answer is a Begun.
type Begin struct {
	JobID   string `json:"job_id"`
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt"`
	Target  Target `json:"target"`
	// NotAfter is until when the removal may start, by the host's clock: it is kept
	// with the begin (JobSnapshot.WithBegun).
	NotAfter int64 `json:"not_after"`
}

func (Owner) query()     {}
func (Rule) query()      {}
func (Greet) query()     {}
func (Settle) query()    {}
func (Inventory) query() {}
func (Begin) query()     {}
func (Remove) query()    {}

// HostQuery is a question that a script answers.
type HostQuery interface {
	Query
	Script() Script
}

// Answer is what came back for a query: an Ownership, a Ruling, a Begun, or
// what a host replied, a Heard.
//
//sumtype:decl
type Answer interface{ answer() }

// Heard is a host's reply as it is recorded: the reply and the digest of the
// script that was sent.
type Heard struct {
	Reply  Reply
	Script string // sha256 of the script's body, hexadecimal
}

// BeginEnding says how the begin went. The zero value is no begin.
type BeginEnding string

const (
	BeginRecorded  BeginEnding = "recorded"
	BeginWithdrawn BeginEnding = "withdrawn" // the row no longer is this attempt's: un-archived, cancelled, leased away
	BeginHalted    BeginEnding = "halted"    // the stop-all switch is on
	BeginFailed    BeginEnding = "failed"    // storage could not
)

// Begun is storage's answer to Begin. Anything but BeginRecorded means that
// nothing may be touched.
type Begun struct {
	Ending BeginEnding `json:"ending"`
	Detail string      `json:"detail,omitempty"`
}

func (Ownership) answer() {}
func (Ruling) answer()    {}
func (Begun) answer()     {}
func (Heard) answer()     {}
