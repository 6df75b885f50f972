package web

import (
	"errors"
	"slices"
	"strings"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/core/taskpath"
	"github.com/kandev/reclaim/ports"
)

// profile is an executor profile with what the switch on it means.
type profile struct{ ports.Profile }

// On reports whether the profile has opted in: only the exact stored string
// does, as in the projection and in core (006.1-3).
func (p profile) On() bool { return p.Reclaim == "true" }

// Odd is the stored value where it looks like a switch that is on and is not.
func (p profile) Odd() string {
	if p.On() || p.Reclaim == "false" || p.Reclaim == "" {
		return ""
	}
	return p.Reclaim
}

// kind is one kind of build output on the page of profiles.
type kind struct {
	core.DisposableKind
	On bool
}

// Kinds are the kinds of build output with what each means.
func (p profile) Kinds() (all []kind) {
	on := strings.Split(core.ReadDisposable(p.Disposable), ",")
	for _, k := range core.DisposableKinds() {
		all = append(all, kind{k, slices.Contains(on, k.Word)})
	}
	return all
}

// OddKinds is the stored setting where some of it counts as absent.
func (p profile) OddKinds() string {
	if core.ReadDisposable(p.Disposable) == p.Disposable {
		return ""
	}
	return p.Disposable
}

// BlastHost is the machine the switch speaks of: the explicit host, else the
// alias, else the executor's name. Source says which of them it is.
func (p profile) BlastHost() (host, source string) {
	switch {
	case strings.TrimSpace(p.Host) != "":
		return strings.TrimSpace(p.Host), "explicit host"
	case strings.TrimSpace(p.Alias) != "":
		return strings.TrimSpace(p.Alias), "alias in the SSH configuration"
	}
	return p.Executor, "name of the executor"
}

// Where and WhereFrom are BlastHost's two halves.
func (p profile) Where() string     { host, _ := p.BlastHost(); return host }
func (p profile) WhereFrom() string { _, source := p.BlastHost(); return source }

// Login says as whom and at which port, where the executor says so.
func (p profile) Login() string {
	text := ""
	if p.User != "" {
		text += ", as " + p.User
	}
	if p.Port != "" && p.Port != "22" {
		text += ", port " + p.Port
	}
	return text
}

// Tree is where the directories lie that the switch speaks of.
func (p profile) Tree() string {
	root := strings.TrimSpace(p.Root)
	if root == "" {
		root = "~/.kandev"
	}
	return strings.TrimRight(root, "/") + "/tasks/"
}

// RootRefused says why no directory below the profile's root can ever be
// removed, or "".
func (p profile) RootRefused() string {
	if _, err := taskpath.ParseRoot(p.Root, ""); err != nil && !errors.Is(err, taskpath.ErrNeedsHome) {
		return err.Error()
	}
	return ""
}
