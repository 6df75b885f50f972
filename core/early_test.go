package core

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fit is a snapshot that nothing speaks against.
func fit() Snapshot {
	return Snapshot{JobID: "job-7", TaskID: "t-1", Trigger: Archive, Attempt: 1, At: 1_800_000_000, Hook: HookNone,
		Environment: &Environment{ID: "env-1", TaskID: "t-1"},
		Target: Target{Host: "127.0.0.1", Port: 2222, User: "dev", Fingerprint: "SHA256:abc", WorkdirRoot: "/srv/k",
			TaskDir: "/srv/k/tasks/fix-login", Enabled: true}}
}

// mine is what storage answers when the task owns its directory.
func mine() Ownership {
	return Ownership{TaskTerminal: true, OptInNow: On, Environment: &Environment{ID: "env-1", TaskID: "t-1"}}
}

// allowed is the one ruling that lets an attempt go on.
func allowed() Ruling { return Ruling{Allow: true, Passed: Barriers(), Digest: "d"} }

// upTo answers the questions of s in order and returns the step after them.
func upTo(t *testing.T, s Snapshot, answers ...Answer) (Step, Transcript) {
	t.Helper()
	var transcript Transcript
	for i, answer := range answers {
		ask, ok := Next(s, transcript).(Ask)
		if !ok {
			t.Fatalf("ended before answer %d: %#v", i+1, Next(s, transcript))
		}
		transcript = append(transcript, Exchange{ask.Query, answer})
	}
	return Next(s, transcript), transcript
}

// word says a step in a few words: question, outcome and its finer words.
func word(step Step) string {
	switch step := step.(type) {
	case Ask:
		return "ask " + QueryName(step.Query)
	case Withdraw:
		return "withdraw"
	case Done:
		switch o := step.Outcome.(type) {
		case Removed:
			return "removed"
		case Skipped:
			return "skipped " + string(o.Reason) + " " + string(o.Cause)
		case Failed:
			w := "failed " + string(o.Fault)
			if o.Final {
				w += " final"
			}
			return w
		}
	}
	return "nothing"
}

