package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
)

// tree is one task directory with everything below it.
type tree struct {
	host    *host
	name    string // its segment
	inode   int
	version int // moved by every change of anything in it
	repos   []*repo
	parts   int // what rm takes away one by one
	mount   bool
	foreign bool
	gone    bool
	lends   bool // another repository borrows its objects
}

// atRisk lists what would be lost with the tree.
func (t *tree) atRisk() []string {
	var risk []string
	for _, r := range t.repos {
		risk = append(risk, r.atRisk()...)
	}
	return risk
}

// digest stands for the manifest: it moves with the tree and with the
// registration that belongs to it.
func (t *tree) digest() string {
	h := fnv.New64a()
	fmt.Fprint(h, t.inode, " ", t.version)
	for _, r := range t.repos {
		if r.home != nil {
			fmt.Fprint(h, " ", r.registered, r.locked)
		}
	}
	return fmt.Sprintf("%016x%024x", h.Sum64(), t.version)
}

func (t *tree) listed() int { return 10*t.parts + 9*len(t.outside()) }

// outside are the linked worktrees whose registrations belong to the tree.
func (t *tree) outside() []*repo {
	var all []*repo
	for _, r := range t.repos {
		if r.home != nil {
			all = append(all, r)
		}
	}
	return all
}

// agent is a process that works in a tree or on its path.
type agent struct {
	session string // whose helper it is; empty for what a helper left behind
	task    string
	name    string
	cwd     *tree // nil: it writes by absolute path, and nobody sees it there
	alive   bool
	deaf    bool // survives the end of its session
}

// holder is the directory beside a target; the fields are the names in it.
type holder struct {
	claims   []*process
	plan     int // the inode
	mark     bool
	marked   int // the tree's version when mark was made
	q, x     *tree
	recorded []string // registrations
}

func (h *holder) state(h2 *host, segment string) (state core.Holder, why string) {
	switch {
	case h.q != nil && h.x != nil:
		return core.HolderContradictory, "both"
	case h.q != nil && h2.trees[segment] != nil:
		return core.HolderContradictory, "target_beside"
	case h.q != nil && h.plan != h.q.inode:
		return core.HolderContradictory, "plan"
	case h.q != nil:
		return core.HolderQuarantined, ""
	case h.x != nil && (!h.mark || h.plan != h.x.inode):
		return core.HolderContradictory, "plan"
	case h.x != nil:
		return core.HolderCommitted, ""
	case h.mark && h.plan != 0:
		return core.HolderCommitted, ""
	case h.mark:
		return core.HolderContradictory, "plan"
	}
	return core.HolderEmpty, ""
}

// alive reports whether the newest claim's process still runs.
func (h *holder) alive() bool {
	n := len(h.claims)
	return n > 0 && !h.claims[n-1].ended
}

// host is one machine.
type host struct {
	w         *world
	name, pin string
	key       string // the fingerprint it shows
	offset    int64  // of its clock
	up        bool
	boots     int
	mounted   bool // the tasks directory is there
	full      bool // no directory can be made
	stubborn  bool // rm leaves something
	trees     map[string]*tree
	holders   map[string]*holder
	agents    []*agent
	running   []*process
	cache     *repo               // home of linked worktrees
	worktrees []string            // registered there
	helper    int                 // version of the helper binary
	hot       map[string]*process // the last inventory of a directory, until its removal has ended
	removing  map[string][]*process
}

const (
	home = "/home/dev"
	root = home + "/.kandev"
)

func (h *host) dir(segment string) string { return root + "/tasks/" + segment }

func (h *host) clock() int64 { return time.Now().Unix() + h.offset }

// make has an agent's launch prepare a directory.
func (h *host) make(segment, kind string) *tree {
	h.w.inodes++
	t := &tree{host: h, name: segment, inode: h.w.inodes, version: 1, parts: 2 + h.w.pick(3)}
	h.furnish(t, kind)
	h.trees[segment] = t
	return t
}

