package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// lab is a snapshot whose directory the recorded inventories speak of.
func lab() Snapshot {
	s := fit()
	s.Target.WorkdirRoot, s.Target.TaskDir = "/srv/lab", "/srv/lab/tasks/task-7"
	return s
}

func greets(target, holder string) Heard {
	return Heard{Reply: Said{Body: "reclaim 1 greet\nhome =/home/dev\nroot =/srv/lab\nplatform =Linux\ngit =2.39.5\nclock 1700000000\ntasks directory\ntarget " +
		target + "\nholder " + holder + " ~ ~\nend 8\n"}}
}

// good is the one answer to q that lets an attempt go on to a removal. It is
// written down here, not asked of the judge.
func good(q Query, inventory Said, found Holder) Answer {
	switch q := q.(type) {
	case Owner:
		return mine()
	case Rule:
		return allowed()
	case Greet:
		target := map[Holder]string{NoHolder: "directory", HolderEmpty: "directory", HolderQuarantined: "absent"}[found]
		return greets(target, string(found))
	case Settle:
		return Heard{Reply: Said{Body: "reclaim 1 settle\nabout " + about(q) + "\ntarget directory\nsettled " + string(q.Holder) + " ~ 0 0\nend 3\n"}}
	case Inventory:
		return Heard{Reply: inventory}
	case Begin:
		return Begun{Ending: BeginRecorded}
	case Remove:
		return Heard{Reply: Said{Body: "reclaim 1 remove\nabout " + about(q) + "\nrm 0\nfreed 4096 12\ntarget absent\nholder absent\nended gone ~\nend 6\n"}}
	}
	return nil
}

// bad are answers to q none of which may lead to a removal, whatever else says.
func bad(q Query, unsafe []Said) []Answer {
	heard := []Answer{nil, Heard{}, Heard{Reply: Said{}}, Heard{Reply: Said{Exit: 1}}, Heard{Reply: Said{Body: "\n"}}, Heard{Reply: Said{Body: "yes\n"}},
		Heard{Reply: Unclear{}}, Heard{Reply: Unclear{Doubt: ConnectionLost}}, Heard{Reply: Unclear{Doubt: LimitReached}}, Heard{Reply: Unclear{Doubt: Unframed}},
		Heard{Reply: Unclear{Doubt: Flooded}}, Heard{Reply: NeverRan{}}, Heard{Reply: NeverRan{Fault: HostKeyMismatch}}, Heard{Reply: NeverRan{Fault: Unreachable}}}
	switch q.(type) {
	case Owner:
		var all []Answer
		for _, edit := range []func(*Ownership){
			func(o *Ownership) { *o = Ownership{} }, func(o *Ownership) { o.TaskTerminal = false }, func(o *Ownership) { o.OptInNow = Off },
			func(o *Ownership) { o.OptInNow = "" }, func(o *Ownership) { o.OptInNow = "yes" }, func(o *Ownership) { o.Error = "timeout" },
			func(o *Ownership) { o.Environment.TaskID = "t-2" }, // a row that is gone is no fault after a delete: TestWhatEndsAnAttempt... has it for an archive
			func(o *Ownership) { o.Borrowers = []Borrower{{SessionID: "s", TaskID: "t-2", State: "RUNNING"}} },
			func(o *Ownership) {
				o.Claims = []Claim{{TaskID: "t-2", Host: "127.0.0.1", Port: 2222, TaskDir: "/srv/lab/tasks/task-7"}}
			},
			func(o *Ownership) { o.Claims = []Claim{{TaskID: "t-2", Unreadable: true}} },
		} {
			o := mine()
			edit(&o)
			all = append(all, o)
		}
		return append(all, allowed(), Begun{Ending: BeginRecorded}, nil)
	case Rule:
		var all []Answer
		for _, edit := range []func(*Ruling){
			func(r *Ruling) { *r = Ruling{} }, func(r *Ruling) { r.Allow = false }, func(r *Ruling) { r.Passed = nil }, func(r *Ruling) { r.Passed = r.Passed[1:] },
			func(r *Ruling) { r.Error = "broken" }, func(r *Ruling) { r.Refusals = []Refusal{{}} }, func(r *Ruling) { r.Denials = []Denial{{}} },
			func(r *Ruling) { r.Denials = []Denial{{Retry: true}} },
		} {
			r := allowed()
			edit(&r)
			all = append(all, r)
		}
		return append(all, mine(), nil)
	case Begin:
		return []Answer{Begun{}, Begun{Ending: BeginWithdrawn}, Begun{Ending: BeginHalted}, Begun{Ending: BeginFailed}, Begun{Ending: "done"}, mine(), nil}
	case Greet:
		return append(heard, greets("symlink", "none"), greets("other", "none"), greets("unreadable", "none"), greets("directory", "alive"), greets("directory", "contradictory"), greets("directory", ""))
	case Inventory:
		for _, said := range unsafe {
			heard = append(heard, Heard{Reply: said})
		}
	}
	return heard
}

