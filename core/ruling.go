package core

// Facts is everything a ruling is decided from: constant in size apart from the
// borrowers and claims that storage selected. The policy fetches nothing.
type Facts struct {
	Moment    Moment            `json:"moment"`
	Job       JobFacts          `json:"job"`
	Target    Target            `json:"target"` // enabled is the opt-in frozen at launch
	OptInNow  OptIn             `json:"opt_in_now"`
	Ownership *Ownership        `json:"ownership"` // nil while a recorded begin puts ownership off until leftovers are settled
	Path      PathFacts         `json:"path"`
	Time      int64             `json:"time"` // the attempt's start, unix seconds, by the backend's clock
	Labels    map[string]string `json:"labels,omitempty"`
	Bytes     int64             `json:"bytes"`             // known at remove, 0 at connect
	Entries   int64             `json:"entries"`           // likewise
	Excused   *Excusal          `json:"excused,omitempty"` // build output among them that goes by the profile's setting; nil for none
}

// JobFacts names the attempt.
type JobFacts struct {
	ID          string       `json:"id"`
	TaskID      string       `json:"task_id"`
	Trigger     Trigger      `json:"trigger"`
	Attempt     int          `json:"attempt"`
	Begun       bool         `json:"begun"`
	Environment *Environment `json:"environment"` // the snapshot's copy; nil when it holds none
}

// PathFacts is what is known of the path at the moment. Home is empty until the
// host was greeted; a root that starts with ~ can then not be judged, and at
// connect need not be.
type PathFacts struct {
	Root string `json:"root"` // as typed
	Home string `json:"home"`
	Dir  string `json:"dir"` // as recorded
}

// Ruling is the policy's answer. Its zero value refuses, and so does anything
// that is not Allow with no Refusals, no Denials and no Error.
type Ruling struct {
	Allow    bool      `json:"allow"`
	Refusals []Refusal `json:"refusals,omitempty"` // our three barriers
	Denials  []Denial  `json:"denials,omitempty"`  // operator policies
	Passed   []string  `json:"passed,omitempty"`   // the barriers that passed, by name
	Digest   string    `json:"digest"`             // of every policy that ruled
	Error    string    `json:"error,omitempty"`    // the policy could not rule; names the file
}

// Refusal is one barrier's no.
type Refusal struct {
	Barrier string `json:"barrier"` // optin, ownership, pathshape
	Rule    string `json:"rule"`
	Says    string `json:"says"`
}

// Denial is one operator policy's no.
type Denial struct {
	Policy string `json:"policy"` // file
	Says   string `json:"says"`
	Retry  bool   `json:"retry,omitempty"`
}

// Barriers names the three, in the order they are asked.
func Barriers() []string { return []string{"optin", "ownership", "pathshape"} }
