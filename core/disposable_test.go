package core

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// heapScenarios are the states that hold what looks like build output, as they
// are judged where a profile lets kinds of it go.
func heapScenarios(t *testing.T) []scenario {
	t.Helper()
	_, all := allScenarios(t)
	for i, s := range all {
		all[i].kinds, all[i].Expect, all[i].Reason, all[i].Cause = s.Disposable.Kinds, s.Disposable.Expect, s.Disposable.Reason, ""
	}
	if len(all) < 70 {
		t.Fatalf("only %d scenarios of build output", len(all))
	}
	return all
}

// judgedAs says what is wrong with the evidence of a scenario of build output.
func (s scenario) judgedAs(e Evidence) string {
	if wrong := s.verdict(e); wrong != "" {
		return wrong
	}
	var kinds, details []string
	for _, excused := range e.Excused {
		kinds = append(kinds, excused.Kind)
		if excused.Bytes <= 0 || excused.Entries <= 0 || excused.Trees <= 0 || excused.Bytes > e.Bytes+1 || excused.Entries > e.Entries {
			return "an excuse without a size, or larger than all: " + ExcusedText(e.Excused)
		}
	}
	if got := strings.Join(kinds, ","); s.Expect == "safe" && got != s.Disposable.Excused {
		return "excused " + got + ", want " + s.Disposable.Excused
	}
	for _, f := range e.Findings {
		details = append(details, f.Detail)
	}
	if !strings.Contains(strings.Join(details, "\n"), s.Disposable.Says) {
		return "it does not say " + s.Disposable.Says + ": " + strings.Join(details, "\n")
	}
	return ""
}

// In the short form shells and sets of tools take turns, in the long one each
// meets every state. Now and then the setting is not there.
func TestBuildOutputGoesOnlyWhereItIsProvedToBeThat(t *testing.T) {
	boxes, seeds := toolboxes(t), seeds(t)
	for n, s := range heapScenarios(t) {
		s.seeds = seeds
		t.Run(s.ID, func(t *testing.T) {
			t.Parallel()
			root := openTemp(t, quickTemp())
			s.build(t, root)
			before := metadata(root + "/tasks/task-7")
			ways := s.ways(n)
			if !long && !*update && n%3 == 0 {
				ways = append(ways, way{[]string{"/bin/sh"}, foreignTools[n/3%len(foreignTools)]})
			}
			for _, w := range ways {
				q, said := s.ask(t, root, boxes[w.tools]+hostPath, w.shell...)
				if wrong := s.judgedAs(q.Judge(said)); wrong != "" {
					t.Errorf("%v with %s: %s\n%s", w.shell, w.tools, wrong, said.Body)
				}
				if *update {
					keepAnswer(t, s, root, said.Body)
				}
			}
			if long || n%8 == 0 {
				strict := s
				strict.kinds, strict.Expect, strict.Reason = "", "skip", DirtyWorktree
				q, said := strict.ask(t, root, hostPath, "/bin/sh")
				if wrong := strict.verdict(q.Judge(said)); wrong != "" {
					t.Errorf("without the setting: %s\n%s", wrong, said.Body)
				}
			}
			if after := metadata(root + "/tasks/task-7"); after != before {
				t.Errorf("the probe wrote: %s", onlyIn(after, before))
			}
		})
	}
}

func heapInventory(kinds string) Inventory {
	q := labInventory
	q.Disposable = kinds
	return q
}

func TestEveryRecordedAnswerAboutBuildOutputIsJudgedAsItsScenarioMustBe(t *testing.T) {
	for _, s := range heapScenarios(t) {
		t.Run(s.ID, func(t *testing.T) {
			said := answer(t, s.ID)
			if wrong := s.judgedAs(heapInventory(s.kinds).Judge(said)); wrong != "" {
				t.Error(wrong)
			}
			if e := labInventory.Judge(said); e.Safe() || e.Complete {
				t.Error("an answer about build output is taken where nobody asked about it")
			}
		})
	}
}

