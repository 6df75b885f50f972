package core

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryScriptOfARemovalCarriesWhatItCallsAndItsTime(t *testing.T) {
	for name, script := range map[string]Script{"settle": Settle{Root: "/r", Segment: "s"}.Script(), "progress": Progress{Root: "/r", Segment: "s"}.Script(), "remove": Remove{Root: "/r", Segment: "s"}.Script()} {
		want := 10 * time.Minute
		if name == "progress" {
			want = 30 * time.Second
		}
		if script.Name != name || script.Limit != want {
			t.Errorf("%s: %q, %v", name, script.Name, script.Limit)
		}
		for part, shell := range map[string]string{"prelude": preludeShell, "manifest": manifestShell, "holder": holderShell} {
			if !strings.Contains(script.Body, shell) {
				t.Errorf("%s without the %s", name, part)
			}
		}
		if holder := holderName("s"); !strings.HasPrefix(holder, ".reclaim-") || len(holder) != len(".reclaim-")+16 || !strings.Contains(script.Body, holder) || holder == holderName("t") {
			t.Errorf("%s: %q", name, holder)
		}
	}
}

func TestASettlementThatEndedWithAStatusIsNotRead(t *testing.T) {
	q := Settle{Root: "/r", Segment: "s", Holder: HolderCommitted}
	body := "reclaim 1 settle\nabout " + about(q) + "\ntarget absent\nsettled committed ~ 1024 3\nend 3\n"
	if _, failed := q.Judge(Said{Body: body}); failed != nil {
		t.Fatalf("%+v", failed)
	}
	if _, failed := q.Judge(Said{Body: body, Exit: 1}); failed == nil || failed.Fault != HalfRemoved {
		t.Errorf("%+v", failed)
	}
}

func TestASwitchThatIsOffIsToldFromOneThatNobodyKnows(t *testing.T) {
	for now, want := range map[OptIn]string{Off: "is off now", "moon": `"moon" where on, off or unknown`, "": `"" where on`} {
		f := switchedOff(now)
		if f.Reason != Disabled || !strings.Contains(f.Detail, want) || (len(f.Cure) > 0) != (now == Off) {
			t.Errorf("%q: %+v", now, f)
		}
	}
}

