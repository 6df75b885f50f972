package core

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kandev/reclaim/core/taskpath"
)

//go:embed prepare.sh
var prepareSource string

//go:embed baseline.sh
var baselineSource string

// Repository is one checkout of a launch.
type Repository struct {
	Name string // of the directory below the task's, one path segment; empty for the task directory itself
	URL  string
	Base string // branch to start from; empty means the remote's HEAD
}

// Prepare makes a task's directory on its host, or finds it as an earlier launch
// left it, and starts the session's stand-in agent in it. Checkouts fetch with
// the wildcard refspec, so that a later inventory sees what was pushed; what the
// remotes had is listed in .kandev/baseline, a line OBJECT, REF, CHECKOUT and one
// "remote", URL, CHECKOUT for each, parted by tabs. Nothing that is
// there is changed or removed: a directory that holds something else is refused.
type Prepare struct {
	Root         string // as projected; a leading ~ is the account's home
	Segment      string
	SessionID    string
	Repositories []Repository // the first is the task directory itself
	Limit        time.Duration
}

// Check refuses what must not reach a host.
func (q Prepare) Check() error {
	if err := taskpath.Segment(q.Segment); err != nil {
		return err
	}
	if err := taskpath.Segment(q.SessionID); err != nil {
		return fmt.Errorf("the session's id: %w", err)
	}
	if _, err := taskpath.ParseRoot(q.Root, "/home/nobody"); err != nil {
		return err
	}
	if len(q.Repositories) == 0 || q.Repositories[0].Name != "" {
		return errors.New("the first repository is the task directory itself, and there must be one")
	}
	names := map[string]bool{".git": true, ".kandev": true}
	for i, r := range q.Repositories {
		for _, word := range []string{r.URL, r.Base} {
			if strings.HasPrefix(word, "-") || strings.ContainsFunc(word, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				return fmt.Errorf("%q is no URL or branch to give to git", word)
			}
		}
		if r.URL == "" {
			return fmt.Errorf("repository %d has no URL", i)
		}
		if i == 0 {
			continue
		}
		if err := taskpath.Segment(r.Name); err != nil {
			return fmt.Errorf("the repository's name: %w", err)
		}
		if name := strings.ToLower(r.Name); names[name] || strings.HasPrefix(r.Name, "-") {
			return fmt.Errorf("a repository cannot be named %q", r.Name)
		} else {
			names[name] = true
		}
	}
	return nil
}

// Script renders it; Check must have passed.
func (q Prepare) Script() Script {
	var body strings.Builder
	fmt.Fprintf(&body, "root=%s\nsegment=%s\nsession=%s\n", quote(q.Root), quote(q.Segment), quote(q.SessionID))
	body.WriteString(shell(prepareSource))
	for i, r := range q.Repositories {
		if i == 0 {
			fmt.Fprintf(&body, "primary %s %s\n", quote(r.URL), quote(r.Base))
		} else {
			fmt.Fprintf(&body, "additional %s %s %s\n", quote(r.Name), quote(r.URL), quote(r.Base))
		}
	}
	body.WriteString("baseline\nagent\nclosing\n")
	return Script{Name: "prepare", Body: body.String(), Limit: q.Limit}
}

// Prepared is what a launch found or made.
type Prepared struct {
	Home    string
	TaskDir string // absolute, expanded
	PID     int64  // of the agent
	Reused  bool   // the checkout was there
	Resumed bool   // the agent was running

	// Baseline is the digest of .kandev/baseline: what every remote said it has,
	// while nobody had worked in the directory yet. Empty where somebody may have.
	Baseline string
}

// Judge reads the host's answer; the error is for a person.
func (q Prepare) Judge(reply Reply) (Prepared, error) {
	var said Said
	switch r := reply.(type) {
	case Said:
		said = r
	case Unclear:
		return Prepared{}, errors.New("nobody knows how far the launch came: " + r.Detail)
	case NeverRan:
		return Prepared{}, errors.New(r.Detail)
	default:
		return Prepared{}, errors.New("nobody knows how far the launch came")
	}
	records, err := parseRecords("prepare", said.Body)
	if err != nil {
		return Prepared{}, err
	}
	var p Prepared
	seen := map[string]bool{}
	for _, r := range records {
		if len(r.fields) != 1 || seen[r.kind] {
			return Prepared{}, errors.New("the launch's answer is not well formed")
		}
		seen[r.kind] = true
		ok := true
		switch r.kind {
		case "cannot":
			why, _ := text(r.fields[0])
			return Prepared{}, errors.New(why)
		case "home":
			p.Home, ok = text(r.fields[0])
		case "dir":
			p.TaskDir, ok = text(r.fields[0])
		case "pid":
			p.PID, ok = number(r.fields[0])
		case "baseline":
			p.Baseline, ok = r.fields[0], hexDigest(r.fields[0])
		case "checkout":
			p.Reused = r.fields[0] == "reused"
		case "agent":
			p.Resumed = r.fields[0] == "resumed"
		}
		if !ok {
			return Prepared{}, errors.New("the launch's answer is not well formed")
		}
	}
	if p.PID < 2 {
		return Prepared{}, errors.New("the launch's answer names no agent")
	}
	root, err := taskpath.ParseRoot(q.Root, p.Home)
	if err != nil {
		return Prepared{}, err
	}
	dir, err := taskpath.Parse(root, p.TaskDir)
	if err != nil {
		return Prepared{}, err
	}
	if dir.Segment() != q.Segment {
		return Prepared{}, fmt.Errorf("the launch made %q", p.TaskDir)
	}
	return p, nil
}