// corpus is every recorded inventory, safe and not.
func corpus(t *testing.T) (safe, unsafe []Said) {
	for _, s := range scenarios(t) {
		switch said := answer(t, s.ID); {
		case s.Either:
		case s.Expect == "safe":
			safe = append(safe, said)
		case s.Expect == "skip":
			unsafe = append(unsafe, said)
		}
	}
	if len(safe) < 40 || len(unsafe) < 100 {
		t.Fatalf("%d safe and %d other inventories recorded", len(safe), len(unsafe))
	}
	return safe, unsafe
}

// walk answers an attempt's questions to its end. spoiled counts the answers
// that were not the good one.
func walk(t *rapid.T, s Snapshot, safe, unsafe []Said, spoil int) (transcript Transcript, spoiled int) {
	inventory := rapid.SampledFrom(safe).Draw(t, "inventory")
	found := rapid.SampledFrom([]Holder{NoHolder, NoHolder, NoHolder, HolderEmpty, HolderQuarantined}).Draw(t, "holder")
	at := -1
	if spoil > 0 {
		at = rapid.IntRange(0, 8).Draw(t, "spoilt question")
	}
	for n := 0; ; n++ {
		ask, ok := Next(s, transcript).(Ask)
		if !ok {
			return transcript, spoiled
		}
		if n > 12 {
			t.Fatalf("it does not end: %v", names(transcript))
		}
		given := good(ask.Query, inventory, found)
		if n == at {
			given = rapid.SampledFrom(bad(ask.Query, unsafe)).Draw(t, "bad answer")
			spoiled++
		}
		transcript = append(transcript, Exchange{ask.Query, given})
	}
}

func names(t Transcript) []string {
	var all []string
	for _, e := range t {
		all = append(all, QueryName(e.Query))
	}
	return all
}

func anyStart(t *rapid.T) Snapshot {
	s := lab()
	s.Begun = rapid.Bool().Draw(t, "begun")
	s.Hook = rapid.SampledFrom([]Hook{HookNone, HookRan}).Draw(t, "hook")
	s.Trigger = rapid.SampledFrom([]Trigger{Archive, Delete, CascadeArchive, CascadeDelete}).Draw(t, "trigger")
	return s
}

func asksRemove(step Step) bool {
	ask, ok := step.(Ask)
	_, remove := ask.Query.(Remove)
	return ok && remove
}

func removes(step Step) bool {
	done, ok := step.(Done)
	_, removed := done.Outcome.(Removed)
	return ok && removed
}

func TestAGoodAnswerToEveryQuestionIsARemoval(t *testing.T) {
	safe, unsafe := corpus(t)
	seen := map[string]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		s := anyStart(rt)
		transcript, _ := walk(rt, s, safe, unsafe, 0)
		if !removes(Next(s, transcript)) {
			rt.Fatalf("%v ends in %s: %#v", names(transcript), word(Next(s, transcript)), Next(s, transcript))
		}
		seen[strings.Join(names(transcript), " ")] = true
	})
	want := map[string]bool{
		"owner rule greet inventory owner rule begin remove":        true,
		"owner rule greet settle inventory owner rule begin remove": true,
		"rule greet owner inventory owner rule begin remove":        true,
		"rule greet settle owner inventory owner rule begin remove": true,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the orders of questions (-want +got):\n%s", diff)
	}
}

