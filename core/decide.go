package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kandev/reclaim/core/taskpath"
)

// decide is one attempt at one target, top to bottom. Every question is one
// line; whatever is not a plain yes ends it.
func (a *attempt) decide() Step {
	s := a.snapshot
	a.disposable = ReadDisposable(s.Target.Disposable)
	if why := s.unfit(); why != "" {
		return Done{fail(SnapshotInvalid, why)}
	}
	if !s.Target.Enabled {
		return a.whole(Done{skip(Finding{Reason: Disabled, Cause: OptOut,
			Detail: "the executor profile had not opted in when this directory was made",
			Cure:   []Remedy{{What: "turn the switch on for the profile; it counts for directories launched from then on"}}})})
	}

	return a.whole(a.judged())
}

// whole lets a skip end a recorded begin only where nothing of the earlier
// removal can follow any more: what it left was put right in this attempt, and
// the time in which it may still start has passed. A removal that was sent, and
// of which nobody heard again, can be as late as that (on its way, or still looking
// before it makes its holder), and until then the row must know of it.
func (a *attempt) whole(step Step) Step {
	done, _ := step.(Done)
	skipped, is := done.Outcome.(Skipped)
	switch {
	case !is || !a.snapshot.Begun:
		return step
	case !a.righted:
		return a.unseen(skipped.Finding)
	case a.clock <= a.snapshot.BegunUntil:
		return Done{fail(Busy, fmt.Sprintf("a removal that was sent earlier may still start within %d seconds; until then this does not count: %s",
			a.snapshot.BegunUntil-a.clock+1, skipped.Detail), skipped.Cure...)}
	}
	return step
}

// judged is everything after the snapshot's own word.
func (a *attempt) judged() Step {
	s := a.snapshot

	// Where an earlier attempt recorded its begin, leftovers come first and
	// ownership waits until they are put right.
	var ownership *Ownership
	if !s.Begun {
		owned, end := a.owned(FirstLook)
		if end != nil {
			return end
		}
		ownership = &owned
		a.narrow(owned)
	}

	segment, err := taskpath.LastSegment(s.Target.TaskDir)
	if err != nil {
		return Done{refused(err)}
	}
	if _, err := s.dir(""); err != nil && !errors.Is(err, taskpath.ErrNeedsHome) {
		return Done{refused(err)}
	}
	if !s.Begun && !s.Hook.done() {
		return Done{skip(hookNotRun)}
	}
	if end := a.ruled(s.facts(Connect, ownership, "")); end != nil {
		return end
	}

	greeting, end := a.greeted(segment)
	if end != nil {
		return end
	}
	dir, err := s.dir(greeting.Home)
	if err != nil {
		return Done{refused(err)}
	}
	if greeting.Home == "" || greeting.Root == "/" || greeting.Root == greeting.Home {
		return Done{fail(PathRefused, fmt.Sprintf("on the host the workdir root is %q and the home directory %q", greeting.Root, greeting.Home))}
	}
	if finding, seen := tasksDirectory(greeting.Tasks); !seen {
		return a.unseen(finding)
	}

	target, end := a.settled(dir, greeting)
	if end != nil {
		return end
	}
	a.righted, a.clock = true, greeting.Clock
	switch target {
	case Absent:
		if s.Begun {
			return Done{Removed{Detail: "an earlier attempt recorded its begin; now the directory and every name the removal gave it are gone"}}
		}
		return Done{skip(Finding{Reason: NotACheckout, Cause: AlreadyAbsent, Checkout: ".",
			Detail: "the directory is not there, and no attempt of ours began to remove it"})}
	case IsDirectory:
	default:
		return Done{skip(notADirectory(target))}
	}

	if s.Begun {
		owned, end := a.owned(FirstLook)
		if end != nil {
			return end
		}
		a.narrow(owned)
		if !s.Hook.done() {
			return Done{skip(hookNotRun)}
		}
	}

	if end := a.proved(dir); end != nil {
		return end
	}
	last, end := a.owned(LastLook)
	if end != nil {
		return end
	}
	a.narrow(last)
	for _, e := range a.evidence.Excused {
		if !slices.Contains(strings.Split(a.disposable, ","), e.Kind) {
			return Done{skip(Finding{Reason: DirtyWorktree, Cause: Ignored,
				Detail: fmt.Sprintf("its build output of the kind %s may not go any more: the profile's setting was changed while it was judged", e.Kind)})}
		}
	}
	facts := s.facts(RemoveNow, &last, greeting.Home)
	facts.Bytes, facts.Entries, facts.Excused = a.evidence.Bytes, a.evidence.Entries, excusal(a.evidence.Excused)
	if end := a.ruled(facts); end != nil {
		return end
	}
	window := s.Window
	if window <= 0 {
		window = DefaultWindow
	}
	notAfter := greeting.Clock + window
	if end := a.begun(notAfter); end != nil {
		return end
	}
	return a.removed(dir, notAfter)
}

