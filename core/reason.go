package core

// Reason says why a directory was kept. The list is closed: it is the host's
// wire contract (skip_reason), and finer knowledge goes into Cause.
type Reason string

const (
	Disabled        Reason = "disabled"
	NotACheckout    Reason = "not_a_checkout"
	ProbeFailed     Reason = "probe_failed"
	Shared          Reason = "shared"
	DirtyWorktree   Reason = "dirty_worktree"
	StashPresent    Reason = "stash_present"
	UnpushedCommits Reason = "unpushed_commits"
)

// Reasons lists every reason in order of precedence: of several findings the
// outcome carries the first. A name that is not in it is not a reason.
func Reasons() []Reason {
	return []Reason{Disabled, NotACheckout, ProbeFailed, Shared, DirtyWorktree, StashPresent, UnpushedCommits}
}

// rank is the place of r in Reasons; an unknown reason ranks as probe_failed,
// because what we cannot name we did not understand.
func (r Reason) rank() int {
	for i, known := range Reasons() {
		if r == known {
			return i
		}
	}
	return ProbeFailed.rank()
}

// Cause is the finer word under a reason. The list may grow.
type Cause string

const (
	OptOut         Cause = "opt_out"
	OperatorPolicy Cause = "operator_policy"

	Borrowed        Cause = "borrower"
	Claimed         Cause = "claim"
	OwnerUnknown    Cause = "owner_unknown"
	HostedWorktree  Cause = "hosted_worktree"
	LockedWorktree  Cause = "locked_worktree"
	LentObjects     Cause = "lent_objects"
	LiveProcess     Cause = "live_process"
	NoRepository    Cause = "no_repository"
	EnclosingRepo   Cause = "enclosing_repository"
	TargetIsSymlink Cause = "target_is_symlink"
	TasksIsSymlink  Cause = "tasks_is_symlink"
	AlreadyAbsent   Cause = "already_absent"

	Modified            Cause = "modified"
	Untracked           Cause = "untracked"
	Ignored             Cause = "ignored"
	HiddenEdit          Cause = "hidden_edit"
	OperationInProgress Cause = "operation_in_progress"

	OnBranch         Cause = "branch"
	Detached         Cause = "detached"
	LocalRefs        Cause = "local_refs"
	InSubmodule      Cause = "submodule"
	InNestedRepo     Cause = "nested_repository"
	Abandoned        Cause = "abandoned"
	RemoteInside     Cause = "remote_inside"
	NoRemote         Cause = "no_remote"
	Stashed          Cause = "stash"
	ProbeError       Cause = "probe_error"
	ProbeTimeout     Cause = "probe_timeout"
	UnframedAnswer   Cause = "unframed"
	Unreadable       Cause = "unreadable"
	ForeignOwner     Cause = "foreign_owner"
	MountInside      Cause = "mount_inside"
	LockPresent      Cause = "lock_present"
	GitTooOld        Cause = "git_too_old"
	TasksMissing     Cause = "tasks_missing"
	HookNotRun       Cause = "hook_not_run"
	ChangedMeanwhile Cause = "changed"
)

// Fault says why an attempt could not be completed. The list is closed.
type Fault string

const (
	NoPin            Fault = "no_pin"
	HostKeyMismatch  Fault = "host_key_mismatch"
	AuthFailed       Fault = "auth_failed"
	Unreachable      Fault = "unreachable"
	Lost             Fault = "lost"
	PathRefused      Fault = "path_refused"
	SnapshotInvalid  Fault = "snapshot_invalid"
	PolicyFailed     Fault = "policy_failed"
	PolicyHeld       Fault = "policy_held"
	StoreFailed      Fault = "store_failed"
	Busy             Fault = "busy"
	RemoveRejected   Fault = "remove_rejected"
	StillPresent     Fault = "still_present"
	HalfRemoved      Fault = "half_removed"
	UnregisterFailed Fault = "unregister_failed"
	ClaimClosing     Fault = "claim_closing"
)

// Faults lists every fault.
func Faults() []Fault {
	return []Fault{NoPin, HostKeyMismatch, AuthFailed, Unreachable, Lost, PathRefused, SnapshotInvalid, PolicyFailed,
		PolicyHeld, StoreFailed, Busy, RemoveRejected, StillPresent, HalfRemoved, UnregisterFailed, ClaimClosing}
}

// Final reports whether no retry can change the fault.
func (f Fault) Final() bool {
	switch f {
	case NoPin, PathRefused, SnapshotInvalid:
		return true
	}
	return false
}

// Remedy is one thing a person can do about an outcome. Run is a command line
// to copy, or empty where no command does it.
type Remedy struct {
	What string `json:"what"`
	Run  string `json:"run,omitempty"`
}

// Finding is one piece of evidence against removal.
type Finding struct {
	Reason   Reason   `json:"reason"`
	Cause    Cause    `json:"cause"`
	Checkout string   `json:"checkout,omitempty"` // path below the target, "." for the target itself
	Detail   string   `json:"detail"`
	Cure     []Remedy `json:"cure,omitempty"`
}
