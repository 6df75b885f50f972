package replay

import (
	"strings"

	"github.com/kandev/reclaim/core"
)

// faultCures are what a person can do about a failure, where the attempt itself
// told nothing better. After it the job tries again by itself, unless it is final.
var faultCures = map[core.Fault]string{
	core.NoPin:            "write the host key's fingerprint into the executor's settings, for the launches to come; this directory is left to whoever keeps its host",
	core.HostKeyMismatch:  "ask the host's keeper whether its key was changed; if not, somebody answers in its place: send nothing there",
	core.AuthFailed:       "see that the key or agent the executor names is there and that the host lets it in: ssh to the host as that user",
	core.Unreachable:      "see that the host is up and can be reached from here: ssh to it by the same name, port and jump hosts",
	core.Lost:             "see whether the host and the network stay up; the next attempt sees how far this one came",
	core.PathRefused:      "look at workdir_root and task_dir: the directory must be exactly <workdir_root>/tasks/<name>; what is not is removed by hand or never",
	core.SnapshotInvalid:  "find out what wrote the job's snapshot and mend that; nothing is removed from one that cannot be read",
	core.PolicyFailed:     "run reclaim policy check on the operator's policies, and mend the one that fails",
	core.PolicyHeld:       "wait until what holds it is over, or change it: reclaim stop-all show, and the operator's policies; no try is used up",
	core.StoreFailed:      "see that the database is up, has room and can be written",
	core.Busy:             "wait: another removal of the directory is at work, and the next attempt looks again",
	core.RemoveRejected:   "see on the host why the directory cannot be renamed or removed: permissions of the tasks folder, attributes, a full or read-only disk, the clock",
	core.StillPresent:     "see on the host what could not be removed, and whose it is; the next attempt goes on with it",
	core.HalfRemoved:      "look at the .reclaim- holder beside the directory on the host; what is in q is whole, what is in x was judged and is being removed",
	core.UnregisterFailed: "run git worktree list in the repository the worktree belonged to, and git worktree remove what is left of it",
	core.ClaimClosing:     "wait for the other task's cleanup job; if it was given up, retry it: reclaim jobs --state failed",
}

// causeCures are the same about a directory that was kept.
var causeCures = map[core.Cause]string{
	core.OptOut:              "turn the profile's switch on for the launches to come; this directory was launched without it, or it is off now, and stays",
	core.OperatorPolicy:      "read the operator's policy that denies it; when it no longer does, have the directory judged again",
	core.Borrowed:            "end the task whose session uses the directory, then have it judged again",
	core.Claimed:             "end the other task that has run in the directory, then have it judged again",
	core.OwnerUnknown:        "see why storage could not say whose the directory is, then have it judged again",
	core.HostedWorktree:      "remove the worktrees that belong to a repository in the directory, or move them, then have it judged again",
	core.LockedWorktree:      "unlock the worktree with git worktree unlock, if nobody needs the lock",
	core.LentObjects:         "let the repository that borrows objects from here copy them (git repack -ad there), then have it judged again",
	core.LiveProcess:         "end what still runs in the directory, then have it judged again",
	core.NoRepository:        "look at what is there: it is no checkout, so nothing can prove that it is saved elsewhere",
	core.EnclosingRepo:       "look at what is there: it is no checkout of its own but lies in another",
	core.TargetIsSymlink:     "look at where the link leads; only a directory that stands there itself is ever removed",
	core.TasksIsSymlink:      "make the tasks folder a directory and not a link, or set the workdir root to where it leads",
	core.AlreadyAbsent:       "see whether the directory was removed by somebody, or its disk is not mounted",
	core.Modified:            "commit and push the changes, or discard them",
	core.Untracked:           "commit and push, move, or delete the new files",
	core.Ignored:             "move or delete the ignored files; kinds of build output can be let go: reclaim profile set --help",
	core.HiddenEdit:          "look at the files that git was told not to look at, and save or discard what was changed",
	core.OperationInProgress: "finish or abort the operation that was stopped half way",
	core.OnBranch:            "push the branch that no remote has",
	core.Detached:            "push the commit that HEAD stands on to a branch, if it is needed",
	core.LocalRefs:           "push the refs that no remote has, or delete them",
	core.InSubmodule:         "push what the submodule holds and no remote has",
	core.InNestedRepo:        "push what the repository inside holds and no remote has",
	core.Abandoned:           "look at git reflog: push what is needed, or let the entries expire",
	core.RemoteInside:        "push to a remote that is not on this machine's task directories",
	core.NoRemote:            "add a remote and push",
	core.Stashed:             "apply or drop the stash",
	core.ProbeError:          "see on the host what the command said, mend that, then have the directory judged again",
	core.ProbeTimeout:        "see whether the host is slow or the directory very large, then have it judged again",
	core.UnframedAnswer:      "see that the account's shell starts without printing or ending by itself, then have it judged again",
	core.Unreadable:          "make the parts readable for the account that logs in, or remove them, then have it judged again",
	core.ForeignOwner:        "give the files to the account that logs in, or remove them with the account that owns them",
	core.MountInside:         "unmount what is mounted in the directory, then have it judged again",
	core.LockPresent:         "if no git command runs there any more, delete the lock file, then have it judged again",
	core.GitTooOld:           "install git 2.20 or newer on the host, then have it judged again",
	core.TasksMissing:        "see whether the workdir root is mounted: its tasks folder is not there",
	core.HookNotRun:          "see why the profile's cleanup script did not run to its end, then have the directory judged again",
	core.ChangedMeanwhile:    "somebody wrote there while it was judged: end that, then have the directory judged again",
}

// Cures are what a person can do about a result: what the attempt told, else what
// is known of its fault or cause. Something always is, unless there is nothing to
// do.
func Cures(r core.Result) []core.Remedy {
	switch {
	case len(r.Cure) > 0:
		return r.Cure
	case r.Outcome == core.OutcomeFailed && faultCures[r.Fault] != "":
		return []core.Remedy{{What: faultCures[r.Fault]}}
	case r.Outcome == core.OutcomeSkipped && causeCures[r.Cause] != "":
		return []core.Remedy{{What: causeCures[r.Cause]}}
	}
	return []core.Remedy{}
}

// CuresOf are what a person can do about a job's last error, a sentence for each
// fault it names, those of told apart.
func CuresOf(lastError string, told ...core.Fault) []core.Remedy {
	cures := []core.Remedy{}
	for _, f := range core.Faults() {
		names := strings.HasPrefix(lastError, string(f)+": ") || strings.Contains(lastError, ": "+string(f)+": ")
		for _, other := range told {
			names = names && other != f
		}
		if names {
			cures = append(cures, core.Remedy{What: faultCures[f]})
		}
	}
	return cures
}
