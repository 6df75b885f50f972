package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"pgregory.net/rapid"

	"github.com/kandev/reclaim/core"
)

func TestInputIsTheJSONOfTheFacts(t *testing.T) {
	text := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"a", "é\n\"", "\x00", " "}), rapid.String())
	environment := rapid.Custom(func(t *rapid.T) core.Environment {
		return core.Environment{ID: text.Draw(t, "id"), TaskID: text.Draw(t, "task")}
	})
	rapid.Check(t, func(t *rapid.T) {
		s, b, n := func() string { return text.Draw(t, "text") }, func() bool { return rapid.Bool().Draw(t, "flag") }, func() int { return rapid.Int().Draw(t, "number") }
		f := core.Facts{Moment: core.Moment(s()), OptInNow: core.OptIn(s()), Time: int64(n()), Bytes: int64(n()), Entries: int64(n()),
			Job: core.JobFacts{ID: s(), TaskID: s(), Trigger: core.Trigger(s()), Attempt: n(), Begun: b(), Environment: rapid.Ptr(environment, true).Draw(t, "copy")},
			Target: core.Target{Host: s(), Port: n(), User: s(), Fingerprint: s(), IdentitySource: s(), IdentityFile: s(), ProxyJump: s(), Shell: s(),
				WorkdirRoot: s(), TaskDir: s(), Enabled: b()},
			Path:   core.PathFacts{Root: s(), Home: s(), Dir: s()},
			Labels: rapid.MapOf(text, text).Draw(t, "labels"),
		}
		if b() {
			o := core.Ownership{TaskTerminal: b(), OptInNow: core.OptIn(s()), Environment: rapid.Ptr(environment, true).Draw(t, "live"), Error: s()}
			for range rapid.IntRange(0, 2).Draw(t, "borrowers") {
				o.Borrowers = append(o.Borrowers, core.Borrower{SessionID: s(), TaskID: s(), State: s(), TaskTerminal: b(), Lender: s()})
			}
			for range rapid.IntRange(0, 2).Draw(t, "claims") {
				o.Claims = append(o.Claims, core.Claim{TaskID: s(), Host: s(), Port: n(), User: s(), Fingerprint: s(), TaskDir: s(),
					TaskTerminal: b(), Stopped: b(), OptedIn: b(), CleanupOpen: b(), Unreadable: b()})
			}
			f.Ownership = &o
		}
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ast.ValueFromReader(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if got := input(f); got.Compare(want) != 0 {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// askModules rules by other modules than ours.
func askModules(t *testing.T, texts ...string) (core.Ruling, error) {
	t.Helper()
	modules := map[string]*ast.Module{}
	for i, text := range texts {
		name := fmt.Sprint(i, ".rego")
		module, err := parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = module
	}
	barriers, err := compile(context.Background(), ruling, nil, modules)
	if err != nil {
		return core.Ruling{}, err
	}
	answer, err := barriers.ask(context.Background(), input(core.Facts{}), unhurried)
	if err != nil {
		return core.Ruling{}, err
	}
	return read(answer)
}

const yes = `package policy.ruling
allow := true
passed := ["optin", "ownership", "pathshape"]
refusals := set()
`

func TestOnlyOneWellFormedRulingIsOne(t *testing.T) {
	if r, err := askModules(t, yes); err != nil || !r.Allow {
		t.Fatalf("the well-formed one: %+v, %v", r, err)
	}
	for name, texts := range map[string][]string{
		"none":                        {"package policy.other\nallow := true"},
		"a misspelled package":        {strings.Replace(yes, "ruling", "rulings", 1)},
		"two":                         {yes, "package policy.ruling\nallow := false"},
		"allow is missing":            {strings.Replace(yes, "allow := true\n", "", 1)},
		"allow is a text":             {strings.Replace(yes, "allow := true", `allow := "true"`, 1)},
		"allow is a number":           {strings.Replace(yes, "allow := true", "allow := 1", 1)},
		"allow is null":               {strings.Replace(yes, "allow := true", "allow := null", 1)},
		"allow is undefined":          {strings.Replace(yes, "allow := true", "allow := true if input.moment == \"never\"", 1)},
		"passed is missing":           {strings.Replace(yes, `passed := ["optin", "ownership", "pathshape"]`, "", 1)},
		"passed is a set":             {strings.Replace(yes, `["optin", "ownership", "pathshape"]`, `{"optin", "ownership", "pathshape"}`, 1)},
		"one barrier did not pass":    {strings.Replace(yes, `["optin", "ownership", "pathshape"]`, `["optin", "pathshape"]`, 1)},
		"a barrier passed twice":      {strings.Replace(yes, `["optin", "ownership", "pathshape"]`, `["optin", "optin", "ownership", "pathshape"]`, 1)},
		"an unknown barrier":          {strings.Replace(yes, `["optin", "ownership", "pathshape"]`, `["optin", "ownership", "pathshape", "mood"]`, 1)},
		"a number passed":             {strings.Replace(yes, `["optin", "ownership", "pathshape"]`, `["optin", "ownership", 3]`, 1)},
		"refusals is missing":         {strings.Replace(yes, "refusals := set()", "", 1)},
		"refusals is a list":          {strings.Replace(yes, "set()", "[]", 1)},
		"allowed and refused":         {strings.Replace(yes, "set()", `{{"barrier": "optin", "rule": "r", "says": "s"}}`, 1)},
		"neither allowed nor refused": {strings.Replace(yes, "allow := true", "allow := false", 1)},
		"a refusal without a word":    {strings.NewReplacer("allow := true", "allow := false", "set()", `{{"barrier": "optin", "rule": "r"}}`).Replace(yes)},
		"a refusal that says more":    {strings.NewReplacer("allow := true", "allow := false", "set()", `{{"barrier": "b", "rule": "r", "says": "s", "x": 1}}`).Replace(yes)},
		"a refusal that is a text":    {strings.NewReplacer("allow := true", "allow := false", "set()", `{"no"}`).Replace(yes)},
		"a failing built-in":          {strings.Replace(yes, "allow := true", "allow := false if to_number(input.job.id) == 1 else := true", 1)},
	} {
		if r, err := askModules(t, texts...); err == nil {
			t.Errorf("%s: taken as %+v", name, r)
		}
	}
}

func TestOneMemoryForgetsBetweenRulings(t *testing.T) {
	m := newMemory()
	ref := ast.MustParseRef("data.a.b")
	m.Put(ref, ast.BooleanTerm(true))
	m.Push()
	if v, undefined := m.Get(ref); v != nil || undefined {
		t.Error("a new frame remembers the one below")
	}
	m.Put(ref, nil)
	if v, undefined := m.Get(ref); v != nil || !undefined {
		t.Error("what is undefined is not remembered as such")
	}
	m.Pop()
	if v, _ := m.Get(ref); v == nil || len(m.Keys()) != 1 || !m.Keys()[0].Equal(ref) {
		t.Errorf("the frame below is gone: %v, %v", v, m.Keys())
	}
	m.release()
	if again := newMemory(); len(again.known) != 0 || len(again.frames) != 1 {
		t.Error("a memory that was released still knows something")
	}
}

func TestRulingsAtTheSameTimeAreTheirOwn(t *testing.T) {
	p, err := New(WithOperator("size.rego", []byte("package operator.size\ndeny contains $\"{input.bytes}\" if input.bytes > 10")))
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for range 100 {
				f := samples()[1]
				f.Bytes = int64(i * 10)
				f.Target.Enabled = i%4 != 3
				r := p.Rule(context.Background(), f)
				switch {
				case r.Error != "" && !strings.Contains(r.Error, "within"):
					t.Errorf("%d: %s", i, r.Error)
				case r.Error == "" && i%4 == 3 && (r.Allow || len(r.Refusals) != 1),
					r.Error == "" && i%4 != 3 && i < 2 != r.Allow,
					len(r.Denials) == 1 && r.Denials[0].Says != fmt.Sprint(i*10):
					t.Errorf("%d: %+v", i, r)
				}
			}
		})
	}
	wait.Wait()
}
