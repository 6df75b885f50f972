package sqlstore

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
)

var (
	//go:embed migrations/tables.sql
	tables string
	//go:embed migrations/places_sqlite.sql
	placesSQLite string
	//go:embed migrations/places_postgres.sql
	placesPostgres string
	//go:embed migrations/environments_sqlite.sql
	environmentsSQLite string
	//go:embed migrations/environments_postgres.sql
	environmentsPostgres string
)

const (
	// migrationsTable keeps which migrations a database of ours has had.
	migrationsTable = "reclaim_migrations"
	// newest is the migration that a database of ours must have had last.
	newest = 3
)

// ErrOutdated says that a database of ours lacks what this version asks it for:
// an answer from it could leave out somebody's right to a directory.
var ErrOutdated = errors.New("an older reclaim made this database; run reclaim db init on it once, which keeps every row")

// ErrNewer says that a newer version has changed a database of ours.
var ErrNewer = errors.New("a newer reclaim has changed this database; use that one")

// upToDate says whether a database of ours is as this version makes it.
func (r *Rows) upToDate(ctx context.Context) error {
	var version int64
	err := r.row(ctx, r.db, `SELECT COALESCE(MAX(version_id), 0) FROM `+migrationsTable).Scan(&version)
	switch {
	case err != nil:
		return fmt.Errorf("how old the database is cannot be told: %w", err)
	case version < newest:
		return ErrOutdated
	case version > newest:
		return ErrNewer
	}
	return nil
}

// ErrNotEmpty is wrapped by Init's refusal of a database with tables that are
// not ours.
var ErrNotEmpty = errors.New("the database holds tables that reclaim did not make")

// Init makes a stand-alone install's tables in an empty database and marks it
// as ours, or brings one of ours up to date. It changes nothing in any other:
// ErrNotEmpty.
func Init(ctx context.Context, db *sql.DB, dialect Dialect) error {
	r := Over(db, dialect)
	switch err := r.Ours(ctx); {
	case errors.Is(err, ErrNotOurs):
		names, err := r.tables(ctx)
		if err != nil {
			return fmt.Errorf("the database's tables: %w", err)
		}
		// An Init that was cut short leaves the library's own table and nothing else.
		names = slices.DeleteFunc(names, func(name string) bool { return name == migrationsTable })
		if len(names) > 0 {
			return fmt.Errorf("%w: %s", ErrNotEmpty, strings.Join(names[:min(len(names), 8)], ", "))
		}
	case err != nil:
		return err
	}
	speaks, texts := goose.DialectSQLite3, []string{tables, placesSQLite, environmentsSQLite}
	if dialect == PostgreSQL {
		speaks, texts = goose.DialectPostgres, []string{tables, placesPostgres, environmentsPostgres}
	}
	var migrations []*goose.Migration
	for i, text := range texts[:newest] {
		migrations = append(migrations, statements(int64(i+1), text))
	}
	provider, err := goose.NewProvider(speaks, db, nil, goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(migrations...))
	if err != nil {
		return fmt.Errorf("the migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("making the tables: %w", err)
	}
	return r.Ours(ctx)
}

// statements is a migration that runs the SQL in one transaction; it is never
// taken back.
func statements(version int64, text string) *goose.Migration {
	return goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}}, nil)
}
