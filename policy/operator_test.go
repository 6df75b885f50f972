package policy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
)

func ruled(t *testing.T, f core.Facts, source string, opts ...policy.Option) core.Ruling {
	t.Helper()
	p := newPolicy(t, append(opts, policy.WithOperator("site.rego", []byte(source)))...)
	return p.Rule(context.Background(), f)
}

func TestAC_D25_WhatAnOperatorDenies(t *testing.T) {
	for name, row := range map[string]struct {
		rules string
		want  []core.Denial
	}{
		"nothing":              {`deny contains "x" if input.bytes < 0`, nil},
		"a message":            {`deny contains "no"`, []core.Denial{{Policy: "site.rego", Says: "no"}}},
		"an object":            {`deny contains {"message": "no"}`, []core.Denial{{Policy: "site.rego", Says: "no"}}},
		"to be tried again":    {`deny contains {"message": "wait", "retry": true}`, []core.Denial{{Policy: "site.rego", Says: "wait", Retry: true}}},
		"for good, explicitly": {`deny contains {"message": "no", "retry": false}`, []core.Denial{{Policy: "site.rego", Says: "no"}}},
		"several":              {"deny contains \"b\"\ndeny contains \"a\"", []core.Denial{{Policy: "site.rego", Says: "a"}, {Policy: "site.rego", Says: "b"}}},
		"by what it was given": {`deny contains $"{input.job.task_id} on {input.target.host} at {input.time}" if input.labels.team == "payments"`,
			[]core.Denial{{Policy: "site.rego", Says: "t-1 on build.example at 1796000000"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := owned()
			f.Labels = map[string]string{"team": "payments"}
			r := ruled(t, f, "package operator.site\n"+row.rules)
			if diff := cmp.Diff(row.want, r.Denials); diff != "" || r.Error != "" || r.Allow != (row.want == nil) {
				t.Errorf("allow=%t error=%q\n%s", r.Allow, r.Error, diff)
			}
		})
	}
}

// What an operator's file cannot do, and what it then says. Each is refused by a
// ruling and explained by Check.
func TestABrokenOperatorPolicyRefusesAndNamesItsFile(t *testing.T) {
	for name, row := range map[string]struct{ source, says string }{
		"empty":                                {"", "empty"},
		"blank":                                {" \n", "empty"},
		"only a comment":                       {"# soon\n", ""},
		"a syntax error":                       {"package operator.site\ndeny contains {", ""},
		"an old dialect":                       {"package operator.site\ndeny[msg] { msg := \"x\" }", ""},
		"a misspelled package":                 {"package operater.site\ndeny contains \"x\"", "operator.<name>"},
		"a package without a name":             {"package operator\ndeny contains \"x\"", "operator.<name>"},
		"a package with two names":             {"package operator.a.b\ndeny contains \"x\"", "operator.<name>"},
		"our own package, to override":         {"package policy.optin\ndefault passed := true\npassed := true", "operator.<name>"},
		"our ruling, to override":              {"package policy.ruling\nallow := true\ndeny contains \"x\" if false", "operator.<name>"},
		"no deny":                              {"package operator.site\ndenied contains \"x\"", "deny"},
		"a misspelled deny":                    {"package operator.site\nDeny contains \"x\"", "deny"},
		"allow":                                {"package operator.site\nallow := true", "deny"},
		"deny is a boolean":                    {"package operator.site\ndeny := true if input.bytes > 0", "not a set"},
		"deny is an object":                    {"package operator.site\ndeny[x] := 1 if x := \"a\"", "not a set"},
		"deny is a function":                   {"package operator.site\ndeny(x) if x", "not a set"},
		"deny has a default":                   {"package operator.site\ndefault deny := false", "default"},
		"an entry is a number":                 {"package operator.site\ndeny contains 1", "neither a message"},
		"an entry is true":                     {"package operator.site\ndeny contains true", "neither a message"},
		"an entry has no message":              {"package operator.site\ndeny contains {\"msg\": \"x\"}", "no message"},
		"an entry's message is empty":          {"package operator.site\ndeny contains \" \"", "empty message"},
		"an entry's retry is no boolean":       {"package operator.site\ndeny contains {\"message\": \"x\", \"retry\": \"yes\"}", "retry"},
		"an entry says more":                   {"package operator.site\ndeny contains {\"message\": \"x\", \"allow\": true}", "more than"},
		"too many entries":                     {"package operator.site\nd := {1,2,3,4,5,6,7,8,9,10,11}\ndeny contains $\"{x} {y}\" if { some x in d; some y in d }", "more than 100"},
		"the clock":                            {"package operator.site\ndeny contains \"x\" if time.now_ns() > 0", "input.time"},
		"the network":                          {"package operator.site\ndeny contains \"x\" if http.send({\"url\": \"http://127.0.0.1\", \"method\": \"get\"}).status_code == 200", "network"},
		"chance":                               {"package operator.site\ndeny contains \"x\" if rand.intn(\"a\", 2) == 1", "every time"},
		"the environment":                      {"package operator.site\ndeny contains \"x\" if opa.runtime().env.HOME", "every time"},
		"a built-in that is not allowed":       {"package operator.site\ndeny contains \"x\" if crypto.sha256(\"a\") == \"b\"", "not among"},
		"a function there is none of":          {"package operator.site\ndeny contains \"x\" if is_protected(input.target.host)", "is_protected"},
		"our rules":                            {"package operator.site\ndeny contains \"x\" if not data.policy.optin.passed", "out of reach"},
		"data":                                 {"package operator.site\ndeny contains \"x\" if data.protected[input.target.host]", "out of reach"},
		"an import of data":                    {"package operator.site\nimport data.hosts\ndeny contains \"x\" if hosts[input.target.host]", "out of reach"},
		"a misspelled fact":                    {"package operator.site\ndeny contains \"x\" if input.target.hots == \"a\"", "hots"},
		"a misspelled fact of a claim":         {"package operator.site\ndeny contains \"x\" if input.ownership.claims[_].task == \"a\"", "task"},
		"an unused variable":                   {"package operator.site\ndeny contains \"x\" if { y := 1; input.bytes > 0 }", "y"},
		"a built-in given what it cannot take": {"package operator.site\ndeny contains \"x\" if time.parse_rfc3339_ns(input.target.host) > 0", ""},
		"replaces the facts":                   {"package operator.site\nd if input.bytes > 0\ndeny contains \"x\" if d with input.bytes as 0", "with"},
		"two answers of one rule":              {"package operator.site\nx := 1 if input.bytes >= 0\nx := 2 if input.bytes >= 0\ndeny contains \"x\" if x == 1", ""},
		"too slow": {"package operator.site\nd := {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}\n" +
			"deny contains \"x\" if { some a in d; some b in d; some c in d; some e in d; some f in d; some g in d; a+b+c+e+f+g == 0 }", "within"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ruled(t, owned(), row.source)
			if r.Allow || r.Error == "" || !strings.Contains(r.Error, "site.rego") || !strings.Contains(r.Error, row.says) {
				t.Errorf("ruling: allow=%t, error %q; want it to say %q", r.Allow, r.Error, row.says)
			}
			problems := policy.Check("site.rego", []byte(row.source))
			if len(problems) == 0 || !strings.Contains(problems.Error(), row.says) || !strings.Contains(problems.Error(), "site.rego") {
				t.Errorf("Check: %v; want it to say %q", problems, row.says)
			}
		})
	}
}

