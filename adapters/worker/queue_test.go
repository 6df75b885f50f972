package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// queue is storage that does what a test tells it to, between two writes too.
type queue struct {
	mu    sync.Mutex
	rows  []*row
	alive map[string]bool // tasks that are not terminal
	live  map[string][]core.Running
	// fault, where set, is asked before each call and its error is the answer.
	fault  func(call string) error
	leased map[string]int // "job attempt" -> times
	writes []string
}

type row struct {
	ports.Job
	worker string
	beat   time.Time
}

func (q *queue) add(id, task string, hosts ...string) {
	targets := ""
	for i, host := range hosts {
		if i > 0 {
			targets += ","
		}
		targets += fmt.Sprintf(`{"host":%q,"workdir_root":"","task_dir":"/h/.kandev/tasks/%s%d","enabled":true}`, host, id, i)
	}
	q.rows = append(q.rows, &row{Job: ports.Job{ID: id, TaskID: task, Trigger: core.Archive, State: ports.Pending,
		Snapshot: []byte(`{"ssh_task_dirs":[` + targets + `]}`)}})
}

func (q *queue) enter(call string) (func(), error) {
	if q.fault != nil {
		if err := q.fault(call); err != nil {
			return nil, err
		}
	}
	q.mu.Lock()
	return q.mu.Unlock, nil
}

func (q *queue) due(r *row) bool {
	return r.State == ports.Pending || r.State == ports.RetryWait && !r.NextAttemptAt.After(time.Now())
}

func (q *queue) Lease(ctx context.Context, worker string, hold []string) (ports.Job, bool, error) {
	leave, err := q.enter("lease")
	if err != nil {
		return ports.Job{}, false, err
	}
	defer leave()
	if ctx.Err() != nil { // as a store does
		return ports.Job{}, false, ctx.Err()
	}
	for _, r := range q.rows {
		if !q.due(r) || names(r.Job, hold) ||
			slices.ContainsFunc(q.rows, func(o *row) bool { return o.TaskID == r.TaskID && o.State == ports.Running }) {
			continue
		}
		r.State, r.worker, r.beat = ports.Running, worker, time.Now()
		r.Attempts++
		if q.leased == nil {
			q.leased = map[string]int{}
		}
		q.leased[fmt.Sprint(r.ID, " ", r.Attempts)]++
		return r.Job, true, nil
	}
	return ports.Job{}, false, nil
}

func (q *queue) held(call string, token ports.Token, write func(*row)) error {
	leave, err := q.enter(call)
	if err != nil {
		return err
	}
	defer leave()
	for _, r := range q.rows {
		if r.ID == token.JobID && r.State == ports.Running && r.Attempts == token.Attempt && r.worker == token.Worker {
			if call != "beat" {
				q.writes = append(q.writes, call)
			}
			write(r)
			return nil
		}
	}
	return ports.ErrRowLost
}

func (q *queue) Beat(_ context.Context, token ports.Token) error {
	return q.held("beat", token, func(r *row) { r.beat = time.Now() })
}

func (q *queue) Recover(_ context.Context, stale time.Duration) (int, error) {
	leave, err := q.enter("recover")
	if err != nil {
		return 0, err
	}
	defer leave()
	n := 0
	for _, r := range q.rows {
		if r.State == ports.Running && time.Since(r.beat) > stale {
			r.State, r.NextAttemptAt = ports.RetryWait, time.Now()
			n++
		}
	}
	return n, nil
}

func (q *queue) Finish(_ context.Context, token ports.Token, end ports.Ending) error {
	return q.held("finish", token, func(r *row) {
		r.State, r.LastError, r.NextAttemptAt = end.State, end.Error, time.Now().Add(end.Delay)
		if snapshot, err := core.ParseJobSnapshot(r.Snapshot); end.Uncounted && err == nil {
			if snapshot, err = snapshot.WithUncounted(); err == nil {
				r.Snapshot = snapshot.Bytes()
			}
		}
	})
}

func (q *queue) Cancel(_ context.Context, token ports.Token) error {
	return q.held("cancel", token, func(r *row) { r.State = ports.Cancelled })
}

