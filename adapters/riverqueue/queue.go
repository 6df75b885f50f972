package riverqueue

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/ports"
)

// Store is the database of a stand-alone install, on PostgreSQL.
// *sqlstore.Store is the one.
type Store interface {
	ports.Jobs
	// Reconcile settles prepared jobs that a crash left; see ports.TaskEnds.
	Reconcile(ctx context.Context, before time.Time) (int, error)
	// LeaseJob leases one job by its id; see sqlstore.
	LeaseJob(ctx context.Context, worker, id string, admit func(context.Context, *sql.Tx, ports.Job) (bool, error)) (job ports.Job, taken bool, wait time.Duration, err error)
}

// Options are a Queue's settings. They must be the same on every machine, but
// for Log.
type Options struct {
	Schema  string        // of River's tables; empty means <the install's schema>_river, and reclaim_river beside public
	PerHost int           // jobs in flight on one host, over all machines; 0 means 4
	Stale   time.Duration // after which a machine that is silent has nothing in flight; 0 means 60 s
	Log     *slog.Logger  // nil is silent
}

// Queue is River beside the jobs of one install. It is safe for concurrent use.
type Queue struct {
	store  Store
	stops  func(context.Context) (bool, error)
	pool   *pgxpool.Pool
	schema string
	o      Options
	clock  clock

	client *river.Client[pgx.Tx] // inserts, retries, cancels; works nothing
}

//go:embed slots.sql
var slotTables string

var identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)

// Open connects to the install's PostgreSQL and makes River's tables and those
// of the cap in a schema of their own, or brings them up to date; nothing else
// is altered. dsn must lead to the database of store; stopped is its stop-all
// switch. The queue must be closed.
func Open(ctx context.Context, dsn string, store Store, stopped func(context.Context) (bool, error), o Options) (*Queue, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the queue's database is no PostgreSQL address") // pgx's error may show the password
	}
	config.MaxConns = max(config.MaxConns, 8)
	config.ConnConfig.RuntimeParams["application_name"] = cmp.Or(config.ConnConfig.RuntimeParams["application_name"], "reclaim river")
	// A machine that stands still in a transaction must not hold the others up.
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "15s"
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("the queue's database: %w", err)
	}
	o.PerHost, o.Stale = cmp.Or(o.PerHost, 4), cmp.Or(o.Stale, time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{store: store, stops: stopped, pool: pool, o: o, schema: o.Schema}
	if err := q.prepare(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return q, nil
}

func (q *Queue) prepare(ctx context.Context) error {
	if q.schema == "" {
		var install string
		if err := q.pool.QueryRow(ctx, `SELECT current_schema()`).Scan(&install); err != nil {
			return fmt.Errorf("the queue's database: %w", err)
		}
		if q.schema = install + "_river"; install == "public" {
			q.schema = "reclaim_river"
		}
	}
	if !identifier.MatchString(q.schema) {
		return fmt.Errorf("%q is no name for the schema of River's tables", q.schema)
	}
	if err := q.migrate(ctx); err != nil {
		return fmt.Errorf("making River's tables in the schema %s: %w", q.schema, err)
	}
	if err := q.clock.set(ctx, q.pool); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(q.pool), q.config())
	q.client = client
	return err
}

// migrate is done by one machine at a time.
func (q *Queue) migrate(ctx context.Context) error {
	one, err := q.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer one.Release()
	lock := "reclaim river " + q.schema
	if _, err := one.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended($1, 0))`, lock); err != nil {
		return err
	}
	defer func() {
		detached, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if _, err := one.Exec(detached, `SELECT pg_advisory_unlock(hashtextextended($1, 0))`, lock); err != nil {
			one.Conn().Close(detached) // with it the lock
		}
	}()
	// Asked first: whoever may not make schemas can be given one that is there.
	var made bool
	if err := one.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)`, q.schema).Scan(&made); err != nil {
		return err
	}
	if !made {
		if _, err := one.Exec(ctx, `CREATE SCHEMA `+q.schema); err != nil {
			return err
		}
	}
	migrations, err := rivermigrate.New(riverpgxv5.New(q.pool), &rivermigrate.Config{Schema: q.schema, Logger: quiet(q.o.Log)})
	if err != nil {
		return err
	}
	if _, err := migrations.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = one.Exec(ctx, q.in(slotTables))
	return err
}