// One answer that is not the good one, at any question, and the removal is not
// asked for; at the removal itself, nothing is said to be removed.
func TestRemoveIsNeverAskedUnlessEverySafeAnswerCameBeforeIt(t *testing.T) {
	safe, unsafe := corpus(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := anyStart(rt)
		transcript, spoiled := walk(rt, s, safe, unsafe, 1)
		if spoiled == 0 {
			return
		}
		if removes(Next(s, transcript)) {
			rt.Fatalf("%v is removed", names(transcript))
		}
		for n, e := range transcript {
			if _, remove := e.Query.(Remove); remove && n != len(transcript)-1 {
				rt.Fatal("it goes on after the removal")
			}
		}
	})
}

// Every barrier alone: with everything else good, each bad answer is tried at
// each question of each order, none drawn.
func TestEachBadAnswerAloneKeepsTheDirectory(t *testing.T) {
	safe, unsafe := corpus(t)
	for _, begun := range []bool{false, true} {
		for _, found := range []Holder{NoHolder, HolderEmpty, HolderQuarantined} {
			s := lab()
			s.Begun = begun
			var transcript Transcript
			for {
				ask, ok := Next(s, transcript).(Ask)
				if !ok {
					break
				}
				for i, given := range bad(ask.Query, unsafe) {
					step := Next(s, append(slices.Clone(transcript), Exchange{ask.Query, given}))
					if _, goesOn := step.(Ask); goesOn || removes(step) {
						t.Errorf("begun %v, holder %s, %s, bad answer %d: %s", begun, found, QueryName(ask.Query), i, word(step))
					}
				}
				transcript = append(transcript, Exchange{ask.Query, good(ask.Query, safe[0], found)})
			}
			if !removes(Next(s, transcript)) {
				t.Errorf("begun %v, holder %s: %s", begun, found, word(Next(s, transcript)))
			}
		}
	}
}

func TestEveryPrefixOfARecordLeadsToTheQuestionAskedNext(t *testing.T) {
	safe, unsafe := corpus(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := anyStart(rt)
		transcript, _ := walk(rt, s, safe, unsafe, rapid.IntRange(0, 1).Draw(rt, "spoil"))
		for n := range transcript {
			if diff := cmp.Diff(Step(Ask{transcript[n].Query}), Next(s, transcript[:n])); diff != "" {
				rt.Fatalf("after %d answers:\n%s", n, diff)
			}
			var incomplete *Incomplete
			if _, err := Replay(s, transcript[:n]); !errors.As(err, &incomplete) || !sameQuery(incomplete.Pending, transcript[n].Query) {
				rt.Fatalf("replayed after %d answers: %v", n, err)
			}
		}
		again := Next(s, slices.Clone(transcript))
		if diff := cmp.Diff(Next(s, transcript), again); diff != "" {
			rt.Fatalf("decided twice:\n%s", diff)
		}
	})
}

// Whatever is done to a record, it never comes nearer to a removal than it was.
func TestAnEditedRecordIsNeverSafer(t *testing.T) {
	safe, unsafe := corpus(t)
	edits := map[string]func(*rapid.T, Transcript) Transcript{
		"drop": func(t *rapid.T, r Transcript) Transcript {
			n := rapid.IntRange(0, len(r)-1).Draw(t, "at")
			return slices.Delete(r, n, n+1)
		},
		"truncate": func(t *rapid.T, r Transcript) Transcript { return r[:rapid.IntRange(0, len(r)-1).Draw(t, "at")] },
		"repeat": func(t *rapid.T, r Transcript) Transcript {
			n := rapid.IntRange(0, len(r)-1).Draw(t, "at")
			return slices.Insert(r, rapid.IntRange(0, len(r)).Draw(t, "to"), r[n])
		},
		"reorder": func(t *rapid.T, r Transcript) Transcript { return rapid.Permutation(r).Draw(t, "order") },
		"swap answers": func(t *rapid.T, r Transcript) Transcript {
			i, j := rapid.IntRange(0, len(r)-1).Draw(t, "i"), rapid.IntRange(0, len(r)-1).Draw(t, "j")
			r[i].Answer, r[j].Answer = r[j].Answer, r[i].Answer
			return r
		},
		"swap questions": func(t *rapid.T, r Transcript) Transcript {
			i, j := rapid.IntRange(0, len(r)-1).Draw(t, "i"), rapid.IntRange(0, len(r)-1).Draw(t, "j")
			r[i].Query, r[j].Query = r[j].Query, r[i].Query
			return r
		},
	}
	kinds := slices.Sorted(maps.Keys(edits))
	rapid.Check(t, func(rt *rapid.T) {
		s := anyStart(rt)
		record, spoiled := walk(rt, s, safe, unsafe, 1)
		if len(record) == 0 {
			return
		}
		kind := rapid.SampledFrom(kinds).Draw(rt, "edit")
		edited := edits[kind](rt, slices.Clone(record))
		was, is := Next(s, record), Next(s, edited)
		if removes(is) && (!removes(was) || !slices.EqualFunc(record, edited, sameExchange)) {
			rt.Fatalf("%s: %v was %s, %v is removed", kind, names(record), word(was), names(edited))
		}
		asked := slices.Contains(names(record), "remove")
		if asksRemove(is) && !asked {
			rt.Fatalf("%s: %v (%d spoilt) asks for the removal", kind, names(edited), spoiled)
		}
	})
}