// furnish puts a checkout into a directory as a launch does.
func (h *host) furnish(t *tree, kind string) {
	segment := t.name
	primary := clone(".", kind, h.w.remote)
	primary.files = append(primary.files, file{".kandev/baseline", ignored})
	if kind == "linked_worktree" {
		primary.home, primary.registered, primary.head = h.cache, segment, "refs/heads/"+segment
		primary.refs, primary.parents = nil, nil
		h.cache.set(primary.head, 2)
		h.cache.set(tracking(primary.head), 2)
		h.worktrees = append(h.worktrees, segment)
	}
	t.repos = []*repo{primary}
}

// process is one script at work on a host.
type process struct {
	host     *host
	name     string
	segment  string
	body     string
	who      string // attempt,job of a removal
	tied     bool   // ends with its connection
	killed   bool
	ended    bool // runs no more, to its end or not
	critical bool
	done     chan struct{}
	said     core.Said
	session  *session
	cutAfter int  // steps after which the connection breaks; 0 never
	asleep   bool // does not go on while the storm lasts
}

type kill struct{}

// start runs the script; it goes on without whoever sent it, unless it is tied.
func (h *host) start(script core.Script, from *session, f fault) *process {
	p := &process{host: h, name: script.Name, body: script.Body, segment: parameter(script.Body, "segment"), done: make(chan struct{}),
		tied: script.Name != "remove" && script.Name != "settle", who: parameter(script.Body, "who"),
		session: from, cutAfter: f.after, asleep: f.what == "does not end in time"}
	if p.segment == "" {
		dir := parameter(script.Body, "dir")
		p.segment = dir[strings.LastIndexByte(dir, '/')+1:]
	}
	h.running = append(h.running, p)
	go func() {
		defer func() {
			stopped := recover()
			if _, is := stopped.(kill); stopped != nil && !is {
				panic(stopped)
			}
			h.w.mu.Lock()
			p.ended = true
			p.leave()
			h.running = slices.DeleteFunc(h.running, func(other *process) bool { return other == p })
			h.w.mu.Unlock()
			close(p.done)
		}()
		p.step("starts")
		switch p.name {
		case "greet":
			p.greet()
		case "inventory":
			p.inventory()
		case "remove":
			p.remove()
		case "settle":
			p.settle()
		case "hook":
			p.hook()
		case "endsession":
			p.endSession()
		}
	}()
	return p
}

// step is where everybody else may come between.
func (p *process) step(what string) {
	p.host.w.enter(context.Background(), &call{key: p.host.name + " " + p.name + " " + p.segment + " " + p.who + ": " + what, process: p, hangs: p.asleep})
	if p.killed {
		panic(kill{})
	}
	if p.cutAfter > 0 {
		if p.cutAfter--; p.cutAfter == 0 {
			if p.tied {
				p.host.w.mu.Lock()
				p.killed = true
				p.host.w.mu.Unlock()
			}
			p.session.cut()
			if p.tied {
				panic(kill{})
			}
		}
	}
	p.host.w.changed = true
}

// die ends a process where it is.
func (p *process) die() {
	p.host.w.mu.Lock()
	dying := p.ended || p.killed
	p.killed = true
	p.host.w.mu.Unlock()
	if dying {
		return
	}
	p.host.w.free(func(c *call) bool { return c.process == p })
}

// occupy and leave bound the time in which the process may move or remove the
// target.
func (p *process) occupy() {
	p.critical = true
	h := p.host
	h.removing[p.segment] = append(h.removing[p.segment], p)
	if n := len(h.removing[p.segment]); n > 1 {
		h.w.violated(oneRemoval, "%d removals of %s are at work on %s at once", n, p.segment, h.name)
	}
}

func (p *process) leave() {
	if p.critical {
		p.critical = false
		p.host.removing[p.segment] = slices.DeleteFunc(p.host.removing[p.segment], func(other *process) bool { return other == p })
	}
}

