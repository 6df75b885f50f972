package job_test

import (
	"context"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
)

// backend is what an embedding backend has already: who owns what, and its own
// job rows.
type backend interface {
	ports.Owners
	ports.Row
}

// jobRow is a running job as the backend holds it, with the five ways in which
// it ends an attempt; each stores the snapshot under a compare-and-set on the
// attempt.
type jobRow struct {
	ID, TaskID string
	Trigger    string
	Attempts   int
	Snapshot   []byte
}

func (jobRow) succeeded() error       { return nil }
func (jobRow) cancelled() error       { return nil }
func (jobRow) failed(err error) error { return err }
func (jobRow) later(err error) error  { return err }
func (jobRow) retry(err error) error  { return err }

// A backend runs the phase on a job whose row it has made running and whose
// sessions it has stopped. The README shows the body of this function.
func Example() {
	_ = func(ctx context.Context, store backend, row *jobRow, stops job.Stops, hook core.Hook) error {
		rules, err := policy.New()
		if err != nil {
			return err
		}
		phase := &job.Phase{Dialer: sshhost.New(sshhost.Options{}), Policy: rules, Owners: store, Row: store}
		report, err := phase.Run(ctx, job.Job{ID: row.ID, TaskID: row.TaskID, Trigger: core.Trigger(row.Trigger), Attempt: row.Attempts,
			Snapshot: row.Snapshot,
			Stops:    stops, // what happened: job.StopsSucceeded or job.StopsFailed
			Hook:     hook}) // the cleanup script: core.HookRan, core.HookNone (the profile has none) or core.HookFailed
		row.Snapshot = report.Snapshot // the outcomes folded in, every other byte as it was
		switch {
		case report.Withdrawn:
			return row.cancelled()
		case err == nil:
			return row.succeeded()
		case job.Final(err):
			return row.failed(err)
		case job.Held(err):
			return row.later(err)
		}
		return row.retry(err)
	}
}
