package web

import (
	"errors"
	"strings"

	"github.com/kandev/reclaim/core/taskpath"
)

// Profile is one SSH executor profile as it is stored: nothing is trimmed.
type Profile struct {
	ID       string
	Name     string
	Executor string // the executor's name
	Host     string // ssh_host
	Alias    string // ssh_host_alias
	Root     string // ssh_workdir_root, as typed
	Reclaim  string // ssh_reclaim_task_dir, as stored
}

// On reports whether the profile has opted in: only the exact stored string
// does, as in the projection and in core (006.1-3).
func (p Profile) On() bool { return p.Reclaim == "true" }

// Odd is the stored value where it looks like a switch that is on and is not.
func (p Profile) Odd() string {
	if p.On() || p.Reclaim == "false" || p.Reclaim == "" {
		return ""
	}
	return p.Reclaim
}

// BlastHost is the machine the switch speaks of: the explicit host, else the
// alias, else the executor's name. Source says which of them it is.
func (p Profile) BlastHost() (host, source string) {
	switch {
	case strings.TrimSpace(p.Host) != "":
		return strings.TrimSpace(p.Host), "host"
	case strings.TrimSpace(p.Alias) != "":
		return strings.TrimSpace(p.Alias), "alias in the SSH configuration"
	}
	return p.Executor, "name of the executor"
}

// Tree is where the directories lie that the switch speaks of.
func (p Profile) Tree() string {
	root := strings.TrimSpace(p.Root)
	if root == "" {
		root = "~/.kandev"
	}
	return strings.TrimRight(root, "/") + "/tasks/"
}

// RootRefused says why no directory below the profile's root can ever be
// removed, or "".
func (p Profile) RootRefused() string {
	if _, err := taskpath.ParseRoot(p.Root, ""); err != nil && !errors.Is(err, taskpath.ErrNeedsHome) {
		return err.Error()
	}
	return ""
}
