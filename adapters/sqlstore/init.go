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

// migrationsTable keeps which migrations a database of ours has had.
const migrationsTable = "reclaim_migrations"

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
	speaks, places, environments := goose.DialectSQLite3, placesSQLite, environmentsSQLite
	if dialect == PostgreSQL {
		speaks, places, environments = goose.DialectPostgres, placesPostgres, environmentsPostgres
	}
	provider, err := goose.NewProvider(speaks, db, nil, goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(
			statements(1, tables),
			statements(2, places),
			statements(3, environments),
		))
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
