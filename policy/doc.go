// Package policy is the three barriers - opt-in, ownership, path shape - as
// Rego that an auditor can read and test without us, and the evaluator that
// asks them:
//
//	p, err := policy.New(policy.WithOperator("freeze.rego", source))
//	ruling := p.Rule(ctx, facts)
//
// A ruling can only subtract: core has decided by the same rules in Go before
// it asks, and anything but one well-formed "allow" refuses. Operators add
// refusals of their own in packages of which only the set deny is read; see
// README.md for both.
package policy
