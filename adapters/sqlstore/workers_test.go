package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

// workerEnv makes the test program a worker that is meant to be killed: it says
// on a line what it did once the store has acknowledged it.
const workerEnv = "RECLAIM_TEST_WORKER"

// openDSN opens a database by the form the child is given: DIALECT DSN.
func openDSN(spec string) (*sql.DB, sqlstore.Dialect, error) {
	dialect, dsn, _ := strings.Cut(spec, " ")
	driver := "sqlite"
	if sqlstore.Dialect(dialect) == sqlstore.PostgreSQL {
		driver = "pgx"
	}
	db, err := sql.Open(driver, dsn)
	return db, sqlstore.Dialect(dialect), err
}

func workUntilKilled(spec string, out io.Writer) error {
	db, dialect, err := openDSN(spec)
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := sqlstore.Open(ctx, db, dialect)
	if err != nil {
		return err
	}
	for {
		j, ok, err := store.Lease(ctx, "child", nil)
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(out, "idle")
			return nil
		}
		fmt.Fprintln(out, "leased", j.ID, j.Attempts)
		if begun := store.Begin(ctx, core.Begin{JobID: j.ID, TaskID: j.TaskID, Attempt: j.Attempts, Target: target(j.TaskID)}); begun.Ending != core.BeginRecorded {
			return errors.New(begun.Detail)
		}
		fmt.Fprintln(out, "begun", j.ID, j.Attempts)
		if err := store.Conclude(ctx, ports.Conclusion{JobID: j.ID, Attempt: j.Attempts, Target: target(j.TaskID), Outcome: core.Removed{Detail: "gone"}}); err != nil {
			return err
		}
		fmt.Fprintln(out, "removed", j.ID, j.Attempts)
		if err := store.Finish(ctx, ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: "child"}, ports.Ending{State: ports.Succeeded}); err != nil {
			return err
		}
		fmt.Fprintln(out, "succeeded", j.ID, j.Attempts)
	}
}

// location opens a fresh installation and the form a child opens it by.
func location(t testing.TB, dialect sqlstore.Dialect) (*sqlstore.Store, *sql.DB, string) {
	t.Helper()
	dsn := sqliteDSN(filepath.Join(t.TempDir(), "reclaim.db"))
	if dialect == sqlstore.PostgreSQL {
		dsn = postgres().NewDSN(t)
	}
	spec := string(dialect) + " " + dsn
	db, _, err := openDSN(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := sqlstore.Init(t.Context(), db, dialect); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), db, dialect)
	if err != nil {
		t.Fatal(err)
	}
	return store, db, spec
}