// unfit says why a snapshot cannot be acted on, in a sentence, or "".
func (s Snapshot) unfit() string {
	switch {
	case s.Invalid != "":
		return s.Invalid
	case s.TaskID == "":
		return "the snapshot names no task"
	case s.JobID == "":
		return "the snapshot names no job"
	case s.Attempt < 1:
		return fmt.Sprintf("the snapshot counts attempt %d; attempts count from 1", s.Attempt)
	case !s.Trigger.Reclaims():
		return fmt.Sprintf("jobs of the trigger %q never reclaim directories", s.Trigger)
	}
	return ""
}

func (h Hook) done() bool { return h == HookRan || h == HookNone }

var hookNotRun = Finding{Reason: ProbeFailed, Cause: HookNotRun,
	Detail: "the profile's cleanup script did not run to its end on this directory, so what it would have saved may still be here",
	Cure:   []Remedy{{What: "see why the cleanup script did not run to its end, then have the directory judged again: the script is run again first"}}}

// dir is the target's path where the shape allows one. An error that is
// taskpath.ErrNeedsHome leaves the question open until the host was greeted.
func (s Snapshot) dir(home string) (taskpath.Dir, error) {
	root, err := taskpath.ParseRoot(s.Target.WorkdirRoot, home)
	if err != nil {
		return taskpath.Dir{}, err
	}
	return taskpath.Parse(root, s.Target.TaskDir)
}

// refused says which part of the path is wrong and what to do. What a job was
// made about never changes, so the directory itself stays.
func refused(err error) Failed {
	const stays = "; this job's directory is not touched: look at it on its host, and remove it by hand if nobody needs it"
	what := "the workdir root is wrong: set the profile's to an absolute path, or to one that begins with ~/, for the launches to come" + stays
	switch {
	case errors.Is(err, taskpath.ErrPlace):
		what = "the directory does not stand directly below <workdir root>/tasks/: set the profile's workdir root to where its tasks are, for the launches to come" + stays
	case errors.Is(err, taskpath.ErrName):
		what = "the directory's name is none that a task may have: see what names the directories of this profile's tasks" + stays
	}
	return fail(PathRefused, err.Error(), Remedy{What: what})
}

func (s Snapshot) facts(moment Moment, ownership *Ownership, home string) Facts {
	f := Facts{Moment: moment,
		Job:    JobFacts{ID: s.JobID, TaskID: s.TaskID, Trigger: s.Trigger, Attempt: s.Attempt, Begun: s.Begun, Environment: s.Environment},
		Target: s.Target, Ownership: ownership, Time: s.At, Labels: s.Labels,
		Path: PathFacts{Root: s.Target.WorkdirRoot, Home: home, Dir: s.Target.TaskDir}}
	if ownership != nil {
		f.OptInNow = ownership.OptInNow
	}
	return f
}

