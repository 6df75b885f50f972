package ports

import (
	"context"

	"github.com/kandev/reclaim/core"
)

// Policy rules over facts. It is pure: the same facts get the same ruling, and
// nothing is fetched. It is safe for concurrent use.
type Policy interface {
	// Rule never fails silently: what kept the policy from ruling, an ended ctx
	// included, is the ruling's Error. The zero Facts are refused. A ruling
	// allows only without refusals, denials and error, and names then every
	// barrier as passed; its Digest tells which policy ruled.
	Rule(ctx context.Context, facts core.Facts) core.Ruling
}
