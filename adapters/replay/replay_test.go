package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
)

// told is one exchange as a person reads it.
func told(e core.Exchange) replay.Chapter {
	return replay.Tell(core.Record{Transcript: core.Transcript{e}}).Chapters[0]
}

// Whatever a host said, something is told of it; and only what is safe is told to
// be.
func TestEveryRecordedInventoryIsTold(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/transcripts/*.json")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	safe := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var fixture struct {
			Body []string `json:"body"`
		}
		if err := json.Unmarshal(raw, &fixture); err != nil {
			t.Fatal(file, err)
		}
		body := strings.Join(fixture.Body, "\n")
		q := core.Inventory{Root: "/srv/lab", Segment: "task-7"}
		evidence := q.Judge(core.Said{Body: body})
		c := told(core.Exchange{Query: q, Answer: core.Heard{Reply: core.Said{Body: body}}})
		if evidence.Safe() {
			safe++
		}
		for _, says := range c.Answer {
			if says[0] >= 'a' && says[0] <= 'z' || !strings.HasSuffix(says, ".") {
				t.Errorf("%s: %q is no sentence", file, says)
			}
		}
		if says := c.Answer[0] == "Nothing would be lost."; says != evidence.Safe() || !says && len(c.Findings) == 0 {
			t.Errorf("%s: %q with %d findings, and it is safe: %v", file, c.Answer, len(c.Findings), evidence.Safe())
		}
	}
	if safe < 40 {
		t.Errorf("only %d were safe", safe)
	}
}

func TestALookAtADirectoryAloneIsNotToldAsAnEndedTask(t *testing.T) {
	looked := strings.Join(replay.Tell(core.Record{Snapshot: core.Snapshot{JobID: "inspect", TaskID: "inspect", Attempt: 1, Target: core.Target{Enabled: true}}}).Opening, " ")
	if strings.Contains(looked, "ended (") || !strings.HasPrefix(looked, "Only the directory was asked about: ") || !strings.Contains(looked, "Attempt 1 of job inspect") {
		t.Error(looked)
	}
}

func TestEachAnswerIsToldInSentences(t *testing.T) {
	owner, rule := core.Owner{TaskID: "t-1"}, core.Rule{}
	for _, c := range []struct {
		query  core.Query
		answer core.Answer
		says   string
	}{
		{owner, core.Ownership{Error: "the database is locked"}, "Storage could not answer: the database is locked."},
		{owner, core.Ownership{}, `The task has not ended: it was taken up again. Whether the profile's switch is on now: "". There is no environment row. No other task is near.`},
		{owner, core.Ownership{TaskTerminal: true, OptInNow: core.Off, Environment: &core.Environment{ID: "e", TaskID: "t-1"},
			Borrowers: []core.Borrower{{SessionID: "s", TaskID: "t-2", State: "RUNNING"}, {SessionID: "s3", TaskID: "t-3", State: "DONE", TaskTerminal: true}}},
			"The task has ended. The profile's switch is off now. Environment e belongs to task t-1. Session s (RUNNING) of task t-2 runs in it; that task goes on. Session s3 (DONE) of task t-3 runs in it; that task has ended."},
		{owner, core.Ownership{TaskTerminal: true, OptInNow: core.On, Claims: []core.Claim{
			{TaskID: "t-4", Host: "h", TaskDir: "/d", TaskTerminal: true, Stopped: true, OptedIn: true}, {TaskID: "t-5", Unreadable: true}}},
			"The task has ended. The profile's switch is on. There is no environment row. Task t-4 has run in /d on h; that task has ended, was stopped, had opted in, is not being cleaned up. What task t-5 ran in cannot be read."},
		{rule, core.Ruling{Error: "it took too long"}, "The policy could not rule: it took too long."},
		{rule, core.Ruling{}, "No, and no reason is given."},
		{rule, core.Ruling{Allow: true, Passed: []string{"optin", "ownership"}}, "Yes. Barriers passed: optin, ownership."},
		{rule, core.Ruling{Refusals: []core.Refusal{{Barrier: "optin", Rule: "now", Says: "it is off"}}}, "The barrier optin refuses by its rule now: it is off."},
		{rule, core.Ruling{Denials: []core.Denial{{Policy: "freeze", Says: "not on Fridays!"}, {Policy: "hold", Says: "wait", Retry: true}}},
			"The operator's policy freeze denies it: not on Fridays! The operator's policy hold holds it: wait."},
		{core.Begin{}, core.Begun{Ending: core.BeginWithdrawn}, "Storage: withdrawn."},
		{core.Begin{}, core.Begun{Ending: core.BeginFailed, Detail: "no row"}, "Storage: failed: no row."},
		{core.Greet{}, core.Heard{Reply: core.NeverRan{Fault: core.NoPin, Detail: "no key"}}, "It was never asked (no_pin): no key."},
		{core.Remove{}, core.Heard{Reply: core.Unclear{Doubt: core.ConnectionLost, Detail: "cut"}}, "No clear answer (lost): cut."},
		{core.Greet{}, core.Heard{}, "Nothing was recorded."},
		{core.Greet{}, nil, "Nothing was recorded."},
	} {
		if got := strings.Join(told(core.Exchange{Query: c.query, Answer: c.answer}).Answer, " "); got != c.says {
			t.Errorf("%T\n got %s\nwant %s", c.answer, got, c.says)
		}
	}
}

// Whatever script was asked, an answer that proves nothing is told as none.
func TestAnAnswerThatSaysNothingIsNotToldAsAYes(t *testing.T) {
	for _, q := range []core.Query{core.Greet{}, core.Settle{}, core.Inventory{}, core.Remove{}} {
		c := told(core.Exchange{Query: q, Answer: core.Heard{Reply: core.Said{Exit: 3}}})
		text := strings.Join(c.Answer, " ")
		if !strings.HasSuffix(text, "The script ended with status 3.") {
			t.Errorf("%T: %s", q, text)
		}
		for _, yes := range []string{"Nothing would be lost", "removed to its end", "back under its name", "Nothing is left"} {
			if strings.Contains(text, yes) {
				t.Errorf("%T: %s", q, text)
			}
		}
	}
}

type rules func(core.Facts) core.Ruling

func (r rules) Rule(_ context.Context, f core.Facts) core.Ruling { return r(f) }
func (rules) Digest() string                                     { return "" }

func TestDriftTellsOnlyWhatIsRuledOtherwise(t *testing.T) {
	passed := core.Ruling{Allow: true, Passed: core.Barriers()}
	refused := core.Ruling{Passed: []string{"optin"}, Refusals: []core.Refusal{{Barrier: "ownership", Rule: "claims", Says: "x"}}}
	ask := func(r core.Ruling) core.Transcript {
		return core.Transcript{{Query: core.Rule{Facts: core.Facts{Moment: core.RemoveNow}}, Answer: r}}
	}
	for _, c := range []struct {
		was, now core.Ruling
		says     string
	}{
		{passed, passed, ""},
		{passed, core.Ruling{Allow: true, Passed: core.Barriers(), Digest: "another"}, ""},
		{passed, refused, "[at remove: passed [optin ownership pathshape], and today passed [optin], refused [ownership/claims]]"},
		{refused, passed, "[at remove: passed [optin], refused [ownership/claims], and today passed [optin ownership pathshape]]"},
		{passed, core.Ruling{Error: "broken"}, "[at remove: passed [optin ownership pathshape], and today broken]"},
		{core.Ruling{Error: "broken"}, passed, ""}, // nothing was ruled
	} {
		got := replay.Drift(t.Context(), rules(func(core.Facts) core.Ruling { return c.now }), ask(c.was))
		if text := fmt.Sprint(got); c.says == "" && len(got) > 0 || c.says != "" && text != c.says {
			t.Errorf("%s, want %s", text, c.says)
		}
	}
}

func TestBytesAreForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 30: "1.0 GiB", 1 << 50: "1024.0 TiB"} {
		if got := replay.Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
