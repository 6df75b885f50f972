package core

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
)

// greeted is a greeting of a host with this root, these tasks and this target.
func greeted(home, root, tasks, target, holder string) Heard {
	return Heard{Reply: Said{Body: "reclaim 1 greet\nhome =" + home + "\nroot =" + root + "\nplatform =Linux\ngit =2.39.5\nclock 1700000000\ntasks " +
		tasks + "\ntarget " + target + "\nholder " + holder + "\nend 8\n"}}
}

func TestWhatEndsAnAttemptOnceTheHostHasAnswered(t *testing.T) {
	with := func(edit func(*Snapshot)) Snapshot { s := lab(); edit(&s); return s }
	begun := with(func(s *Snapshot) { s.Begun = true })
	home := with(func(s *Snapshot) { s.Target.WorkdirRoot, s.Target.TaskDir = "", "/home/dev/.kandev/tasks/task-7" })
	elsewhere := with(func(s *Snapshot) { s.Target.WorkdirRoot, s.Target.TaskDir = "~/k", "/home/other/k/tasks/task-7" })
	safe, said := answer(t, "clean-pushed"), func(body string) Heard { return Heard{Reply: Said{Body: body}} }
	unseen := "unseen ~ ~"
	settled := func(holder Holder, body string) Answer {
		return said("reclaim 1 settle\nabout " + about(Settle{Root: "/srv/lab", Segment: "task-7", Holder: holder}) + "\n" + body + "\nend 3\n")
	}
	there := greeted("/home/dev", "/srv/lab", "directory", "directory", "none ~ ~")
	for _, row := range []struct {
		name     string
		snapshot Snapshot
		answers  []Answer
		want     string
		says     string
	}{
		{"the directory is there", lab(), []Answer{mine(), allowed(), there}, "ask inventory", ""},
		{"the home directory is told", home, []Answer{mine(), allowed(), greeted("/home/dev", "/home/dev/.kandev", "directory", "directory", "none ~ ~")}, "ask inventory", ""},
		{"the directory lies below another home", elsewhere, []Answer{mine(), allowed(), greeted("/home/dev", "/home/dev/k", "directory", "directory", "none ~ ~")}, "failed path_refused final", "not below"},
		{"the root is everything", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/", "directory", "directory", "none ~ ~")}, "failed path_refused final", "workdir root is \"/\" and the home"},
		{"the root is the home directory", lab(), []Answer{mine(), allowed(), greeted("/srv/lab", "/srv/lab", "directory", "directory", "none ~ ~")}, "failed path_refused final", ""},
		{"the root leads to the home directory", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/home/dev", "directory", "directory", "none ~ ~")}, "failed path_refused final", ""},
		{"tasks is a link", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/srv/lab", "symlink", "unseen", unseen)}, "skipped not_a_checkout tasks_is_symlink", "lies elsewhere"},
		{"tasks is not there", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/srv/lab", "absent", "unseen", unseen)}, "skipped probe_failed tasks_missing", "may not be mounted"},
		{"tasks is a file", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/srv/lab", "other", "unseen", unseen)}, "skipped probe_failed tasks_missing", "is not a directory"},
		{"tasks cannot be read", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/srv/lab", "unreadable", "unseen", unseen)}, "skipped probe_failed unreadable", "cannot be read"},
		{"tasks is not there, and a removal had begun", begun, []Answer{allowed(), greeted("/home/dev", "/srv/lab", "absent", "unseen", unseen)}, "failed half_removed", "a removal had begun and its state cannot be seen: the directory that holds"},
		{"the target is a link", lab(), []Answer{mine(), allowed(), greets("symlink", "none")}, "skipped not_a_checkout target_is_symlink", "not ours to remove"},
		{"the target is a file", lab(), []Answer{mine(), allowed(), greets("other", "none")}, "skipped not_a_checkout no_repository", "not a directory"},
		{"the target cannot be seen", lab(), []Answer{mine(), allowed(), greets("unreadable", "none")}, "skipped probe_failed unreadable", "cannot be seen"},
		{"the target is not there", lab(), []Answer{mine(), allowed(), greets("absent", "none")}, "skipped not_a_checkout already_absent", "no attempt of ours"},
		{"the target is not there, and a removal had begun", begun, []Answer{allowed(), greets("absent", "none")}, "removed", "an earlier attempt recorded"},
		{"another removal is at work", lab(), []Answer{mine(), allowed(), greets("directory", "alive")}, "failed busy", "at work on the host"},
		{"what is left contradicts itself", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/srv/lab", "directory", "directory", "contradictory ~ =both")}, "failed half_removed", "nothing was touched: its holder cannot be read as a state (both)"},
		{"the holder was not looked at", lab(), []Answer{mine(), allowed(), greeted("/home/dev", "/srv/lab", "directory", "unseen", unseen)}, "failed half_removed", ""},
		{"an empty holder is left", lab(), []Answer{mine(), allowed(), greets("directory", "empty")}, "ask settle", ""},
		{"it was put right", lab(), []Answer{mine(), allowed(), greets("directory", "empty"), settled(HolderEmpty, "target directory\nsettled empty ~ 0 0")}, "ask inventory", ""},
		{"it was put back", lab(), []Answer{mine(), allowed(), greets("absent", "quarantined"), settled(HolderQuarantined, "target directory\nsettled quarantined ~ 0 0")}, "ask inventory", ""},
		{"the rest of a removal was finished", lab(), []Answer{mine(), allowed(), greets("absent", "committed"), settled(HolderCommitted, "target absent\nsettled committed ~ 9 3")}, "removed", "was finished"},
		{"a new directory stands beside what was finished", lab(), []Answer{mine(), allowed(), greets("directory", "committed"), settled(HolderCommitted, "target directory\nsettled committed ~ 9 3")}, "ask inventory", ""},
		{"nothing is left beside an empty holder", lab(), []Answer{mine(), allowed(), greets("absent", "empty"), settled(HolderEmpty, "target absent\nsettled empty ~ 0 0")}, "skipped not_a_checkout already_absent", ""},
		{"it could not be put right", lab(), []Answer{mine(), allowed(), greets("directory", "empty"), settled(HolderEmpty, "target directory\nsettled left =x 0 0")}, "failed still_present", ""},
		{"settling never ran", lab(), []Answer{mine(), allowed(), greets("directory", "empty"), Heard{Reply: NeverRan{Fault: AuthFailed}}}, "failed auth_failed", ""},
		{"settling was cut off", lab(), []Answer{mine(), allowed(), greets("directory", "empty"), Heard{Reply: Unclear{Doubt: ConnectionLost}}}, "failed lost", "putting right what an earlier removal left was cut off"},
		{"settling is not over", lab(), []Answer{mine(), allowed(), greets("directory", "empty"), Heard{Reply: Unclear{Doubt: LimitReached}}}, "failed half_removed", "brought no clear answer"},
		{"settling has no reply", lab(), []Answer{mine(), allowed(), greets("directory", "empty"), Heard{}}, "failed half_removed", "has no recorded reply"},
		{"begun, put right, and un-archived", begun, []Answer{allowed(), greets("directory", "none"), Ownership{OptInNow: On}}, "withdraw", ""},
		{"begun, put right, and owned", begun, []Answer{allowed(), greets("directory", "none"), mine()}, "ask inventory", ""},
		{"begun, put right, and the script did not run", with(func(s *Snapshot) { s.Begun, s.Hook = true, HookFailed }), []Answer{allowed(), greets("directory", "none"), mine()}, "skipped probe_failed hook_not_run", "did not run to its end"},
		{"the inventory never ran", lab(), []Answer{mine(), allowed(), there, Heard{Reply: NeverRan{Fault: Unreachable}}}, "failed unreachable", ""},
		{"the inventory was cut off", lab(), []Answer{mine(), allowed(), there, Heard{Reply: Unclear{Doubt: ConnectionLost}}}, "failed lost", "the inventory was cut off"},
		{"the inventory is not over", lab(), []Answer{mine(), allowed(), there, Heard{Reply: Unclear{Doubt: LimitReached}}}, "skipped probe_failed probe_timeout", "did not end within its limit"},
		{"it went away while it was judged", lab(), []Answer{mine(), allowed(), there, Heard{Reply: sealed([]string{"reclaim 1 inventory", linesOf(safe)[1], "shape absent"})}}, "failed busy", "went away while it was judged"},
		{"something is at risk", lab(), []Answer{mine(), allowed(), there, Heard{Reply: answer(t, "stash-no-reflog")}}, "skipped stash_present stash", ""},
		{"nothing is at risk", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}}, "ask owner", ""},
		{"a claim came meanwhile", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, func() Ownership { o := mine(); o.Claims = []Claim{{TaskID: "t-2", Unreadable: true}}; return o }()}, "skipped shared claim", ""},
		{"the last look is good", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine()}, "ask rule", ""},
		{"the policy denies at last", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), Ruling{}}, "failed policy_failed", ""},
		{"the policy allows at last", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed()}, "ask begin", ""},
		{"the row is another's", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed(), Begun{Ending: BeginWithdrawn}}, "withdraw", ""},
		{"everything is stopped", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed(), Begun{Ending: BeginHalted}}, "failed policy_held", "stop-all"},
		{"the intent is not durable", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed(), Begun{Ending: BeginFailed}}, "failed store_failed", "nothing was touched"},
		{"nobody knows of the intent", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed(), Begun{}}, "failed store_failed", ""},
		{"the intent is durable", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed(), Begun{Ending: BeginRecorded}}, "ask remove", ""},
		{"the removal was cut off", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed(), Begun{Ending: BeginRecorded}, Heard{Reply: Unclear{Doubt: ConnectionLost}}}, "failed lost", "the removal was cut off"},
		{"the removal said nothing", lab(), []Answer{mine(), allowed(), there, Heard{Reply: safe}, mine(), allowed(), Begun{Ending: BeginRecorded}, Heard{Reply: Said{}}}, "failed half_removed", "cannot be read"},
	} {
		t.Run(row.name, func(t *testing.T) {
			step, transcript := upTo(t, row.snapshot, row.answers...)
			if got := word(step); got != row.want {
				t.Errorf("%s: %#v", got, step)
			}
			if done, is := step.(Done); is && !strings.Contains(detailOf(done.Outcome), row.says) {
				t.Errorf("%q lacks %q", detailOf(done.Outcome), row.says)
			}
			roundTrips(t, row.snapshot, transcript)
		})
	}
}

