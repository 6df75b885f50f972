package cli

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
)

type demoCommand struct {
	Keep bool `help:"Leave the temporary folder: repositories, directories, database, records."`
	JSON bool `help:"Print the results as one JSON document."`
}

func (demoCommand) Help() string {
	return `Makes repositories and task directories in a temporary folder, starts a loopback
SSH server with its own key, and has the durable job judge and remove them over
SSH with a pinned key. Needs git and touches nothing outside its folder.
Exit status 0 only if every outcome is the expected one and every record replays.

Examples:

  reclaim demo
  reclaim demo --keep && reclaim explain /tmp/reclaim-demo-*/records/power-cut-2.json`
}

func (c demoCommand) Run(ctx context.Context, t *terminal) error {
	if _, err := exec.LookPath("git"); err != nil {
		return usage("the demo needs git: %w", err)
	}
	started := time.Now()
	folder, err := os.MkdirTemp("", "reclaim-demo-")
	if err != nil {
		return err
	}
	if !c.Keep {
		defer os.RemoveAll(folder)
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}
	d := demo{terminal: t, folder: folder}
	shown, err := d.run(ctx)
	if err != nil {
		return err
	}
	results, expected, records, same := []core.Result{}, 0, 0, 0
	for _, s := range shown {
		if s.asExpected() {
			expected++
		}
		for _, r := range s.attempts {
			records++
			if r.differs == "" {
				same++
			}
			if !c.Keep {
				r.result.Record = ""
			}
			results = append(results, r.result)
		}
	}
	if c.JSON {
		if err := t.json(map[string]any{"results": results}); err != nil {
			return err
		}
	} else {
		t.demo(shown, expected, records, same, time.Since(started))
		if c.Keep {
			t.printf("\nkept in %s\n  reclaim kept --db sqlite:%s\n  reclaim explain %s\n", clean(folder),
				clean(filepath.Join(folder, "jobs.db")), clean(filepath.Join(folder, "records", "stashed-idea-1.json")))
		}
	}
	if expected != len(shown) || same != records {
		for _, s := range shown {
			for _, why := range s.surprises() {
				t.say("%s: %s", s.name, why)
			}
		}
		return exit{status: exitFailed}
	}
	return nil
}

// demo is one run of it, in its folder.
type demo struct {
	*terminal
	folder string
}

// shownSituation is a situation with what became of it.
type shownSituation struct {
	situation
	job       string
	before    string // digest of the directory
	after     string // empty: it is gone
	lastError string
	state     ports.State
	attempts  []shownAttempt
}

type shownAttempt struct {
	result  core.Result
	differs string // how its replay differs
}

func (s shownSituation) asExpected() bool { return len(s.surprises()) == 0 }

// surprises says what is not as it must be.
func (s shownSituation) surprises() []string {
	var all []string
	if len(s.attempts) != len(s.want) {
		all = append(all, fmt.Sprintf("%d attempts, not %d", len(s.attempts), len(s.want)))
	}
	for i, a := range s.attempts {
		if a.differs != "" {
			all = append(all, "its record replays otherwise: "+a.differs)
		}
		if i < len(s.want) {
			r, w := a.result, s.want[i]
			if got := (want{r.Outcome, r.Reason, r.Cause, r.Fault}); got != w {
				all = append(all, fmt.Sprintf("attempt %d came to %s (%s), not %s", i+1, headline(r), r.Detail, headline(core.Result{Outcome: w.outcome, Reason: w.reason, Cause: w.cause, Fault: w.fault})))
			}
		}
	}
	removed := len(s.want) > 0 && s.want[len(s.want)-1].outcome == core.OutcomeRemoved
	switch {
	case removed && s.after != "":
		all = append(all, "the directory is still there")
	case !removed && s.after != s.before:
		all = append(all, "the directory is not as it was")
	}
	if failed := len(s.want) > 0 && s.want[len(s.want)-1].outcome == core.OutcomeFailed; failed && (s.state != ports.RetryWait || s.lastError == "") {
		all = append(all, fmt.Sprintf("its job is %s, last error %q, and does not wait for its retry", s.state, s.lastError))
	}
	return all
}

