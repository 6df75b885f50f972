package policy_test

import (
	"testing"

	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

var _ ports.Policy = (*policy.Policy)(nil)

func TestThePolicyKeepsWhatThePortPromises(t *testing.T) {
	porttest.Policy(t, func(t *testing.T) porttest.PolicySubject {
		s := porttest.PolicySubject{Policy: newPolicy(t)}
		for _, row := range rulingsTable(t) {
			s.Table = append(s.Table, porttest.RuledFacts(row))
		}
		return s
	})
}