// What the removal may do until when, and what it is asked about, is frozen in
// the questions.
func TestWhatAnAttemptAsksIsWhatItsSnapshotAndTheHostSaid(t *testing.T) {
	s := lab()
	s.Window, s.Labels, s.Baseline = 60, map[string]string{"team": "x"}, strings.Repeat("a", 64)
	_, transcript := upTo(t, s, mine(), allowed(), greets("directory", "none"))
	ask, _ := Next(s, transcript).(Ask)
	if q := ask.Query.(Inventory); q.Root != "/srv/lab" || q.Segment != "task-7" || q.Baseline != s.Baseline {
		t.Errorf("%+v", q)
	}
	lines := linesOf(answer(t, "clean-pushed"))
	inventory := sealed(slices.Insert(slices.Clone(lines), len(lines)-1, "baseline whole"))
	step, _ := upTo(t, s, mine(), allowed(), greets("directory", "none"), Heard{Reply: inventory}, mine())
	facts := step.(Ask).Query.(Rule).Facts
	if facts.Moment != RemoveNow || facts.Bytes != 26214 || facts.Entries != 78 || facts.Path.Home != "/home/dev" || facts.Labels["team"] != "x" || facts.OptInNow != On || facts.Ownership == nil || facts.Excused != nil {
		t.Errorf("%+v", facts)
	}
	step, transcript = upTo(t, s, mine(), allowed(), greets("directory", "none"), Heard{Reply: inventory}, mine(), allowed())
	if q := step.(Ask).Query.(Begin); q.NotAfter != 1700000060 || q.JobID != "job-7" || q.TaskID != "t-1" || q.Attempt != 1 || q.Target != s.Target {
		t.Errorf("%+v", q)
	}
	if r := Conclude(s, transcript); r.Outcome != OutcomeReclaimable || r.Bytes != 26214 || len(r.Checkouts) != 1 || strings.Contains(r.Detail, "build output") {
		t.Errorf("%+v", r)
	}
	step, transcript = upTo(t, s, mine(), allowed(), greets("directory", "none"), Heard{Reply: inventory}, mine(), allowed(), Begun{Ending: BeginRecorded})
	q := step.(Ask).Query.(Remove)
	if q.NotAfter != 1700000060 || q.JobID != "job-7" || q.Attempt != 1 || q.Root != "/srv/lab" || q.Segment != "task-7" || q.Manifest.Inode != "10003572" || q.Manifest.Count != 79 {
		t.Errorf("%+v", q)
	}
	gone := Heard{Reply: Said{Body: "reclaim 1 remove\nabout " + about(q) + "\nrm 0\nfreed 4096 12\ntarget absent\nholder absent\nended gone ~\nend 6\n"}}
	transcript = append(transcript, Exchange{q, gone})
	r := NewRecord(s, transcript)
	if r.Result.Outcome != OutcomeRemoved || r.Result.Bytes != 4096 || r.Result.Detail != "12 entries removed" || r.Policy != "d" {
		t.Errorf("%+v", r.Result)
	}
	empty := Heard{Reply: Said{Body: strings.Replace(gone.Reply.(Said).Body, "freed 4096", "freed 0", 1)}}
	transcript[len(transcript)-1].Answer = empty
	if r := Conclude(s, transcript); r.Bytes != 26214 {
		t.Errorf("%+v", r)
	}
	for window, want := range map[int64]int64{0: 1700000000 + DefaultWindow, -5: 1700000000 + DefaultWindow, 1: 1700000001} {
		s := lab()
		s.Window = window
		step, _ := upTo(t, s, mine(), allowed(), greets("directory", "none"), Heard{Reply: answer(t, "clean-pushed")}, mine(), allowed())
		if got := step.(Ask).Query.(Begin).NotAfter; got != want {
			t.Errorf("a window of %d: %d", window, got-1700000000)
		}
	}
	// A look that ends where leftovers would be put right finds them.
	_, transcript = upTo(t, lab(), mine(), allowed(), greets("directory", "empty"))
	if r := Conclude(lab(), transcript); r.Outcome != OutcomeFailed || r.Fault != HalfRemoved {
		t.Errorf("%+v", r)
	}
	if r := Conclude(lab(), nil); r.Outcome != OutcomeCancelled || r.Detail != "cut short before the question owner" {
		t.Errorf("%+v", r)
	}
	_, transcript = upTo(t, lab(), Ownership{OptInNow: On})
	if r := Conclude(lab(), transcript); r.Outcome != OutcomeCancelled || !strings.Contains(r.Detail, "t-1") && r.Detail == "" {
		t.Errorf("%+v", r)
	}
	if ScriptDigest(Script{Body: "a"}) == ScriptDigest(Script{Body: "b"}) || len(ScriptDigest(Script{})) != 64 || len(Digest()) != 16 {
		t.Error("digests name nothing")
	}
	with := lab()
	with.Target.Disposable = "node"
	if len(DigestFor(with)) != 16 || DigestFor(with) == DigestFor(lab()) || DigestFor(lab()) != Digest() {
		t.Error("a digest does not tell one inventory from another")
	}
}

