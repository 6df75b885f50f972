package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// world is everything under one seed.
type world struct {
	seed   uint64
	broken string // the breakage that lies to the machinery, or empty
	random *rand.Rand
	began  time.Time
	stormy bool // things go wrong
	// released is when stop-all is turned off at last, where it outlasts the storm.
	released time.Time
	steps    int
	storm    int // steps until it is over

	temper   temper
	store    *memstore.Store
	policy   ports.Policy
	hosts    []*host
	remote   *remote
	tasks    []*task
	backends []*backend
	inodes   int
	commits  int
	sessions int

	mu      sync.Mutex
	waiting []*call
	arrived chan struct{}
	batches int

	changed bool // since the invariants were last looked at
	ledger  ledger
	// answered are earlier answers to inventories of a segment, for a network
	// that mixes them up.
	answered map[string][]core.Said

	story   []string
	digest  uint64
	failure *violation
	counts  map[string]int
}

// temper is what kind of storm it is: many small worlds that are rough in
// different ways find more than one that is rough in all of them.
type temper struct {
	events                       float64 // something happens anywhere
	near                         float64 // something happens beside a script at work
	faults                       float64 // of storage and network, times what is usual
	people, mishaps              bool
	claims, switches, stopAll    bool
	reopen, kills, crashes, slow bool
}

func (w *world) newTemper() temper {
	often := func() bool { return w.chance(0.5) }
	return temper{events: []float64{0.01, 0.04, 0.12}[w.pick(3)], near: []float64{0.02, 0.06, 0.15}[w.pick(3)], faults: []float64{0, 0.3, 1, 3}[w.pick(4)],
		people: w.chance(0.8), mishaps: w.chance(0.7), claims: w.chance(0.3), switches: w.chance(0.25), stopAll: w.chance(0.15),
		reopen: often(), kills: often(), crashes: often(), slow: often()}
}

// task is one task with what people know of it.
type task struct {
	id, profile string
	trees       []*tree // of its launches
	hook        string
}

// backend is one process of ours: a worker and its connections.
type backend struct {
	name     string
	cancel   context.CancelFunc
	dead     bool
	frozen   time.Time // nothing of it moves before
	sessions []*session
	done     chan struct{}
}

// kind says what may go wrong with a call.
type kind int

const (
	quiet kind = iota
	reads
	writes
	dials
	sends
)

// verdict is how the scheduler lets a call go.
type verdict int

const (
	goOn    verdict = iota
	refused         // nothing was done
	unheard         // it was done, but the answer is lost
	dead            // whoever asked is no more
)

// call is one goroutine that waits at the gate.
type call struct {
	key       string
	kind      kind
	backend   *backend
	process   *process
	hangs     bool // goes on only in fair weather
	batch     int
	notBefore time.Time
	verdict   verdict
	fault     fault // of a call that sends
	open      chan struct{}
}

// enter waits until the scheduler lets the call go or ctx ends.
func (w *world) enter(ctx context.Context, c *call) verdict {
	c.open = make(chan struct{})
	w.mu.Lock()
	if c.backend != nil && c.backend.dead || c.process != nil && c.process.killed {
		w.mu.Unlock()
		return dead
	}
	w.waiting = append(w.waiting, c)
	w.mu.Unlock()
	select {
	case w.arrived <- struct{}{}:
	default:
	}
	select {
	case <-c.open:
		return c.verdict
	case <-ctx.Done():
		w.mu.Lock()
		w.waiting = slices.DeleteFunc(w.waiting, func(other *call) bool { return other == c })
		w.mu.Unlock()
		return dead
	}
}

// free lets calls go whose goroutine is to end.
func (w *world) free(which func(*call) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(c *call) bool {
		if !which(c) {
			return false
		}
		c.verdict = dead
		close(c.open)
		return true
	})
}

// admit puts those who arrived since the last step into one order.
func (w *world) admit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.arrived:
	default:
	}
	first := slices.IndexFunc(w.waiting, func(c *call) bool { return c.batch == 0 })
	if first < 0 {
		return
	}
	w.batches++
	fresh := w.waiting[first:]
	slices.SortStableFunc(fresh, func(a, b *call) int { return strings.Compare(a.key, b.key) })
	for _, c := range fresh {
		c.batch = w.batches
		c.notBefore = time.Now().Add(w.latency(c))
	}
}

