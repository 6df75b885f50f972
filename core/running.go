package core

// Running is one launched session of a task as its executors_running row tells
// it: the columns that reclamation reads, and the metadata as stored.
type Running struct {
	SessionID string
	TaskID    string
	Runtime   string // ssh, or a runtime that is none of our business
	Status    string
	PID       int64  // of the helper, on the host; 0 when the row names none
	Metadata  []byte // a JSON object; empty, null and {} are the same
}

// Stopped is the status of a session that was stopped and whose row is kept.
const Stopped = "stopped"

// Live reports whether the session's helper may still run. Only the endings the
// host knows say that it does not; an unknown status is taken as live.
func (r Running) Live() bool {
	switch r.Status {
	case Stopped, "completed", "failed":
		return false
	}
	return true
}

// SessionHook is what became of one session's cleanup script, as the job's row
// remembers it. Script is kept only where it did not run to its end, so that
// judging the directory again can run it.
type SessionHook struct {
	SessionID string `json:"session_id"`
	Ending    Hook   `json:"ending"`
	Detail    string `json:"detail,omitempty"`
	Script    string `json:"script,omitempty"`
}