// narrow takes away the kinds of build output that a profile lets go no more.
// What was frozen at launch never grows.
func (a *attempt) narrow(now Ownership) {
	if now.OptInNow == On {
		a.disposable = BothDisposable(a.disposable, now.Disposable)
	}
}

// owned asks storage and goes on only where the task owns the directory, is
// terminal, and its profile is not switched off now.
func (a *attempt) owned(look Look) (Ownership, Step) {
	s := a.snapshot
	q := Owner{Look: look, JobID: s.JobID, TaskID: s.TaskID, Target: s.Target}
	if s.Environment != nil {
		q.Environment = s.Environment.ID
	}
	answer, pending := ask[Ownership](a, q)
	if pending != nil {
		return answer, pending
	}
	return answer, JudgeOwnership(s, answer)
}

// ruled asks the policy, which can only subtract.
func (a *attempt) ruled(facts Facts) Step {
	ruling, pending := ask[Ruling](a, Rule{facts})
	if pending != nil {
		return pending
	}
	return judgeRuling(ruling)
}

func judgeRuling(r Ruling) Step {
	if r.Error != "" {
		return Done{fail(PolicyFailed, r.Error)}
	}
	if len(r.Refusals) > 0 {
		refusal := r.Refusals[0]
		says := fmt.Sprintf("the policy's barrier %q refuses (%s): %s", refusal.Barrier, refusal.Rule, refusal.Says)
		switch refusal.Barrier {
		case "optin":
			return Done{skip(Finding{Reason: Disabled, Cause: OptOut, Detail: says})}
		case "ownership":
			return Done{skip(Finding{Reason: Shared, Cause: OwnerUnknown, Detail: says})}
		case "pathshape":
			return Done{fail(PathRefused, says)}
		}
		return Done{fail(PolicyFailed, says)}
	}
	var held *Denial
	for i, denial := range r.Denials {
		if !denial.Retry {
			return Done{skip(Finding{Reason: Disabled, Cause: OperatorPolicy,
				Detail: fmt.Sprintf("the operator's policy %s denies it: %s", denial.Policy, denial.Says),
				Cure:   []Remedy{{What: "ask who keeps the policy, or change it, then have the directory judged again"}}})}
		}
		held = &r.Denials[i]
	}
	if held != nil {
		return Done{fail(PolicyHeld, fmt.Sprintf("the operator's policy %s holds it for now: %s", held.Policy, held.Says))}
	}
	if !r.Allow {
		return Done{fail(PolicyFailed, "the policy does not allow it and gives no reason")}
	}
	for _, barrier := range Barriers() {
		if !slices.Contains(r.Passed, barrier) {
			return Done{fail(PolicyFailed, fmt.Sprintf("the policy allows it without saying that the barrier %q passed", barrier))}
		}
	}
	return nil
}

// greeted asks the host who it is and what an earlier removal left.
func (a *attempt) greeted(segment string) (Greeting, Step) {
	q := Greet{Root: a.snapshot.Target.WorkdirRoot, TaskDir: a.snapshot.Target.TaskDir, Segment: segment}
	heard, pending := ask[Heard](a, q)
	if pending != nil {
		return Greeting{}, pending
	}
	said, failed, finding := heard.plainly("the greeting")
	if failed != nil {
		return Greeting{}, Done{*failed}
	}
	if finding == nil {
		greeting, err := q.Judge(said)
		if err == nil {
			return greeting, nil
		}
		finding = &Finding{Reason: ProbeFailed, Cause: ProbeError, Detail: "the greeting cannot be read: " + err.Error()}
	}
	return Greeting{}, a.unseen(*finding)
}

// unseen ends an attempt that cannot see the directory. Where a removal had
// begun and its leftovers are not settled yet that is never a skip: a
// half-removed directory must not be forgotten.
func (a *attempt) unseen(finding Finding) Step {
	if a.snapshot.Begun {
		return Done{fail(HalfRemoved, "a removal had begun and its state cannot be seen: "+finding.Detail, finding.Cure...)}
	}
	return Done{skip(finding)}
}

