package porttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// PolicySubject is what the Policy suite works on.
type PolicySubject struct {
	Policy ports.Policy
	// Table is facts and what must be refused of them, as barrier/rule; nothing
	// refused is allowed. It holds both kinds.
	Table []RuledFacts
}

// RuledFacts is a row of the table of rulings.
type RuledFacts struct {
	Name    string
	Facts   core.Facts
	Refused []string
}

// Policy checks ports.Policy. open gives a fresh policy each time.
func Policy(t *testing.T, open func(t *testing.T) PolicySubject) {
	t.Helper()
	run(t, policyClauses, open)
}

var policyClauses = []clause[PolicySubject]{
	{"the zero facts are refused", func(t testing.TB, s PolicySubject) {
		if r := s.Policy.Rule(t.Context(), core.Facts{}); r.Allow {
			t.Errorf("%+v", r)
		}
	}},
	{"every row of the table is ruled as it says", func(t testing.TB, s PolicySubject) {
		allowed := 0
		for _, row := range s.Table {
			r := s.Policy.Rule(t.Context(), row.Facts)
			if len(row.Refused) == 0 {
				allowed++
			}
			if r.Error != "" || r.Allow != (len(row.Refused) == 0) || !slices.Equal(refusals(r), sorted(row.Refused)) {
				t.Errorf("%s: allow=%t, refused %q, error %q; want %q", row.Name, r.Allow, refusals(r), r.Error, row.Refused)
			}
		}
		if allowed == 0 || allowed == len(s.Table) {
			t.Errorf("%d of the %d rows are allowed; the table must hold both kinds", allowed, len(s.Table))
		}
	}},
	{"what is allowed has no reason against it and names every barrier", func(t testing.TB, s PolicySubject) {
		for _, row := range s.Table {
			r := s.Policy.Rule(t.Context(), row.Facts)
			if r.Allow && (len(r.Refusals) > 0 || len(r.Denials) > 0 || r.Error != "" || !slices.Equal(sorted(r.Passed), sorted(core.Barriers()))) {
				t.Errorf("%s: %+v", row.Name, r)
			}
		}
	}},
	{"what is not allowed says why", func(t testing.TB, s PolicySubject) {
		for _, row := range s.Table {
			r := s.Policy.Rule(t.Context(), row.Facts)
			if !r.Allow && len(r.Refusals)+len(r.Denials) == 0 && r.Error == "" {
				t.Errorf("%s: %+v", row.Name, r)
			}
			for _, refusal := range r.Refusals {
				if refusal.Barrier == "" || refusal.Rule == "" || strings.TrimSpace(refusal.Says) == "" {
					t.Errorf("%s: the refusal %+v says too little", row.Name, refusal)
				}
			}
		}
	}},
	{"every ruling tells which policy ruled", func(t testing.TB, s PolicySubject) {
		seen := map[string]bool{}
		for _, row := range s.Table {
			seen[s.Policy.Rule(t.Context(), row.Facts).Digest] = true
		}
		if len(seen) != 1 || seen[""] {
			t.Errorf("digests %v", seen)
		}
	}},
	{"the same facts get the same ruling, and stay as they are", func(t testing.TB, s PolicySubject) {
		for _, row := range s.Table {
			before := fmt.Sprintf("%+v %+v", row.Facts, row.Facts.Ownership)
			first := s.Policy.Rule(t.Context(), row.Facts)
			if diff := cmp.Diff(first, s.Policy.Rule(t.Context(), row.Facts)); diff != "" {
				t.Errorf("%s: %s", row.Name, diff)
			}
			if fmt.Sprintf("%+v %+v", row.Facts, row.Facts.Ownership) != before {
				t.Errorf("%s: the facts were changed", row.Name)
			}
		}
	}},
	{"rulings at the same time are each their own", func(t testing.TB, s PolicySubject) {
		var wait sync.WaitGroup
		for worker := range 8 {
			wait.Go(func() {
				for i := range s.Table {
					row := s.Table[(i+worker*5)%len(s.Table)]
					r := s.Policy.Rule(t.Context(), row.Facts)
					if r.Allow != (len(row.Refused) == 0) || !slices.Equal(refusals(r), sorted(row.Refused)) {
						t.Errorf("%s: %+v", row.Name, r)
					}
				}
			})
		}
		wait.Wait()
	}},
	{"an ended context is an error, not a ruling", func(t testing.TB, s PolicySubject) {
		ended, end := context.WithCancel(t.Context())
		end()
		for _, row := range s.Table {
			if r := s.Policy.Rule(ended, row.Facts); r.Allow || r.Error == "" {
				t.Errorf("%s: %+v", row.Name, r)
			}
		}
	}},
}

func refusals(r core.Ruling) []string {
	names := []string{}
	for _, refusal := range r.Refusals {
		names = append(names, refusal.Barrier+"/"+refusal.Rule)
	}
	return sorted(names)
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }
