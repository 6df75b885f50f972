package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

// hostTables are a backend's own: more columns than the contract names, in
// another order, none of our tables, no index of ours.
const hostTables = `
CREATE TABLE tasks (updated_at TIMESTAMP NOT NULL, priority INTEGER DEFAULT 0, title TEXT NOT NULL, created_at TIMESTAMP NOT NULL, id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL DEFAULT '',
  metadata TEXT DEFAULT '{}', archived_at TIMESTAMP, archived_by_cascade_id TEXT DEFAULT '', parent_id TEXT DEFAULT '', later TEXT);
CREATE TABLE executors (id TEXT PRIMARY KEY, resumable INTEGER DEFAULT 0, name TEXT NOT NULL, type TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active', config TEXT DEFAULT '{}',
  created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL, deleted_at TIMESTAMP);
CREATE TABLE executor_profiles (later TEXT, id TEXT PRIMARY KEY, executor_id TEXT NOT NULL, name TEXT NOT NULL, config TEXT DEFAULT '{}', prepare_script TEXT, cleanup_script TEXT, env_vars TEXT,
  created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE TABLE executors_running (session_id TEXT NOT NULL UNIQUE, id TEXT PRIMARY KEY, task_id TEXT NOT NULL, executor_id TEXT NOT NULL, execution_profile_id TEXT NOT NULL DEFAULT '', runtime TEXT, status TEXT NOT NULL DEFAULT 'starting',
  resumable INTEGER NOT NULL DEFAULT 0, resume_token TEXT, agent_execution_id TEXT, pid INTEGER, last_seen_at TIMESTAMP, created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL, metadata TEXT, later INTEGER DEFAULT 7);
CREATE TABLE task_environments (id TEXT PRIMARY KEY, repository_id TEXT, task_id TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE, executor_type TEXT NOT NULL DEFAULT '', executor_id TEXT, executor_profile_id TEXT,
  control_port INTEGER DEFAULT 0, status TEXT NOT NULL DEFAULT 'creating', workspace_path TEXT, task_dir_name TEXT, created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE TABLE task_sessions (environment_id TEXT DEFAULT 'another', id TEXT PRIMARY KEY, task_id TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE, state TEXT NOT NULL DEFAULT 'CREATED', task_environment_id TEXT,
  executor_id TEXT, executor_profile_id TEXT, metadata TEXT, started_at TIMESTAMP NOT NULL, completed_at TIMESTAMP, updated_at TIMESTAMP NOT NULL);
CREATE TABLE task_resource_cleanup_jobs (created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL, completed_at TIMESTAMP, id TEXT PRIMARY KEY, operation_id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, trigger TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending', resource_snapshot TEXT NOT NULL DEFAULT '{}', attempts INTEGER NOT NULL DEFAULT 0, next_attempt_at TIMESTAMP, last_error TEXT NOT NULL DEFAULT '', worker TEXT);
CREATE INDEX ix_cleanup_task ON task_resource_cleanup_jobs(task_id);
CREATE INDEX ix_cleanup_due ON task_resource_cleanup_jobs(state, next_attempt_at, created_at);`

func hosts(t testing.TB, dialect sqlstore.Dialect) (*sql.DB, seed) {
	t.Helper()
	db := empty(t, dialect)
	if _, err := db.Exec(hostTables); err != nil {
		t.Fatal(err)
	}
	return db, seed{db, dialect}
}

func TestRowsOverAHostsDatabaseKeepTheRowContract(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			db, rows := hosts(t, dialect)
			porttest.TestRows(t, func(t *testing.T) (porttest.Rows, porttest.Seed) {
				for _, table := range []string{"task_sessions", "task_environments", "tasks", "executor_profiles", "executors", "executors_running", "task_resource_cleanup_jobs"} {
					rows.exec(t, "DELETE FROM "+table)
				}
				return sqlstore.Over(db, dialect), rows
			})
		})
	}
}

