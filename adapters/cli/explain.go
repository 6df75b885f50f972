package cli

import (
	"fmt"
	"strings"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
)

type explainCommand struct {
	Record string `arg:"" name:"RECORD.json" help:"A record, as attempt, inspect and work keep them."`
	JSON   bool   `help:"Print the story as one JSON document."`
}

func (explainCommand) Help() string {
	return `Tells each question in order, what was answered, where it was decided, and what
to do about it. Nothing is asked again.

Example:

  reclaim explain attempt.json`
}

// chapter is one question of a story.
type chapter struct {
	Question string   `json:"question"` // its name on the wire
	Asked    string   `json:"asked"`
	Answer   []string `json:"answer"`
	Decided  bool     `json:"decided"` // the attempt ended here
}

type story struct {
	Target  core.Target `json:"target"`
	Result  core.Result `json:"result"`
	Opening string      `json:"opening"`
	Story   []chapter   `json:"story"`
	Ending  string      `json:"ending"`
	Replay  string      `json:"replay"` // empty when it replays the same
}

func (c explainCommand) Run(t *terminal) error {
	record, err := readRecord(c.Record)
	if err != nil {
		return err
	}
	s := tell(record)
	if c.JSON {
		return t.json(s)
	}
	t.printf("%s\n%s\n\n", clean(place(s.Target)), t.paint(outcomeStyle(s.Result.Outcome), headline(s.Result)))
	t.paragraph("", s.Opening)
	for i, chapter := range s.Story {
		t.printf("\n%2d. %s\n", i+1, t.paint(strong, chapter.Asked))
		for _, line := range chapter.Answer {
			t.paragraph("    ", line)
		}
		if chapter.Decided {
			t.printf("    %s\n", t.paint(outcomeStyle(s.Result.Outcome), "This decided it."))
		}
	}
	t.printf("\n")
	t.paragraph("", s.Ending)
	t.cures(s.Result.Cure)
	if s.Replay != "" {
		t.printf("\n")
		t.paragraph("", "Replayed today it differs: "+s.Replay)
	}
	return nil
}

func tell(r core.Record) story {
	told := replay.Tell(r)
	s := story{Target: r.Snapshot.Target, Result: r.Result, Opening: strings.Join(told.Opening, " "), Story: []chapter{}, Ending: told.Ending, Replay: replay.Again(r).Differs}
	s.Result.Cure = replay.Cures(s.Result)
	if s.Result.Checkouts == nil {
		s.Result.Checkouts = []core.Checkout{}
	}
	for _, c := range told.Chapters {
		answer := []string{strings.Join(c.Answer, " ")}
		for _, checkout := range c.Checkouts {
			line := fmt.Sprintf("%s (%s): %s", checkout.Path, checkout.Kind, checkout.Verdict)
			if word := replay.Why(checkout.Reason, checkout.Cause); word != "" {
				line += ", " + word
			}
			answer = append(answer, line)
		}
		for _, f := range c.Findings {
			answer = append(answer, replay.Why(f.Reason, f.Cause)+": "+f.Detail)
		}
		s.Story = append(s.Story, chapter{Question: core.QueryName(c.Query), Asked: c.Asked, Answer: answer, Decided: c.Decided})
	}
	return s
}