// plainly is what a host said to a script that only looks. Trouble with the
// transport fails; everything else that is no clear answer is a finding.
func (h Heard) plainly(what string) (Said, *Failed, *Finding) {
	finding := Finding{Reason: ProbeFailed, Cause: ProbeError, Detail: what + " has no recorded reply"}
	switch reply := h.Reply.(type) {
	case Said:
		return reply, nil, nil
	case NeverRan:
		failed := neverRan(reply)
		return Said{}, &failed, nil
	case Unclear:
		finding.Detail = what + " brought no clear answer: " + reply.Detail
		switch reply.Doubt {
		case ConnectionLost:
			failed := fail(Lost, what+" was cut off with the connection: "+reply.Detail)
			return Said{}, &failed, nil
		case LimitReached:
			finding.Cause = ProbeTimeout
			finding.Detail = what + " did not end within its limit: " + reply.Detail
		case Unframed:
			finding.Cause = UnframedAnswer
			finding.Cure = []Remedy{{What: "log in to the host as this user and see whether the login shell runs a command to its end"}}
		}
	}
	return Said{}, nil, &finding
}

func neverRan(reply NeverRan) Failed {
	switch reply.Fault {
	case NoPin, HostKeyMismatch, AuthFailed:
		return fail(reply.Fault, reply.Detail)
	}
	return fail(Unreachable, reply.Detail)
}

// tasksDirectory goes on only where <root>/tasks is a plain directory.
func tasksDirectory(tasks Presence) (Finding, bool) {
	switch tasks {
	case IsDirectory:
		return Finding{}, true
	case IsSymlink:
		return Finding{Reason: NotACheckout, Cause: TasksIsSymlink, Checkout: ".",
			Detail: "the directory that holds the tasks is a symbolic link, so the target lies elsewhere than its path says"}, false
	case Absent:
		return Finding{Reason: ProbeFailed, Cause: TasksMissing,
			Detail: "the directory that holds the tasks is not there; a disk may not be mounted",
			Cure:   []Remedy{{What: "mount the disk, or see where the workdir root went, then have it judged again"}}}, false
	case IsOther:
		return Finding{Reason: ProbeFailed, Cause: TasksMissing, Detail: "what should hold the tasks is not a directory"}, false
	}
	return Finding{Reason: ProbeFailed, Cause: Unreadable, Detail: "the directory that holds the tasks cannot be read"}, false
}

func notADirectory(target Presence) Finding {
	switch target {
	case IsSymlink:
		return Finding{Reason: NotACheckout, Cause: TargetIsSymlink, Checkout: ".", Detail: "the target is a symbolic link; what it points to is not ours to remove"}
	case IsOther:
		return Finding{Reason: NotACheckout, Cause: NoRepository, Checkout: ".", Detail: "the target is not a directory"}
	}
	return Finding{Reason: ProbeFailed, Cause: Unreadable, Checkout: ".", Detail: "it cannot be seen whether the target is there"}
}

// settled puts right what an earlier removal left and says what stands at the
// target then.
func (a *attempt) settled(dir taskpath.Dir, greeting Greeting) (Presence, Step) {
	switch greeting.Holder {
	case NoHolder:
		return greeting.Target, nil
	case HolderAlive:
		return "", Done{fail(Busy, "another removal of this directory is at work on the host: "+greeting.Note)}
	case HolderEmpty, HolderQuarantined, HolderCommitted:
	default:
		return "", Done{fail(HalfRemoved, "what an earlier removal left contradicts itself; nothing was touched: "+greeting.Note,
			Remedy{What: "look at " + holderName(dir.Segment()) + " beside the directory by hand"})}
	}
	q := Settle{Root: dir.Root(), Segment: dir.Segment(), Holder: greeting.Holder}
	heard, pending := ask[Heard](a, q)
	if pending != nil {
		return "", pending
	}
	said, end := sent(heard, "putting right what an earlier removal left")
	if end != nil {
		return "", end
	}
	settlement, failed := q.Judge(said)
	if failed != nil {
		return "", Done{*failed}
	}
	if settlement.Finished && settlement.Target == Absent {
		return "", Done{Removed{Detail: "an interrupted removal was finished", Bytes: settlement.Bytes, Entries: settlement.Entries}}
	}
	return settlement.Target, nil
}

