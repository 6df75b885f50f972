package core

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// go test ./core -run EveryScenario -update records every scenario's answer anew.
var update = flag.Bool("update", false, "record the scenarios' answers in fixtures/transcripts")

// recorded is one scenario's answer as a host gave it, with the paths of the
// recording replaced.
type recorded struct {
	Scenario string   `json:"scenario"`
	Git      string   `json:"git"`
	Record   string   `json:"record"` // how to record it anew
	Body     []string `json:"body"`
}

func transcriptFile(id string) string { return "../fixtures/transcripts/" + id + ".json" }

// keepAnswer writes the answer down. Roots have plain names, so that a path in
// it stands bare or, beside odd bytes, in hexadecimal.
func keepAnswer(t *testing.T, s scenario, root, body string) {
	t.Helper()
	for _, form := range [][2]string{{root, "/srv/lab"}, {hexOf(root), hexOf("/srv/lab")}} {
		body = strings.ReplaceAll(body, form[0], form[1])
	}
	body = sealed(linesOf(Said{Body: body})).Body // a path of another length has another sum
	version, err := exec.Command("git", "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	record := "go test ./core -run EveryScenario -update"
	if s.Disposable != nil {
		record = "go test ./core -run BuildOutputGoes -update"
	}
	raw, err := json.MarshalIndent(recorded{s.ID, strings.TrimSpace(string(version)), record, strings.Split(body, "\n")}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(transcriptFile(s.ID)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(transcriptFile(s.ID), append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func hexOf(s string) string {
	const digit = "0123456789abcdef"
	var out []byte
	for i := 0; i < len(s); i++ {
		out = append(out, digit[s[i]>>4], digit[s[i]&15])
	}
	return string(out)
}

var labInventory = Inventory{Root: "/srv/lab", Segment: "task-7"}

func answer(t testing.TB, id string) Said {
	t.Helper()
	raw, err := os.ReadFile(transcriptFile(id))
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return Said{Body: strings.Join(r.Body, "\n")}
}

func TestEveryRecordedAnswerIsJudgedAsItsScenarioMustBe(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.ID, func(t *testing.T) {
			e := labInventory.Judge(answer(t, s.ID))
			if wrong := s.verdict(e); wrong != "" {
				t.Error(wrong)
			}
			if !e.Complete && e.Findings[0].Reason != ProbeFailed {
				t.Errorf("an incomplete answer gives %v", e.Findings[0])
			}
			for _, c := range e.Checkouts {
				if (c.Verdict == "safe") != (c.Reason == "") {
					t.Errorf("checkout %+v", c)
				}
			}
		})
	}
}

func safeAnswers(t testing.TB) map[string]Said {
	t.Helper()
	files, _ := filepath.Glob("../fixtures/transcripts/*.json")
	safe := map[string]Said{}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		if said := answer(t, id); labInventory.Judge(said).Safe() {
			safe[id] = said
		}
	}
	if len(safe) < 40 {
		t.Fatalf("only %d safe answers recorded", len(safe))
	}
	return safe
}

func TestAC_002_5_ASafeAnswerCutAnywhereIsNotSafe(t *testing.T) {
	for id, said := range safeAnswers(t) {
		for cut := range said.Body {
			if e := labInventory.Judge(Said{Body: said.Body[:cut]}); e.Safe() || len(e.Findings) == 0 {
				t.Fatalf("%s cut at byte %d is safe", id, cut)
			}
		}
		for exit := 1; exit < 256; exit++ {
			if e := labInventory.Judge(Said{Body: said.Body, Exit: exit}); e.Safe() {
				t.Fatalf("%s with exit status %d is safe", id, exit)
			}
		}
	}
}

// Whatever happens to a safe answer, it stays safe only where it still says
// exactly the same.
func TestAC_002_5_ADamagedSafeAnswerIsNeverSafeUnlessItSaysTheSame(t *testing.T) {
	safe := safeAnswers(t)
	var ids []string
	for id := range safe {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	rapid.Check(t, func(t *rapid.T) {
		said := safe[rapid.SampledFrom(ids).Draw(t, "scenario")]
		want := labInventory.Judge(said)
		lines := strings.Split(strings.TrimSuffix(said.Body, "\n"), "\n")
		inner := lines[1 : len(lines)-1]
		at := rapid.IntRange(0, len(inner)-1).Draw(t, "line")
		other := rapid.IntRange(0, len(inner)-1).Draw(t, "other")
		out := slices.Clone(inner)
		switch rapid.SampledFrom([]string{"drop", "repeat", "swap", "number", "byte", "kind", "foreign"}).Draw(t, "damage") {
		case "drop":
			out = slices.Delete(out, at, at+1)
		case "repeat":
			out = slices.Insert(out, other, out[at])
		case "swap":
			out[at], out[other] = out[other], out[at]
		case "number":
			words := strings.Split(out[at], " ")
			w := rapid.IntRange(0, len(words)-1).Draw(t, "word")
			if _, err := strconv.Atoi(words[w]); err == nil {
				words[w] = strconv.Itoa(rapid.IntRange(0, 300).Draw(t, "new"))
			}
			out[at] = strings.Join(words, " ")
		case "byte":
			i := rapid.IntRange(0, len(out[at])-1).Draw(t, "byte")
			out[at] = out[at][:i] + string(rune(rapid.IntRange(0, 255).Draw(t, "value"))) + out[at][i+1:]
		case "kind":
			_, rest, _ := strings.Cut(out[at], " ")
			kind, _, _ := strings.Cut(out[other], " ")
			out[at] = strings.TrimSpace(kind + " " + rest)
		case "foreign":
			foreign := safe[rapid.SampledFrom(ids).Draw(t, "foreign")]
			theirs := strings.Split(strings.TrimSuffix(foreign.Body, "\n"), "\n")
			out[at] = theirs[rapid.IntRange(1, len(theirs)-2).Draw(t, "their line")]
		}
		body := lines[0] + "\n" + strings.Join(out, "\n") + "\nend " + strconv.Itoa(len(out)) + "\n"
		got := labInventory.Judge(Said{Body: body})
		if got.Safe() && !reflect.DeepEqual(sorted(got), sorted(want)) {
			t.Fatalf("still safe, but says another thing:\n%s\n%s", body, cmp.Diff(want, got))
		}
	})
}

func sorted(e Evidence) Evidence {
	e.Checkouts = slices.Clone(e.Checkouts)
	slices.SortFunc(e.Checkouts, func(a, b Checkout) int { return strings.Compare(a.Path+a.Kind, b.Path+b.Kind) })
	e.Notes = slices.Sorted(slices.Values(e.Notes))
	return e
}

func FuzzRecordsAreReadOrRefusedAndJudgedWithoutPanic(f *testing.F) {
	for _, id := range []string{"clean-pushed", "wt-target-clean", "kandev-session-alive", "submodule-clean", "symlink-target"} {
		f.Add(answer(f, id).Body)
	}
	f.Add("reclaim 1 inventory\nend 0\n")
	f.Fuzz(func(t *testing.T, body string) {
		records, err := parseRecords("inventory", body)
		e := labInventory.Judge(Said{Body: body})
		if err != nil && (e.Safe() || e.Complete) {
			t.Fatalf("%v, but complete", err)
		}
		if !e.Safe() && len(e.Findings) == 0 {
			t.Fatal("kept without a reason")
		}
		if err == nil {
			var again strings.Builder
			again.WriteString("reclaim 1 inventory\n")
			for _, r := range records {
				again.WriteString(strings.Join(append([]string{r.kind}, r.fields...), " ") + "\n")
			}
			again.WriteString("end " + strconv.Itoa(len(records)) + "\n")
			if again.String() != body {
				t.Fatalf("read as another text:\n%q\n%q", body, again.String())
			}
		}
	})
}

func TestEveryRowOfTheTableHasItsProbeAndItsReason(t *testing.T) {
	source := inventorySource + baselineSource
	for _, row := range inventoryRows() {
		if row.probe != "" && !strings.Contains(source, "\nprobe_"+row.probe+"() {") {
			t.Errorf("the row %q has no shell function probe_%s", row.record, row.probe)
		}
		if !strings.Contains(source, "record "+row.record) && !strings.Contains(source, `"`+row.record+" %s") {
			t.Errorf("no shell prints the record %q", row.record)
		}
		if row.safe == "" || row.why == "" {
			t.Errorf("the row %q does not say what is safe and why", row.record)
		}
	}
}

// sealed is an answer of these lines with the sum that belongs to them.
func sealed(lines []string) Said {
	body := strings.Join(lines, "\n") + "\n"
	sum := strings.Join(cksum(body+"sum\nend\n"), " ")
	return Said{Body: body + "sum " + sum + "\nend " + strconv.Itoa(len(lines)) + "\n"}
}

func linesOf(said Said) []string {
	lines := strings.Split(strings.TrimSuffix(said.Body, "\n"), "\n")
	return lines[:len(lines)-2]
}

func TestSoManyRepositoriesAreJudgedAndNoMore(t *testing.T) {
	for told, many := range map[int]bool{maxRepositories: false, maxRepositories + 1: true} {
		lines := linesOf(answer(t, "clean-pushed"))
		for i, line := range lines {
			if strings.HasPrefix(line, "repositories ") {
				lines[i] = "repositories " + strconv.Itoa(told)
			}
		}
		e := labInventory.Judge(sealed(lines))
		if e.Safe() || strings.Contains(fmt.Sprint(e.Findings), "so many are not judged") != many {
			t.Errorf("%d: %+v", told, e.Findings)
		}
	}
}

func TestAC_002_5_ALyingAnswerWithARightSumIsStillNotSafe(t *testing.T) {
	judged := map[string][]int{"tree": {3, 6, 7, 8, 9, 10, 11}, "live": {1, 3, 4}, "mounts": {1}, "borrowers": {1, 2}, "worktrees": {2, 3, 4},
		"operations": {2, 3}, "settings": {3}, "files": {2, 3, 5, 6, 7, 8, 9}, "hidden": {3, 5}, "index": {2}, "remotes": {2},
		"refs": {2, 4, 7, 8, 9}, "unpushed": {2, 3}, "abandoned": {2, 3}, "manifest": {2}, "repositories": {1}}
	for id, said := range safeAnswers(t) {
		lines := linesOf(said)
		if e := labInventory.Judge(sealed(lines)); !e.Safe() {
			t.Fatalf("%s is not safe when sealed again: %v", id, e.Findings)
		}
		for i := 1; i < len(lines); i++ {
			if strings.HasPrefix(lines[i], "sample ") {
				continue
			}
			if e := labInventory.Judge(sealed(slices.Delete(slices.Clone(lines), i, i+1))); e.Safe() {
				t.Errorf("%s is safe without %q", id, lines[i])
			}
			if e := labInventory.Judge(sealed(slices.Insert(slices.Clone(lines), i, lines[i]))); e.Safe() {
				t.Errorf("%s is safe with %q twice", id, lines[i])
			}
			words := strings.Split(lines[i], " ")
			for _, w := range judged[words[0]] {
				for _, lie := range []string{"2", "128", "-1", "x", "01"} {
					if words[w] == lie {
						continue
					}
					changed := slices.Clone(words)
					changed[w] = lie
					out := slices.Clone(lines)
					out[i] = strings.Join(changed, " ")
					if e := labInventory.Judge(sealed(out)); e.Safe() {
						t.Errorf("%s is safe with %q for %q", id, out[i], lines[i])
					}
				}
			}
		}
	}
}

func TestOneThingIsNotToldAsSeveral(t *testing.T) {
	several := regexp.MustCompile(`(^| )1 ([a-z.]+ )?(files|commits|entries|refs|worktrees|processes|repositories|directories|submodules|links|systems|registrations)\b`)
	ones := 0
	for _, s := range scenarios(t) {
		for _, f := range labInventory.Judge(answer(t, s.ID)).Findings {
			if several.MatchString(f.Detail) {
				t.Errorf("%s: %s", s.ID, f.Detail)
			}
			if strings.HasPrefix(f.Detail, "1 ") {
				ones++
			}
		}
	}
	if ones < 20 {
		t.Errorf("only %d details begin with one of something", ones)
	}
}
