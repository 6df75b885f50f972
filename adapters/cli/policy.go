package cli

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
)

type policyCommand struct {
	Test  policyTestCommand  `cmd:"" help:"Run the Rego tests of the rules this binary rules with."`
	Check policyCheckCommand `cmd:"" help:"Say what is wrong with an operator's policy."`
	Eval  policyEvalCommand  `cmd:"" help:"Rule once, on facts from a file."`
}

type policyTestCommand struct {
	JSON bool `help:"Print the count as one JSON document; the tests go to standard error."`
}

func (policyTestCommand) Help() string {
	return `Exit status 1 when a test fails.

Example:

  reclaim policy test`
}

func (c policyTestCommand) Run(ctx context.Context, t *terminal) error {
	var to io.Writer = t.stdout
	if c.JSON {
		to = t.stderr
	}
	passed, failed, err := policy.RunTests(ctx, to)
	if err != nil {
		return fmt.Errorf("the policy's tests cannot be run: %w", err)
	}
	if c.JSON {
		if err := t.json(map[string]int{"passed": passed, "failed": failed}); err != nil {
			return err
		}
	} else {
		t.printf("%d passed, %d failed\n", passed, failed)
	}
	if failed > 0 || passed == 0 {
		return exit{status: exitFailed}
	}
	return nil
}

type policyCheckCommand struct {
	Files []string `arg:"" name:"FILE.rego" help:"Operator policies."`
	JSON  bool     `help:"Print what was found as one JSON document."`
}

func (policyCheckCommand) Help() string {
	return `An operator's policy is a package operator.NAME of which only the set deny is
read: it can refuse a removal and never allow one. Exit status 1 when a policy
could not rule.

Example:

  reclaim policy check freeze.rego`
}

func (c policyCheckCommand) Run(t *terminal) error {
	type problem struct {
		File string `json:"file"`
		Row  int    `json:"row"` // 0 is the whole file
		Says string `json:"says"`
	}
	type checked struct {
		File     string    `json:"file"`
		Problems []problem `json:"problems"`
	}
	all, bad := []checked{}, false
	for _, path := range c.Files {
		text, err := readFile(path, mostCase)
		if err != nil {
			return err
		}
		problems := policy.Check(path, text)
		bad = bad || len(problems) > 0
		view := checked{path, []problem{}}
		for _, p := range problems {
			view.Problems = append(view.Problems, problem(p))
		}
		all = append(all, view)
		if c.JSON {
			continue
		}
		if len(problems) == 0 {
			t.printf("%s  %s\n", t.paint(good, "good"), clean(path))
		}
		for _, p := range problems {
			t.printf("%s\n", clean(p.String()))
		}
	}
	if c.JSON {
		if err := t.json(map[string]any{"policies": all}); err != nil {
			return err
		}
	}
	if bad {
		return exit{status: exitFailed}
	}
	return nil
}

type policyEvalCommand struct {
	Facts  string   `arg:"" name:"FACTS.json" help:"The facts, as a record holds them under the question rule."`
	Policy []string `placeholder:"FILE" sep:"none" help:"An operator's policy to ask as well; may be given more than once."`
	JSON   bool     `help:"Print the ruling as one JSON document."`
}

func (policyEvalCommand) Help() string {
	return `Exit status 0 when it is allowed, 3 when it is refused or denied, 1 when the
policy could not rule.

Example:

  reclaim policy eval facts.json --policy freeze.rego`
}

// factWords are the words of facts, which are the case file's and the moments.
func factWords() map[reflect.Type][]string {
	all := map[reflect.Type][]string{reflect.TypeFor[core.Moment](): {string(core.Connect), string(core.RemoveNow)}}
	for t, w := range words {
		all[t] = w
	}
	return all
}

func (c policyEvalCommand) Run(ctx context.Context, t *terminal) error {
	raw, err := readFile(c.Facts, mostRecord)
	if err != nil {
		return err
	}
	var facts core.Facts
	if err := decodeStrictly(raw, &facts, factWords()); err != nil {
		return usage("facts %s: %w", c.Facts, err)
	}
	rules, err := rulesFrom(c.Policy)
	if err != nil {
		return err
	}
	ruling := rules.Rule(ctx, facts)
	if c.JSON {
		if err := t.json(ruling); err != nil {
			return err
		}
	} else {
		word := "refused"
		switch {
		case ruling.Error != "":
			word = "failed"
		case ruling.Allow:
			word = "allowed"
		case len(ruling.Refusals) == 0:
			word = "denied"
		}
		s := kept
		if ruling.Allow {
			s = good
		} else if ruling.Error != "" {
			s = bad
		}
		t.printf("%s at %s\n", t.paint(s, word), clean(string(facts.Moment)))
		for _, line := range replay.Ruling(ruling) {
			t.paragraph("  ", line)
		}
		t.paragraph("  ", strings.TrimSpace("policy "+ruling.Digest))
	}
	switch {
	case ruling.Error != "":
		return exit{status: exitFailed}
	case !ruling.Allow:
		return exit{status: exitKept}
	}
	return nil
}
