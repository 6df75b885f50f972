package job_test

import (
	"context"
	"testing"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
)

type endsTheContext struct{ end context.CancelFunc }

func (o endsTheContext) Owner(ctx context.Context, _ core.Owner) core.Ownership {
	o.end()
	return core.Ownership{Error: ctx.Err().Error()}
}

func TestAShutdownWhileStorageIsAskedIsNoVerdict(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	s := core.Snapshot{JobID: "job-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, Hook: core.HookNone,
		Target: core.Target{Host: "h", WorkdirRoot: "/srv/kandev", TaskDir: "/srv/kandev/tasks/a", Enabled: true}}
	transcript := job.Driver{Owners: endsTheContext{end}}.Run(ctx, s)
	if got := core.Conclude(s, transcript); got.Outcome != core.OutcomeCancelled {
		t.Errorf("the outcome is %s (%s): %s", got.Outcome, got.Reason, got.Detail)
	}
}