func TestWhatEndsAnAttemptBeforeTheHostIsReached(t *testing.T) {
	with := func(edit func(*Snapshot)) Snapshot { s := fit(); edit(&s); return s }
	own := func(edit func(*Ownership)) Ownership { o := mine(); edit(&o); return o }
	rule := func(edit func(*Ruling)) Ruling { r := allowed(); edit(&r); return r }
	for _, row := range []struct {
		name     string
		snapshot Snapshot
		answers  []Answer
		want     string
	}{
		{"nothing speaks against it", fit(), nil, "ask owner"},
		{"the zero snapshot", Snapshot{}, nil, "failed snapshot_invalid final"},
		{"the job snapshot could not be read", with(func(s *Snapshot) { s.Invalid = "duplicate key" }), nil, "failed snapshot_invalid final"},
		{"no task", with(func(s *Snapshot) { s.TaskID = "" }), nil, "failed snapshot_invalid final"},
		{"no job", with(func(s *Snapshot) { s.JobID = "" }), nil, "failed snapshot_invalid final"},
		{"attempt zero", with(func(s *Snapshot) { s.Attempt = 0 }), nil, "failed snapshot_invalid final"},
		{"a trigger that never reclaims", with(func(s *Snapshot) { s.Trigger = "workspace_delete" }), nil, "failed snapshot_invalid final"},
		{"an unknown trigger", with(func(s *Snapshot) { s.Trigger = "ARCHIVE" }), nil, "failed snapshot_invalid final"},
		{"opted out at launch", with(func(s *Snapshot) { s.Target.Enabled = false }), nil, "skipped disabled opt_out"},
		{"opted out at launch, begun", with(func(s *Snapshot) { s.Target.Enabled = false; s.Begun = true }), nil, "failed half_removed"},
		{"a begin was recorded: leftovers before ownership", with(func(s *Snapshot) { s.Begun = true }), nil, "ask rule"},
		{"un-archived", fit(), []Answer{own(func(o *Ownership) { o.TaskTerminal = false })}, "withdraw"},
		{"the zero ownership", fit(), []Answer{Ownership{}}, "withdraw"},
		{"opted out now", fit(), []Answer{own(func(o *Ownership) { o.OptInNow = Off })}, "skipped disabled opt_out"},
		{"an opt-in nobody knows", fit(), []Answer{own(func(o *Ownership) { o.OptInNow = "" })}, "skipped disabled opt_out"},
		{"a host that cannot tell the opt-in", fit(), []Answer{own(func(o *Ownership) { o.OptInNow = Unknown })}, "ask rule"},
		{"storage could not answer", fit(), []Answer{own(func(o *Ownership) { o.Error = "timeout" })}, "skipped shared owner_unknown"},
		{"another task's environment", fit(), []Answer{own(func(o *Ownership) { o.Environment.TaskID = "t-2" })}, "skipped shared owner_unknown"},
		{"no environment row on archive", fit(), []Answer{own(func(o *Ownership) { o.Environment = nil })}, "skipped shared owner_unknown"},
		{"a borrower", fit(), []Answer{own(func(o *Ownership) { o.Borrowers = []Borrower{{SessionID: "s", TaskID: "t-2", State: "IDLE"}} })}, "skipped shared borrower"},
		{"a path outside the root", with(func(s *Snapshot) { s.Target.TaskDir = "/srv/other/tasks/x" }), []Answer{mine()}, "failed path_refused final"},
		{"an empty path", with(func(s *Snapshot) { s.Target.TaskDir = "" }), []Answer{mine()}, "failed path_refused final"},
		{"a path with dots below ~", with(func(s *Snapshot) { s.Target.WorkdirRoot = "~"; s.Target.TaskDir = "/home/u/../tasks/x" }), []Answer{mine()}, "failed path_refused final"},
		{"a root that is no path", with(func(s *Snapshot) { s.Target.WorkdirRoot = "k" }), []Answer{mine()}, "failed path_refused final"},
		{"a root that needs the home directory", with(func(s *Snapshot) { s.Target.WorkdirRoot = "" }), []Answer{mine()}, "ask rule"},
		{"the hook did not run", with(func(s *Snapshot) { s.Hook = HookFailed }), []Answer{mine()}, "skipped probe_failed hook_not_run"},
		{"nobody said whether the hook ran", with(func(s *Snapshot) { s.Hook = "" }), []Answer{mine()}, "skipped probe_failed hook_not_run"},
		{"the policy allows", fit(), []Answer{mine(), allowed()}, "ask greet"},
		{"the zero ruling", fit(), []Answer{mine(), Ruling{}}, "failed policy_failed"},
		{"a ruling with an error", fit(), []Answer{mine(), rule(func(r *Ruling) { r.Error = "x.rego: broken" })}, "failed policy_failed"},
		{"a ruling that forgot a barrier", fit(), []Answer{mine(), rule(func(r *Ruling) { r.Passed = r.Passed[:2] })}, "failed policy_failed"},
		{"a ruling that allows and refuses", fit(), []Answer{mine(), rule(func(r *Ruling) { r.Refusals = []Refusal{{Barrier: "ownership"}} })}, "skipped shared owner_unknown"},
		{"the policy's opt-in barrier refuses", fit(), []Answer{mine(), Ruling{Refusals: []Refusal{{Barrier: "optin"}}}}, "skipped disabled opt_out"},
		{"the policy's path barrier refuses", fit(), []Answer{mine(), Ruling{Refusals: []Refusal{{Barrier: "pathshape"}}}}, "failed path_refused final"},
		{"a barrier nobody knows refuses", fit(), []Answer{mine(), Ruling{Refusals: []Refusal{{Barrier: "moon"}}}}, "failed policy_failed"},
		{"an operator's policy denies", fit(), []Answer{mine(), rule(func(r *Ruling) { r.Denials = []Denial{{Policy: "hold.rego", Says: "held"}} })}, "skipped disabled operator_policy"},
		{"an operator's policy holds", fit(), []Answer{mine(), rule(func(r *Ruling) { r.Denials = []Denial{{Policy: "freeze.rego", Says: "night", Retry: true}} })}, "failed policy_held"},
		{"one holds, one denies", fit(), []Answer{mine(), rule(func(r *Ruling) {
			r.Denials = []Denial{{Policy: "freeze.rego", Retry: true}, {Policy: "hold.rego"}}
		})}, "skipped disabled operator_policy"},
		{"no pin", fit(), []Answer{mine(), allowed(), Heard{Reply: NeverRan{Fault: NoPin}}}, "failed no_pin final"},
		{"another host key", fit(), []Answer{mine(), allowed(), Heard{Reply: NeverRan{Fault: HostKeyMismatch}}}, "failed host_key_mismatch"},
		{"login refused", fit(), []Answer{mine(), allowed(), Heard{Reply: NeverRan{Fault: AuthFailed}}}, "failed auth_failed"},
		{"unreachable", fit(), []Answer{mine(), allowed(), Heard{Reply: NeverRan{Fault: Unreachable}}}, "failed unreachable"},
		{"a refusal nobody knows", fit(), []Answer{mine(), allowed(), Heard{Reply: NeverRan{Fault: "odd"}}}, "failed unreachable"},
		{"lost while greeting", fit(), []Answer{mine(), allowed(), Heard{Reply: Unclear{Doubt: ConnectionLost}}}, "failed lost"},
		{"greeting unframed", fit(), []Answer{mine(), allowed(), Heard{Reply: Unclear{Doubt: Unframed}}}, "skipped probe_failed unframed"},
		{"greeting too long", fit(), []Answer{mine(), allowed(), Heard{Reply: Unclear{Doubt: LimitReached}}}, "skipped probe_failed probe_timeout"},
		{"greeting flooded", fit(), []Answer{mine(), allowed(), Heard{Reply: Unclear{Doubt: Flooded}}}, "skipped probe_failed probe_error"},
		{"a doubt nobody knows", fit(), []Answer{mine(), allowed(), Heard{Reply: Unclear{}}}, "skipped probe_failed probe_error"},
		{"no reply at all", fit(), []Answer{mine(), allowed(), Heard{}}, "skipped probe_failed probe_error"},
		{"an empty greeting with exit 0", fit(), []Answer{mine(), allowed(), Heard{Reply: Said{}}}, "skipped probe_failed probe_error"},
		{"unframed after a begin is never a skip", with(func(s *Snapshot) { s.Begun = true }), []Answer{allowed(), Heard{Reply: Unclear{Doubt: Unframed}}}, "failed half_removed"},
		{"empty after a begin is never a skip", with(func(s *Snapshot) { s.Begun = true }), []Answer{allowed(), Heard{Reply: Said{}}}, "failed half_removed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			step, transcript := upTo(t, row.snapshot, row.answers...)
			if got := word(step); got != row.want {
				t.Errorf("got %q, want %q: %#v", got, row.want, step)
			}
			roundTrips(t, row.snapshot, transcript)
		})
	}
}

