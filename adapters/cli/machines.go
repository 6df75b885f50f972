package cli

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/kandev/reclaim/adapters/riverqueue"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/worker"
)

// shares reports whether a database is one that several machines work on.
func shares(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres:") || strings.HasPrefix(dsn, "postgresql:")
}

// queue opens River beside an install on PostgreSQL, and puts w under the cap
// that all machines share. On SQLite there is none: nil.
func (t *terminal) queue(ctx context.Context, dsn string, store *sqlstore.Store, w *worker.Worker, log *slog.Logger) (*riverqueue.Queue, func(), error) {
	if dsn = t.dsn(dsn); !shares(dsn) {
		return nil, func() {}, nil
	}
	q, err := riverqueue.Open(ctx, dsn, store, store.Desk().Stopped, riverqueue.Options{PerHost: cmp.Or(w.PerHost, 4), Log: log})
	if err != nil {
		return nil, nil, at("the queue", err)
	}
	w.Jobs = q.Jobs()
	return q, q.Close, nil
}
