package core

import (
	"encoding/json"
	"strings"
	"testing"
)

// D27 holds for records too: what two decoders could read in two ways is no
// record, wherever in it the key stands.
func TestAC_D27_ARecordWithADoubledKeyOrOneInAnotherCaseIsRefused(t *testing.T) {
	snapshot := fit()
	snapshot.Labels = map[string]string{"Team": "x", "team": "y", "\u017fite": "z"}
	raw, err := json.Marshal(NewRecord(snapshot, Transcript{{Query: Begin{JobID: "j", Target: snapshot.Target}, Answer: Begun{Ending: BeginRecorded}}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseRecord(raw); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	for name, row := range map[string]struct{ from, to, says string }{
		"twice at the top":        {`"version":`, `"version":1,"version":`, `"version" stands twice`},
		"twice below":             {`"enabled":true`, `"enabled":false,"enabled":true`, `"snapshot.target.enabled" stands twice`},
		"twice, one escaped":      {`"enabled":true`, `"enabled":false,"enable\u0064":true`, `"snapshot.target.enabled" stands twice`},
		"another case at the top": {`"core":`, `"Core":`, `"Core" is unknown`},
		"another case in a list":  {`"ask":"begin"`, `"Ask":"begin"`, `"transcript[0].Ask" is unknown`},
		"another case":            {`"enabled":true`, `"Enabled":true`, `"snapshot.target.Enabled" is unknown`},
		"beside its variant":      {`"enabled":true`, `"enabled":false,"ENABLED":true`, `"snapshot.target.ENABLED" is unknown`},
		"the long s":              {`"host":`, `"ho` + "\u017f" + `t":"evil","host":`, "is unknown"},
		"in the transcript":       {`"ending":"recorded"`, `"ending":"failed","ending":"recorded"`, `"transcript[0].answer.ending" stands twice`},
		"in another case there":   {`"ending":"recorded"`, `"Ending":"recorded"`, `"transcript[0].answer.Ending" is unknown`},
		"a label twice":           {`"team":"y"`, `"team":"y","team":"n"`, `"snapshot.labels.team" stands twice`},
		"an unknown key, plain":   {`"enabled":true`, `"enabeld":true`, "enabeld"},
		"a question asked twice":  {`"ask":"begin"`, `"ask":"owner","ask":"begin"`, `"transcript[0].ask" stands twice`},
	} {
		spoilt := strings.Replace(string(raw), row.from, row.to, 1)
		if spoilt == string(raw) {
			t.Fatalf("%s: nothing was changed in %s", name, raw)
		}
		if _, err := ParseRecord([]byte(spoilt)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The size decides nothing: it is told after an outcome, and one that cannot be
// read takes nothing away from the target.
func TestASnapshotRemembersHowLargeADirectoryWas(t *testing.T) {
	target := fit().Target
	raw, err := json.Marshal(map[string]any{"ssh_task_dirs": []Target{target}})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := ParseJobSnapshot(raw)
	if err != nil {
		t.Fatal(err)
	}
	if snapshot, err = snapshot.WithOutcome(target, skip(Finding{Reason: DirtyWorktree, Cause: Untracked})); err == nil {
		snapshot, err = snapshot.WithSize(target, 1<<40)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := snapshot.Targets()[0]; got.Result("t", "j", 1).Bytes != 1<<40 || got.Outcome != OutcomeSkipped {
		t.Errorf("%+v", got)
	}
	for _, odd := range []string{`-1`, `"x"`, `1.5`, `null`, `{}`} {
		spoilt, err := ParseJobSnapshot([]byte(strings.Replace(string(snapshot.Bytes()), `"bytes":1099511627776`, `"bytes":`+odd, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := spoilt.Targets()[0]; got.Bytes != 0 || got.Invalid != "" || got.Cause != Untracked {
			t.Errorf("%s: %+v", odd, got)
		}
	}
}
