package porttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Seed puts rows where a host would. Every call is durable when it returns.
type Seed interface {
	PutTask(t testing.TB, row Task)
	PutEnvironment(t testing.TB, row EnvironmentRow)
	PutSession(t testing.TB, row SessionRow)
	PutLaunch(t testing.TB, row LaunchRow)
	PutProfile(t testing.TB, id, executorConfig, profileConfig string)
	PutJob(t testing.TB, row ports.Job) // replaces a row of the same id
	GetJob(t testing.TB, id string) ports.Job
	Archived(t testing.TB, taskID string, archived bool) // as another program would
	Remove(t testing.TB, table, id string)               // tasks, environments, profiles
}

// Task is a row of tasks.
type Task struct {
	ID, Title, Parent string
	Archived          bool
}

// EnvironmentRow is a row of task_environments, of type ssh.
type EnvironmentRow struct{ ID, TaskID, ProfileID, WorkspacePath string }

// SessionRow is a row of task_sessions.
type SessionRow struct{ ID, TaskID, State, EnvironmentID string }

// LaunchRow is a row of executors_running; its id is the session's.
type LaunchRow struct {
	SessionID, TaskID, Runtime, Status, ProfileID, Metadata string
	Updated                                                 time.Time // zero: now
}

// Storage is what a stand-alone store offers; Subject makes one that is empty.
type Storage interface {
	ports.Owners
	ports.Row
	ports.Tasks
	ports.Jobs
	ports.Sessions
	ports.Records
	ports.TaskEnds
}

// Rows is what a host's own adapter offers.
type Rows interface {
	ports.Owners
	ports.Row
	ports.Tasks
}

// TestRows proves an adapter over a host's tables: who owns a directory, and
// the begin and the outcome on the job's row.
func TestRows(t *testing.T, open func(t *testing.T) (Rows, Seed)) {
	for _, clause := range rowClauses {
		t.Run(clause.sentence, func(t *testing.T) {
			rows, seed := open(t)
			clause.prove(&rowBench{TB: t, rows: rows, seed: seed})
		})
	}
}

// TestStorage proves a stand-alone store, its desk included.
func TestStorage(t *testing.T, open func(t *testing.T) (Storage, ports.Desk, Seed)) {
	for _, clause := range storageClauses {
		t.Run(clause.sentence, func(t *testing.T) {
			store, desk, seed := open(t)
			clause.prove(&bench{rowBench: &rowBench{TB: t, rows: store, seed: seed}, store: store, desk: desk})
		})
	}
}

type rowClause struct {
	sentence string
	prove    func(*rowBench)
}

type storageClause struct {
	sentence string
	prove    func(*bench)
}

type rowBench struct {
	testing.TB
	rows Rows
	seed Seed
}

type bench struct {
	*rowBench
	store Storage
	desk  ports.Desk
}

var ctx = context.Background()

const (
	dir  = "/home/dev/.kandev/tasks/fix-login"
	host = "box.example"
)

var target = core.Target{Host: host, Port: 22, User: "dev", Fingerprint: "SHA256:abc", WorkdirRoot: "~/.kandev", TaskDir: dir, Enabled: true}

