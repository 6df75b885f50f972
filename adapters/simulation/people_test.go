package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// hire starts a worker.
func (w *world) hire() {
	ctx, cancel := context.WithCancel(context.Background())
	b := &backend{name: fmt.Sprintf("w%d", len(w.backends)+1), cancel: cancel, done: make(chan struct{})}
	w.backends = append(w.backends, b)
	s, n := storage{w, b}, network{w, b}
	odd := time.Duration(len(w.backends)*7919 + w.pick(1000)) // no two timers at one moment
	run := worker.Worker{Name: b.name, Jobs: s, Tasks: s, Sessions: s,
		Stops: &worker.Stopping{Dialer: n, Sessions: s, Jobs: s},
		Phase: &job.Phase{Dialer: n, Owners: s, Policy: w.policy, Row: s, Records: s},
		Poll:  20*time.Minute + odd, Beat: 20*time.Second + odd, Stale: time.Minute, Grace: 30*time.Second + odd, AtOnce: 4}
	if w.stormy {
		run.Poll = time.Duration(2+w.pick(60))*time.Second + odd
	}
	w.tell("%s starts", b.name)
	go func() {
		defer close(b.done)
		run.Run(ctx)
	}()
}

// event is one thing that happens.
func (w *world) event() {
	switch roll := w.pick(100); {
	case roll < 35 && w.temper.people:
		w.person()
	case roll < 60 && w.temper.mishaps:
		w.mishap()
	default:
		w.work()
	}
}

// work is one act of an agent that lives.
func (w *world) work() {
	h := w.hosts[w.pick(len(w.hosts))]
	var living []*agent
	for _, a := range h.agents {
		if a.alive {
			living = append(living, a)
		}
	}
	if len(living) == 0 || !h.up {
		return
	}
	w.act(h, living[w.pick(len(living))], w.pick(14))
}

func (w *world) act(h *host, a *agent, what int) {
	t := a.cwd
	if t == nil {
		t = h.trees[a.name] // by its path: it finds what stands there, or nothing
	}
	if t == nil || t.gone {
		if a.cwd == nil && h.mounted && w.chance(0.1) {
			t = h.make(a.name, "primary")
			t.repos = nil // mkdir -p: no checkout
			w.tell("%s makes %s anew on %s", who(a), a.name, h.name)
		}
		return
	}
	if len(t.repos) == 0 {
		return
	}
	r := t.repos[w.pick(len(t.repos))]
	act := ""
	switch what {
	case 0:
		act = "edits a file"
		r.write("README", modified)
	case 1:
		act = "writes a new file"
		r.write(fmt.Sprintf("new%d", w.pick(3)), untracked)
	case 2:
		act = "commits"
		r.commit(w.next())
	case 3, 4, 5:
		act = "pushes"
		r.push()
	case 6:
		act = "stashes"
		r.stash(w.next())
	case 7:
		act = "leaves a branch"
		r.checkout(fmt.Sprintf("refs/heads/b%d", w.pick(3)))
	case 8:
		act = "detaches HEAD"
		r.detach()
	case 9:
		act = "resets"
		r.reset()
	case 10:
		act = "stops half-way in a merge"
		r.operation = "MERGE_HEAD"
	case 11, 12:
		act = "saves everything"
		t.tidy()
	case 13:
		act = "ends"
		a.alive = false
	}
	if act != "ends" {
		t.version++
	}
	w.tell("%s %s in %s/%s on %s", who(a), act, t.name, r.path, h.name)
}

// close has something happen right beside a script that is at work on a
// directory, where it hurts most.
func (w *world) close() bool {
	var at []*process
	for _, h := range w.hosts {
		for _, p := range h.running {
			if p.name == "remove" || p.name == "settle" {
				at = append(at, p)
			}
		}
		for _, segment := range sortedKeys(h.hot) {
			at = append(at, h.hot[segment])
		}
	}
	if len(at) == 0 {
		return false
	}
	p := at[w.pick(len(at))]
	h := p.host
	switch w.pick(12) {
	case 0, 1, 2, 3, 4:
		for _, a := range h.agents {
			if a.alive && a.name == p.segment && w.chance(0.5) {
				w.act(h, a, w.pick(3))
				return true
			}
		}
	case 5:
		if w.temper.crashes {
			w.tell("%s crashes and starts again", h.name)
			h.crash()
		}
	case 6:
		w.tell("the connection of a %s breaks", p.name)
		p.session.cut()
	case 7:
		if w.temper.kills {
			w.tell("%s is killed", p.session.b.name)
			w.crash(p.session.b)
			w.hire()
		}
	case 8:
		p.session.b.frozen = time.Now().Add(w.upTo(3 * time.Minute))
		w.tell("%s stands still until %s", p.session.b.name, p.session.b.frozen.Sub(w.began).Truncate(time.Second))
	case 9:
		if len(w.backends) < 12 {
			w.hire()
		}
	case 10:
		for _, t := range w.tasks {
			if "task-"+t.id == p.segment && w.temper.reopen {
				w.reopen(t)
			}
		}
	default:
		w.person()
	}
	return true
}