// A process is killed at random moments until every job has ended. Whatever it
// said it had done must be in the database, and nothing may be half written.
func TestAKillDuringWritesLosesNothingThatWasAcknowledged(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db, spec := location(t, dialect)
			const jobs = 60
			fill(t, seed{db, dialect}, jobs)
			random := rand.New(rand.NewPCG(1, uint64(len(dialect))))
			kills := 0
			for idle := false; !idle; {
				if kills > 500 {
					t.Fatal("the jobs do not end")
				}
				said := map[string]string{} // job: the last thing said of it, with its attempt
				child := exec.Command(os.Args[0], "-test.run=^$")
				child.Env = append(os.Environ(), workerEnv+"="+spec)
				child.Stderr = os.Stderr
				out, err := child.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := child.Start(); err != nil {
					t.Fatal(err)
				}
				left := 1 + random.IntN(16)
				for lines := bufio.NewScanner(out); lines.Scan(); {
					if lines.Text() == "idle" {
						idle = true
						break
					}
					word, id, _ := strings.Cut(lines.Text(), " ")
					id, attempt, _ := strings.Cut(id, " ")
					said[id] = word + " " + attempt
					if left--; left == 0 {
						time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond) // into the next write, not in place of a condition
						child.Process.Kill()
						kills++
					}
				}
				child.Wait()
				for id, word := range said {
					j, err := store.Desk().Job(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					snapshot, err := core.ParseJobSnapshot(j.Snapshot)
					if err != nil {
						t.Fatalf("%s: %v", id, err)
					}
					now := snapshot.Targets()[0]
					lost := false
					var attempt int
					fmt.Sscanf(word, "leased %d", &attempt)
					switch word, _, _ := strings.Cut(word, " "); word {
					case "leased":
						lost = j.Attempts < attempt
					case "begun":
						lost = now.Begun == 0
					case "removed":
						lost = now.Outcome != core.OutcomeRemoved
					case "succeeded":
						lost = j.State != ports.Succeeded || now.Outcome != core.OutcomeRemoved
					}
					if lost {
						t.Errorf("%s: %s was acknowledged; the row is %s, attempt %d, begun %d, %q", id, word, j.State, j.Attempts, now.Begun, now.Outcome)
					}
				}
				if _, err := store.Recover(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			all, err := store.Desk().Jobs(t.Context(), ports.Succeeded, 1000)
			if err != nil || len(all) != jobs {
				t.Errorf("%d of %d jobs succeeded: %v", len(all), jobs, err)
			}
			if kills < 5 {
				t.Errorf("only %d kills", kills)
			}
			t.Logf("%d kills", kills)
		})
	}
}

func TestTwoWorkersLeaseEveryAttemptExactlyOnce(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			_, db, spec := location(t, dialect)
			const jobs = 1000
			fill(t, seed{db, dialect}, jobs)
			var mu sync.Mutex
			leased := map[string]string{}
			errs := make(chan error, 2)
			for _, worker := range []string{"w-1", "w-2"} {
				go func() {
					errs <- func() error {
						own, _, err := openDSN(spec) // a pool of its own, as another process has
						if err != nil {
							return err
						}
						defer own.Close()
						store, err := sqlstore.Open(t.Context(), own, dialect)
						if err != nil {
							return err
						}
						for {
							j, ok, err := store.Lease(t.Context(), worker, nil)
							if err != nil || !ok {
								return err
							}
							key := fmt.Sprint(j.ID, " ", j.Attempts)
							mu.Lock()
							other, twice := leased[key]
							leased[key] = worker
							mu.Unlock()
							if twice {
								return fmt.Errorf("%s leased %s after %s", worker, key, other)
							}
							token := ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: worker}
							end := ports.Ending{State: ports.Succeeded}
							if j.Attempts == 1 && strings.HasSuffix(j.ID, "7") {
								end = ports.Ending{State: ports.RetryWait, Error: "again"}
							}
							if err := store.Finish(t.Context(), token, end); err != nil {
								return err
							}
						}
					}()
				}()
			}
			for range 2 {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
			if want := jobs + jobs/10; len(leased) != want {
				t.Errorf("%d attempts, want %d", len(leased), want)
			}
			each := map[string]int{}
			for _, worker := range leased {
				each[worker]++
			}
			if len(each) != 2 {
				t.Errorf("one worker did it all: %v", each)
			}
		})
	}
}

