package porttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// launched puts an open task t-1 that has run in its directory.
func (b *bench) launched() {
	b.Helper()
	b.seed.PutTask(b.TB, Task{ID: "t-1", Title: "Fix login"})
	b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-1", TaskID: "t-1", ProfileID: "p-1", WorkspacePath: dir})
	b.seed.PutProfile(b.TB, "p-1", `{"ssh_host":"box.example","ssh_port":"2222"}`, `{"ssh_reclaim_task_dir":"true"}`)
	b.seed.PutSession(b.TB, SessionRow{ID: "s-1", TaskID: "t-1", State: "RUNNING", EnvironmentID: "env-1"})
	b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-1", TaskID: "t-1", Runtime: "ssh", Status: "ready", ProfileID: "p-1", Metadata: metadata()})
}

func (b *bench) archive(cascade bool, tasks ...string) []string {
	b.Helper()
	ids, err := b.store.Archive(ctx, tasks, cascade)
	b.must(err)
	return ids
}

func (b *bench) lease() ports.Job {
	b.Helper()
	j, ok, err := b.store.Lease(ctx, "w-1", nil)
	b.must(err)
	if !ok {
		b.Fatal("no job is due")
	}
	return j
}

func (b *bench) none(worker string, hold ...string) {
	b.Helper()
	if j, ok, err := b.store.Lease(ctx, worker, hold); ok || err != nil {
		b.Errorf("leased %s: %v", j.ID, err)
	}
}

func (b *bench) state(id string, want ports.State) ports.Job {
	b.Helper()
	j := b.seed.GetJob(b.TB, id)
	if j.State != want {
		b.Errorf("job %s is %s, want %s", id, j.State, want)
	}
	if ended := want == ports.Succeeded || want == ports.JobFailed || want == ports.Cancelled; ended == j.CompletedAt.IsZero() {
		b.Errorf("job %s is %s with completed_at %v", id, want, j.CompletedAt)
	}
	return j
}

func (b *bench) lost(err error) {
	b.Helper()
	if !errors.Is(err, ports.ErrRowLost) {
		b.Errorf("got %v, want ErrRowLost", err)
	}
}

func (b *bench) refused(err error) {
	b.Helper()
	if !errors.Is(err, ports.ErrRefused) {
		b.Errorf("got %v, want ErrRefused", err)
	}
}

func (b *bench) notFound(err error) {
	b.Helper()
	if !errors.Is(err, ports.ErrNotFound) {
		b.Errorf("got %v, want ErrNotFound", err)
	}
}

func token(j ports.Job) ports.Token {
	return ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: "w-1"}
}

func (b *bench) terminal(task string, want bool) {
	b.Helper()
	if got, err := b.store.Terminal(ctx, task); err != nil || got != want {
		b.Errorf("task %s terminal: %v %v", task, got, err)
	}
}

func (b *bench) targets(id string) []core.JobTarget {
	b.Helper()
	s, err := core.ParseJobSnapshot(b.seed.GetJob(b.TB, id).Snapshot)
	b.must(err)
	return s.Targets()
}

