package sqlstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// fill puts n ended tasks, each with one launch, one environment and one due
// job of its own directory.
func fill(t testing.TB, s seed, n int) {
	t.Helper()
	tx, err := s.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	now := s.at(time.Now())
	exec := func(query string, args ...any) {
		if _, err := tx.Exec(numbered(s.dialect, query), args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for i := range n {
		task := fmt.Sprintf("task-%06d", i)
		dir := "/home/dev/.kandev/tasks/" + task
		exec(`INSERT INTO tasks (id, title, archived_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, task, task, now, now, now)
		exec(`INSERT INTO executors_running (id, session_id, task_id, executor_id, execution_profile_id, runtime, status, metadata, created_at, updated_at) VALUES (?, ?, ?, 'e', 'p-1', 'ssh', 'stopped', ?, ?, ?)`,
			task, task, task, `{"ssh_host":"box.example","ssh_port":"22","ssh_user":"dev","ssh_host_fingerprint":"SHA256:abc","ssh_workdir_root":"~/.kandev","ssh_remote_task_dir":"`+dir+`","ssh_reclaim_task_dir":"true","cleanup_script":"make clean \u0026\u0026 true"}`, now, now)
		exec(`INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, resource_snapshot, created_at, updated_at) VALUES (?, ?, ?, 'archive', 'pending', ?, ?, ?)`,
			task, task, task, `{"task_environment":{"id":"e-`+task+`","task_id":"`+task+`"},"ssh_task_dirs":[`+targetOf(task)+`]}`, now, now)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if s.dialect == sqlstore.PostgreSQL {
		s.exec(t, "ANALYZE")
	}
}

func targetOf(task string) string {
	return `{"host":"box.example","port":22,"user":"dev","host_fingerprint":"SHA256:abc","workdir_root":"~/.kandev","task_dir":"/home/dev/.kandev/tasks/` + task + `","enabled":true}`
}

func target(task string) core.Target {
	return core.Target{Host: "box.example", Port: 22, User: "dev", Fingerprint: "SHA256:abc", WorkdirRoot: "~/.kandev", TaskDir: "/home/dev/.kandev/tasks/" + task, Enabled: true}
}

// BenchmarkOwner asks about one directory among many; "over" is a host's
// database, which has no index on metadata.
func BenchmarkOwner(b *testing.B) {
	for _, dialect := range dialects {
		for _, n := range []int{100, 1000, 10000} {
			store, db := installed(b, dialect)
			fill(b, seed{db, dialect}, n)
			for name, owners := range map[string]ports.Owners{"ours": store, "over": sqlstore.Over(db, dialect)} {
				b.Run(fmt.Sprintf("%s/%d/%s", dialect, n, name), func(b *testing.B) {
					for b.Loop() {
						o := owners.Owner(context.Background(), core.Owner{JobID: "task-000050", TaskID: "task-000050", Environment: "e", Target: target("task-000050")})
						if o.Error != "" || len(o.Claims) != 0 {
							b.Fatalf("%+v", o)
						}
					}
				})
			}
		}
	}
}

// BenchmarkJobs leases, begins, concludes and finishes every one of many jobs
// and tells the first and the last thousand apart: the cost of one must not grow
// with what is queued or done.
func BenchmarkJobs(b *testing.B) {
	for _, dialect := range dialects {
		b.Run(string(dialect), func(b *testing.B) {
			const n = 10000
			for b.Loop() {
				b.StopTimer()
				store, db := installed(b, dialect)
				fill(b, seed{db, dialect}, n)
				b.StartTimer()
				took := make([]time.Duration, n)
				for i := range n {
					began := time.Now()
					work(b, store)
					took[i] = time.Since(began)
				}
				mean := func(part []time.Duration) float64 {
					var sum time.Duration
					for _, d := range part {
						sum += d
					}
					return float64(sum.Microseconds()) / float64(len(part))
				}
				b.ReportMetric(mean(took[:1000]), "us/first-1000")
				b.ReportMetric(mean(took[n-1000:]), "us/last-1000")
				b.ReportMetric(1e6/mean(took), "jobs/s")
			}
		})
	}
}

// work is what storage does for one job with one directory.
func work(t testing.TB, store *sqlstore.Store) {
	t.Helper()
	ctx := context.Background()
	j, ok, err := store.Lease(ctx, "w", nil)
	if err != nil || !ok {
		t.Fatalf("%v %v", ok, err)
	}
	where := target(j.TaskID)
	for _, look := range []core.Look{core.FirstLook, core.LastLook} {
		if o := store.Owner(ctx, core.Owner{Look: look, JobID: j.ID, TaskID: j.TaskID, Environment: "e-" + j.TaskID, Target: where}); o.Error != "" || len(o.Claims) != 0 {
			t.Fatalf("%+v", o)
		}
	}
	if begun := store.Begin(ctx, core.Begin{JobID: j.ID, TaskID: j.TaskID, Attempt: j.Attempts, Target: where}); begun.Ending != core.BeginRecorded {
		t.Fatalf("%+v", begun)
	}
	if err := store.Conclude(ctx, ports.Conclusion{JobID: j.ID, Attempt: j.Attempts, Target: where, Outcome: core.Removed{Detail: "gone"}}); err != nil {
		t.Fatal(err)
	}
	if err := store.Finish(ctx, ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: "w"}, ports.Ending{State: ports.Succeeded}); err != nil {
		t.Fatal(err)
	}
}
