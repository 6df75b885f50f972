package cli

import (
	"fmt"
	"strings"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
)

// result prints one result, for a program or for a person.
func (t *terminal) result(r core.Result, asJSON bool) error {
	r.Cure = replay.Cures(r)
	if asJSON {
		return t.json(r)
	}
	t.headline(r)
	t.paragraph("  ", r.Detail)
	for _, other := range r.Others {
		t.paragraph("  ", fmt.Sprintf("Also %s (%s): %s", other.Reason, other.Cause, other.Detail))
	}
	if len(r.Checkouts) > 0 {
		t.printf("\n")
		var rows [][]string
		for _, c := range r.Checkouts {
			rows = append(rows, []string{c.Path, c.Kind, c.Verdict, replay.Why(c.Reason, c.Cause)})
		}
		t.table([]string{"checkout", "kind", "verdict", "why"}, rows, 0, func(column int, cell string) style {
			if column == 2 {
				return outcomeStyle(cell)
			}
			return ""
		})
	}
	if len(r.Excused) > 0 {
		t.printf("\n")
		for _, line := range replay.Excused(r.Excused) {
			t.item(line)
		}
	}
	t.cures(r.Cure)
	if r.Record != "" {
		t.printf("\nrecord: %s\n", clean(r.Record))
	}
	return nil
}

// headline prints what a directory came to, and which it is, whole: a path that
// is cut is no path.
func (t *terminal) headline(r core.Result) {
	t.printf("%s\n  %s\n", t.paint(outcomeStyle(r.Outcome), headline(r)), clean(place(r.Target)))
}

// headline is an outcome in one or two words.
func headline(r core.Result) string {
	switch r.Outcome {
	case core.OutcomeSkipped:
		return "kept: " + replay.Why(r.Reason, r.Cause)
	case core.OutcomeFailed:
		text := "failed: " + string(r.Fault)
		if r.Final {
			text += " (no retry can change it)"
		}
		return text
	case core.OutcomeCancelled:
		if strings.HasPrefix(r.Detail, "not decided: ") { // by an observer
			return "not decided"
		}
	case core.OutcomeRemoved, core.OutcomeReclaimable:
		if r.Bytes > 0 {
			return r.Outcome + " (" + replay.Size(r.Bytes) + ")"
		}
	}
	return r.Outcome
}

// place is a target for people.
func place(t core.Target) string {
	host := t.Host
	if t.User != "" {
		host = t.User + "@" + host
	}
	if t.Port != 0 && t.Port != 22 {
		host = fmt.Sprintf("%s:%d", host, t.Port)
	}
	return t.TaskDir + " on " + host
}

// cures prints what a person can do; a command stands on its own line, whole,
// to be copied.
func (t *terminal) cures(cures []core.Remedy) {
	if len(cures) == 0 {
		return
	}
	t.printf("\nwhat to do\n")
	t.remedies(cures)
}

func (t *terminal) remedies(cures []core.Remedy) {
	for _, cure := range cures {
		t.item(cure.What)
		if cure.Run != "" {
			t.printf("      %s\n", t.paint(strong, clean(cure.Run)))
		}
	}
}