// The script, the question and the answers of a profile without the setting know
// nothing of it.
func TestWithoutTheSettingNothingIsAskedAboutBuildOutput(t *testing.T) {
	q := labInventory
	if got, want := q.Script().Body, "root='/srv/lab' segment='task-7' baseline=''\n"+preludeShell+manifestShell+shell(inventorySource); got != want {
		t.Error("the script is another one")
	}
	q.Disposable = "Node,nodes,,node ,all"
	if q.Script().Body != labInventory.Script().Body {
		t.Error("words that are no kinds change the script")
	}
	for _, word := range []string{"heap", "disposable", "node_modules"} {
		if strings.Contains(labInventory.Script().Body, word) {
			t.Errorf("the script speaks of %q", word)
		}
	}
	if raw, _ := json.Marshal(labInventory); string(raw) != `{"root":"/srv/lab","segment":"task-7"}` {
		t.Errorf("the question is %s", raw)
	}
	if raw, _ := json.Marshal(Target{Host: "h", WorkdirRoot: "/r", TaskDir: "/r/tasks/x"}); strings.Contains(string(raw), "isposable") {
		t.Errorf("the target is %s", raw)
	}
	for _, s := range scenarios(t) {
		if e := labInventory.Judge(answer(t, s.ID)); len(e.Excused) != 0 {
			t.Errorf("%s excuses %s", s.ID, ExcusedText(e.Excused))
		}
	}
}

func everyKind() string {
	var words []string
	for _, kind := range DisposableKinds() {
		words = append(words, kind.Word)
	}
	return strings.Join(words, ",")
}