// latency is how long the world takes for a call.
func (w *world) latency(c *call) time.Duration {
	base := time.Duration(1 + w.random.Int64N(int64(2*time.Millisecond)))
	switch {
	case !w.stormy:
		return base
	case c.process != nil && w.chance(0.03) && w.temper.slow:
		return base + w.upTo(2*time.Minute)
	case c.kind == sends && w.chance(0.02):
		return base + w.upTo(3*time.Minute)
	case c.kind != quiet && w.chance(0.03):
		return base + w.upTo(20*time.Second)
	}
	return base
}

func (w *world) chance(p float64) bool { return w.random.Float64() < p }
func (w *world) pick(n int) int        { return w.random.IntN(n) }
func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(1 + w.random.Int64N(int64(d)))
}

func (w *world) next() int { w.commits++; return 100 + w.commits }

// tell adds to the story, and to the digest of everything that happened.
func (w *world) tell(format string, args ...any) {
	line := fmt.Sprintf("%12s  ", time.Since(w.began).Truncate(time.Millisecond)) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %d %s", w.digest, time.Now().UnixNano(), line)
	w.digest = h.Sum64()
	w.story = append(w.story, line)
}

// mark goes into the digest and not into the story.
func (w *world) mark(line string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %d %s", w.digest, time.Now().UnixNano(), line)
	w.digest = h.Sum64()
}

func (w *world) count(what string) { w.counts[what]++ }

// outcome of one seed.
type outcome struct {
	failure *violation
	story   []string
	digest  uint64
	counts  map[string]int
}

// simulate runs one seed to its end.
func simulate(t *testing.T, seed uint64, broken string) outcome {
	return simulateWith(t, seed, broken, func(*world) {})
}

func simulateWith(t *testing.T, seed uint64, broken string, alter func(*world)) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed, broken)
		alter(w)
		w.run()
		o = outcome{w.failure, w.story, w.digest, w.counts}
	})
	return o
}

const (
	mostSteps = 30000
	longest   = 14 * 24 * time.Hour
)

func (w *world) run() {
	for range 1 + w.pick(2) {
		w.hire()
	}
	for w.failure == nil {
		synctest.Wait()
		w.admit()
		w.check()
		w.steps++
		if w.stormy && w.steps > w.storm {
			w.clear()
			continue
		}
		if !w.released.IsZero() && time.Now().After(w.released) {
			w.released = time.Time{}
			w.desk().SetStopped(context.Background(), false)
		}
		if !w.stormy && w.over() {
			w.finally()
			break
		}
		if w.steps > mostSteps || time.Since(w.began) > longest {
			w.violated(jobsEnd, "%s", w.unended())
			break
		}
		switch {
		case w.stormy && w.chance(w.temper.near) && w.close():
			w.changed = true
		case w.stormy && w.chance(w.temper.events):
			w.event()
			w.changed = true
		case w.stormy && w.chance(0.02):
			time.Sleep(w.upTo([]time.Duration{time.Second, 30 * time.Second, 3 * time.Minute, 20 * time.Minute}[w.pick(4)]))
		default:
			w.let()
		}
	}
	w.end()
}

// let has one of those who may go on go on, or waits for one.
func (w *world) let() {
	now := time.Now()
	w.mu.Lock()
	var ready []*call
	var soonest time.Time
	for _, c := range w.waiting {
		at := c.notBefore
		if c.backend != nil && c.backend.frozen.After(at) {
			at = c.backend.frozen
		}
		if c.hangs && w.stormy {
			continue
		}
		if !at.After(now) {
			ready = append(ready, c)
		} else if soonest.IsZero() || at.Before(soonest) {
			soonest = at
		}
	}
	if len(ready) == 0 {
		w.mu.Unlock()
		wait := 10 * time.Minute
		if !soonest.IsZero() {
			wait = soonest.Sub(now)
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-w.arrived:
		case <-timer.C:
		}
		return
	}
	c := ready[w.pick(len(ready))]
	w.waiting = slices.DeleteFunc(w.waiting, func(other *call) bool { return other == c })
	w.mu.Unlock()
	c.verdict, c.fault = w.fate(c)
	if c.kind != quiet || c.process != nil {
		w.tell("%s%s%s", c.key, []string{"", " - refused", " - done, unheard", ""}[c.verdict], c.fault)
	} else {
		w.mark(c.key)
	}
	close(c.open)
}

