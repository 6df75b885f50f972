package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	_ "modernc.org/sqlite" // the driver "sqlite"; only a program links one

	"github.com/kandev/reclaim/adapters/riverqueue"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/ports"
)

// access says what a command does with a database.
type access int

const (
	reads   access = iota // never writes, not even to the file's journal
	writes                // one that is there
	creates               // one that may not be there yet
)

// database is an open database of a stand-alone install, or of a host.
type database struct {
	*sql.DB
	dialect sqlstore.Dialect
	name    string // for people: without a password
}

// openDatabase opens what a DSN names: sqlite:FILE or postgres://... It
// connects, so that what is wrong with the name is told here, in one sentence.
func openDatabase(ctx context.Context, dsn string, a access) (database, error) {
	scheme, rest, is := strings.Cut(dsn, ":")
	switch {
	case dsn == "":
		return database{}, usage("name the database with --db or RECLAIM_DB: sqlite:FILE or postgres://USER@HOST/NAME")
	case is && scheme == "sqlite":
		return openSQLite(ctx, rest, a)
	case is && (scheme == "postgres" || scheme == "postgresql"):
		return openPostgres(ctx, dsn, a)
	}
	return database{}, usage("the database's name is neither sqlite:FILE nor postgres://USER@HOST/NAME")
}

func openSQLite(ctx context.Context, path string, a access) (database, error) {
	db := database{dialect: sqlstore.SQLite, name: "sqlite:" + path}
	if path == "" {
		return db, usage("sqlite: needs a file: sqlite:FILE")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return db, err
	}
	info, err := os.Stat(absolute)
	switch {
	case os.IsNotExist(err) && a != creates:
		return db, usage("%s: there is no such database; make one with: reclaim db init --db %s", path, db.name)
	case os.IsNotExist(err):
		if folder, err := os.Stat(filepath.Dir(absolute)); err != nil || !folder.IsDir() {
			return db, usage("%s: its folder is not there", path)
		}
	case err != nil:
		return db, usage("%s cannot be opened: %w", path, unwrapPath(err))
	case !info.Mode().IsRegular():
		return db, usage("%s is no regular file", path)
	}
	options := url.Values{"_time_format": {"sqlite"}, "_pragma": {"busy_timeout(10000)", "foreign_keys(1)"}, "mode": {"ro"}}
	if a != reads {
		// The journal's mode stays in the file and is set when the file is ours.
		options["_pragma"] = append(options["_pragma"], "synchronous(FULL)")
		options["_txlock"] = []string{"immediate"}
		options["mode"] = []string{map[access]string{writes: "rw", creates: "rwc"}[a]}
	}
	address := url.URL{Scheme: "file", Path: absolute, RawQuery: options.Encode()}
	if db.DB, err = sql.Open("sqlite", address.String()); err != nil {
		return db, err
	}
	return db, db.reached(ctx)
}

func openPostgres(ctx context.Context, dsn string, a access) (database, error) {
	db := database{dialect: sqlstore.PostgreSQL, name: masked(dsn)}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return db, usage("%s is no PostgreSQL address", db.name) // pgx's error may show the password
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	config.RuntimeParams["application_name"] = "reclaim"
	// A machine that stands still in a transaction must not hold the others up.
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "15s"
	if a == reads {
		config.RuntimeParams["default_transaction_read_only"] = "on"
	}
	db.DB = stdlib.OpenDB(*config)
	return db, db.reached(ctx)
}

// reached connects once and closes the database again where that fails.
func (db database) reached(ctx context.Context) error {
	err := db.PingContext(ctx)
	if err == nil && db.dialect == sqlstore.SQLite {
		var n int
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&n) // a file that is no database shows here
	}
	if err != nil {
		db.Close()
		var code interface{ Code() int } // SQLite's result code, its kind in the last byte
		const readOnly = 8
		switch {
		case errors.As(err, &code) && code.Code()&0xff == readOnly:
			return usage("%s cannot be opened: reading it, too, needs permission to write the file and its folder, because of its write-ahead log", db.name)
		case db.dialect == sqlstore.PostgreSQL:
			return fmt.Errorf("%s cannot be reached: %s", db.name, sentence(err))
		case errors.As(err, &code) && held(code.Code()):
			return fmt.Errorf("%s cannot be opened: %s", db.name, sentence(err))
		}
		return usage("%s cannot be opened: %s", db.name, sentence(err))
	}
	return nil
}

