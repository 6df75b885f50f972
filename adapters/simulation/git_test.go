package simulation

import (
	"fmt"
	"slices"
	"strings"
)

// status is the state of one file in a work tree, as far as losing it goes.
type status int

const (
	clean status = iota
	modified
	staged
	untracked
	ignored
	hidden // modified, behind an index flag
)

type file struct {
	path   string
	status status
}

type ref struct {
	name string
	at   int
}

// remote is a repository elsewhere.
type remote struct {
	commits map[int]bool
	inside  bool // lies in a task directory: proves nothing
}

// repo is one repository of a tree.
type repo struct {
	path, kind string
	parents    map[int]int // every commit it holds and the one before it, 0 for none
	refs       []ref
	head       string // a ref's name, or empty where headAt is checked out detached
	headAt     int
	left       []int // tips that HEAD left by reset or checkout
	annotated  []string
	files      []file
	remote     *remote
	operation  string
	autostash  bool
	lock       bool
	home       *repo  // of a linked worktree: the repository that survives
	registered string // its registration's name there
	locked     bool
}

const stash = "refs/stash"

func tracking(name string) string {
	return "refs/remotes/origin/" + strings.TrimPrefix(name, "refs/heads/")
}

// clone is a fresh checkout of main from a remote with two commits.
func clone(path, kind string, from *remote) *repo {
	r := &repo{path: path, kind: kind, remote: from, head: "refs/heads/main", parents: map[int]int{1: 0, 2: 1}}
	from.commits[1], from.commits[2] = true, true
	r.set("refs/heads/main", 2)
	r.set(tracking("main"), 2)
	r.files = []file{{"README", clean}, {"src/a.c", clean}}
	return r
}

// store is the repository that keeps the refs and commits.
func (r *repo) store() *repo {
	if r.home != nil {
		return r.home
	}
	return r
}

func (r *repo) at(name string) int {
	for _, f := range r.store().refs {
		if f.name == name {
			return f.at
		}
	}
	return 0
}

func (r *repo) set(name string, at int) {
	r = r.store()
	for i := range r.refs {
		if r.refs[i].name == name {
			r.refs[i].at = at
			return
		}
	}
	r.refs = append(r.refs, ref{name, at})
}

func (r *repo) drop(name string) {
	r = r.store()
	r.refs = slices.DeleteFunc(r.refs, func(f ref) bool { return f.name == name })
}

func (r *repo) top() int {
	if r.head == "" {
		return r.headAt
	}
	return r.at(r.head)
}

func (r *repo) move(to int) {
	if r.head == "" {
		r.headAt = to
	} else {
		r.set(r.head, to)
	}
}

// reach adds every commit from one back to the first.
func (r *repo) reach(into map[int]bool, from int) {
	for parents := r.store().parents; from != 0 && !into[from]; from = parents[from] {
		into[from] = true
	}
}

// What agents do.

func (r *repo) write(path string, s status) {
	for i := range r.files {
		if r.files[i].path == path {
			r.files[i].status = s
			return
		}
	}
	r.files = append(r.files, file{path, s})
}

func (r *repo) commit(id int) {
	for i := range r.files {
		if s := r.files[i].status; s == modified || s == staged || s == untracked {
			r.files[i].status = clean
		}
	}
	r.store().parents[id] = r.top()
	r.move(id)
	if r.operation == "MERGE_HEAD" {
		r.operation = "" // it is concluded
	}
}

func (r *repo) push() {
	if r.remote == nil || r.head == "" {
		return
	}
	for c := r.top(); c != 0; c = r.store().parents[c] {
		r.remote.commits[c] = true
	}
	r.set(tracking(r.head), r.top())
}

func (r *repo) stash(id int) {
	dirty := false
	for i := range r.files {
		if s := r.files[i].status; s == modified || s == staged {
			r.files[i].status, dirty = clean, true
		}
	}
	if dirty {
		r.store().parents[id] = r.top()
		r.set(stash, id)
	}
}

func (r *repo) checkout(name string) {
	if r.head == "" {
		r.left = append(r.left, r.headAt)
	}
	if r.at(name) == 0 {
		r.set(name, r.top())
	}
	r.head = name
}

func (r *repo) detach() {
	if at := r.top(); r.head != "" {
		r.head, r.headAt = "", at
	}
}

// reset takes the branch back to what its remote has.
func (r *repo) reset() {
	if to := r.at(tracking(r.head)); r.head != "" && to != 0 && to != r.top() {
		r.left = append(r.left, r.top())
		r.set(r.head, to)
	}
}

// discard is reset --hard HEAD and clean -fdx.
func (r *repo) discard() {
	r.files = slices.DeleteFunc(r.files, func(f file) bool { return f.status == untracked || f.status == ignored })
	for i := range r.files {
		r.files[i].status = clean
	}
	r.operation, r.autostash, r.lock = "", false, false
}

// own reports whether what the ref holds goes with the directory.
func (r *repo) own(f ref) bool { return r.home == nil && !strings.HasPrefix(f.name, "refs/remotes/") }

// held are the commits that go with the directory: those of HEAD and of its own
// refs.
func (r *repo) held() map[int]bool {
	held := map[int]bool{}
	r.reach(held, r.top())
	for _, f := range r.store().refs {
		if r.own(f) && f.name != stash {
			r.reach(held, f.at)
		}
	}
	return held
}

// vouched are the commits that a trusted tracking ref holds.
func (r *repo) vouched() map[int]bool {
	vouched := map[int]bool{}
	if r.remote != nil && !r.remote.inside {
		for _, f := range r.store().refs {
			if strings.HasPrefix(f.name, "refs/remotes/") {
				r.reach(vouched, f.at)
			}
		}
	}
	return vouched
}