// fate is what goes wrong with a call.
func (w *world) fate(c *call) (verdict, fault) {
	if !w.stormy {
		return goOn, fault{}
	}
	switch c.kind {
	case reads:
		if w.chance(0.02 * w.temper.faults) {
			return refused, fault{}
		}
	case writes:
		switch {
		case w.chance(0.02 * w.temper.faults):
			return refused, fault{}
		case w.chance(0.02 * w.temper.faults):
			return unheard, fault{}
		}
	case dials:
		if w.chance(0.03 * w.temper.faults) {
			return refused, fault{}
		}
	case sends:
		return goOn, w.misfortune(c)
	}
	return goOn, fault{}
}

// clear ends the storm: everything that can be put right is.
func (w *world) clear() {
	w.stormy, w.changed = false, true
	w.tell("the storm is over")
	for _, h := range w.hosts {
		h.up, h.mounted, h.full, h.stubborn = true, true, false, false
		if w.chance(0.8) {
			h.key = h.pin
		}
		for _, t := range h.all() {
			t.mount, t.foreign = false, false
		}
		for _, a := range h.agents {
			if w.chance(0.8) {
				a.alive = false
			}
		}
	}
	// Not every hold ends with the storm: some outlast more attempts than a job has
	// tries.
	held := w.temper.stopAll && w.chance(0.5)
	w.desk().SetStopped(context.Background(), held)
	if held {
		w.released = time.Now().Add(30 * time.Hour)
	}
	for _, b := range w.backends {
		b.frozen = time.Time{}
		b.cancel() // a stop like any other
	}
	w.hire()
}

func (w *world) desk() *memstore.Desk { return w.store.Desk() }

func (w *world) jobs() []ports.Job {
	all, err := w.desk().Jobs(context.Background(), "", 1000)
	if err != nil {
		panic(err)
	}
	slices.Reverse(all)
	return all
}

func over(s ports.State) bool {
	return s == ports.Succeeded || s == ports.JobFailed || s == ports.Cancelled
}

