package core

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Remove is compare-and-remove: section 5 of the design in one script.
type Remove struct {
	Root     string   `json:"root"`
	Segment  string   `json:"segment"`
	Manifest Manifest `json:"manifest"`
	JobID    string   `json:"job_id"`
	Attempt  int      `json:"attempt"`
	NotAfter int64    `json:"not_after"` // by the host's clock, unix seconds
}

// Script renames the target aside, compares it with the manifest and removes
// it, or leaves everything where it was.
func (q Remove) Script() Script {
	var again, register strings.Builder
	again.WriteString("again() {\n\tmanifest \"$1\"")
	for _, outside := range q.Manifest.Outside {
		again.WriteString(" " + quote(outside))
	}
	again.WriteString("\n}\nregister() {\n")
	for i, r := range q.Manifest.Registrations {
		name := "r" + strconv.Itoa(i+1)
		register.WriteString("\tnote " + name + ".dir " + quote(r.CommonDir) + " && note " + name + ".file " + quote(r.GitDirFile) +
			" && note " + name + ".name " + quote(r.Name) + " || return 1\n")
	}
	register.WriteString("\t:\n}\n")
	expected, taken := "", "" // a question that names nothing is refused by the script, too
	if q.whole() {
		expected, taken = q.Manifest.Device+" "+q.Manifest.Inode, q.Manifest.Digest+" "+strconv.FormatInt(q.Manifest.Count, 10)
	}
	// What is quoted in the first two is not ours to shorten.
	return holderScript("remove", 10*time.Minute, again.String()+register.String()+removeShell,
		"root", q.Root, "segment", q.Segment, "holder", holderName(q.Segment), "not_after", strconv.FormatInt(q.NotAfter, 10),
		"expected", expected, "taken", taken,
		"who", claimant(q.JobID, q.Attempt), "about", about(q))
}

// whole says that the question itself names what may be removed. One that does
// not can never be answered with Removed.
func (q Remove) whole() bool {
	number := func(s string) bool { return digits(s) && (s == "0" || s[0] != '0') } // of any length: an inode takes 64 bits
	return number(q.Manifest.Device) && number(q.Manifest.Inode) && q.Manifest.Digest != "" && q.Manifest.Count > 0
}

// Judge reads the answer. Removed is said only by a whole answer to this very
// question in which rm said zero and target and holder were seen to be gone.
func (q Remove) Judge(said Said) Outcome {
	unclear := fail(HalfRemoved, "the removal's answer cannot be read; the next attempt sees how far it came")
	records, err := parseRecords("remove", said.Body)
	if err != nil || said.Exit != 0 || len(records) < 2 || !q.whole() {
		return unclear
	}
	if r := records[0]; r.kind != "about" || len(r.fields) != 1 || r.fields[0] != about(q) {
		return unclear
	}
	end := records[len(records)-1]
	if end.kind != "ended" || len(end.fields) != 2 {
		return unclear
	}
	how := end.fields[0]
	what, ok := text(end.fields[1])
	if !ok {
		return unclear
	}
	middle := records[1 : len(records)-1]
	if len(middle) > 0 {
		return q.committed(middle, how, what)
	}
	return q.kept(how, what)
}

// committed judges an answer that came from behind the commit point.
func (q Remove) committed(middle []record, how, what string) Outcome {
	unclear := fail(HalfRemoved, "the removal's answer cannot be read; the next attempt sees how far it came")
	kinds := []string{"rm", "freed", "target", "holder"}
	if len(middle) != len(kinds) {
		return unclear
	}
	for i, r := range middle {
		if want := map[string]int{"freed": 2}[kinds[i]]; r.kind != kinds[i] || len(r.fields) != max(want, 1) {
			return unclear
		}
	}
	status, okStatus := number(middle[0].fields[0])
	bytes, okBytes := number(middle[1].fields[0])
	entries, okEntries := number(middle[1].fields[1])
	target, okTarget := presence(middle[2].fields[0])
	holder, okHolder := presence(middle[3].fields[0])
	if !okStatus || !okBytes || !okEntries || !okTarget || !okHolder {
		return unclear
	}
	switch how {
	case "left":
		return fail(StillPresent, "the directory is out of its place but not all of it could be removed: "+what)
	case "stuck":
		return fail(UnregisterFailed, fmt.Sprintf("the directory is gone, but the worktree registration %q could not be removed", what))
	case "gone":
		switch {
		case target != Absent || holder != Absent:
			return fail(StillPresent, fmt.Sprintf("after the removal the target is %s and its holder %s", target, holder))
		case status != 0:
			return fail(RemoveRejected, fmt.Sprintf("rm ended with status %d though nothing is left; the next attempt looks again", status))
		case what != "":
			return unclear
		}
		return Removed{Detail: count(entries, "entry", "entries") + " removed", Bytes: bytes, Entries: entries}
	}
	return unclear
}

