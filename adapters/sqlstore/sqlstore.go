// Package sqlstore keeps jobs, ownership and records in SQLite or PostgreSQL,
// over a *sql.DB that the caller opened; it links no driver.
//
// A backend that embeds the phase passes its own database to Over, which reads
// the backend's tables with explicit columns, writes nothing but the job row the
// phase holds, and never alters anything:
//
//	rows := sqlstore.Over(db, sqlstore.SQLite)
//	phase := &job.Phase{Owners: rows, Row: rows, ...}
//
// A stand-alone install has a database of its own, made by Init and opened by
// Open, which refuses any other.
//
// SQLite connections should be opened with _time_format=sqlite (modernc),
// journal_mode WAL, synchronous FULL, a busy_timeout, foreign_keys on and
// _txlock=immediate. PostgreSQL connections go through pgx's stdlib.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Dialect is how a database speaks. Its zero value is none.
type Dialect string

const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgres"
)

// Rows answers ownership from a backend's tables and writes the job row of a
// running attempt: ports.Owners, ports.Row and ports.Tasks.
type Rows struct {
	db      *sql.DB
	dialect Dialect
	ours    bool
}

// Over reads a host's database. It has no stop-all switch and no records.
func Over(db *sql.DB, dialect Dialect) *Rows { return &Rows{db: db, dialect: dialect} }

// Store is a stand-alone install's database: everything Rows is, and
// ports.Jobs, ports.Sessions, ports.Records and ports.TaskEnds.
type Store struct{ *Rows }

// Open opens a database that Init made. ErrNotOurs says that it is another,
// ErrOutdated and ErrNewer that another version made it what it is.
func Open(ctx context.Context, db *sql.DB, dialect Dialect) (*Store, error) {
	s := &Store{&Rows{db: db, dialect: dialect, ours: true}}
	if err := s.Ours(ctx); err != nil {
		return nil, err
	}
	if err := s.upToDate(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// ErrNotOurs says that a database was not made by db init and is only read.
var ErrNotOurs = errors.New("this database was not made by reclaim db init; it is only read")

// Ours is nil for a stand-alone install's database. ErrNotOurs says that it is
// another's; any other error that it cannot be told.
func (r *Rows) Ours(ctx context.Context) error {
	has, err := r.hasTable(ctx, "reclaim_installation")
	if err != nil {
		return fmt.Errorf("whose database it is cannot be told: %w", err)
	}
	if !has {
		return ErrNotOurs
	}
	var madeBy string
	err = r.row(ctx, r.db, `SELECT made_by FROM reclaim_installation WHERE id = 1`).Scan(&madeBy)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && madeBy != installer:
		return ErrNotOurs
	case err != nil:
		return fmt.Errorf("whose database it is cannot be told: %w", err)
	}
	return nil
}

const installer = "github.com/kandev/reclaim"

func (r *Rows) hasTable(ctx context.Context, name string) (bool, error) {
	names, err := r.tables(ctx)
	if err != nil {
		return false, err
	}
	for _, n := range names {
		if n == name {
			return true, nil
		}
	}
	return false, nil
}

// tables lists what a person or a program made in the database.
func (r *Rows) tables(ctx context.Context) ([]string, error) {
	query := `SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`
	if r.dialect == PostgreSQL {
		query = `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = current_schema()`
	}
	return column[string](ctx, r, r.db, query)
}

// queryer is a *sql.DB or a *sql.Tx.
type queryer interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

// bound writes the dialect's placeholders; the queries here hold no other
// question mark.
func (r *Rows) bound(query string) string {
	if r.dialect != PostgreSQL {
		return query
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

func (r *Rows) row(ctx context.Context, q queryer, query string, args ...any) *sql.Row {
	return q.QueryRowContext(ctx, r.bound(query), args...)
}

// each calls do for every row; an error of either ends it.
func (r *Rows) each(ctx context.Context, q queryer, query string, args []any, do func(scan func(...any) error) error) error {
	rows, err := q.QueryContext(ctx, r.bound(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func column[T any](ctx context.Context, r *Rows, q queryer, query string, args ...any) ([]T, error) {
	var all []T
	err := r.each(ctx, q, query, args, func(scan func(...any) error) error {
		var v T
		if err := scan(&v); err != nil {
			return err
		}
		all = append(all, v)
		return nil
	})
	return all, err
}

// changed runs a statement and says how many rows it changed.
func (r *Rows) changed(ctx context.Context, q queryer, query string, args ...any) (int64, error) {
	result, err := q.ExecContext(ctx, r.bound(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// in runs do in one transaction, which is durable when in returns nil.
func (r *Rows) in(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// marks is "?, ?, ..." for n values.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func anys[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// now is the database's clock, so that workers on several machines agree.
func (r *Rows) now(ctx context.Context, q queryer) (time.Time, error) {
	query := `SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')`
	if r.dialect == PostgreSQL {
		query = `SELECT clock_timestamp() AT TIME ZONE 'UTC'`
	}
	var at stamp
	if err := q.QueryRowContext(ctx, query).Scan(&at); err != nil {
		return time.Time{}, fmt.Errorf("the database's clock: %w", err)
	}
	return at.Time, nil
}

// hostTime is how the host's SQLite driver writes a TIMESTAMP; text compares as
// the instants do.
const hostTime = "2006-01-02 15:04:05.999999999-07:00"

// at binds an instant as the host stores it.
func (r *Rows) at(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case r.dialect == PostgreSQL:
		return t.UTC() // pgx writes the wall clock of what it is given into a TIMESTAMP without zone
	}
	return t.UTC().Format(hostTime)
}

// stamp reads a TIMESTAMP as either dialect and either SQLite driver hands it
// over. NULL is the zero time.
type stamp struct{ time.Time }

// Scan implements sql.Scanner.
func (s *stamp) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		s.Time = time.Time{}
	case time.Time:
		s.Time = v.UTC()
	case []byte:
		return s.Scan(string(v))
	case string:
		for _, form := range []string{hostTime, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999",
			"2006-01-02 15:04:05.999999999 -0700 MST", "2006-01-02 15:04:05.999999999Z07:00"} {
			monotonic, _, _ := strings.Cut(v, " m=")
			if t, err := time.Parse(form, monotonic); err == nil {
				s.Time = t.UTC()
				return nil
			}
		}
		return fmt.Errorf("%.60q is no time", v)
	default:
		return fmt.Errorf("%T is no time", value)
	}
	return nil
}

// jobColumns are read of the jobs' table under the name j.
const jobColumns = `j.id, j.operation_id, j.task_id, j.trigger, j.state, COALESCE(j.resource_snapshot, ''), j.attempts, j.next_attempt_at,
	COALESCE(j.last_error, ''), j.created_at, j.updated_at, j.completed_at`

func scanJob(scan func(...any) error) (ports.Job, error) {
	var j ports.Job
	var next, created, updated, completed stamp
	err := scan(&j.ID, &j.OperationID, &j.TaskID, (*string)(&j.Trigger), (*string)(&j.State), &j.Snapshot, &j.Attempts, &next,
		&j.LastError, &created, &updated, &completed)
	j.NextAttemptAt, j.CreatedAt, j.UpdatedAt, j.CompletedAt = next.Time, created.Time, updated.Time, completed.Time
	return j, err
}

// ended are the states a job never leaves.
const ended = `('succeeded', 'failed', 'cancelled')`

func reclaims() []any {
	return []any{string(core.Archive), string(core.Delete), string(core.CascadeArchive), string(core.CascadeDelete)}
}
