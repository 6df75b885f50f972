package sqlstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// launched is what a launch into the task's directory comes to.
func launched(t *testing.T, s sqlstore.Starting, baseline string) (core.Target, []byte) {
	t.Helper()
	metadata, err := core.Project(s.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	target, _, err := core.LaunchTarget(metadata)
	if err != nil {
		t.Fatal(err)
	}
	target.TaskDir = "/srv/k/tasks/task-" + s.Inputs.TaskID
	if metadata, err = core.WithLaunched(metadata, target, nil); err == nil {
		metadata, err = core.WithBaseline(metadata, baseline)
	}
	if err != nil {
		t.Fatal(err)
	}
	return target, metadata
}

// foreseen is the one target that archiving the task would capture.
func foreseen(t *testing.T, store *sqlstore.Store, task string) core.JobTarget {
	t.Helper()
	raw, err := store.Foreseen(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := core.ParseJobSnapshot(raw)
	if err != nil || len(snapshot.Targets()) != 1 {
		t.Fatalf("%v %s", err, raw)
	}
	return snapshot.Targets()[0]
}

// A task that ends while its session is launched leaves a directory and a helper on
// the host. The launch is refused then, and the rows say where they are: a job that
// comes later, of the task taken up again or deleted, stops and judges them.
func TestALaunchThatIsRefusedBecauseItsTaskEndedIsStillSomebodys(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db := installed(t, dialect)
			if err := store.AddProfile(t.Context(), sqlstore.NewProfile{ID: "p", Executor: map[string]string{"ssh_host": "h", "ssh_host_fingerprint": "SHA256:x"}, Profile: map[string]string{"ssh_workdir_root": "/srv/k", "ssh_reclaim_task_dir": "true"}}); err != nil {
				t.Fatal(err)
			}
			s, err := store.StartSession(t.Context(), sqlstore.NewSession{TaskID: "t", Profile: "p", Repositories: []core.Repository{{URL: "u"}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Archive(t.Context(), []string{"t"}, false); err != nil {
				t.Fatal(err)
			}
			target, metadata := launched(t, s, "")
			if err := store.SessionRuns(t.Context(), s.SessionID, target, metadata, 42, false); !errors.Is(err, ports.ErrRefused) {
				t.Fatalf("the task has ended: %v", err)
			}
			var state string
			if err := db.QueryRow(`SELECT state FROM task_sessions`).Scan(&state); err != nil || state == "RUNNING" {
				t.Errorf("the session of an archived task is %s (%v)", state, err)
			}
			if err := store.Unarchive(t.Context(), "t", false); err != nil {
				t.Fatal(err)
			}
			if got := foreseen(t, store, "t"); got.Target.TaskDir != target.TaskDir || !got.Target.Enabled {
				t.Errorf("%+v", got)
			}
			if rows, err := store.Sessions(t.Context(), "t"); err != nil || len(rows) != 1 || !rows[0].Live() || rows[0].PID != 42 {
				t.Errorf("%+v %v", rows, err)
			}
		})
	}
}

func TestADirectoryThatWasThereKeepsTheOptInAndTheBaselineItWasMadeWith(t *testing.T) {
	first, second := strings.Repeat("a", 40), strings.Repeat("b", 40)
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			store, db := installed(t, dialect)
			profile := sqlstore.NewProfile{ID: "p", Executor: map[string]string{"ssh_host": "h", "ssh_host_fingerprint": "SHA256:x"}, Profile: map[string]string{"ssh_workdir_root": "/srv/k"}}
			if err := store.AddProfile(t.Context(), profile); err != nil {
				t.Fatal(err)
			}
			if err := store.AddProfile(t.Context(), profile); !errors.Is(err, ports.ErrRefused) {
				t.Errorf("a second profile of the id: %v", err)
			}
			set := func(on bool) {
				t.Helper()
				if err := store.Desk().SetReclaim(t.Context(), "p", on); err != nil {
					t.Fatal(err)
				}
			}
			start := func(task string) sqlstore.Starting {
				t.Helper()
				s, err := store.StartSession(t.Context(), sqlstore.NewSession{TaskID: task, Profile: "p", Repositories: []core.Repository{{URL: "https://me:secret@h/app.git"}, {Name: "lib", URL: "u", Base: "b"}}})
				if err != nil || len(s.Repositories) != 2 || strings.Contains(string(s.Inputs.Task), "secret") {
					t.Fatalf("%+v %v", s, err)
				}
				return s
			}
			runs := func(s sqlstore.Starting, baseline string, reused bool) {
				t.Helper()
				target, metadata := launched(t, s, baseline)
				if err := store.SessionRuns(t.Context(), s.SessionID, target, metadata, 42, reused); err != nil {
					t.Fatal(err)
				}
			}

			// Made before the switch: taken up, launched again, kept by a job that
			// forgot its rows and launched once more, it stays as it is.
			s := start("t1")
			runs(s, first, false)
			set(true)
			if err := store.Desk().SetDisposable(t.Context(), "p", "node"); err != nil {
				t.Fatal(err)
			}
			if got := foreseen(t, store, "t1"); got.Target.Enabled || got.Baseline != first {
				t.Errorf("%+v", got)
			}
			resumed, err := store.ResumeSession(t.Context(), "t1")
			if err != nil || resumed.SessionID != s.SessionID || len(resumed.Repositories) != 2 {
				t.Fatalf("%+v %v", resumed, err)
			}
			runs(resumed, "", true)
			runs(start("t1"), "", true)
			if got := foreseen(t, store, "t1"); got.Target.Enabled || got.Baseline != first {
				t.Errorf("taken up, it is %+v", got)
			}
			if _, err := store.Archive(t.Context(), []string{"t1"}, false); err != nil {
				t.Fatal(err)
			}
			for _, call := range []func() error{
				func() error { _, err := store.ResumeSession(t.Context(), "t1"); return err },
				func() error { _, err := store.StopTask(t.Context(), "t1"); return err },
				func() error {
					_, err := store.StartSession(t.Context(), sqlstore.NewSession{TaskID: "t1", Profile: "p"})
					return err
				},
				func() error {
					target, m := launched(t, s, "")
					return store.SessionRuns(t.Context(), s.SessionID, target, m, 1, false)
				},
			} {
				if err := call(); !errors.Is(err, ports.ErrRefused) {
					t.Errorf("of an archived task: %v", err)
				}
			}
			if err := store.Unarchive(t.Context(), "t1", false); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(`DELETE FROM executors_running`); err != nil {
				t.Fatal(err)
			}
			runs(start("t1"), "", true)
			if got := foreseen(t, store, "t1"); got.Target.Enabled || got.Baseline != first || got.Target.Disposable != "" {
				t.Errorf("its rows forgotten, it is %+v", got)
			}

			// Made with it: it stays on, and a baseline nobody agrees about is none.
			s = start("t2")
			runs(s, first, false)
			runs(start("t2"), "", true)
			if got := foreseen(t, store, "t2"); !got.Target.Enabled || got.Baseline != first || got.Target.Disposable != "node" {
				t.Errorf("%+v", got)
			}
			runs(start("t2"), second, false)
			if got := foreseen(t, store, "t2"); !got.Target.Enabled || got.Baseline != "" {
				t.Errorf("two baselines come to %+v", got)
			}
			// Nobody knows what it was made with.
			runs(start("t3"), "", true)
			if got := foreseen(t, store, "t3"); got.Target.Enabled || got.Baseline != "" || got.Target.Disposable != "" {
				t.Errorf("%+v", got)
			}

			stopped, err := store.StopTask(t.Context(), "t2")
			if err != nil || len(stopped) != 3 {
				t.Errorf("%v %v", stopped, err)
			}
			if rows, err := store.Sessions(t.Context(), "t2"); err != nil || len(rows) != 3 || !rows[0].Live() {
				t.Errorf("a stopped session's helper is ended with the task: %+v %v", rows, err)
			}
			for name, n := range map[string]sqlstore.NewSession{"an unknown profile": {TaskID: "t9", Profile: "q"}, "an unknown parent": {TaskID: "t9", Profile: "p", ParentID: "t8"}} {
				n.Repositories = []core.Repository{{URL: "u"}}
				if _, err := store.StartSession(t.Context(), n); !errors.Is(err, ports.ErrNotFound) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := store.Terminal(t.Context(), "t9"); err != nil {
				t.Error(err)
			}
			if terminal, _ := store.Terminal(t.Context(), "t9"); !terminal {
				t.Error("a launch that was refused left its task behind")
			}
		})
	}
}
