package riverqueue_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/riverqueue"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
)

// long runs the figures of the issue: thousands of jobs, minutes.
var long = os.Getenv("RECLAIM_TEST_LONG") != ""

// The tests below start this binary again as a worker of its own.
const processOf = "RECLAIM_TEST_RIVER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(processOf); spec != "" {
		if err := process(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if shared != nil {
		shared.Stop()
	}
	os.Exit(code)
}

var (
	sharedOnce sync.Once
	shared     *pgtest.Server
)

// postgres is one server for the tests that do not restart it.
func postgres() *pgtest.Server {
	sharedOnce.Do(func() { shared = pgtest.Start(nil, "fsync=off") })
	return shared
}

// world is an install on PostgreSQL, and hosts.
type world struct {
	testing.TB
	dsn    string
	db     *sql.DB
	store  *sqlstore.Store
	hosts  *hosts
	o      riverqueue.Options
	atOnce int
	want   map[string]string // task: outcome
}

func newWorld(t testing.TB, server *pgtest.Server, took time.Duration) *world {
	t.Helper()
	w := &world{TB: t, dsn: installed(t, server), hosts: memory(t, took), want: map[string]string{}, atOnce: 16,
		o: riverqueue.Options{PerHost: 2}}
	w.open()
	w.profile()
	return w
}

// profile adds the one whose tasks are reclaimed.
func (w *world) profile() {
	w.Helper()
	now := time.Now().UTC()
	w.exec(`INSERT INTO executors (id, name, type, config, created_at, updated_at) VALUES ('e', 'dev', 'ssh', '{}', $1, $1)`, now)
	w.exec(`INSERT INTO executor_profiles (id, executor_id, name, config, created_at, updated_at) VALUES ('p', 'e', 'dev', '{"ssh_workdir_root":"/srv/k","ssh_reclaim_task_dir":"true"}', $1, $1)`, now)
}

