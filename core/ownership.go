package core

// Environment is the row that says which task a working directory belongs to.
type Environment struct {
	ID     string `json:"id"`
	TaskID string `json:"task_id"`
}

// Borrower is a session of another task that runs in our environment, or in the
// environment of a task with a claim to our directory, which is as good: both
// lead there.
type Borrower struct {
	SessionID    string `json:"session_id"`
	TaskID       string `json:"task_id"`
	State        string `json:"state"`
	TaskTerminal bool   `json:"task_terminal"`
	Lender       string `json:"lender,omitempty"` // the other task whose environment it is; empty: ours
}

// Claim is another task's possible right to a directory, as its
// executors_running row tells it. Storage selects a superset of the claims that
// can matter; core decides which match.
type Claim struct {
	TaskID       string `json:"task_id"`
	Host         string `json:"host"`
	Port         int    `json:"port"` // 0 means 22
	User         string `json:"user"` // told, never compared: a user name makes no directory different
	Fingerprint  string `json:"host_fingerprint"`
	TaskDir      string `json:"task_dir"`
	TaskTerminal bool   `json:"task_terminal"` // row absent or archived
	Stopped      bool   `json:"stopped"`       // no executors_running row of it names the directory any more (D32)
	OptedIn      bool   `json:"opted_in"`      // its own frozen opt-in
	CleanupOpen  bool   `json:"cleanup_open"`  // a cleanup job of it is unfinished, prepared included
	Unreadable   bool   `json:"unreadable,omitempty"`
}

// OptIn is the profile's switch as storage answers it now. Only On and Unknown
// let an attempt go on; the zero value does not.
type OptIn string

const (
	On      OptIn = "on"
	Off     OptIn = "off"     // also when the profile row is gone
	Unknown OptIn = "unknown" // a host that cannot tell: the frozen value decides
)

// Ownership is what storage answers to Owner. The zero value answers that the
// task is not terminal, which ends the attempt. An Error that is not empty says
// that storage could not answer; nothing else in it counts then.
type Ownership struct {
	TaskTerminal bool         `json:"task_terminal"`
	OptInNow     OptIn        `json:"opt_in_now"`
	Disposable   string       `json:"disposable,omitempty"`  // the kinds of build output that every one of those profiles lets go now; counts with On
	Environment  *Environment `json:"environment,omitempty"` // the live row, nil when it is gone
	Borrowers    []Borrower   `json:"borrowers,omitempty"`
	Claims       []Claim      `json:"claims,omitempty"`
	Error        string       `json:"error,omitempty"`
}
