package web

import (
	"fmt"
	"time"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// reasonSays is a reason for people.
func reasonSays(r core.Reason) string {
	switch r {
	case core.Disabled:
		return "switched off"
	case core.NotACheckout:
		return "not a checkout of its own"
	case core.ProbeFailed:
		return "could not be proved safe"
	case core.Shared:
		return "may belong to somebody else too"
	case core.DirtyWorktree:
		return "holds changes that are only here"
	case core.StashPresent:
		return "holds a stash"
	case core.UnpushedCommits:
		return "holds commits that are only here"
	}
	return "kept"
}

// faultSays is a fault for people.
func faultSays(f core.Fault) string {
	switch f {
	case core.NoPin:
		return "no pinned host key"
	case core.HostKeyMismatch:
		return "another host key than the pinned one"
	case core.AuthFailed:
		return "the login was refused"
	case core.Unreachable:
		return "the host could not be reached"
	case core.Lost:
		return "the connection was lost"
	case core.PathRefused:
		return "the path is not one that may be removed"
	case core.SnapshotInvalid:
		return "the job's snapshot cannot be read"
	case core.PolicyFailed:
		return "the policy could not rule"
	case core.PolicyHeld:
		return "held for now"
	case core.StoreFailed:
		return "storage could not record it"
	case core.Busy:
		return "another removal is at work"
	case core.RemoveRejected:
		return "the host refused the removal"
	case core.StillPresent:
		return "the directory is still there"
	case core.HalfRemoved:
		return "an interrupted removal is not finished"
	case core.UnregisterFailed:
		return "the worktree's registration could not be removed"
	case core.ClaimClosing:
		return "another task is still being cleaned up"
	}
	return "failed"
}

func outcomeSays(outcome string) string {
	switch outcome {
	case core.OutcomeRemoved:
		return "removed"
	case core.OutcomeSkipped:
		return "kept"
	case core.OutcomeFailed:
		return "failed"
	case core.OutcomeCancelled:
		return "cancelled"
	case core.OutcomeReclaimable:
		return "would be removed"
	}
	return "not judged yet"
}

func stateSays(s ports.State) string {
	switch s {
	case ports.Prepared:
		return "being prepared"
	case ports.Pending:
		return "waiting"
	case ports.Running:
		return "running"
	case ports.RetryWait:
		return "waits to try again"
	case ports.Succeeded:
		return "done"
	case ports.JobFailed:
		return "given up"
	case ports.Cancelled:
		return "cancelled"
	}
	return "unknown"
}

// came is what became of a job's directories, one each; those not judged yet are
// left out.
func came(j ports.Job) (all []string) {
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return []string{"its snapshot cannot be read"}
	}
	for _, t := range snapshot.Targets() {
		switch t.Outcome {
		case "":
		case core.OutcomeSkipped:
			all = append(all, "kept: "+reasonSays(t.Reason))
		case core.OutcomeFailed:
			all = append(all, "failed: "+faultSays(t.Fault))
		default:
			all = append(all, outcomeSays(t.Outcome))
		}
	}
	return all
}

// todo is what a person can do about a result or a job's directory.
func todo(of any) []core.Remedy {
	switch of := of.(type) {
	case core.Result:
		return replay.Cures(of)
	case core.JobTarget:
		return replay.Cures(core.Result{Outcome: of.Outcome, Cause: of.Cause, Fault: of.Fault, Cure: of.Cure})
	}
	return nil
}

// todoOf is what a person can do about a job's last error, less what is told of
// its directories.
func todoOf(j ports.Job, targets []core.JobTarget) []core.Remedy {
	var told []core.Fault
	for _, t := range targets {
		told = append(told, t.Fault)
	}
	return replay.CuresOf(j.LastError, told...)
}

// several counts things.
func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// place is a host for people.
func place(t core.Target) string {
	host := t.Host
	if t.User != "" {
		host = t.User + "@" + host
	}
	if t.Port != 0 && t.Port != 22 {
		host = fmt.Sprintf("%s:%d", host, t.Port)
	}
	return host
}

// decidingCheckout is the checkout that the outcome's reason was found in, "."
// for the directory itself, or empty where no checkout decided.
func decidingCheckout(r core.Result) string {
	for _, c := range r.Checkouts {
		if r.Reason != "" && c.Reason == r.Reason && c.Cause == r.Cause {
			return c.Path
		}
	}
	return ""
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func seen(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006, 15:04 UTC")
}

// ago is how long something is past, or is to come.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d, form := now.Sub(t), "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf(form, fmt.Sprintf("%d s", d/time.Second))
	case d < 90*time.Minute:
		return fmt.Sprintf(form, fmt.Sprintf("%d min", d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf(form, fmt.Sprintf("%d h", d/time.Hour))
	}
	return fmt.Sprintf(form, fmt.Sprintf("%d days", d/(24*time.Hour)))
}
