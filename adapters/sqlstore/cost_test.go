package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
}

// analyze has PostgreSQL count what fill put.
func analyze(t testing.TB, s seed) {
	t.Helper()
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
			analyze(b, seed{db, dialect})
			for name, owners := range map[string]ports.Owners{"ours": store, "over": sqlstore.Over(db, dialect)} {
				b.Run(fmt.Sprintf("%s/%d/%s", dialect, n, name), func(b *testing.B) {
					look := func() {
						o := owners.Owner(context.Background(), core.Owner{JobID: "task-000050", TaskID: "task-000050", Environment: "e", Target: target("task-000050")})
						if o.Error != "" || len(o.Claims) != 0 {
							b.Fatalf("%+v", o)
						}
					}
					look() // the first classifies what was written meanwhile
					for b.Loop() {
						look()
					}
				})
			}
		}
	}
}

// BenchmarkJobs leases every one of many jobs, runs the phase on hosts that live in
// memory, and finishes it. The ratio is what one job of the last tenth costs of
// one of the first: it must not grow with what is queued or done. The two tenths
// are worked off in turns, in two databases, so that whatever else the machine
// does is in both.
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
			queued := func() func() time.Duration {
				store, db := installed(b, dialect)
				fill(b, seed{db, dialect}, n)
				analyze(b, seed{db, dialect})
				phase := &job.Phase{Dialer: recorded(b), Owners: store, Row: store, Policy: rules, Records: store}
				return func() time.Duration {
					began := time.Now()
					work(b, store, phase)
					return time.Since(began)
				}
			}
			for b.Loop() {
				b.StopTimer()
				old := queued()
				var all, first, last time.Duration
				for range n - n/10 {
					all += old()
				}
				fresh := queued()
				b.StartTimer()
				for range n / 10 {
					first += fresh()
					last += old()
				}
				b.ReportMetric(float64(last)/float64(first), "ratio")
				b.ReportMetric(float64(n)/(all+last).Seconds(), "jobs/s")
			}
		})
	}
}

// What a job costs must not depend on how many wait, and not on what the planner
// was told of them: the rows that PostgreSQL reads for one are counted, once with
// its statistics taken while nothing was classified, once with none at all.
func TestPostgreSQLReadsAsManyRowsForAJobHoweverManyWait(t *testing.T) {
	const n = 2000
	rules, err := policy.New()
	if err != nil {
		t.Fatal(err)
	}
	for counted, settings := range map[string]string{"analyzed": `ANALYZE`, "never analyzed": `SELECT 1`} {
		t.Run(counted, func(t *testing.T) {
			t.Parallel()
			store, db := installed(t, sqlstore.PostgreSQL)
			db.SetMaxOpenConns(1) // a connection tells what it read when it is asked to, of itself alone
			rows := seed{db, sqlstore.PostgreSQL}
			for _, table := range []string{"tasks", "task_environments", "executors_running", "task_resource_cleanup_jobs", "reclaim_places", "reclaim_records"} {
				rows.exec(t, `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`) // nobody counts meanwhile
			}
			fill(t, rows, 1)
			again := func(column string) string {
				return `replace(` + column + `, 'task-000000', 'task-' || lpad(i::text, 6, '0'))`
			}
			for _, copied := range []string{
				`INSERT INTO tasks (id, title, archived_at, created_at, updated_at) SELECT ` + again("id") + `, title, archived_at, created_at, updated_at FROM tasks`,
				`INSERT INTO task_environments (id, task_id, executor_type, executor_id, executor_profile_id, workspace_path, created_at, updated_at)
					SELECT ` + again("id") + `, ` + again("task_id") + `, executor_type, executor_id, executor_profile_id, ` + again("workspace_path") + `, created_at, updated_at FROM task_environments`,
				`INSERT INTO executors_running (id, session_id, task_id, executor_id, execution_profile_id, runtime, status, metadata, created_at, updated_at)
					SELECT ` + again("id") + `, ` + again("id") + `, ` + again("id") + `, executor_id, execution_profile_id, runtime, status, ` + again("metadata") + `, created_at, updated_at FROM executors_running`,
				`INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, resource_snapshot, created_at, updated_at)
					SELECT ` + again("id") + `, ` + again("id") + `, ` + again("id") + `, trigger, state, ` + again("resource_snapshot") + `, created_at, updated_at FROM task_resource_cleanup_jobs`,
			} {
				rows.exec(t, copied+`, generate_series(1, ?::int) AS i`, n-1)
			}
			// Half of them wait for a retry, and each has a record.
			rows.exec(t, `UPDATE task_resource_cleanup_jobs SET state = 'retry_wait', next_attempt_at = ? WHERE id LIKE '%1' OR id LIKE '%3' OR id LIKE '%5' OR id LIKE '%7' OR id LIKE '%9'`, rows.at(time.Now().Add(time.Hour)))
			rows.exec(t, `INSERT INTO reclaim_records (id, job_id, task_id, attempt, kept_ms, record) SELECT id, id, task_id, 0, ?, '{}' FROM task_resource_cleanup_jobs`, time.Now().UnixMilli())
			rows.exec(t, settings)
			phase := &job.Phase{Dialer: recorded(t), Owners: store, Row: store, Policy: rules, Records: store}
			look := func(sum *int64) {
				const all = `SELECT SUM(COALESCE(seq_tup_read, 0) + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_user_tables`
				rows.exec(t, `SELECT pg_stat_force_next_flush()`)
				if err := db.QueryRow(all).Scan(sum); err != nil {
					t.Fatal(err)
				}
			}
			read := func(jobs int) (each int64) {
				var before, after int64
				look(&before)
				for range jobs {
					work(t, store, phase)
				}
				look(&after)
				return (after - before) / int64(jobs)
			}
			// The first one has every row looked at that another program wrote.
			first := read(1)
			early := read(20)
			t.Logf("the first job read %d rows, the next %d each", first, early)
			if first > 60*int64(n) {
				t.Errorf("the first job read %d rows of %d tasks", first, n)
			}
			if early > 150 {
				t.Errorf("each of the next jobs read %d rows, with %d tasks", early, n)
			}
			// Where every job's host is held a look reads each of them a few times.
			var before, after int64
			look(&before)
			if _, ok, err := store.Lease(t.Context(), "w", []string{"box.example"}); ok || err != nil {
				t.Fatal(ok, err)
			}
			if look(&after); after-before > 10*n {
				t.Errorf("a look past held hosts read %d rows of %d tasks", after-before, n)
			}
		})
	}
}

