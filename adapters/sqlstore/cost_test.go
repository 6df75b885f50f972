package sqlstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
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
	exec(`INSERT INTO executors (id, name, type, config, created_at, updated_at) VALUES ('e', 'e', 'ssh', '{}', ?, ?)`, now, now)
	exec(`INSERT INTO executor_profiles (id, executor_id, name, config, created_at, updated_at) VALUES ('p-1', 'e', 'p', '{"ssh_reclaim_task_dir":"true"}', ?, ?)`, now, now)
	for i := range n {
		task := fmt.Sprintf("task-%06d", i)
		dir := "/home/dev/.kandev/tasks/" + task
		exec(`INSERT INTO tasks (id, title, archived_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, task, task, now, now, now)
		exec(`INSERT INTO task_environments (id, task_id, executor_type, executor_id, executor_profile_id, workspace_path, created_at, updated_at) VALUES (?, ?, 'ssh', 'e', 'p-1', ?, ?, ?)`, "e-"+task, task, dir, now, now)
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

// BenchmarkJobs leases every one of many jobs, runs the phase on hosts that live in
// memory, and finishes it. The ratio is what one job of the last tenth costs of
// one of the first: it must not grow with what is queued or done.
func BenchmarkJobs(b *testing.B) {
	n := 2000
	if os.Getenv("RECLAIM_TEST_LONG") == "1" {
		n = 10_000
	}
	rules, err := policy.New()
	if err != nil {
		b.Fatal(err)
	}
	for _, dialect := range dialects {
		b.Run(fmt.Sprintf("%s/%d", dialect, n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				store, db := installed(b, dialect)
				fill(b, seed{db, dialect}, n)
				phase := &job.Phase{Dialer: recorded(b), Owners: store, Row: store, Policy: rules, Records: store}
				b.StartTimer()
				took := make([]time.Duration, n)
				for i := range n {
					began := time.Now()
					work(b, store, phase)
					took[i] = time.Since(began)
				}
				mean := func(part []time.Duration) float64 {
					var sum time.Duration
					for _, d := range part {
						sum += d
					}
					return float64(sum.Microseconds()) / float64(len(part))
				}
				b.ReportMetric(mean(took[n-n/10:])/mean(took[:n/10]), "ratio")
				b.ReportMetric(1e6/mean(took), "jobs/s")
			}
		})
	}
}

// work is one job with one directory, from its lease to its end.
func work(t testing.TB, store *sqlstore.Store, phase *job.Phase) {
	t.Helper()
	ctx := context.Background()
	j, ok, err := store.Lease(ctx, "w", nil)
	if err != nil || !ok {
		t.Fatalf("%v %v", ok, err)
	}
	report, err := phase.Run(ctx, job.Job{ID: j.ID, TaskID: j.TaskID, Trigger: j.Trigger, Attempt: j.Attempts, Snapshot: j.Snapshot, Stops: job.StopsSucceeded, Hook: core.HookNone})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := core.ParseJobSnapshot(report.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if end := snapshot.Targets()[0]; end.Outcome != core.OutcomeRemoved {
		t.Fatalf("%s came to %s %s: %s", j.TaskID, end.Outcome, end.Reason, end.Detail)
	}
	if err := store.Finish(ctx, ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: "w"}, ports.Ending{State: ports.Succeeded}); err != nil {
		t.Fatal(err)
	}
}

// inventoried is a host in memory on which every directory is as one that was
// recorded, safe, and can be removed.
type inventoried struct{ inventory string }

func recorded(t testing.TB) inventoried {
	t.Helper()
	raw, err := os.ReadFile("../../fixtures/transcripts/clean-pushed.json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Body []string }
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	return inventoried{strings.Join(answer.Body, "\n")}
}

func (h inventoried) Dial(context.Context, core.Target) (ports.Session, core.NeverRan) {
	return h, core.NeverRan{}
}
func (inventoried) Trips() int   { return 0 }
func (inventoried) Close() error { return nil }

func (h inventoried) Run(_ context.Context, script core.Script) core.Reply {
	switch script.Name {
	case "greet":
		return core.Said{Body: fmt.Sprintf("reclaim 1 greet\nhome =/home/dev\nroot =/home/dev/.kandev\nplatform =Linux\ngit =2.39.5\nclock %d\ntasks directory\ntarget directory\nholder none ~ ~\nend 8\n", time.Now().Unix())}
	case "inventory":
		return core.Said{Body: h.inventory}
	}
	_, about, _ := strings.Cut(script.Body, "\nabout='")
	about, _, _ = strings.Cut(about, "'")
	return core.Said{Body: "reclaim 1 remove\nabout " + about + "\nrm 0\nfreed 4096 78\ntarget absent\nholder absent\nended gone ~\nend 6\n"}
}
