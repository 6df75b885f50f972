package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

func TestAJobIsLeasedByItsIdOnlyWhenItIsDueAndAdmitted(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			store, db, _ := location(t, dialect)
			rows := seed{db, dialect}
			put := func(id, task string, state ports.State, trigger core.Trigger, next time.Time) {
				rows.PutTask(t, porttest.Task{ID: task, Archived: true})
				rows.PutJob(t, ports.Job{ID: id, OperationID: id, TaskID: task, Trigger: trigger, State: state, NextAttemptAt: next, Attempts: 2,
					Snapshot: []byte(`{"ssh_task_dirs":[` + targetOf(task) + `]}`), CreatedAt: time.Now(), UpdatedAt: time.Now()})
			}
			put("due", "t-1", ports.RetryWait, core.Archive, time.Now().Add(-time.Second))
			put("brother", "t-1", ports.Pending, core.Archive, time.Time{})
			put("later", "t-2", ports.RetryWait, core.Archive, time.Now().Add(time.Hour))
			put("ended", "t-3", ports.Succeeded, core.Archive, time.Time{})
			put("other", "t-4", ports.Pending, "archive_reclaim", time.Time{})
			put("refused", "t-5", ports.Pending, core.Delete, time.Time{})

			asked := ""
			admit := func(answer bool, err error) func(context.Context, *sql.Tx, ports.Job) (bool, error) {
				return func(_ context.Context, tx *sql.Tx, j ports.Job) (bool, error) {
					asked = j.ID
					if j.Attempts != 3 {
						t.Errorf("%s: asked for attempt %d", j.ID, j.Attempts)
					}
					if _, failed := tx.Exec(numbered(dialect, `UPDATE tasks SET title = 'asked' WHERE id = ?`), j.TaskID); failed != nil {
						t.Error(failed)
					}
					return answer, err
				}
			}
			look := func(id string, answer bool, fails error) (ports.Job, bool, time.Duration, error) {
				asked = ""
				return store.LeaseJob(t.Context(), "w", id, admit(answer, fails))
			}
			if _, _, _, err := look("nobody", true, nil); !errors.Is(err, ports.ErrNotFound) {
				t.Errorf("nobody: %v", err)
			}
			if j, taken, wait, err := look("later", true, nil); taken || err != nil || asked != "" || wait < 59*time.Minute || j.State != ports.RetryWait {
				t.Errorf("later: %v %v %s %v, asked %q", j.State, taken, wait, err, asked)
			}
			for _, id := range []string{"ended", "other"} {
				if j, taken, wait, err := look(id, true, nil); taken || err != nil || asked != "" || wait != 0 || j.ID != id {
					t.Errorf("%s: %v %v %s %v, asked %q", id, j.State, taken, wait, err, asked)
				}
			}
			if j, taken, wait, err := look("refused", false, nil); taken || err != nil || asked != "refused" || wait != 0 || j.State != ports.Pending {
				t.Errorf("refused: %v %v %s %v", j.State, taken, wait, err)
			}
			title := func(task string) (title string) {
				if err := db.QueryRow(numbered(dialect, `SELECT title FROM tasks WHERE id = ?`), task).Scan(&title); err != nil {
					t.Fatal(err)
				}
				return title
			}
			if title("t-5") != "asked" {
				t.Error("what a refusal wrote was not kept")
			}
			trouble := errors.New("trouble")
			if _, taken, _, err := look("due", true, trouble); taken || !errors.Is(err, trouble) || title("t-1") == "asked" {
				t.Errorf("trouble: %v %v", taken, err)
			}
			j, taken, _, err := look("due", true, nil)
			if !taken || err != nil || j.State != ports.Running || j.Attempts != 3 || title("t-1") != "asked" {
				t.Errorf("due: %+v %v %v", j, taken, err)
			}
			if got := rows.GetJob(t, "due"); got.State != ports.Running || got.Attempts != 3 || !got.NextAttemptAt.IsZero() {
				t.Errorf("the row: %+v", got)
			}
			if _, taken, _, err := look("due", true, nil); taken || err != nil || asked != "" {
				t.Errorf("due again: %v %v", taken, err)
			}
			if j, taken, wait, err := look("brother", true, nil); taken || err != nil || asked != "" || wait != 0 || j.State != ports.Pending {
				t.Errorf("brother: %v %v %s %v", j.State, taken, wait, err)
			}
			if err := store.Beat(t.Context(), ports.Token{JobID: "due", Attempt: 3, Worker: "w"}); err != nil {
				t.Errorf("the lease: %v", err)
			}
			if err := store.Finish(t.Context(), ports.Token{JobID: "due", Attempt: 3, Worker: "w"}, ports.Ending{State: ports.Succeeded}); err != nil {
				t.Errorf("the end: %v", err)
			}
		})
	}
}

// On many machines somebody else may settle a prepared job between the task's
// change and its own activation.
func TestAJobThatWasActivatedByAnotherIsActivated(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			store, db, _ := location(t, dialect)
			rows := seed{db, dialect}
			rows.PutTask(t, porttest.Task{ID: "t-1"})
			rule := `CREATE TRIGGER faster AFTER UPDATE OF archived_at ON tasks BEGIN UPDATE task_resource_cleanup_jobs SET state = 'pending' WHERE task_id = NEW.id AND state = 'prepared'; END`
			if dialect == "postgres" {
				rule = `CREATE FUNCTION faster() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE task_resource_cleanup_jobs SET state = 'pending' WHERE task_id = NEW.id AND state = 'prepared'; RETURN NEW; END $$;
					CREATE TRIGGER faster AFTER UPDATE OF archived_at ON tasks FOR EACH ROW EXECUTE FUNCTION faster()`
			}
			rows.exec(t, rule)
			ids, err := store.Archive(t.Context(), []string{"t-1"}, false)
			if err != nil || len(ids) != 1 || rows.GetJob(t, ids[0]).State != ports.Pending {
				t.Errorf("%v %v", ids, err)
			}
		})
	}
}

// Of two thousand tasks archived at once, every attempt looks at claims at the
// same moment; whoever files the new rows must not hold the others up.
func TestALookAtClaimsDoesNotWaitForAnothersFiling(t *testing.T) {
	store, db, _ := location(t, sqlstore.PostgreSQL)
	rows := seed{db, sqlstore.PostgreSQL}
	rows.PutTask(t, porttest.Task{ID: "t-1", Archived: true})
	rows.PutTask(t, porttest.Task{ID: "t-2"})
	rows.PutLaunch(t, porttest.LaunchRow{SessionID: "s", TaskID: "t-2", Runtime: "ssh", Status: "ready",
		Metadata: `{"ssh_host":"h","ssh_remote_task_dir":"` + target("t-1").TaskDir + `"}`})
	other, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	for _, statement := range []string{`SELECT pg_advisory_xact_lock(hashtextextended('reclaim places ' || current_schema(), 0))`, `DELETE FROM reclaim_places`} {
		if _, err := other.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	got := store.Owner(ctx, core.Owner{JobID: "j", TaskID: "t-1", Target: target("t-1")})
	if got.Error != "" {
		t.Errorf("%+v", got)
	}
}
