package worker_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// The tests below start this binary again as a worker of its own, to kill it.
const (
	processDB     = "RECLAIM_TEST_WORKER_DB"
	processFaults = "RECLAIM_TEST_WORKER_FAULTS"
	processPause  = "RECLAIM_TEST_WORKER_PAUSE"
	processKill   = "RECLAIM_TEST_WORKER_KILL"
	pausedLimit   = 10 * time.Second    // of an attempt of a worker that pauses
	long          = "RECLAIM_TEST_LONG" // 50 kills under 200 jobs; minutes
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(processDB); spec != "" {
		if err := process(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process works on a database until it is killed.
func process(spec string) error {
	t := &inProcess{}
	defer t.end()
	db, dialect := openDB(t, spec)
	var store *sqlstore.Store
	if err := patiently(func() (err error) {
		store, err = sqlstore.Open(context.Background(), db, dialect)
		return err
	}); err != nil {
		return err
	}
	w := newWorker(t, fmt.Sprint("w-", os.Getpid(), "-", time.Now().UnixNano()), store)
	w.Poll, w.Beat, w.Stale = 200*time.Millisecond, time.Second, 10*time.Second
	if os.Getenv(processFaults) != "" {
		f := &faulty{store}
		w.Jobs, w.Sessions = f, f
		w.Phase.(*job.Phase).Row = f
	}
	if moment := os.Getenv(processPause); moment != "" {
		w.Beat, w.Stale = time.Hour, 24*time.Hour // the lease is not what holds it back
		w.Poll = time.Minute                      // a process that is stopped must not hold SQLite's lock
		w.Jobs = paused(moment, w.Phase.(*job.Phase), store)
	}
	if moment := os.Getenv(processKill); moment != "" {
		w.Jobs = dying(moment, w.Phase.(*job.Phase), store)
	}
	return w.Run(context.Background())
}

// patiently tries until a database that is being started again answers.
func patiently(try func() error) (err error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// inProcess is a testing.TB for a process that is no test.
type inProcess struct {
	testing.TB
	cleanups []func()
}

func (p *inProcess) Helper()          {}
func (p *inProcess) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (p *inProcess) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

func (p *inProcess) end() {
	for _, f := range p.cleanups {
		f()
	}
}

// faulty is a store one write in six of which fails.
type faulty struct{ *sqlstore.Store }

var errHiccup = errors.New("the database hiccups")

func hiccup() error {
	if rand.IntN(6) == 0 {
		return errHiccup
	}
	return nil
}

func (f *faulty) Lease(ctx context.Context, worker string, hold []string) (ports.Job, bool, error) {
	if err := hiccup(); err != nil {
		return ports.Job{}, false, err
	}
	return f.Store.Lease(ctx, worker, hold)
}

func (f *faulty) Beat(ctx context.Context, token ports.Token) error {
	if err := hiccup(); err != nil {
		return err
	}
	return f.Store.Beat(ctx, token)
}

func (f *faulty) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	if err := hiccup(); err != nil {
		return err
	}
	err := f.Store.Finish(ctx, token, end)
	return errors.Join(err, hiccup()) // it may be written and not be known to be
}

func (f *faulty) Forget(ctx context.Context, taskID string, sessionIDs []string) error {
	if err := hiccup(); err != nil {
		return err
	}
	return f.Store.Forget(ctx, taskID, sessionIDs)
}

func (f *faulty) Begin(ctx context.Context, query core.Begin) core.Begun {
	if err := hiccup(); err != nil {
		return core.Begun{Ending: core.BeginFailed, Detail: err.Error()}
	}
	begun := f.Store.Begin(ctx, query)
	if err := hiccup(); err != nil { // recorded, and not known to be
		return core.Begun{Ending: core.BeginFailed, Detail: err.Error()}
	}
	return begun
}

func (f *faulty) Conclude(ctx context.Context, c ports.Conclusion) error {
	if err := hiccup(); err != nil {
		return err
	}
	return f.Store.Conclude(ctx, c)
}

// archived adds a task with a finished session in a checkout of its own, and
// archives it.
func (w *world) archived(task, make string) (dir string) {
	w.Helper()
	dir = w.root + "/tasks/" + task
	w.sh("", `mkdir -p "$1/tasks" && git clone -q --no-hardlinks "$2" "$3" && cd "$3" && git config user.name n && git config user.email e@x && eval "$4"`, w.root, w.remote, dir, make)
	target := w.target
	target.WorkdirRoot, target.TaskDir = w.root, dir
	metadata, err := core.WithLaunched([]byte(`{"executor_profile_id":"p","ssh_reclaim_task_dir":"true"}`), target,
		map[string]string{"ssh_workdir_root": w.root, "ssh_host_fingerprint": target.Fingerprint})
	if err != nil {
		w.Fatal(err)
	}
	now := time.Now().UTC()
	w.exec(`INSERT INTO tasks (id, title, created_at, updated_at) VALUES (?, ?, ?, ?)`, task, task, now, now)
	w.exec(`INSERT INTO task_environments (id, task_id, executor_type, executor_id, executor_profile_id, workspace_path, created_at, updated_at)
		VALUES (?, ?, 'ssh', 'e', 'p', ?, ?, ?)`, "env-"+task, task, dir, now, now)
	w.exec(`INSERT INTO executors_running (id, session_id, task_id, executor_id, execution_profile_id, runtime, status, metadata, created_at, updated_at)
		VALUES (?, ?, ?, 'e', 'p', 'ssh', 'stopped', ?, ?, ?)`, "run-"+task, "s-"+task, task, string(metadata), now, now)
	w.archive(task)
	return dir
}

// A planted state is what a task leaves in its checkout, what must come of it,
// and, where it is kept, what shows the work that would have been lost.
type planted struct{ make, outcome, reason, shows string }

var (
	saved    = planted{":", core.OutcomeRemoved, "", ""}
	unsaved  = planted{"echo precious >unsaved", core.OutcomeSkipped, string(core.DirtyWorktree), "cat unsaved"}
	unpushed = planted{"echo precious >unsaved && git add . && git commit -qm work", core.OutcomeSkipped, string(core.UnpushedCommits), "git show HEAD:unsaved"}
	leavings = []planted{
		saved, unsaved, unpushed,
		{`echo x >unsaved && git add . && git commit -qm work && git push -q origin "HEAD:refs/heads/$(basename "$PWD")"`, core.OutcomeRemoved, "", ""},
		{"mkdir -p .kandev && echo x >.kandev/x", core.OutcomeRemoved, "", ""},
		{"git checkout -q --detach", core.OutcomeRemoved, "", ""},
		{"echo precious >>file", core.OutcomeSkipped, string(core.DirtyWorktree), "sed -n 2p file"},
		{"echo precious >unsaved && git add .", core.OutcomeSkipped, string(core.DirtyWorktree), "git show :unsaved"},
		{"echo unsaved >.git/info/exclude && echo precious >unsaved", core.OutcomeSkipped, string(core.DirtyWorktree), "cat unsaved"},
		{"git update-index --assume-unchanged file && echo precious >file", core.OutcomeSkipped, string(core.DirtyWorktree), "cat file"},
		{"git init -q sub && echo precious >sub/unsaved", core.OutcomeSkipped, string(core.DirtyWorktree), "cat sub/unsaved"},
		{"echo precious >unsaved && git add . && git stash -q", core.OutcomeSkipped, string(core.StashPresent), "git show stash@{0}:unsaved"},
		{"git checkout -qb side && echo precious >unsaved && git add . && git commit -qm work && git checkout -q -", core.OutcomeSkipped, string(core.UnpushedCommits), "git show side:unsaved"},
		{"git checkout -q --detach && echo precious >unsaved && git add . && git commit -qm work", core.OutcomeSkipped, string(core.UnpushedCommits), "git show HEAD:unsaved"},
		{"echo precious >unsaved && git add . && git commit -qm work && git reset -q --hard HEAD~1", core.OutcomeSkipped, string(core.UnpushedCommits), "git show ORIG_HEAD:unsaved"},
		{"git tag -a -m precious v1", core.OutcomeSkipped, string(core.UnpushedCommits), "git tag -l --format='%(contents)' v1"},
	}
)

// inTurn is half of what can be removed, and half of what must be kept.
func inTurn(i int) planted { return []planted{saved, saved, unsaved, unpushed}[i%4] }

// The soak: batches of random tasks on a real sshd and SQLite, by a worker that
// is killed at random. RECLAIM_TEST_SOAK says for how long: 2m in CI, 30m in a soak;
// without it there is one batch of 8 tasks and 5 kills, some 20 s.
func TestNothingIsLostOrDoneTwiceWhenTheWorkerIsKilledAtAnyMoment(t *testing.T) {
	t.Parallel() // beside the others; its batches one after the other
	lasts := time.Duration(0)
	if set := os.Getenv("RECLAIM_TEST_SOAK"); set != "" {
		var err error
		if lasts, err = time.ParseDuration(set); err != nil || lasts > 24*time.Hour {
			t.Fatalf("RECLAIM_TEST_SOAK is %q: %v", set, err)
		}
	}
	began, batches := time.Now(), 0
	for whole := true; whole && (batches == 0 || time.Since(began) < lasts); batches++ {
		seed := rand.Uint64()
		whole = t.Run(fmt.Sprintf("batch %d, seed %d", batches+1, seed), func(t *testing.T) {
			drawn := rand.New(rand.NewPCG(seed, 0))
			killing(t, newWorldOn(t, nil), func(int) planted { return leavings[drawn.IntN(len(leavings))] }, nil)
		})
	}
	t.Logf("%d batches in %s", batches, time.Since(began).Truncate(time.Second))
}

func TestNothingIsLostOrDoneTwiceWhenTheWorkerIsKilledAndItsStoreFailsAtRandom(t *testing.T) {
	killing(t, newWorld(t), inTurn, nil, processFaults+"=1")
}

// The server is killed too, as a power cut would kill it, under whatever is being
// written.
func TestNothingIsLostOrDoneTwiceWhenPostgreSQLIsKilledWithItsWorkerAndFailsAtRandom(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	w := newWorldOn(t, server)
	killing(t, w, inTurn, func() {
		server.Restart(t)
		if err := patiently(w.db.Ping); err != nil {
			t.Fatal(err)
		}
	}, processFaults+"=1")
}

// killing has jobs worked off by a worker that is killed again and again; plan
// says what each of their tasks leaves. Meanwhile, where there is one, is done to
// its database before every second kill.
func killing(t *testing.T, w *world, plan func(i int) planted, meanwhile func(), environment ...string) {
	kills, jobs, bound := 5, 8, 3*time.Minute
	if os.Getenv(long) != "" {
		kills, jobs, bound = 50, 200, 40*time.Minute
	}
	type expected struct {
		planted
		dir string
	}
	want := map[string]expected{}
	for i := range jobs {
		task, p := fmt.Sprint("t", i), plan(i)
		want[task] = expected{p, w.archived(task, p.make)}
	}
	start := func() *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command(self)
		child.Env = append(append(os.Environ(), processDB+"="+w.spec), environment...)
		child.Stderr = os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		return child
	}
	kill := func(child *exec.Cmd) {
		if err := child.Process.Kill(); err != nil {
			t.Errorf("the worker ended by itself: %v", err)
		}
		_ = child.Wait()
	}
	judged, unanswered := map[string]bool{}, 0
	anew := map[string]bool{} // removed directories that were made again: nobody's to remove
	rows := func() (open int) {
		t.Helper()
		all, err := w.db.Query(`SELECT task_id, state, attempts, resource_snapshot, last_error FROM task_resource_cleanup_jobs`)
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		for all.Next() {
			var task, state, lastError string
			var attempts int
			var snapshot sql.RawBytes
			if err := all.Scan(&task, &state, &attempts, &snapshot, &lastError); err != nil {
				t.Fatal(err)
			}
			if state == "failed" || state == "cancelled" {
				t.Errorf("%s is %s: %s", task, state, lastError)
			}
			if state != "succeeded" {
				open++
				continue
			}
			if judged[task] {
				continue
			}
			judged[task] = true
			parsed, err := core.ParseJobSnapshot(snapshot)
			if err != nil {
				t.Fatal(err)
			}
			got, expect := parsed.Targets()[0], want[task]
			if meanwhile != nil && got.Cause == core.OwnerUnknown {
				// Storage was away when it was asked who owns the directory (003.3).
				unanswered++
				if !w.there(expect.dir) {
					t.Errorf("%s is recorded as kept, and is gone", task)
				}
				if expect.outcome == core.OutcomeRemoved {
					expect.shows = "sed -n 's/^x$/precious/p' file"
				}
				expect.outcome = core.OutcomeSkipped
				want[task] = expect
				continue
			}
			if got.Outcome != expect.outcome || string(got.Reason) != expect.reason {
				t.Errorf("%s came to %s %s after %d attempts, not %s %s: %s", task, got.Outcome, got.Reason, attempts, expect.outcome, expect.reason, got.Detail)
				w.story(task)
			}
			if expect.outcome != core.OutcomeRemoved {
				continue
			}
			if w.there(expect.dir) {
				t.Errorf("%s is recorded as removed, and is there", task)
				continue
			}
			if err := os.Mkdir(expect.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			anew[task] = true
		}
		return open
	}
	// Kills a second or two apart: a retry's delay must not make the test wait, and
	// as many attempts must not use the job up. A row that is running counts anew
	// only while no worker is there to hold it.
	hurry := func(states string) {
		if err := patiently(func() error { // on a busy machine SQLite may not let us write for a while
			_, err := w.db.Exec(`UPDATE task_resource_cleanup_jobs SET next_attempt_at = NULL, attempts = CASE WHEN attempts > 1 THEN 1 ELSE attempts END WHERE state IN (` + states + `)`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	some := func() { time.Sleep(200*time.Millisecond + time.Duration(rand.IntN(1800))*time.Millisecond) } // at any moment
	for i := range kills {
		child := start()
		some()
		if meanwhile != nil && i%2 == 1 {
			meanwhile()
			some()
		}
		kill(child)
		rows()
		hurry(`'retry_wait', 'running'`)
	}
	child := start()
	defer kill(child)
	deadline := time.Now().Add(bound)
	for rows() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs have not ended", rows())
		}
		time.Sleep(300 * time.Millisecond)
		hurry(`'retry_wait'`)
	}
	for task, expect := range want {
		if expect.outcome == core.OutcomeRemoved {
			if !w.there(expect.dir) || !anew[task] {
				t.Errorf("%s was removed again after it had been made anew", task)
			}
			continue
		}
		if said := w.sh(expect.dir, expect.shows); said != "precious" {
			t.Errorf("%s (%s) lost its work: %q", task, expect.make, said)
		}
	}
	w.replayed()
	if unanswered > jobs/2 {
		t.Errorf("of %d jobs %d found nobody to say who owns the directory", jobs, unanswered)
	}
	if left, _ := filepath.Glob(w.root + "/tasks/.reclaim-*"); len(left) > 0 {
		t.Errorf("holders are left: %v", left)
	}
}

// replayed checks that every record that was kept leads to its own end again.
func (w *world) replayed() {
	w.Helper()
	all, err := w.store.Desk().Jobs(w.Context(), "", 1000)
	if err != nil {
		w.Fatal(err)
	}
	records := 0
	for _, j := range all {
		filed, err := w.store.Desk().RecordsOf(w.Context(), j.ID)
		if err != nil {
			w.Fatal(err)
		}
		for _, f := range filed {
			records++
			again := core.Conclude(f.Record.Snapshot, f.Record.Transcript)
			if told := f.Record.Result; again.Outcome != told.Outcome || again.Reason != told.Reason || again.Cause != told.Cause || again.Fault != told.Fault || again.Detail != told.Detail {
				w.Errorf("the record %s of %s says %s %s%s and replays to %s %s%s", f.ID, j.TaskID, told.Outcome, told.Reason, told.Fault, again.Outcome, again.Reason, again.Fault)
			}
		}
	}
	if records < len(all) {
		w.Errorf("%d records of %d jobs", records, len(all))
	}
}

// story logs what each attempt at the task's directory asked and was told.
func (w *world) story(task string) {
	w.Helper()
	var id string
	if err := w.db.QueryRow(w.bound(`SELECT id FROM task_resource_cleanup_jobs WHERE task_id = ?`), task).Scan(&id); err != nil {
		w.Fatal(err)
	}
	filed, err := w.store.Desk().RecordsOf(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range filed {
		raw, err := json.Marshal(f.Record.Transcript)
		w.Logf("%s attempt %d, at %s: %s %v", task, f.Record.Result.Attempt, f.At, raw, err)
	}
}
