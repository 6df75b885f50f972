package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// invariant is one thing that must hold after every step.
type invariant string

const (
	nothingLost   invariant = "no byte at risk is ever gone"
	removedIsGone invariant = "removed is only said of what is gone"
	othersRights  invariant = "a directory somebody has a right to is untouched"
	oneRemoval    invariant = "at most one removal of a directory is at work"
	jobsEnd       invariant = "every job ends"
	nothingForgot invariant = "no leftover is forgotten"
	siblingsStand invariant = "siblings are untouched"
	eightTries    invariant = "a job is given up after eight failures, of which a hold is none"
	recordsReplay invariant = "the record replays to the outcome"
)

type violation struct {
	invariant invariant
	detail    string
}

func (v violation) String() string { return string(v.invariant) + ": " + v.detail }

// violated keeps the first violation.
func (w *world) violated(i invariant, format string, args ...any) {
	if w.failure == nil {
		w.failure = &violation{i, fmt.Sprintf(format, args...)}
		w.tell("VIOLATED: %s", w.failure)
	}
}

// ledger is what the world knows and no part of the machinery is asked for.
type ledger struct {
	rights   []right
	switches map[string][]switching
	looks    map[string]int          // job, attempt, host, directory: the step of the last look
	jobs     map[string][]*tree      // job: the trees it was made about
	owner    map[string]string       // job: task
	outcomes map[string]core.Outcome // of a kept record
	beside   []beside
	failures map[string]int // job: attempts that ended with a failure and were not cut short
	holds    map[string]int // job: attempts of which every failure was a hold
	ended    map[string]bool
	records  int
	read     map[string][]core.JobTarget // of a snapshot
}

type right struct {
	task    string
	host    *host
	segment string
	since   int
}

type switching struct {
	on    bool
	since int
}

type beside struct {
	tree    *tree
	version int
}

func newLedger() ledger {
	return ledger{switches: map[string][]switching{}, looks: map[string]int{}, jobs: map[string][]*tree{}, owner: map[string]string{}, outcomes: map[string]core.Outcome{}, failures: map[string]int{}, holds: map[string]int{}, ended: map[string]bool{}, read: map[string][]core.JobTarget{}}
}

func (l *ledger) siblings(w *world) {
	for _, h := range w.hosts {
		for _, name := range []string{"sibling", "neighbour"} {
			if t := h.trees[name]; t != nil {
				l.beside = append(l.beside, beside{t, t.version})
			}
		}
	}
}

func (l *ledger) right(task string, h *host, segment string, step int) {
	l.rights = append(l.rights, right{task, h, segment, step})
}

// returned notes that a task is not archived any more: what it had a right to it
// has a right to since then. Claims are judged by the last look.
func (l *ledger) returned(task string, step int) {
	for i := range l.rights {
		if l.rights[i].task == task {
			l.rights[i].since = step
		}
	}
}

func (l *ledger) switched(task string, on bool, step int) {
	l.switches[task] = append(l.switches[task], switching{on, step})
}

func (l *ledger) looked(w *world, q core.Owner) {
	j, err := w.desk().Job(ctxNone, q.JobID)
	if err == nil {
		l.looks[fmt.Sprint(q.JobID, " ", j.Attempts, " ", q.Target.Host, " ", q.Target.TaskDir)] = w.steps
	}
}

// made notes which directories a job is about.
func (l *ledger) made(w *world, t *task, ids []string) {
	for _, id := range ids {
		l.jobs[id], l.owner[id] = slices.Clone(t.trees), t.id
	}
}

func (l *ledger) again(old, fresh string) { l.jobs[fresh], l.owner[fresh] = l.jobs[old], l.owner[old] }

// touches is told before a removal does something to a tree.
func (p *process) touches(t *tree, what string) {
	w, h := p.host.w, p.host
	attempt, id, _ := strings.Cut(p.who, ",")
	owner := w.ledger.owner[id]
	terminal := func(task string) bool { yes, _ := w.store.Terminal(ctxNone, task); return yes }
	if !terminal(owner) {
		w.violated(othersRights, "%s %s %s on %s, and its task %s is not terminal", p.who, what, t.name, h.name, owner)
	}
	look, looked := w.ledger.looks[fmt.Sprint(id, " ", attempt, " ", h.name, " ", h.dir(t.name))]
	if !looked {
		w.violated(othersRights, "%s %s %s on %s without a last look", p.who, what, t.name, h.name)
	}
	for _, r := range w.ledger.rights {
		if r.task != owner && r.host == h && r.segment == t.name && r.since < look && !terminal(r.task) {
			w.violated(othersRights, "%s %s %s on %s, and %s had a right to it before the last look", p.who, what, t.name, h.name, r.task)
		}
	}
	on := true
	for _, s := range w.ledger.switches[owner] {
		if s.since < look {
			on = s.on
		}
	}
	if !on {
		w.violated(othersRights, "%s %s %s on %s, and its profile was off before the last look", p.who, what, t.name, h.name)
	}
	if !slices.ContainsFunc(w.ledger.jobs[id], func(about *tree) bool { return about.host == h && about.name == t.name }) {
		w.violated(siblingsStand, "%s %s %s", p.who, what, t.name)
	}
}

