package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// JudgeOwnership is the ownership barrier in Go; policy/ownership is the same
// barrier in Rego. It is nil exactly when the snapshot's task owns the
// directory, nobody else has a right to it and the profile is not switched off
// now. Otherwise it is the attempt's end:
//
//   - storage could not answer: Skipped(shared, owner_unknown);
//   - the task is not terminal (any more): Withdraw;
//   - the switch is off now: Skipped(disabled, opt_out);
//   - the environment is not this task's or not known, a borrower of it or of a
//     claimant's, a claim of a task that goes on or that keeps its directories:
//     Skipped(shared), every piece of evidence told, in that order;
//   - nothing but claims of tasks that are still being cleaned up:
//     Failed(claim_closing), which a retry may find gone.
func JudgeOwnership(s Snapshot, o Ownership) Step {
	switch {
	case o.Error != "":
		return Done{skip(unknownOwner("storage could not say who owns the directory: " + o.Error))}
	case !o.TaskTerminal:
		return Withdraw{"the task is not archived or deleted (any more)"}
	case !o.OptInNow.allows():
		return Done{skip(switchedOff(o.OptInNow))}
	}

	var shared []Finding
	if why := notOurs(s, o.Environment); why != "" {
		shared = append(shared, unknownOwner(why))
	}
	for _, b := range o.Borrowers {
		if b.bars(s.TaskID) {
			shared = append(shared, borrowed(b))
		}
	}
	var closing *Claim
	for i, c := range o.Claims {
		if c.TaskID == s.TaskID || !c.matches(s.Target) {
			continue
		}
		switch c.right() {
		case holds:
			shared = append(shared, claimed(c))
		case letsGo:
			if closing == nil {
				closing = &o.Claims[i]
			}
		}
	}
	switch {
	case len(shared) > maxTold:
		last := fmt.Sprintf("%d further tasks have a right to the directory", len(shared)-maxTold+1)
		return Done{skip(append(shared[:maxTold-1:maxTold-1], Finding{Reason: Shared, Cause: shared[maxTold-1].Cause, Detail: last})...)}
	case len(shared) > 0:
		return Done{skip(shared...)}
	case closing != nil:
		return Done{fail(ClaimClosing, fmt.Sprintf("task %s has run in %s and its own cleanup has not ended", quoted(closing.TaskID), closing.place()),
			Remedy{What: "wait: the next attempt looks again"},
			Remedy{What: "if the other task's cleanup job failed or there is none, retry it or remove its executors_running row, which still names the directory"})}
	}
	return nil
}

// maxTold bounds how many tasks one outcome names.
const maxTold = 8

func (o OptIn) allows() bool { return o == On || o == Unknown }

func switchedOff(now OptIn) Finding {
	f := Finding{Reason: Disabled, Cause: OptOut, Detail: "the executor profile's switch is off now, or the profile is gone",
		Cure: []Remedy{{What: "turn the switch on again, then have the directory judged again"}}}
	if now != Off {
		f.Detail = fmt.Sprintf("storage answers %s where on, off or unknown is expected for the profile's switch", quoted(string(now)))
		f.Cure = nil
	}
	return f
}

func unknownOwner(why string) Finding {
	return Finding{Reason: Shared, Cause: OwnerUnknown, Detail: why,
		Cure: []Remedy{{What: "see which task the directory belongs to; if nobody needs it, remove it by hand"}}}
}

// notOurs says why the environment does not make the directory the task's own,
// or "". A live row decides, and the snapshot's copy must then agree; the copy
// stands alone only where the trigger deleted the row.
func notOurs(s Snapshot, live *Environment) string {
	switch {
	case strings.TrimSpace(s.TaskID) == "":
		return "the snapshot names no task"
	case !s.Trigger.Reclaims():
		return fmt.Sprintf("jobs of the trigger %s never reclaim directories", quoted(string(s.Trigger)))
	case live == nil && s.Environment == nil:
		return "no environment is known, so nothing says that the directory is this task's"
	case live == nil && !s.Trigger.Deletes():
		return "the environment's row is gone although the task was not deleted"
	}
	for _, e := range []*Environment{live, s.Environment} {
		switch {
		case e == nil:
		case strings.TrimSpace(e.ID) == "":
			return "the environment has no id"
		case e.TaskID != s.TaskID:
			return fmt.Sprintf("the environment %s belongs to task %s, not to %s", quoted(e.ID), quoted(e.TaskID), quoted(s.TaskID))
		}
	}
	if live != nil && s.Environment != nil && live.ID != s.Environment.ID {
		return fmt.Sprintf("the environment is %s now and was %s when the job was made", quoted(live.ID), quoted(s.Environment.ID))
	}
	return ""
}

// bars reports whether the session keeps the directory of another task: in
// whatever state it is, its task may resume it (D7). A session that names no
// task may be anybody's.
func (b Borrower) bars(task string) bool {
	return b.TaskID != task && (!b.TaskTerminal || strings.TrimSpace(b.TaskID) == "")
}

func borrowed(b Borrower) Finding {
	in := "this task's environment"
	if b.Lender != "" {
		in = fmt.Sprintf("the environment of task %s, which has run in this directory", quoted(b.Lender))
	}
	f := Finding{Reason: Shared, Cause: Borrowed,
		Detail: fmt.Sprintf("session %s (%s) of task %s runs in %s", quoted(b.SessionID), quoted(b.State), quoted(b.TaskID), in),
		Cure:   []Remedy{{What: fmt.Sprintf("archive or delete task %s, then have the directory judged again", quoted(b.TaskID))}}}
	if strings.TrimSpace(b.TaskID) == "" {
		f.Detail = fmt.Sprintf("session %s (%s) runs in %s and names no task", quoted(b.SessionID), quoted(b.State), in)
		f.Cure = []Remedy{{What: "see whose session it is"}}
	}
	return f
}