// installed is a database of a fresh install: made once on a server, and copied.
func installed(t testing.TB, server *pgtest.Server) string {
	t.Helper()
	copies.Lock()
	defer copies.Unlock()
	model, made := copies.of[server]
	if !made {
		dsn := server.NewDSN(t)
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		if err := sqlstore.Init(t.Context(), db, sqlstore.PostgreSQL); err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRow(`SELECT current_database()`).Scan(&model); err != nil {
			t.Fatal(err)
		}
		db.Close()
		queue, _, close, err := machine(t.Context(), dsn, "", "nobody", riverqueue.Options{}, 1)
		if err != nil || queue == nil {
			t.Fatal(err)
		}
		close()
		copies.of[server] = model
	}
	admin, err := sql.Open("pgx", server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	copies.n++
	name := fmt.Sprint("copy", copies.n)
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := admin.Exec(`CREATE DATABASE ` + name + ` TEMPLATE ` + model)
		if err == nil {
			return server.DSN(name)
		}
		if time.Now().After(deadline) { // the model's last connection takes a moment to go
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

var copies = struct {
	sync.Mutex
	of map[*pgtest.Server]string
	n  int
}{of: map[*pgtest.Server]string{}}

// open opens the install.
func (w *world) open() {
	w.Helper()
	var err error
	if w.db, err = sql.Open("pgx", w.dsn); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { w.db.Close() })
	w.db.SetMaxIdleConns(4)
	if w.store, err = sqlstore.Open(w.Context(), w.db, sqlstore.PostgreSQL); err != nil {
		w.Fatal(err)
	}
}

func (w *world) exec(query string, args ...any) {
	w.Helper()
	if _, err := w.db.Exec(query, args...); err != nil {
		w.Fatalf("%s: %v", query, err)
	}
}

// put adds an open task whose directory lies on the host.
func (w *world) put(task, host string, dirty bool) {
	w.Helper()
	target := core.Target{Host: host, Port: 22, User: "dev", Fingerprint: "SHA256:" + host, WorkdirRoot: "/srv/k", TaskDir: "/srv/k/tasks/" + task}
	metadata, err := core.WithLaunched([]byte(`{"executor_profile_id":"p","ssh_reclaim_task_dir":"true"}`), target,
		map[string]string{"ssh_workdir_root": "/srv/k", "ssh_host_fingerprint": target.Fingerprint})
	if err != nil {
		w.Fatal(err)
	}
	now := time.Now().UTC()
	w.exec(`INSERT INTO tasks (id, title, created_at, updated_at) VALUES ($1, $1, $2, $2)`, task, now)
	w.exec(`INSERT INTO task_environments (id, task_id, executor_type, executor_id, executor_profile_id, workspace_path, created_at, updated_at)
		VALUES ($1, $2, 'ssh', 'e', 'p', $3, $4, $4)`, "env-"+task, task, target.TaskDir, now)
	w.exec(`INSERT INTO executors_running (id, session_id, task_id, executor_id, execution_profile_id, runtime, status, metadata, created_at, updated_at)
		VALUES ($1, $2, $3, 'e', 'p', 'ssh', 'stopped', $4, $5, $5)`, "run-"+task, "s-"+task, task, string(metadata), now)
	w.hosts.at(func() { w.hosts.dirs[host+target.TaskDir] = &directory{there: true, dirty: dirty} })
	w.want[task] = core.OutcomeRemoved
	if dirty {
		w.want[task] = core.OutcomeSkipped
	}
}

// archived adds n tasks over the hosts and archives them; one in five holds
// work.
func (w *world) archived(n, over int) {
	w.Helper()
	var tasks []string
	for i := range n {
		task := fmt.Sprintf("t-%04d", i)
		w.put(task, fmt.Sprintf("host-%02d", i%over), i%5 == 4)
		tasks = append(tasks, task)
	}
	if _, err := w.store.Archive(w.Context(), tasks, false); err != nil {
		w.Fatal(err)
	}
}

// machine puts together what a process works with.
func machine(ctx context.Context, dsn, socket, name string, o riverqueue.Options, atOnce int) (*riverqueue.Queue, *worker.Worker, func(), error) {
	settings := "?idle_in_transaction_session_timeout=5s"
	if strings.Contains(dsn, "?") {
		settings = "&" + settings[1:]
	}
	db, err := sql.Open("pgx", dsn+settings)
	if err != nil {
		return nil, nil, nil, err
	}
	db.SetMaxOpenConns(12)
	db.SetMaxIdleConns(12)
	store, err := sqlstore.Open(ctx, db, sqlstore.PostgreSQL)
	if err != nil {
		return nil, nil, nil, err
	}
	rules, err := policy.New()
	if err != nil {
		return nil, nil, nil, err
	}
	queue, err := riverqueue.Open(ctx, dsn, store, store.Desk().Stopped, o)
	if err != nil {
		return nil, nil, nil, err
	}
	d := worker.Fenced(dialer{socket, name})
	w := &worker.Worker{Name: name, Tasks: store, Sessions: store, Jobs: queue.Jobs(), AtOnce: atOnce, Log: o.Log,
		Poll: 300 * time.Millisecond, Beat: cmp.Or(o.Stale, time.Minute) / 5, Grace: 10 * time.Second,
		Stops: &worker.Stopping{Dialer: d, Sessions: store, Jobs: store},
		Phase: &job.Phase{Dialer: d, Owners: store, Policy: rules, Row: store, Records: store, PerHost: 1000}}
	return queue, w, func() { queue.Close(); db.Close() }, nil
}

var started = time.Now()

// process is a machine of its own, until it is killed or told to end.
func process(spec string) error {
	f := strings.Split(spec, "|")
	perHost, _ := strconv.Atoi(f[3])
	atOnce, _ := strconv.Atoi(f[4])
	stale, _ := time.ParseDuration(f[5])
	ctx, end := signalled()
	defer end()
	o := riverqueue.Options{PerHost: perHost, Stale: stale, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if os.Getenv("RECLAIM_TEST_RIVER_LOG") == "" {
		o.Log = nil
	}
	for {
		queue, w, close, err := machine(ctx, f[0], f[1], f[2], o, atOnce)
		if err != nil && ctx.Err() == nil && time.Now().Before(started.Add(time.Minute)) { // the database may be away
			time.Sleep(200 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		defer close()
		return queue.Run(ctx, w)
	}
}

// here starts a machine in this process. It ends with the test, or when end is
// called, which returns what Run did.
func (w *world) here(name string, change ...func(*worker.Worker)) (queue *riverqueue.Queue, end func() error) {
	w.Helper()
	queue, mine, close, err := machine(w.Context(), w.dsn, w.hosts.socket, name, w.o, w.atOnce)
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range change {
		c(mine)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- queue.Run(ctx, mine) }()
	end = sync.OnceValue(func() error {
		cancel()
		err := <-ran
		close()
		return err
	})
	w.Cleanup(func() {
		if err := end(); err != nil {
			w.Errorf("%s: %v", name, err)
		}
	})
	return queue, end
}

// job is the one row of a task.
func (w *world) job(task string) (j struct {
	ID, State, Error string
	Attempts         int
	Next             time.Time
}) {
	w.Helper()
	var next sql.NullTime
	if err := w.db.QueryRow(`SELECT id, state, last_error, attempts, next_attempt_at FROM task_resource_cleanup_jobs WHERE task_id = $1`, task).
		Scan(&j.ID, &j.State, &j.Error, &j.Attempts, &next); err != nil {
		w.Fatal(err)
	}
	j.Next = next.Time
	return j
}

// river is the newest River job of a task.
func (w *world) river(task string) (r struct {
	ID           int64
	State        string
	Runs, Errors int
	Told         string
	At           time.Time
}) {
	w.Helper()
	err := w.db.QueryRow(`SELECT id, state::text, COALESCE(array_length(attempted_by, 1), 0), COALESCE(array_length(errors, 1), 0), COALESCE(errors[array_upper(errors, 1)]->>'error', ''), scheduled_at AT TIME ZONE 'UTC'
		FROM reclaim_river.river_job WHERE args->>'task_id' = $1 ORDER BY id DESC LIMIT 1`, task).Scan(&r.ID, &r.State, &r.Runs, &r.Errors, &r.Told, &r.At)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		w.Fatal(err)
	}
	return r
}

// child is a worker process.
type child struct {
	*exec.Cmd
	name string
}

var children atomic.Int64

func (w *world) start(environment ...string) *child {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	return w.startProgram(self, environment...)
}

func (w *world) startProgram(self string, environment ...string) *child {
	w.Helper()
	number := children.Add(1)
	c := &child{exec.Command(self, "-test.run=^$"), fmt.Sprint("m-", number)}
	c.Env = append(append(os.Environ(), environment...), processOf+"="+strings.Join([]string{w.dsn, w.hosts.socket, c.name, fmt.Sprint(w.o.PerHost), fmt.Sprint(w.atOnce), w.o.Stale.String()}, "|"))
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.kill() })
	return c
}

func (c *child) kill() {
	if c.ProcessState == nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// ended counts the rows that have.
func (w *world) ended() (n int) {
	w.Helper()
	err := w.db.QueryRow(`SELECT count(*) FROM task_resource_cleanup_jobs WHERE state IN ('succeeded', 'failed', 'cancelled')`).Scan(&n)
	if err != nil {
		w.Logf("the rows cannot be counted now: %v", err)
		return 0
	}
	return n
}

// until waits for a condition.
func (w *world) until(what string, is func() bool) {
	w.Helper()
	bound := 90 * time.Second
	if long {
		bound = 15 * time.Minute
	}
	deadline := time.Now().Add(bound)
	for !is() {
		if time.Now().After(deadline) {
			w.story()
			w.Fatalf("it does not come about that %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// story tells where everything stands.
func (w *world) story() {
	w.Helper()
	for _, look := range []string{`SELECT concat_ws(' ', 'slot', s.*) FROM reclaim_river.reclaim_slots s LIMIT 20`, `SELECT concat_ws(' ', 'waiting', s.*) FROM reclaim_river.reclaim_waiting s LIMIT 20`, `SELECT concat_ws(' ', 'leader', s.*) FROM reclaim_river.river_leader s`} {
		var text string
		err := w.db.QueryRow(look).Scan(&text)
		w.Log(text, err)
	}
	rows, err := w.db.Query(`SELECT concat_ws(' ', now(), j.id, j.state, j.attempts, j.next_attempt_at, left(j.last_error, 200), '| river', r.state, r.attempt, r.scheduled_at, r.attempted_at)
		FROM task_resource_cleanup_jobs j LEFT JOIN reclaim_river.river_job r ON r.args->>'job_id' = j.id WHERE j.state NOT IN ('succeeded') OR r.state NOT IN ('completed') ORDER BY j.id LIMIT 20`)
	if err != nil {
		w.Log(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if rows.Scan(&text) == nil {
			w.Log(text)
		}
	}
}

// right checks every job's end, and the hosts.
func (w *world) right() {
	w.Helper()
	rows, err := w.db.Query(`SELECT task_id, state, attempts, resource_snapshot, last_error FROM task_resource_cleanup_jobs`)
	if err != nil {
		w.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var task, state, raw, last string
		var attempts int
		if err := rows.Scan(&task, &state, &attempts, &raw, &last); err != nil {
			w.Fatal(err)
		}
		n++
		snapshot, err := core.ParseJobSnapshot([]byte(raw))
		if err != nil {
			w.Fatal(err)
		}
		got := snapshot.Targets()[0]
		if state != string(ports.Succeeded) || got.Outcome != w.want[task] {
			w.Errorf("%s is %s after %d attempts, %q %s %s, and should be %q: %s", task, state, attempts, got.Outcome, got.Reason, got.Detail, w.want[task], last)
		}
	}
	if n != len(w.want) {
		w.Errorf("%d jobs for %d tasks", n, len(w.want))
	}
	removed := 0
	w.hosts.at(func() {
		for _, text := range w.hosts.wrong {
			w.Error(text)
		}
		for task, outcome := range w.want {
			if outcome == core.OutcomeRemoved {
				removed++
			}
			for key, d := range w.hosts.dirs {
				if strings.HasSuffix(key, "/"+task) && (d.there == (outcome == core.OutcomeRemoved) || d.removed > 1 || d.removed == 1 != (outcome == core.OutcomeRemoved)) {
					w.Errorf("%s: %+v, and should be %q", key, *d, outcome)
				}
			}
		}
		if w.hosts.removals != removed {
			w.Errorf("%d removals of %d directories", w.hosts.removals, removed)
		}
	})
}

// within checks the cap, as the hosts saw it.
func (w *world) within() {
	w.Helper()
	w.hosts.at(func() {
		for host, n := range w.hosts.crowd {
			if n > w.o.PerHost {
				w.Errorf("%s had %d at once, and the cap is %d", host, n, w.o.PerHost)
			}
		}
	})
}