// excused reports whether a file of the tree's root checkout is the backend's own.
func (r *repo) excused(path string) bool { return r.path == "." && strings.HasPrefix(path, ".kandev/") }

// atRisk lists what would be lost with the repository, by what is true and not
// by what can be proved: commits count where no remote outside has them.
func (r *repo) atRisk() []string {
	var risk []string
	add := func(format string, args ...any) { risk = append(risk, r.path+": "+fmt.Sprintf(format, args...)) }
	for _, f := range r.files {
		if f.status != clean && !r.excused(f.path) {
			add("the file %s", f.path)
		}
	}
	tips := []int{r.top()}
	for _, f := range r.store().refs {
		if r.own(f) {
			tips = append(tips, f.at)
		}
	}
	tips = append(tips, r.left...)
	lost := map[int]bool{}
	for _, tip := range tips {
		for c := tip; c != 0 && !lost[c]; c = r.store().parents[c] {
			if r.remote == nil || r.remote.inside || !r.remote.commits[c] {
				if r.home == nil || !r.survives(c) {
					lost[c] = true
				}
			}
		}
	}
	if len(lost) > 0 {
		add("%d commits", len(lost))
	}
	if len(r.annotated) > 0 && r.home == nil {
		add("annotated tags %v", r.annotated)
	}
	if r.operation != "" || r.autostash {
		add("a stopped operation")
	}
	return risk
}

// survives reports whether a ref of the linked worktree's home holds the commit.
func (r *repo) survives(c int) bool {
	held := map[int]bool{}
	for _, f := range r.home.refs {
		r.home.reach(held, f.at)
	}
	return held[c]
}

// records are the inventory's lines about the repository, under its index.
func (r *repo) contents(index int, children int) []string {
	var changed, loose, skipped, hid, excused int
	var samples []string
	sample := func(what, path string) {
		samples = append(samples, fmt.Sprintf("sample %d %s %s", index, what, word(path)))
	}
	for _, f := range r.files {
		switch {
		case r.excused(f.path) && (f.status == untracked || f.status == ignored):
			excused++
		case f.status == modified, f.status == staged:
			changed++
			sample("changed", f.path)
		case f.status == untracked:
			loose++
			sample("untracked", f.path)
		case f.status == ignored:
			skipped++
			sample("ignored", f.path)
		case f.status == hidden:
			hid++
			sample("hidden", f.path)
		}
	}
	if r.kind == "bare" {
		return []string{fmt.Sprintf("index %d 0", index)}
	}
	return append(samples, fmt.Sprintf("files %d 0 0 %d %d 0 %d %d 0 %d", index, len(r.files), changed, loose, skipped, excused+children),
		fmt.Sprintf("hidden %d %d %d 0 0", index, hid, hid))
}

func (r *repo) state(index int) []string {
	words := ""
	if r.operation != "" {
		words = " " + r.operation
	}
	lines := []string{fmt.Sprintf("operations %d %d 0%s", index, ones(r.autostash), words), fmt.Sprintf("settings %d 0 0", index)}
	if r.home != nil {
		locked := map[bool]string{true: "yes", false: "no"}[r.locked]
		lines = append(lines, fmt.Sprintf("registration %d mutual %s yes %s %s %s", index, locked, word(r.home.path), word(r.registered), word(registration(r.registered))))
	}
	return lines
}

// registration is what the file gitdir of a registration says.
func registration(name string) string { return "/home/dev/.kandev/tasks/" + name + "/.git" }

func (r *repo) commits(index int) []string {
	var remotes, trusted, inside, stashes, trackings int
	if r.remote != nil {
		remotes = 1
		if inside = ones(r.remote.inside); inside == 0 {
			trusted = 1
		}
	}
	for _, f := range r.store().refs {
		stashes += ones(f.name == stash && r.home == nil) // a linked worktree's stays with its home
		trackings += ones(strings.HasPrefix(f.name, "refs/remotes/"))
	}
	vouched := r.vouched()
	held := r.held()
	unpushed := 0
	for c := range held {
		unpushed += ones(!vouched[c])
	}
	abandoned := 0
	for _, tip := range r.left {
		abandoned += ones(!vouched[tip] && !held[tip])
	}
	lines := []string{fmt.Sprintf("remotes %d 0 %d %d %d 0", index, remotes, trusted, inside)}
	tags := r.annotated
	if r.home != nil {
		tags = nil
	}
	for _, tag := range tags {
		lines = append(lines, fmt.Sprintf("sample %d loose %s", index, word("refs/tags/"+tag)))
	}
	lines = append(lines, fmt.Sprintf("refs %d 0 %d %d %d 0 %d 0 0", index, len(r.store().refs), stashes, trackings, len(tags)),
		fmt.Sprintf("vouched %d %d 0", index, trusted), fmt.Sprintf("unpushed %d 0 %d", index, unpushed))
	if unpushed > 0 {
		holder := "HEAD"
		if r.head != "" && !vouched[r.top()] {
			holder = r.head
		} else if vouched[r.top()] {
			for _, f := range r.store().refs {
				if r.own(f) && f.name != stash && !vouched[f.at] {
					holder = f.name
				}
			}
		}
		lines = append(lines, fmt.Sprintf("sample %d holder %s", index, word(holder)))
	}
	return append(lines, fmt.Sprintf("abandoned %d 0 %d", index, abandoned), fmt.Sprintf("judged %d", index))
}

func ones(b bool) int {
	if b {
		return 1
	}
	return 0
}

// word writes a value of the host as core's records want it.
func word(s string) string {
	if s == "" {
		return "~"
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("/._,:@+-", c) >= 0) {
			return fmt.Sprintf("~%x", s)
		}
	}
	return "=" + s
}