func sameExchange(a, b Exchange) bool {
	return sameQuery(a.Query, b.Query) && cmp.Equal(a.Answer, b.Answer)
}

// arbitrary questions and answers, of this attempt and of others.
func anyTranscript(t *rapid.T, s Snapshot, safe, unsafe []Said) Transcript {
	whole, _ := walk(t, s, safe, unsafe, rapid.IntRange(0, 1).Draw(t, "spoil"))
	queries := []Query{nil, Owner{}, Rule{}, Greet{}, Settle{}, Inventory{}, Begin{}, Remove{}, recordedRemove}
	answers := []Answer{nil, Ownership{}, Ruling{}, Begun{}, Heard{}}
	for _, e := range whole {
		queries, answers = append(queries, e.Query), append(answers, e.Answer)
		answers = append(answers, bad(e.Query, unsafe[:3])...)
	}
	var transcript Transcript
	for n := range rapid.IntRange(0, 12).Draw(t, "length") {
		e := Exchange{rapid.SampledFrom(queries).Draw(t, "query"), rapid.SampledFrom(answers).Draw(t, "answer")}
		if ask, ok := Next(s, transcript).(Ask); ok && rapid.IntRange(0, 4).Draw(t, fmt.Sprint("follow ", n)) > 0 {
			e.Query = ask.Query
			if rapid.Bool().Draw(t, "good") {
				e.Answer = good(ask.Query, safe[0], NoHolder)
			}
		}
		transcript = append(transcript, e)
	}
	return transcript
}

func TestNextIsTotalOnArbitraryTranscripts(t *testing.T) {
	safe, unsafe := corpus(t)
	snapshots := []Snapshot{{}, lab(), fit()}
	for _, edit := range []func(*Snapshot){
		func(s *Snapshot) { s.Begun = true }, func(s *Snapshot) { s.Target = Target{Enabled: true} }, func(s *Snapshot) { s.Target.WorkdirRoot = "~" },
		func(s *Snapshot) { s.Hook = "" }, func(s *Snapshot) { s.Environment = nil },
	} {
		s := lab()
		edit(&s)
		snapshots = append(snapshots, s)
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(snapshots).Draw(rt, "snapshot")
		transcript := anyTranscript(rt, s, safe, unsafe)
		step := Next(s, transcript)
		if step == nil {
			rt.Fatal("no step")
		}
		outcome, err := Replay(s, transcript)
		if (outcome == nil) == (err == nil) {
			rt.Fatalf("%v and %v", outcome, err)
		}
		if done, ok := step.(Done); ok && done.Outcome == nil {
			rt.Fatal("an end without an outcome")
		}
		// A record that is not this procedure's is kept, whatever it says.
		var diverged *Diverged
		if errors.As(err, &diverged) && !strings.HasPrefix(word(step), "skipped probe_failed") {
			rt.Fatalf("diverged, and %s", word(step))
		}
	})
}
