package sqlstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

// waitingForClean is a state of the host's that is none of ours.
const waitingForClean ports.State = "waiting_for_clean"

var everyState = []ports.State{ports.Prepared, ports.Pending, ports.Running, ports.RetryWait, ports.Succeeded, ports.JobFailed, ports.Cancelled, waitingForClean}

// change is one event of the state table.
type change struct {
	row   string // of the host's table of states
	event string
	open  bool // the task is not archived when it happens
	// moves says where each state goes; a state that is left out stays as it is,
	// to the last column.
	moves map[ports.State]ports.State
	do    func(ctx context.Context, s *sqlstore.Store, token ports.Token) error
	then  func(j ports.Job, before ports.Job) error // of a row that moved
}

var table = []change{
	{row: "pending, retry_wait: claim", event: "claim",
		moves: map[ports.State]ports.State{ports.Pending: ports.Running, ports.RetryWait: ports.Running},
		do: func(ctx context.Context, s *sqlstore.Store, _ ports.Token) error {
			_, _, err := s.Lease(ctx, "w", nil)
			return err
		},
		then: func(j, before ports.Job) error {
			if j.Attempts != before.Attempts+1 || !j.NextAttemptAt.IsZero() {
				return fmt.Errorf("attempts %d, next attempt %v", j.Attempts, j.NextAttemptAt)
			}
			return nil
		}},
	{row: "running: success", event: "success",
		moves: map[ports.State]ports.State{ports.Running: ports.Succeeded},
		do: func(ctx context.Context, s *sqlstore.Store, token ports.Token) error {
			return s.Finish(ctx, token, ports.Ending{State: ports.Succeeded})
		},
		then: over},
	{row: "running: error, attempts < 8", event: "an error",
		moves: map[ports.State]ports.State{ports.Running: ports.RetryWait},
		do: func(ctx context.Context, s *sqlstore.Store, token ports.Token) error {
			return s.Finish(ctx, token, ports.Ending{State: ports.RetryWait, Delay: time.Hour, Error: "unreachable"})
		},
		then: func(j, before ports.Job) error {
			if j.Attempts != before.Attempts || j.LastError != "unreachable" || !j.NextAttemptAt.After(time.Now().Add(30*time.Minute)) {
				return fmt.Errorf("%+v", j)
			}
			return nil
		}},
	{row: "running: error, attempts >= 8", event: "the last error",
		moves: map[ports.State]ports.State{ports.Running: ports.JobFailed},
		do: func(ctx context.Context, s *sqlstore.Store, token ports.Token) error {
			return s.Finish(ctx, token, ports.Ending{State: ports.JobFailed, Error: "unreachable"})
		},
		then: over},
	{row: "running: process restart", event: "a restart",
		moves: map[ports.State]ports.State{ports.Running: ports.RetryWait},
		do: func(ctx context.Context, s *sqlstore.Store, _ ports.Token) error {
			_, err := s.Recover(ctx, -time.Hour) // every lease is stale
			return err
		},
		then: func(j, before ports.Job) error {
			if j.Attempts != before.Attempts || j.NextAttemptAt.IsZero() || j.NextAttemptAt.After(time.Now().Add(time.Minute)) {
				return fmt.Errorf("%+v", j)
			}
			return nil
		}},
	{row: "prepared, pending, retry_wait, running: unarchive", event: "an un-archive",
		moves: map[ports.State]ports.State{ports.Prepared: ports.Cancelled, ports.Pending: ports.Cancelled, ports.RetryWait: ports.Cancelled, ports.Running: ports.Cancelled},
		do: func(ctx context.Context, s *sqlstore.Store, _ ports.Token) error {
			return s.Unarchive(ctx, "t-1", false)
		},
		then: over},
	{row: "running, task found un-archived: in-job check", event: "the in-job check", open: true,
		moves: map[ports.State]ports.State{ports.Running: ports.Cancelled},
		do: func(ctx context.Context, s *sqlstore.Store, token ports.Token) error {
			return s.Cancel(ctx, token)
		},
		then: over},
	{row: "prepared: mutation committed", event: "a start that finds the task archived",
		moves: map[ports.State]ports.State{ports.Prepared: ports.Pending},
		do: func(ctx context.Context, s *sqlstore.Store, _ ports.Token) error {
			_, err := s.Reconcile(ctx, time.Now().Add(time.Hour))
			return err
		}},
	{row: "prepared: mutation failed / start-up finds it uncommitted", event: "a start that finds the task open", open: true,
		moves: map[ports.State]ports.State{ports.Prepared: ports.Cancelled},
		do: func(ctx context.Context, s *sqlstore.Store, _ ports.Token) error {
			_, err := s.Reconcile(ctx, time.Now().Add(time.Hour))
			return err
		},
		then: over},
	{row: "prepared: outcome unknown", event: "a start that cannot tell yet", open: true,
		do: func(ctx context.Context, s *sqlstore.Store, _ ports.Token) error {
			_, err := s.Reconcile(ctx, time.Time{})
			return err
		}},
}

