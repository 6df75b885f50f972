package web

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// previews remembers what was foreseen, so that the record of the real attempt
// can be compared with it. It is memory: bounded, and empty after a restart.
type previews struct {
	mu    sync.Mutex
	tasks map[string]foreseen
	order []string
}

type foreseen struct {
	At      time.Time
	Records []core.Record
}

const mostPreviews = 1000

func (p *previews) put(task string, f foreseen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks == nil {
		p.tasks = map[string]foreseen{}
	}
	if _, known := p.tasks[task]; !known {
		p.order = append(p.order, task)
	}
	p.tasks[task] = f
	for len(p.order) > mostPreviews {
		delete(p.tasks, p.order[0])
		p.order = p.order[1:]
	}
}

func (p *previews) of(task string) (foreseen, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.tasks[task]
	return f, ok
}

// comparison is what the preview said of a directory, and what had changed when
// the attempt came.
type comparison struct {
	At      time.Time
	Then    core.Result
	Changes []string // empty: nothing had changed
}

// compare finds the preview of the record's directory. Only a preview from
// before the attempt counts.
func (p *previews) compare(r core.Record) *comparison {
	f, ok := p.of(r.Snapshot.TaskID)
	if !ok || f.At.Unix() > r.Snapshot.At {
		return nil
	}
	for _, before := range f.Records {
		then, now := before.Snapshot.Target, r.Snapshot.Target
		if then.Host != now.Host || then.Port != now.Port || then.TaskDir != now.TaskDir {
			continue
		}
		out := &comparison{At: f.At, Then: before.Result}
		was, saw := inventoryOf(before), inventoryOf(r)
		if was != nil && saw != nil && was.Manifest != "" && was.Manifest != saw.Manifest {
			out.Changes = append(out.Changes, fmt.Sprintf("the directory's content: %d entries then, %d at the attempt", was.Entries, saw.Entries))
		}
		if verdict(before.Result) != verdict(r.Result) {
			out.Changes = append(out.Changes, fmt.Sprintf("the verdict: %s then, %s at the attempt", verdict(before.Result), verdict(r.Result)))
		}
		if then.Enabled != now.Enabled {
			out.Changes = append(out.Changes, "the opt-in frozen for the directory")
		}
		return out
	}
	return nil
}

// verdict is the part of a result that a preview foretells: what it calls
// reclaimable is what an attempt removes.
func verdict(r core.Result) string {
	switch r.Outcome {
	case core.OutcomeRemoved, core.OutcomeReclaimable:
		return "nothing would be lost"
	case core.OutcomeSkipped:
		return fmt.Sprintf("kept (%s, %s)", r.Reason, r.Cause)
	case core.OutcomeFailed:
		return fmt.Sprintf("failed (%s)", r.Fault)
	}
	return r.Outcome
}

type inventory struct {
	Manifest string
	Entries  int64
}

func inventoryOf(r core.Record) *inventory {
	for _, e := range r.Transcript {
		q, is := e.Query.(core.Inventory)
		heard, answered := e.Answer.(core.Heard)
		if said, ran := heard.Reply.(core.Said); is && answered && ran {
			evidence := q.Judge(said)
			return &inventory{evidence.Manifest.Digest, evidence.Entries}
		}
	}
	return nil
}

type previewPage struct {
	Able     bool
	Task     string
	Foreseen *foreseen
	None     bool // the task has no directory on an SSH host
}

func (c *Console) previewForm(r *http.Request) (answer, error) {
	return answer{page: "preview", nav: "preview", title: "Preview", body: previewPage{Able: c.Preview != nil, Task: r.FormValue("task")}}, nil
}

func (c *Console) preview(r *http.Request) (answer, error) {
	task := strings.TrimSpace(r.PostFormValue("task"))
	switch {
	case c.Preview == nil:
		return answer{}, fmt.Errorf("%w: this console cannot look at hosts", ports.ErrRefused)
	case task == "":
		return answer{to: "/preview"}, nil
	}
	asked := c.now()
	records, err := c.Preview(r.Context(), task)
	if err != nil {
		return answer{}, err
	}
	c.previews.put(task, foreseen{At: asked, Records: records})
	c.did(r, "an archive was previewed", "task_id", task)
	return answer{to: at("preview", task)}, nil
}

func (c *Console) previewed(r *http.Request) (answer, error) {
	task := r.PathValue("task")
	page := previewPage{Able: c.Preview != nil, Task: task}
	if f, ok := c.previews.of(task); ok {
		page.Foreseen, page.None = &f, len(f.Records) == 0
	}
	return answer{page: "preview", nav: "preview", title: "Preview of task " + plain(task), body: page}, nil
}
