// Package porttest proves that an adapter keeps what its port promises. An
// adapter's test calls the suite of its port; the suite knows no adapter.
//
// Each suite is a list of clauses, each a sentence. The package's own tests hold
// one deliberately broken subject for every clause, to show that it can fail.
package porttest

import "testing"

// clause is one promise of a port, checked against a fresh subject S.
type clause[S any] struct {
	name  string
	check func(t testing.TB, subject S)
}

func run[S any](t *testing.T, clauses []clause[S], open func(t *testing.T) S) {
	t.Helper()
	for _, clause := range clauses {
		t.Run(clause.name, func(t *testing.T) { clause.check(t, open(t)) })
	}
}