// sent goes on with what a host said to a script that moves or removes things:
// after it, anything unclear is a failure, and the next attempt looks again.
func sent(h Heard, what string) (Said, Step) {
	switch reply := h.Reply.(type) {
	case Said:
		return reply, nil
	case NeverRan:
		return Said{}, Done{neverRan(reply)}
	case Unclear:
		if reply.Doubt == ConnectionLost {
			return Said{}, Done{fail(Lost, what+" was cut off with the connection; the next attempt sees how far it came: "+reply.Detail)}
		}
		return Said{}, Done{fail(HalfRemoved, what+" brought no clear answer; the next attempt sees how far it came: "+reply.Detail)}
	}
	return Said{}, Done{fail(HalfRemoved, what+" has no recorded reply")}
}

// proved takes the inventory and goes on only where nothing would be lost.
func (a *attempt) proved(dir taskpath.Dir) Step {
	q := Inventory{Root: dir.Root(), Segment: dir.Segment(), Disposable: a.disposable}
	if hexDigest(a.snapshot.Baseline) {
		q.Baseline = a.snapshot.Baseline
	}
	heard, pending := ask[Heard](a, q)
	if pending != nil {
		return pending
	}
	said, failed, finding := heard.plainly("the inventory")
	if failed != nil {
		return Done{*failed}
	}
	if finding != nil {
		return Done{skip(*finding)}
	}
	a.evidence = q.Judge(said)
	if slices.ContainsFunc(a.evidence.Findings, func(f Finding) bool { return f.Cause == AlreadyAbsent }) {
		// It stood there when the host was greeted, so somebody is at work on it:
		// what it is now said to be would not stay true.
		return Done{fail(Busy, "the directory went away while it was judged; the next attempt looks again")}
	}
	if !a.evidence.Safe() {
		return Done{skip(a.evidence.Findings...)}
	}
	return nil
}

// begun makes the intent durable. Up to here nothing has been touched.
func (a *attempt) begun(notAfter int64) Step {
	s := a.snapshot
	answer, pending := ask[Begun](a, Begin{JobID: s.JobID, TaskID: s.TaskID, Attempt: s.Attempt, Target: s.Target, NotAfter: notAfter})
	if pending != nil {
		return pending
	}
	switch answer.Ending {
	case BeginRecorded:
		return nil
	case BeginWithdrawn:
		return Withdraw{"the job's row is no longer this attempt's: " + answer.Detail}
	case BeginHalted:
		return Done{fail(PolicyHeld, "the stop-all switch is on: "+answer.Detail, Remedy{What: "turn it off when removals may go on", Run: "reclaim stop-all off"})}
	}
	return Done{fail(StoreFailed, "the intent could not be made durable, so nothing was touched: "+answer.Detail)}
}

// removed sends compare-and-remove and believes only a whole answer.
func (a *attempt) removed(dir taskpath.Dir, notAfter int64) Step {
	s := a.snapshot
	q := Remove{Root: dir.Root(), Segment: dir.Segment(), Manifest: a.evidence.Manifest,
		JobID: s.JobID, Attempt: s.Attempt, NotAfter: notAfter}
	heard, pending := ask[Heard](a, q)
	if pending != nil {
		return pending
	}
	said, end := sent(heard, "the removal")
	if end != nil {
		return end
	}
	outcome := q.Judge(said)
	if removed, gone := outcome.(Removed); gone && len(a.evidence.Excused) > 0 {
		removed.Detail += "; build output went with it: " + ExcusedText(a.evidence.Excused)
		outcome = removed
	}
	return Done{outcome}
}
