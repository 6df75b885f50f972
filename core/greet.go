package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/kandev/reclaim/core/taskpath"
)

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

// Script only reads. It looks at the target and its holder only where TaskDir is
// exactly the expanded root, "tasks" and Segment.
func (q Greet) Script() Script {
	root := q.Root
	if strings.TrimSpace(root) == "" {
		root = taskpath.DefaultRoot
	}
	segment, holder := q.Segment, holderName(q.Segment)
	if taskpath.Segment(segment) != nil {
		segment = ""
	}
	return holderScript("greet", 15*time.Second, greetShell,
		"root", root, "dir", q.TaskDir, "segment", segment, "holder", holder)
}

// Judge reads the answer. An error says that it is not well formed or
// contradicts itself; nothing is known then.
func (q Greet) Judge(said Said) (Greeting, error) {
	bad := func(format string, args ...any) (Greeting, error) {
		return Greeting{}, fmt.Errorf("%w: "+format, append([]any{errRecords}, args...)...)
	}
	if said.Exit != 0 {
		return bad("it ended with status %d", said.Exit)
	}
	records, err := parseRecords("greet", said.Body)
	if err != nil {
		return Greeting{}, err
	}
	kinds := []string{"home", "root", "platform", "git", "clock", "tasks", "target", "holder"}
	if len(records) != len(kinds) {
		return bad("%d records", len(records))
	}
	var g Greeting
	var claim, why string
	for i, r := range records {
		want, ok := 1, true
		if kinds[i] == "holder" {
			want = 3
		}
		if r.kind != kinds[i] || len(r.fields) != want {
			return bad("record %d is not a %s", i+1, kinds[i])
		}
		switch r.kind {
		case "home":
			g.Home, ok = text(r.fields[0])
			ok = ok && strings.HasPrefix(g.Home, "/")
		case "root":
			g.Root, ok = text(r.fields[0])
			ok = ok && (g.Root == "" || strings.HasPrefix(g.Root, "/"))
		case "platform":
			g.Platform, ok = text(r.fields[0])
			ok = ok && g.Platform != ""
		case "git":
			g.Git, ok = text(r.fields[0])
		case "clock":
			g.Clock, ok = number(r.fields[0])
			ok = ok && g.Clock > 0
		case "tasks":
			g.Tasks, ok = presence(r.fields[0])
		case "target":
			if g.Target = CannotSee; r.fields[0] != "unseen" {
				g.Target, ok = presence(r.fields[0])
			}
		case "holder":
			switch h := Holder(r.fields[0]); h {
			case NoHolder, HolderAlive, HolderEmpty, HolderQuarantined, HolderCommitted, HolderContradictory:
				g.Holder = h
			case "unseen":
			default:
				ok = false
			}
			var good bool
			if claim, good = text(r.fields[1]); !good {
				ok = false
			}
			if why, good = text(r.fields[2]); !good {
				ok = false
			}
		}
		if !ok {
			return bad("the record %s cannot be read", r.kind)
		}
	}
	switch {
	case g.Tasks == IsDirectory && g.Root == "":
		return bad("the tasks directory is there without a root")
	case g.Tasks != IsDirectory && (g.Holder != "" || g.Target != CannotSee):
		return bad("the target is seen without the tasks directory")
	case (g.Holder == "") != (records[6].fields[0] == "unseen"):
		return bad("one of target and holder was not looked at")
	case g.Holder == HolderQuarantined && g.Target != Absent:
		return bad("a quarantined directory stands beside its target")
	case (g.Holder == HolderContradictory) != (why != ""):
		return bad("the holder's state and its reason disagree")
	}
	switch {
	case why != "":
		g.Note = "its holder cannot be read as a state (" + why + ")"
	case claim != "":
		g.Note = inWords(claim)
	}
	return g, nil
}

func presence(word string) (Presence, bool) {
	switch p := Presence(word); p {
	case Absent, IsDirectory, IsSymlink, IsOther, CannotSee:
		return p, true
	}
	return "", false
}
