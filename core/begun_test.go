package core

import (
	"encoding/json"
	"strings"
	"testing"
)

// A removal that was sent and of which nobody heard again may still come: the
// begin that it belongs to must not be ended by a skip before its time has passed.
func TestAC_D5_ASkipEndsABeginOnlyWhenNothingOfItsRemovalCanFollow(t *testing.T) {
	const clock = 1700000000 // of greets
	for name, row := range map[string]struct {
		until   int64
		answers []Answer
		want    string
	}{
		"its removal may start now":             {clock, nil, "failed busy"},
		"its removal may start later":           {clock + 900, nil, "failed busy"},
		"its time has passed":                   {clock - 1, nil, "skipped shared owner_unknown"},
		"no time was recorded":                  {0, nil, "skipped shared owner_unknown"},
		"an un-archive withdraws all the same":  {clock + 900, []Answer{allowed(), greets("directory", "none"), Ownership{}}, "withdraw"},
		"gone is gone":                          {clock + 900, []Answer{allowed(), greets("absent", "none")}, "removed"},
		"denied before anything was put right":  {0, []Answer{Ruling{Allow: true, Passed: Barriers(), Denials: []Denial{{Policy: "hold.rego", Says: "held"}}}}, "failed half_removed"},
		"refused before anything was put right": {0, []Answer{Ruling{Refusals: []Refusal{{Barrier: "ownership"}}}}, "failed half_removed"},
	} {
		s := lab()
		s.Begun, s.BegunUntil = true, row.until
		if row.answers == nil {
			row.answers = []Answer{allowed(), greets("directory", "none"), Ownership{Error: "timeout"}}
		}
		if step, _ := upTo(t, s, row.answers...); word(step) != row.want {
			t.Errorf("%s: %s, want %s", name, word(step), row.want)
		}
	}
}

// What an earlier attempt kept may be removed by a later one of the same job,
// and an un-archive must then see the begin and not the old verdict.
func TestAC_D11_ABeginTakesTheSkipOfAnEarlierAttemptAway(t *testing.T) {
	target := lab().Target
	raw, err := json.Marshal(map[string]any{"ssh_task_dirs": []Target{target}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseJobSnapshot(raw)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.WithOutcome(target, skip(Finding{Reason: Shared, Cause: Claimed, Detail: "another task", Cure: []Remedy{{What: "wait"}}})); err != nil {
		t.Fatal(err)
	}
	if s, err = s.WithBegun(Begin{Target: target, Attempt: 2, NotAfter: 77}); err != nil {
		t.Fatal(err)
	}
	got := s.Targets()[0]
	if got.Settled() || !s.Removing() || got.Outcome != "" || got.Reason != "" || got.Cause != "" || got.Detail != "" || len(got.Cure) != 0 || got.Begun != 2 || got.BegunUntil != 77 {
		t.Errorf("%+v in %s", got, s.Bytes())
	}
	// A later begin does not let an earlier removal start any less late.
	if s, err = s.WithBegun(Begin{Target: target, Attempt: 3, NotAfter: 70}); err != nil {
		t.Fatal(err)
	}
	if got := s.Targets()[0]; got.Begun != 3 || got.BegunUntil != 77 {
		t.Errorf("%+v", got)
	}
	if s, err = s.WithOutcome(target, skip(Finding{Reason: Shared, Cause: Claimed, Detail: "another task"})); err != nil {
		t.Fatal(err)
	}
	if got := s.Targets()[0]; got.Begun != 0 || got.BegunUntil != 0 || s.Removing() {
		t.Errorf("%+v in %s", got, s.Bytes())
	}
}

// Whoever writes to the row while an attempt runs takes the ground from under
// it: a begin must then not be recorded, and never be said to be.
func TestAC_D11_ABeginIsRefusedWhereTheRowSaysAnotherThingNow(t *testing.T) {
	const row = `{"ssh_task_dirs":[{"host":"h","port":22,"user":"dev","host_fingerprint":"SHA256:a","workdir_root":"/r","task_dir":"/r/tasks/s","enabled":true}]}`
	frozen, err := ParseJobSnapshot([]byte(row))
	if err != nil {
		t.Fatal(err)
	}
	begin := Begin{JobID: "j", TaskID: "t", Attempt: 2, Target: frozen.Targets()[0].Target, NotAfter: 9}
	if begun, err := frozen.WithBegun(begin); err != nil || begun.Targets()[0].Begun != 2 {
		t.Fatalf("%v %s", err, begun.Bytes())
	}
	for what, edit := range map[string][2]string{
		"opted out":                  {`"enabled":true`, `"enabled":false`},
		"opted out by a second":      {`"enabled":true}`, `"enabled":true},{"host":"h","user":"dev","task_dir":"/r/tasks/s/"}`},
		"another root":               {`"workdir_root":"/r"`, `"workdir_root":"/r/tasks/s"`},
		"another pin":                {`SHA256:a`, `SHA256:b`},
		"another way":                {`"user":"dev"`, `"user":"dev","proxy_jump":"bastion"`},
		"another directory":          {`/r/tasks/s`, `/r/tasks/other`},
		"another host":               {`"host":"h"`, `"host":"i"`},
		"no directory":               {`"ssh_task_dirs"`, `"other_dirs"`},
		"ours is no object":          {`"enabled":true`, `"enabled":true,"reclaim":"x"`},
		"ours is a list":             {`"enabled":true`, `"enabled":true,"reclaim":[]`},
		"a begin that is no attempt": {`"enabled":true`, `"enabled":true,"reclaim":{"begun":"x"}`},
		"a doubled key":              {`"enabled":true`, `"enabled":true,"enabled":true`},
		"a variant of a key":         {`"enabled":true`, `"enabled":true,"ENABLED":true`},
	} {
		raw := strings.Replace(row, edit[0], edit[1], 1)
		s, err := ParseJobSnapshot([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if after, err := s.WithBegun(begin); err == nil || string(after.Bytes()) != raw {
			t.Errorf("%s: %v\n%s", what, err, after.Bytes())
		}
	}
	// What does not decide where and whether is somebody else's to write.
	s, err := ParseJobSnapshot([]byte(strings.Replace(row, `"enabled":true`, `"enabled":true,"theirs":{"x":1},"detail":"d"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if begun, err := s.WithBegun(begin); err != nil || begun.Targets()[0].Begun != 2 {
		t.Errorf("%v %s", err, begun.Bytes())
	}
}