func TestTheBaselineOfALaunchIsToldAndProvesNothingWhereItIsNotWhole(t *testing.T) {
	q := labInventory
	q.Baseline = strings.Repeat("a", 64)
	lines := linesOf(answer(t, "clean-pushed"))
	for word, note := range map[string]string{"whole": "is known from its baseline", "absent": "is gone, so", "changed": "not the one it recorded", "odd": ""} {
		e := q.Judge(sealed(slices.Insert(slices.Clone(lines), len(lines)-1, "baseline "+word)))
		if e.Safe() != (word != "odd") || note != "" && !slices.ContainsFunc(e.Notes, func(n string) bool { return strings.Contains(n, note) }) {
			t.Errorf("%s: %+v", word, e)
		}
	}
	if e := q.Judge(sealed(lines)); e.Safe() {
		t.Error("it was asked for and not told")
	}
	plain, asked := labInventory.Script().Body, q.Script().Body
	if !strings.Contains(plain, "baseline=''\n") || !strings.Contains(asked, "root='/srv/lab' segment='task-7' baseline='"+q.Baseline+"'\n") || !strings.Contains(asked, shell(baselineSource)) || strings.Contains(plain, shell(baselineSource)) {
		t.Error("the script asks about another baseline")
	}
}

// Inside the target a repository may be bare, or be tracked by the one around
// it; the target itself may not.
func TestANestedRepositoryIsJudgedAsWhatItIs(t *testing.T) {
	nested := func(kind, state string, more ...string) []string {
		lines := linesOf(answer(t, "clean-pushed"))
		lines[slices.Index(lines, "repositories 1")] = "repositories 2"
		at := slices.Index(lines, "finished")
		return slices.Insert(lines, at, append([]string{"repository 2 " + kind + " =sub", "checkout 2 " + state}, more...)...)
	}
	bare := []string{"operations 2 0 0", "settings 2 0 0", "index 2 0", "remotes 2 0 1 1 0 0", "refs 2 0 4 0 3 0 0 0 0", "vouched 2 1 0", "unpushed 2 0 0", "abandoned 2 0 0", "judged 2"}
	whole := slices.Replace(slices.Clone(bare), 2, 3, "files 2 0 0 5 0 0 0 0 0 0", "hidden 2 0 0 0 0")
	unpushed := slices.Replace(slices.Clone(whole), 7, 8, "unpushed 2 0 3")
	for _, row := range []struct {
		lines []string
		want  string
	}{
		{nested("bare", "tracked"), ""},
		{nested("child", "tracked"), "probe_failed probe_error"},
		{nested("bare", "itself", bare...), ""},
		{nested("submodule", "itself", bare...), ""},
		{nested("vanished_worktree", "itself", bare...), ""},
		{nested("child", "itself", bare...), "probe_failed probe_error"},
		{nested("nested", "itself", bare...), "probe_failed probe_error"},
		{nested("bare", "itself", slices.Replace(slices.Clone(bare), 2, 3, "index 2 1")...), "dirty_worktree modified"},
		{nested("child", "itself", whole...), ""},
		{nested("child", "itself", unpushed...), "unpushed_commits nested_repository"},
		{nested("nested", "itself", unpushed...), "unpushed_commits nested_repository"},
		{nested("submodule", "itself", unpushed...), "unpushed_commits submodule"},
		{nested("bare", "itself", slices.Replace(slices.Clone(bare), 6, 7, "unpushed 2 0 3")...), "unpushed_commits nested_repository"},
		{nested("child", "bare"), "probe_failed probe_error"},
		{nested("child", "elsewhere"), "probe_failed probe_error"},
		{nested("child", "begun"), "not_a_checkout no_repository probe_failed probe_error"},
		{nested("child", "unresolved"), "probe_failed probe_error"},
	} {
		e := labInventory.Judge(sealed(row.lines))
		var got []string
		for _, f := range e.Findings {
			got = append(got, string(f.Reason)+" "+string(f.Cause))
			for _, remedy := range f.Cure {
				if f.Checkout == "sub" && remedy.Run != "" && !strings.Contains(remedy.Run, "'/srv/lab/tasks/task-7/sub'") {
					t.Errorf("%q is run elsewhere", remedy.Run)
				}
			}
		}
		if strings.Join(got, " ") != row.want || e.Safe() != (row.want == "") {
			t.Errorf("%v: %q", row.lines[len(row.lines)-12:], got)
		}
	}
	// The worst finding of a checkout is its verdict.
	lines := linesOf(answer(t, "clean-pushed"))
	lines[slices.Index(lines, "files 1 0 0 5 0 0 0 0 0 0")] = "files 1 0 0 5 0 0 1 0 0 0"
	lines[slices.Index(lines, "hidden 1 0 0 0 0")] = "hidden 1 0 0 0 0"
	lines[slices.Index(lines, "settings 1 0 0")] = "settings 1 0 1"
	lines[slices.Index(lines, "unpushed 1 0 0")] = "unpushed 1 0 1"
	if e := labInventory.Judge(sealed(lines)); e.Checkouts[0].Reason != ProbeFailed || e.Checkouts[0].Verdict != "kept" || e.Findings[0].Reason != ProbeFailed || e.Findings[2].Reason != UnpushedCommits {
		t.Errorf("%+v", e)
	}
	// A record that is not there takes nothing away from what the others say.
	lines = linesOf(answer(t, "clean-pushed"))
	lines[slices.Index(lines, "unpushed 1 0 0")] = "unpushed 1 0 1"
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "hidden 1 0 0 0 0" })
	if e := labInventory.Judge(sealed(lines)); len(e.Findings) != 2 || e.Findings[1].Checkout != "." || e.Findings[1].Cure[0].Run == "" || e.Complete {
		t.Errorf("%+v", e)
	}
	// A branch is named before HEAD.
	lines = linesOf(answer(t, "clean-pushed"))
	at := slices.Index(lines, "unpushed 1 0 0")
	lines = slices.Replace(lines, at, at+1, "sample 1 holder =refs/notes/n", "sample 1 holder =refs/heads/it@s", "sample 1 holder =HEAD", "unpushed 1 0 1")
	if f := labInventory.Judge(sealed(lines)).Findings[0]; f.Cause != OnBranch || f.Cure[0].Run != `git -C '/srv/lab/tasks/task-7' push origin 'it@s'` {
		t.Errorf("%+v", f)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "sample 1 holder =refs") })
	if f := labInventory.Judge(sealed(lines)).Findings[0]; f.Cause != Detached || f.Cure[0].Run != `git -C '/srv/lab/tasks/task-7' push origin HEAD:refs/heads/rescued` {
		t.Errorf("%+v", f)
	}
	linked := labInventory.Judge(answer(t, "wt-target-clean")).Manifest
	if want := (Manifest{Device: "65024", Inode: "10029258", Digest: "82e6dfa57c85e2b79c100d82fb940e46720466fc", Count: 17, Outside: []string{"/srv/lab/other/cache/.git/worktrees/task-7"},
		Registrations: []Registration{{CommonDir: "/srv/lab/other/cache/.git", Name: "task-7", GitDirFile: "/srv/lab/tasks/task-7/.git"}}}); !cmp.Equal(want, linked) {
		t.Error(cmp.Diff(want, linked))
	}
	if e := labInventory.Judge(sealed(nested("bare", "tracked"))); !slices.ContainsFunc(e.Notes, func(n string) bool { return strings.HasPrefix(n, `"sub" is a bare repository`) }) {
		t.Errorf("%q", e.Notes)
	}
	r := &reading{q: labInventory}
	if r.where() != "/srv/lab/tasks/task-7" {
		t.Error(r.where())
	}
	if r.at = (&repository{path: "/srv/other"}); r.where() != "/srv/other" {
		t.Error(r.where())
	}
}

