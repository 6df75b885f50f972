package simulation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kandev/reclaim/core"
)

// work is one thing an agent or an owner does, in the model and for real. Whoever
// does the real one stands in the repository.
type work struct {
	name  string
	model func(t *tree, r *repo, id int)
	real  string
}

// works are all the kinds of work that the worlds know, and the states that none
// of these leads to.
var works = []work{
	{"edit", func(_ *tree, r *repo, _ int) { r.write("README", modified) }, `echo edited >>README`},
	{"new", func(_ *tree, r *repo, _ int) { r.write("new0", untracked) }, `echo new >>new0`},
	{"commit", func(_ *tree, r *repo, id int) { r.commit(id) }, `git add -A -- README src; ! [ -e new0 ] || git add new0; git commit -q --allow-empty -m work`},
	{"push", func(_ *tree, r *repo, _ int) { r.push() }, `! b=$(git symbolic-ref -q HEAD) || git push -q -f origin "$b"`},
	{"stash", func(_ *tree, r *repo, id int) { r.stash(id) }, `git stash -q`},
	{"branch", func(_ *tree, r *repo, _ int) { r.checkout("refs/heads/b0") }, `git checkout -q b0 2>/dev/null || git checkout -qb b0`},
	{"detach", func(_ *tree, r *repo, _ int) { r.detach() }, `git checkout -q --detach`},
	{"reset", func(_ *tree, r *repo, _ int) { r.reset() }, `! b=$(git symbolic-ref -q --short HEAD) || ! u=$(git rev-parse -q --verify "refs/remotes/origin/$b") || git reset -q --keep "$u"`},
	{"merge", func(_ *tree, r *repo, _ int) { r.operation = "MERGE_HEAD" }, `git rev-parse HEAD >"$(git rev-parse --git-dir)/MERGE_HEAD"`},
	{"save", func(t *tree, _ *repo, _ int) { t.tidy() }, `save`},
	{"leave", func(_ *tree, r *repo, _ int) { r.write("report.txt", untracked) }, `echo told >report.txt`},
	// The rest of the model's words.
	{"stage", func(_ *tree, r *repo, _ int) { r.write("src/a.c", staged) }, `echo staged >>src/a.c; git add src/a.c`},
	{"ignore", func(_ *tree, r *repo, _ int) { r.write("built", ignored) }, `echo built >>"$(git rev-parse --git-path info/exclude)"; echo x >built`},
	{"hide", func(_ *tree, r *repo, _ int) { r.write("src/a.c", hidden) }, `git update-index --assume-unchanged src/a.c; echo hidden >>src/a.c`},
	{"tag", func(_ *tree, r *repo, _ int) { r.annotated = append(r.annotated, "v1"); r.set("refs/tags/v1", r.top()) }, `git tag -f -a -m v1 v1 >/dev/null`},
	{"inside", func(_ *tree, r *repo, _ int) { r.remote.inside = true }, `git remote set-url origin "$BASE/k/tasks/another/r.git"`},
	{"autostash", func(_ *tree, r *repo, _ int) { r.operation, r.autostash = "rebase-merge", true },
		`d=$(git rev-parse --git-dir)/rebase-merge; mkdir -p "$d"; git rev-parse HEAD >"$d/autostash"; git rev-parse HEAD >"$d/orig-head"; echo refs/heads/main >"$d/head-name"; git rev-parse HEAD >"$d/onto"`},
	{"lock worktree", func(_ *tree, r *repo, _ int) { r.locked = r.home != nil }, `[ -d .git ] || git worktree lock .`},
}

// save is what tidy does: an owner saves everything, in every repository.
const save = `save() {
	for d in . lib; do
		! [ -e "$d/.git" ] || (
			cd "$d"
			git update-index --no-assume-unchanged src/a.c
			rm -rf "$(git rev-parse --git-dir)/rebase-merge"
			git reset -q --hard; git clean -qfdx -e lib -e .kandev; git stash clear
			git symbolic-ref -q HEAD >/dev/null || git checkout -qB rescued
			git reflog expire --expire=now --all; git prune --expire=now # an emptied log tells of nothing: what it told of goes, too
			git tag -l | xargs -r git tag -d >/dev/null
			git remote set-url origin "$BASE/remote.git"
			if [ -d .git ]; then git push -q -f origin 'refs/heads/*:refs/heads/*'; else git push -q -f origin "$(git symbolic-ref HEAD)"; fi
		)
	done
}
`

// placed is a directory of the model and of the disk with the same in both.
type placed struct {
	h    *host
	t    *tree
	base string
}

