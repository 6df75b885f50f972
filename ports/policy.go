package ports

import (
	"context"

	"github.com/kandev/reclaim/core"
)

// Policy rules over facts. It is pure: the same facts get the same ruling, and
// nothing is fetched.
type Policy interface {
	// Rule never fails silently: a policy that cannot rule says so in the
	// ruling's Error. The zero Facts are refused.
	Rule(ctx context.Context, facts core.Facts) core.Ruling
}