// Every kind alone is a script of its own.
func TestEveryKindOfBuildOutputAloneIsAskedForInPOSIXShell(t *testing.T) {
	for _, kind := range DisposableKinds() {
		body := heapInventory(kind.Word).Script().Body
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(body), kind.Word); err != nil {
			t.Errorf("%s: %v", kind.Word, err)
		}
		for _, row := range heapRows() {
			if _, asked := row.allowed(kind.Word); asked != strings.Contains(body, `= "`+row.name+`"`) {
				t.Errorf("%s: the row %s is asked for: %v", kind.Word, row.name, !asked)
			}
		}
	}
}

func TestJSONThatIsCutOffOrNoObjectEndsWhereItEnds(t *testing.T) {
	for raw, n := range map[string]int{`[1,"a]",{"b":[2]},[3],tru`: 5, `["a`: 1, `["a\`: 1, `[ ]`: 0, `[`: 0} {
		if got, err := elements([]byte(raw)); n != len(got) || err != nil {
			t.Errorf("%s: %v %v", raw, got, err)
		}
	}
	for _, raw := range []string{"", " ", `{}`, `1`} {
		if got, err := elements([]byte(raw)); err == nil {
			t.Errorf("%s: %v", raw, got)
		}
	}
	for _, raw := range []string{"", " ", "[]", `{"\x":1}`} {
		if got, err := members([]byte(raw)); err == nil {
			t.Errorf("%s: %v", raw, got)
		}
		if raw != "" && raw != " " && raw != "[]" {
			if err := spelledOnce([]byte(raw), "", false); err == nil {
				t.Error("a key that cannot be read is one")
			}
		}
	}
	if got, err := edit([]byte(`{"a":1,"b":2,"a":3}`), change{"a", nil}); err != nil || string(got) != `{"a":null,"b":2,"a":null}` {
		t.Errorf("%s %v", got, err)
	}
	if got, err := edit([]byte(`{"a":1,"b":2,"a":3}`), change{"a", []byte("4")}, change{"b", nil}, change{"c", nil}); err != nil || string(got) != `{"a":4,"a":4}` {
		t.Errorf("%s %v", got, err)
	}
	all, _ := members([]byte(`{"a":7,"b":"x"}`))
	if yes, err := truth(all, []byte(`{"a":7,"b":"x"}`), "a"); yes || err == nil {
		t.Error("a number is true")
	}
	if got, err := edit([]byte(`[]`), change{"a", nil}); err == nil {
		t.Errorf("%s", got)
	}
	for _, raw := range []string{`[]`, `{"reclaim":{"\x":1}}`} {
		if got, err := editReclaim([]byte(raw), change{"a", []byte("1")}); err == nil {
			t.Errorf("%s: %s", raw, got)
		}
	}
	for raw, want := range map[string]string{`{}`: `{"reclaim":{"a":1}}`, `{"reclaim":null}`: `{"reclaim":{"a":1}}`, `{"reclaim":7}`: `{"reclaim":7}`, `{"reclaim":{"a":1}}`: `{"reclaim":{"a":1}}`} {
		if got, err := editReclaim([]byte(raw), change{"a", []byte("1")}); err != nil || string(got) != want {
			t.Errorf("%s: %s %v", raw, got, err)
		}
	}
	if got, err := editReclaim([]byte(`{"x":1,"reclaim":{"a":1}}`), change{"a", nil}); err != nil || string(got) != `{"x":1}` {
		t.Errorf("%s %v", got, err)
	}
}

// A snapshot whose bytes are not the ones it was read from is written by nobody.
func TestASnapshotThatIsNotWhatItWasReadFromIsNotEdited(t *testing.T) {
	target := Target{Host: "h", TaskDir: "/srv/k/tasks/a"}
	s := JobSnapshot{raw: []byte("[]"), entries: []entry{{JobTarget: JobTarget{Target: target, Outcome: OutcomeSkipped}, object: true, end: 2}}}
	for name, write := range map[string]func() (JobSnapshot, error){
		"begin":   func() (JobSnapshot, error) { return s.WithBegun(Begin{Target: target, Attempt: 1}) },
		"outcome": func() (JobSnapshot, error) { return s.WithOutcome(target, Removed{}) },
		"script":  func() (JobSnapshot, error) { return s.WithHook(target, SessionHook{}) },
		"again":   s.Again,
		"no try":  s.WithUncounted,
	} {
		if got, err := write(); err == nil || string(got.raw) != "[]" {
			t.Errorf("%s: %s", name, got.raw)
		}
	}
	if _, err := s.edited(target, func(entry, []byte) ([]byte, error) { return nil, errors.New("no") }); err == nil || err.Error() != "no" {
		t.Error(err)
	}
}

func TestWhatAHostSaysIsWordsOfOneSpaceOrRefused(t *testing.T) {
	for _, body := range []string{"reclaim 1 x\na  b\nend 1\n", "reclaim 1 x\n a\nend 1\n", "reclaim 1 x\na \nend 1\n", "reclaim 1 x\n\nend 1\n", "reclaim 1 x\nreclaim 1 x\nend 1\n", "reclaim 1 x\nend 0\nend 1\n",
		"reclaim 1 x\na\nend 2\n", "reclaim 1 y\na\nend 1\n", "reclaim 2 x\na\nend 1\n", "reclaim 1 x\na\nend 1", "reclaim 1 x\na\x7f\nend 1\n", "reclaim 1 x\na\x1f\nend 1\n", "reclaim 1 x\n", "\n", ""} {
		if got, err := parseRecords("x", body); err == nil || !errors.Is(err, errRecords) || got != nil {
			t.Errorf("%q: %v", body, got)
		}
	}
	if got, err := parseRecords("x", "reclaim 1 x\na ~ !\nb\nend 2\n"); err != nil || len(got) != 2 || got[0].kind != "a" || !slices.Equal(got[0].fields, []string{"~", "!"}) || len(got[1].fields) != 0 {
		t.Errorf("%v %v", got, err)
	}
	if got, err := parseRecords("x", "reclaim 1 x\nend 0\n"); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	many := func(n int) string { return "reclaim 1 x\n" + strings.Repeat("a\n", n) + "end " + itoa(n) + "\n" }
	if got, err := parseRecords("x", many(maxRecords-2)); err != nil || len(got) != maxRecords-2 {
		t.Errorf("%d %v", len(got), err)
	}
	if _, err := parseRecords("x", many(maxRecords-1)); err == nil {
		t.Error("more records than are bounded")
	}
	for field, want := range map[string]string{"=a": "a", "=aZ09/._,:@+-": "aZ09/._,:@+-", "=Az": "Az", "=`": "-", "={": "-", "=[": "-", "=;": "-", "~": "", "~6120": "a ", "=": "-", "": "-", "a": "-", "=a b": "-", "~6": "-", "~6A": "-", "~6g": "-", "=é": "-"} {
		got, ok := text(field)
		if !ok && want != "-" || ok && got != want {
			t.Errorf("%q: %q %v", field, got, ok)
		}
	}
	for field, want := range map[string]int64{"0": 0, "17": 17, "9223372036854775807": 1<<63 - 1, "-0": -1, "-1": -1, "01": -1, "+1": -1, "": -1, "x": -1, "9223372036854775808": -1} {
		got, ok := number(field)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d %v", field, got, ok)
		}
	}
	if quote("it's") != `'it'\''s'` || quote("") != "''" {
		t.Error(quote("it's"))
	}
}

func itoa(n int) string { raw, _ := json.Marshal(n); return string(raw) }

func TestALaunchIsProjectedFromWhatCanBeRead(t *testing.T) {
	base := func() Projected {
		return Projected{TaskID: "t", Task: []byte(`{"note":"n","git_user_name":"task"}`), ExecutorID: "e", Executor: []byte(projectedExecutor),
			Profile: &Profile{ID: "p", CleanupScript: "c", Config: []byte(`{"ssh_reclaim_task_dir":"true","ssh_reclaim_disposable":"node,moon","remote_git_user_name":"new","git_user_name":"old","empty":"","other":"o","number":7,"ssh_workdir_root":"/w","ssh_shell":"/bin/zsh"}`)}}
	}
	got := project(t, base())
	for key, want := range map[string]any{"note": "n", "git_user_name": "new", "other": "o", "number": nil, "empty": nil, "ssh_reclaim_task_dir": "true", "ssh_reclaim_disposable": "node", "ssh_workdir_root": "/w", "ssh_shell": "/bin/zsh",
		"cleanup_script": "c", "executor_profile_id": "p", "executor_id": "e", "is_remote": true, "ssh_host": "dev.example", "ssh_proxy_jump": ""} {
		if got[key] != want {
			t.Errorf("%s is %v", key, got[key])
		}
	}
	for range 20 { // of a key and its other name always the same
		if again := project(t, base()); again["git_user_name"] != "new" {
			t.Fatalf("%v", again["git_user_name"])
		}
	}
	odd := base()
	odd.Task = []byte(`{"note"`)
	if got := project(t, odd); got["note"] != nil || got["ssh_host"] != "dev.example" {
		t.Errorf("%v", got)
	}
	odd = base()
	odd.Executor, odd.Task = nil, nil
	if got := project(t, odd); got["ssh_host"] != "" || got["note"] != nil {
		t.Errorf("%v", got)
	}
	for key, bare := range map[string]string{"\u212aey": "key", "\u017fsh": "ssh", "ＳＳＨ＿ｈ": "sshh", "a-B_c 9\u00e9!": "abc9"} {
		if got := bareKey(key); got != bare {
			t.Errorf("%q is %q", key, got)
		}
	}
	if raw, err := WithLaunched([]byte(`{"ssh_host_alias":"al","x":1}`), Target{Host: "h", User: "u", IdentitySource: "file", IdentityFile: "k", ProxyJump: "j", TaskDir: "/d"}, map[string]string{"b": "2", "a": "1"}); err != nil ||
		string(raw) != `{"x":1,"ssh_host":"h","ssh_port":"22","ssh_user":"u","ssh_identity_source":"file","ssh_identity_file":"k","ssh_proxy_jump":"j","ssh_remote_task_dir":"/d","a":"1","b":"2"}` {
		t.Errorf("%s %v", raw, err)
	}
	odd = base()
	odd.Executor = []byte(`[]`)
	if raw, err := Project(odd); err == nil || raw != nil {
		t.Errorf("%s", raw)
	}
	odd = base()
	odd.Profile.Config = []byte(`[`)
	if got := project(t, odd); got["ssh_reclaim_task_dir"] != "" || got["other"] != nil || got["executor_profile_id"] != "p" {
		t.Errorf("%v", got)
	}
	for _, none := range []string{"", " null "} {
		odd = base()
		odd.Profile.Config = []byte(none)
		if got := project(t, odd); got["ssh_reclaim_task_dir"] != "" || got["git_user_name"] != "task" || got["ssh_workdir_root"] != "~/.kandev" {
			t.Errorf("%v", got)
		}
	}
	digest := strings.Repeat("0a", 20)
	if raw, err := WithBaseline([]byte(`{"a":1}`), digest); err != nil || string(raw) != `{"a":1,"ssh_baseline":"`+digest+`"}` {
		t.Errorf("%s %v", raw, err)
	}
	for _, none := range []string{"", "x", digest[1:], digest + "0", strings.Repeat("0A", 20), strings.Repeat("a", 63)} {
		if raw, err := WithBaseline([]byte(`{"a":1}`), none); err != nil || string(raw) != `{"a":1}` {
			t.Errorf("%q: %s %v", none, raw, err)
		}
	}
	for _, odd := range []string{`{`, `[]`, `{"ssh_host":"h","ssh_host":"h"}`} {
		if target, _, err := LaunchTarget([]byte(odd)); err == nil || target != (Target{}) {
			t.Errorf("%s: %+v", odd, target)
		}
	}
	for port, ok := range map[string]bool{"": true, "1": true, "65535": true, "0": false, "65536": false, "x": false, "-1": false} {
		target, alias, err := LaunchTarget([]byte(`{"ssh_host":"h","ssh_host_alias":" al ","ssh_host_fingerprint":"f","ssh_port":"` + port + `"}`))
		if (err == nil) != ok || ok && (target.Host != "h" || alias != "al") {
			t.Errorf("port %q: %+v %v", port, target, err)
		}
	}
}

func TestADelayOfAnAttemptThatWasNotCountedIsTheFirst(t *testing.T) {
	first, again := RetryAfter(1)
	for _, attempt := range []int{0, -1} {
		if after, more := RetryAfter(attempt); after != first || !more || !again {
			t.Errorf("%d: %v", attempt, after)
		}
	}
}

func TestAnOddAnswerAboutACleanupScriptIsNoEnd(t *testing.T) {
	say := func(lines ...string) Said {
		return Said{Body: "reclaim 1 hook\n" + strings.Join(lines, "\n") + "\nend " + itoa(len(lines)) + "\n"}
	}
	for _, row := range []struct {
		said Said
		want Hook
		says string
	}{
		{say("started", "status 0", "output ~"), HookRan, ""},
		{say("started", "status 3", "output =bad"), HookFailed, `status 3; it last said "bad"`},
		{say("status 0", "output =x"), HookFailed, `did not come to the cleanup script (status 0); it last said "x"`},
		{say("started", "status x"), HookFailed, "status -1"},
		{say("started"), HookFailed, "status -1"},
		{say("cannot =why", "started", "status 0"), HookFailed, "not started: why"},
		{say("started", "started", "status 0"), HookFailed, "cannot be read"},
		{say("started", "status 0", "status 0"), HookFailed, "cannot be read"},
		{say("started x", "status 0"), HookFailed, "cannot be read"},
		{say("started", "status 0 0"), HookFailed, "cannot be read"},
		{say("started", "status 0", "moon"), HookFailed, "cannot be read"},
		{say("started", "status 0", "output =a", "output =b"), HookFailed, "cannot be read"},
		{say("started", "status 0", "output =a b"), HookFailed, "cannot be read"},
		{say("cannot =a", "cannot =b"), HookFailed, "cannot be read"},
		{say("cannot =a =b"), HookFailed, "cannot be read"},
		{Said{Body: say("started", "status 0").Body, Exit: 1}, HookFailed, "cannot be read"},
	} {
		if got, why := (RunHook{}).Judge(row.said); got != row.want || !strings.Contains(why, row.says) || (why == "") != (row.want == HookRan) {
			t.Errorf("%q: %s %s", row.said.Body, got, why)
		}
	}
}

func TestWhoeverBarsARemovalIsNamedWithWhatToDo(t *testing.T) {
	for _, row := range []struct {
		f            Finding
		detail, cure string
	}{
		{claimed(Claim{TaskID: "t-2", Host: "h", TaskDir: "/d"}), `task "t-2" goes on`, `archive or delete task "t-2"`},
		{claimed(Claim{TaskID: " ", Host: "h", TaskDir: "/d"}), "names no task", "see whose executors_running row it is"},
		{claimed(Claim{TaskID: "t-2", TaskTerminal: true, Host: "h", TaskDir: "/d"}), `task "t-2" has ended but had not opted in`, "look through the directory by hand"},
		{borrowed(Borrower{SessionID: "s", TaskID: "t-2", State: "IDLE"}), `session "s" ("IDLE") of task "t-2" runs in this task's environment`, `archive or delete task "t-2"`},
		{borrowed(Borrower{SessionID: "s", TaskID: "t-2", State: "IDLE", Lender: "t-3"}), `the environment of task "t-3"`, `archive or delete task "t-2"`},
		{borrowed(Borrower{SessionID: "s", State: "IDLE"}), "names no task", "see whose session it is"},
	} {
		if !strings.Contains(row.f.Detail, row.detail) || len(row.f.Cure) != 1 || !strings.Contains(row.f.Cure[0].What, row.cure) || row.f.Reason != Shared {
			t.Errorf("%+v", row.f)
		}
	}
	for host, want := range map[string]string{"LOCALHOST.": "localhost", "127.0.0.2": "localhost", "[::1]": "localhost", "::ffff:10.0.0.1": "10.0.0.1", "fe80::0:1": ":fe81", " Build.Example. ": "build.example", "": ""} {
		if got := canonicalHost(host); got != want {
			t.Errorf("%q is %q", host, got)
		}
	}
}

// A skip that does not count yet says when it will.
func TestASkipAfterABeginSaysWhenItWillCount(t *testing.T) {
	s := lab()
	s.Begun, s.BegunUntil = true, 1700000041
	step, _ := upTo(t, s, allowed(), greets("symlink", "none"))
	if f, _ := step.(Done).Outcome.(Failed); f.Fault != Busy || !strings.Contains(f.Detail, "may still start within 42 seconds") || !strings.Contains(f.Detail, "the target is a symbolic link") {
		t.Errorf("%+v", step)
	}
	for until, want := range map[int64]string{1700000000: "failed busy", 1699999999: "skipped not_a_checkout target_is_symlink"} {
		s.BegunUntil = until
		if step, _ := upTo(t, s, allowed(), greets("symlink", "none")); word(step) != want {
			t.Errorf("%d: %s", until, word(step))
		}
	}
}

// What is sent about build output is written down whole, so that a change of the
// table is seen as the shell and awk it becomes. go test ./core -run WrittenDown -update
// writes it anew.
func TestTheTablesOfBuildOutputAreWrittenDown(t *testing.T) {
	var b strings.Builder
	for _, kinds := range []string{everyKind(), "rust", "cachedir"} {
		tables := heapTables(slices.DeleteFunc(heapRows(), func(r heapRow) bool { _, asked := r.allowed(kinds); return !asked }))
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			b.WriteString("== " + kinds + ": " + name + "\n" + tables[name])
		}
	}
	const file = "testdata/build_output.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Error(diff)
	}
	parts, woven := disposableParts("rust"), woven("a\n\t# disposable: heaps\nb\n", map[string]string{"heaps": "x\n"})
	if woven != "a\nx\nb\n" {
		t.Errorf("%q", woven)
	}
	for name, text := range parts {
		if name != "" && (strings.Contains(text, "# table:") || strings.Contains(text, "# disposable:")) {
			t.Errorf("the part %q is not whole", name)
		}
	}
}