func who(a *agent) string {
	switch {
	case a.session != "":
		return "the helper of " + a.session
	case a.cwd == nil:
		return "a process nobody sees"
	}
	return "a process left behind"
}

// person is one act of somebody at the backend. What is refused is no act.
func (w *world) person() {
	ctx := context.Background()
	t := w.tasks[w.pick(len(w.tasks))]
	said := func(what string, err error) bool {
		w.tell("somebody %s%s", what, map[bool]string{true: ": refused", false: ""}[err != nil])
		return err == nil
	}
	ended, _ := w.store.Terminal(ctx, t.id)
	switch roll := w.pick(20); {
	case roll < 8 && !ended:
		ids, err := w.store.Archive(ctx, []string{t.id}, w.chance(0.1))
		said("archives "+t.id, err)
		w.ledger.made(w, t, ids)
	case roll < 10 && !ended:
		ids, err := w.store.Delete(ctx, []string{t.id}, false)
		said("deletes "+t.id, err)
		w.ledger.made(w, t, ids)
	case roll < 10 && w.chance(0.8): // it has ended, and stays so
	case roll < 10:
		if w.temper.reopen {
			w.reopen(t)
		}
	case roll < 12:
		if !w.temper.switches {
			return
		}
		on := w.chance(0.6)
		if said(fmt.Sprintf("sets the switch of %s to %t", t.profile, on), w.desk().SetReclaim(ctx, t.profile, on)) {
			w.ledger.switched(t.id, on, w.steps)
		}
	case roll < 13:
		if !w.temper.stopAll {
			return
		}
		on := w.chance(0.4)
		w.desk().SetStopped(ctx, on)
		said(fmt.Sprintf("sets stop-all to %t", on), nil)
	case roll < 15:
		if all := w.jobs(); len(all) > 0 {
			j := all[w.pick(len(all))]
			due, err := w.desk().Retry(ctx, j.ID)
			said("retries "+j.ID, err)
			if err == nil && due != j.ID {
				w.ledger.again(j.ID, due)
			}
		}
	case roll < 16:
		if all := w.jobs(); len(all) > 0 {
			j := all[w.pick(len(all))]
			fresh, err := w.desk().JudgeAgain(ctx, j.ID)
			said("has "+j.ID+" judged again", err)
			if err == nil {
				w.ledger.again(j.ID, fresh)
			}
		}
	case roll < 17 && w.chance(0.5):
		if all := w.jobs(); len(all) > 0 {
			j := all[w.pick(len(all))]
			said("cancels "+j.ID, w.desk().Cancel(ctx, j.ID))
		}
	case roll < 18:
		if w.temper.claims {
			w.claim(t)
		}
	default:
		h := w.hosts[w.pick(len(w.hosts))]
		if at := h.trees["task-"+t.id]; at != nil {
			at.tidy()
			said("saves everything in task-"+t.id+" on "+h.name, nil)
		}
	}
}

// reopen un-archives a task, and may launch it again.
func (w *world) reopen(t *task) {
	ctx := context.Background()
	err := w.store.Unarchive(ctx, t.id, false)
	if errors.Is(err, ports.ErrRemoving) && w.broken == "an un-archive does not look at the begin" {
		w.store.PutTask(memstore.Task{ID: t.id, Title: t.id})
		err = nil
	}
	w.tell("somebody un-archives %s%s", t.id, map[bool]string{true: ": refused", false: ""}[err != nil])
	if err == nil {
		w.ledger.returned(t.id, w.steps)
	}
	if err != nil || w.chance(0.5) || w.store.BarSession(ctx, t.id) != nil {
		return
	}
	if h := w.hosts[w.pick(len(w.hosts))]; h.up && h.mounted {
		w.session(t, h, true)
		w.tell("%s is launched again on %s", t.id, h.name)
	}
}