// An un-archive and a begin race for the row: exactly one of them wins.
func TestAC_D11_OfABeginAndAnUnarchiveExactlyOneWins(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db, _ := location(t, dialect)
			rows := seed{db, dialect}
			won := map[string]int{}
			for i := range 40 {
				task := fmt.Sprint("t-", i)
				rows.PutTask(t, porttest.Task{ID: task, Archived: true})
				rows.PutJob(t, ports.Job{ID: task, OperationID: task, TaskID: task, Trigger: core.Archive, State: ports.Pending, Snapshot: []byte(`{"ssh_task_dirs":[` + targetOf(task) + `]}`), CreatedAt: time.Now(), UpdatedAt: time.Now()})
				j, ok, err := store.Lease(t.Context(), "w", nil)
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				var begun core.Begun
				var opened error
				var both sync.WaitGroup
				both.Go(func() {
					begun = store.Begin(t.Context(), core.Begin{JobID: j.ID, TaskID: task, Attempt: j.Attempts, Target: target(task)})
				})
				both.Go(func() { opened = store.Unarchive(t.Context(), task, false) })
				both.Wait()
				switch {
				case begun.Ending == core.BeginRecorded && errors.Is(opened, ports.ErrRemoving):
					won["begin"]++
				case begun.Ending == core.BeginWithdrawn && opened == nil:
					won["un-archive"]++
				default:
					t.Fatalf("begin: %+v, un-archive: %v", begun, opened)
				}
				if terminal, _ := store.Terminal(t.Context(), task); terminal != (opened != nil) {
					t.Fatalf("terminal %v after %v", terminal, opened)
				}
				if err := store.Finish(t.Context(), ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: "w"}, ports.Ending{State: ports.JobFailed}); (err == nil) == (opened == nil) {
					t.Fatalf("finish: %v after %v", err, opened)
				}
			}
			t.Log(won)
		})
	}
}

func TestACreatedSessionAndACleanupJobBarEachOther(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db, _ := location(t, dialect)
			rows := seed{db, dialect}
			ctx := t.Context()
			bar := func(task string) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				return store.BarSession(ctx, tx, task)
			}
			for state, barred := range map[ports.State]bool{ports.Prepared: true, ports.Pending: true, ports.Running: true, ports.RetryWait: true, "waiting_for_clean": true,
				ports.Succeeded: false, ports.JobFailed: false, ports.Cancelled: false} {
				task := "t-" + string(state)
				rows.PutTask(t, porttest.Task{ID: task})
				rows.PutJob(t, ports.Job{ID: task, OperationID: task, TaskID: task, Trigger: core.Delete, State: state, Snapshot: []byte("{}"), CreatedAt: time.Now(), UpdatedAt: time.Now()})
				if err := bar(task); errors.Is(err, ports.ErrRefused) != barred || !barred && err != nil {
					t.Errorf("%s: %v", state, err)
				}
			}
			rows.PutTask(t, porttest.Task{ID: "archived", Archived: true})
			if err := bar("archived"); !errors.Is(err, ports.ErrRefused) {
				t.Errorf("archived: %v", err)
			}
			if err := bar("nobody"); !errors.Is(err, ports.ErrNotFound) {
				t.Errorf("nobody: %v", err)
			}

			// While a session is being created no job can be prepared; the inventory
			// then holds the session.
			rows.PutTask(t, porttest.Task{ID: "t-1"})
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.BarSession(ctx, tx, "t-1"); err != nil {
				t.Fatal(err)
			}
			archived := make(chan error, 1)
			var ids []string
			go func() {
				var err error
				ids, err = store.Archive(ctx, []string{"t-1"}, false)
				archived <- err
			}()
			now := rows.at(time.Now())
			if _, err := tx.Exec(numbered(dialect, `INSERT INTO executors_running (id, session_id, task_id, executor_id, runtime, metadata, created_at, updated_at) VALUES ('s', 's', 't-1', 'e', 'ssh', ?, ?, ?)`),
				`{"ssh_host":"h","ssh_remote_task_dir":"/r/tasks/x"}`, now, now); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-archived; err != nil {
				t.Fatal(err)
			}
			snapshot, err := core.ParseJobSnapshot(rows.GetJob(t, ids[0]).Snapshot)
			if err != nil || len(snapshot.Targets()) != 1 {
				t.Errorf("%s %v", snapshot.Bytes(), err)
			}
		})
	}
}