// dump is everything a database holds, as text: what it declares and every
// value of every row.
func dump(t testing.TB, db *sql.DB, dialect sqlstore.Dialect) map[string]string {
	t.Helper()
	all := map[string]string{}
	catalogue := `SELECT name, COALESCE(sql, '') FROM sqlite_master`
	if dialect == sqlstore.PostgreSQL {
		catalogue = `SELECT c.relname || '.' || COALESCE(a.attname, ''), c.relkind::text || format_type(a.atttypid, a.atttypmod) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 WHERE n.nspname = current_schema() UNION ALL SELECT proname, 'function' FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = current_schema()`
	}
	read := func(name, query string) {
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		for i := 0; rows.Next(); i++ {
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for j := range values {
				into[j] = &values[j]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for j, column := range columns {
				if b, ok := values[j].([]byte); ok {
					values[j] = string(b)
				}
				all[fmt.Sprintf("%s[%d].%s", name, i, column)] = fmt.Sprintf("%T %v", values[j], values[j])
			}
		}
	}
	read("catalogue", catalogue+" ORDER BY 1, 2")
	for _, table := range []string{"tasks", "executors", "executor_profiles", "executors_running", "task_environments", "task_sessions", "task_resource_cleanup_jobs"} {
		columns := "*"
		if dialect == sqlstore.SQLite { // as text, so that the driver's reading of a time hides nothing
			names := []string{}
			rows, err := db.Query(`SELECT name FROM pragma_table_info('` + table + `')`)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var name string
				rows.Scan(&name)
				names = append(names, "CAST("+name+" AS BLOB) || '' AS "+name)
			}
			rows.Close()
			columns = strings.Join(names, ", ")
		}
		read(table, "SELECT "+columns+" FROM "+table+" ORDER BY id")
	}
	return all
}

// hostRows are rows as hosts of several versions leave them: both spellings of
// a time, rows from before the feature, unknown words and keys.
func hostRows(t testing.TB, s seed) {
	t.Helper()
	times := []any{"2026-11-30 02:15:56.294123907+00:00", "2026-11-30 02:15:57+00:00", "2026-11-30T02:15:58.5Z", "2026-11-30 02:15:59.1"}
	if s.dialect == sqlstore.PostgreSQL {
		times = []any{"2026-11-30 02:15:56.294123", "2026-11-30 02:15:57", "2026-11-30 02:15:58.5", "2026-11-30 02:15:59.1"}
	}
	s.exec(t, `INSERT INTO tasks (id, title, archived_at, created_at, updated_at) VALUES ('t-1', 'Fix login', ?, ?, ?)`, times[0], times[1], times[1])
	s.exec(t, `INSERT INTO task_environments (id, task_id, executor_type, workspace_path, created_at, updated_at) VALUES ('env-1', 't-1', 'ssh', NULL, ?, ?)`, times[0], times[1])
	s.exec(t, `INSERT INTO task_sessions (id, task_id, state, task_environment_id, started_at, updated_at) VALUES ('s-1', 't-1', 'HIBERNATING', NULL, ?, ?)`, times[0], times[1])
	s.exec(t, `INSERT INTO executors_running (id, session_id, task_id, executor_id, runtime, metadata, created_at, updated_at) VALUES ('r-1', 's-1', 't-1', 'e', NULL, NULL, ?, ?)`, times[0], times[2])
	s.exec(t, `INSERT INTO executors (id, name, type, config, created_at, updated_at) VALUES ('e', 'box', 'ssh', '{"ssh_host":"box.example","later":"x"}', ?, ?), ('l', 'local', 'local_pc', NULL, ?, ?)`, times[0], times[0], times[0], times[0])
	s.exec(t, `INSERT INTO executor_profiles (id, executor_id, name, config, created_at, updated_at) VALUES ('p-1', 'e', 'box', '{"ssh_reclaim_task_dir":"true"}', ?, ?), ('p-2', 'l', 'local', NULL, ?, ?)`, times[0], times[0], times[0], times[0])
	for i, row := range []struct{ trigger, state, snapshot string }{
		{"archive", "running", ` {"sessions":[{"id":"s-1","n":9007199254740993}],"task_environment":{"id":"env-1","task_id":"t-1","executor_profile_id":"p-1","created_at":"2026-11-30T02:15:56.294123907Z"},` + "\n" + `"orphan_reap_roots":null,"ssh_task_dirs":[` + targetOf("a") + `]}`},
		{"archive", "succeeded", `{"sessions":[]}`},
		{"archive_reclaim", "waiting_for_clean", `{"source":{"path":"x"}}`},
		{"word_of_tomorrow", "pending", `{"ssh_task_dirs":{"v":2}}`},
		{"delete", "state_of_tomorrow", `{`},
		{"workspace_delete", "failed", `null`},
	} {
		task := "t-1"
		if i > 1 {
			task = fmt.Sprint("t-", i)
		}
		s.exec(t, `INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, resource_snapshot, attempts, created_at, updated_at, completed_at, next_attempt_at, worker) VALUES (?, ?, ?, ?, ?, ?, 3, ?, ?, ?, NULL, 'w')`,
			fmt.Sprint("job-", i), fmt.Sprint("job-", i), task, row.trigger, row.state, row.snapshot, times[i%4], times[(i+1)%4], times[(i+2)%4])
	}
}

