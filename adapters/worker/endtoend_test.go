package worker_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/launch"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
)

// world is a host with a real sshd, a remote, and a stand-alone backend.
type world struct {
	*testing.T
	base, root, remote string
	spec               string // of the database: its dialect and how to open it
	server             *sshdtest.Server
	target             core.Target
	store              *sqlstore.Store
	db                 *sql.DB
	worker             *worker.Worker
	pids               []int64
}

const optedIn = `{"ssh_workdir_root":%q,"ssh_reclaim_task_dir":"true"}`

// openDB opens a database by its dialect and how to open it: a file of SQLite,
// or a DSN.
func openDB(t testing.TB, spec string) (*sql.DB, sqlstore.Dialect) {
	t.Helper()
	name, where, _ := strings.Cut(spec, " ")
	dialect, driver := sqlstore.Dialect(name), "pgx"
	if dialect == sqlstore.SQLite {
		q := url.Values{"_time_format": {"sqlite"}, "_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "foreign_keys(1)", "journal_mode(WAL)", "synchronous(FULL)"}}
		driver, where = "sqlite", (&url.URL{Scheme: "file", Path: where, RawQuery: q.Encode()}).String()
	}
	db, err := sql.Open(driver, where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, dialect
}

// rules are read once: what they allow does not change.
var rules = sync.OnceValues(func() (ports.Policy, error) { return policy.New() })

func newWorker(t testing.TB, name string, store *sqlstore.Store) *worker.Worker {
	t.Helper()
	rules, err := rules()
	if err != nil {
		t.Fatal(err)
	}
	dialer := sshhost.New(sshhost.Options{})
	return &worker.Worker{Name: name, Jobs: store, Tasks: store, Sessions: store,
		Stops: &worker.Stopping{Dialer: dialer, Sessions: store, Jobs: store},
		Phase: &job.Phase{Dialer: dialer, Owners: store, Policy: rules, Row: store, Records: store}}
}

// newWorld is a world on SQLite, beside others.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldOn(t, nil)
}

// newWorldOn is a world on a database of the server, or on SQLite.
func newWorldOn(t *testing.T, server *pgtest.Server) *world {
	t.Helper()
	w := &world{T: t, base: sshdtest.OpenDir(t)}
	w.server = sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519"}, Home: w.base})
	w.root, w.remote, w.target = w.base+"/k root", w.base+"/remote.git", w.server.Target()
	seed := w.base + "/seed"
	w.sh("", `git init -q "$1" && cd "$1" && echo x >file && git add . && git commit -qm first && git clone -q --bare . "$2"`, seed, w.remote)

	w.spec = string(sqlstore.SQLite) + " " + filepath.Join(w.base, "reclaim.db")
	if server != nil {
		w.spec = string(sqlstore.PostgreSQL) + " " + server.NewDSN(t)
	}
	var dialect sqlstore.Dialect
	w.db, dialect = openDB(t, w.spec)
	if err := sqlstore.Init(t.Context(), w.db, dialect); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.store, err = sqlstore.Open(t.Context(), w.db, dialect); err != nil {
		t.Fatal(err)
	}
	w.worker = newWorker(t, "w", w.store)
	now := time.Now().UTC()
	executor, _ := json.Marshal(map[string]string{"ssh_host": w.target.Host, "ssh_port": strconv.Itoa(w.target.Port), "ssh_user": w.target.User,
		"ssh_host_fingerprint": w.target.Fingerprint, "ssh_identity_source": w.target.IdentitySource, "ssh_identity_file": w.target.IdentityFile})
	w.exec(`INSERT INTO executors (id, name, type, config, created_at, updated_at) VALUES ('e', 'dev', 'ssh', ?, ?, ?)`, string(executor), now, now)
	w.exec(`INSERT INTO executor_profiles (id, executor_id, name, config, created_at, updated_at) VALUES ('p', 'e', 'dev', ?, ?, ?)`, fmt.Sprintf(optedIn, w.root), now, now)
	t.Cleanup(func() {
		for _, pid := range w.pids {
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		}
	})
	return w
}

func (w *world) exec(query string, args ...any) {
	w.Helper()
	if _, err := w.db.Exec(w.bound(query), args...); err != nil {
		w.Fatal(err)
	}
}

// bound writes a query's placeholders as the database wants them.
func (w *world) bound(query string) string {
	if strings.HasPrefix(w.spec, string(sqlstore.PostgreSQL)) {
		for n := 1; strings.Contains(query, "?"); n++ {
			query = strings.Replace(query, "?", "$"+strconv.Itoa(n), 1)
		}
	}
	return query
}

// sh runs a script with git's identity set, in dir.
func (w *world) sh(dir, script string, args ...string) string {
	w.Helper()
	command := exec.Command("sh", append([]string{"-ec", script, "sh"}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@x", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@x")
	out, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// launch launches the task's next session as the stand-alone backend does, and
// returns its directory.
func (w *world) launch(task string) string {
	w.Helper()
	return w.launchWith(sshhost.New(sshhost.Options{}), task, core.Repository{URL: w.remote})
}

func (w *world) launchWith(dialer *sshhost.Dialer, task string, repositories ...core.Repository) string {
	w.Helper()
	started, err := w.store.StartSession(w.Context(), sqlstore.NewSession{TaskID: task, Profile: "p", Repositories: repositories})
	if err != nil {
		w.Fatal(err)
	}
	return w.come(dialer, started).TaskDir
}

// resume takes up the task's last session.
func (w *world) resume(task string) launch.Launched {
	w.Helper()
	started, err := w.store.ResumeSession(w.Context(), task)
	if err != nil {
		w.Fatal(err)
	}
	return w.come(sshhost.New(sshhost.Options{}), started)
}

func (w *world) come(dialer *sshhost.Dialer, s sqlstore.Starting) launch.Launched {
	w.Helper()
	got, err := (&launch.Launcher{Dialer: dialer, Resolve: dialer.Resolve}).Launch(w.Context(), launch.Order{SessionID: s.SessionID, Inputs: s.Inputs, Repositories: s.Repositories})
	if err != nil {
		w.Fatal(err)
	}
	w.pids = append(w.pids, got.PID)
	if err := w.store.SessionRuns(w.Context(), s.SessionID, got.Target, got.Metadata, got.PID, got.Reused); err != nil {
		w.Fatal(err)
	}
	return got
}

func (w *world) archive(task string) {
	w.Helper()
	if _, err := w.store.Archive(w.Context(), []string{task}, false); err != nil {
		w.Fatal(err)
	}
}

// work runs everything due and returns the one result of the one job.
func (w *world) work() (worker.Ended, core.Result) {
	w.Helper()
	ended, err := w.worker.Once(w.Context())
	if err != nil || len(ended) != 1 {
		w.Fatalf("%+v %v", ended, err)
	}
	if len(ended[0].Results) != 1 {
		return ended[0], core.Result{}
	}
	return ended[0], ended[0].Results[0]
}

// connections is how many the host has seen.
func (w *world) connections() int { return strings.Count(w.server.Log(), "Connection from ") }

func (w *world) row(task string) (state, lastError string) {
	w.Helper()
	if err := w.db.QueryRow(w.bound(`SELECT state, last_error FROM task_resource_cleanup_jobs WHERE task_id = ? ORDER BY created_at DESC LIMIT 1`), task).Scan(&state, &lastError); err != nil {
		w.Fatal(err)
	}
	return state, lastError
}

func (w *world) there(dir string) bool {
	_, err := os.Lstat(dir)
	return err == nil
}

// outside is everything below the host's directories but dir: names, inodes,
// times and content. A directory's own times are left out: its entries change.
func (w *world) outside(dir string) string {
	w.Helper()
	return w.sh(w.base, `find "$1" ! -path "$2" ! -path "$2/*" ! -name '*.log' \( -type d -printf '%p %i %y %m\n' -o -printf '%p %i %y %m %s %T@ %C@ ' -exec cksum {} \; \) | sort`, w.root, dir)
}

func TestAC_001_1_ATerminalTaskThatOptedInLosesItsDirectoryAndAC_001_2_NothingElseIsTouched(t *testing.T) {
	w := newWorld(t)
	dir, sibling := w.launch("t1"), w.launch("t2")
	w.sh("", `mkdir -p "$1/bin" "$1/tasks/loose" && echo binary >"$1/bin/agentctl" && echo sum >"$1/bin/agentctl.sha256" && echo x >"$1/tasks/loose/file"`, w.root)
	before := w.outside(dir)
	w.archive("t1")
	ended, result := w.work()
	if ended.State != ports.Succeeded || result.Outcome != core.OutcomeRemoved {
		t.Fatalf("%+v\n%s", ended, result.Detail)
	}
	if w.there(dir) || !w.there(sibling) {
		t.Error("the wrong directory is gone")
	}
	if diff := cmp.Diff(before, w.outside(dir)); diff != "" {
		t.Error(diff)
	}
	var rows int
	if err := w.db.QueryRow(`SELECT count(*) FROM executors_running WHERE task_id = 't1'`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows of its sessions are left, %v", rows, err)
	}
}

func TestAC_001_3_AJobWithoutTargetsDoesNothing(t *testing.T) {
	w := newWorld(t)
	dir := w.launch("t1")
	w.exec(`UPDATE tasks SET archived_at = ? WHERE id = 't1'`, time.Now().UTC())
	w.exec(`INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, trigger, state, created_at, updated_at) VALUES ('old', 'old', 't1', 'archive', 'pending', ?, ?)`, time.Now().UTC(), time.Now().UTC())
	seen := w.connections()
	if ended, _ := w.work(); ended.State != ports.Succeeded || !w.there(dir) || w.connections() != seen {
		t.Errorf("%+v, %d connections", ended, w.connections()-seen)
	}
}

func TestAC_001_4_AnArchivedTaskWhoseDirectoryWasReclaimedIsUnArchivedAndResumed(t *testing.T) {
	w := newWorld(t)
	dir := w.launch("t1")
	w.archive("t1")
	if _, result := w.work(); result.Outcome != core.OutcomeRemoved {
		t.Fatalf("%+v", result)
	}
	if _, err := w.store.ResumeSession(t.Context(), "t1"); !errors.Is(err, ports.ErrRefused) {
		t.Errorf("an archived task is resumed: %v", err)
	}
	if err := w.store.Unarchive(t.Context(), "t1", false); err != nil {
		t.Fatal(err)
	}
	again := w.resume("t1")
	if again.TaskDir != dir || again.Reused || again.Resumed || again.Baseline == "" || !w.there(filepath.Join(dir, "file")) {
		t.Errorf("it was resumed as %+v", again)
	}
	w.archive("t1")
	if _, result := w.work(); result.Outcome != core.OutcomeRemoved || w.there(dir) {
		t.Errorf("the second time: %+v", result)
	}
}

func TestAC_004_1_AStopThatIsNotTerminalMakesNoConnectionAndRunsNothingAndAC_004_2_NorDoesAShutdown(t *testing.T) {
	w := newWorld(t)
	w.exec(`UPDATE executor_profiles SET cleanup_script = 'touch cleaned'`)
	dir := w.launch("t1")
	w.exec(`UPDATE executors_running SET updated_at = created_at`)
	before, seen := w.outside("/nothing"), w.connections()
	for name, stop := range map[string]func() error{
		"an ordinary stop": func() error { _, err := w.store.StopTask(t.Context(), "t1"); return err },
		"a second one":     func() error { _, err := w.store.StopTask(t.Context(), "t1"); return err },
		"a forced stop": func() error {
			w.exec(`UPDATE executors_running SET status = 'stopped'`)
			w.exec(`UPDATE task_sessions SET state = 'CANCELLED'`)
			return nil
		},
		"a failed agent": func() error {
			w.exec(`UPDATE executors_running SET status = 'failed'`)
			w.exec(`UPDATE task_sessions SET state = 'FAILED'`)
			return nil
		},
		"a stale one replaced": func() error { w.exec(`UPDATE executors_running SET status = 'completed'`); return nil },
		"a launch rolled back": func() error {
			started, err := w.store.StartSession(t.Context(), sqlstore.NewSession{TaskID: "t1", Profile: "p"})
			if err == nil {
				err = w.store.SessionFailed(t.Context(), started.SessionID)
			}
			return err
		},
	} {
		if err := stop(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if ended, err := w.worker.Once(t.Context()); err != nil || len(ended) != 0 {
			t.Errorf("%s: %v %v", name, ended, err)
		}
	}
	// A shutdown: the worker ends, and what it would have taken next stays.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.worker.Run(ctx); err != nil {
		t.Error(err)
	}
	if n := w.connections() - seen; n != 0 || !w.there(dir) || w.there(dir+"/cleaned") || w.outside("/nothing") != before {
		t.Errorf("%d connections", n)
	}
	// The task can be taken up, and its agent is the one that ran all the while.
	if again := w.resume("t1"); !again.Reused || again.TaskDir != dir {
		t.Errorf("%+v", again)
	}
}

// What came with the launch is recorded by the launch and goes with the row and
// the job to the inventory; a session taken up later keeps it.
func TestABaselineGoesFromTheLaunchToTheVerdict(t *testing.T) {
	for name, row := range map[string]struct{ script, outcome string }{
		"a tag that a fetch brought along":    {`git fetch -q --tags`, core.OutcomeRemoved},
		"the same, and work it never covered": {`git fetch -q --tags && git tag mine -m x`, core.OutcomeSkipped},
		"a forged one":                        {`git fetch -q --tags && printf 'x' >>.kandev/baseline`, core.OutcomeSkipped},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(w.base+"/seed", `git tag -a v1 -m v1 && git push -q "$1" v1`, w.remote)
			dir := w.launch("t1")
			w.sh(dir, row.script)
			if _, err := w.store.StopTask(t.Context(), "t1"); err != nil {
				t.Fatal(err)
			}
			if again := w.resume("t1"); !again.Reused || again.Baseline != "" {
				t.Fatalf("%+v", again)
			}
			w.archive("t1")
			if _, result := w.work(); result.Outcome != row.outcome || result.Outcome == core.OutcomeSkipped && result.Cause != core.LocalRefs {
				t.Errorf("%s %s %s: %s", result.Outcome, result.Reason, result.Cause, result.Detail)
			}
		})
	}
}

// The backend's ssh configuration is asked when a task is launched, and never
// again: at clean-up it may say something else, or be gone.
func TestAnAliasAndItsJumpHostAndItsKeyAreCapturedAtLaunch(t *testing.T) {
	w := newWorld(t)
	hop := sshdtest.Start(t, sshdtest.Options{})
	key, err := os.ReadFile(w.server.Identity + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	hop.AuthorizeLine(string(key))
	config := w.base + "/ssh_config"
	w.sh("", `printf '%s\n' "Host box" "HostName 127.0.0.1" "Port $2" "User $3" "IdentityFile $4" "ProxyJump gate" "Host gate" "HostName 127.0.0.1" "Port $5" "User $3" >"$1"`,
		config, strconv.Itoa(w.target.Port), w.target.User, w.server.Identity, strconv.Itoa(hop.Port))
	w.exec(`UPDATE executors SET config = ?`, fmt.Sprintf(`{"ssh_host_alias":"box","ssh_host_fingerprint":%q}`, w.target.Fingerprint))
	options := sshhost.Options{Config: config, KnownHosts: []string{hop.KnownHosts("ed25519")}, AgentSocket: "/nothing/listens/here"}
	w.sh("", `mkdir -p "$1/tasks"`, w.root)
	dir := w.launchWith(sshhost.New(options), "t1", core.Repository{URL: w.remote})
	hops := func() int { return strings.Count(hop.Log(), "Connection from ") }
	if hops() == 0 {
		t.Fatal("the launch did not go through the hop")
	}
	w.sh("", `printf 'Host *\nHostName 127.0.0.1\nPort 1\nProxyJump none\n' >"$1"`, config)
	w.archive("t1")
	var snapshot string
	if err := w.db.QueryRow(`SELECT resource_snapshot FROM task_resource_cleanup_jobs`).Scan(&snapshot); err != nil {
		t.Fatal(err)
	}
	parsed, err := core.ParseJobSnapshot([]byte(snapshot))
	if err != nil || len(parsed.Targets()) != 1 {
		t.Fatalf("%v %s", err, snapshot)
	}
	want := core.Target{Host: "127.0.0.1", Port: w.target.Port, User: w.target.User, Fingerprint: w.target.Fingerprint, IdentitySource: "file", IdentityFile: w.server.Identity,
		ProxyJump: fmt.Sprintf("%s@127.0.0.1:%d", w.target.User, hop.Port), WorkdirRoot: w.root, TaskDir: dir, Enabled: true}
	if diff := cmp.Diff(want, parsed.Targets()[0].Target); diff != "" {
		t.Error(diff)
	}
	seen := hops()
	dialer := sshhost.New(options)
	w.worker.Stops.(*worker.Stopping).Dialer, w.worker.Phase.(*job.Phase).Dialer = dialer, dialer
	if _, result := w.work(); result.Outcome != core.OutcomeRemoved || w.there(dir) || hops() == seen {
		t.Errorf("%s %s %s: %s", result.Outcome, result.Fault, result.Cause, result.Detail)
	}
}

func TestAC_004_3_AnUnArchiveBeforeTheJobRunsCancelsItWithoutAConnection(t *testing.T) {
	w := newWorld(t)
	dir := w.launch("t1")
	w.archive("t1")
	if err := w.store.Unarchive(t.Context(), "t1", false); err != nil {
		t.Fatal(err)
	}
	seen := w.connections()
	if ended, err := w.worker.Once(t.Context()); err != nil || len(ended) != 0 {
		t.Errorf("%v %v", ended, err)
	}
	if state, _ := w.row("t1"); state != "cancelled" || !w.there(dir) || w.connections() != seen {
		t.Errorf("%s, %d connections", state, w.connections()-seen)
	}
}

func TestAC_005_1_WhatCannotBeDoneReachesTheJobAndAC_005_3_ARetryAsksEverythingAgain(t *testing.T) {
	for _, c := range []struct {
		name, spoil, says string
	}{
		{"unreachable", `UPDATE task_resource_cleanup_jobs SET resource_snapshot = replace(resource_snapshot, '"port":%d', '"port":1')`, "unreachable"},
		{"another fingerprint", `UPDATE task_resource_cleanup_jobs SET resource_snapshot = replace(resource_snapshot, 'SHA256:', 'SHA256:A')`, "host_key_mismatch"},
		{"authentication", `UPDATE task_resource_cleanup_jobs SET resource_snapshot = replace(resource_snapshot, 'identity_file":"', 'identity_file":"/nowhere')`, "auth_failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			dir := w.launch("t1")
			w.endAgents()
			w.exec(`UPDATE executors_running SET status = 'stopped'`) // nothing to stop: the phase itself meets the trouble
			w.archive("t1")
			var whole string
			if err := w.db.QueryRow(`SELECT resource_snapshot FROM task_resource_cleanup_jobs`).Scan(&whole); err != nil {
				t.Fatal(err)
			}
			spoil := c.spoil
			if strings.Contains(spoil, "%d") {
				spoil = fmt.Sprintf(spoil, w.target.Port)
			}
			w.exec(spoil)
			ended, result := w.work()
			state, lastError := w.row("t1")
			if ended.State != ports.RetryWait || state != "retry_wait" || !strings.Contains(lastError, c.says) || result.Outcome != core.OutcomeFailed || !w.there(dir) {
				t.Fatalf("%+v: %q", ended, lastError)
			}
			// What was well is judged anew: the directory changed meanwhile.
			w.exec(`UPDATE task_resource_cleanup_jobs SET resource_snapshot = ?, next_attempt_at = NULL`, whole)
			w.sh(dir, `echo work >unsaved`)
			ended, result = w.work()
			if ended.State != ports.Succeeded || ended.Attempts != 2 || result.Reason != core.DirtyWorktree || !w.there(dir) {
				t.Errorf("%+v", ended)
			}
			if _, lastError := w.row("t1"); lastError != "" {
				t.Errorf("last_error is still %q", lastError)
			}
		})
	}
}

// endAgents ends the helpers as the executor itself would.
func (w *world) endAgents() {
	w.Helper()
	for _, pid := range w.pids {
		_ = syscall.Kill(int(pid), syscall.SIGKILL)
		for range 500 {
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || bytes.Contains(state, []byte(") Z ")) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	w.pids = nil
	// What the agents had started ends a moment after them.
	for range 500 {
		places, _ := filepath.Glob("/proc/[0-9]*/cwd")
		if !slices.ContainsFunc(places, func(place string) bool {
			at, err := os.Readlink(place)
			return err == nil && strings.HasPrefix(at, w.root+"/")
		}) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.Fatal("something still works below the root")
}

func TestAC_006_2_AProfileThatIsOffKeepsTheDirectoryAndItsHookRunsAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.exec(`UPDATE executor_profiles SET config = ?`, fmt.Sprintf(`{"ssh_workdir_root":%q}`, w.root))
	dir := w.launch("t1")
	w.endAgents()
	w.exec(`UPDATE executors_running SET status = 'stopped'`)
	w.archive("t1")
	seen := w.connections()
	if ended, result := w.work(); ended.State != ports.Succeeded || result.Reason != core.Disabled || !w.there(dir) || w.connections() != seen {
		t.Errorf("%+v, %d connections", ended, w.connections()-seen)
	}
	w.exec(`UPDATE executor_profiles SET cleanup_script = 'touch cleaned'`)
	dir = w.launch("t2")
	w.archive("t2")
	if ended, result := w.work(); ended.State != ports.Succeeded || result.Reason != core.Disabled || !w.there(dir+"/cleaned") {
		t.Errorf("with a hook: %+v", ended)
	}
}

func TestAC_006_3_ATaskThatSaysItOptedInDoesNot(t *testing.T) {
	w := newWorld(t)
	w.exec(`UPDATE executor_profiles SET config = ?`, fmt.Sprintf(`{"ssh_workdir_root":%q,"ssh_reclaim_task_dir":"TRUE"}`, w.root))
	w.sh("", `mkdir -p "$1/evil/tasks/task-t2" "$2/tasks/task-t2" && echo x >"$2/tasks/task-t2/file"`, w.base, w.root)
	hostile, err := json.Marshal(map[string]any{"ssh_reclaim_task_dir": "true", "SSH_RECLAIM_TASK_DIR": "true", "Ssh_Reclaim_Task_Dir ": true, "ssh-reclaim-task-dir": "true",
		"\u017f\u017fh_reclaim_task_dir": "true", "ssh_workdir_root": w.base + "/evil", "ssh_remote_task_dir": w.root + "/tasks/task-t2", "task_dir_name": "task-t2",
		"ssh_task_dir_name": "../task-t2", "ssh_host": "elsewhere", "ssh_baseline": strings.Repeat("a", 40), "cleanup_script": "touch " + w.base + "/evil/ran"})
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO tasks (id, title, metadata, created_at, updated_at) VALUES ('t1', 't1', ?, ?, ?)`, string(hostile), time.Now().UTC(), time.Now().UTC())
	before := w.outside(w.root + "/tasks/task-t1")
	dir := w.launch("t1")
	w.archive("t1")
	if _, result := w.work(); result.Reason != core.Disabled || dir != w.root+"/tasks/task-t1" || !w.there(dir) || w.there(w.base+"/evil/ran") {
		t.Errorf("%s: %+v", dir, result)
	}
	if diff := cmp.Diff(before, w.outside(w.root+"/tasks/task-t1")); diff != "" {
		t.Error(diff)
	}
}

func TestAC_007_1_TheCleanupScriptIsWaitedForAndAC_007_2_DecidesWithTheChecks(t *testing.T) {
	const commit = `git config user.name n; git config user.email e@x; echo more >>file; git commit -qam work; `
	for _, c := range []struct {
		name, hook, outcome string
		cause               core.Cause
	}{
		{"one that pushes makes it reclaimable", commit + `git push -q origin HEAD:refs/heads/saved`, core.OutcomeRemoved, ""},
		{"one that only commits keeps it", commit, core.OutcomeSkipped, core.OnBranch},
		{"one that writes keeps it", `echo x >report`, core.OutcomeSkipped, core.Untracked},
		{"one that fails keeps it", `exit 3`, core.OutcomeSkipped, core.HookNotRun},
		{"one that hangs keeps it", `sleep 60`, core.OutcomeSkipped, core.HookNotRun},
		{"one that cannot run keeps it", `no-such-command`, core.OutcomeSkipped, core.HookNotRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.exec(`UPDATE executor_profiles SET cleanup_script = ?`, c.hook)
			if strings.HasPrefix(c.hook, "sleep") {
				w.worker.Stops.(*worker.Stopping).HookLimit = 2 * time.Second
			}
			dir := w.launch("t1")
			w.archive("t1")
			ended, result := w.work()
			if ended.State != ports.Succeeded || result.Outcome != c.outcome || result.Cause != c.cause || w.there(dir) != (c.outcome == core.OutcomeSkipped) {
				t.Errorf("%s %s %s: %s", result.Outcome, result.Reason, result.Cause, result.Detail)
			}
			if c.cause == core.HookNotRun && len(result.Cure) == 0 {
				t.Error("no cure is told")
			}
		})
	}
}

func TestAC_D29_ADirectoryKeptForItsHookIsReclaimedOnceTheHookRuns(t *testing.T) {
	w := newWorld(t)
	w.exec(`UPDATE executor_profiles SET cleanup_script = ?`, `test -e "$HOME" && test -e `+w.base+`/mended`)
	dir := w.launch("t1")
	w.archive("t1")
	ended, result := w.work()
	if result.Cause != core.HookNotRun {
		t.Fatalf("%+v", ended)
	}
	w.sh("", `touch "$1"`, w.base+"/mended")
	if _, err := w.store.Desk().JudgeAgain(t.Context(), ended.ID); err != nil {
		t.Fatal(err)
	}
	if ended, result := w.work(); result.Outcome != core.OutcomeRemoved || w.there(dir) {
		t.Errorf("%+v", ended)
	}
}

func TestAnObserverChangesNothingAndTheWorkerThenFindsWhatItSaw(t *testing.T) {
	w := newWorld(t)
	dir := w.launch("t1")
	w.endAgents()
	w.exec(`UPDATE executors_running SET status = 'stopped'`)
	w.archive("t1")
	dump := func() string {
		var all []string
		rows, err := w.db.Query(`SELECT id, state, attempts, resource_snapshot, updated_at FROM task_resource_cleanup_jobs`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id, state, snapshot, updated string
			var attempts int
			if err := rows.Scan(&id, &state, &attempts, &snapshot, &updated); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(id, state, attempts, snapshot, updated))
		}
		return strings.Join(all, "\n")
	}
	before := dump()
	observer := newWorker(t, "o", w.store)
	observer.Observe = true
	observer.Phase.(*job.Phase).Observe = true
	ended, err := observer.Once(t.Context())
	if err != nil || len(ended) != 1 || len(ended[0].Results) != 1 || ended[0].Results[0].Outcome != core.OutcomeReclaimable {
		t.Fatalf("%+v %v", ended, err)
	}
	if after := dump(); after != before || !w.there(dir) {
		t.Errorf("was %s\nis %s", before, after)
	}
	if _, result := w.work(); result.Outcome != core.OutcomeRemoved {
		t.Errorf("%+v", result)
	}
}