// roundTrips proves that a record reads back as it was written, where it can be
// written at all.
func roundTrips(t *testing.T, s Snapshot, transcript Transcript) {
	t.Helper()
	record := NewRecord(s, transcript)
	raw, err := json.Marshal(record)
	if err != nil {
		for _, e := range transcript {
			if h, ok := e.Answer.(Heard); ok && h.Reply == nil {
				return
			}
		}
		t.Fatal(err)
	}
	again, err := ParseRecord(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Conclude(record.Snapshot, record.Transcript), Conclude(again.Snapshot, again.Transcript)); diff != "" {
		t.Errorf("the record decides otherwise when read back:\n%s", diff)
	}
	if second, err := json.Marshal(again); err != nil || string(second) != string(raw) {
		t.Errorf("written again it differs: %v\n%s\n%s", err, raw, second)
	}
}

// Nobody of ours saw a directory go that was kept and then removed by hand, so a
// begin must not outlive the skip that ended it.
func TestAC_D4_ASkipEndsTheBeginBeforeIt(t *testing.T) {
	target := fit().Target
	raw, err := json.Marshal(map[string]any{"ssh_task_dirs": []Target{target}})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := ParseJobSnapshot(raw)
	if err != nil {
		t.Fatal(err)
	}
	if snapshot, err = snapshot.WithBegun(Begin{Target: target, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		outcome Outcome
		begun   int
	}{
		"kept":    {skip(Finding{Reason: ProbeFailed, Cause: ChangedMeanwhile, Detail: "changed"}), 0},
		"failed":  {fail(Lost, "cut off"), 1},
		"removed": {Removed{Detail: "gone"}, 1},
	} {
		after, err := snapshot.WithOutcome(target, row.outcome)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseJobSnapshot(after.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Targets()[0].Begun; got != row.begun {
			t.Errorf("%s: begun is %d, want %d: %s", name, got, row.begun, after.Bytes())
		}
	}
}

// A refused path says which part of it is wrong, and what to do about that part.
func TestARefusedPathSaysWhichPartIsWrong(t *testing.T) {
	for _, c := range []struct{ root, dir, says string }{
		{"kandev", "/home/dev/kandev/tasks/x", "the workdir root is wrong"},
		{"/", "/tasks/x", "the workdir root is wrong"},
		{"/srv/../k", "/srv/k/tasks/x", "the workdir root is wrong"},
		{"/srv/k", "/srv/other/tasks/x", "directly below"},
		{"/srv/k", "/srv/k/tasks/x/y", "directly below"},
		{"/srv/k", "tasks/x", "directly below"},
		{"/srv/k", "/srv/k/tasks/.reclaim-0", "name is none"},
		{"/srv/k", "/srv/k/tasks/" + strings.Repeat("x", 256), "name is none"},
	} {
		s := Snapshot{JobID: "j", TaskID: "t-1", Trigger: Archive, Attempt: 1, At: 1, Hook: HookNone, Target: Target{Host: "h", Fingerprint: "SHA256:x", WorkdirRoot: c.root, TaskDir: c.dir, Enabled: true}}
		s.Environment = &Environment{ID: "e", TaskID: "t-1"}
		mine := Ownership{TaskTerminal: true, OptInNow: On, Environment: s.Environment}
		ask, is := Next(s, nil).(Ask)
		if !is {
			t.Fatalf("%+v", Next(s, nil))
		}
		done, is := Next(s, Transcript{{ask.Query, mine}}).(Done)
		failed, failedIs := done.Outcome.(Failed)
		if !is || !failedIs || failed.Fault != PathRefused || len(failed.Cure) != 1 || !strings.Contains(failed.Cure[0].What, c.says) {
			t.Errorf("%s in %s: %+v", c.dir, c.root, done.Outcome)
		}
	}
}