func metadata(pairs ...string) string {
	m := map[string]string{"ssh_host": host, "ssh_port": "22", "ssh_user": "dev", "ssh_host_fingerprint": "SHA256:abc", "ssh_workdir_root": "~/.kandev",
		"ssh_remote_task_dir": dir, "ssh_reclaim_task_dir": "true"}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	var parts []string
	for _, k := range slices.Sorted(mapKeys(m)) {
		parts = append(parts, fmt.Sprintf("%q:%q", k, m[k]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func snapshotOf(targets ...string) []byte {
	return []byte(`{"task_environment":{"id":"env-1","task_id":"t-1","executor_profile_id":"p-1"},"later":[1.0],"ssh_task_dirs":[` + strings.Join(targets, ",") + `]}`)
}

const targetJSON = `{"host":"box.example","port":22,"user":"dev","host_fingerprint":"SHA256:abc","workdir_root":"~/.kandev","task_dir":"/home/dev/.kandev/tasks/fix-login","enabled":true}`

var made = time.Date(2026, 11, 30, 2, 15, 56, 294123000, time.UTC)

// aJob is t-1's archive job in some state.
func aJob(id string, state ports.State, attempts int) ports.Job {
	return ports.Job{ID: id, OperationID: "archive:t-1:" + id, TaskID: "t-1", Trigger: core.Archive, State: state, Snapshot: snapshotOf(targetJSON),
		Attempts: attempts, CreatedAt: made, UpdatedAt: made}
}

// settle puts an archived task t-1 with its environment, profile and a running
// job job-1 at attempt 2.
func (b *rowBench) settle() {
	b.Helper()
	b.seed.PutTask(b.TB, Task{ID: "t-1", Title: "Fix login", Archived: true})
	b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-1", TaskID: "t-1", ProfileID: "p-1", WorkspacePath: dir})
	b.seed.PutProfile(b.TB, "p-1", `{"ssh_host":"box.example"}`, `{"ssh_reclaim_task_dir":"true"}`)
	b.seed.PutJob(b.TB, aJob("job-1", ports.Running, 2))
}

func (b *rowBench) owner() core.Ownership {
	b.Helper()
	return b.rows.Owner(ctx, core.Owner{Look: core.FirstLook, JobID: "job-1", TaskID: "t-1", Environment: "env-1", Target: target})
}

// judged is how core ends an attempt on the answer: "ours" when it goes on.
func (b *rowBench) judged() string {
	b.Helper()
	s := core.Snapshot{JobID: "job-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 2, Environment: &core.Environment{ID: "env-1", TaskID: "t-1"}, Target: target, Hook: core.HookNone}
	switch step := core.JudgeOwnership(s, b.owner()).(type) {
	case nil:
		return "ours"
	case core.Withdraw:
		return "withdrawn"
	case core.Done:
		switch o := step.Outcome.(type) {
		case core.Skipped:
			return string(o.Reason) + "/" + string(o.Cause)
		case core.Failed:
			return string(o.Fault)
		}
	}
	return "?"
}

func (b *rowBench) want(got, want string) {
	b.Helper()
	if got != want {
		b.Errorf("got %s, want %s", got, want)
	}
}

func (b *rowBench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *rowBench) begin() core.Begun {
	return b.rows.Begin(ctx, core.Begin{JobID: "job-1", TaskID: "t-1", Attempt: 2, Target: target, NotAfter: 1_700_000_900})
}

func (b *rowBench) untouched(before ports.Job) {
	b.Helper()
	if diff := cmp.Diff(before, b.seed.GetJob(b.TB, before.ID)); diff != "" {
		b.Errorf("the row changed:\n%s", diff)
	}
}

var rowClauses = []rowClause{
	{"a task with its own environment and an opted-in profile owns its directory", func(b *rowBench) {
		b.settle()
		want := core.Ownership{TaskTerminal: true, OptInNow: core.On, Environment: &core.Environment{ID: "env-1", TaskID: "t-1"}}
		got := b.owner()
		if len(got.Claims) == 0 {
			got.Claims = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Error(diff)
		}
		b.want(b.judged(), "ours")
	}},
	{"an open task is not terminal, an absent one is", func(b *rowBench) {
		b.settle()
		for _, terminal := range []bool{false, true} {
			b.seed.Archived(b.TB, "t-1", terminal)
			if got, err := b.rows.Terminal(ctx, "t-1"); err != nil || got != terminal {
				b.Errorf("archived %v: terminal %v, %v", terminal, got, err)
			}
		}
		b.seed.Archived(b.TB, "t-1", false)
		b.want(b.judged(), "withdrawn")
		if got, err := b.rows.Terminal(ctx, "nobody"); err != nil || !got {
			b.Errorf("absent: %v, %v", got, err)
		}
	}},
	{"AC_D17: only the exact string true opts in, and a profile that is gone does not", func(b *rowBench) {
		b.settle()
		for config, want := range map[string]core.OptIn{`{"ssh_reclaim_task_dir":"true"}`: core.On, `{"ssh_reclaim_task_dir":"false"}`: core.Off, `{"ssh_reclaim_task_dir":" true"}`: core.Off,
			`{"ssh_reclaim_task_dir":"TRUE"}`: core.Off, `{"ssh_reclaim_task_dir":true}`: core.Off, `{}`: core.Off, ``: core.Off, `{`: core.Off,
			`{"ssh_reclaim_task_dir":"true","ssh_reclaim_task_dir":"true"}`: core.Off, `{"SSH_reclaim_task_dir":"true"}`: core.Off} {
			b.seed.PutProfile(b.TB, "p-1", `{}`, config)
			if got := b.owner(); got.OptInNow != want {
				b.Errorf("%s: %q, want %q (%s)", config, got.OptInNow, want, got.Error)
			}
		}
		b.seed.Remove(b.TB, "executor_profiles", "p-1")
		b.want(string(b.owner().OptInNow), string(core.Off))
	}},
	{"AC_D17: where nothing names a profile the switch is unknown", func(b *rowBench) {
		b.settle()
		j := aJob("job-1", ports.Running, 2)
		j.Snapshot = []byte(`{"ssh_task_dirs":[` + targetJSON + `]}`)
		b.seed.PutJob(b.TB, j)
		b.want(string(b.owner().OptInNow), string(core.Unknown))
	}},
	{"AC_D17: every profile the directory was launched by must be on", func(b *rowBench) {
		b.settle()
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-1", TaskID: "t-1", Runtime: "ssh", Status: "stopped", ProfileID: "p-2", Metadata: metadata()})
		b.want(string(b.owner().OptInNow), string(core.Off))
		b.seed.PutProfile(b.TB, "p-2", `{}`, `{"ssh_reclaim_task_dir":"true"}`)
		b.want(string(b.owner().OptInNow), string(core.On))
	}},
	{"what every profile of the directory lets go is told, and nothing the directory was not launched with", func(b *rowBench) {
		b.settle()
		ask := func(frozen string) string {
			t := target
			t.Disposable = frozen
			return b.rows.Owner(ctx, core.Owner{Look: core.FirstLook, JobID: "job-1", TaskID: "t-1", Environment: "env-1", Target: t}).Disposable
		}
		b.seed.PutProfile(b.TB, "p-1", `{}`, `{"ssh_reclaim_task_dir":"true","ssh_reclaim_disposable":"node,rust,moon"}`)
		b.want(ask("node,rust,web"), "node,rust")
		b.want(ask(""), "")
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-1", TaskID: "t-1", Runtime: "ssh", Status: "stopped", ProfileID: "p-2", Metadata: metadata()})
		b.seed.PutProfile(b.TB, "p-2", `{}`, `{"ssh_reclaim_task_dir":"true","ssh_reclaim_disposable":"rust,go"}`)
		b.want(ask("node,rust,web"), "rust")
		b.seed.PutProfile(b.TB, "p-2", `{}`, `{"ssh_reclaim_task_dir":"true"}`)
		b.want(ask("node,rust,web"), "")
	}},
	{"an environment that went to another task is told as it is", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2"})
		b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-1", TaskID: "t-2"})
		b.want(b.judged(), "shared/owner_unknown")
	}},
	{"an environment that is gone is no environment", func(b *rowBench) {
		b.settle()
		b.seed.Remove(b.TB, "task_environments", "env-1")
		if got := b.owner(); got.Environment != nil || got.Error != "" {
			b.Errorf("%+v", got)
		}
	}},
	{"AC_D7: a session of another open task in our environment is a borrower, in whatever state", func(b *rowBench) {
		for _, state := range []string{"CREATED", "STARTING", "RUNNING", "IDLE", "WAITING_FOR_INPUT", "COMPLETED", "FAILED", "CANCELLED", "NEW_WORD"} {
			b.settle()
			b.seed.PutTask(b.TB, Task{ID: "t-2"})
			b.seed.PutSession(b.TB, SessionRow{ID: "s-2", TaskID: "t-2", State: state, EnvironmentID: "env-1"})
			b.want(b.judged(), "shared/borrower")
			if diff := cmp.Diff([]core.Borrower{{SessionID: "s-2", TaskID: "t-2", State: state}}, b.owner().Borrowers); diff != "" {
				b.Error(diff)
			}
		}
	}},
	{"AC_D7: a borrower's archived task does not keep the directory, and our own sessions are none", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
		b.seed.PutSession(b.TB, SessionRow{ID: "s-2", TaskID: "t-2", State: "CANCELLED", EnvironmentID: "env-1"})
		b.seed.PutSession(b.TB, SessionRow{ID: "s-1", TaskID: "t-1", State: "CANCELLED", EnvironmentID: "env-1"})
		b.want(b.judged(), "ours")
		if got := b.owner().Borrowers; len(got) != 1 || !got[0].TaskTerminal {
			b.Errorf("%+v", got)
		}
	}},
	{"AC_D7: a session in the environment of another claimant is a borrower too, whether or not the claimant goes on", func(b *rowBench) {
		borrower := core.Borrower{SessionID: "s-3", TaskID: "t-3", State: "IDLE", Lender: "t-2"}
		launched := func() { // and not yet forgotten
			b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-2", TaskID: "t-2", Runtime: "ssh", Status: "stopped", Metadata: metadata()})
		}
		ended := func() { // and cleaned up: by itself it claims nothing any more
			j := aJob("job-2", ports.Succeeded, 1)
			j.TaskID, j.OperationID, j.Snapshot = "t-2", "x", []byte(strings.Replace(string(snapshotOf(targetJSON)), `"id":"env-1","task_id":"t-1"`, `"id":"env-2","task_id":"t-2"`, 1))
			b.seed.PutJob(b.TB, j)
		}
		for _, row := range []struct {
			name string
			put  func()
			want string // without the borrower
		}{
			{"archived and cleaned up", ended, "ours"},
			{"deleted, and only its job tells of its environment", func() {
				b.seed.Remove(b.TB, "task_environments", "env-2")
				b.seed.Remove(b.TB, "tasks", "t-2")
			}, "ours"},
			{"archived and its launch left", launched, string(core.ClaimClosing)},
			{"open", func() { b.seed.Archived(b.TB, "t-2", false) }, "shared/claim"},
		} {
			b.settle()
			b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
			b.seed.PutTask(b.TB, Task{ID: "t-3", Archived: true})
			b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-2", TaskID: "t-2"})
			b.seed.PutSession(b.TB, SessionRow{ID: "s-2", TaskID: "t-2", State: "COMPLETED", EnvironmentID: "env-2"}) // at home
			b.seed.PutSession(b.TB, SessionRow{ID: "s-3", TaskID: "t-3", State: "IDLE", EnvironmentID: "env-2"})
			row.put()
			if got := b.judged(); got != row.want {
				b.Errorf("%s, its borrower's task archived: %s, want %s", row.name, got, row.want)
			}
			b.seed.Archived(b.TB, "t-3", false)
			if got := b.judged(); got != "shared/borrower" {
				b.Errorf("%s, its borrower's task open: %s", row.name, got)
			}
			if diff := cmp.Diff([]core.Borrower{borrower}, b.owner().Borrowers); diff != "" {
				b.Errorf("%s: %s", row.name, diff)
			}
		}
		// A task that inherits the environment of a deleted one is at home in it, and
		// nothing but that leads to the directory.
		b.seed.Remove(b.TB, "task_environments", "env-2")
		b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-2", TaskID: "t-3"})
		b.seed.Archived(b.TB, "t-2", true)
		if got := b.judged(); got != "shared/borrower" {
			b.Errorf("its borrower has inherited the environment: %s", got)
		}
	}},
	{"AC_D7: a session beside a claimant's, in an environment that neither owns, is a borrower too", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
		b.seed.PutTask(b.TB, Task{ID: "t-3"})
		b.seed.PutTask(b.TB, Task{ID: "t-4", Archived: true})
		b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-4", TaskID: "t-4"})
		b.seed.PutSession(b.TB, SessionRow{ID: "s-2", TaskID: "t-2", State: "IDLE", EnvironmentID: "env-4"})
		b.seed.PutSession(b.TB, SessionRow{ID: "s-3", TaskID: "t-3", State: "IDLE", EnvironmentID: "env-4"})
		b.want(b.judged(), "ours") // nothing says yet that env-4 leads to the directory
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-2", TaskID: "t-2", Runtime: "ssh", Status: "stopped", Metadata: metadata()})
		b.want(b.judged(), "shared/borrower")
	}},
	{"AC_D7: a session in the environment of a task that claims nothing is no borrower", func(b *rowBench) {
		b.settle()
		for _, task := range []string{"t-2", "t-3"} {
			b.seed.PutTask(b.TB, Task{ID: task})
		}
		b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-2", TaskID: "t-2"})
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-2", TaskID: "t-2", Runtime: "ssh", Status: "ready", Metadata: metadata("ssh_remote_task_dir", "/home/dev/.kandev/tasks/other")})
		b.seed.PutSession(b.TB, SessionRow{ID: "s-3", TaskID: "t-3", State: "RUNNING", EnvironmentID: "env-2"})
		b.want(b.judged(), "ours")
		if got := b.owner().Borrowers; len(got) != 0 {
			b.Errorf("%+v", got)
		}
	}},
	{"AC_D7: a session in another environment of our task is a borrower too, where that may lead to the directory", func(b *rowBench) {
		for path, want := range map[string]string{"": "shared/borrower", dir: "shared/borrower", dir + "/": "shared/borrower", "/home/dev/.kandev/tasks/other": "ours"} {
			b.settle()
			b.seed.PutTask(b.TB, Task{ID: "t-2"})
			b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-old", TaskID: "t-1", ProfileID: "p-1", WorkspacePath: path})
			b.seed.PutSession(b.TB, SessionRow{ID: "s-2", TaskID: "t-2", State: "IDLE", EnvironmentID: "env-old"})
			if got := b.judged(); got != want {
				b.Errorf("%q: %s, want %s", path, got, want)
			}
			if got := b.owner().Borrowers; want != "ours" && (len(got) != 1 || got[0].Lender != "") {
				b.Errorf("%q: %+v", path, got)
			}
		}
	}},
	{"AC_003_2: an open task whose environment names the directory has a claim, also where its launch's row was dropped", func(b *rowBench) {
		const here, claimed = `{"ssh_host":"box.example"}`, "shared/claim"
		for _, row := range []struct{ executor, path, want string }{
			{here, dir, claimed}, {`{"ssh_host":"BOX.example."}`, dir + "/", claimed}, {here, dir + "/lib", claimed}, {here, "/home/dev/.kandev", claimed}, {here, "/mnt/x/tasks/FIX-LOGIN", claimed},
			{here, dir + " ", claimed}, {`{}`, dir, claimed}, {`{"ssh_host_alias":"work"}`, dir, claimed}, {`{`, dir, claimed}, {`{"ssh_host":3}`, dir, claimed},
			{`{"ssh_host":"10.0.0.9","ssh_host_fingerprint":"SHA256:abc"}`, dir, claimed}, {`{"ssh_host":"10.0.0.9","ssh_host_fingerprint":"SHA256:x"}`, dir, "ours"},
			{here, "/home/dev/.kandev/tasks/other", "ours"}, {here, "", "ours"}, {here, " ", "ours"},
		} {
			b.settle()
			b.seed.PutTask(b.TB, Task{ID: "t-2"})
			b.seed.PutProfile(b.TB, "p-2", row.executor, `{}`)
			b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-2", TaskID: "t-2", ProfileID: "p-2", WorkspacePath: row.path})
			if got := b.judged(); got != row.want {
				b.Errorf("%s %q: %s, want %s", row.executor, row.path, got, row.want)
			}
			b.seed.Archived(b.TB, "t-2", true)
			if got := b.judged(); got != "ours" {
				b.Errorf("%s %q, archived: %s", row.executor, row.path, got)
			}
		}
		b.seed.PutTask(b.TB, Task{ID: "t-2"})
		b.seed.PutEnvironment(b.TB, EnvironmentRow{ID: "env-2", TaskID: "t-2", ProfileID: "nobody", WorkspacePath: dir})
		b.want(b.judged(), claimed)
	}},
	{"AC_D8: another open task's launch into the directory is a claim, however it is spelled", func(b *rowBench) {
		for _, meta := range []string{
			metadata(), metadata("ssh_host", "BOX.example."), metadata("ssh_user", "other"), metadata("ssh_port", ""), metadata("ssh_remote_task_dir", dir+"/"),
			metadata("ssh_remote_task_dir", "/home//dev/.kandev/tasks/fix-login"), metadata("ssh_remote_task_dir", "/mnt/x/tasks/FIX-LOGIN"), metadata("ssh_host", "10.0.0.9"),
			metadata("ssh_remote_task_dir", dir+"/lib/deep"), metadata("ssh_remote_task_dir", "/home/dev/.kandev/tasks"), metadata("ssh_remote_task_dir", "/home"), metadata("ssh_remote_task_dir", "/"),
			metadata("ssh_host", ""), metadata("ssh_remote_task_dir", "~/.kandev/tasks/fix-login"), metadata("ssh_remote_task_dir", "/x/../home/dev/.kandev/tasks/fix-login"),
			metadata("ssh_remote_task_dir", "/caf\u00e9/../home/dev/.kandev/tasks/fix-login"), metadata("ssh_remote_task_dir", "/mnt/x/tasks/fi\u212a-login") + " ",
			`{`, `[]`, `"x"`, `3`, `{"ssh_host":"a","ssh_host":"b"}`, `{"SSH_HOST":"a"}`, `{"ssh_remote_task_dir":3}`,
			strings.Replace(metadata(), "fix-login", `fix\u002dlogin`, 1), strings.ReplaceAll(metadata(), "/", `\/`),
		} {
			if strings.Contains(meta, "\u212a") {
				continue // fi-login is another name
			}
			b.settle()
			b.seed.PutTask(b.TB, Task{ID: "t-2"})
			b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-2", TaskID: "t-2", Runtime: "ssh", Status: "ready", Metadata: meta})
			if got := b.judged(); got != "shared/claim" {
				b.Errorf("%s: %s", meta, got)
			}
		}
	}},
	{"a letter that folds to one of ours is the same name", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2"})
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-2", TaskID: "t-2", Runtime: "ssh", Status: "ready", Metadata: metadata("ssh_remote_task_dir", "/mnt/tasks/\ufb01x-login")})
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-3", TaskID: "t-2", Runtime: "ssh", Status: "ready", Metadata: metadata("ssh_remote_task_dir", "/mnt/tasks/fix-login\u00e9")})
		b.want(b.judged(), "ours")
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-4", TaskID: "t-2", Runtime: "ssh", Status: "ready", Metadata: metadata("ssh_remote_task_dir", "/mnt/ta\u017fks/FIX-LOGIN")})
		b.want(b.judged(), "shared/claim")
	}},
	{"launches elsewhere, without a directory and of our own task are no claims", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2"})
		for i, meta := range []string{metadata("ssh_remote_task_dir", "/home/dev/.kandev/tasks/other"), metadata("ssh_remote_task_dir", "/home/dev/.kandev/tasks/fix-login-2"),
			metadata("ssh_host", "elsewhere", "ssh_host_fingerprint", "SHA256:other"), `{}`, ``, `null`, metadata("ssh_remote_task_dir", ""), metadata("ssh_remote_task_dir", "  ")} {
			b.seed.PutLaunch(b.TB, LaunchRow{SessionID: fmt.Sprint("s-", i), TaskID: "t-2", Runtime: "ssh", Status: "ready", Metadata: meta})
		}
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "own", TaskID: "t-1", Runtime: "ssh", Status: "ready", ProfileID: "p-1", Metadata: metadata()})
		b.want(b.judged(), "ours")
	}},
	{"AC_D6, AC_D32: a terminal task's launch that is left is still closing", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-2", TaskID: "t-2", Runtime: "ssh", Status: "stopped", Metadata: metadata()})
		b.want(b.judged(), string(core.ClaimClosing))
		b.seed.PutLaunch(b.TB, LaunchRow{SessionID: "s-3", TaskID: "deleted", Runtime: "ssh", Status: "stopped", Metadata: metadata()})
		b.want(b.judged(), string(core.ClaimClosing))
		kept := aJob("job-2", ports.Succeeded, 1) // not opted in, but it has not let go yet either
		kept.TaskID, kept.OperationID, kept.Snapshot = "t-2", "x", snapshotOf(strings.Replace(targetJSON, `,"enabled":true`, "", 1))
		b.seed.PutJob(b.TB, kept)
		b.want(b.judged(), string(core.ClaimClosing))
	}},
	{"AC_D6: an unfinished cleanup job of another task that names the directory is still closing", func(b *rowBench) {
		for _, state := range []ports.State{ports.Prepared, ports.Pending, ports.RetryWait, "waiting_for_clean", "word_of_tomorrow"} {
			b.settle()
			b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
			other := aJob("job-2", state, 0)
			other.TaskID, other.OperationID = "t-2", "x"
			b.seed.PutJob(b.TB, other)
			if got := b.judged(); got != string(core.ClaimClosing) {
				b.Errorf("%s: %s", state, got)
			}
		}
	}},
	{"AC_D6: an ended task that had not opted in keeps what it left; one that had does not", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
		other := aJob("job-2", ports.Succeeded, 1)
		other.TaskID, other.OperationID = "t-2", "x"
		b.seed.PutJob(b.TB, other)
		b.want(b.judged(), "ours")
		other.Snapshot = snapshotOf(strings.Replace(targetJSON, `,"enabled":true`, `,"outcome":"skipped","skip_reason":"disabled"`, 1))
		b.seed.PutJob(b.TB, other)
		b.want(b.judged(), "shared/claim")
		other.Snapshot = snapshotOf(strings.Replace(targetJSON, `,"enabled":true`, `,"outcome":"removed"`, 1))
		b.seed.PutJob(b.TB, other)
		b.want(b.judged(), "ours")
	}},
	{"an open task whose directory was kept has a claim although its launch is forgotten", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2"})
		other := aJob("job-2", ports.Cancelled, 1)
		other.TaskID, other.OperationID = "t-2", "x"
		b.seed.PutJob(b.TB, other)
		b.want(b.judged(), "shared/claim")
	}},
	{"a snapshot that cannot be read is a claim while its job has not ended", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
		other := aJob("job-2", ports.RetryWait, 1)
		other.TaskID, other.OperationID, other.Snapshot = "t-2", "x", []byte(`{"ssh_task_dirs":[`)
		b.seed.PutJob(b.TB, other)
		b.want(b.judged(), string(core.ClaimClosing))
		other.State = ports.JobFailed
		b.seed.PutJob(b.TB, other)
		b.want(b.judged(), "ours")
	}},
	{"AC_D8: a target that does not say where it leads is a claim while its job has not ended", func(b *rowBench) {
		const at = `"host":"box.example","task_dir":"` + dir + `"`
		for raw, ended := range map[string]string{
			`{"host":"box.example","task_dir":3,"enabled":true}`: "ours", `{"host":"box.example","task_dir":"/x/tasks/y","task_dir":"` + dir + `","enabled":true}`: "ours",
			`{"host":"box.example","task_dir":"/x/tasks/y","TASK_DIR":"` + dir + `"}`: "ours", `{"host":"elsewhere",` + at + `}`: "ours",
			`{"host":"box.example"}`: "ours", `3`: "ours", `{"host":"elsewhere","task_dir":"` + dir + `","host_fingerprint":3}`: "ours",
			`{` + at + `,"enabled":true}`: "ours", `{` + at + `,"enabled":true,"ENABLED":false}`: "shared/claim", `{` + at + `,"enabled":true,"port":"x"}`: "shared/claim",
		} {
			b.settle()
			b.seed.PutTask(b.TB, Task{ID: "t-2", Archived: true})
			other := aJob("job-2", ports.Prepared, 1)
			other.TaskID, other.OperationID, other.Snapshot = "t-2", "x", []byte(`{"ssh_task_dirs":[`+raw+`]}`)
			b.seed.PutJob(b.TB, other)
			if got := b.judged(); got != string(core.ClaimClosing) {
				b.Errorf("%s: %s", raw, got)
			}
			other.State = ports.JobFailed
			b.seed.PutJob(b.TB, other)
			if got := b.judged(); got != ended {
				b.Errorf("%s, ended: %s, want %s", raw, got, ended)
			}
		}
	}},
	{"jobs of another shape and rows from before the feature claim nothing", func(b *rowBench) {
		b.settle()
		b.seed.PutTask(b.TB, Task{ID: "t-2"})
		for i, raw := range []string{`{}`, `null`, `{"archive_source":{"path":"fix-login"}}`, `{"ssh_task_dirs":null}`} {
			b.seed.PutJob(b.TB, ports.Job{ID: fmt.Sprint("o-", i), OperationID: fmt.Sprint("o-", i), TaskID: "t-2", Trigger: "archive_reclaim", State: "waiting_for_clean", Snapshot: []byte(raw), CreatedAt: made, UpdatedAt: made})
		}
		b.want(b.judged(), "ours")
	}},
	{"more claims than the bound are an error, not an answer cut short", func(b *rowBench) {
		b.settle()
		for i := range 1001 {
			b.seed.PutLaunch(b.TB, LaunchRow{SessionID: fmt.Sprint("s-", i), TaskID: fmt.Sprint("x-", i), Runtime: "ssh", Status: "stopped", Metadata: metadata()})
		}
		if got := b.owner(); got.Error == "" {
			b.Errorf("%d claims and no error", len(got.Claims))
		}
	}},
	{"an ended context is an error, never an answer", func(b *rowBench) {
		b.settle()
		dead, end := context.WithCancel(ctx)
		end()
		if got := b.rows.Owner(dead, core.Owner{JobID: "job-1", TaskID: "t-1", Environment: "env-1", Target: target}); got.Error == "" {
			b.Errorf("%+v", got)
		}
		before := b.seed.GetJob(b.TB, "job-1")
		if got := b.rows.Begin(dead, core.Begin{JobID: "job-1", TaskID: "t-1", Attempt: 2, Target: target}); got.Ending != core.BeginFailed {
			b.Errorf("%+v", got)
		}
		if err := b.rows.Conclude(dead, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Removed{}}); err == nil {
			b.Error("concluded")
		}
		b.untouched(before)
	}},
	{"a begin is in the row's snapshot and nothing else changed", func(b *rowBench) {
		b.settle()
		before := b.seed.GetJob(b.TB, "job-1")
		if got := b.begin(); got.Ending != core.BeginRecorded {
			b.Fatalf("%+v", got)
		}
		after := b.seed.GetJob(b.TB, "job-1")
		b.want(string(after.Snapshot), strings.Replace(string(before.Snapshot), `"enabled":true}`, `"enabled":true,"reclaim":{"begun":2,"begun_until":1700000900}}`, 1))
		after.Snapshot, after.UpdatedAt = before.Snapshot, before.UpdatedAt
		if diff := cmp.Diff(before, after); diff != "" {
			b.Error(diff)
		}
	}},
	{"AC_D11: a begin is withdrawn when the row is another attempt's, in another state or gone, and when the task is open again", func(b *rowBench) {
		for name, change := range map[string]func(){
			"attempt":   func() { b.seed.PutJob(b.TB, aJob("job-1", ports.Running, 3)) },
			"cancelled": func() { b.seed.PutJob(b.TB, aJob("job-1", ports.Cancelled, 2)) },
			"waiting":   func() { b.seed.PutJob(b.TB, aJob("job-1", ports.RetryWait, 2)) },
			"open": func() {
				b.seed.PutJob(b.TB, aJob("job-1", ports.Running, 2))
				b.seed.Archived(b.TB, "t-1", false)
			},
			"task": func() {
				j := aJob("job-1", ports.Running, 2)
				j.TaskID = "t-9"
				b.seed.PutJob(b.TB, j)
			},
		} {
			b.settle()
			change()
			before := b.seed.GetJob(b.TB, "job-1")
			if got := b.begin(); got.Ending != core.BeginWithdrawn {
				b.Errorf("%s: %+v", name, got)
			}
			b.untouched(before)
		}
		b.settle()
		if got := b.rows.Begin(ctx, core.Begin{JobID: "job-9", TaskID: "t-1", Attempt: 1, Target: target}); got.Ending != core.BeginWithdrawn {
			b.Errorf("gone: %+v", got)
		}
	}},
	{"a begin at a directory the row does not name fails", func(b *rowBench) {
		b.settle()
		before := b.seed.GetJob(b.TB, "job-1")
		other := target
		other.TaskDir = "/home/dev/.kandev/tasks/other"
		if got := b.rows.Begin(ctx, core.Begin{JobID: "job-1", TaskID: "t-1", Attempt: 2, Target: other}); got.Ending != core.BeginFailed {
			b.Errorf("%+v", got)
		}
		b.untouched(before)
	}},
	{"AC_D11: a begin fails and writes nothing where the row's directory was edited since the attempt was made from it", func(b *rowBench) {
		for _, edit := range [][2]string{{`,"enabled":true`, ``}, {`"workdir_root":"~/.kandev"`, `"workdir_root":"/home/dev/.kandev"`}, {`SHA256:abc`, `SHA256:other`}, {`"enabled":true`, `"enabled":true,"reclaim":"x"`}} {
			b.settle()
			j := aJob("job-1", ports.Running, 2)
			j.Snapshot = []byte(strings.Replace(string(j.Snapshot), edit[0], edit[1], 1))
			b.seed.PutJob(b.TB, j)
			before := b.seed.GetJob(b.TB, "job-1")
			if got := b.begin(); got.Ending != core.BeginFailed {
				b.Errorf("%s: %+v", edit[1], got)
			}
			b.untouched(before)
		}
	}},
	{"002.7: an outcome is in the row in the host's words; a failure leaves the begin, a skip ends it", func(b *rowBench) {
		b.settle()
		b.begin()
		b.must(b.rows.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Skipped{Finding: core.Finding{Reason: core.StashPresent, Cause: core.Stashed, Detail: "one"}}, Bytes: 42}))
		want := strings.Replace(string(snapshotOf(targetJSON)), `"enabled":true}`, `"enabled":true,"reclaim":{"cause":"stash","bytes":42},"outcome":"skipped","skip_reason":"stash_present","detail":"one"}`, 1)
		b.want(string(b.seed.GetJob(b.TB, "job-1").Snapshot), want)
		b.settle()
		b.begin()
		b.must(b.rows.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Failed{Fault: core.Lost, Detail: "cut off"}}))
		want = strings.Replace(string(snapshotOf(targetJSON)), `"enabled":true}`, `"enabled":true,"reclaim":{"begun":2,"begun_until":1700000900,"fault":"lost"},"outcome":"failed","detail":"cut off"}`, 1)
		b.want(string(b.seed.GetJob(b.TB, "job-1").Snapshot), want)
	}},
	{"an outcome for another attempt, or a row in another state, is lost and writes nothing", func(b *rowBench) {
		for _, j := range []ports.Job{aJob("job-1", ports.Running, 3), aJob("job-1", ports.Cancelled, 2), aJob("job-1", ports.Succeeded, 2)} {
			b.settle()
			b.seed.PutJob(b.TB, j)
			before := b.seed.GetJob(b.TB, "job-1")
			if err := b.rows.Conclude(ctx, ports.Conclusion{JobID: "job-1", Attempt: 2, Target: target, Outcome: core.Removed{}}); !errors.Is(err, ports.ErrRowLost) {
				b.Errorf("%v", err)
			}
			b.untouched(before)
		}
	}},
}
