package core

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
	Version    int
	Core       string // digest of the core that decided
	Policy     string // digest of the policy that ruled last, empty when none did
	Snapshot   Snapshot
	Transcript Transcript
	Result     Result
}

// Result is the outcome as people and other programs read it (CLI.md).
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
	RoundTrips int        `json:"round_trips"`
	DurationMS int64      `json:"duration_ms"`
	Record     string     `json:"record"`
}