// in writes the schema's name into a statement.
func (q *Queue) in(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", q.schema)
}

// Now is the database's clock, whatever this machine's says.
func (q *Queue) Now() time.Time { return q.clock.Now() }

// Close ends the connections. A Run must have returned.
func (q *Queue) Close() { q.pool.Close() }

// config is what every client of ours shares.
func (q *Queue) config() *river.Config {
	return &river.Config{
		Schema: q.schema, Logger: quiet(q.o.Log),
		JobTimeout: -1, // an attempt has limits of its own
		Test:       river.TestConfig{Time: &q.clock},
	}
}

// quiet leaves out what River says when all is well.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(quieter{log.Handler()}) }

type quieter struct{ slog.Handler }

func (h quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}
func (h quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{h.Handler.WithAttrs(attrs)}
}
func (h quieter) WithGroup(name string) slog.Handler { return quieter{h.Handler.WithGroup(name)} }

// The names under which River sees our jobs.
const (
	Kind      = "reclaim_cleanup"
	QueueName = "reclaim"
)

// Args are a River job's arguments: which row it is about. Nothing in them can
// grow old.
type Args struct {
	OperationID string `json:"operation_id" river:"unique"`
	JobID       string `json:"job_id"`
	TaskID      string `json:"task_id"`

	after time.Duration // until the retry that the row waits for
}

// Kind implements river.JobArgs.
func (Args) Kind() string { return Kind }

// InsertOpts implements river.JobArgsWithInsertOpts: one live River job for an
// operation. One that has ended stands in nobody's way, because the row may be
// due again.
func (Args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       QueueName,
		MaxAttempts: 30000, // the row counts the attempts
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending,
			rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled}},
	}
}

// live are the states of a River job that will be worked.
const live = `('available', 'pending', 'running', 'retryable', 'scheduled')`

var _ river.JobArgsWithInsertOpts = Args{}

// Run works the jobs that River hands to this machine, with w's Attempt over
// q.Jobs, until ctx ends. Then it fetches nothing more, puts down at
// once what has not begun a removal, waits for what has, and returns once every
// job in flight was put down, at the latest after w.Grace: nil, or
// worker.ErrAbandoned.
func (q *Queue) Run(ctx context.Context, w *worker.Worker) error {
	if w.Name == "" {
		return errors.New("a worker without a name cannot hold a lease")
	}
	mine := *w
	mine.Jobs, mine.Stale = q.Jobs(), q.o.Stale
	f := &floor{queue: q, worker: &mine, flights: map[string]*flight{}}
	config := q.config()
	config.ID = w.Name
	config.Workers = river.NewWorkers()
	if err := river.AddWorkerSafely(config.Workers, river.Worker[Args](f)); err != nil {
		return err
	}
	config.Queues = map[string]river.QueueConfig{QueueName: {MaxWorkers: cmp.Or(w.AtOnce, 32)}}
	config.FetchCooldown, config.FetchPollInterval = 50*time.Millisecond, 500*time.Millisecond
	config.RescueStuckJobsAfter = 24 * time.Hour // by age; ours is by lease
	client, err := river.NewClient(riverpgxv5.New(q.pool), config)
	if err != nil {
		return err
	}
	// A shutdown is two steps, so it is not told to River by a context.
	alive := context.WithoutCancel(ctx)
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := client.Start(alive)
		if err == nil {
			break
		}
		q.o.Log.WarnContext(ctx, "River cannot be started", "error", err)
		if !sleep(ctx, pause) {
			return nil
		}
	}
	var settled time.Time
	for {
		if time.Since(settled) > time.Minute {
			settled = time.Now()
			q.settle(ctx)
		}
		q.follow(ctx)
		if !sleep(ctx, cmp.Or(w.Poll, 5*time.Second)) {
			break
		}
	}
	return f.drain(alive, client)
}

// sleep reports false when ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
