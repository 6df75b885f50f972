package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
)

// world is a console over storage in memory whose jobs ran for real: real git
// directories on this machine, the real scripts, the real policy.
type world struct {
	t       *testing.T
	store   *memstore.Store
	rules   *policy.Policy
	console *Console
	url     string
	root    string // workdir root
	remote  string
	log     *strings.Builder
}

// hostile is a file name that attacks whoever shows it: HTML, a terminal's
// escape, a text turned around.
const hostile = "<script>document.title='owned'<\\>\x1b]0;owned\x07\x1b[2J\u202egpj.exe"

func newWorld(t *testing.T) *world {
	t.Helper()
	rules, err := policy.New()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	w := &world{t: t, rules: rules, store: memstore.New(time.Now), root: filepath.Join(home, ".kandev"), remote: filepath.Join(home, "remotes", "app.git"), log: &strings.Builder{}}
	w.git(home, "init", "-q", "--bare", "-b", "main", w.remote)
	seed := filepath.Join(home, "seed")
	w.git(home, "clone", "-q", w.remote, seed)
	w.write(filepath.Join(seed, "app.go"), "package app\n")
	w.git(seed, "checkout", "-q", "-B", "main")
	w.git(seed, "add", ".")
	w.git(seed, "commit", "-qm", "app")
	w.git(seed, "push", "-q", "origin", "main")
	if err := os.MkdirAll(filepath.Join(w.root, "tasks"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.store.PutProfile(memstore.Profile{ID: "p-build", Name: "Build machine", Executor: "build-1", ExecutorConfig: `{"ssh_host":"localhost"}`,
		Config: `{"ssh_workdir_root":"` + w.root + `//","ssh_reclaim_task_dir":"true"}`})
	w.store.PutProfile(memstore.Profile{ID: "p-alias", Name: "By alias", Executor: "spare", ExecutorConfig: `{"ssh_host_alias":"gpu-box"}`, Config: `{}`})
	w.store.PutProfile(memstore.Profile{ID: "p-padded", Name: "Padded " + hostile, Executor: "executor only", ExecutorConfig: `{}`,
		Config: `{"ssh_workdir_root":"/srv/agents","ssh_reclaim_task_dir":" true "}`})
	w.console = &Console{Store: w.store.Desk(), Policy: rules, Preview: w.preview, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	server := httptest.NewServer(w.console.Handler())
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) git(in string, args ...string) {
	w.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = in
	command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=d", "GIT_AUTHOR_EMAIL=d@example.org", "GIT_COMMITTER_NAME=d", "GIT_COMMITTER_EMAIL=d@example.org")
	if out, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// task launches a task into a pushed clone; change then does to it what its
// agent did.
func (w *world) task(name string, change func(dir string)) string {
	w.t.Helper()
	dir := filepath.Join(w.root, "tasks", name)
	w.git(w.root, "clone", "-q", w.remote, dir)
	if change != nil {
		change(dir)
	}
	id := "t-" + name
	w.store.PutTask(memstore.Task{ID: id, Title: "Task " + name})
	w.store.PutEnvironment(memstore.Environment{ID: "env-" + name, TaskID: id, ExecutorType: "ssh", ProfileID: "p-build", WorkspacePath: dir})
	metadata, err := json.Marshal(map[string]any{"ssh_host": "localhost", "ssh_port": "22", "ssh_user": "dev", "ssh_host_fingerprint": "SHA256:k3y",
		"ssh_identity_source": "file", "ssh_identity_file": "~/.ssh/agent_key", "ssh_workdir_root": w.root, "ssh_remote_task_dir": dir,
		"ssh_reclaim_task_dir": "true", "env_secret_id_TOKEN": "hunter2-secret"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store.PutLaunch(memstore.Launch{Running: core.Running{SessionID: "s-" + name, TaskID: id, Runtime: "ssh", Status: "stopped", Metadata: metadata}, ProfileID: "p-build"})
	return id
}

func (w *world) phase(owners ports.Owners) *job.Phase {
	return &job.Phase{Dialer: localhost.Dialer{}, Owners: owners, Policy: w.rules, Row: w.store, Records: w.store}
}

// archive ends the task and runs everything that is due.
func (w *world) archive(task string) (jobID string) {
	w.t.Helper()
	ids, err := w.store.Archive(w.t.Context(), []string{task}, false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.work()
	return ids[0]
}

func (w *world) work() {
	w.t.Helper()
	ctx := w.t.Context()
	for {
		j, ok, err := w.store.Lease(ctx, "test", nil)
		if err != nil {
			w.t.Fatal(err)
		}
		if !ok {
			return
		}
		_, err = w.phase(w.store).Run(ctx, job.Job{ID: j.ID, TaskID: j.TaskID, Trigger: j.Trigger, Attempt: j.Attempts, Snapshot: j.Snapshot, Stops: job.StopsSucceeded, Hook: core.HookNone})
		end := ports.Ending{State: ports.Succeeded}
		if err != nil {
			end = ports.Ending{State: ports.RetryWait, Delay: time.Hour, Error: err.Error()}
			if job.Final(err) {
				end.State = ports.JobFailed
			}
		}
		if err := w.store.Finish(ctx, ports.Token{JobID: j.ID, Attempt: j.Attempts, Worker: "test"}, end); err != nil {
			w.t.Fatal(err)
		}
	}
}

type ended struct{ ports.Owners }

func (e ended) Owner(ctx context.Context, q core.Owner) core.Ownership {
	o := e.Owners.Owner(ctx, q)
	o.TaskTerminal = true
	return o
}

// preview looks at the one directory of a task, as serve does.
func (w *world) preview(ctx context.Context, task string) ([]core.Record, error) {
	dir := filepath.Join(w.root, "tasks", strings.TrimPrefix(task, "t-"))
	if _, err := os.Stat(dir); err != nil {
		return nil, ports.ErrNotFound
	}
	target := core.Target{Host: "localhost", Port: 22, User: "dev", Fingerprint: "SHA256:k3y", WorkdirRoot: w.root, TaskDir: dir, Enabled: true}
	raw, err := json.Marshal(map[string]any{"ssh_task_dirs": []core.Target{target}, "task_environment": map[string]string{"id": "env-" + strings.TrimPrefix(task, "t-"), "task_id": task}})
	if err != nil {
		return nil, err
	}
	phase := w.phase(ended{w.store})
	phase.Observe, phase.Records = true, nil
	report, err := phase.Run(ctx, job.Job{ID: "preview", TaskID: task, Trigger: core.Archive, Attempt: 1, Snapshot: raw, Stops: job.StopsSucceeded, Hook: core.HookNone})
	var records []core.Record
	for _, target := range report.Targets {
		records = append(records, target.Record)
	}
	return records, err
}

// furnished is a world with one directory of every kind the pages tell.
func furnished(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.archive(w.task("pushed", nil))
	w.archive(w.task("half-written", func(dir string) {
		w.write(filepath.Join(dir, "notes.txt"), strings.Repeat("only here\n", 4000))
	}))
	w.archive(w.task("one-commit", func(dir string) {
		w.git(dir, "checkout", "-q", "-b", "idea")
		w.git(dir, "commit", "-q", "--allow-empty", "-m", "only here")
	}))
	w.archive(w.task("hostile", func(dir string) {
		w.write(filepath.Join(dir, strings.ReplaceAll(hostile, "/", "")), "x\n")
	}))
	w.store.PutTask(memstore.Task{ID: "t-fault", Title: "No pin", ArchivedAt: time.Now()})
	bad, err := json.Marshal(map[string]any{"task_environment": map[string]string{"id": "env-f", "task_id": "t-fault"}, "ssh_task_dirs": []core.Target{
		{Host: "Build-2.example.", Port: 2222, User: "dev", WorkdirRoot: "~/.kandev", TaskDir: "/home/dev/.kandev/elsewhere/<img src=x onerror=alert(1)>", Enabled: true}}})
	if err != nil {
		t.Fatal(err)
	}
	w.store.PutEnvironment(memstore.Environment{ID: "env-f", TaskID: "t-fault", ExecutorType: "ssh", ProfileID: "p-build"})
	w.store.PutJob(ports.Job{ID: "job-fault", OperationID: "archive:t-fault:1", TaskID: "t-fault", Trigger: core.Archive, State: ports.Pending, Snapshot: bad, CreatedAt: time.Now(), UpdatedAt: time.Now()})
	w.work()
	return w
}

func (w *world) recordOf(task string) ports.Filed {
	w.t.Helper()
	jobs, err := w.store.Desk().Jobs(w.t.Context(), "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, j := range jobs {
		records, err := w.store.Desk().RecordsOf(w.t.Context(), j.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		if j.TaskID == task && len(records) > 0 {
			return records[0]
		}
	}
	w.t.Fatalf("there is no record of %s", task)
	return ports.Filed{}
}
