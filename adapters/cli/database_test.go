package cli

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADatabaseThatCannotBeOpenedIsToldInOneSentence(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	write(t, text, "these are notes, and no database, although they are long enough to be one: "+strings.Repeat("x", 200))
	for dsn, says := range map[string]string{
		"":                                    "RECLAIM_DB",
		"mysql://h/x":                         "neither sqlite:FILE nor postgres://",
		"sqlite:":                             "needs a file",
		"sqlite:" + dir:                       "no regular file",
		"sqlite:" + filepath.Join(dir, "no"):  "reclaim db init --db sqlite:",
		"sqlite:" + text:                      "not a database",
		"postgres://dev:secret@127.0.0.1:1/x": "cannot be reached: failed to connect",
		"postgres://127.0.0.1:1/x?password=secret&connect_timeout=1": "cannot be reached: failed to connect",
		"postgres://dev:secret@%zz/x":                                "no PostgreSQL address",
		"host=h user=u password=secret":                              "neither sqlite:FILE nor",
	} {
		db, err := openDatabase(t.Context(), dsn, writes)
		if err == nil {
			db.Close()
			t.Errorf("%q was opened", dsn)
			continue
		}
		if text := err.Error(); !strings.Contains(text, says) || strings.Contains(text, "secret") || strings.Contains(text, "\n") || strings.Count(text, "dial error") > 1 {
			t.Errorf("%q: %s\nwant %q, one line, no password", dsn, text, says)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("something was made: %v %v", entries, err)
	}
}

func TestReadingASQLiteDatabaseLeavesItAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "what? 100% ours#1.db")
	db, err := openDatabase(t.Context(), "sqlite:"+path, creates)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA journal_mode=WAL"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	looked, err := openDatabase(t.Context(), "sqlite:"+path, reads)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := looked.QueryRow("SELECT n FROM t").Scan(&n); err != nil || n != 7 {
		t.Errorf("read %d: %v", n, err)
	}
	if _, err := looked.Exec("INSERT INTO t VALUES (8)"); err == nil {
		t.Error("it was written to")
	}
	looked.Close()
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestAHostsDatabaseIsReadAndNeverWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host.db")
	dsn := "sqlite:" + path
	db, err := openDatabase(t.Context(), dsn, creates)
	if err != nil {
		t.Fatal(err)
	}
	// The tables of a host that the commands read, and nothing of ours.
	defer db.Close()
	for _, ddl := range []string{
		"PRAGMA journal_mode=WAL",
		"CREATE TABLE tasks (id TEXT, title TEXT, archived_at TIMESTAMP, more TEXT)",
		"CREATE TABLE executors (id TEXT, name TEXT, type TEXT, config TEXT, deleted_at TIMESTAMP)",
		"CREATE TABLE executor_profiles (id TEXT, executor_id TEXT, name TEXT, config TEXT)",
		"INSERT INTO executors VALUES ('e', 'build hosts', 'ssh', '{\"ssh_host\":\"build1\"}', NULL)",
		"INSERT INTO executor_profiles VALUES ('p', 'e', 'default', '{\"ssh_reclaim_task_dir\":\" true\"}')",
		`CREATE TABLE task_resource_cleanup_jobs (id TEXT, operation_id TEXT, task_id TEXT, "trigger" TEXT, state TEXT, resource_snapshot TEXT,
			attempts INTEGER, next_attempt_at TIMESTAMP, last_error TEXT, created_at TIMESTAMP, updated_at TIMESTAMP, completed_at TIMESTAMP)`,
		`INSERT INTO task_resource_cleanup_jobs VALUES ('job-1', 'archive:t-1:x', 't-1', 'archive', 'succeeded',
			'{"ssh_task_dirs":[{"host":"build1","workdir_root":"","task_dir":"/home/dev/.kandev/tasks/a","enabled":true,"outcome":"skipped","skip_reason":"dirty_worktree","detail":"one file"}]}',
			1, NULL, '', '2026-11-30 02:15:56+00:00', '2026-11-30 02:15:56+00:00', '2026-11-30 02:15:56+00:00')`,
	} {
		if _, err := db.Exec(ddl); err != nil {
			t.Fatalf("%v: %s", err, ddl)
		}
	}
	// The host runs on, and most of this stands in its journal.
	content := func(path string) string {
		var all string
		for _, part := range []string{"", "-wal"} {
			raw, err := os.ReadFile(path + part)
			if err != nil {
				t.Fatal(err)
			}
			all += string(raw)
		}
		return all
	}
	before := content(path)
	for _, reads := range [][]string{{"jobs"}, {"job", "show", "job-1"}, {"kept"}, {"profiles"}} {
		got := call(t, append(reads, "--db", dsn)...)
		if got.status != exitDone || got.stderr != "" {
			t.Errorf("%v: %+v", reads, got)
		}
	}
	if got := call(t, "kept", "--db", dsn); !strings.Contains(got.stdout, "kept: dirty_worktree\n  /home/dev/.kandev/tasks/a on build1\n") {
		t.Errorf("kept: %s", got.stdout)
	}
	if got := call(t, "profiles", "--db", dsn, "--json"); !strings.Contains(got.stdout, `"reclaim": false`) || !strings.Contains(got.stdout, `"tree": "~/.kandev/tasks/"`) {
		t.Errorf("profiles: %s", got.stdout)
	}
	for _, writes := range [][]string{{"db", "init"}, {"work", "--once"}, {"work", "--once", "--observe"}, {"task", "archive", "t-1"}, {"task", "delete", "t-1"}, {"task", "unarchive", "t-1"},
		{"profile", "set", "p", "--reclaim", "on"}, {"job", "retry", "job-1"}, {"job", "cancel", "job-1"}, {"kept", "retry", "job-1"}, {"stop-all", "on"}} {
		got := call(t, append(writes, "--db", dsn)...)
		if got.status != exitUsage || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: %+v; want exit 2 and one sentence", writes, got)
		}
	}
	if content(path) != before {
		t.Error("the host's database has changed")
	}
	// A host that crashed has left its journal; it is the host's to put right.
	crashed := filepath.Join(t.TempDir(), "host.db")
	for _, part := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + part)
		if err != nil {
			t.Fatal(err)
		}
		write(t, crashed+part, string(raw))
	}
	if got := call(t, "kept", "--db", "sqlite:"+crashed); got.status != exitDone || !strings.Contains(got.stdout, "kept: dirty_worktree") {
		t.Errorf("kept: %+v", got)
	}
	if got := call(t, "work", "--once", "--db", "sqlite:"+crashed); got.status != exitUsage {
		t.Errorf("work: %+v", got)
	}
	if content(crashed) != before {
		t.Error("the crashed host's database has changed")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 3 {
		t.Errorf("beside it lies more: %v %v", entries, err)
	}
}

func TestADatabaseWithoutJobsIsToldAndNotAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "music.db")
	db, err := openDatabase(t.Context(), "sqlite:"+path, creates)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE songs (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for _, command := range []string{"jobs", "kept", "profiles", "job show j-1"} {
		got := call(t, append(strings.Fields(command), "--db", "sqlite:"+path)...)
		if got.status != 2 || !strings.Contains(got.stderr, "neither reclaim's nor a backend's") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d: %s", command, got.status, got.stderr)
		}
	}
}

// What people meet often is said in our words, with what to do.
func TestADatabaseThatSomebodyHoldsSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(1)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(1)
		return db
	}
	one, other := open(), open()
	if _, err := one.Exec("CREATE TABLE a (b); BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err := other.Exec("INSERT INTO a VALUES (1)")
	if err == nil || !strings.Contains(sentence(err), "another program holds the database; try again in a moment") {
		t.Errorf("locked: %v", err)
	}
	if _, err := other.Exec("PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	if _, err = other.Exec("INSERT INTO a VALUES (1)"); err == nil || !strings.Contains(sentence(err), "may not write the database; give it permission") {
		t.Errorf("read only: %v", err)
	}
}
