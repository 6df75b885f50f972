package riverqueue_test

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/core"
)

// refusing is a phase whose host cannot be reached.
type refusing struct{}

func (refusing) Run(context.Context, job.Job) (job.Report, error) {
	return job.Report{}, &job.TargetError{Failure: core.Failed{Fault: core.Unreachable, Detail: "connection refused by the test"}}
}

// swallowing is a phase one of whose hosts answers nothing.
type swallowing struct {
	worker.Phase
	swallowed *atomic.Int32
}

func (s swallowing) Run(ctx context.Context, j job.Job) (job.Report, error) {
	if !strings.HasPrefix(j.TaskID, "hole") {
		return s.Phase.Run(ctx, j)
	}
	s.swallowed.Add(1)
	<-ctx.Done()
	return job.Report{}, ctx.Err()
}