func (d *demo) run(ctx context.Context) ([]shownSituation, error) {
	d.progress("making repositories and task directories in %s", d.folder)
	shop, err := newWorkshop(d.folder)
	if err != nil {
		return nil, err
	}
	if err := shop.powerCut(); err != nil {
		return nil, err
	}
	server, err := sshtest.Start(sshtest.Options{Shell: "/bin/sh", Env: shop.env})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	identity := shop.path("id")
	if err := server.WriteIdentity(identity); err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, "sqlite:"+shop.path("jobs.db"), creates)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := sqlstore.Init(ctx, db.DB, db.dialect); err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(ctx, db.DB, db.dialect)
	if err != nil {
		return nil, err
	}
	if err := d.profiles(ctx, db.DB); err != nil {
		return nil, err
	}
	shown := make([]shownSituation, len(situations))
	var ids []string
	for i, s := range situations {
		dir := shop.task(s.name)
		if err := s.build(shop, dir); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		target := server.Target(identity)
		target.WorkdirRoot, target.TaskDir, target.Enabled = "~/.kandev", dir, !s.optedOut
		if s.wrongPin {
			target.Fingerprint = "SHA256:" + strings.Repeat("A", 43)
		}
		if err := d.launch(ctx, db.DB, s, target); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		shown[i].situation = s
		if shown[i].before, err = digestTree(dir); err != nil {
			return nil, err
		}
		ids = append(ids, s.name)
	}
	d.progress("archiving %d tasks and running their cleanup jobs over SSH", len(ids))
	jobs, err := store.Archive(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	if len(jobs) != len(shown) {
		return nil, fmt.Errorf("%d tasks were archived and made %d jobs", len(shown), len(jobs))
	}
	rules, err := policy.New()
	if err != nil {
		return nil, err
	}
	dialer := sshhost.New(sshhost.Options{Home: shop.home, User: "dev", Config: os.DevNull, KnownHosts: []string{os.DevNull}})
	w := newWorker(store, dialer, rules, slog.New(slog.DiscardHandler), 4, false, nil)
	if _, err := w.Once(ctx); err != nil {
		return nil, err
	}
	for i, s := range shown {
		shown[i].job = jobs[i]
		if len(s.want) > 1 {
			d.progress("trying %s again, as the job will", s.name)
			if _, err := store.Desk().Retry(ctx, jobs[i]); err != nil && !errors.Is(err, ports.ErrRefused) {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if _, err := w.Once(ctx); err != nil {
				return nil, err
			}
		}
	}
	d.progress("replaying every record")
	for i := range shown {
		if err := d.look(ctx, store, shop, &shown[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", shown[i].name, err)
		}
	}
	return shown, ctx.Err()
}

// look reads from the database and the disk what became of a situation.
func (d *demo) look(ctx context.Context, store *sqlstore.Store, shop *workshop, s *shownSituation) error {
	var err error
	if s.after, err = digestTree(shop.task(s.name)); err != nil {
		return err
	}
	desk := store.Desk()
	j, err := desk.Job(ctx, s.job)
	if err != nil {
		return err
	}
	s.state, s.lastError = j.State, j.LastError
	filed, err := desk.RecordsOf(ctx, s.job)
	if err != nil {
		return err
	}
	for i := len(filed) - 1; i >= 0; i-- { // newest first
		path, err := saveRecord(shop.path("records"), fmt.Sprintf("%s-%d", s.name, filed[i].Record.Snapshot.Attempt), filed[i].Record)
		if err != nil {
			return err
		}
		record, err := readRecord(path)
		if err != nil {
			return err
		}
		record.Result.Record = path
		s.attempts = append(s.attempts, shownAttempt{result: record.Result, differs: replay.Again(record).Differs})
	}
	return nil
}

// profiles are two executor profiles on one host: one has opted in.
func (d *demo) profiles(ctx context.Context, db *sql.DB) error {
	now := time.Now().UTC()
	if err := insert(ctx, db, "executors", "id", "exec", "name", "demo host", "type", "ssh", "config", `{"ssh_host":"127.0.0.1"}`, "created_at", now, "updated_at", now); err != nil {
		return err
	}
	for id, reclaim := range map[string]string{"opted-in": "true", "opted-out": "false"} {
		if err := insert(ctx, db, "executor_profiles", "id", id, "executor_id", "exec", "name", id,
			"config", `{"ssh_workdir_root":"~/.kandev","ssh_reclaim_task_dir":"`+reclaim+`"}`, "created_at", now, "updated_at", now); err != nil {
			return err
		}
	}
	return nil
}

// launch writes the rows that a backend has of a task that ran in a directory.
func (d *demo) launch(ctx context.Context, db *sql.DB, s situation, target core.Target) error {
	profile := "opted-in"
	if s.optedOut {
		profile = "opted-out"
	}
	metadata, err := json.Marshal(map[string]string{"ssh_host": target.Host, "ssh_port": fmt.Sprint(target.Port), "ssh_user": target.User,
		"ssh_host_fingerprint": target.Fingerprint, "ssh_identity_source": target.IdentitySource, "ssh_identity_file": target.IdentityFile,
		"ssh_workdir_root": target.WorkdirRoot, "ssh_remote_task_dir": target.TaskDir, "ssh_reclaim_task_dir": fmt.Sprint(target.Enabled)})
	if err != nil {
		return err
	}
	tasks := []string{s.name}
	if s.sharer {
		tasks = append(tasks, s.name+"-other")
	}
	now := time.Now().UTC()
	for _, task := range tasks {
		err := errors.Join(
			insert(ctx, db, "tasks", "id", task, "title", s.there, "created_at", now, "updated_at", now),
			insert(ctx, db, "task_environments", "id", "env-"+task, "task_id", task, "executor_type", "ssh", "executor_id", "exec", "executor_profile_id", profile,
				"status", "ready", "workspace_path", target.TaskDir, "created_at", now, "updated_at", now),
			insert(ctx, db, "task_sessions", "id", "session-"+task, "task_id", task, "state", "COMPLETED", "task_environment_id", "env-"+task,
				"executor_id", "exec", "executor_profile_id", profile, "started_at", now, "updated_at", now),
			insert(ctx, db, "executors_running", "id", "running-"+task, "session_id", "session-"+task, "task_id", task, "executor_id", "exec",
				"execution_profile_id", profile, "runtime", "ssh", "status", "stopped", "metadata", string(metadata), "created_at", now, "updated_at", now))
		if err != nil {
			return err
		}
	}
	return nil
}

// insert writes one row given as column, value, column, value.
func insert(ctx context.Context, db *sql.DB, table string, row ...any) error {
	var columns []string
	var values []any
	for i := 0; i < len(row); i += 2 {
		columns, values = append(columns, row[i].(string)), append(values, row[i+1])
	}
	_, err := db.ExecContext(ctx, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES ("+strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")+")", values...)
	return err
}

// digestTree is over the name, mode, time and content of everything below dir;
// empty where dir is not there.
func digestTree(dir string) (string, error) {
	if _, err := os.Lstat(dir); os.IsNotExist(err) {
		return "", nil
	}
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %s %d ", path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%d ", len(content))
			sum.Write(content)
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func (t *terminal) demo(shown []shownSituation, expected, records, same int, took time.Duration) {
	var rows [][]string
	removed, stay := 0, 0
	for _, s := range shown {
		var came []string
		for _, a := range s.attempts {
			a.result.Bytes = 0
			came = append(came, headline(a.result))
		}
		word := strings.Join(came, ", then ")
		if s.state == ports.RetryWait {
			word += ", retried"
		}
		if !s.asExpected() {
			word = "UNEXPECTED: " + word
		}
		if s.after == "" {
			removed++
		} else if s.after == s.before {
			stay++
		}
		rows = append(rows, []string{s.name, s.there, word})
	}
	t.table([]string{"directory", "what is there", "what became of it"}, rows, 2, func(column int, cell string) style {
		switch {
		case column != 2:
			return ""
		case strings.HasPrefix(cell, "UNEXPECTED"):
			return bad
		case strings.Contains(cell, "removed"):
			return good
		case strings.HasPrefix(cell, "failed"):
			return bad
		}
		return kept
	})
	t.printf("\n")
	t.paragraph("", fmt.Sprintf("%d directories are gone, %d stand as they were, byte for byte. %d of %d records replayed offline to the same outcome. %d of %d situations came to what they must. It took %.1f s.",
		removed, stay, same, records, expected, len(shown), took.Seconds()))
}