// held says that a result code of SQLite's is of a database that somebody else
// holds.
func held(code int) bool {
	const busy, locked = 5, 6
	return code&0xff == busy || code&0xff == locked
}

// sentence is an error of a driver on one line; what it says twice, of two tries,
// is said once, and what people meet often in words of ours, with what to do.
func sentence(err error) string {
	var code interface{ Code() int }
	const readOnly, full = 8, 13
	if errors.As(err, &code) {
		switch kind := code.Code() & 0xff; {
		case held(kind):
			return "another program holds the database; try again in a moment, or end it"
		case kind == readOnly:
			return "this account may not write the database; give it permission for the file and its folder"
		case kind == full:
			return "the database's disk is full; make room on it"
		}
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// masked is a DSN without its password.
func masked(dsn string) string {
	if address, err := url.Parse(dsn); err == nil {
		address.RawQuery = ""
		return address.Redacted()
	}
	_, after, _ := strings.Cut(dsn, "@")
	return "postgres://...@" + after
}

// desk opens the database to look at it; it may be a host's.
func (t *terminal) desk(ctx context.Context, dsn string) (ports.Desk, func(), error) {
	db, err := openDatabase(ctx, t.dsn(dsn), reads)
	if err != nil {
		return nil, nil, err
	}
	desk, err := sqlstore.DeskOver(ctx, db.DB, db.dialect)
	if err != nil {
		db.Close()
		return nil, nil, usage("%s: %s", db.name, sentence(err))
	}
	return desk, func() { db.Close() }, nil
}

// ours opens a stand-alone install's database to change it. Another's is looked
// at only, and refused before anything in it could change.
func (t *terminal) ours(ctx context.Context, dsn string) (*sqlstore.Store, func(), error) {
	dsn = t.dsn(dsn)
	looked, err := openDatabase(ctx, dsn, reads)
	if err != nil {
		return nil, nil, err
	}
	_, err = sqlstore.Open(ctx, looked.DB, looked.dialect)
	looked.Close()
	if err != nil {
		return nil, nil, usage("%s: %s", looked.name, sentence(err))
	}
	db, err := openDatabase(ctx, dsn, writes)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlstore.Open(ctx, db.DB, db.dialect)
	if err != nil {
		db.Close()
		return nil, nil, usage("%s: %s", db.name, sentence(err))
	}
	return store, func() { db.Close() }, nil
}

func (t *terminal) dsn(flag string) string { return cmp.Or(flag, t.env["RECLAIM_DB"]) }

type dbCommand struct {
	Init dbInitCommand `cmd:"" help:"Make the database of a stand-alone install."`
}

type dbInitCommand struct {
	DB   string `name:"db" placeholder:"DSN" help:"${db}"`
	JSON bool   `help:"Print one JSON document."`
}

func (dbInitCommand) Help() string {
	return `Makes the tables and marks the database as ours. One that holds other tables is
refused and stays as it is; one that is ours already is brought up to date. On
PostgreSQL the queue of the machines gets a schema of its own beside it.

Examples:

  reclaim db init --db sqlite:reclaim.db
  reclaim db init --db postgres://reclaim@db.example.org/reclaim`
}

func (c dbInitCommand) Run(ctx context.Context, t *terminal) error {
	db, err := openDatabase(ctx, t.dsn(c.DB), creates)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := sqlstore.Init(ctx, db.DB, db.dialect); err != nil {
		return usage("%s: %s", db.name, sentence(err))
	}
	if db.dialect == sqlstore.PostgreSQL {
		store, err := sqlstore.Open(ctx, db.DB, db.dialect)
		if err != nil {
			return usage("%s: %s", db.name, sentence(err))
		}
		queue, err := riverqueue.Open(ctx, t.dsn(c.DB), store, store.Desk().Stopped, riverqueue.Options{})
		if err != nil {
			return fmt.Errorf("%s: %s", db.name, sentence(err))
		}
		queue.Close()
	}
	if db.dialect == sqlstore.SQLite {
		if _, err := db.ExecContext(ctx, "PRAGMA journal_mode=WAL"); err != nil {
			return fmt.Errorf("%s: %s", db.name, sentence(err))
		}
	}
	if c.JSON {
		return t.json(map[string]string{"db": db.name})
	}
	t.printf("%s  %s\n", t.paint(good, "ready"), clean(db.name))
	return nil
}
