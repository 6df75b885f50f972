package job_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"; a backend links its own

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
)

// away is a backend whose host does not answer: every port in a line or two.
type away struct{}

func (away) Dial(context.Context, core.Target) (ports.Session, core.NeverRan) {
	return nil, core.NeverRan{Fault: core.Unreachable, Detail: "nobody answers"}
}

func (away) Owner(context.Context, core.Owner) core.Ownership {
	return core.Ownership{TaskTerminal: true, OptInNow: core.On, Environment: &core.Environment{ID: "env-1", TaskID: "t-1"}}
}

func (away) Begin(context.Context, core.Begin) core.Begun { return core.Begun{} }

func (away) Conclude(context.Context, ports.Conclusion) error { return nil }

// The ports are small enough to be faked. A failure is typed, tells whether a
// retry can help, and stands in the snapshot beside what was there before.
func Example_fakePorts() {
	rules, err := policy.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	phase := &job.Phase{Dialer: away{}, Owners: away{}, Row: away{}, Policy: rules}
	report, err := phase.Run(context.Background(), job.Job{ID: "j-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, Stops: job.StopsSucceeded, Hook: core.HookNone,
		Snapshot: []byte(`{"of_tomorrow": 1e2,"task_environment":{"id":"env-1","task_id":"t-1"},"ssh_task_dirs":[{"host":"build1","host_fingerprint":"SHA256:AAAA","workdir_root":"/srv/k","task_dir":"/srv/k/tasks/fix","enabled":true}]}`)})
	var failed *job.TargetError
	fmt.Println(errors.As(err, &failed), failed.Failure.Fault, job.Final(err))
	fmt.Println(string(report.Snapshot))
	// Output:
	// true unreachable false
	// {"of_tomorrow": 1e2,"task_environment":{"id":"env-1","task_id":"t-1"},"ssh_task_dirs":[{"host":"build1","host_fingerprint":"SHA256:AAAA","workdir_root":"/srv/k","task_dir":"/srv/k/tasks/fix","enabled":true,"outcome":"failed","detail":"nobody answers","reclaim":{"fault":"unreachable"}}]}
}

// Over its own database a backend needs no port of its own.
func Example_database() {
	db, done := backendsOwn()
	defer done()
	rules, err := policy.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := sqlstore.Over(db, sqlstore.SQLite)
	phase := &job.Phase{Dialer: sshhost.New(sshhost.Options{}), Owners: rows, Row: rows, Policy: rules}
	var snapshot []byte
	if err := db.QueryRow(`SELECT resource_snapshot FROM task_resource_cleanup_jobs WHERE id = 'j-1'`).Scan(&snapshot); err != nil {
		fmt.Println(err)
		return
	}
	report, err := phase.Run(context.Background(), job.Job{ID: "j-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 1,
		Snapshot: snapshot, Stops: job.StopsSucceeded, Hook: core.HookNone})
	result := report.Targets[0].Result
	fmt.Println(result.Outcome, result.Reason, result.Cause, err)
	// Output:
	// skipped shared claim <nil>
}

// backendsOwn is a backend's database with one running job, whose directory
// another open task works in.
func backendsOwn() (*sql.DB, func()) {
	folder, err := os.MkdirTemp("", "job-example-")
	if err != nil {
		panic(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "backend.db"))
	if err != nil {
		panic(err)
	}
	if _, err := db.Exec(`
CREATE TABLE tasks (id TEXT PRIMARY KEY, archived_at TIMESTAMP);
CREATE TABLE executor_profiles (id TEXT PRIMARY KEY, config TEXT);
CREATE TABLE executors (id TEXT PRIMARY KEY, config TEXT);
CREATE TABLE executors_running (id TEXT PRIMARY KEY, session_id TEXT, task_id TEXT, execution_profile_id TEXT, metadata TEXT);
CREATE TABLE task_environments (id TEXT PRIMARY KEY, task_id TEXT, executor_type TEXT, executor_id TEXT, workspace_path TEXT, created_at TIMESTAMP);
CREATE TABLE task_sessions (id TEXT PRIMARY KEY, task_id TEXT, state TEXT, task_environment_id TEXT);
CREATE TABLE task_resource_cleanup_jobs (id TEXT PRIMARY KEY, task_id TEXT, state TEXT, resource_snapshot TEXT, attempts INTEGER, updated_at TIMESTAMP);
INSERT INTO tasks VALUES ('t-1', '2026-11-30 02:15:56+00:00'), ('t-2', NULL);
INSERT INTO task_environments (id, task_id, created_at) VALUES ('env-1', 't-1', '2026-11-30 02:15:56+00:00');
INSERT INTO executors_running VALUES ('r-2', 's-2', 't-2', '', '{"ssh_host":"build1","ssh_remote_task_dir":"/srv/k/tasks/fix"}');
INSERT INTO task_resource_cleanup_jobs VALUES ('j-1', 't-1', 'running',
  '{"task_environment":{"id":"env-1","task_id":"t-1"},"ssh_task_dirs":[{"host":"build1","host_fingerprint":"SHA256:AAAA","workdir_root":"/srv/k","task_dir":"/srv/k/tasks/fix","enabled":true}]}', 1, '2026-11-30 02:15:56+00:00');`); err != nil {
		panic(err)
	}
	return db, func() {
		db.Close()
		os.RemoveAll(folder)
	}
}
