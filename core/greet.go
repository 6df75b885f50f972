package core

// Greet is the first question to a host: who and where it is, and whether an
// earlier removal of this target left something behind. It changes nothing.
type Greet struct {
	Root    string `json:"root"`     // as typed; ~ is expanded on the host
	TaskDir string `json:"task_dir"` // as recorded
	Segment string `json:"segment"`
}

// Holder is the state of the holder directory beside a target.
type Holder string

const (
	NoHolder            Holder = "none"
	HolderAlive         Holder = "alive"         // its process runs: another removal is at work
	HolderEmpty         Holder = "empty"         // dead, holds neither tombstone
	HolderQuarantined   Holder = "quarantined"   // dead, holds q: renamed, not verified
	HolderCommitted     Holder = "committed"     // dead, holds x: verified, to be finished
	HolderContradictory Holder = "contradictory" // names that cannot stand together; touch nothing
)

// Presence is what stands at a path, without following a link.
type Presence string

const (
	Absent      Presence = "absent"
	IsDirectory Presence = "directory"
	IsSymlink   Presence = "symlink"
	IsOther     Presence = "other"
	CannotSee   Presence = "unreadable"
)

// Greeting is a host's answer to Greet. Its zero value says nothing: Home is
// empty and no presence is known.
type Greeting struct {
	Home     string
	Root     string   // physical, when it exists
	Platform string   // uname -s
	Git      string   // git version, empty when there is none
	Clock    int64    // the host's, unix seconds
	Tasks    Presence // <root>/tasks
	Target   Presence
	Holder   Holder
	Note     string // who holds or held it, in words, for people
}

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

// Remove is compare-and-remove: section 5 of the design in one script.
type Remove struct {
	Root     string   `json:"root"`
	Segment  string   `json:"segment"`
	Manifest Manifest `json:"manifest"`
	JobID    string   `json:"job_id"`
	Attempt  int      `json:"attempt"`
	NotAfter int64    `json:"not_after"` // by the host's clock, unix seconds
}