func TestAC_D21_AHostsRowsAreReadAndOnlyTheHeldRowsTwoColumnsChange(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			db, rows := hosts(t, dialect)
			hostRows(t, rows)
			before := dump(t, db, dialect)
			ctx := t.Context()
			over := sqlstore.Over(db, dialect)
			desk, err := sqlstore.DeskOver(ctx, db, dialect)
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := desk.Jobs(ctx, "", 100)
			if err != nil || len(jobs) != 6 {
				t.Fatalf("%d jobs: %v", len(jobs), err)
			}
			first, err := desk.Job(ctx, "job-0")
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 11, 30, 2, 15, 56, 294123907, time.UTC)
			if dialect == sqlstore.PostgreSQL {
				at = at.Truncate(time.Microsecond)
			}
			if !first.CreatedAt.Equal(at) || first.CreatedAt.Location() != time.UTC || !first.CompletedAt.Equal(time.Date(2026, 11, 30, 2, 15, 58, 500000000, time.UTC)) || !first.NextAttemptAt.IsZero() {
				t.Errorf("%+v", first)
			}
			profiles, err := desk.Profiles(ctx)
			if diff := cmp.Diff([]ports.Profile{{ID: "p-1", Name: "box", Executor: "box", Host: "box.example", Reclaim: "true"}}, profiles); diff != "" || err != nil {
				t.Error(diff, err)
			}
			if kept, err := desk.Kept(ctx); err != nil || len(kept) != 0 {
				t.Errorf("%+v %v", kept, err)
			}
			if filed, err := desk.RecordsOf(ctx, "job-0"); err != nil || len(filed) != 0 {
				t.Errorf("%+v %v", filed, err)
			}
			if on, err := desk.Stopped(ctx); on || err != nil {
				t.Errorf("%v %v", on, err)
			}
			o := over.Owner(ctx, core.Owner{JobID: "job-0", TaskID: "t-1", Environment: "env-1", Target: target("a")})
			if !o.TaskTerminal || o.OptInNow != core.On || o.Environment == nil || o.Error != "" || len(o.Claims) != 2 {
				t.Errorf("%+v", o) // of the two jobs that have not ended and whose snapshots cannot be read
			}
			for what, change := range map[string]func() error{
				"retry":       func() error { _, err := desk.Retry(ctx, "job-3"); return err },
				"cancel":      func() error { return desk.Cancel(ctx, "job-3") },
				"judge again": func() error { _, err := desk.JudgeAgain(ctx, "job-1"); return err },
				"profile":     func() error { return desk.SetReclaim(ctx, "p-1", false) },
				"stop all":    func() error { return desk.SetStopped(ctx, true) },
				"open":        func() error { _, err := sqlstore.Open(ctx, db, dialect); return err },
			} {
				if err := change(); !errors.Is(err, sqlstore.ErrNotOurs) {
					t.Errorf("%s on a host's database: %v", what, err)
				}
			}
			if err := sqlstore.Init(ctx, db, dialect); !errors.Is(err, sqlstore.ErrNotEmpty) {
				t.Errorf("init of a host's database: %v", err)
			}
			if diff := cmp.Diff(before, dump(t, db, dialect)); diff != "" {
				t.Fatalf("looking changed something:\n%s", diff)
			}
			if begun := over.Begin(ctx, core.Begin{JobID: "job-0", TaskID: "t-1", Attempt: 3, Target: target("a")}); begun.Ending != core.BeginRecorded {
				t.Fatalf("%+v", begun)
			}
			if err := over.Conclude(ctx, ports.Conclusion{JobID: "job-0", Attempt: 3, Target: target("a"), Outcome: core.Removed{Detail: "gone"}}); err != nil {
				t.Fatal(err)
			}
			after := dump(t, db, dialect)
			changed := map[string]bool{}
			for key, value := range after {
				if before[key] != value {
					changed[key] = true
				}
			}
			if diff := cmp.Diff(map[string]bool{"task_resource_cleanup_jobs[0].resource_snapshot": true, "task_resource_cleanup_jobs[0].updated_at": true}, changed); diff != "" || len(before) != len(after) {
				t.Error(diff)
			}
			want := strings.Replace(before["task_resource_cleanup_jobs[0].resource_snapshot"], `"enabled":true}`, `"enabled":true,"reclaim":{"begun":3},"outcome":"removed","detail":"gone"}`, 1)
			if diff := cmp.Diff(want, after["task_resource_cleanup_jobs[0].resource_snapshot"]); diff != "" {
				t.Error(diff)
			}
			if dialect == sqlstore.SQLite && !strings.HasSuffix(after["task_resource_cleanup_jobs[0].updated_at"], "+00:00") {
				t.Errorf("updated_at is %s", after["task_resource_cleanup_jobs[0].updated_at"])
			}
		})
	}
}