// SQLite says of a statement which tables it reads from end to end.
func TestSQLiteReadsNoTableFromEndToEndForAJob(t *testing.T) {
	rules, err := policy.New()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "reclaim.db")
	plain := openSQLite(t, path)
	if err := sqlstore.Init(t.Context(), plain, sqlstore.SQLite); err != nil {
		t.Fatal(err)
	}
	fill(t, seed{plain, sqlstore.SQLite}, 30)
	heard := listening{plain.Driver(), sqliteDSN(path), map[string][]any{}}
	db := sql.OpenDB(heard)
	t.Cleanup(func() { db.Close() })
	store, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	phase := &job.Phase{Dialer: recorded(t), Owners: store, Row: store, Policy: rules, Records: store}
	work(t, store, phase)
	clear(heard.statements)
	work(t, store, phase)
	if len(heard.statements) < 20 {
		t.Fatalf("only %d statements were heard", len(heard.statements))
	}
	for statement, args := range heard.statements {
		plan, err := plain.Query(`EXPLAIN QUERY PLAN `+statement, args...)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		for plan.Next() {
			var id, parent, unused int
			var detail string
			if err := plan.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			table, whole := strings.CutPrefix(detail, "SCAN ")
			table, _, _ = strings.Cut(table, " ")
			switch {
			case detail == "USE TEMP B-TREE FOR ORDER BY" && strings.Contains(statement, "LIMIT"):
				t.Errorf("%s\n%s", detail, statement)
			case whole && !slices.Contains([]string{"named", "CONSTANT", "sqlite_master", "reclaim_switches", "executors", "executor_profiles"}, table) && !strings.HasPrefix(table, "("):
				t.Errorf("%s\n%s", detail, statement)
			}
		}
		if err := errors.Join(plan.Err(), plan.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// listening opens SQLite connections and keeps what is sent over them.
type listening struct {
	through    driver.Driver
	dsn        string
	statements map[string][]any
}

func (l listening) Driver() driver.Driver { return l.through }

func (l listening) Connect(context.Context) (driver.Conn, error) {
	c, err := l.through.Open(l.dsn)
	return overheard{c, l}, err
}

type overheard struct {
	driver.Conn
	by listening
}

func (o overheard) keep(query string, args []driver.NamedValue) {
	var values []any
	for _, a := range args {
		values = append(values, a.Value)
	}
	if !strings.HasPrefix(query, "BEGIN") {
		o.by.statements[query] = values
	}
}

func (o overheard) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	o.keep(query, args)
	return o.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (o overheard) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	o.keep(query, args)
	return o.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (o overheard) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return o.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
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
