package policy_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/core/taskpath"
	"github.com/kandev/reclaim/policy"
)

// The barriers in Go, put together from what core decides with.

func putOff(f core.Facts) bool { return f.Moment == core.Connect && f.Job.Begun && f.Ownership == nil }

func goOptIn(f core.Facts) string {
	switch {
	case !f.Target.Enabled:
		return "not enabled at launch"
	case putOff(f), f.OptInNow == core.On, f.OptInNow == core.Unknown:
		return ""
	}
	return "not on now"
}

func goOwnership(f core.Facts) string {
	if putOff(f) {
		return ""
	}
	if f.Ownership == nil {
		return "storage was not asked"
	}
	answer := *f.Ownership
	answer.OptInNow = core.On // the other barrier's
	s := core.Snapshot{TaskID: f.Job.TaskID, Trigger: f.Job.Trigger, Environment: f.Job.Environment, Target: f.Target}
	switch end := core.JudgeOwnership(s, answer).(type) {
	case nil:
		return ""
	case core.Done:
		switch o := end.Outcome.(type) {
		case core.Skipped:
			return o.Detail
		case core.Failed:
			return o.Detail
		}
	case core.Withdraw:
		return end.Detail
	}
	return "no such end"
}

func goPathShape(f core.Facts) string {
	root, err := taskpath.ParseRoot(f.Path.Root, f.Path.Home)
	if err == nil {
		_, err = taskpath.Parse(root, f.Path.Dir)
	}
	switch {
	case f.Moment != core.Connect && f.Path.Home == "":
		return "the home directory is not known"
	case errors.Is(err, taskpath.ErrNeedsHome):
		_, err = taskpath.LastSegment(f.Path.Dir)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// whyNot is the Go barriers' word on the facts, by barrier; a barrier that
// passed is not in it.
func whyNot(f core.Facts) map[string]string {
	why := map[string]string{}
	for name, barrier := range map[string]func(core.Facts) string{"optin": goOptIn, "ownership": goOwnership, "pathshape": goPathShape} {
		if says := barrier(f); says != "" {
			why[name] = says
		}
	}
	return why
}

// disagreement compares a ruling with the Go barriers, one by one.
func disagreement(f core.Facts, r core.Ruling) string {
	why := whyNot(f)
	var bad []string
	if r.Error != "" {
		bad = append(bad, "the policy could not rule: "+r.Error)
	}
	for _, barrier := range core.Barriers() {
		_, refused := why[barrier]
		if passed := slices.Contains(r.Passed, barrier); passed == refused {
			bad = append(bad, fmt.Sprintf("%s: Go says %q, Rego says passed=%t, %v", barrier, why[barrier], passed, r.Refusals))
		}
		told := slices.ContainsFunc(r.Refusals, func(x core.Refusal) bool { return x.Barrier == barrier })
		if told != refused {
			bad = append(bad, fmt.Sprintf("%s: Go says %q, Rego tells %v", barrier, why[barrier], r.Refusals))
		}
	}
	known := f.Moment == core.Connect || f.Moment == core.RemoveNow
	if want := known && len(why) == 0; r.Allow != want {
		bad = append(bad, fmt.Sprintf("allow is %t, Go says %v", r.Allow, why))
	}
	return strings.Join(bad, "\n")
}

// owned is facts that every barrier lets pass.
func owned() core.Facts {
	environment := core.Environment{ID: "env-1", TaskID: "t-1"}
	return core.Facts{
		Moment: core.RemoveNow,
		Job:    core.JobFacts{ID: "job-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, Environment: &environment},
		Target: core.Target{Host: "build.example", Port: 22, User: "dev", Fingerprint: "SHA256:aaa", WorkdirRoot: "~/.kandev",
			TaskDir: "/home/dev/.kandev/tasks/fix-login", Enabled: true},
		OptInNow:  core.On,
		Ownership: &core.Ownership{TaskTerminal: true, OptInNow: core.On, Environment: &environment},
		Path:      core.PathFacts{Root: "~/.kandev", Home: "/home/dev", Dir: "/home/dev/.kandev/tasks/fix-login"},
		Time:      1796000000, Bytes: 1 << 20, Entries: 100,
	}
}

// Generators, biased to the borders: mostly what passes, one or two things odd.

var words = []string{"t-1", "t-1", "t-1", "t-2", "", " ", "T-1", " t-1", "t-1\x00", "\u00a0"}

var hosts = []string{"build.example", "build.example", "Build.Example", "build.example.", "BUILD.EXAMPLE..", "other.example", "", " ", ".", "localhost",
	"LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "10.0.0.1", "2001:db8::7", "2001:DB8:0:0::7",
	"[2001:db8::7]", "2001:db8::70", "ſervice", "SERVICE", "K", "k", "İ", "i", "\xff", "a\x00b", "127.", "12.7.0.0.1", ":", "::"}

var pins = []string{"SHA256:aaa", "SHA256:aaa", "SHA256:aaa=", " SHA256:aaa", "SHA256:bbb", "", "", " ", "="}

var segments = []string{"fix-login", "fix-login", "Fix-Login", "fix-login2", "fix-logi", "", ".", "..", "...", "a..b", ".reclaim-x", ".Reclaim-x", ".reclaim", " ", "\t", "\x7f", "\x1f",
	"\u0080", "é", "e\u0301", "日本", "ſ", "S", "tasks", "~", "$HOME", "-rf", "*", "a b", "\xff\xfe", "\u202e", "\u2028", strings.Repeat("x", 255), strings.Repeat("x", 256),
	strings.Repeat("é", 127), strings.Repeat("é", 128), "\\", "\"", "\n", "{{", "dev", "home"}

var slashes = []string{"/", "/", "/", "/", "/", "//", "///", "/./", "/../", ""}

func path(t *rapid.T, label, base string) string {
	slash := rapid.SampledFrom(slashes)
	segment := rapid.SampledFrom(segments)
	switch rapid.IntRange(0, 8).Draw(t, label) {
	case 0, 1, 2:
		return base + "/tasks/fix-login"
	case 3:
		return base + "/tasks/" + segment.Draw(t, label+" segment")
	case 4:
		return base + slash.Draw(t, label+" 1") + "tasks" + slash.Draw(t, label+" 2") + segment.Draw(t, label+" segment") + rapid.SampledFrom([]string{"", "/", "//", "/.", "/api"}).Draw(t, label+" end")
	case 5:
		return rapid.SampledFrom([]string{"", "/", "//", "~", "~/", "/home", "/home/dev", "/HOME/dev", base, base + "/tasks", base + "/tasks/", base + "/", "home/dev", ".", "..", " ", "/tasks",
			"/tasks/fix-login", "~/.kandev/tasks/fix-login", "~/.kandev/tasks", "~/.kandev/tasks/other", "$HOME/x", "~dev", "~dev/x/tasks", "../fix-login", "fix-login", "tasks/fix-login"}).Draw(t, label+" whole")
	case 6:
		return "/mnt" + slash.Draw(t, label+" 1") + segment.Draw(t, label+" a") + slash.Draw(t, label+" 2") + segment.Draw(t, label+" b")
	case 7:
		return base + "/tasks/" + strings.Repeat("y/", rapid.SampledFrom([]int{0, 1, 1980, 1984, 1985, 1986, 1987, 1988, 1989, 1990, 2000}).Draw(t, label+" long")) + segment.Draw(t, label+" segment")
	}
	var b strings.Builder
	for range rapid.IntRange(0, 6).Draw(t, label+" parts") {
		b.WriteString(slash.Draw(t, label+" s"))
		b.WriteString(segment.Draw(t, label+" n"))
	}
	return b.String()
}

// mostly draws the usual value, and now and then one of others.
func mostly[V any](t *rapid.T, label string, usual V, others ...V) V {
	if rapid.IntRange(0, 9).Draw(t, label) < 7 {
		return usual
	}
	return rapid.SampledFrom(append(others, usual)).Draw(t, label+" odd")
}

func environmentOf(t *rapid.T, label string) *core.Environment {
	if mostly(t, label+" there", true, false) {
		return &core.Environment{ID: mostly(t, label+" id", "env-1", "", " ", "env-2", "ENV-1"), TaskID: mostly(t, label+" task", "t-1", words...)}
	}
	return nil
}

func anyFacts(t *rapid.T) core.Facts {
	base := mostly(t, "base", "/home/dev/.kandev", "/srv/k", "/", "", "/home/dev", "/home", "/home/dev/.kandev/", "//srv//k", "/srv/./k", "/srv/../k", "/home/dev/.kandev/tasks/fix-login")
	root := mostly(t, "root", "~/.kandev", "", " ", "~", "~/", "~//.kandev", base, base, base, base+"/", "~dev/.kandev", "$HOME/.kandev", "~/..", "~/.", "/", "//", "relative", "/home", "/a\nb",
		"/"+strings.Repeat("r", 3998), "/"+strings.Repeat("r", 3999), "/"+strings.Repeat("r", 4000), "~/"+strings.Repeat("r", 3990), "~/"+strings.Repeat("r", 3991))
	home := mostly(t, "home", "/home/dev", "", "/", "//home/dev/", "/home/dev/.kandev", "/home/dev/.kandev/tasks", "/home/dev/.kandev/tasks/fix-login", "/home/dev/.kandev/tasks/fix-login/x",
		"home/dev", "/home/./dev", "/home/../dev", "/home/d\tev", " ", "/home/dev2", "/Home/Dev", "/"+strings.Repeat("h", 3999), "/"+strings.Repeat("h", 4000), "/srv/k", "/srv", "/srv/k/tasks")
	f := core.Facts{
		Moment: mostly(t, "moment", core.RemoveNow, core.Connect, core.Connect, core.Connect, "", "Remove", "connect "),
		Job: core.JobFacts{ID: "job-1", TaskID: mostly(t, "task", "t-1", words...),
			Trigger: mostly(t, "trigger", core.Archive, core.Delete, core.CascadeArchive, core.CascadeDelete, core.Delete, "", "ARCHIVE", "archive ", "workspace_delete", "archive_reclaim"),
			Attempt: rapid.IntRange(0, 9).Draw(t, "attempt"), Begun: rapid.Bool().Draw(t, "begun"), Environment: environmentOf(t, "copy")},
		Target: core.Target{Host: mostly(t, "host", "build.example", hosts...), Port: mostly(t, "port", 22, 0, 2222, -1, 65536), Fingerprint: mostly(t, "pin", "SHA256:aaa", pins...),
			WorkdirRoot: root, TaskDir: mostly(t, "plain dir", "/home/dev/.kandev/tasks/fix-login", path(t, "dir", base)), Enabled: mostly(t, "enabled", true, false)},
		OptInNow: mostly(t, "now", core.On, core.Off, core.Unknown, "", "ON", "on ", "true"),
		Time:     rapid.Int64().Draw(t, "time"),
		Bytes:    rapid.Int64().Draw(t, "bytes"),
		Labels:   mostly(t, "labels", nil, map[string]string{"a": "b"}, map[string]string{}),
	}
	f.Path = core.PathFacts{Root: f.Target.WorkdirRoot, Home: home, Dir: f.Target.TaskDir}
	if mostly(t, "asked", true, false) {
		o := core.Ownership{TaskTerminal: mostly(t, "terminal", true, false), OptInNow: f.OptInNow, Environment: environmentOf(t, "live"), Error: mostly(t, "error", "", "", "disk I/O error", " ")}
		for range mostly(t, "borrowers", 0, 1, 2) {
			o.Borrowers = append(o.Borrowers, core.Borrower{SessionID: "s", TaskID: rapid.SampledFrom(words).Draw(t, "borrower"), State: "IDLE", TaskTerminal: mostly(t, "returned", true, false), Lender: rapid.SampledFrom([]string{"", "t-1", "t-2", " "}).Draw(t, "lender")})
		}
		for range rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, "claims") {
			ended := rapid.Bool().Draw(t, "ended")
			o.Claims = append(o.Claims, core.Claim{TaskID: mostly(t, "claimant", "t-2", words...), Host: rapid.SampledFrom(hosts).Draw(t, "claim host"), Port: rapid.SampledFrom([]int{0, 22, 22, 2222, -1}).Draw(t, "claim port"),
				User: "root", Fingerprint: rapid.SampledFrom(pins).Draw(t, "claim pin"), TaskDir: path(t, "claim dir", base), TaskTerminal: mostly(t, "claim terminal", ended, false, true),
				Stopped: mostly(t, "claim stopped", ended, false, true), OptedIn: mostly(t, "claim opted in", ended, false, true), CleanupOpen: mostly(t, "claim open", !ended, false, true),
				Unreadable: mostly(t, "unreadable", false, true)})
		}
		f.Ownership = &o
	}
	return f
}

func newPolicy(t testing.TB, opts ...policy.Option) *policy.Policy {
	t.Helper()
	p, err := policy.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checks runs a property often enough, whatever -rapid.checks says.
func checks(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	for name, value := range map[string]string{"rapid.checks": fmt.Sprint(n), "rapid.nofailfile": "true"} {
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		defer flag.Set(name, before)
	}
	rapid.Check(t, property)
}

func TestGoAndRegoDecideTheSame(t *testing.T) {
	t.Parallel() // the only such test that sets rapid's flags
	p := newPolicy(t)
	start, n, seen := time.Now(), 0, map[string]int{}
	checks(t, 20000, func(t *rapid.T) {
		f := anyFacts(t)
		r := p.Rule(context.Background(), f)
		if bad := disagreement(f, r); bad != "" {
			t.Fatalf("facts %+v\nownership %+v\n%s", f, f.Ownership, bad)
		}
		n++
		seen[fmt.Sprint(r.Passed)]++
	})
	t.Logf("%d facts, 0 disagreements, in %s; passed: %v", n, time.Since(start).Round(time.Millisecond), seen)
	for _, passed := range []string{"[]", "[optin]", "[ownership]", "[pathshape]", "[optin ownership]", "[optin pathshape]", "[ownership pathshape]", "[optin ownership pathshape]"} {
		if seen[passed] < n/200 {
			t.Errorf("only %d of %d facts passed exactly %s; the generator is one-sided", seen[passed], n, passed)
		}
	}
}

// Each barrier refuses by itself: with any one of the three replaced by a yes,
// the other two refuse what they refused before, and the ruling with them.
func TestWithAnyBarrierTakenAwayTheOtherTwoStillRefuse(t *testing.T) {
	without := map[string]*policy.Policy{}
	for _, barrier := range core.Barriers() {
		p, err := policy.Without(barrier)
		if err != nil {
			t.Fatal(err)
		}
		without[barrier] = p
	}
	alone := map[string]int{}
	checks(t, 1000, func(t *rapid.T) {
		f := anyFacts(t)
		f.Moment = mostly(t, "known moment", core.RemoveNow, core.Connect)
		why := whyNot(f)
		for barrier, p := range without {
			r := p.Rule(context.Background(), f)
			others := len(why)
			if why[barrier] != "" {
				others--
			}
			if r.Error != "" || r.Allow != (others == 0) {
				t.Fatalf("without %s: allow=%t, error %q, Go says %v; facts %+v", barrier, r.Allow, r.Error, why, f)
			}
			if others == 0 && len(why) == 1 {
				alone[barrier]++
			}
		}
	})
	for _, barrier := range core.Barriers() {
		if alone[barrier] < 20 {
			t.Errorf("only %d facts were refused by %s alone", alone[barrier], barrier)
		}
	}
}

func TestOwnedFactsAreAllowed(t *testing.T) {
	got := newPolicy(t).Rule(context.Background(), owned())
	want := core.Ruling{Allow: true, Passed: core.Barriers(), Digest: got.Digest}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestZeroFactsAreRefusedByEveryBarrier(t *testing.T) {
	got := newPolicy(t).Rule(context.Background(), core.Facts{})
	if got.Allow || got.Error != "" || len(got.Passed) > 0 {
		t.Errorf("got %+v", got)
	}
}

// With the other two replaced by a yes, each barrier refuses what it is there
// for, and nothing else.
func TestEachBarrierAloneRefuses(t *testing.T) {
	alone := map[string]*policy.Policy{}
	for _, barrier := range core.Barriers() {
		p, err := policy.Without(slices.DeleteFunc(core.Barriers(), func(b string) bool { return b == barrier })...)
		if err != nil {
			t.Fatal(err)
		}
		alone[barrier] = p
	}
	refused := map[string]int{}
	checks(t, 1000, func(t *rapid.T) {
		f := anyFacts(t)
		f.Moment = mostly(t, "known moment", core.RemoveNow, core.Connect)
		why := whyNot(f)
		for barrier, p := range alone {
			r := p.Rule(context.Background(), f)
			if r.Error != "" || r.Allow != (why[barrier] == "") {
				t.Fatalf("%s alone: allow=%t, error %q, Go says %v; facts %+v", barrier, r.Allow, r.Error, why, f)
			}
			if !r.Allow {
				refused[barrier]++
			}
		}
	})
	for _, barrier := range core.Barriers() {
		if refused[barrier] < 100 {
			t.Errorf("%s alone refused only %d facts", barrier, refused[barrier])
		}
	}
}
