package web

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// host is one machine, over the jobs that were looked at.
type host struct {
	Name      string
	Targets   int
	Removed   int
	Kept      int
	Freed     int64 // bytes removed
	Held      int64 // bytes of what was kept, as last seen
	Leftovers []leftover
	Fault     core.Fault // the latest, empty when the latest attempt had none
	FaultSays string
	FaultAt   time.Time
	FaultJob  string
}

// leftover is a removal that began and was not seen to end.
type leftover struct{ JobID, TaskDir string }

// hostsOf tells every host that the latest jobs name. A directory counts once,
// as its latest job left it.
func hostsOf(ctx context.Context, store ports.Desk, jobs []ports.Job) ([]host, error) {
	all := map[string]*host{}
	counted := map[[2]string]bool{}
	for _, j := range jobs { // newest first
		snapshot, err := core.ParseJobSnapshot(j.Snapshot)
		if err != nil {
			continue // the job's page says so
		}
		var sizes map[string]int64
		for _, t := range snapshot.Targets() {
			name := strings.ToLower(strings.TrimSuffix(t.Target.Host, "."))
			directory := [2]string{name, j.TaskID + "\x00" + t.Target.TaskDir}
			if counted[directory] {
				continue
			}
			counted[directory] = true
			if all[name] == nil {
				all[name] = &host{Name: name}
			}
			h := all[name]
			h.Targets++
			if t.Outcome == "" {
				continue
			}
			if sizes == nil {
				if sizes, err = sizesOf(ctx, store, j.ID); err != nil {
					return nil, err
				}
			}
			switch t.Outcome {
			case core.OutcomeRemoved:
				h.Removed++
				h.Freed += sizes[t.Target.TaskDir]
				continue
			case core.OutcomeFailed:
				if j.UpdatedAt.After(h.FaultAt) {
					h.Fault, h.FaultSays, h.FaultAt, h.FaultJob = t.Fault, t.Detail, j.UpdatedAt, j.ID
				}
			}
			h.Kept++
			h.Held += sizes[t.Target.TaskDir]
			if t.Begun > 0 && !t.Settled() {
				h.Leftovers = append(h.Leftovers, leftover{j.ID, t.Target.TaskDir})
			}
		}
	}
	out := make([]host, 0, len(all))
	for _, h := range all {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b host) int { return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.Name, b.Name)) })
	return out, nil
}

// sizesOf is how large each directory of a job was when it was last looked at.
func sizesOf(ctx context.Context, store ports.Desk, jobID string) (map[string]int64, error) {
	records, err := store.RecordsOf(ctx, jobID)
	sizes := map[string]int64{}
	for _, f := range records { // newest first
		if at := f.Record.Snapshot.Target.TaskDir; sizes[at] == 0 {
			sizes[at] = f.Record.Result.Bytes
		}
	}
	return sizes, err
}