// A change of the task that fails leaves a cancelled job, the task as it was,
// and, in a cascade, everything after it untouched.
func TestATaskThatCannotBeChangedCancelsItsJobAndTheRest(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db, _ := location(t, dialect)
			rows := seed{db, dialect}
			for _, id := range []string{"a", "stuck", "z"} {
				rows.PutTask(t, porttest.Task{ID: id})
			}
			rule := `CREATE TRIGGER stuck BEFORE UPDATE OF archived_at ON tasks WHEN NEW.id = 'stuck' BEGIN SELECT RAISE(ABORT, 'stuck'); END`
			if dialect == sqlstore.PostgreSQL {
				rule = `ALTER TABLE tasks ADD CONSTRAINT stuck CHECK (id <> 'stuck' OR archived_at IS NULL)`
			}
			rows.exec(t, rule)
			ids, err := store.Archive(t.Context(), []string{"a", "stuck", "z"}, false)
			if err == nil || len(ids) != 1 || !strings.Contains(err.Error(), "stuck") {
				t.Errorf("%v %v", ids, err)
			}
			for task, want := range map[string]ports.State{"a": ports.Pending, "stuck": ports.Cancelled, "z": ports.Cancelled} {
				var state string
				if err := db.QueryRow(numbered(dialect, `SELECT state FROM task_resource_cleanup_jobs WHERE task_id = ?`), task).Scan(&state); err != nil || state != string(want) {
					t.Errorf("%s: %s %v", task, state, err)
				}
				if terminal, _ := store.Terminal(t.Context(), task); terminal != (task == "a") {
					t.Errorf("%s: terminal %v", task, terminal)
				}
			}
		})
	}
}

func TestRecordsAreKeptNinetyDays(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db, _ := location(t, dialect)
			rows := seed{db, dialect}
			record := func(attempt int) core.Record {
				return core.NewRecord(core.Snapshot{JobID: "job-1", TaskID: "t-1", Trigger: core.Archive, Attempt: attempt, Hook: core.HookNone, Target: core.Target{Host: "h", TaskDir: "/r/tasks/x"}}, nil)
			}
			for attempt := 1; attempt <= 3; attempt++ {
				if err := store.Keep(t.Context(), record(attempt)); err != nil {
					t.Fatal(err)
				}
			}
			days := func(n int) int64 { return time.Now().Add(-time.Duration(n) * 24 * time.Hour).UnixMilli() }
			rows.exec(t, `UPDATE reclaim_records SET kept_ms = ? WHERE attempt = 1`, days(91))
			rows.exec(t, `UPDATE reclaim_records SET kept_ms = ? WHERE attempt = 2`, days(89))
			if err := store.Keep(t.Context(), record(4)); err != nil {
				t.Fatal(err)
			}
			filed, err := store.Desk().RecordsOf(t.Context(), "job-1")
			if err != nil || len(filed) != 3 || filed[2].Record.Snapshot.Attempt != 2 {
				t.Errorf("%d records: %v", len(filed), err)
			}
			huge := record(5)
			huge.Result.Detail = strings.Repeat("x", 5<<20)
			if store.Keep(t.Context(), huge) == nil {
				t.Error("a record of 5 MiB was kept")
			}
		})
	}
}

// An un-archive that has changed the task and not committed yet has looked for jobs
// to cancel already: a job made again meanwhile would outlive it.
func TestAC_D11_AJobIsNotMadeAgainInTheMiddleOfAnUnarchive(t *testing.T) {
	store, db, _ := location(t, sqlstore.PostgreSQL)
	rows := seed{db, sqlstore.PostgreSQL}
	rows.PutTask(t, porttest.Task{ID: "t-1", Archived: true})
	rows.PutJob(t, ports.Job{ID: "j", OperationID: "j", TaskID: "t-1", Trigger: core.Archive, State: ports.Succeeded, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		Snapshot: []byte(`{"ssh_task_dirs":[{"host":"h","task_dir":"/r/tasks/a","outcome":"skipped","skip_reason":"shared"}]}`)})
	opening, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer opening.Rollback()
	if _, err := opening.Exec(`UPDATE tasks SET archived_at = NULL WHERE id = 't-1'`); err != nil {
		t.Fatal(err)
	}
	made := make(chan error, 1)
	go func() { _, err := store.Desk().JudgeAgain(context.Background(), "j"); made <- err }()
	blocked(t, db, `UPDATE tasks%`, made)
	if err := opening.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-made; !errors.Is(err, ports.ErrRefused) {
		t.Errorf("made again: %v", err)
	}
}

