package core

import (
	"encoding/json"
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