func (q *queue) Hooked(_ context.Context, token ports.Token, target core.Target, hook core.SessionHook) error {
	var wrong error
	err := q.held("hooked", token, func(r *row) {
		snapshot, err := core.ParseJobSnapshot(r.Snapshot)
		if err == nil {
			if snapshot, err = snapshot.WithHook(target, hook); err == nil {
				r.Snapshot = snapshot.Bytes()
			}
		}
		wrong = err
	})
	return errors.Join(err, wrong)
}

func (q *queue) Due(_ context.Context, limit int) ([]ports.Job, error) {
	leave, err := q.enter("due")
	if err != nil {
		return nil, err
	}
	defer leave()
	var due []ports.Job
	for _, r := range q.rows {
		if q.due(r) && len(due) < limit {
			due = append(due, r.Job)
		}
	}
	return due, nil
}

func (q *queue) Terminal(_ context.Context, taskID string) (bool, error) {
	leave, err := q.enter("terminal")
	if err != nil {
		return false, err
	}
	defer leave()
	return !q.alive[taskID], nil
}

func (q *queue) Sessions(_ context.Context, taskID string) ([]core.Running, error) {
	leave, err := q.enter("sessions")
	if err != nil {
		return nil, err
	}
	defer leave()
	return slices.Clone(q.live[taskID]), nil
}

func (q *queue) MarkStopped(_ context.Context, sessionID string) error {
	leave, err := q.enter("markstopped")
	if err != nil {
		return err
	}
	defer leave()
	for _, rows := range q.live {
		for i := range rows {
			if rows[i].SessionID == sessionID {
				rows[i].Status = core.Stopped
			}
		}
	}
	return nil
}

func (q *queue) Forget(_ context.Context, taskID string, sessionIDs []string) error {
	leave, err := q.enter("forget")
	if err != nil {
		return err
	}
	defer leave()
	q.writes = append(q.writes, "forget")
	q.live[taskID] = slices.DeleteFunc(q.live[taskID], func(r core.Running) bool { return slices.Contains(sessionIDs, r.SessionID) })
	return nil
}

// whenEnded calls stop once no row can go on.
func (q *queue) whenEnded(stop func()) {
	for {
		time.Sleep(time.Minute)
		q.mu.Lock()
		open := slices.ContainsFunc(q.rows, func(r *row) bool { return r.State != ports.Succeeded && r.State != ports.JobFailed })
		q.mu.Unlock()
		if !open {
			stop()
			return
		}
	}
}

func (q *queue) row(id string) ports.Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.rows {
		if r.ID == id {
			return r.Job
		}
	}
	return ports.Job{}
}

// stops is a stop phase of one function, and phase a phase of one.
type stops func(context.Context, ports.Job, ports.Token) (Stopped, error)

func (f stops) Stop(ctx context.Context, j ports.Job, token ports.Token) (Stopped, error) {
	return f(ctx, j, token)
}

func (f stops) Look(ctx context.Context, j ports.Job) (Stopped, error) {
	return Stopped{Stops: job.StopsSucceeded, Hook: core.HookNone}, nil
}

func nothingRuns(context.Context, ports.Job, ports.Token) (Stopped, error) {
	return Stopped{Stops: job.StopsSucceeded, Hook: core.HookNone}, nil
}

type phase func(context.Context, job.Job) (job.Report, error)

func (f phase) Run(ctx context.Context, j job.Job) (job.Report, error) {
	if j.Stops != job.StopsSucceeded { // as the real one
		return job.Report{NotRun: "the task's sessions were not all stopped"}, nil
	}
	return f(ctx, j)
}

func allWell(context.Context, job.Job) (job.Report, error) { return job.Report{}, nil }

// on is a worker on the queue.
func on(q *queue, name string, s stops, p phase) *Worker {
	return &Worker{Name: name, Jobs: q, Tasks: q, Sessions: q, Stops: s, Phase: p}
}

func failing(fault core.Fault) error {
	return &job.TargetError{Failure: core.Failed{Fault: fault, Final: fault.Final(), Detail: "as the test wants it"}}
}
