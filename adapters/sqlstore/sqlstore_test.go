package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

// server is one PostgreSQL for the package, started when the first test needs it.
var server = struct {
	sync.Once
	*pgtest.Server
}{}

func postgres() *pgtest.Server {
	server.Do(func() { server.Server = pgtest.Start(nil, "fsync=off", "full_page_writes=off") })
	return server.Server
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerEnv); spec != "" {
		if err := workUntilKilled(spec, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	status := m.Run()
	if server.Server != nil {
		server.Stop()
	}
	os.Exit(status)
}

// sqliteDSN opens a file as our binary does.
func sqliteDSN(path string) string {
	q := url.Values{"_time_format": {"sqlite"}, "_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "foreign_keys(1)", "journal_mode(WAL)", "synchronous(FULL)"}}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

func openSQLite(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", sqliteDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// empty opens a database without tables.
func empty(t testing.TB, dialect sqlstore.Dialect) *sql.DB {
	t.Helper()
	if dialect == sqlstore.PostgreSQL {
		return postgres().Database(t)
	}
	return openSQLite(t, filepath.Join(t.TempDir(), "reclaim.db"))
}

func installed(t testing.TB, dialect sqlstore.Dialect) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db := empty(t, dialect)
	if err := sqlstore.Init(t.Context(), db, dialect); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), db, dialect)
	if err != nil {
		t.Fatal(err)
	}
	return store, db
}

var dialects = []sqlstore.Dialect{sqlstore.SQLite, sqlstore.PostgreSQL}

func TestASQLStoreKeepsTheStorageContract(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			store, db := installed(t, dialect)
			porttest.TestStorage(t, func(t *testing.T) (porttest.Storage, ports.Desk, porttest.Seed) {
				seed{db, dialect}.clear(t)
				return store, store.Desk(), seed{db, dialect}
			})
		})
	}
}

func TestRowsOverOurTablesKeepTheRowContract(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			store, db := installed(t, dialect)
			porttest.TestRows(t, func(t *testing.T) (porttest.Rows, porttest.Seed) {
				seed{db, dialect}.clear(t)
				return store, seed{db, dialect}
			})
		})
	}
}

// seed writes rows as the host does.
type seed struct {
	db      *sql.DB
	dialect sqlstore.Dialect
}

// clear empties every table of a stand-alone install but its marks.
func (s seed) clear(t testing.TB) {
	t.Helper()
	for _, table := range []string{"task_sessions", "task_environments", "tasks", "executor_profiles", "executors", "executors_running", "task_resource_cleanup_jobs",
		"reclaim_leases", "reclaim_switches", "reclaim_records"} {
		s.exec(t, "DELETE FROM "+table)
	}
}

func (s seed) at(at time.Time) any {
	switch {
	case at.IsZero():
		return nil
	case s.dialect == sqlstore.PostgreSQL:
		return at.UTC()
	}
	return at.UTC().Format("2006-01-02 15:04:05.999999999-07:00")
}

// numbered writes PostgreSQL's placeholders.
func numbered(dialect sqlstore.Dialect, query string) string {
	if dialect != sqlstore.PostgreSQL {
		return query
	}
	parts := strings.Split(query, "?")
	query = parts[0]
	for i, part := range parts[1:] {
		query += "$" + strconv.Itoa(i+1) + part
	}
	return query
}

func (s seed) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	query = numbered(s.dialect, query)
	if _, err := s.db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (s seed) PutTask(t testing.TB, row porttest.Task) {
	t.Helper()
	now := time.Now()
	var archived any
	if row.Archived {
		archived = s.at(now)
	}
	s.exec(t, `INSERT INTO tasks (id, title, parent_id, archived_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET archived_at = excluded.archived_at`, row.ID, row.Title, row.Parent, archived, s.at(now), s.at(now))
}

func (s seed) PutEnvironment(t testing.TB, row porttest.EnvironmentRow) {
	t.Helper()
	now := s.at(time.Now())
	s.exec(t, `INSERT INTO task_environments (id, task_id, executor_type, executor_id, executor_profile_id, workspace_path, created_at, updated_at) VALUES (?, ?, 'ssh', ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET task_id = excluded.task_id, executor_id = excluded.executor_id, workspace_path = excluded.workspace_path`, row.ID, row.TaskID, row.ProfileID, row.ProfileID, row.WorkspacePath, now, now)
}

func (s seed) PutSession(t testing.TB, row porttest.SessionRow) {
	t.Helper()
	now := s.at(time.Now())
	s.exec(t, `INSERT INTO task_sessions (id, task_id, state, task_environment_id, started_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state`, row.ID, row.TaskID, row.State, row.EnvironmentID, now, now)
}

func (s seed) PutLaunch(t testing.TB, row porttest.LaunchRow) {
	t.Helper()
	if row.Updated.IsZero() {
		row.Updated = time.Now()
	}
	s.exec(t, `INSERT INTO executors_running (id, session_id, task_id, executor_id, execution_profile_id, runtime, status, metadata, created_at, updated_at) VALUES (?, ?, ?, 'e', ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET metadata = excluded.metadata, status = excluded.status`, row.SessionID, row.SessionID, row.TaskID, row.ProfileID, row.Runtime, row.Status, row.Metadata, s.at(row.Updated), s.at(row.Updated))
}