// kept judges an answer from before the commit point.
func (q Remove) kept(how, what string) Outcome {
	at := q.Root + "/tasks/" + holderName(q.Segment)
	look := Remedy{What: "look at " + at + " on the host"}
	changed := func(detail string) Outcome {
		return skip(Finding{Reason: ProbeFailed, Cause: ChangedMeanwhile, Checkout: ".", Detail: detail,
			Cure: []Remedy{{What: "have the directory judged again once nothing works in it"}}})
	}
	probe := func(cause Cause, detail string) Outcome {
		return skip(Finding{Reason: ProbeFailed, Cause: cause, Checkout: ".", Detail: detail})
	}
	switch how {
	case "late":
		return fail(RemoveRejected, "the removal reached the host after the time it was allowed; nothing was touched")
	case "no_clock":
		return fail(RemoveRejected, "the host's clock cannot be read; nothing was touched")
	case "tasks_symlink":
		return skip(Finding{Reason: NotACheckout, Cause: TasksIsSymlink, Checkout: ".", Detail: "the directory that holds the tasks has become a symbolic link"})
	case "tasks_absent":
		return probe(TasksMissing, "the directory that holds the tasks is gone")
	case "tasks_other", "tasks_unreadable", "tasks_directory":
		return probe(Unreadable, "the directory that holds the tasks cannot be entered by its own path")
	case "target_absent":
		return fail(Busy, "the directory went away before the removal began; the next attempt looks again")
	case "target_symlink":
		return skip(Finding{Reason: NotACheckout, Cause: TargetIsSymlink, Checkout: ".", Detail: "the target has become a symbolic link"})
	case "target_other":
		return skip(Finding{Reason: NotACheckout, Cause: NoRepository, Checkout: ".", Detail: "the target is no longer a directory"})
	case "target_unreadable":
		return probe(Unreadable, "the target can no longer be seen")
	case "replaced":
		return changed("another directory stands where the inspected one stood")
	case "changed":
		return changed("something in the directory changed between the inspection and the removal; it was put back")
	case "mount":
		return probe(MountInside, fmt.Sprintf("something is mounted at or below the directory (%q)", what))
	case "no_mounts":
		return probe(MountInside, "the host does not say what is mounted")
	case "foreign":
		return probe(ForeignOwner, fmt.Sprintf("%q belongs to another user", what))
	case "live":
		return skip(Finding{Reason: Shared, Cause: LiveProcess, Checkout: ".", Detail: fmt.Sprintf("a process is at work in the directory (%q)", what)})
	case "busy":
		return fail(Busy, "another removal of this directory is at work on the host: "+inWords(what))
	case "occupied":
		return fail(HalfRemoved, fmt.Sprintf("an earlier removal left its holder %q; the next attempt puts it right first", what), look)
	case "no_holder":
		return fail(RemoveRejected, "no directory can be made beside the target; nothing was moved",
			Remedy{What: "see whether the account may write in " + q.Root + "/tasks and whether the disk has room"})
	case "no_note":
		return fail(RemoveRejected, "the holder beside the target takes no notes; nothing was lost or moved",
			Remedy{What: "see whether the disk has room and allows symbolic links"})
	case "immovable":
		return fail(RemoveRejected, "the host does not let the directory be renamed; it is where it was")
	case "copied":
		return fail(RemoveRejected, "what was moved was not what was inspected; it was put back")
	case "held":
		return fail(HalfRemoved, fmt.Sprintf("the directory could not be put back; the work is in %q", what), look)
	}
	return fail(HalfRemoved, "the removal's answer cannot be read; the next attempt sees how far it came")
}
