package core

// Placeholders until the real ones land: delete from here what you write for real. Nothing here ever says yes.
type Inventory struct {
	Root    string `json:"root"`
	Segment string `json:"segment"`
}
type Evidence struct {
	Findings       []Finding
	Complete       bool
	Checkouts      []Checkout
	Bytes, Entries int64
	Manifest       Manifest
	Notes          []string
}

func (e Evidence) Safe() bool { return false }

type Checkout struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Verdict string `json:"verdict"`
	Reason  Reason `json:"reason"`
	Cause   Cause  `json:"cause"`
}
type Manifest struct {
	Device        string         `json:"device"`
	Inode         string         `json:"inode"`
	Digest        string         `json:"digest"`
	Count         int64          `json:"count"`
	Outside       []string       `json:"outside,omitempty"`
	Registrations []Registration `json:"registrations,omitempty"`
}
type Registration struct {
	CommonDir  string `json:"common_dir"`
	Name       string `json:"name"`
	GitDirFile string `json:"gitdir_file"`
}

func (q Inventory) Script() Script           { return Script{Name: "inventory"} }
func (q Inventory) Judge(said Said) Evidence { return Evidence{} }