// right is what a claim's task may still do with its directory. Nothing is
// shared with one that is nought.
type right int

const (
	holds  right = iota // keeps it
	letsGo              // is being cleaned up: ask again later
	nought              // ended, stopped, and would have given it up itself
)

// right follows D6.
func (c Claim) right() right {
	switch {
	case strings.TrimSpace(c.TaskID) == "", !c.TaskTerminal:
		return holds
	case c.CleanupOpen, !c.Stopped:
		return letsGo
	case !c.OptedIn:
		return holds
	}
	return nought
}

func claimed(c Claim) Finding {
	f := Finding{Reason: Shared, Cause: Claimed,
		Detail: fmt.Sprintf("task %s goes on and has run in %s", quoted(c.TaskID), c.place()),
		Cure:   []Remedy{{What: fmt.Sprintf("archive or delete task %s, then have the directory judged again", quoted(c.TaskID))}}}
	switch {
	case strings.TrimSpace(c.TaskID) == "":
		f.Detail = "a session that names no task has run in " + c.place()
		f.Cure = []Remedy{{What: "see whose executors_running row it is"}}
	case c.TaskTerminal:
		f.Detail = fmt.Sprintf("task %s has ended but had not opted in, so what it left in %s stays", quoted(c.TaskID), c.place())
		f.Cure = []Remedy{{What: "look through the directory by hand; it belonged to both tasks"}}
	}
	return f
}

// place says where a claim points to.
func (c Claim) place() string {
	if c.Unreadable {
		return "a directory that its row does not let us read"
	}
	host := c.Host
	if host == "" {
		host = "an unnamed host"
	}
	return fmt.Sprintf("%s on %s", quoted(c.TaskDir), quoted(host))
}

// matches reports whether the claim can be one to the target's directory: on
// the same machine as far as the names can tell, and the same directory, one
// above or one below (D8, D33). What cannot be told apart matches.
func (c Claim) matches(t Target) bool {
	if c.Unreadable {
		return true
	}
	if strings.TrimSpace(c.TaskDir) == "" {
		return false
	}
	return c.sameMachine(t) && sameTree(c.TaskDir, t.TaskDir)
}

func (c Claim) sameMachine(t Target) bool {
	theirs, ours := canonicalHost(c.Host), canonicalHost(t.Host)
	theirPin, ourPin := canonicalPin(c.Fingerprint), canonicalPin(t.Fingerprint)
	pinned := theirPin != "" && ourPin != ""
	switch {
	case theirs == "" || ours == "":
		return true
	case pinned && theirPin == ourPin:
		return true
	case theirs != ours:
		return false
	case portOf(c.Port) != portOf(t.Port):
		return !pinned // two ports of one name, two pins: two machines behind one address
	}
	return true
}

func portOf(port int) int {
	if port == 0 {
		return 22
	}
	return port
}

func canonicalPin(fingerprint string) string {
	return strings.TrimRight(strings.TrimSpace(fingerprint), "=")
}

// canonicalHost makes the spellings of one host name equal: case, a trailing
// dot, the brackets and the zeros of an IPv6 address, an IPv4 address mapped
// into it, and every name of the loopback. Two addresses may become equal that
// are not, never the other way round.
func canonicalHost(host string) string {
	host = strings.TrimRight(strings.Trim(fold(strings.TrimSpace(host)), "[]"), ".")
	host = strings.TrimPrefix(host, "::ffff:")
	if strings.Contains(host, ":") {
		host = ":" + strings.NewReplacer(":", "", "0", "").Replace(host)
	}
	if host == "localhost" || host == ":1" || strings.HasPrefix(host, "127.") {
		return "localhost"
	}
	return host
}

// fold makes letters equal that differ in case only, in any script, so that
// names are equal wherever a case-insensitive disk would think so.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// sameTree reports whether a claim's directory can be the target's, or lie
// above or below it. Equal last names count as equal directories: a link or a
// second mount may lead to one from two places.
func sameTree(claim, target string) bool {
	claim = strings.TrimSpace(claim)
	theirs, ours := namesOf(claim), namesOf(target)
	if len(ours) == 0 {
		return true
	}
	segment := ours[len(ours)-1]
	if strings.HasPrefix(claim, "/") && !slices.Contains(theirs, ".") && !slices.Contains(theirs, "..") {
		shorter := min(len(theirs), len(ours))
		return slices.Equal(theirs[:shorter], ours[:shorter]) || theirs[len(theirs)-1] == segment
	}
	// Not a whole path: it may lead anywhere, so one name in common is enough.
	if len(theirs) == 0 {
		return true
	}
	last := theirs[len(theirs)-1]
	return last == "." || last == ".." || strings.HasPrefix(last, "~") || strings.HasPrefix(last, "$") ||
		slices.Contains(ours, last) || slices.Contains(theirs, segment)
}

// namesOf leaves out white space around a path: the host trims what it records,
// so with it the path may be the one without it (D8).
func namesOf(path string) []string {
	return strings.FieldsFunc(fold(strings.TrimSpace(path)), func(r rune) bool { return r == '/' })
}

// quoted shows a word from outside in a sentence: bounded, and nothing in it
// can look like part of the sentence.
func quoted(word string) string {
	const most = 200
	if len(word) > most {
		return strconv.Quote(word[:most]) + "..."
	}
	return strconv.Quote(word)
}