// doom is told of a tree that will be removed now.
func (w *world) doom(t *tree) {
	if risk := t.atRisk(); len(risk) > 0 {
		w.violated(nothingLost, "%s on %s is removed and holds %s", t.name, t.host.name, strings.Join(risk, ", "))
	}
	w.count("directories removed")
	if w.stormy {
		w.count("directories removed in a storm")
	}
}

// concluded is told of an outcome in the row.
func (l *ledger) concluded(w *world, c ports.Conclusion) {
	switch o := c.Outcome.(type) {
	case core.Removed:
		w.count("removed")
		l.gone(w, c.JobID, c.Target)
	case core.Skipped:
		w.count("kept: " + string(o.Reason) + " " + string(o.Cause))
	case core.Failed:
		w.count("failed: " + string(o.Fault))
	}
	key := fmt.Sprint(c.JobID, " ", c.Attempt, " ", c.Target.Host, " ", c.Target.TaskDir)
	if told, kept := l.outcomes[key]; kept && w.broken == "" && !cmp.Equal(told, c.Outcome) {
		w.violated(recordsReplay, "%s: the record says %s and the row %s", key, said(told), said(c.Outcome))
	}
}

// tried is told of the end of an attempt in the row. What the row was told is
// read, and none of what it counts. A worker that dies leaves a try that did not
// fail.
func (l *ledger) tried(w *world, token ports.Token, end ports.Ending) {
	held := end.Error != ""
	final := end.Error != ""
	for line := range strings.SplitSeq(end.Error, "\n") {
		held = held && strings.Contains(line, ": "+string(core.PolicyHeld)+": ")
		final = final && slices.ContainsFunc([]core.Fault{core.NoPin, core.PathRefused, core.SnapshotInvalid}, func(f core.Fault) bool { return strings.Contains(line, ": "+string(f)+": ") })
	}
	switch {
	case end.State == ports.Succeeded || end.State == ports.RetryWait && end.Delay == 0: // put down by a shutdown
		return
	case held:
		w.count("attempts held")
		l.holds[token.JobID]++
	default:
		l.failures[token.JobID]++
	}
	switch failures := l.failures[token.JobID]; {
	case end.State == ports.JobFailed && !final && token.Attempt-l.holds[token.JobID] < 8:
		w.violated(eightTries, "%s is given up after attempt %d, of which %d were held: %s", token.JobID, token.Attempt, l.holds[token.JobID], end.Error)
	case end.State == ports.RetryWait && failures >= 8:
		w.violated(eightTries, "%s has failed %d times and is tried again", token.JobID, failures)
	}
}

// gone: what a job was about is no more.
func (l *ledger) gone(w *world, id string, target core.Target) {
	for _, t := range l.jobs[id] {
		if t.host.name == target.Host && t.host.dir(t.name) == target.TaskDir && !t.gone {
			w.violated(removedIsGone, "%s says removed of %s on %s, of which %d parts are left", id, t.name, target.Host, t.parts)
		}
	}
}