func over(j, _ ports.Job) error {
	if j.CompletedAt.IsZero() || !j.NextAttemptAt.IsZero() {
		return fmt.Errorf("completed at %v, next attempt %v", j.CompletedAt, j.NextAttemptAt)
	}
	return nil
}

// Every event of the host's state table, on a row in every state: the states it
// names go where it says, and no other row changes in any column.
func TestEveryRowOfTheHostsStateTable(t *testing.T) {
	for _, dialect := range dialects {
		store, db := installed(t, dialect)
		rows := seed{db, dialect}
		for _, c := range table {
			t.Run(fmt.Sprintf("%s: %s", dialect, c.row), func(t *testing.T) {
				for _, state := range everyState {
					rows.clear(t)
					rows.PutTask(t, porttest.Task{ID: "t-1", Archived: true})
					before := inState(t, store, rows, state)
					if c.open {
						rows.Archived(t, "t-1", false)
					}
					err := c.do(t.Context(), store, ports.Token{JobID: "job-1", Attempt: before.Attempts, Worker: "w"})
					after := rows.GetJob(t, "job-1")
					to, moves := c.moves[state]
					switch {
					case !moves:
						if diff := cmp.Diff(before, after); diff != "" {
							t.Errorf("%s in the state %s: %s", c.event, state, diff)
						}
					case err != nil || after.State != to:
						t.Errorf("%s in the state %s leads to %s, not %s: %v", c.event, state, after.State, to, err)
					case c.then != nil:
						if err := c.then(after, before); err != nil {
							t.Errorf("%s in the state %s: %v", c.event, state, err)
						}
					}
				}
			})
		}
	}
}

// inState makes t-1's archive job in a state, leased where it runs.
func inState(t *testing.T, store *sqlstore.Store, rows seed, state ports.State) ports.Job {
	t.Helper()
	made := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	j := ports.Job{ID: "job-1", OperationID: "archive:t-1", TaskID: "t-1", Trigger: core.Archive, State: state, Snapshot: []byte(`{"ssh_task_dirs":[]}`), Attempts: 3, CreatedAt: made, UpdatedAt: made}
	switch state {
	case ports.Running:
		j.State, j.Attempts = ports.Pending, 2
	case ports.RetryWait:
		j.NextAttemptAt, j.LastError = made.Add(time.Minute), "lost"
	case ports.Succeeded, ports.JobFailed, ports.Cancelled:
		j.CompletedAt = made.Add(time.Minute)
	}
	rows.PutJob(t, j)
	if state == ports.Running {
		if leased, ok, err := store.Lease(t.Context(), "w", nil); err != nil || !ok || leased.ID != "job-1" {
			t.Fatalf("%+v, %v, %v", leased, ok, err)
		}
	} else { // a lease that was left behind is none
		rows.exec(t, `INSERT INTO reclaim_leases (job_id, attempt, worker, beat_ms) VALUES ('job-1', 3, 'w', ?)`, time.Now().UnixMilli())
	}
	return rows.GetJob(t, "job-1")
}

// A job that cleans up after a delete is never cancelled by an un-archive, and one
// operation has one job however often it is prepared.
func TestTheHostsStateTableSpeaksOfArchivesAndOfOneJobAnOperation(t *testing.T) {
	for _, dialect := range dialects {
		store, db := installed(t, dialect)
		rows := seed{db, dialect}
		rows.PutTask(t, porttest.Task{ID: "t-1", Archived: true})
		for i, state := range []ports.State{ports.Prepared, ports.Pending, ports.RetryWait} {
			j := ports.Job{ID: fmt.Sprint("job-", i), OperationID: fmt.Sprint("delete:t-1:", i), TaskID: "t-1", Trigger: core.Delete, State: state, Snapshot: []byte(`{}`), CreatedAt: time.Now(), UpdatedAt: time.Now()}
			rows.PutJob(t, j)
		}
		if err := store.Unarchive(t.Context(), "t-1", false); err != nil {
			t.Fatal(dialect, err)
		}
		for i, state := range []ports.State{ports.Prepared, ports.Pending, ports.RetryWait} {
			if j := rows.GetJob(t, fmt.Sprint("job-", i)); j.State != state {
				t.Errorf("%s: a delete's job in the state %s is %s after an un-archive", dialect, state, j.State)
			}
		}
		if _, err := db.Exec(numbered(dialect, `INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, `+"trigger"+`, state, resource_snapshot, created_at, updated_at)
			VALUES ('job-again', 'delete:t-1:0', 't-1', 'delete', 'prepared', '{}', ?, ?)`), rows.at(time.Now()), rows.at(time.Now())); err == nil {
			t.Errorf("%s: one operation has two jobs", dialect)
		}
	}
}