// What is kept for a reason of its own is not said to lack a manifest, and
// records of nothing are told once.
func TestNothingIsToldThatIsNot(t *testing.T) {
	for _, id := range []string{"stash-in-child-noreflog", "detached-unpushed", "wt-target-locked"} {
		for _, f := range labInventory.Judge(answer(t, id)).Findings {
			if f.Reason == ProbeFailed {
				t.Errorf("%s: %+v", id, f)
			}
			if f.Cause == LockedWorktree && (len(f.Cure) != 1 || !strings.HasPrefix(f.Cure[0].Run, "git -C '/") || !strings.Contains(f.Cure[0].Run, "' worktree unlock '/srv/lab/tasks/task-7'")) {
				t.Errorf("%+v", f.Cure)
			}
		}
	}
	lines := append(linesOf(answer(t, "clean-pushed")), "hidden 7 0 0 0 0", "hidden 8 0 0 0 0")
	n := 0
	for _, f := range labInventory.Judge(sealed(lines)).Findings {
		n += strings.Count(f.Detail, "of nothing that was found")
	}
	if n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestOnlyWhatGitSaysIsCutAtItsFirstLine(t *testing.T) {
	r := &reading{samples: map[string][]string{"- said": {"fatal: no\nadvice"}, "- untracked": {"a\nb"}}}
	r.samples["- ignored"] = []string{"a", "b", "c", "d"}
	if got := r.shown("ignored"); got != ` ("a", "b", "c")` {
		t.Errorf("%s", got)
	}
	if got := r.shown("said") + r.shown("untracked"); got != ` ("fatal: no") ("a\nb")` {
		t.Errorf("%s", got)
	}
}

func TestABuildTreeSaysWhereItsSourcesAre(t *testing.T) {
	for _, c := range []struct {
		row    string
		beside []string
		why    string
	}{
		{"cmake", []string{"home"}, "fit"}, {"cmake", []string{"CMakeLists.txt"}, "fit"}, {"cmake", nil, "alone"},
		{"cmake", []string{"astray", "CMakeLists.txt"}, "astray"}, {"node_modules", []string{"home"}, "alone"}, {"node_modules", []string{"package.json"}, "fit"},
	} {
		h := heap{row: c.row, why: "fit"}
		if h.weigh(0, 0, "tracked", c.beside); h.why != c.why {
			t.Errorf("%s beside %v: %s, want %s", c.row, c.beside, h.why, c.why)
		}
	}
}

func TestATargetsOutcomeSaysWhichCheckoutDecided(t *testing.T) {
	target := Target{Host: "h", TaskDir: "/srv/k/tasks/a"}
	s := parse(t, `{"ssh_task_dirs":[{"host":"h","task_dir":"/srv/k/tasks/a","reclaim":{"profiles":["p"]}},{"host":"h","task_dir":"/srv/k/tasks/b","reclaim":{"profiles":["q"]}}]}`)
	if diff := cmp.Diff([]string{"p"}, s.Profiles(target)); diff != "" {
		t.Error(diff)
	}
	for checkout, want := range map[string]string{"": "is dirty", ".": "is dirty", "lib": "lib: is dirty", "dirty": "is dirty"} {
		again, err := s.WithOutcome(target, Skipped{Finding: Finding{Reason: DirtyWorktree, Checkout: checkout, Detail: "is dirty"}})
		if err != nil || again.Targets()[0].Detail != want {
			t.Errorf("%q: %q %v", checkout, again.Targets()[0].Detail, err)
		}
	}
	cure := []Remedy{{What: "w"}}
	if got := (JobTarget{Cure: cure}).Result("t", "j", 1).Cure; cmp.Diff(cure, got) != "" {
		t.Errorf("%v", got)
	}
	if got := (JobTarget{}).Result("t", "j", 1).Cure; got == nil || len(got) != 0 {
		t.Errorf("%#v", got)
	}
	if got := clipped(strings.Repeat("\x80", 100), 50); got != " [...]" {
		t.Errorf("%q", got)
	}
}

func TestNoControlCharacterReachesGit(t *testing.T) {
	for word, ok := range map[string]bool{"https://h/a": true, "https://h/a\x7f": false, "https://h/a\x1f": false, "https://h/\u0080": true, "/srv/a b": true, "-u": false} {
		err := Prepare{Root: "/r", Segment: "task-1", SessionID: "s-1", Repositories: []Repository{{URL: word}}}.Check()
		if (err == nil) != ok {
			t.Errorf("%q: %v", word, err)
		}
	}
	if got := bareKey("a:z{9/0`"); got != "az90" {
		t.Errorf("%q", got)
	}
}

func TestACheckoutIsKeptForTheGravestOfItsFindings(t *testing.T) {
	several := 0
	for _, s := range scenarios(t) {
		e := labInventory.Judge(answer(t, s.ID))
		for _, c := range e.Checkouts {
			var worst Finding
			reasons := map[Reason]bool{}
			for _, f := range e.Findings {
				if f.Checkout != c.Path {
					continue
				}
				if reasons[f.Reason] = true; worst.Reason == "" || f.Reason.rank() < worst.Reason.rank() {
					worst = f
				}
			}
			if len(reasons) > 1 {
				several++
			}
			if c.Verdict != "kept" && (reasons[DirtyWorktree] || reasons[StashPresent] || reasons[UnpushedCommits]) {
				t.Errorf("%s: %s is %s, and has %v", s.ID, c.Path, c.Verdict, reasons)
			}
			if c.Verdict == "kept" && worst.Reason != "" && c.Reason != worst.Reason {
				t.Errorf("%s: %s is kept for %s, and has %v", s.ID, c.Path, c.Reason, reasons)
			}
		}
	}
	if several == 0 {
		t.Error("no checkout has two reasons")
	}
}

func TestATreeThatCountsAsWorkNamesWhatSpeaksAgainstIt(t *testing.T) {
	e := heapInventory("node").Judge(answer(t, "heap-node-env"))
	if e.Safe() || !strings.Contains(e.Findings[0].Detail, `left-pad/.env.local")`) {
		t.Errorf("%+v", e.Findings)
	}
}

func TestAsManyTasksAreToldAsFit(t *testing.T) {
	s, o := ownedOutright()
	for i := range maxTold {
		o.Claims = append(o.Claims, Claim{TaskID: "t-" + itoa(i+10), TaskDir: "/x", Unreadable: true})
	}
	skipped := JudgeOwnership(s, o).(Done).Outcome.(Skipped)
	if len(skipped.Others)+1 != maxTold || strings.Contains(skipped.Others[maxTold-2].Detail, "further") {
		t.Errorf("%+v", skipped.Others)
	}
}

func TestAnAnswerWithoutItsSumIsNone(t *testing.T) {
	lines := linesOf(answer(t, "clean-pushed"))
	wrong := sealed(lines)
	wrong.Body = strings.Replace(wrong.Body, "\nsum ", "\nsum 1", 1)
	if labInventory.Judge(wrong).Safe() {
		t.Error("safe with a wrong sum")
	}
	bare := Said{Body: strings.Join(lines, "\n") + "\nend " + itoa(len(lines)-1) + "\n"}
	if _, err := parseRecords("inventory", bare.Body); err != nil {
		t.Fatal(err)
	}
	if !labInventory.Judge(sealed(lines)).Safe() || labInventory.Judge(bare).Safe() {
		t.Error("safe without a sum, or not with it")
	}
}

func TestAManifestIsUsableOnlyWhole(t *testing.T) {
	whole := Manifest{Device: "1", Inode: "2", Digest: strings.Repeat("a", 40), Count: 1}
	for n, spoil := range []func(*Manifest){func(m *Manifest) { m.Device = "" }, func(m *Manifest) { m.Inode = "x" }, func(m *Manifest) { m.Digest = "none" }, func(m *Manifest) { m.Count = 0 }} {
		m := whole
		if spoil(&m); m.usable() || !whole.usable() {
			t.Errorf("%d: %+v", n, m)
		}
	}
}

func TestTheFirstRulingIsAskedWithWhatStorageSaid(t *testing.T) {
	s := lab()
	first := Next(s, nil).(Ask)
	o := good(first.Query, Said{}, NoHolder).(Ownership)
	step := Next(s, Transcript{{Query: first.Query, Answer: o}})
	asked, is := step.(Ask)
	rule, isRule := asked.Query.(Rule)
	if isRule && rule.Facts.Job.Begun {
		t.Error("begun")
	}
	if !is || !isRule || rule.Facts.Ownership == nil || cmp.Diff(o, *rule.Facts.Ownership) != "" {
		t.Errorf("%+v", step)
	}
}

func TestALaunchWithoutAProfileSaysSoInEveryKeyOfIts(t *testing.T) {
	got := project(t, Projected{TaskID: "t", Task: []byte(`{"cleanup_script":"rm","executor_profile_id":"mine"}`), ExecutorID: "e", Executor: []byte(projectedExecutor)})
	for _, key := range append([]string{"cleanup_script", "executor_profile_id"}, authoritativeKeys[1:]...) {
		if value, there := got[key]; !there || value != "" {
			t.Errorf("%s: %v", key, value)
		}
	}
}

func TestWhatARowSaysInAnyOfItsFormsIsRead(t *testing.T) {
	if got := (Claim{TaskDir: "/a"}).place(); got != `"/a" on "an unnamed host"` {
		t.Error(got)
	}
	for _, word := range []string{"false", "null"} {
		if got := parse(t, `{"ssh_task_dirs":[{"host":"h","task_dir":"/srv/k/tasks/a","enabled":`+word+`}]}`).Targets()[0]; got.Invalid != "" || got.Target.Enabled {
			t.Errorf("%+v", got)
		}
	}
	if got := parse(t, "{\"ssh_task_dirs\":\r\n\t[\r{\"host\"\r:\r\"h\",\"task_dir\":\"/srv/k/tasks/a\"\r}\r]\r}\r"); len(got.Targets()) != 1 || got.Targets()[0].Invalid != "" {
		t.Errorf("%+v", got.Targets())
	}
	if got := parse(t, ` null `); string(got.Bytes()) != " null " {
		t.Errorf("%q", got.Bytes())
	}
	both := parse(t, `{"ssh_task_dirs":[{"host":"h","task_dir":"/srv/k/tasks/a","reclaim":{"profiles":["q","p"]}}]}`)
	if diff := cmp.Diff([]string{"p", "q"}, both.Profiles(both.Targets()[0].Target)); diff != "" {
		t.Error(diff)
	}
	for raw, want := range map[string]int{"1": 1, "65535": 65535, "65536": 0, "0": 0, `"22"`: 22, `"x"`: 0, "1.5": 0} {
		if got := portOrNone([]byte(raw)); got != want {
			t.Errorf("%s: %d", raw, got)
		}
	}
	for path, same := range map[string]bool{"/home/dev/.kandev/tasks/other": false, "/home/dev/.kandev": true} {
		if got := sameTree(path, "/home/dev/.kandev/tasks/fix-login"); got != same {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestACommitThatHeadLeftIsNamedInItsCure(t *testing.T) {
	for _, f := range labInventory.Judge(answer(t, "left-by-update-ref")).Findings {
		if f.Cause == Abandoned {
			if len(f.Cure) != 1 || !regexp.MustCompile(`branch rescued '[0-9a-f]{40}'$`).MatchString(f.Cure[0].Run) {
				t.Errorf("%+v", f.Cure)
			}
			return
		}
	}
	t.Error("nothing was left")
}

func TestWhatStandsInOurObjectIsReadAndTakenAway(t *testing.T) {
	target := Target{Host: "h", TaskDir: "/srv/k/tasks/a"}
	row := func(rest string) JobSnapshot {
		return parse(t, `{"ssh_task_dirs":[{"host":"h","task_dir":"/srv/k/tasks/a"`+rest+`}]}`)
	}
	if s := row(`,"port":0,"reclaim":{"begun":1` + "\t" + `,"begun_until":9` + "\r" + `}`); !s.Removing() || s.Targets()[0].BegunUntil != 9 || s.Targets()[0].Invalid != "" {
		t.Errorf("%+v", s.Targets())
	}
	again, err := row(`,"reclaim":{"uncounted":3}`).Again()
	if err != nil || string(again.Bytes()) != string(row("").Bytes()) {
		t.Errorf("%s %v", again.Bytes(), err)
	}
	two := parse(t, `{"ssh_task_dirs":[{"host":"h","task_dir":"/srv/k/tasks/a","outcome":"removed"},{"host":"h","task_dir":"/srv/k/tasks/a","outcome":"failed","reclaim":{"fault":"lost","final":true}}]}`)
	if got := two.Targets()[0]; got.Outcome != OutcomeFailed || !got.Final || !got.Result("t", "j", 1).Final || (JobTarget{Target: target}).Result("t", "j", 1).Final {
		t.Errorf("%+v", got)
	}
	if got := bareKey("AZ"); got != "az" {
		t.Errorf("%q", got)
	}
	e := heapInventory("node").Judge(answer(t, "heap-node-npm"))
	for _, line := range linesOf(answer(t, "heap-node-npm")) {
		if w := strings.Split(line, " "); w[0] == "heap" && (len(e.Excused) != 1 || itoa(int(e.Excused[0].Entries)) != w[4] || itoa(int(e.Excused[0].Bytes)) != w[5]) {
			t.Errorf("%s: %+v", line, e.Excused)
		}
	}
}

func TestAfterABeginTheKindsAreNarrowedTooBeforeTheInventory(t *testing.T) {
	s := lab()
	s.Begun, s.Target.Disposable = true, "node"
	var transcript Transcript
	for range 10 {
		ask, is := Next(s, transcript).(Ask)
		if !is {
			t.Fatalf("%+v", Next(s, transcript))
		}
		if q, is := ask.Query.(Inventory); is {
			if q.Disposable != "" {
				t.Errorf("asked about %q, which the profile no longer lets go", q.Disposable)
			}
			return
		}
		transcript = append(transcript, Exchange{ask.Query, good(ask.Query, Said{}, NoHolder)})
	}
	t.Error("no inventory")
}

func TestAConclusionSaysWhatTheNextStepSays(t *testing.T) {
	s := lab()
	ask := func(transcript Transcript) Query { return Next(s, transcript).(Ask).Query }
	for _, fault := range []Fault{HostKeyMismatch, Unreachable} {
		transcript := Transcript{{ask(nil), mine()}}
		transcript = append(transcript, Exchange{ask(transcript), allowed()})
		transcript = append(transcript, Exchange{ask(transcript), Heard{Reply: NeverRan{Fault: fault, Detail: "d"}}})
		failed, is := Next(s, transcript).(Done).Outcome.(Failed)
		if got := Conclude(s, transcript); !is || got.Outcome != OutcomeFailed || got.Fault != fault || got.Final != failed.Final {
			t.Errorf("%+v, %+v", failed, got)
		}
	}
	other := Transcript{{Greet{Root: "/elsewhere"}, mine()}}
	diverged, is := Next(s, other).(Done)
	if !is {
		t.Fatalf("%+v", Next(s, other))
	}
	if skipped, is := diverged.Outcome.(Skipped); !is || Conclude(s, other).Detail != skipped.Detail || Conclude(s, other).Cause != skipped.Cause {
		t.Errorf("%+v, %+v", diverged, Conclude(s, other))
	}
}
