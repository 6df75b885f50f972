package core

// Trigger is what made the cleanup job.
type Trigger string

const (
	Archive        Trigger = "archive"
	Delete         Trigger = "delete"
	CascadeArchive Trigger = "cascade_archive"
	CascadeDelete  Trigger = "cascade_delete"
)

// Reclaims reports whether jobs of this trigger may reclaim directories (D31).
func (t Trigger) Reclaims() bool {
	switch t {
	case Archive, Delete, CascadeArchive, CascadeDelete:
		return true
	}
	return false
}

// Deletes reports whether the trigger ends with the task's rows gone, so that
// the snapshot's copy of the environment is the only one.
func (t Trigger) Deletes() bool { return t == Delete || t == CascadeDelete }

// Hook says what became of the profile's cleanup script. The zero value keeps
// the directory.
type Hook string

const (
	HookRan    Hook = "ran"     // to its end, exit status zero
	HookNone   Hook = "none"    // the profile has none
	HookFailed Hook = "not_run" // or not to its end
)

// Snapshot is the frozen input of one attempt at one target. Its zero value is
// never reclaimed.
type Snapshot struct {
	JobID       string            `json:"job_id"`
	TaskID      string            `json:"task_id"`
	Trigger     Trigger           `json:"trigger"`
	Attempt     int               `json:"attempt"`               // counts from 1; the lease's token
	At          int64             `json:"at"`                    // start of the attempt, unix seconds
	Begun       bool              `json:"begun"`                 // an earlier attempt at this target recorded its begin
	BegunUntil  int64             `json:"begun_until,omitempty"` // by the host's clock: how long the removal of that begin may still start
	Hook        Hook              `json:"hook"`
	Environment *Environment      `json:"environment,omitempty"` // the job snapshot's copy
	Target      Target            `json:"target"`
	Baseline    string            `json:"baseline,omitempty"` // digest of the launch's baseline, as the launch recorded it; empty: none
	Invalid     string            `json:"invalid,omitempty"`  // why the job snapshot's target could not be read; empty when it could
	Labels      map[string]string `json:"labels,omitempty"`
	Window      int64             `json:"window,omitempty"` // seconds after the greeting within which a removal may start; 0 means DefaultWindow
}

// DefaultWindow is the attempt's own bound (D26): a removal that reaches the
// host later than this after the greeting refuses.
const DefaultWindow = 15 * 60