// kept is told of every record.
func (l *ledger) kept(w *world, r core.Record) {
	read := r
	if l.records++; l.records%4 == 1 { // and every fourth as it is written and read again
		raw, err := json.Marshal(r)
		if err != nil {
			w.violated(recordsReplay, "a record cannot be written: %v", err)
			return
		}
		w.mark(string(raw))
		if err := json.Unmarshal(raw, &read); err != nil {
			w.violated(recordsReplay, "a record cannot be read again: %v", err)
			return
		}
	} else {
		w.mark(fmt.Sprint(r.Snapshot.JobID, " ", r.Snapshot.Attempt, " ", len(r.Transcript), " ", r.Result))
	}
	if r.Result.Outcome == core.OutcomeRemoved {
		l.gone(w, r.Snapshot.JobID, r.Snapshot.Target)
	}
	outcome, err := core.Replay(read.Snapshot, read.Transcript)
	word := core.OutcomeCancelled
	switch o := outcome.(type) {
	case core.Removed:
		word = core.OutcomeRemoved
	case core.Skipped:
		word = core.OutcomeSkipped
		if o.Reason != r.Result.Reason || o.Cause != r.Result.Cause {
			err = fmt.Errorf("it replays to %s", said(o))
		}
	case core.Failed:
		word = core.OutcomeFailed
		if o.Fault != r.Result.Fault {
			err = fmt.Errorf("it replays to %s", said(o))
		}
	default:
		switch err.(type) {
		case *core.Incomplete, *core.Withdrawn:
			err = nil
		}
	}
	if err != nil || word != r.Result.Outcome {
		w.violated(recordsReplay, "%s attempt %d was %s %s%s, and its record replays to %s (%v)", r.Snapshot.JobID, r.Snapshot.Attempt, r.Result.Outcome, r.Result.Reason, r.Result.Fault, word, err)
	}
	if outcome != nil {
		l.outcomes[fmt.Sprint(r.Snapshot.JobID, " ", r.Snapshot.Attempt, " ", r.Snapshot.Target.Host, " ", r.Snapshot.Target.TaskDir)] = outcome
	}
}

// check looks at everything that may have changed since the last step.
func (w *world) check() {
	if !w.changed || w.failure != nil {
		return
	}
	w.changed = false
	for _, b := range w.ledger.beside {
		if b.tree.gone || b.tree.host.trees[b.tree.name] != b.tree || b.tree.version != b.version {
			w.violated(siblingsStand, "%s on %s is not as it was", b.tree.name, b.tree.host.name)
		}
	}
	for _, h := range w.hosts {
		if h.helper != 1 {
			w.violated(siblingsStand, "the helper on %s is another", h.name)
		}
		for _, name := range sortedKeys(h.trees) {
			for _, r := range h.trees[name].outside() {
				if !slices.Contains(h.worktrees, r.registered) {
					w.violated(siblingsStand, "the registration of %s on %s is gone and the directory is there", name, h.name)
				}
			}
		}
		for _, segment := range sortedKeys(h.holders) {
			held := h.holders[segment]
			for _, t := range []*tree{held.q, held.x} {
				if t != nil && t == held.q {
					for _, r := range t.outside() {
						if !slices.Contains(h.worktrees, r.registered) {
							w.violated(siblingsStand, "the registration of the quarantined %s on %s is gone", segment, h.name)
						}
					}
				}
			}
			// An empty one holds nothing: a script that comes late, to a directory that
			// is gone, makes one and takes it away, or is killed between the two.
			if held.alive() || held.q == nil && held.x == nil && !held.mark {
				continue
			}
			w.remembered(h, segment)
		}
	}
}

// remembered: some job still knows of what a removal left.
func (w *world) remembered(h *host, segment string) {
	var told []string
	for _, j := range w.jobs() {
		targets, known := w.ledger.read[string(j.Snapshot)]
		if !known {
			snapshot, err := core.ParseJobSnapshot(j.Snapshot)
			if err != nil {
				continue
			}
			targets = snapshot.Targets()
			w.ledger.read[string(j.Snapshot)] = targets
		}
		for _, t := range targets {
			if t.Target.Host != h.name || t.Target.TaskDir != h.dir(segment) {
				continue
			}
			if t.Begun > 0 && t.Outcome != core.OutcomeRemoved && (!over(j.State) || j.State == ports.JobFailed) {
				return
			}
			told = append(told, fmt.Sprintf("%s is %s, begun %d, %s", j.ID, j.State, t.Begun, t.Outcome))
		}
	}
	w.violated(nothingForgot, "what a removal left of %s on %s is known to nobody (%s)", segment, h.name, strings.Join(told, "; "))
}

// finally looks at what must hold when every job has ended.
func (w *world) finally() {
	w.changed = true
	w.check()
	for _, j := range w.jobs() {
		w.count("jobs " + string(j.State))
		snapshot, err := core.ParseJobSnapshot(j.Snapshot)
		if err != nil {
			w.violated(recordsReplay, "the snapshot of %s cannot be read: %v", j.ID, err)
			continue
		}
		for _, t := range snapshot.Targets() {
			if t.Outcome == core.OutcomeRemoved {
				w.ledger.gone(w, j.ID, t.Target)
			}
			if j.State == ports.Succeeded && t.Outcome != core.OutcomeRemoved && t.Outcome != core.OutcomeSkipped {
				w.violated(jobsEnd, "%s has succeeded and says %q of %s", j.ID, t.Outcome, t.Target.TaskDir)
			}
		}
	}
	w.mark(fmt.Sprint(w.counts))
}