func TestTheInventoryWithEveryKindIsPOSIXShellAndFitsOneRequest(t *testing.T) {
	for _, kinds := range append(strings.Split(everyKind(), ","), everyKind()) {
		q := Inventory{Root: "/srv/it's", Segment: "a b", Disposable: kinds}
		body := q.Script().Body
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(body), "inventory"); err != nil {
			t.Error(err)
		}
		if again := q.Script().Body; again != body {
			t.Error("it is rendered differently each time")
		}
		if strings.Contains(body, "# table") || strings.Contains(body, "# disposable") {
			t.Error("a part found no place")
		}
		if len(body) > 87_000 {
			t.Errorf("%s: %d bytes", kinds, len(body))
		}
	}
	parts := disposableParts(everyKind())
	whole := filepath.Join(t.TempDir(), "whole.sh")
	if err := os.WriteFile(whole, []byte(preludeSource+manifestSource+"root=/r segment=s baseline=b\n"+baselineSource+woven(inventorySource, parts)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("shellcheck", "-s", "sh", whole).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for part := range parts {
		if !strings.Contains(inventorySource, "# disposable: "+part+"\n") {
			t.Errorf("the part %q has no place in inventory.sh", part)
		}
	}
}

func TestEveryRowOfBuildOutputHasItsEvidenceAndItsScenario(t *testing.T) {
	known := strings.Split(everyKind(), ",")
	seen := map[string]bool{}
	for _, s := range heapScenarios(t) {
		for _, line := range linesOf(answer(t, s.ID)) {
			if words := strings.Split(line, " "); words[0] == "heap" && words[3] == "fit" {
				seen[words[2]] = true
			}
		}
	}
	names := map[string]bool{}
	for _, row := range heapRows() {
		if row.name == "" || names[row.name] || row.title == "" || row.test == "" || row.rebuild == "" || (row.dirs == "") == (row.holds == "") || (row.marker == "") == (row.every == "") {
			t.Errorf("the row %q says too little, or what another says", row.name)
		}
		names[row.name] = true
		for _, kind := range row.kinds {
			if !slices.Contains(known, kind) {
				t.Errorf("the row %q is of the kind %q, which is none", row.name, kind)
			}
		}
		if !seen[row.name] {
			t.Errorf("no scenario shows the row %q", row.name)
		}
	}
}

// What git does not call ignored needs no excuse, and gets none.
func TestATreeThatHoldsNothingIgnoredIsNotExcused(t *testing.T) {
	for _, why := range []string{"fit", "newer"} {
		lines := linesOf(answer(t, "heap-node-npm"))
		for i, line := range lines {
			switch w := strings.Split(line, " "); w[0] {
			case "heap":
				w[3] = why
				lines[i] = strings.Join(w, " ")
			case "held":
				w[3] = "0"
				lines[i] = strings.Join(w, " ")
			case "holding":
				lines[i] = "holding 1 1 0"
			}
		}
		if e := heapInventory("node").Judge(sealed(lines)); !e.Safe() || len(e.Excused) != 0 {
			t.Errorf("%s: %+v", why, e)
		}
	}
}

// Whatever is missing, doubled or of other words, the directory stays.
func TestALyingAnswerAboutBuildOutputIsNotSafe(t *testing.T) {
	lies := map[string]map[int][]string{
		"heap":    {1: {"0", "9", "x"}, 2: {"none", "moon", "cargo"}, 3: {"newer", "secret", "moon"}, 4: {"x"}, 6: {"bare"}},
		"held":    {1: {"2", "x"}, 2: {"0", "9"}, 3: {"99", "x"}, 4: {"1"}, 5: {"1"}, 6: {"none", "elsewhere", "moon"}, 7: {"Cargo.toml"}},
		"heaps":   {1: {"0", "2", "x"}},
		"holding": {2: {"0", "2"}, 3: {"0", "99"}},
	}
	q := heapInventory("node")
	said := answer(t, "heap-node-npm")
	lines := linesOf(said)
	if !q.Judge(sealed(lines)).Safe() {
		t.Fatal("the answer itself is not safe")
	}
	met := 0
	for i, line := range lines {
		words := strings.Split(line, " ")
		places, ours := lies[words[0]]
		if !ours {
			continue
		}
		met++
		if q.Judge(sealed(slices.Delete(slices.Clone(lines), i, i+1))).Safe() {
			t.Errorf("safe without %q", line)
		}
		if q.Judge(sealed(slices.Insert(slices.Clone(lines), i, line))).Safe() {
			t.Errorf("safe with %q twice", line)
		}
		for place, others := range places {
			for _, other := range others {
				lie := slices.Clone(words)
				lie[place] = other
				changed := slices.Clone(lines)
				changed[i] = strings.Join(lie, " ")
				if e := q.Judge(sealed(changed)); e.Safe() {
					t.Errorf("safe with %q for %q", changed[i], line)
				}
			}
		}
	}
	if met != 4 {
		t.Errorf("only %d records about build output", met)
	}
	for _, kinds := range []string{"", "rust", "rust,python"} {
		if heapInventory(kinds).Judge(said).Safe() {
			t.Errorf("what was asked of node is safe where the setting is %q", kinds)
		}
	}
}

func TestTheSettingIsRefusedWhereItIsWrittenAndAbsentWhereItIsRead(t *testing.T) {
	for setting, want := range map[string]string{"": "", " ": "", "node": "node", "rust, node": "node,rust", "node,node": "node", "nodes": "!", "node,": "!", "Node": "!", "node;rust": "!", "all": "!", "*": "!",
		everyKind(): everyKind()} {
		got, err := WriteDisposable(setting)
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("written %q: %q, want %q", setting, got, want)
		}
	}
	for setting, want := range map[string]string{"": "", "node": "node", "rust,node": "node,rust", "node,moon": "node", "NODE": "", "node ": "", "rust, node": "rust", "all": "", "*": ""} {
		if got := ReadDisposable(setting); got != want {
			t.Errorf("read %q: %q, want %q", setting, got, want)
		}
	}
	for config, want := range map[string]string{`{"ssh_reclaim_disposable":"node"}`: "node", `{"ssh_reclaim_disposable":["node"]}`: "", `{"ssh_reclaim_disposable":"node","SSH_reclaim_disposable":"rust"}`: "",
		`{"ssh_reclaim_disposable":"node","ssh_reclaim_disposable":"node"}`: "", `{}`: "", ``: "", `{`: ""} {
		if got := DisposableIn([]byte(config)); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
	got, err := WithDisposable([]byte(`{ "x" : 1e2 }`), "web, node")
	if err != nil || string(got) != `{ "x" : 1e2,"ssh_reclaim_disposable":"node,web" }` {
		t.Errorf("%s %v", got, err)
	}
	if _, err := WithDisposable([]byte(`{}`), "moon"); err == nil {
		t.Error("a word that is no kind was written")
	}
}

// The profile alone says it, it is frozen with the launch, and of several
// launches into one directory only what all allow is left.
func TestTheSettingIsTheProfilesAloneAndOnlyShrinks(t *testing.T) {
	project := func(task, profile string) string {
		t.Helper()
		p := Projected{TaskID: "t-1", Task: []byte(task), Executor: []byte(`{}`)}
		if profile != "" {
			p.Profile = &Profile{ID: "p-1", Config: []byte(profile)}
		}
		raw, err := Project(p)
		if err != nil {
			t.Fatal(err)
		}
		launch, err := ParseLaunch(raw)
		if err != nil {
			t.Fatal(err)
		}
		return launch.Target.Disposable
	}
	const tasks = `{"ssh_reclaim_disposable":"node,rust","SSH-Reclaim-Disposable":"go"}`
	for profile, want := range map[string]string{`{"ssh_reclaim_disposable":"rust,web,moon"}`: "rust,web", `{}`: "", "": "", `{"ssh_reclaim_disposable":""}`: "", `{`: ""} {
		if got := project(tasks, profile); got != want {
			t.Errorf("the profile %q under a task that says more: %q, want %q", profile, got, want)
		}
	}
	launch := func(kinds string) Launch {
		target := fit().Target
		target.Disposable = kinds
		return Launch{SessionID: "s" + kinds, Target: target}
	}
	for _, c := range []struct {
		kinds []string
		want  string
	}{{[]string{"node,rust"}, "node,rust"}, {[]string{"node,rust", "rust,web"}, "rust"}, {[]string{"node", ""}, ""}, {[]string{"", "node"}, ""}} {
		var launches []Launch
		for _, kinds := range c.kinds {
			launches = append(launches, launch(kinds))
		}
		raw, err := Capture(Captured{Launches: launches})
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := ParseJobSnapshot(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := snapshot.Targets()[0].Target.Disposable; got != c.want {
			t.Errorf("%q: %q, want %q", c.kinds, got, c.want)
		}
		if n := strings.Count(string(raw), `"disposable"`); n > 1 {
			t.Errorf("%q: %d times in %s", c.kinds, n, raw) // ours in our object, and nowhere in the host's
		}
		if strings.Contains(string(raw), `"disposable"`) != (c.want != "") || strings.Contains(string(raw), `"reclaim"`) != (c.want != "") {
			t.Errorf("%q: %s", c.kinds, raw)
		}
	}
	plain, err := ParseJobSnapshot([]byte(`{"ssh_task_dirs":[{"host":"h","task_dir":"/r/tasks/x","disposable":"node"},{"host":"h","task_dir":"/r/tasks/y","reclaim":{"disposable":"moon,node"}},{"host":"h","task_dir":"/r/tasks/z","reclaim":{"disposable":1}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "node", ""} {
		if got := plain.Targets()[i]; got.Target.Disposable != want || (i == 2) != (got.Invalid != "") {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// What is taken out of the profile's setting after the launch goes no more, and
// what is put in was not meant for this directory.
func TestTheSettingIsNeverWiderThanAtLaunchAndNarrowedByThePresent(t *testing.T) {
	s := lab()
	s.Target.Disposable = "node"
	now := func(kinds string) Ownership { o := mine(); o.Disposable = kinds; return o }
	asked := func(first Ownership) string {
		t.Helper()
		step, _ := upTo(t, s, first, allowed(), greets("directory", "none"))
		q, ok := step.(Ask)
		if !ok {
			t.Fatalf("%#v", step)
		}
		return q.Query.(Inventory).Disposable
	}
	unknown := mine()
	unknown.OptInNow = Unknown
	for want, first := range map[string][]Ownership{"node": {now("node"), now("node,rust"), unknown}, "": {now(""), now("rust")}} {
		for _, o := range first {
			if got := asked(o); got != want {
				t.Errorf("with %+v the inventory is asked about %q, want %q", o, got, want)
			}
		}
	}
	proved := Heard{Reply: answer(t, "heap-node-npm")}
	step, transcript := upTo(t, s, now("node"), allowed(), greets("directory", "none"), proved, now("node"))
	rule, ok := step.(Ask)
	if !ok {
		t.Fatalf("%#v", step)
	}
	if got := rule.Query.(Rule).Facts.Excused; got == nil || got.Bytes <= 0 || got.Entries <= 0 || len(got.Kinds) != 1 || got.Kinds[0].Kind != "node" {
		t.Errorf("the policy is told %+v", got)
	}
	roundTrips(t, s, transcript)
	if got := NewRecord(s, transcript).Result; len(got.Excused) != 1 {
		t.Errorf("the record tells %+v", got)
	}
	step, transcript = upTo(t, s, now("node"), allowed(), greets("directory", "none"), proved, now(""))
	if got := word(step); got != "skipped dirty_worktree ignored" {
		t.Errorf("taken back while it was judged: %s", got)
	}
	roundTrips(t, s, transcript)
	step, transcript = upTo(t, s, now("node"), allowed(), greets("directory", "none"), proved, now("node"), allowed())
	if got := word(step); got != "ask begin" {
		t.Errorf("allowed: %s", got)
	}
	if r := NewRecord(s, transcript).Result; r.Outcome != OutcomeReclaimable || !strings.Contains(r.Detail, "node: ") {
		t.Errorf("%+v", r)
	}
	step, transcript = upTo(t, s, now("node"), allowed(), greets("directory", "none"), proved, now("node"), allowed(), Begun{Ending: BeginRecorded})
	q := step.(Ask).Query.(Remove)
	transcript = append(transcript, Exchange{q, good(q, Said{}, NoHolder)})
	if r := NewRecord(s, transcript).Result; r.Outcome != OutcomeRemoved || !strings.Contains(r.Detail, "12 entries removed; build output went with it: node: ") {
		t.Errorf("%+v", r)
	}
}

// A tree that was excused is compared like everything else before it goes.
func TestAC_D15_BuildOutputThatChangesAfterItWasExcusedIsPutBack(t *testing.T) {
	for what, change := range map[string]string{"": "removed", `echo mine >>"$AT/node_modules/a/index.js"`: "skipped probe_failed changed", `echo mine >"$AT/node_modules/a/.env"`: "skipped probe_failed changed"} {
		t.Run("after "+what, func(t *testing.T) {
			p := newPlot(t)
			p.clear()
			p.give(1000)
			p.env = []string{"GIT_CONFIG_NOSYSTEM=1", "TOP=" + p.top(), "AT=" + p.at()}
			p.run(Script{Name: "build", Body: `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
				git init -q --bare -b main "$TOP/remote.git"; git init -q -b main "$TOP/seed"; cd "$TOP/seed"; echo node_modules/ >.gitignore; echo '{}' >package.json; git add .; git commit -qm 1
				git push -q "$TOP/remote.git" main; git clone -q --no-hardlinks "$TOP/remote.git" "$AT"; mkdir -p "$AT/node_modules/a"; cd "$AT/node_modules"
				echo '{}' >a/package.json; echo 1 >a/index.js; echo '{}' >.package-lock.json`})
			q := Inventory{Root: p.root, Segment: p.segment, Disposable: "node"}
			evidence := q.Judge(p.run(q.Script()))
			if !evidence.Safe() || len(evidence.Excused) != 1 {
				t.Fatalf("%+v", evidence)
			}
			p.run(Script{Name: "change", Body: ":; " + what})
			out := p.remove(Remove{Root: p.root, Segment: p.segment, Manifest: evidence.Manifest, JobID: "j", Attempt: 1, NotAfter: time.Now().Unix() + 60})
			if got := verdict(out); got != change {
				t.Errorf("%s: %+v", got, out)
			}
			if there(p.at()) != (change != "removed") {
				t.Error("the directory is not where it should be")
			}
		})
	}
}