// claim has another task of the installation run in t's directory or in its
// environment.
func (w *world) claim(t *task) {
	h := w.hosts[w.pick(len(w.hosts))]
	segment := "task-" + t.id
	id := fmt.Sprintf("g%d", len(w.tasks))
	if len(w.tasks) > 6 || h.trees[segment] == nil || !h.up || !h.mounted {
		return
	}
	guest := &task{id: id, profile: "profile-" + id}
	w.store.PutTask(memstore.Task{ID: id, Title: id})
	w.store.PutProfile(memstore.Profile{ID: guest.profile, Name: id, Executor: "ssh", Config: config(true)})
	w.store.PutEnvironment(memstore.Environment{ID: "env-" + id, TaskID: id, ExecutorType: "ssh", ProfileID: guest.profile})
	w.sessions++
	session := fmt.Sprintf("s%d", w.sessions)
	if w.chance(0.3) {
		w.store.PutSession(memstore.Session{ID: session, TaskID: id, State: "RUNNING", EnvironmentID: "env-" + t.id})
		w.ledger.right(id, h, segment, w.steps)
		w.tell("%s has a session in the environment of %s", id, t.id)
	} else {
		w.store.PutSession(memstore.Session{ID: session, TaskID: id, State: "RUNNING", EnvironmentID: "env-" + id})
		w.store.PutLaunch(memstore.Launch{Running: core.Running{SessionID: session, TaskID: id, Runtime: "ssh", Status: "running", PID: 4712,
			Metadata: metadata(h, segment, guest.profile, "", true)}, ProfileID: guest.profile})
		w.ledger.right(id, h, segment, w.steps)
		guest.trees = append(guest.trees, h.trees[segment])
		if w.chance(0.5) {
			h.agents = append(h.agents, &agent{session: session, task: id, name: segment, cwd: h.trees[segment], alive: true})
		}
		w.tell("%s is launched into %s on %s", id, segment, h.name)
	}
	w.tasks = append(w.tasks, guest)
}

// mishap is something nobody meant.
func (w *world) mishap() {
	h := w.hosts[w.pick(len(w.hosts))]
	var b *backend
	if alive := slices.DeleteFunc(slices.Clone(w.backends), func(b *backend) bool { return b.dead }); len(alive) > 0 {
		b = alive[w.pick(len(alive))]
	}
	switch w.pick(12) {
	case 0:
		if h.up && w.chance(0.5) {
			w.tell("%s crashes and starts again", h.name)
			h.crash()
		}
	case 1:
		h.up = !h.up
		w.tell("%s is up: %t", h.name, h.up)
		if !h.up {
			h.crash()
		}
	case 2:
		if h.key == h.pin {
			h.key = "SHA256:rotated"
		} else {
			h.key = h.pin
		}
		w.tell("%s shows the key %s", h.name, h.key)
	case 3:
		if w.chance(0.3) || !h.mounted {
			h.mounted = !h.mounted
			w.tell("the tasks directory of %s is there: %t", h.name, h.mounted)
			if !h.mounted {
				h.crash()
			}
		}
	case 4:
		h.full = !h.full
		w.tell("the disk of %s is full: %t", h.name, h.full)
	case 5:
		h.stubborn = !h.stubborn
		w.tell("rm on %s leaves something: %t", h.name, h.stubborn)
	case 6:
		if all := h.all(); len(all) > 0 {
			if t := all[w.pick(len(all))]; t.name != "sibling" && t.name != "neighbour" {
				t.mount = !t.mount
				w.tell("something is mounted in %s on %s: %t", t.name, h.name, t.mount)
			}
		}
	case 7:
		if b != nil && len(b.sessions) > 0 {
			w.tell("a connection of %s breaks", b.name)
			b.sessions[w.pick(len(b.sessions))].cut()
		}
	case 8:
		if b != nil {
			w.tell("%s is killed", b.name)
			w.crash(b)
		}
		w.hire()
	case 9:
		if b != nil && w.chance(0.3) {
			w.tell("%s is told to stop", b.name)
			b.cancel()
		}
	case 10:
		if b != nil {
			b.frozen = time.Now().Add(w.upTo(4 * time.Minute))
			w.tell("%s stands still until %s", b.name, b.frozen.Sub(w.began).Truncate(time.Second))
		}
	case 11:
		if alive := 0; len(w.backends) < 8 {
			for _, b := range w.backends {
				alive += ones(!b.dead)
			}
			if alive < 3 {
				w.hire()
			}
		}
	}
}