func TestAC_D21_InitMakesOneInstallationAndRefusesWhatIsNotItsOwn(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			ctx := t.Context()
			db := empty(t, dialect)
			if _, err := sqlstore.Open(ctx, db, dialect); !errors.Is(err, sqlstore.ErrNotOurs) {
				t.Errorf("an empty database is opened: %v", err)
			}
			// An init that was cut short leaves the migrations' own table.
			if _, err := db.Exec(`CREATE TABLE reclaim_migrations (id INTEGER PRIMARY KEY ` + map[sqlstore.Dialect]string{sqlstore.SQLite: "AUTOINCREMENT", sqlstore.PostgreSQL: "GENERATED BY DEFAULT AS IDENTITY"}[dialect] +
				`, version_id BIGINT NOT NULL, is_applied ` + map[sqlstore.Dialect]string{sqlstore.SQLite: "INTEGER", sqlstore.PostgreSQL: "BOOLEAN"}[dialect] + ` NOT NULL, tstamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)`); err != nil {
				t.Fatal(err)
			}
			seed{db, dialect}.exec(t, `INSERT INTO reclaim_migrations (version_id, is_applied) VALUES (0, `+map[sqlstore.Dialect]string{sqlstore.SQLite: "1", sqlstore.PostgreSQL: "true"}[dialect]+`)`)
			for range 2 {
				if err := sqlstore.Init(ctx, db, dialect); err != nil {
					t.Fatal(err)
				}
			}
			applied := map[sqlstore.Dialect]string{sqlstore.SQLite: "1", sqlstore.PostgreSQL: "true"}[dialect]
			for _, other := range []struct {
				change, back string
				want         error
			}{
				{`DELETE FROM reclaim_migrations WHERE version_id = 3`, `INSERT INTO reclaim_migrations (version_id, is_applied) VALUES (3, ` + applied + `)`, sqlstore.ErrOutdated},
				{`INSERT INTO reclaim_migrations (version_id, is_applied) VALUES (4, ` + applied + `)`, `DELETE FROM reclaim_migrations WHERE version_id = 4`, sqlstore.ErrNewer},
			} {
				seed{db, dialect}.exec(t, other.change)
				if _, err := sqlstore.Open(ctx, db, dialect); !errors.Is(err, other.want) {
					t.Errorf("%s: %v", other.change, err)
				}
				seed{db, dialect}.exec(t, other.back)
			}
			store, err := sqlstore.Open(ctx, db, dialect)
			if err != nil {
				t.Fatal(err)
			}
			seed{db, dialect}.PutTask(t, porttest.Task{ID: "t-1"})
			if err := sqlstore.Init(ctx, db, dialect); err != nil {
				t.Errorf("init of our own: %v", err)
			}
			if open, err := store.Terminal(ctx, "t-1"); open || err != nil {
				t.Errorf("init took a row away: %v %v", open, err)
			}
			seed{db, dialect}.exec(t, `UPDATE reclaim_installation SET made_by = 'another'`)
			if err := store.Ours(ctx); !errors.Is(err, sqlstore.ErrNotOurs) {
				t.Errorf("marked by another: %v", err)
			}
			if err := sqlstore.Init(ctx, db, dialect); !errors.Is(err, sqlstore.ErrNotEmpty) {
				t.Errorf("init of another's: %v", err)
			}

			odd := empty(t, dialect)
			if _, err := odd.Exec(`CREATE TABLE notes (id INTEGER)`); err != nil {
				t.Fatal(err)
			}
			if err := sqlstore.Init(ctx, odd, dialect); !errors.Is(err, sqlstore.ErrNotEmpty) || !strings.Contains(err.Error(), "notes") {
				t.Errorf("a database with notes in it: %v", err)
			}
		})
	}
}

func TestATimeIsReadInEverySpelling(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "host.db"))
	if _, err := db.Exec(hostTables); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 2, 15, 56, 294000000, time.UTC)
	desk, err := sqlstore.DeskOver(t.Context(), db, sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"2026-11-30 02:15:56.294+00:00", "2026-11-30 03:15:56.294+01:00", "2026-11-30 02:15:56.294", "2026-11-30T02:15:56.294Z", "2026-11-30T02:15:56.294",
		"2026-11-30 02:15:56.294 +0000 UTC", "2026-11-30 02:15:56.294 +0000 UTC m=+1.5", "2026-11-30 02:15:56.294Z"} {
		id := fmt.Sprint("job-", i)
		seed{db, sqlstore.SQLite}.exec(t, `INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, created_at, updated_at) VALUES (?, ?, 't', 'archive', ?, ?)`, id, id, text, text)
		j, err := desk.Job(t.Context(), id)
		if err != nil || !j.CreatedAt.Equal(at) {
			t.Errorf("%s: %v %v", text, j.CreatedAt, err)
		}
	}
}