func TestPathsWithoutNamesMayBeAnywhere(t *testing.T) {
	for _, row := range []struct {
		claim, target string
		same          bool
	}{
		{"/srv/a", "/", true}, {"", "/srv/tasks/x", true}, {"/", "/srv/tasks/x", true}, {"x", "/srv/tasks/x", true}, {"y", "/srv/tasks/x", false}, {"~", "/srv/tasks/x", true}, {"$HOME", "/srv/tasks/x", true},
		{".", "/srv/tasks/x", true}, {"a/..", "/srv/tasks/x", true}, {"/srv/../x/y", "/srv/tasks/x", true}, {"/srv/../z/y", "/srv/tasks/x", false}, {"/srv/tasks", "/srv/tasks/x", true},
		{"/srv/tasks/x/y", "/srv/tasks/x", true}, {"/srv/tasks/y", "/srv/tasks/x", false}, {"/other/X", "/srv/tasks/x", true},
	} {
		if got := sameTree(row.claim, row.target); got != row.same {
			t.Errorf("%s and %s: %v", row.claim, row.target, got)
		}
	}
	if long := quoted(strings.Repeat("x", 201)); len(long) != 205 || !strings.HasSuffix(long, `"...`) || quoted(strings.Repeat("x", 200)) != `"`+strings.Repeat("x", 200)+`"` {
		t.Error(long)
	}
}
