package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func parse(t interface {
	Helper()
	Fatalf(string, ...any)
}, raw string) JobSnapshot {
	t.Helper()
	s, err := ParseJobSnapshot([]byte(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return s
}

const hostsRow = `{ "sessions":[{"id":"s1","n":9007199254740993}],
 "stop_targets" : [],"task_environment":{"id":" env-1 ","task_id":"t-1","executor_profile_id":"p-1","x":1.10},
 "ssh_task_dirs":[ {"host":"h","port":2222,"user":"dev","host_fingerprint":"SHA256:a","workdir_root":"~/.kandev","task_dir":"/home/dev/.kandev/tasks/x","enabled":true , "new key":{"a" : 1e2}} ,
  {"host":"h","workdir_root":"","task_dir":"/home/dev/.kandev/tasks/y"}],"orphan_reap_roots":null }`

func TestASnapshotIsReadAsTheHostWroteIt(t *testing.T) {
	s := parse(t, hostsRow)
	want := []JobTarget{
		{Target: Target{Host: "h", Port: 2222, User: "dev", Fingerprint: "SHA256:a", WorkdirRoot: "~/.kandev", TaskDir: "/home/dev/.kandev/tasks/x", Enabled: true}},
		{Target: Target{Host: "h", TaskDir: "/home/dev/.kandev/tasks/y"}},
	}
	if diff := cmp.Diff(want, s.Targets()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&Environment{ID: "env-1", TaskID: "t-1"}, s.Environment()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"p-1"}, s.Profiles(want[1].Target)); diff != "" {
		t.Error(diff)
	}
}

func TestAnEditTouchesOnlyItsOwnKeys(t *testing.T) {
	s := parse(t, hostsRow)
	target := s.Targets()[0].Target
	begun, err := s.WithBegun(Begin{Target: target, Attempt: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(hostsRow, `{"a" : 1e2}}`, `{"a" : 1e2},"reclaim":{"begun":3}}`, 1)
	if diff := cmp.Diff(want, string(begun.Bytes())); diff != "" {
		t.Fatal(diff)
	}
	kept, err := begun.WithOutcome(target, Skipped{Finding: Finding{Reason: StashPresent, Cause: Stashed, Checkout: "lib", Detail: "one stash", Cure: []Remedy{{What: "pop it", Run: "git stash pop"}}}})
	if err != nil {
		t.Fatal(err)
	}
	want = strings.Replace(hostsRow, `{"a" : 1e2}}`, `{"a" : 1e2},"reclaim":{"cause":"stash","cure":[{"what":"pop it","run":"git stash pop"}]},"outcome":"skipped","skip_reason":"stash_present","detail":"lib: one stash"}`, 1)
	if diff := cmp.Diff(want, string(kept.Bytes())); diff != "" {
		t.Fatal(diff)
	}
	failed, err := begun.WithOutcome(target, fail(PathRefused, ""))
	if err != nil {
		t.Fatal(err)
	}
	want = strings.Replace(hostsRow, `{"a" : 1e2}}`, `{"a" : 1e2},"reclaim":{"begun":3,"fault":"path_refused","final":true},"outcome":"failed"}`, 1)
	if diff := cmp.Diff(want, string(failed.Bytes())); diff != "" {
		t.Fatal(diff)
	}
	got := failed.Targets()[0]
	if got.Outcome != OutcomeFailed || got.Fault != PathRefused || !got.Final || got.Begun != 3 || got.Reason != "" || got.Cause != "" {
		t.Errorf("read back: %+v", got)
	}
}

func TestAC_D27_DuplicatesAndVariantsOfKnownKeysRefuseTheTarget(t *testing.T) {
	for _, key := range targetKeys {
		for name, extra := range map[string]string{
			"twice": key, "in capitals": strings.ToUpper(key), "escaped": fmt.Sprintf(`\u%04x%s`, key[0], key[1:]),
			"with a kelvin or long s": strings.NewReplacer("k", "\u212a", "s", "\u017f").Replace(key),
		} {
			if extra == key && name != "twice" {
				continue
			}
			known := map[string]string{"host": `"h"`, "task_dir": `"/r/tasks/x"`, "port": "22", "enabled": "true", "reclaim": "{}", "outcome": `"failed"`}
			if known[key] == "" {
				known[key] = `""`
			}
			var pairs []string
			for k, v := range known {
				pairs = append(pairs, fmt.Sprintf("%q:%s", k, v))
			}
			pairs = append(pairs, `"`+extra+`":`+known[key])
			raw := `{"ssh_task_dirs":[{` + strings.Join(pairs, ",") + `}]}`
			targets := parse(t, raw).Targets()
			if len(targets) != 1 || targets[0].Invalid == "" {
				t.Errorf("%s %s: not refused: %s", key, name, raw)
			}
		}
	}
	for _, raw := range []string{
		`{"ssh_task_dirs":[],"ssh_task_dirs":[]}`, `{"SSH_task_dirs":[]}`, `{"task_environment":{},"Task_Environment":{}}`,
		`{"task_environment":{"id":"a","ID":"b"}}`, `{"task_environment":{"id":"a","id":"b"}}`,
	} {
		if _, err := ParseJobSnapshot([]byte(raw)); err == nil {
			t.Errorf("not refused: %s", raw)
		}
	}
}

func TestWhatIsNoSnapshotIsAnErrorAndNeverAnEmptyList(t *testing.T) {
	for _, raw := range []string{"", " ", "{", "[]", "3", `"x"`, `{"ssh_task_dirs":{}}`, `{"ssh_task_dirs":"x"}`, `{"ssh_task_dirs":[}`, `{} {}`, `{"task_environment":3}`, `{"task_environment":{"id":3}}`} {
		if s, err := ParseJobSnapshot([]byte(raw)); err == nil {
			t.Errorf("%q was read as %v", raw, s.Targets())
		}
	}
	for _, raw := range []string{"{}", "null", ` {"ssh_task_dirs":null,"task_environment":null}`, `{"ssh_task_dirs":[]}`} {
		s := parse(t, raw)
		if len(s.Targets()) != 0 || s.Environment() != nil {
			t.Errorf("%q holds something", raw)
		}
	}
}

func TestWrongTypesRefuseTheTargetAndNullIsAbsence(t *testing.T) {
	const good = `"host":"h","task_dir":"/r/tasks/x"`
	for _, pair := range []string{`"port":true`, `"port":22.5`, `"port":-1`, `"port":65536`, `"port":"x"`, `"port":1e30`, `"enabled":"true"`, `"enabled":1`, `"user":3`,
		`"outcome":3`, `"outcome":"purged"`, `"reclaim":3`, `"reclaim":{"begun":"1"}`, `"reclaim":{"begun":1,"BEGUN":1}`, `"reclaim":{"cure":3}`, `"shell":[]`} {
		if got := parse(t, `{"ssh_task_dirs":[{`+good+`,`+pair+`}]}`).Targets()[0]; got.Invalid == "" {
			t.Errorf("%s was accepted: %+v", pair, got)
		}
	}
	for _, whole := range []string{`null`, `3`, `[]`, `{}`, `{"host":"h"}`, `{"task_dir":"/r/tasks/x"}`, `{"host":"h","task_dir":"/r/tasks/x "}`} {
		s := parse(t, `{"ssh_task_dirs":[`+whole+`]}`)
		got := s.Targets()
		if len(got) != 1 || got[0].Invalid == "" {
			t.Fatalf("%s was accepted: %+v", whole, got)
		}
		if _, err := s.WithOutcome(got[0].Target, fail(SnapshotInvalid, got[0].Invalid)); err != nil {
			t.Errorf("%s: its outcome cannot be folded: %v", whole, err)
		}
	}
	for pair, port := range map[string]int{`"port":null`: 0, `"port":22`: 22, `"port":22.0`: 22, `"port":2.2e1`: 22, `"port":"22"`: 22, `"port":""`: 0,
		`"user":null,"enabled":null,"outcome":null,"reclaim":null,"skip_reason":null`: 0} {
		if got := parse(t, `{"ssh_task_dirs":[{`+good+`,`+pair+`}]}`).Targets()[0]; got.Invalid != "" || got.Target.Port != port || got.Target.Enabled {
			t.Errorf("%s: %+v", pair, got)
		}
	}
}

func TestAC_D34_EntriesOfOneDirectoryAreOneTarget(t *testing.T) {
	s := parse(t, `{"ssh_task_dirs":[
		{"host":"Box.example.","port":22,"user":"u","shell":"zsh","workdir_root":"/r","task_dir":"/r/tasks/x","enabled":true},
		{"host":"box.EXAMPLE","user":"u","shell":"bash","workdir_root":"/r","task_dir":"/r//tasks/x/","enabled":true,"reclaim":{"begun":2,"profiles":["p2"]}},
		{"host":"box.example","user":"other","workdir_root":"/r","task_dir":"/r/tasks/x"}]}`)
	got := s.Targets()
	if len(got) != 2 {
		t.Fatalf("%d targets: %+v", len(got), got)
	}
	if got[0].Target.Shell != "zsh" || got[0].Target.Enabled || got[0].Begun != 2 || len(got[0].Notes) != 1 || !strings.Contains(got[0].Notes[0], "shell") {
		t.Errorf("merged: %+v", got[0])
	}
	done, err := s.WithOutcome(got[0].Target, Removed{Detail: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	if again := done.Targets(); again[0].Outcome != OutcomeRemoved || again[1].Outcome != "" {
		t.Errorf("after removal: %+v", again)
	}
	half := parse(t, `{"ssh_task_dirs":[{"host":"h","task_dir":"/r/tasks/x","outcome":"removed"},{"host":"h","task_dir":"/r/tasks/x"}]}`)
	if half.Targets()[0].Outcome != "" {
		t.Error("removed although only one of two entries says so")
	}
}

func TestRetriesComeAfterTheHostsDelaysAndTheEighthIsTheLast(t *testing.T) {
	want := []time.Duration{1, 5, 15, 60, 180, 360, 720}
	for i, minutes := range want {
		if d, again := RetryAfter(i + 1); !again || d != minutes*time.Minute {
			t.Errorf("attempt %d: %v %v", i+1, d, again)
		}
	}
	for _, attempt := range []int{8, 9, 1000} {
		if _, again := RetryAfter(attempt); again {
			t.Errorf("attempt %d is retried", attempt)
		}
	}
}

// anyJSON draws an arbitrary JSON value with arbitrary white space.
func TestAHoldIsLookedAtAgainWithinThreeHours(t *testing.T) {
	for n, want := range map[int]time.Duration{0: time.Minute, 1: time.Minute, 2: 5 * time.Minute, 3: 15 * time.Minute, 4: time.Hour, 5: 3 * time.Hour, 6: 3 * time.Hour, 7: 3 * time.Hour, 8: 3 * time.Hour, 1000: 3 * time.Hour} {
		if got := HoldAfter(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func anyJSON(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 && kind > 4 {
			kind -= 3
		}
		switch kind {
		case 0:
			return "null"
		case 1:
			return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
		case 2:
			return rapid.SampledFrom([]string{"0", "-1", "9007199254740993", "1.10", "1e2", "123456789012345678901234567890"}).Draw(t, "number")
		case 3, 4:
			return jsonString(t)
		case 5:
			items := rapid.SliceOfN(anyJSON(depth-1), 0, 3).Draw(t, "list")
			return "[" + space.Draw(t, "s") + strings.Join(items, space.Draw(t, "s")+","+space.Draw(t, "s")) + space.Draw(t, "s") + "]"
		}
		n := rapid.IntRange(0, 3).Draw(t, "n")
		var pairs []string
		for range n {
			pairs = append(pairs, jsonString(t)+space.Draw(t, "s")+":"+space.Draw(t, "s")+anyJSON(depth-1).Draw(t, "value"))
		}
		return "{" + space.Draw(t, "s") + strings.Join(pairs, space.Draw(t, "s")+","+space.Draw(t, "s")) + space.Draw(t, "s") + "}"
	})
}

func jsonString(t *rapid.T) string {
	return rapid.SampledFrom([]string{`""`, `"x"`, `"\u00e9\/"`, `"a\"b"`, `"é"`, `"<&>"`, "\"\xff\"", `"{"`, `"],"`, `"host2"`, `"note"`}).Draw(t, "string")
}

// anySnapshot draws a snapshot whose targets are all readable, with unknown
// keys and white space everywhere.
func anySnapshot(t *rapid.T) (raw string, dirs int) {
	dirs = rapid.IntRange(1, 3).Draw(t, "dirs")
	space := rapid.SampledFrom([]string{"", " ", "\n  "})
	var targets []string
	for i := range dirs {
		pairs := []string{fmt.Sprintf(`"task_dir"%s:"/r/tasks/%d"`, space.Draw(t, "s"), i), `"host":` + space.Draw(t, "s") + `"h"`}
		for _, optional := range []string{`"port":22`, `"enabled":true`, `"outcome":"failed"`, `"skip_reason" : "shared"`, `"detail":"d"`,
			`"reclaim":{"begun" : 1 , "later":{"x":1.0}}`, `"reclaim":null`, `"shell":"zsh"`, `"reclaim":{"fault":"busy","final":true,"cure":[],"cause":"stash"}`} {
			if rapid.Bool().Draw(t, "has") && !(strings.HasPrefix(optional, `"reclaim"`) && strings.Contains(strings.Join(pairs, ""), `"reclaim"`)) {
				pairs = append(pairs, optional)
			}
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "unknown") {
			pairs = append(pairs, fmt.Sprintf(`"unknown%d"%s:%s`, n, space.Draw(t, "s"), anyJSON(2).Draw(t, "v")))
		}
		pairs = rapid.Permutation(pairs).Draw(t, "order")
		targets = append(targets, "{"+space.Draw(t, "s")+strings.Join(pairs, space.Draw(t, "s")+","+space.Draw(t, "s"))+space.Draw(t, "s")+"}")
	}
	top := []string{`"ssh_task_dirs"` + space.Draw(t, "s") + ":" + space.Draw(t, "s") + "[" + strings.Join(targets, space.Draw(t, "s")+",") + "]"}
	for n := range rapid.IntRange(0, 3).Draw(t, "unknown") {
		top = append(top, fmt.Sprintf(`"other%d":%s`, n, anyJSON(3).Draw(t, "v")))
	}
	top = rapid.Permutation(top).Draw(t, "order")
	return space.Draw(t, "s") + "{" + strings.Join(top, space.Draw(t, "s")+","+space.Draw(t, "s")) + space.Draw(t, "s") + "}" + space.Draw(t, "s"), dirs
}

var anyOutcome = rapid.Custom(func(t *rapid.T) Outcome {
	detail := rapid.SampledFrom([]string{"", "plain", `with "quotes" and <b>`, strings.Repeat("é", 5000)}).Draw(t, "detail")
	cure := rapid.SampledFrom([][]Remedy{nil, {{What: "do it", Run: "x"}}}).Draw(t, "cure")
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return Removed{Detail: detail}
	case 1:
		return Skipped{Finding: Finding{Reason: rapid.SampledFrom(Reasons()).Draw(t, "reason"), Cause: Ignored, Detail: detail, Cure: cure}}
	}
	return fail(rapid.SampledFrom(Faults()).Draw(t, "fault"), detail, cure...)
})

// pieces is a second reading of an object: keys in order and the bytes of
// their values, made with the standard decoder only.
func pieces(t *rapid.T, raw []byte, open json.Delim) (names []string, values map[string]string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := d.Token(); err != nil || tok != open {
		t.Fatalf("%v %v", tok, err)
	}
	values = map[string]string{}
	for i := 0; d.More(); i++ {
		name := fmt.Sprint(i)
		if open == '{' {
			tok, _ := d.Token()
			name = tok.(string)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		names, values[name] = append(names, name), string(v)
	}
	return names, values
}

func TestAnyEditChangesExactlyTheTargetsOwnKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, dirs := anySnapshot(t)
		before := parse(t, raw)
		if len(before.Targets()) != dirs {
			t.Fatalf("%d targets of %d", len(before.Targets()), dirs)
		}
		which := rapid.IntRange(0, dirs-1).Draw(t, "which")
		target := before.Targets()[which].Target
		wantBegun := before.Targets()[which].Begun
		after, err := before, error(nil)
		var o Outcome
		if rapid.Bool().Draw(t, "begin") {
			after, err = before.WithBegun(Begin{Target: target, Attempt: 7})
			wantBegun = 7
		} else {
			o = anyOutcome.Draw(t, "outcome")
			after, err = before.WithOutcome(target, o)
			if _, kept := o.(Skipped); kept {
				wantBegun = 0
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(before.Bytes()) != raw {
			t.Fatal("the edit wrote into the value it was made from")
		}
		topNames, top := pieces(t, []byte(raw), '{')
		topNames2, top2 := pieces(t, after.Bytes(), '{')
		if diff := cmp.Diff(topNames, topNames2); diff != "" {
			t.Fatal(diff)
		}
		for _, name := range topNames {
			if name != "ssh_task_dirs" && top[name] != top2[name] {
				t.Fatalf("%q changed", name)
			}
		}
		_, list := pieces(t, []byte(top["ssh_task_dirs"]), '[')
		_, list2 := pieces(t, []byte(top2["ssh_task_dirs"]), '[')
		for i := range dirs {
			name := fmt.Sprint(i)
			if i != which {
				if list[name] != list2[name] {
					t.Fatalf("another target changed: %s", list2[name])
				}
				continue
			}
			names, fields := pieces(t, []byte(list[name]), '{')
			names2, fields2 := pieces(t, []byte(list2[name]), '{')
			ours := map[string]bool{"outcome": o != nil, "skip_reason": o != nil, "detail": o != nil, "reclaim": true}
			var kept, kept2 []string
			for _, n := range names {
				if !ours[n] {
					kept = append(kept, n)
					if fields[n] != fields2[n] {
						t.Fatalf("%q changed from %s to %s", n, fields[n], fields2[n])
					}
				}
			}
			for _, n := range names2 {
				if !ours[n] {
					kept2 = append(kept2, n)
				}
			}
			if diff := cmp.Diff(kept, kept2); diff != "" {
				t.Fatal(diff)
			}
			if strings.Contains(fields["reclaim"], "later") && !strings.Contains(fields2["reclaim"], `"later":{"x":1.0}`) {
				t.Fatalf("an unknown key inside reclaim is lost: %s", fields2["reclaim"])
			}
		}
		got := after.Targets()[which]
		if got.Invalid != "" || got.Begun != wantBegun || got.Target != target {
			t.Fatalf("read back: %+v", got)
		}
		if len(got.Detail) > maxDetail {
			t.Fatalf("%d bytes of detail", len(got.Detail))
		}
		switch o := o.(type) {
		case Removed:
			if got.Outcome != OutcomeRemoved || got.Reason != "" || got.Fault != "" || got.Cause != "" || got.Final || got.Cure != nil {
				t.Fatalf("read back: %+v", got)
			}
		case Skipped:
			if got.Outcome != OutcomeSkipped || got.Reason != o.Reason || got.Cause != o.Cause || got.Fault != "" {
				t.Fatalf("read back: %+v", got)
			}
		case Failed:
			if got.Outcome != OutcomeFailed || got.Fault != o.Fault || got.Reason != "" || got.Final != o.Final {
				t.Fatalf("read back: %+v", got)
			}
		}
	})
}

func FuzzAnEditedSnapshotStaysReadable(f *testing.F) {
	for _, raw := range []string{hostsRow, "{}", "null", `{"ssh_task_dirs":[null,{},{"host":"h","task_dir":"/r/tasks/x","task_dir":"/r/tasks/y"}]}`,
		`{"ssh_task_dirs":[{"host":"h","task_dir":"/r/tasks/x","outcome":"failed","Outcome":"removed","reclaim":{"begun":1}}]}`,
		"{\"ssh_task_dirs\":[{\"host\":\"\xff\",\"task_dir\":\"/r/tasks/x\",\"detail\":\"\"  }] }"} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := ParseJobSnapshot(raw)
		if err != nil {
			return
		}
		for _, target := range s.Targets() {
			for _, o := range []Outcome{Removed{Detail: "gone"}, skip(hookNotRun), fail(Busy, "busy")} {
				edited, err := s.WithOutcome(target.Target, o)
				if err != nil {
					t.Fatalf("%v\n%q", err, raw)
				}
				switch begun, err := edited.WithBegun(Begin{Target: target.Target, Attempt: 2}); {
				case (err == nil) != (target.Invalid == ""):
					t.Fatalf("begun at a target that is %q: %v\n%q", target.Invalid, err, raw)
				case err == nil:
					edited = begun
				}
				if len(edited.Targets()) != len(s.Targets()) {
					t.Fatalf("targets came or went: %q", edited.Bytes())
				}
				for i, again := range edited.Targets() {
					if before := s.Targets()[i]; (before.Invalid == "") != (again.Invalid == "") || before.Target != again.Target {
						t.Fatalf("%+v became %+v", before, again)
					}
				}
			}
		}
	})
}

func FuzzKeysAreReadAsTheStandardDecoderReadsThem(f *testing.F) {
	for _, raw := range []string{hostsRow, `{}`, ` { "a" : -1.5e3 , "b":[{"c":"}"},[]],"a":null } `, `{"\u0061\"":"\\"}`, "{\"\xff\":true}", `{"a":{"b":{"c":[1,2,"]"]}}}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		all, err := members(raw)
		d := json.NewDecoder(bytes.NewReader(raw))
		if open, _ := d.Token(); open != json.Delim('{') {
			if err == nil {
				t.Fatalf("%q was read as an object", raw)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := 0; d.More(); i++ {
			n++
			name, _ := d.Token()
			var want json.RawMessage
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if i >= len(all) || all[i].name != name || !bytes.Equal(all[i].value(raw), want) || raw[all[i].keyStart] != '"' || raw[all[i].keyEnd-1] != '"' {
				t.Fatalf("key %d of %q", i, raw)
			}
		}
		if n != len(all) {
			t.Fatalf("%q has %d keys, not %d", raw, n, len(all))
		}
	})
}