// place makes a directory as a launch leaves it.
func place(t *testing.T, kind string, child bool) placed {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{remote: &remote{commits: map[int]bool{}}}
	h := &host{w: w, mounted: true, trees: map[string]*tree{}}
	h.cache = clone(base+"/cache/.git", "primary", w.remote)
	tr := &tree{host: h, name: "task-t1", inode: 1, version: 1, parts: 2}
	h.furnish(tr, kind)
	if child {
		tr.repos = append(tr.repos, clone("lib", "child", &remote{commits: w.remote.commits})) // the same remote, by a URL of its own
	}
	h.trees[tr.name] = tr
	p := placed{h, tr, base}
	p.run(t, ".", `mkdir -p k/tasks home; git init -q --bare -b main remote.git; git init -q -b main seed; cd seed; mkdir src; echo 1 >README; echo 1 >src/a.c; git add .; git commit -qm 1
		echo 2 >README; git commit -qam 2; git push -q ../remote.git main; cd ..; git clone -q remote.git cache
		if [ "$1" = linked_worktree ]; then git -C cache worktree add -q -b task-t1 "$BASE/k/tasks/task-t1"; git -C k/tasks/task-t1 push -q origin task-t1
		else git clone -q remote.git k/tasks/task-t1; fi
		mkdir k/tasks/task-t1/.kandev; echo x >k/tasks/task-t1/.kandev/baseline
		[ "$2" = false ] || git clone -q remote.git k/tasks/task-t1/lib`, kind, fmt.Sprint(child))
	return p
}

func (p placed) run(t *testing.T, dir, script string, args ...string) string {
	t.Helper()
	return p.say(t, dir, "set -e\n"+save+script, args...)
}

func (p placed) say(t *testing.T, dir, script string, args ...string) string {
	t.Helper()
	command := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	command.Dir = filepath.Join(p.base, dir)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.base + "/home", "BASE=" + p.base, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@x", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@x"}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// verdicts are the reasons for which the engine keeps the directory, by the
// model's answer and by the real one.
func (p placed) verdicts(t *testing.T) (model, real string) {
	t.Helper()
	q := core.Inventory{Root: p.base + "/k", Segment: p.t.name}
	said := func(said core.Said) string {
		e := q.Judge(said)
		var words []string
		for _, f := range e.Findings {
			if word := fmt.Sprintf("%s %s %s", f.Checkout, f.Reason, f.Cause); !slices.Contains(words, word) {
				words = append(words, word)
			}
			if !e.Complete || f.Reason == core.ProbeFailed {
				t.Errorf("an answer that cannot be read: %s", f.Detail)
			}
		}
		slices.Sort(words)
		if e.Safe() != (len(words) == 0) {
			t.Errorf("safe %v with %v", e.Safe(), words)
		}
		return strings.Join(words, "; ")
	}
	return said(records("inventory", p.h.listed(p.t.name, func(string) {}))), said(core.Said{Body: p.say(t, ".", q.Script().Body)})
}

// The model of git is held against git: after the same work in both, the engine
// must come to the same verdict by the model's answer and by the script's.
func TestTheModelOfGitSaysWhatGitSays(t *testing.T) {
	var courses [][]string
	for _, w := range works {
		courses = append(courses, []string{w.name})
	}
	courses = append(courses, []string{}, []string{"edit", "commit"}, []string{"new", "commit", "push"}, []string{"edit", "stash"}, []string{"edit", "commit", "reset"}, []string{"commit", "branch", "commit", "push"},
		[]string{"detach", "commit"}, []string{"detach", "commit", "branch"}, []string{"branch", "commit", "push", "commit", "reset"}, []string{"edit", "new", "stash"}, []string{"merge", "commit"}, []string{"commit", "detach", "save"},
		[]string{"edit", "stash", "new", "commit", "detach", "commit", "save"}, []string{"inside", "commit", "save"}, []string{"tag", "hide", "autostash", "save"})
	if long() { // every course of three kinds of the worlds' own work
		for _, a := range works[:11] {
			for _, b := range works[:11] {
				for _, c := range works[:11] {
					courses = append(courses, []string{a.name, b.name, c.name})
				}
			}
		}
	}
	for i, course := range courses {
		for n, at := range []struct {
			kind, in string
			child    bool
		}{{"primary", ".", false}, {"linked_worktree", ".", false}, {"primary", "lib", true}} {
			if !long() && n != i%3 { // in turn
				continue
			}
			t.Run(fmt.Sprintf("%s %s %v", at.kind, at.in, course), func(t *testing.T) {
				t.Parallel()
				p := place(t, at.kind, at.child)
				r := p.t.repos[ones(at.child)]
				for n, name := range course {
					w := works[slices.IndexFunc(works, func(w work) bool { return w.name == name })]
					in := at.in
					if name == "save" { // of the whole directory
						in = "."
					}
					w.model(p.t, r, 100+n)
					p.run(t, "k/tasks/task-t1/"+in, w.real)
				}
				model, real := p.verdicts(t)
				if model != real {
					t.Errorf("by the model: %q\nby git:       %q", model, real)
				}
				// What the model calls a loss is kept by the real script.
				if risk := p.t.atRisk(); len(risk) > 0 && real == "" {
					t.Errorf("%v would be lost, and git's answer is safe", risk)
				}
			})
		}
	}
}
