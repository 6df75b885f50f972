package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kandev/reclaim/core"
)

// recorded makes an attempt that ends without a host, and returns its record.
func recorded(t *testing.T, change func(map[string]any)) string {
	t.Helper()
	m := newMachine(t)
	m.writeCase(t, change)
	path := filepath.Join(m.home, "record.json")
	if got := call(t, "attempt", m.caseFile, "--local", "--record", path); got.status == exitUsage {
		t.Fatalf("%+v", got)
	}
	return path
}

func optedOut(c map[string]any) { c["ownership"].(map[string]any)["opt_in_now"] = "off" }

func TestAReplayTellsEveryTamperedRecord(t *testing.T) {
	path := recorded(t, optedOut)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, "replay", path); got.status != exitDone || !strings.HasPrefix(got.stdout, "the same") {
		t.Fatalf("untouched: %+v", got)
	}
	for name, test := range map[string]struct {
		old, new string
		status   int
		says     string
	}{
		"another outcome":    {`"outcome": "skipped"`, `"outcome": "removed"`, exitFailed, "the record says removed, disabled (opt_out), the replay skipped"},
		"another reason":     {`"reason": "disabled"`, `"reason": "shared"`, exitFailed, "the record says skipped, shared"},
		"another cause":      {`"cause": "opt_out"`, `"cause": "operator_policy"`, exitFailed, "operator_policy"},
		"a fault":            {`"fault": ""`, `"fault": "lost"`, exitFailed, "lost"},
		"final":              {`"final": false`, `"final": true`, exitFailed, "final"},
		"other words":        {`"detail": "the executor`, `"detail": "somebody's executor`, exitFailed, "the record's own words"},
		"another answer":     {`"opt_in_now": "off"`, `"opt_in_now": "on"`, exitFailed, "the replay cancelled"},
		"another task":       {`"task_id": "t-1",` + "\n    \"trigger\"", `"task_id": "t-2",` + "\n    \"trigger\"", exitFailed, "diverges"},
		"a question unknown": {`"ask": "owner"`, `"ask": "oracle"`, exitUsage, `"oracle"`},
		"a key unknown":      {`"core":`, `"kore":`, exitUsage, `"kore"`},
		"a key twice":        {`"opt_in_now": "off"`, `"opt_in_now": "off", "opt_in_now": "on"`, exitUsage, "stands twice"},
		"a key in capitals":  {`"opt_in_now": "off"`, `"Opt_In_Now": "off"`, exitUsage, `"transcript[0].answer.Opt_In_Now" is unknown`},
		"cut off":            {"\n}\n", "", exitUsage, "not a record"},
		"a newer version":    {`"version": 1`, `"version": 2`, exitUsage, "version 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(string(whole), test.old) {
				t.Fatalf("the record has no %s:\n%s", test.old, whole)
			}
			file := filepath.Join(t.TempDir(), "record.json")
			write(t, file, strings.Replace(string(whole), test.old, test.new, 1))
			got := call(t, "replay", file)
			if said := strings.Join(strings.Fields(got.stdout+got.stderr), " "); got.status != test.status || !strings.Contains(said, test.says) {
				t.Errorf("exit %d, %s; want exit %d and %q", got.status, said, test.status, test.says)
			}
			if asJSON := call(t, "replay", file, "--json"); asJSON.status != test.status || !json.Valid([]byte(asJSON.stdout)) {
				t.Errorf("--json: exit %d, %s", asJSON.status, asJSON.stdout)
			}
		})
	}
}

func TestOneRecordThatDiffersIsEnough(t *testing.T) {
	same := recorded(t, optedOut)
	raw, err := os.ReadFile(same)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	write(t, other, strings.Replace(string(raw), `"outcome": "skipped"`, `"outcome": "removed"`, 1))
	if got := call(t, "replay", same, other, same); got.status != exitFailed || strings.Count(got.stdout, "the same") != 2 {
		t.Errorf("%+v", got)
	}
}

func TestAReplayReportsThePolicysDriftAndStaysTheSame(t *testing.T) {
	path := recorded(t, func(c map[string]any) { c["target"].(map[string]any)["workdir_root"] = "~/elsewhere" })
	record, err := readRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	for i, e := range record.Transcript {
		if ruling, is := e.Answer.(core.Ruling); is {
			// As if an older policy had passed one barrier under another name for its rule.
			ruling.Passed = append([]string{"seal"}, ruling.Passed...)
			record.Transcript[i].Answer, changed = ruling, true
		}
	}
	if !changed {
		t.Fatalf("nothing was ruled: %+v", record.Result)
	}
	raw, err := encodeRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(raw))
	got := call(t, "replay", path)
	if got.status != exitDone || !strings.Contains(got.stdout, "today's policy rules otherwise: at connect") {
		t.Errorf("%+v", got)
	}
}