func (w *world) over() bool {
	if w.steps%8 != 0 { // nobody is in a hurry
		return false
	}
	for _, h := range w.hosts {
		if len(h.running) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(w.jobs(), func(j ports.Job) bool { return !over(j.State) })
}

func (w *world) unended() string {
	var open []string
	for _, j := range w.jobs() {
		if !over(j.State) {
			open = append(open, fmt.Sprintf("%s is %s after %d attempts (%s)", j.ID, j.State, j.Attempts, j.LastError))
		}
	}
	return strings.Join(open, "; ")
}

// end stops every goroutine of the bubble.
func (w *world) end() {
	for _, b := range w.backends {
		w.crash(b)
	}
	for _, h := range w.hosts {
		for _, p := range slices.Clone(h.running) {
			p.die()
		}
	}
	for _, b := range w.backends {
		<-b.done
	}
	time.Sleep(time.Hour) // whatever was on its way arrives nowhere
	for {
		synctest.Wait()
		w.mu.Lock()
		left := len(w.waiting)
		w.mu.Unlock()
		if left == 0 {
			return
		}
		w.free(func(*call) bool { return true })
	}
}

// profile and metadata are rows as a host keeps them.
func config(on bool) string {
	if on {
		return `{"ssh_reclaim_task_dir":"true"}`
	}
	return `{"ssh_reclaim_task_dir":"false"}`
}

func metadata(h *host, segment, profile, hook string, on bool) []byte {
	reclaim := ""
	if on {
		reclaim = "true"
	}
	raw, err := json.Marshal(map[string]string{"ssh_host": h.name, "ssh_port": "22", "ssh_user": "dev", "ssh_host_fingerprint": h.pin,
		"ssh_identity_source": "agent", "ssh_workdir_root": "~/.kandev", "ssh_reclaim_task_dir": reclaim, "ssh_remote_task_dir": h.dir(segment),
		"executor_profile_id": profile, "cleanup_script": hook})
	if err != nil {
		panic(err)
	}
	return raw
}

func newWorld(seed uint64, broken string) *world {
	w := &world{seed: seed, broken: broken, random: rand.New(rand.NewPCG(seed, 0x5ee3)), began: time.Now(), stormy: true, arrived: make(chan struct{}, 1),
		remote: &remote{commits: map[int]bool{}}, answered: map[string][]core.Said{}, counts: map[string]int{}, changed: true, policy: agreeable{}}
	w.ledger = newLedger()
	w.temper = w.newTemper()
	w.storm = 100 + w.pick(400)
	w.store = memstore.New(time.Now)
	for i := range 1 + w.pick(2) {
		name := fmt.Sprintf("host%d", i+1)
		h := &host{w: w, name: name, pin: "SHA256:" + name, key: "SHA256:" + name, offset: int64(w.pick(2001) - 1000), up: true, mounted: true, helper: 1,
			trees: map[string]*tree{}, holders: map[string]*holder{}, removing: map[string][]*process{}, hot: map[string]*process{}}
		h.cache = clone("/srv/cache/.git", "primary", w.remote)
		w.hosts = append(w.hosts, h)
		h.make("sibling", "primary")
		if w.chance(0.3) {
			h.make("neighbour", "linked_worktree")
		}
		h.trees["sibling"].repos[0].write("sibling.txt", untracked)
	}
	for i := range 1 + w.pick(3) {
		w.launch(fmt.Sprintf("t%d", i+1))
	}
	for range w.pick(4) {
		w.work()
	}
	for _, t := range w.tasks {
		if w.chance(0.6) {
			for _, at := range t.trees {
				if w.chance(0.8) {
					at.tidy()
				}
			}
			ids, _ := w.store.Archive(context.Background(), []string{t.id}, false)
			w.ledger.made(w, t, ids)
			w.tell("somebody archives %s", t.id)
		}
	}
	w.ledger.siblings(w)
	return w
}

// launch makes a task, its rows and its directories.
func (w *world) launch(id string) {
	t := &task{id: id, profile: "profile-" + id}
	on := w.chance(0.97)
	if w.chance(0.12) {
		t.hook = []string{"push", "push", "leave", "fail", "hang"}[w.pick(5)]
	}
	w.tasks = append(w.tasks, t)
	w.store.PutTask(memstore.Task{ID: id, Title: id})
	w.store.PutProfile(memstore.Profile{ID: t.profile, Name: t.profile, Executor: "ssh", Config: config(on)})
	w.store.PutEnvironment(memstore.Environment{ID: "env-" + id, TaskID: id, ExecutorType: "ssh", ProfileID: t.profile})
	for i, h := range w.hosts {
		if i == 0 || w.chance(0.3) {
			w.session(t, h, on)
		}
	}
}

// session launches one session of a task on a host, into a directory that is
// made where it is not there.
func (w *world) session(t *task, h *host, on bool) {
	w.sessions++
	id := fmt.Sprintf("s%d", w.sessions)
	segment := "task-" + t.id
	at := h.trees[segment]
	if at == nil {
		kind := "primary"
		if w.chance(0.15) {
			kind = "linked_worktree"
		}
		at = h.make(segment, kind)
		if w.chance(0.25) {
			at.repos = append(at.repos, clone("lib", "child", w.remote))
		}
	}
	t.trees = append(t.trees, at)
	w.store.PutSession(memstore.Session{ID: id, TaskID: t.id, State: "RUNNING", EnvironmentID: "env-" + t.id})
	w.store.PutLaunch(memstore.Launch{Running: core.Running{SessionID: id, TaskID: t.id, Runtime: "ssh", Status: "running", PID: 4711,
		Metadata: metadata(h, segment, t.profile, t.hook, on)}, ProfileID: t.profile})
	w.ledger.right(t.id, h, segment, w.steps)
	helper := &agent{session: id, task: t.id, name: segment, cwd: at, alive: true, deaf: w.chance(0.1)}
	if w.chance(0.3) {
		helper.cwd = nil
	}
	h.agents = append(h.agents, helper)
	if w.chance(0.4) { // it started something that outlives its stop
		h.agents = append(h.agents, &agent{task: t.id, name: segment, alive: true})
	}
	if w.chance(0.04) {
		h.agents = append(h.agents, &agent{task: t.id, name: segment, alive: true, cwd: at})
	}
}

func (h *host) all() []*tree {
	var all []*tree
	for _, name := range sortedKeys(h.trees) {
		all = append(all, h.trees[name])
	}
	for _, name := range sortedKeys(h.holders) {
		for _, t := range []*tree{h.holders[name].q, h.holders[name].x} {
			if t != nil {
				all = append(all, t)
			}
		}
	}
	return all
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