// parameter reads NAME='VALUE' at the start of a line.
func parameter(body, name string) string {
	key := "\n" + name + "='"
	at := strings.Index(body, key)
	if first := key[1:]; strings.HasPrefix(body, first) {
		key, at = first, 0
	}
	if at < 0 {
		key = " " + name + "='"
		if at = strings.Index(body, key); at < 0 {
			return ""
		}
	}
	value := body[at+len(key):]
	return value[:strings.IndexByte(value, '\'')]
}

// tell ends the script with its records.
func (p *process) tell(lines ...string) { p.said = records(p.name, lines) }

func records(script string, lines []string) core.Said {
	var b strings.Builder
	fmt.Fprintf(&b, "reclaim 1 %s\n", script)
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	n := len(lines)
	if script == "inventory" {
		fmt.Fprintf(&b, "sum %d %d\n", crc(b.String()), b.Len())
		n++
	}
	fmt.Fprintf(&b, "end %d\n", n)
	return core.Said{Body: b.String()}
}

var crcTable = func() (table [256]uint32) {
	for i := range table {
		c := uint32(i) << 24
		for range 8 {
			if c&(1<<31) != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		table[i] = c
	}
	return table
}()

// crc is POSIX cksum.
func crc(text string) uint32 {
	var c uint32
	for i := range len(text) {
		c = c<<8 ^ crcTable[byte(c>>24)^text[i]]
	}
	for n := len(text); n > 0; n >>= 8 {
		c = c<<8 ^ crcTable[byte(c>>24)^byte(n)]
	}
	return ^c
}

func (h *host) tasks() string {
	if h.mounted {
		return "directory"
	}
	return "absent"
}

func (h *host) presence(segment string) string {
	if h.trees[segment] != nil {
		return "directory"
	}
	return "absent"
}

func (p *process) greet() {
	h := p.host
	target, state, claim, why := "unseen", "unseen", "", ""
	if h.mounted {
		target, state = h.presence(p.segment), "none"
		if held := h.holders[p.segment]; held != nil {
			s, w := held.state(h, p.segment)
			if state, why = string(s), w; held.alive() {
				state, why = "alive", ""
			}
			if n := len(held.claims); n > 0 {
				claim = held.claims[n-1].claim()
			}
		}
	}
	if state != "unseen" && (h.w.broken == "leftovers are not looked at" || h.w.broken == "the holder is no lock" && state == "alive") {
		state, claim, why = "none", "", ""
	}
	p.tell("home "+word(home), "root "+word(root), "platform =Linux", "git "+word("2.39.5"), "clock "+strconv.FormatInt(h.clock(), 10),
		"tasks "+h.tasks(), "target "+target, "holder "+state+" "+word(claim)+" "+word(why))
}

func (p *process) claim() string {
	return fmt.Sprintf("%s,4711,1,%s,1.1,%d,%s", p.name, p.host.name, p.host.clock(), p.who)
}

// seen are the processes that work in the tree.
func (h *host) seen(t *tree) int {
	n := 0
	for _, a := range h.agents {
		n += ones(a.alive && a.cwd == t)
	}
	return n
}

// sessions are those whose pid file lies in the tree and whose helper lives.
func (h *host) sessions(t *tree) int {
	n := 0
	for _, a := range h.agents {
		n += ones(a.alive && a.session != "" && a.name == t.name)
	}
	return n
}

func (p *process) inventory() {
	h := p.host
	h.hot[p.segment] = p
	lines := h.listed(p.segment, p.step)
	p.tell(lines...)
	if lines[len(lines)-1] == "finished" {
		h.hot[p.segment] = p
		h.w.answered[p.segment] = append(h.w.answered[p.segment], p.said)
	}
}

// listed is what the inventory says of a directory; between two looks others may
// come.
func (h *host) listed(segment string, step func(what string)) []string {
	lines := []string{"host =Linux 1000 printf " + word("git version 2.39.5")}
	t := h.trees[segment]
	switch {
	case !h.mounted:
		return append(lines, "shape tasks_missing")
	case t == nil:
		return append(lines, "shape absent")
	case len(t.repos) == 0:
		return append(lines, "shape no_repository")
	}
	lines = append(lines, "shape directory", fmt.Sprintf("identity 65024 %d", t.inode))
	foreign := ones(t.foreign)
	lines = append(lines, fmt.Sprintf("tree =. %s %d %d %d 0 %d 0 0 0 0", t.digest(), 10*t.parts, 10*t.parts-1, 1000*t.parts, foreign))
	for _, r := range t.outside() {
		at := word(r.home.path + "/worktrees/" + r.registered)
		lines = append(lines, "outside "+at+" yes", fmt.Sprintf("tree %s %040x 9 8 900 0 0 0 0 0 0", at, len(r.registered)))
	}
	lines = append(lines, fmt.Sprintf("manifest %s %d", t.digest(), t.listed()))
	step("has the manifest")
	lines = append(lines, fmt.Sprintf("live %d %d %d 0", h.seen(t), h.sessions(t), h.sessions(t)))
	// Repositories found now; the tree may have been moved meanwhile, and what
	// stands in the working directory is still it.
	repos := slices.Clone(t.repos)
	lines = append(lines, fmt.Sprintf("repositories %d", len(repos)))
	for i, r := range repos {
		lines = append(lines, fmt.Sprintf("repository %d %s %s", i+1, r.kind, word(r.path)))
	}
	lines = append(lines, fmt.Sprintf("mounts %d", ones(t.mount)), fmt.Sprintf("borrowers %d 0", ones(t.lends)), "worktrees 0 0 0 0")
	for i, r := range repos {
		step("asks about " + r.path)
		lines = append(lines, fmt.Sprintf("checkout %d itself", i+1))
		lines = append(lines, r.state(i+1)...)
		children := 0
		if r.path == "." {
			children = len(repos) - 1
		}
		contents := r.contents(i+1, children)
		if h.w.broken == "the probe is blind to untracked files" {
			blind := *r
			blind.files = slices.DeleteFunc(slices.Clone(r.files), func(f file) bool { return f.status == untracked })
			contents = blind.contents(i+1, children)
		}
		lines = append(lines, contents...)
		step("counts the commits of " + r.path)
		lines = append(lines, r.commits(i+1)...)
	}
	return append(lines, "finished")
}

// question is what the answer of a removal is about.
func (p *process) question() string { return "about " + parameter(p.body, "about") }

func (p *process) remove() {
	h := p.host
	defer delete(h.hot, p.segment)
	ended := func(how, what string) { p.tell(p.question(), "ended "+how+" "+word(what)) }
	limit, _ := strconv.ParseInt(parameter(p.body, "not_after"), 10, 64)
	expected, taken := parameter(p.body, "expected"), parameter(p.body, "taken")
	inode, _ := strconv.Atoi(strings.TrimPrefix(expected, "65024 "))
	t := h.trees[p.segment]
	switch {
	case h.clock() > limit:
		ended("late", "")
		return
	case !h.mounted:
		ended("tasks_absent", "")
		return
	case t == nil:
		ended("target_absent", "")
		return
	case h.holders[p.segment] != nil && h.w.broken != "the holder is no lock":
		p.occupied(ended)
		return
	case t.inode != inode:
		ended("replaced", "")
		return
	case t.mount:
		ended("mount", h.dir(p.segment))
		return
	case t.foreign:
		ended("foreign", "x")
		return
	case h.seen(t) > 0 || h.sessions(t) > 0:
		ended("live", "/proc/1/cwd")
		return
	}
	p.step("looked at everything")
	if h.full {
		ended("no_holder", "")
		return
	}
	if h.holders[p.segment] != nil && h.w.broken != "the holder is no lock" {
		p.occupied(ended)
		return
	}
	held := &holder{}
	h.holders[p.segment] = held
	p.step("made the holder")
	if h.holders[p.segment] != held || len(held.claims) > 0 {
		ended("busy", p.claim()) // somebody settled it or claimed it first
		return
	}
	held.claims = append(held.claims, p)
	p.occupy()
	p.step("claimed it")
	held.plan = inode
	for _, r := range t.outside() {
		held.recorded = append(held.recorded, r.registered)
	}
	p.step("noted the plan")
	if now := h.trees[p.segment]; now == nil || now.inode != inode {
		// mv takes whatever stands there; what is not the planned one goes back.
		p.drop(held)
		if now == nil {
			ended("immovable", "")
		} else {
			ended("copied", "")
		}
		return
	}
	p.touches(t, "renames")
	delete(h.trees, p.segment)
	held.q = t
	p.step("renamed the target to q")
	restore := func(how, what string) {
		if !h.back(held, p.segment) {
			ended("held", "q")
			return
		}
		p.step("put it back")
		p.drop(held)
		ended(how, what)
	}
	if h.seen(t) > 0 || h.sessions(t) > 0 {
		restore("live", "/proc/1/cwd")
		return
	}
	held.mark, held.marked = true, t.version
	p.step("made the mark")
	digest, count := t.digest(), t.listed()
	p.step("took the manifest again")
	if fmt.Sprintf("%s %d", digest, count) != taken && h.w.broken != "the manifest is not compared" {
		restore("changed", digest)
		return
	}
	if t.mount {
		restore("mount", "q")
		return
	}
	p.touches(t, "commits to removing")
	if h.w.broken != "rm reaches one name too far" {
		h.w.doom(t)
	} else if other := h.trees["sibling"]; other != nil {
		other.gone = true
		delete(h.trees, "sibling")
	}
	held.q, held.x = nil, t
	p.step("renamed q to x")
	entries := 10*t.parts - 1
	if !p.erase(held) {
		p.after("left", "x", 1, entries)
		return
	}
	p.unregister(held)
	p.step("took the registrations away")
	p.drop(held)
	p.after("gone", "", 0, entries)
}

// after is the answer from behind the commit point.
func (p *process) after(how, what string, status, entries int) {
	h := p.host
	present := "absent"
	if h.holders[p.segment] != nil {
		present = "directory"
	}
	p.tell(p.question(), fmt.Sprintf("rm %d", status), fmt.Sprintf("freed %d %d", 1024*entries, entries), "target "+h.presence(p.segment), "holder "+present,
		"ended "+how+" "+word(what))
}

func (p *process) occupied(ended func(how, what string)) {
	if held := p.host.holders[p.segment]; held.alive() {
		ended("busy", held.claims[len(held.claims)-1].claim())
		return
	}
	ended("occupied", "holder")
}

// back gives the quarantined tree its name again.
func (h *host) back(held *holder, segment string) bool {
	if h.trees[segment] != nil {
		return false
	}
	held.mark = false
	h.trees[segment], held.q = held.q, nil
	return true
}

// erase is rm: part after part. False: something is left.
func (p *process) erase(held *holder) bool {
	t := held.x
	for t.parts > 0 {
		if p.host.w.broken == "rm is believed" && t.parts == 1 {
			return true
		}
		if p.host.stubborn && t.parts == 1 {
			return false
		}
		t.parts--
		p.step(fmt.Sprintf("removed a part, %d left", t.parts))
	}
	t.gone = true
	held.x = nil
	p.step("removed the last")
	return true
}

// unregister takes exactly the recorded registrations away.
func (p *process) unregister(held *holder) {
	h := p.host
	h.worktrees = slices.DeleteFunc(h.worktrees, func(name string) bool {
		return slices.Contains(held.recorded, name) || h.w.broken == "a repository-wide prune" && h.trees[name] == nil
	})
}

// drop takes an empty holder away.
func (p *process) drop(held *holder) {
	held.mark, held.plan, held.recorded = false, 0, nil
	p.step("emptied the holder")
	held.claims = slices.DeleteFunc(held.claims, func(c *process) bool { return c != p })
	if h := p.host; h.holders[p.segment] == held && (held.q == nil && held.x == nil || h.w.broken == "rm is believed") {
		delete(h.holders, p.segment)
	}
	p.leave()
	p.step("took the holder away")
}

func (p *process) settle() {
	h := p.host
	bytes, entries := 0, 0
	ended := func(how, what string) {
		p.tell(p.question(), "target "+h.presence(p.segment), fmt.Sprintf("settled %s %s %d %d", how, word(what), bytes, entries))
	}
	if !h.mounted {
		ended("unseen", "tasks")
		return
	}
	held := h.holders[p.segment]
	if held == nil {
		ended("other", "none")
		return
	}
	if held.alive() {
		ended("alive", held.claims[len(held.claims)-1].claim())
		return
	}
	state, why := held.state(h, p.segment)
	if state == core.HolderContradictory {
		ended("contradictory", why)
		return
	}
	expected := core.Holder(parameter(p.body, "expected_state"))
	if state != expected {
		ended("other", string(state))
		return
	}
	p.step("looked at the holder")
	if h.holders[p.segment] != held || held.alive() {
		ended("other", "claimed")
		return
	}
	held.claims = append(held.claims, p)
	p.occupy()
	p.step("claimed it")
	if state, _ = held.state(h, p.segment); state != expected {
		p.leave()
		ended("other", string(state))
		return
	}
	switch state {
	case core.HolderQuarantined:
		if !h.back(held, p.segment) {
			p.leave()
			ended("held", "q")
			return
		}
		p.step("put it back")
	case core.HolderCommitted:
		if t := held.x; t != nil {
			switch {
			case h.seen(t) > 0:
				p.leave()
				ended("live", "x")
				return
			case t.mount:
				p.leave()
				ended("mount", "x")
				return
			case t.version > held.marked:
				p.leave()
				ended("newer", "x")
				return
			}
			p.step("looked into x")
			bytes, entries = 1000*t.parts, 10*t.parts
			if !p.erase(held) {
				p.leave()
				ended("left", "x")
				return
			}
		}
		p.unregister(held)
		p.step("took the registrations away")
	}
	p.drop(held)
	ended(string(state), "")
}

func (p *process) hook() {
	h := p.host
	t := h.trees[p.segment]
	if t == nil {
		p.tell("cannot " + word("the task directory cannot be entered"))
		return
	}
	p.step("runs the cleanup script")
	status := 0
	switch program := parameter(p.body, "program"); program {
	case "push":
		t.tidy()
	case "leave":
		t.repos[0].write("report.txt", untracked)
		t.version++
	case "fail":
		status = 3
	case "hang":
		p.host.w.enter(context.Background(), &call{key: h.name + " hook hangs " + p.segment, process: p, hangs: true})
		if p.killed {
			panic(kill{})
		}
	}
	p.tell("started", fmt.Sprintf("status %d", status), "output ~")
}

// tidy is an owner who saves everything.
func (t *tree) tidy() {
	t.version++
	for _, r := range t.repos {
		if r.kind == "bare" || r.remote == nil {
			continue
		}
		r.discard()
		r.drop(stash)
		r.left, r.annotated = nil, nil
		if r.head == "" {
			r.head = "refs/heads/rescued"
			r.set(r.head, r.headAt)
		}
		r.remote.inside = false
		for _, f := range slices.Clone(r.store().refs) {
			if strings.HasPrefix(f.name, "refs/heads/") && (r.home == nil || f.name == r.head) {
				at := r.head
				r.head = f.name
				r.push()
				r.head = at
			} else if strings.HasPrefix(f.name, "refs/tags/") {
				r.drop(f.name)
			}
		}
	}
}

func (p *process) endSession() {
	h, session := p.host, parameter(p.body, "session")
	if h.trees[p.segment] == nil {
		p.tell("absent")
		return
	}
	p.step("ends the helper")
	for _, a := range h.agents {
		if a.session == session && a.alive {
			if a.deaf && h.w.stormy {
				p.tell("alive")
				return
			}
			a.alive = false
		}
	}
	if t := h.trees[p.segment]; t != nil {
		t.version++ // its folder is gone
	}
	p.tell("ended")
}