var storageClauses = []storageClause{
	{"4.6: prepare, commit, activate make one pending job with the directory as it was launched", func(b *bench) {
		b.launched()
		ids := b.archive(false, "t-1")
		if len(ids) != 1 {
			b.Fatalf("%v", ids)
		}
		j := b.state(ids[0], ports.Pending)
		if j.Trigger != core.Archive || j.TaskID != "t-1" || j.Attempts != 0 || j.OperationID != "archive:t-1:"+j.ID {
			b.Errorf("%+v", j)
		}
		b.terminal("t-1", true)
		if diff := cmp.Diff([]core.JobTarget{{Target: target, Profiles: []string{"p-1"}}}, b.targets(j.ID)); diff != "" {
			b.Error(diff)
		}
		var raw struct {
			Stops []struct {
				SessionID string `json:"session_id"`
			} `json:"stop_targets"`
			Environment map[string]any `json:"task_environment"`
			Targets     []struct {
				Port    int  `json:"port"`
				Enabled bool `json:"enabled"`
			} `json:"ssh_task_dirs"`
		}
		b.must(json.Unmarshal(j.Snapshot, &raw))
		if len(raw.Stops) != 1 || raw.Stops[0].SessionID != "s-1" || raw.Environment["id"] != "env-1" || raw.Environment["executor_profile_id"] != "p-1" ||
			raw.Targets[0].Port != 22 || !raw.Targets[0].Enabled {
			b.Errorf("%s", j.Snapshot)
		}
	}},
	{"006: an opt-in is frozen at launch, and one launch without it disables the directory", func(b *bench) {
		b.launched()
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-0", TaskID: "t-1", Runtime: "ssh", Status: "stopped", ProfileID: "p-0",
			Metadata: metadata("ssh_reclaim_task_dir", "", "ssh_shell", "zsh"), Updated: made})
		got := b.targets(b.archive(false, "t-1")[0])
		if len(got) != 1 || got[0].Target.Enabled || got[0].Target.Shell != "" || len(got[0].Notes) != 1 || !slices.Equal(got[0].Profiles, []string{"p-0", "p-1"}) {
			b.Errorf("%+v", got)
		}
	}},
	{"a launch that cannot be read disables every directory of its task", func(b *bench) {
		b.launched()
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-0", TaskID: "t-1", Runtime: "ssh", Status: "stopped", Metadata: `{`})
		if got := b.targets(b.archive(false, "t-1")[0]); len(got) != 1 || got[0].Target.Enabled || len(got[0].Notes) != 1 {
			b.Errorf("%+v", got)
		}
	}},
	{"where no launch is left the environment's path is told, without an opt-in", func(b *bench) {
		b.launched()
		b.must(b.store.Forget(ctx, "t-1", []string{"s-1"}))
		got := b.targets(b.archive(false, "t-1")[0])
		if len(got) != 1 || got[0].Target.Enabled || got[0].Target.TaskDir != dir || got[0].Target.Host != host || got[0].Target.Port != 2222 || len(got[0].Notes) != 1 {
			b.Errorf("%+v", got)
		}
	}},
	{"an unknown task is not found, an archived one is refused, and the others stay as they were", func(b *bench) {
		b.launched()
		_, err := b.store.Archive(ctx, []string{"t-1", "nobody", "nothing"}, false)
		b.notFound(err)
		if said := fmt.Sprint(err); !strings.Contains(said, "nobody") || !strings.Contains(said, "nothing") {
			b.Errorf("%q does not name every task that is not there", said)
		}
		b.terminal("t-1", false)
		b.none("w-1")
		b.archive(false, "t-1")
		_, err = b.store.Archive(ctx, []string{"t-1"}, false)
		b.refused(err)
		b.seed.PutTask(b.TB, Task{ID: "twice"})
		if ids := b.archive(false, "twice", "twice"); len(ids) != 1 {
			b.Errorf("%d jobs for one task that was named twice", len(ids))
		}
		jobs, err := b.desk.Jobs(ctx, "", 10)
		b.must(err)
		states := []ports.State{}
		for _, j := range jobs {
			states = append(states, j.State)
		}
		slices.Sort(states)
		if !slices.Equal(states, []ports.State{ports.Pending, ports.Pending}) { // of what was refused nothing was written
			b.Errorf("%v", states)
		}
	}},
	{"a deleted task is gone with its rows, and its job keeps the environment's copy", func(b *bench) {
		b.launched()
		ids, err := b.store.Delete(ctx, []string{"t-1"}, false)
		b.must(err)
		j := b.state(ids[0], ports.Pending)
		if j.Trigger != core.Delete {
			b.Errorf("%s", j.Trigger)
		}
		b.terminal("t-1", true)
		s, err := core.ParseJobSnapshot(j.Snapshot)
		b.must(err)
		if diff := cmp.Diff(&core.Environment{ID: "env-1", TaskID: "t-1"}, s.Environment()); diff != "" {
			b.Error(diff)
		}
		o := b.store.Owner(ctx, core.Owner{JobID: j.ID, TaskID: "t-1", Environment: "env-1", Target: target})
		if o.Environment != nil || !o.TaskTerminal || o.OptInNow != core.On || o.Error != "" {
			b.Errorf("%+v", o)
		}
	}},
	{"a deleted task's environment goes to a surviving borrower", func(b *bench) {
		b.launched()
		b.seed.PutTask(b.TB, Task{ID: "t-2"})
		b.seed.PutSession(b.TB, SessionRow{ID: "s-2", TaskID: "t-2", State: "IDLE", EnvironmentID: "env-1"})
		ids, err := b.store.Delete(ctx, []string{"t-1"}, false)
		b.must(err)
		o := b.store.Owner(ctx, core.Owner{JobID: ids[0], TaskID: "t-1", Environment: "env-1", Target: target})
		if o.Environment == nil || o.Environment.TaskID != "t-2" {
			b.Errorf("%+v", o)
		}
	}},
	{"AC_D37: a cascade takes the tasks below along, with one cascade id, parents first", func(b *bench) {
		b.launched()
		for _, task := range []Task{{ID: "c-1", Parent: "t-1"}, {ID: "c-2", Parent: "t-1"}, {ID: "g-1", Parent: "c-1"}, {ID: "done", Parent: "t-1", Archived: true}, {ID: "other"}} {
			b.seed.PutTask(b.TB, task)
		}
		ids := b.archive(true, "t-1")
		if len(ids) != 4 {
			b.Fatalf("%d jobs", len(ids))
		}
		cascades := map[string]bool{}
		for i, task := range []string{"t-1", "c-1", "c-2", "g-1"} {
			j := b.state(ids[i], ports.Pending)
			part := strings.Split(j.OperationID, ":")
			if j.TaskID != task || j.Trigger != core.CascadeArchive || len(part) != 3 || part[2] != task {
				b.Errorf("job %d: %+v", i, j)
			} else {
				cascades[part[1]] = true
			}
			b.terminal(task, true)
		}
		if len(cascades) != 1 {
			b.Errorf("%d cascade ids", len(cascades))
		}
		b.terminal("other", false)
		b.must(b.store.Unarchive(ctx, "t-1", true))
		for _, task := range []string{"t-1", "c-1", "c-2", "g-1"} {
			b.terminal(task, false)
		}
		b.terminal("done", true)
		for _, id := range ids {
			b.state(id, ports.Cancelled)
		}
	}},
	{"without cascade the tasks below stay", func(b *bench) {
		b.launched()
		b.seed.PutTask(b.TB, Task{ID: "c-1", Parent: "t-1"})
		if ids := b.archive(false, "t-1"); len(ids) != 1 {
			b.Errorf("%v", ids)
		}
		b.terminal("c-1", false)
	}},
	{"4.6: a lease counts the attempt, clears the time and makes the job running", func(b *bench) {
		b.settle()
		j := aJob("job-1", ports.RetryWait, 2)
		j.NextAttemptAt, j.LastError = made, "unreachable"
		b.seed.PutJob(b.TB, j)
		got := b.lease()
		row := b.state("job-1", ports.Running)
		if got.Attempts != 3 || row.Attempts != 3 || !row.NextAttemptAt.IsZero() || row.LastError != "unreachable" || string(got.Snapshot) != string(j.Snapshot) {
			b.Errorf("leased %+v, row %+v", got, row)
		}
		b.none("w-2")
	}},
	{"the oldest due job is leased first", func(b *bench) {
		b.settle()
		for i, id := range []string{"c", "a", "b"} {
			j := aJob(id, ports.Pending, 0)
			j.TaskID, j.CreatedAt = "t-"+id, made.Add(-time.Duration(i)*time.Second)
			b.seed.PutJob(b.TB, j)
		}
		due, err := b.store.Due(ctx, 2)
		b.must(err)
		if len(due) != 2 || due[0].ID != "b" || due[1].ID != "a" || due[0].State != ports.Pending {
			b.Errorf("%+v", due)
		}
		for _, want := range []string{"b", "a", "c"} {
			b.want(b.lease().ID, want)
		}
	}},
	{"AC_D14, AC_D31: other triggers and unknown states are never leased, recovered or settled", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Succeeded, 1))
		for i, row := range []struct {
			trigger core.Trigger
			state   ports.State
		}{{"workspace_delete", ports.Pending}, {"quick_chat_expire", ports.Pending}, {"archive_reclaim", "waiting_for_clean"}, {"session_delete", ports.RetryWait}, {"Archive", ports.Pending},
			{"reconcile", ports.Prepared}, {"tomorrow", ports.Running}, {core.Archive, "waiting_for_clean"}, {core.Archive, "word"}, {core.Archive, ports.Prepared}, {core.Archive, ""}} {
			j := aJob(fmt.Sprint("odd-", i), row.state, 1)
			j.Trigger, j.TaskID = row.trigger, fmt.Sprint("odd-", i)
			b.seed.PutTask(b.TB, Task{ID: j.TaskID})
			b.seed.PutJob(b.TB, j)
		}
		b.none("w-1")
		if n, err := b.store.Recover(ctx, 0); n != 0 || err != nil {
			b.Errorf("recovered %d: %v", n, err)
		}
		if n, err := b.store.Reconcile(ctx, made.Add(-time.Hour)); n != 0 || err != nil {
			b.Errorf("settled %d: %v", n, err)
		}
	}},
	{"AC_D37: two jobs of one task run one after the other", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 0))
		second := aJob("job-2", ports.Pending, 0)
		second.CreatedAt = made.Add(time.Second)
		b.seed.PutJob(b.TB, second)
		first := b.lease()
		b.want(first.ID, "job-1")
		b.none("w-2")
		b.must(b.store.Finish(ctx, token(first), ports.Ending{State: ports.Succeeded}))
		b.want(b.lease().ID, "job-2")
	}},
	{"jobs whose hosts are held are passed over, however many", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Succeeded, 1))
		for i := range 150 {
			j := aJob(fmt.Sprintf("held-%03d", i), ports.Pending, 0)
			j.TaskID = j.ID
			b.seed.PutJob(b.TB, j)
		}
		free := aJob("free", ports.Pending, 0)
		free.TaskID, free.CreatedAt, free.Snapshot = "t-free", made.Add(time.Hour), []byte(strings.ReplaceAll(string(free.Snapshot), host, "elsewhere"))
		b.seed.PutJob(b.TB, free)
		j, ok, err := b.store.Lease(ctx, "w-1", []string{"x", host})
		if err != nil || !ok || j.ID != "free" {
			b.Errorf("%s %v %v", j.ID, ok, err)
		}
		b.none("w-1", host)
	}},
	{"a retry is not due before its time", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 0))
		b.must(b.store.Finish(ctx, token(b.lease()), ports.Ending{State: ports.RetryWait, Delay: time.Hour, Error: "unreachable"}))
		j := b.state("job-1", ports.RetryWait)
		if wait := time.Until(j.NextAttemptAt); wait < 59*time.Minute || wait > 61*time.Minute || j.LastError != "unreachable" || j.Attempts != 1 {
			b.Errorf("%v %+v", wait, j)
		}
		b.none("w-1")
		due, err := b.desk.Retry(ctx, "job-1")
		b.must(err)
		b.want(due, "job-1")
		b.want(fmt.Sprint(b.lease().Attempts), "2")
	}},
	{"4.6: an attempt ends succeeded, failed or waiting, and only by its holder", func(b *bench) {
		for _, end := range []ports.Ending{{State: ports.Succeeded, Error: "forgotten"}, {State: ports.JobFailed, Error: "final"}, {State: ports.RetryWait, Error: "again"}} {
			b.settle()
			j := aJob("job-1", ports.Pending, 0)
			j.LastError = "earlier"
			b.seed.PutJob(b.TB, j)
			held := token(b.lease())
			for _, other := range []ports.Token{{JobID: "job-1", Attempt: 2, Worker: "w-1"}, {JobID: "job-1", Attempt: 1, Worker: "w-2"}, {JobID: "job-2", Attempt: 1, Worker: "w-1"}} {
				b.lost(b.store.Finish(ctx, other, end))
				b.lost(b.store.Beat(ctx, other))
				b.lost(b.store.Cancel(ctx, other))
			}
			b.must(b.store.Beat(ctx, held))
			b.must(b.store.Finish(ctx, held, end))
			got := b.state("job-1", end.State)
			if want := map[ports.State]string{ports.Succeeded: "", ports.JobFailed: "final", ports.RetryWait: "again"}[end.State]; got.LastError != want {
				b.Errorf("last_error %q", got.LastError)
			}
			b.lost(b.store.Finish(ctx, held, end))
			b.lost(b.store.Beat(ctx, held))
			if end.State == ports.RetryWait {
				b.want(b.lease().ID, "job-1")
			} else {
				b.none("w-1")
			}
		}
		for _, odd := range []ports.State{"", ports.Pending, ports.Prepared, ports.Cancelled, "word"} {
			b.settle()
			b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 0))
			held := token(b.lease())
			if b.store.Finish(ctx, held, ports.Ending{State: odd}) == nil {
				b.Errorf("ended as %q", odd)
			}
			b.state("job-1", ports.Running)
		}
	}},
	{"4.6: a job found un-archived is cancelled by its holder", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 0))
		b.must(b.store.Cancel(ctx, token(b.lease())))
		b.state("job-1", ports.Cancelled)
		b.none("w-1")
	}},
	{"an attempt that was no try is noted with its end, once, and a job judged again has all its tries", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 0))
		uncounted := func(want int) core.JobSnapshot {
			b.Helper()
			s, err := core.ParseJobSnapshot(b.seed.GetJob(b.TB, "job-1").Snapshot)
			b.must(err)
			if s.Uncounted() != want {
				b.Errorf("%d attempts are no tries, want %d", s.Uncounted(), want)
			}
			return s
		}
		held := ports.Ending{State: ports.RetryWait, Error: "held", Uncounted: true}
		first := token(b.lease())
		b.lost(b.store.Finish(ctx, ports.Token{JobID: "job-1", Attempt: 1, Worker: "w-2"}, held))
		uncounted(0)
		b.must(b.store.Finish(ctx, first, held))
		b.lost(b.store.Finish(ctx, first, held))
		uncounted(1)
		// A worker that dies while a hold is all there is has tried nothing either.
		b.must(b.store.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: b.lease().Attempts, Target: target, Outcome: core.Failed{Fault: core.PolicyHeld}}))
		if n, err := b.store.Recover(ctx, 0); n != 1 || err != nil {
			b.Errorf("recovered %d: %v", n, err)
		}
		uncounted(2)
		failing := b.lease()
		b.must(b.store.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: failing.Attempts, Target: target, Outcome: core.Failed{Fault: core.Unreachable}}))
		b.must(b.store.Finish(ctx, token(failing), ports.Ending{State: ports.RetryWait, Error: "unreachable"}))
		if s := uncounted(2); failing.Attempts != 3 || s.Tries(failing.Attempts) != 1 {
			b.Errorf("attempt %d is try %d", failing.Attempts, s.Tries(failing.Attempts))
		}
		b.lease()
		if n, err := b.store.Recover(ctx, 0); n != 1 || err != nil {
			b.Errorf("recovered %d: %v", n, err)
		}
		uncounted(2)
		b.must(b.store.Finish(ctx, token(b.lease()), ports.Ending{State: ports.JobFailed, Error: "given up"}))
		again, err := b.desk.JudgeAgain(ctx, "job-1")
		b.must(err)
		s, err := core.ParseJobSnapshot(b.state(again, ports.Pending).Snapshot)
		b.must(err)
		if s.Uncounted() != 0 {
			b.Errorf("the new job begins with %d", s.Uncounted())
		}
	}},
	{"4.6: a stale lease is recovered with its attempts, a fresh one is not, and the old holder has lost", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 0))
		held := token(b.lease())
		if n, err := b.store.Recover(ctx, time.Minute); n != 0 || err != nil {
			b.Errorf("recovered %d fresh: %v", n, err)
		}
		b.state("job-1", ports.Running)
		if n, err := b.store.Recover(ctx, 0); n != 1 || err != nil {
			b.Errorf("recovered %d: %v", n, err)
		}
		if j := b.state("job-1", ports.RetryWait); j.Attempts != 1 {
			b.Errorf("attempts %d", j.Attempts)
		}
		again := b.lease()
		b.want(fmt.Sprint(again.Attempts), "2")
		b.lost(b.store.Beat(ctx, held))
		b.lost(b.store.Finish(ctx, held, ports.Ending{State: ports.Succeeded}))
		b.lost(b.store.Hooked(ctx, held, target, core.SessionHook{SessionID: "s-1", Ending: core.HookRan}))
		b.lost(b.store.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 1, Target: target, Outcome: core.Removed{}}))
		if got := b.store.Begin(ctx, core.Begin{JobID: "job-1", TaskID: "t-1", Attempt: 1, Target: target}); got.Ending != core.BeginWithdrawn {
			b.Errorf("%+v", got)
		}
		b.must(b.store.Beat(ctx, token(again)))
	}},
	{"a running row without a lease, such as one from before a crash, is recovered", func(b *bench) {
		b.settle()
		if n, err := b.store.Recover(ctx, time.Minute); n != 1 || err != nil {
			b.Errorf("recovered %d: %v", n, err)
		}
		b.want(fmt.Sprint(b.lease().Attempts), "3")
	}},
	{"a cleanup script's ending is in the row, under its directory", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 0))
		held := token(b.lease())
		hook := core.SessionHook{SessionID: "s-1", Ending: core.HookFailed, Detail: "status 1", Script: "save"}
		b.must(b.store.Hooked(ctx, held, target, hook))
		if diff := cmp.Diff([]core.SessionHook{hook}, b.targets("job-1")[0].Hooks); diff != "" {
			b.Error(diff)
		}
	}},
	{"sessions are listed newest first, marked stopped, and forgotten by name only", func(b *bench) {
		b.launched()
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-0", TaskID: "t-1", Runtime: "local", Status: "running", Metadata: "{}", Updated: made})
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-9", TaskID: "t-9", Runtime: "ssh", Status: "running", Metadata: "{}"})
		ids := func(task string) (all []string) {
			rows, err := b.store.Sessions(ctx, task)
			b.must(err)
			for _, r := range rows {
				all = append(all, r.SessionID+":"+r.Status)
			}
			return all
		}
		if diff := cmp.Diff([]string{"s-1:ready", "s-0:running"}, ids("t-1")); diff != "" {
			b.Error(diff)
		}
		b.must(b.store.MarkStopped(ctx, "s-1"))
		b.must(b.store.MarkStopped(ctx, "nobody"))
		rows, _ := b.store.Sessions(ctx, "t-1")
		if slices.ContainsFunc(rows, func(r core.Running) bool {
			return r.SessionID == "s-1" && (r.Live() || string(r.Metadata) != metadata())
		}) {
			b.Errorf("%+v", rows)
		}
		b.must(b.store.Forget(ctx, "t-1", []string{"s-1", "s-9", "nobody"}))
		if diff := cmp.Diff([]string{"s-0:running"}, ids("t-1")); diff != "" {
			b.Error(diff)
		}
		if diff := cmp.Diff([]string{"s-9:running"}, ids("t-9")); diff != "" {
			b.Error(diff)
		}
	}},
	{"004.3, 4.6: un-archive cancels a prepared, pending, waiting or running job that has not begun", func(b *bench) {
		for _, state := range []ports.State{ports.Prepared, ports.Pending, ports.RetryWait, ports.Running} {
			b.settle()
			b.seed.PutJob(b.TB, aJob("job-1", state, 2))
			b.must(b.store.Unarchive(ctx, "t-1", false))
			b.state("job-1", ports.Cancelled)
			b.terminal("t-1", false)
			if got := b.begin(); got.Ending != core.BeginWithdrawn {
				b.Errorf("%s: %+v", state, got)
			}
		}
	}},
	{"4.6: un-archive leaves ended jobs and delete jobs as they are", func(b *bench) {
		b.settle()
		for i, state := range []ports.State{ports.Succeeded, ports.JobFailed, ports.Cancelled, ports.Pending} {
			j := aJob(fmt.Sprint("job-", i+1), state, 2)
			if state == ports.Pending {
				j.Trigger = core.Delete
			} else {
				j.CompletedAt = made
			}
			b.seed.PutJob(b.TB, j)
		}
		before := []ports.Job{b.seed.GetJob(b.TB, "job-1"), b.seed.GetJob(b.TB, "job-2"), b.seed.GetJob(b.TB, "job-3"), b.seed.GetJob(b.TB, "job-4")}
		b.must(b.store.Unarchive(ctx, "t-1", false))
		for _, j := range before {
			b.untouched(j)
		}
	}},
	{"AC_D11: un-archive is refused, changing nothing, while a removal has begun and not ended", func(b *bench) {
		b.settle()
		b.must(rowErr(b.begin()))
		before := b.seed.GetJob(b.TB, "job-1")
		err := b.store.Unarchive(ctx, "t-1", false)
		b.refused(err)
		if !errors.Is(err, ports.ErrRemoving) || !strings.Contains(err.Error(), "try again in a moment") {
			b.Errorf("%v", err)
		}
		b.untouched(before)
		b.terminal("t-1", true)
		b.must(b.store.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Failed{Fault: core.Lost}}))
		b.refused(b.store.Unarchive(ctx, "t-1", false))
		b.must(b.store.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Removed{}}))
		b.must(b.store.Unarchive(ctx, "t-1", false))
		b.state("job-1", ports.Cancelled)
	}},
	{"un-archive of an open or unknown task is refused", func(b *bench) {
		b.launched()
		b.refused(b.store.Unarchive(ctx, "t-1", false))
		b.notFound(b.store.Unarchive(ctx, "nobody", false))
	}},
	{"4.6: a prepared row of a committed change is activated, of one that was not made cancelled once it is old or marked", func(b *bench) {
		b.seed.PutTask(b.TB, Task{ID: "archived", Archived: true})
		b.seed.PutTask(b.TB, Task{ID: "open"})
		put := func(id, task string, trigger core.Trigger, mark string) {
			j := aJob(id, ports.Prepared, 0)
			j.TaskID, j.Trigger, j.LastError = task, trigger, mark
			b.seed.PutJob(b.TB, j)
		}
		put("archived", "archived", core.Archive, "")
		put("deleted", "gone", core.Delete, "task mutation outcome requires reconciliation")
		put("undeleted", "archived", core.CascadeDelete, "")
		put("open", "open", core.CascadeArchive, "")
		put("marked", "open", core.Delete, "task mutation outcome requires reconciliation")
		if n, err := b.store.Reconcile(ctx, made.Add(-time.Second)); n != 3 || err != nil {
			b.Errorf("settled %d: %v", n, err)
		}
		b.state("archived", ports.Pending)
		if j := b.state("deleted", ports.Pending); j.LastError != "" {
			b.Errorf("%q", j.LastError)
		}
		b.state("marked", ports.Cancelled)
		b.state("open", ports.Prepared)
		b.state("undeleted", ports.Prepared)
		if n, err := b.store.Reconcile(ctx, made.Add(time.Second)); n != 2 || err != nil {
			b.Errorf("settled %d: %v", n, err)
		}
		b.state("open", ports.Cancelled)
		b.state("undeleted", ports.Cancelled)
	}},
	{"a delete after an archive makes a second job", func(b *bench) {
		b.launched()
		first := b.archive(false, "t-1")
		second, err := b.store.Delete(ctx, []string{"t-1"}, false)
		b.must(err)
		b.state(first[0], ports.Pending)
		b.state(second[0], ports.Pending)
		if len(b.targets(second[0])) != 1 {
			b.Error("the second job holds no directory")
		}
	}},
	{"the stop-all switch halts a begin and writes nothing", func(b *bench) {
		b.settle()
		b.must(b.desk.SetStopped(ctx, true))
		before := b.seed.GetJob(b.TB, "job-1")
		if got := b.begin(); got.Ending != core.BeginHalted {
			b.Errorf("%+v", got)
		}
		b.untouched(before)
		if on, err := b.desk.Stopped(ctx); !on || err != nil {
			b.Errorf("%v %v", on, err)
		}
		b.must(b.desk.SetStopped(ctx, false))
		b.must(rowErr(b.begin()))
	}},
	{"a profile's switch is written as true or false and everything else in its config stays", func(b *bench) {
		b.settle()
		b.seed.PutProfile(b.TB, "p-1", `{"ssh_host":" box ","ssh_host_alias":"b","ssh_user":"dev","ssh_port":"2222"}`, `{ "x" : "1e2", "ssh_reclaim_task_dir":" TRUE ","ssh_workdir_root":"/srv/ " }`)
		want := ports.Profile{ID: "p-1", Name: "p-1", Executor: "p-1", Host: " box ", Alias: "b", User: "dev", Port: "2222", Root: "/srv/ ", Reclaim: " TRUE "}
		got, err := b.desk.Profiles(ctx)
		b.must(err)
		if diff := cmp.Diff([]ports.Profile{want}, got); diff != "" {
			b.Error(diff)
		}
		for _, on := range []bool{true, false} {
			b.must(b.desk.SetReclaim(ctx, "p-1", on))
			got, _ = b.desk.Profiles(ctx)
			want.Reclaim = fmt.Sprint(on)
			if diff := cmp.Diff([]ports.Profile{want}, got); diff != "" {
				b.Error(diff)
			}
		}
		b.notFound(b.desk.SetReclaim(ctx, "p-9", true))
	}},
	{"a profile's kinds of build output are written in order, a word that is none refuses them all", func(b *bench) {
		b.settle()
		b.seed.PutProfile(b.TB, "p-1", `{"ssh_host":"box"}`, `{ "x" : "1e2" }`)
		kinds := func() string {
			b.Helper()
			got, err := b.desk.Profiles(ctx)
			b.must(err)
			return got[0].Disposable
		}
		b.must(b.desk.SetDisposable(ctx, "p-1", " web, node"))
		if got := kinds(); got != "node,web" {
			b.Errorf("stored %q", got)
		}
		if err := b.desk.SetDisposable(ctx, "p-1", "node,moon"); !errors.Is(err, ports.ErrRefused) || kinds() != "node,web" {
			b.Errorf("a word that is no kind: %v, stored %q", err, kinds())
		}
		b.must(b.desk.SetDisposable(ctx, "p-1", ""))
		if got := kinds(); got != "" {
			b.Errorf("stored %q", got)
		}
		b.notFound(b.desk.SetDisposable(ctx, "p-9", "node"))
	}},
	{"jobs are listed newest first, by state, and found by id", func(b *bench) {
		b.settle()
		for i := range 3 {
			j := aJob(fmt.Sprint("job-", i), ports.Succeeded, 1)
			j.CreatedAt = made.Add(time.Duration(i) * time.Second)
			b.seed.PutJob(b.TB, j)
		}
		got, err := b.desk.Jobs(ctx, ports.Succeeded, 2)
		b.must(err)
		if len(got) != 2 || got[0].ID != "job-2" || got[1].ID != "job-1" {
			b.Errorf("%+v", got)
		}
		if all, err := b.desk.Jobs(ctx, "", 100); err != nil || len(all) != 3 {
			b.Errorf("%d %v", len(all), err)
		}
		j, err := b.desk.Job(ctx, "job-1")
		b.must(err)
		if diff := cmp.Diff(b.seed.GetJob(b.TB, "job-1"), j); diff != "" {
			b.Error(diff)
		}
		_, err = b.desk.Job(ctx, "nobody")
		b.notFound(err)
	}},
	{"job retry makes a waiting job due and a failed one into a new job; others are refused", func(b *bench) {
		b.settle()
		failed := aJob("job-1", ports.JobFailed, 8)
		failed.CompletedAt = made
		failed.Snapshot = snapshotOf(strings.Replace(targetJSON, `"enabled":true`, `"enabled":true,"outcome":"failed","detail":"x","reclaim":{"begun":8,"fault":"lost"}`, 1))
		b.seed.PutJob(b.TB, failed)
		before := b.seed.GetJob(b.TB, "job-1")
		id, err := b.desk.Retry(ctx, "job-1")
		b.must(err)
		b.untouched(before)
		if id == "job-1" {
			b.Fatal("a failed job left its state")
		}
		b.state(id, ports.Pending)
		if got := b.targets(id)[0]; got.Begun != 8 || got.Outcome != "" || got.Fault != "" || got.Detail != "" {
			b.Errorf("%+v", got)
		}
		for _, state := range []ports.State{ports.Running, ports.Succeeded, ports.Cancelled, ports.Prepared} {
			b.seed.PutJob(b.TB, aJob("job-2", state, 1))
			_, err := b.desk.Retry(ctx, "job-2")
			b.refused(err)
		}
		_, err = b.desk.Retry(ctx, "nobody")
		b.notFound(err)
	}},
	{"job cancel ends a waiting job, and none that runs, ended or began a removal", func(b *bench) {
		b.settle()
		for _, state := range []ports.State{ports.Pending, ports.RetryWait} {
			b.seed.PutJob(b.TB, aJob("job-1", state, 1))
			b.must(b.desk.Cancel(ctx, "job-1"))
			b.state("job-1", ports.Cancelled)
		}
		for _, state := range []ports.State{ports.Running, ports.Succeeded, ports.JobFailed, ports.Cancelled, ports.Prepared, "waiting_for_clean"} {
			b.seed.PutJob(b.TB, aJob("job-1", state, 1))
			b.refused(b.desk.Cancel(ctx, "job-1"))
		}
		begun := aJob("job-1", ports.RetryWait, 1)
		begun.Snapshot = snapshotOf(strings.Replace(targetJSON, `"enabled":true`, `"enabled":true,"reclaim":{"begun":1}`, 1))
		b.seed.PutJob(b.TB, begun)
		b.refused(b.desk.Cancel(ctx, "job-1"))
		b.notFound(b.desk.Cancel(ctx, "nobody"))
	}},
	{"002.7, D29: a kept directory is listed with its reason and judged again by a new job", func(b *bench) {
		b.settle()
		b.must(b.store.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Skipped{Finding: core.Finding{Reason: core.StashPresent, Cause: core.Stashed, Detail: "one", Cure: []core.Remedy{{What: "pop it"}}}}}))
		b.seed.PutJob(b.TB, func() ports.Job {
			j := b.seed.GetJob(b.TB, "job-1")
			j.State, j.CompletedAt = ports.Succeeded, made
			return j
		}())
		kept, err := b.desk.Kept(ctx)
		b.must(err)
		if len(kept) != 1 || kept[0].TaskTitle != "Fix login" || kept[0].Judging != "" || kept[0].Begun || kept[0].At.IsZero() {
			b.Fatalf("%+v", kept)
		}
		r := kept[0].Result
		if r.JobID != "job-1" || r.TaskID != "t-1" || r.Outcome != core.OutcomeSkipped || r.Reason != core.StashPresent || r.Cause != core.Stashed || r.Detail != "one" || len(r.Cure) != 1 || r.Target != target {
			b.Errorf("%+v", r)
		}
		id, err := b.desk.JudgeAgain(ctx, "job-1")
		b.must(err)
		j := b.state(id, ports.Pending)
		if string(j.Snapshot) != string(snapshotOf(strings.Replace(targetJSON, `"enabled":true}`, `"enabled":true,"reclaim":{}}`, 1))) && string(j.Snapshot) != string(snapshotOf(targetJSON)) {
			b.Errorf("%s", j.Snapshot)
		}
		if kept, _ = b.desk.Kept(ctx); len(kept) != 1 || kept[0].Judging != id {
			b.Errorf("%+v", kept)
		}
		_, err = b.desk.JudgeAgain(ctx, "job-1")
		b.refused(err)
		again := b.lease()
		b.must(b.store.Conclude(ctx, ports.Conclusion{JobID: id, Attempt: again.Attempts, Target: target, Outcome: core.Removed{}}))
		b.must(b.store.Finish(ctx, token(again), ports.Ending{State: ports.Succeeded}))
		if kept, _ = b.desk.Kept(ctx); len(kept) != 0 {
			b.Errorf("%+v", kept)
		}
		_, err = b.desk.JudgeAgain(ctx, id)
		b.refused(err)
	}},
	{"a directory of a task that is open again is not judged again", func(b *bench) {
		b.settle()
		j := aJob("job-1", ports.Succeeded, 2)
		j.CompletedAt = made
		b.seed.PutJob(b.TB, j)
		b.seed.Archived(b.TB, "t-1", false)
		_, err := b.desk.JudgeAgain(ctx, "job-1")
		b.refused(err)
		_, err = b.desk.JudgeAgain(ctx, "nobody")
		b.notFound(err)
	}},
	{"every attempt's record is found again, newest first, with the kept directory", func(b *bench) {
		b.settle()
		snapshot := core.Snapshot{JobID: "job-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, Target: target, Hook: core.HookNone}
		snapshot.Target.Enabled = false
		first := core.NewRecord(snapshot, nil)
		b.must(b.store.Keep(ctx, first))
		snapshot.Attempt = 2
		second := core.NewRecord(snapshot, nil)
		second.Result.Bytes = 4096
		b.must(b.store.Keep(ctx, second))
		b.must(b.store.Keep(ctx, second)) // kept once
		filed, err := b.desk.RecordsOf(ctx, "job-1")
		b.must(err)
		if len(filed) != 2 || filed[0].At.Before(filed[1].At) {
			b.Fatalf("%+v", filed)
		}
		one, err := b.desk.Record(ctx, filed[0].ID)
		b.must(err)
		if diff := cmp.Diff(filed[0], one); diff != "" {
			b.Error(diff)
		}
		b.must(b.store.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Skipped{Finding: core.Finding{Reason: core.Disabled}}}))
		kept, err := b.desk.Kept(ctx)
		b.must(err)
		if len(kept) != 1 || kept[0].Result.Record == "" || kept[0].Result.Bytes != 4096 {
			b.Errorf("%+v", kept)
		}
		_, err = b.desk.Record(ctx, "nobody")
		b.notFound(err)
	}},
	{"an ended context changes nothing", func(b *bench) {
		b.settle()
		b.seed.PutJob(b.TB, aJob("job-1", ports.Pending, 1))
		before := b.seed.GetJob(b.TB, "job-1")
		dead, end := context.WithCancel(ctx)
		end()
		if _, ok, err := b.store.Lease(dead, "w-1", nil); ok || err == nil {
			b.Errorf("leased: %v", err)
		}
		if _, err := b.store.Archive(dead, []string{"t-1"}, false); err == nil {
			b.Error("archived")
		}
		if err := b.store.Unarchive(dead, "t-1", false); err == nil {
			b.Error("un-archived")
		}
		b.untouched(before)
	}},
}

func rowErr(b core.Begun) error {
	if b.Ending != core.BeginRecorded {
		return fmt.Errorf("begin: %+v", b)
	}
	return nil
}