func (s seed) PutProfile(t testing.TB, id, executor, profile string) {
	t.Helper()
	now := s.at(time.Now())
	s.exec(t, `INSERT INTO executors (id, name, type, config, created_at, updated_at) VALUES (?, ?, 'ssh', ?, ?, ?) ON CONFLICT (id) DO UPDATE SET config = excluded.config`, id, id, executor, now, now)
	s.exec(t, `INSERT INTO executor_profiles (id, executor_id, name, config, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET config = excluded.config`, id, id, id, profile, now, now)
}

func (s seed) PutJob(t testing.TB, j ports.Job) {
	t.Helper()
	s.exec(t, `INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, resource_snapshot, attempts, next_attempt_at, last_error, created_at, updated_at, completed_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET task_id = excluded.task_id, trigger = excluded.trigger, state = excluded.state, resource_snapshot = excluded.resource_snapshot,
		attempts = excluded.attempts, next_attempt_at = excluded.next_attempt_at, last_error = excluded.last_error, created_at = excluded.created_at, completed_at = excluded.completed_at`,
		j.ID, j.OperationID, j.TaskID, string(j.Trigger), string(j.State), string(j.Snapshot), j.Attempts, s.at(j.NextAttemptAt), j.LastError, s.at(j.CreatedAt), s.at(j.UpdatedAt), s.at(j.CompletedAt))
}

func (s seed) GetJob(t testing.TB, id string) ports.Job {
	t.Helper()
	desk, err := sqlstore.DeskOver(context.Background(), s.db, s.dialect)
	if err != nil {
		t.Fatal(err)
	}
	j, err := desk.Job(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (s seed) Archived(t testing.TB, task string, archived bool) {
	t.Helper()
	var at any
	if archived {
		at = s.at(time.Now())
	}
	s.exec(t, `UPDATE tasks SET archived_at = ? WHERE id = ?`, at, task)
}

func (s seed) Remove(t testing.TB, table, id string) {
	t.Helper()
	s.exec(t, `DELETE FROM `+table+` WHERE id = ?`, id)
}

func TestTheQueuesDepthCountsWhatHasNotEndedAndWhatWasGivenUp(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			store, db := installed(t, dialect)
			if depth, err := store.Depth(t.Context()); err != nil || len(depth) != 0 {
				t.Errorf("of an empty queue: %v %v", depth, err)
			}
			for i, state := range []ports.State{ports.Prepared, ports.Pending, ports.Pending, ports.Running, ports.RetryWait, ports.Succeeded, ports.JobFailed, ports.JobFailed, ports.Cancelled, "waiting_for_clean"} {
				id := fmt.Sprint("j-", i)
				seed{db, dialect}.PutJob(t, ports.Job{ID: id, OperationID: id, TaskID: id, Trigger: core.Archive, State: state, Snapshot: []byte("{}"), CreatedAt: time.Now(), UpdatedAt: time.Now()})
			}
			depth, err := store.Depth(t.Context())
			want := map[ports.State]int{ports.Prepared: 1, ports.Pending: 2, ports.Running: 1, ports.RetryWait: 1, ports.JobFailed: 2}
			if diff := cmp.Diff(want, depth); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestWhatIsForeseenIsWhatAnArchiveThenMakesAndWritesNothing(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			store, db := installed(t, dialect)
			rows := seed{db, dialect}
			rows.PutTask(t, porttest.Task{ID: "t-1", Title: "Fix login"})
			rows.PutTask(t, porttest.Task{ID: "done", Archived: true})
			rows.PutProfile(t, "p-1", `{"ssh_host":"box.example"}`, `{"ssh_reclaim_task_dir":"true"}`)
			rows.PutEnvironment(t, porttest.EnvironmentRow{ID: "env-1", TaskID: "t-1", ProfileID: "p-1", WorkspacePath: "/r/tasks/x"})
			rows.PutLaunch(t, porttest.LaunchRow{SessionID: "s-1", TaskID: "t-1", Runtime: "ssh", Status: "ready", ProfileID: "p-1",
				Metadata: `{"ssh_host":"box.example","ssh_port":"22","ssh_remote_task_dir":"/r/tasks/x","ssh_reclaim_task_dir":"true"}`})
			before := dump(t, db, dialect)
			foreseen, err := store.Foreseen(t.Context(), "t-1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, dump(t, db, dialect)); diff != "" {
				t.Error(diff)
			}
			ids, err := store.Archive(t.Context(), []string{"t-1"}, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(rows.GetJob(t, ids[0]).Snapshot), string(foreseen)); diff != "" {
				t.Error(diff)
			}
			if parsed, err := core.ParseJobSnapshot(foreseen); err != nil || len(parsed.Targets()) != 1 || !parsed.Targets()[0].Target.Enabled {
				t.Errorf("%s %v", foreseen, err)
			}
			for _, task := range []string{"t-1", "done", "nobody"} {
				if _, err := store.Foreseen(t.Context(), task); !errors.Is(err, ports.ErrNotFound) {
					t.Errorf("%s: %v", task, err)
				}
			}
		})
	}
}
