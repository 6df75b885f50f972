package porttest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/kandev/reclaim/core"
)

// ruler is the plainest policy that keeps every promise: it knows one barrier.
// change breaks it.
type ruler struct {
	calls  atomic.Int64
	change func(r *ruler, ctx context.Context, f core.Facts, ruling *core.Ruling)
}

func (p *ruler) Rule(ctx context.Context, f core.Facts) core.Ruling {
	p.calls.Add(1)
	r := core.Ruling{Digest: "d"}
	switch {
	case ctx.Err() != nil:
		r.Error = ctx.Err().Error()
	case !f.Target.Enabled:
		r.Refusals = []core.Refusal{{Barrier: "optin", Rule: "at_launch", Says: "not opted in"}}
	default:
		r.Allow, r.Passed = true, core.Barriers()
	}
	if p.change != nil {
		p.change(p, ctx, f, &r)
	}
	return r
}

var brokenPolicies = map[string]func(p *ruler, ctx context.Context, f core.Facts, r *core.Ruling){
	"the zero facts are refused": func(_ *ruler, _ context.Context, f core.Facts, r *core.Ruling) {
		r.Allow = true
	},
	"every row of the table is ruled as it says": func(_ *ruler, _ context.Context, _ core.Facts, r *core.Ruling) {
		for i := range r.Refusals {
			r.Refusals[i].Rule = "now"
		}
	},
	"what is allowed has no reason against it and names every barrier": func(_ *ruler, _ context.Context, _ core.Facts, r *core.Ruling) {
		if r.Allow {
			r.Passed = r.Passed[1:]
		}
	},
	"what is not allowed says why": func(_ *ruler, _ context.Context, _ core.Facts, r *core.Ruling) {
		r.Refusals = nil
	},
	"every ruling tells which policy ruled": func(_ *ruler, _ context.Context, _ core.Facts, r *core.Ruling) {
		if !r.Allow {
			r.Digest = ""
		}
	},
	"the same facts get the same ruling, and stay as they are": func(p *ruler, _ context.Context, _ core.Facts, r *core.Ruling) {
		for i := range r.Refusals {
			r.Refusals[i].Says = fmt.Sprint("refusal ", p.calls.Load())
		}
	},
	"rulings at the same time are each their own": func(p *ruler, _ context.Context, f core.Facts, r *core.Ruling) {
		// Only the number of rulings so far is shared, and it leaks after many.
		if p.calls.Load() > 4 {
			r.Allow = !r.Allow
		}
	},
	"an ended context is an error, not a ruling": func(_ *ruler, _ context.Context, f core.Facts, r *core.Ruling) {
		if r.Error != "" {
			r.Error, r.Allow, r.Passed = "", true, core.Barriers()
		}
	},
}

func TestEveryPolicyClauseHoldsForAnHonestPolicyAndCanFail(t *testing.T) {
	table := []RuledFacts{
		{Name: "opted in", Facts: core.Facts{Target: core.Target{Enabled: true}}},
		{Name: "not opted in", Facts: core.Facts{Job: core.JobFacts{ID: "job-1"}}, Refused: []string{"optin/at_launch"}},
	}
	for _, clause := range policyClauses {
		t.Run(clause.name, func(t *testing.T) {
			if wrong := failures(t, clause, PolicySubject{Policy: &ruler{}, Table: table}); len(wrong) > 0 {
				t.Errorf("an honest policy fails: %q", wrong)
			}
			broken, exists := brokenPolicies[clause.name]
			if !exists {
				t.Fatal("no policy breaks this clause")
			}
			if wrong := failures(t, clause, PolicySubject{Policy: &ruler{change: broken}, Table: table}); len(wrong) == 0 {
				t.Error("a broken policy passes")
			}
		})
	}
	if len(brokenPolicies) != len(policyClauses) {
		t.Errorf("%d broken policies for %d clauses", len(brokenPolicies), len(policyClauses))
	}
}