func TestAProblemNamesItsLine(t *testing.T) {
	problems := policy.Check("a.rego", []byte("package operator.a\n\ndeny contains \"x\" if {\n\ttime.now_ns() > 0\n}\n"))
	if len(problems) != 1 || problems[0].Row != 4 {
		t.Errorf("got %v", problems)
	}
}

func TestAnOperatorCannotLoosenWhatABarrierRefuses(t *testing.T) {
	f := owned()
	f.Target.Enabled = false
	for _, source := range []string{
		"package policy.optin\npassed := true",
		"package policy.ruling\nallow := true",
		"package operator.site\nallow := true\ndeny contains \"x\" if input.bytes < 0",
		"package system\nallow := true",
	} {
		if r := ruled(t, f, source); r.Allow || len(r.Refusals) != 1 || r.Refusals[0].Barrier != "optin" {
			t.Errorf("%s: %+v", source, r)
		}
	}
}

func TestAnOperatorIsOnlyAskedWhereOurBarriersPassed(t *testing.T) {
	f := owned()
	f.Target.Enabled = false
	if r := ruled(t, f, "package operator.site\ndeny contains \"no\""); len(r.Denials) != 0 || r.Error != "" || r.Allow {
		t.Errorf("%+v", r)
	}
}

func TestTwoOperatorsAreBothHeardAndNeitherSeesTheOther(t *testing.T) {
	p := newPolicy(t,
		policy.WithOperator("a.rego", []byte("package operator.site\nx := 1\ndeny contains \"a\" if x == 1")),
		policy.WithOperator("b.rego", []byte("package operator.site\nx := 2\ndeny contains {\"message\": \"b\", \"retry\": true} if x == 2")))
	r := p.Rule(context.Background(), owned())
	want := []core.Denial{{Policy: "a.rego", Says: "a"}, {Policy: "b.rego", Says: "b", Retry: true}}
	if diff := cmp.Diff(want, r.Denials); diff != "" || r.Allow || r.Error != "" {
		t.Errorf("%+v\n%s", r, diff)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, opts := range map[string][]policy.Option{
		"no name":     {policy.WithOperator(" ", []byte("package operator.a"))},
		"one name":    {policy.WithOperator("a", nil), policy.WithOperator("a", nil)},
		"no deadline": {policy.WithDeadline(0)},
	} {
		if _, err := policy.New(opts...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestALongMessageIsCutAndStaysText(t *testing.T) {
	r := ruled(t, owned(), fmt.Sprintf("package operator.site\ndeny contains %q", strings.Repeat("é", 5000)))
	if len(r.Denials) != 1 || len(r.Denials[0].Says) > 1010 || !strings.HasSuffix(r.Denials[0].Says, "é...") {
		t.Errorf("%d denials, error %q", len(r.Denials), r.Error)
	}
}

func TestTheDeadlineIsTheOperatorsAndTheContextTheCallers(t *testing.T) {
	p := newPolicy(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := p.Rule(ctx, owned()); r.Allow || r.Error == "" {
		t.Errorf("an ended context was ruled on: %+v", r)
	}
	start := time.Now()
	r := ruled(t, owned(), "package operator.site\nd := {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}\n"+
		"deny contains \"x\" if { some a in d; some b in d; some c in d; some e in d; some f in d; some g in d; a+b+c+e+f+g == 0 }", policy.WithDeadline(5*time.Millisecond))
	if !strings.Contains(r.Error, "5ms") || time.Since(start) > 20*time.Second {
		t.Errorf("%q after %s", r.Error, time.Since(start))
	}
}

func TestTheDigestTellsEveryModuleThatRules(t *testing.T) {
	plain := newPolicy(t).Digest()
	a := policy.WithOperator("a.rego", []byte("package operator.a\ndeny contains \"x\" if input.bytes < 0"))
	seen := map[string]string{plain: "no operator"}
	for name, p := range map[string]*policy.Policy{
		"an operator":      newPolicy(t, a),
		"its text changed": newPolicy(t, policy.WithOperator("a.rego", []byte("package operator.a\ndeny contains \"x\" if input.bytes < 1"))),
		"its name changed": newPolicy(t, policy.WithOperator("b.rego", []byte("package operator.a\ndeny contains \"x\" if input.bytes < 0"))),
	} {
		if before, ok := seen[p.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, before)
		}
		seen[p.Digest()] = name
		if r := p.Rule(context.Background(), owned()); r.Digest != p.Digest() {
			t.Errorf("%s: the ruling has digest %q", name, r.Digest)
		}
	}
	if len(plain) != 64 || plain != newPolicy(t).Digest() {
		t.Errorf("digest %q", plain)
	}
}

func examples(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("examples/*/*.rego")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string][]byte{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		if sources[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if len(sources) < 4 {
		t.Fatalf("%d examples", len(sources))
	}
	return sources
}

func TestTheExamplesAreGoodPolicies(t *testing.T) {
	for file, source := range examples(t) {
		if problems := policy.Check(file, source); len(problems) > 0 {
			t.Error(problems)
		}
	}
}

func TestTheExamplesInARuling(t *testing.T) {
	var opts []policy.Option
	for file, source := range examples(t) {
		opts = append(opts, policy.WithOperator(file, source))
	}
	p := newPolicy(t, opts...)
	for name, row := range map[string]struct {
		change func(*core.Facts)
		says   string
		retry  bool
	}{
		"an ordinary Monday": {func(f *core.Facts) {}, "", false},
		"a protected host":   {func(f *core.Facts) { f.Target.Host = "db.prod.example.com" }, "db.prod.example.com is a protected host", false},
		"a Saturday":         {func(f *core.Facts) { f.Time = 1795864000 }, "no removals on weekends", true},
		"between the years":  {func(f *core.Facts) { f.Time = 1798500000 }, "no removals between the years", true},
		"held":               {func(f *core.Facts) { f.Labels = map[string]string{"hold": "alice"} }, "held by alice", true},
		"too large":          {func(f *core.Facts) { f.Bytes = 1 << 40 }, "1099511627776 bytes are more than the 53687091200 removed automatically", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := owned()
			f.Time = 1796000000 // 2026-11-30, a Monday
			row.change(&f)
			r := p.Rule(context.Background(), f)
			if row.says == "" {
				if !r.Allow {
					t.Errorf("%+v", r)
				}
				return
			}
			if len(r.Denials) != 1 || r.Denials[0].Says != row.says || r.Denials[0].Retry != row.retry || r.Allow {
				t.Errorf("%+v", r)
			}
		})
	}
}
