package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/adapters/worker"
	"github.com/kandev/reclaim/core"
)

// The whole main job, each step a process of its own that finds what the one
// before it left: a row, a real sshd, a removal, and the questions people ask
// afterwards.
func TestFromAnArchivedTaskToWhatBecameOfIt(t *testing.T) {
	m := newMachine(t)
	server := sshdtest.Start(t, sshdtest.Options{Home: m.home})
	dsn := "sqlite:" + filepath.Join(filepath.Dir(m.home), "jobs.db")
	run := func(status int, args ...string) called {
		t.Helper()
		got := m.reclaim(t, []string{"RECLAIM_DB=" + dsn}, args...)
		if got.status != status {
			t.Fatalf("reclaim %s: exit %d, %s%s", strings.Join(args, " "), got.status, got.stdout, got.stderr)
		}
		return got
	}
	run(exitDone, "db", "init")
	states := map[string]struct {
		change func(dir string)
		pin    string
		want   string // outcome and reason, or fault
		state  string
	}{
		"pushed": {want: "removed", state: "succeeded"},
		"dirty": {want: "skipped dirty_worktree", state: "succeeded",
			change: func(dir string) { write(t, filepath.Join(dir, "new.go"), "package app\n") }},
		"unpushed": {want: "skipped unpushed_commits", state: "succeeded",
			change: func(dir string) { m.git(t, dir, "commit", "-q", "--allow-empty", "-m", "one more") }},
		"stash": {want: "skipped stash_present", state: "succeeded",
			change: func(dir string) {
				write(t, filepath.Join(dir, "app.go"), "package app // otherwise\n")
				m.git(t, dir, "stash", "-q")
			}},
		"rebuilt": {want: "failed host_key_mismatch", state: "retry_wait", pin: "SHA256:" + strings.Repeat("A", 43)},
	}
	db, err := openDatabase(t.Context(), dsn, writes)
	if err != nil {
		t.Fatal(err)
	}
	var d demo
	if err := d.profiles(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	archive := []string{"task", "archive"}
	for name, s := range states {
		dir := filepath.Join(m.root, "tasks", name)
		m.git(t, m.home, "clone", "-q", filepath.Join(filepath.Dir(m.home), "remotes", "app.git"), dir)
		if s.change != nil {
			s.change(dir)
		}
		target := server.Target()
		target.WorkdirRoot, target.TaskDir = m.root, dir
		if s.pin != "" {
			target.Fingerprint = s.pin
		}
		if err := d.launch(t.Context(), db.DB, situation{name: name, there: name}, target); err != nil {
			t.Fatal(err)
		}
		archive = append(archive, name)
	}
	db.Close()
	sibling := filepath.Join(m.root, "tasks", "sibling")
	before, err := os.Stat(sibling)
	if err != nil {
		t.Fatal(err)
	}

	run(exitDone, archive...)
	var ended struct{ Jobs []worker.Ended }
	if err := json.Unmarshal([]byte(run(exitDone, "work", "--once", "--json").stdout), &ended); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, j := range ended.Jobs {
		for _, r := range j.Results {
			got[j.TaskID] = strings.TrimSpace(r.Outcome+" "+string(r.Reason)+string(r.Fault)) + ", " + string(j.State)
		}
	}
	for name, s := range states {
		want[name] = s.want + ", " + s.state
		_, err := os.Stat(filepath.Join(m.root, "tasks", name))
		if os.IsNotExist(err) != (s.want == "removed") {
			t.Errorf("%s: the directory: %v", name, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if after, err := os.Stat(sibling); err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		t.Errorf("the sibling was touched: %v", err)
	}

	// What people ask afterwards, each time a new process.
	var kept struct{ Kept []keptView }
	if err := json.Unmarshal([]byte(run(exitDone, "kept", "--json").stdout), &kept); err != nil {
		t.Fatal(err)
	}
	found := map[string]core.Reason{}
	for _, k := range kept.Kept {
		found[k.TaskID] = k.Reason
	}
	if diff := cmp.Diff(map[string]core.Reason{"dirty": core.DirtyWorktree, "unpushed": core.UnpushedCommits, "stash": core.StashPresent, "rebuilt": ""}, found); diff != "" {
		t.Error(diff)
	}
	var jobs struct{ Jobs []jobView }
	if err := json.Unmarshal([]byte(run(exitDone, "jobs", "--json").stdout), &jobs); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(m.home, "records")
	for _, j := range jobs.Jobs {
		if waits := j.TaskID == "rebuilt"; waits != (j.LastError != "") || waits != (j.Next != "") {
			t.Errorf("%s: last error %q, next %q", j.TaskID, j.LastError, j.Next)
		}
		run(exitDone, "job", "show", j.ID, "--save", records)
	}
	files, err := filepath.Glob(filepath.Join(records, "*.json"))
	if err != nil || len(files) != len(states) {
		t.Fatalf("%d records: %v", len(files), err)
	}
	run(exitDone, append([]string{"replay"}, files...)...)
	for _, file := range files {
		run(exitDone, "explain", file)
	}

	if got := run(exitUsage, "task", "archive", "nobody", "nothing"); got.stderr != "reclaim: archiving nobody, nothing: the task \"nobody\": not found; the task \"nothing\": not found\n" {
		t.Errorf("names that are wrong: %q", got.stderr)
	}

	// Judged again once the cure was applied.
	if err := os.Remove(filepath.Join(m.root, "tasks", "dirty", "new.go")); err != nil {
		t.Fatal(err)
	}
	for _, k := range kept.Kept {
		if k.TaskID == "dirty" {
			run(exitDone, "kept", "retry", k.JobID)
		}
	}
	if again := run(exitDone, "work", "--once"); !strings.Contains(again.stdout, "removed") {
		t.Errorf("judged again: %s", again.stdout)
	}
}