// A worker that starts settles what it takes for a crash's: it may cancel the job of
// a task that is still to be changed. The task is then not changed.
func TestATaskWhoseJobWasCancelledMeanwhileDoesNotEnd(t *testing.T) {
	for _, dialect := range dialects {
		for _, deletes := range []bool{false, true} {
			t.Run(fmt.Sprint(dialect, " deletes ", deletes), func(t *testing.T) {
				t.Parallel()
				store, db, _ := location(t, dialect)
				rows := seed{db, dialect}
				rows.PutTask(t, porttest.Task{ID: "a"})
				rows.PutTask(t, porttest.Task{ID: "b"})
				end, when := store.Archive, `AFTER UPDATE OF archived_at ON tasks`
				if deletes {
					end, when = store.Delete, `AFTER DELETE ON tasks`
				}
				const cancel = `UPDATE task_resource_cleanup_jobs SET state = 'cancelled' WHERE task_id = 'b' AND state = 'prepared';`
				rule := `CREATE TRIGGER starts ` + when + ` BEGIN ` + cancel + ` END`
				if dialect == sqlstore.PostgreSQL {
					rule = `CREATE FUNCTION starts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + cancel + ` RETURN NULL; END $$; CREATE TRIGGER starts ` + when + ` FOR EACH ROW EXECUTE FUNCTION starts()`
				}
				rows.exec(t, rule)
				ids, err := end(t.Context(), []string{"a", "b"}, false)
				if !errors.Is(err, ports.ErrRefused) || len(ids) != 1 {
					t.Errorf("%v %v", ids, err)
				}
				if terminal, err := store.Terminal(t.Context(), "b"); terminal || err != nil {
					t.Errorf("b has ended without a job: %v", err)
				}
			})
		}
	}
}

// Of a task's end and the settling of its prepared job one is first; the other
// goes by what it finds then.
func TestAPreparedJobWhoseTaskEndsAtThisMomentIsActivated(t *testing.T) {
	store, db, _ := location(t, sqlstore.PostgreSQL)
	rows := seed{db, sqlstore.PostgreSQL}
	rows.PutTask(t, porttest.Task{ID: "t-1"})
	rows.PutJob(t, ports.Job{ID: "j", OperationID: "j", TaskID: "t-1", Trigger: core.Archive, State: ports.Prepared, Snapshot: []byte(`{}`), CreatedAt: time.Now(), UpdatedAt: time.Now()})
	ending, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer ending.Rollback()
	for _, statement := range []string{`UPDATE task_resource_cleanup_jobs SET attempts = attempts WHERE id = 'j'`, `UPDATE tasks SET archived_at = now() WHERE id = 't-1'`} {
		if _, err := ending.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	settled := make(chan error, 1)
	go func() { _, err := store.Reconcile(context.Background(), time.Now().Add(time.Hour)); settled <- err }()
	blocked(t, db, `UPDATE task_resource%`, settled)
	if err := ending.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil || rows.GetJob(t, "j").State != ports.Pending {
		t.Errorf("%s %v", rows.GetJob(t, "j").State, err)
	}
}

// blocked returns once a statement that looks so waits for a lock, or has an answer.
func blocked(t *testing.T, db *sql.DB, like string, answer <-chan error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(answer) == 0; time.Sleep(5 * time.Millisecond) {
		var waits int
		if err := db.QueryRow(`SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`, like).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no statement like %q waits for a lock", like)
		}
	}
}
