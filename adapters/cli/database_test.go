package cli

import (
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
		"postgres://dev:secret@127.0.0.1:1/x": "cannot be opened",
		"postgres://127.0.0.1:1/x?password=secret&connect_timeout=1": "cannot be opened",
		"postgres://dev:secret@%zz/x":                                "no PostgreSQL address",
		"host=h user=u password=secret":                              "neither sqlite:FILE nor",
	} {
		db, err := openDatabase(t.Context(), dsn, writes)
		if err == nil {
			db.Close()
			t.Errorf("%q was opened", dsn)
			continue
		}
		if text := err.Error(); !strings.Contains(text, says) || strings.Contains(text, "secret") || strings.Contains(text, "\n") {
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
	var mode string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("the journal is %q: %v", mode, err)
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
