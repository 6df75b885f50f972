package sqlstore_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/adapters/sqlstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

// Together they are paths that are near each other in every way that counts.
var (
	nearRoots = []string{"/home/dev/.kandev/tasks/", "/home/dev/.kandev//tasks/", "/HOME/dev/.kandev/tasks/", "/mnt/disk/tasks/", "tasks/", "~/.kandev/tasks/", "/a/../tasks/", "/", ""}
	nearNames = []string{"fix", "FIX", "fix/", "fix/lib", "fix/lib/deep", "fi", "fix2", "é", "É", "f\u0131x", "straße", "fix ", "", ".", "..", "x/fix", "a\\b", `a"b`, "tasks", "home", "dev", "\u212a", "k"}
)

var anyDirectory = rapid.Custom(func(t *rapid.T) string {
	return rapid.SampledFrom(nearRoots).Draw(t, "root") + rapid.SampledFrom(nearNames).Draw(t, "name")
})

func anyMetadata(t *rapid.T) string {
	dir := anyDirectory.Draw(t, "dir")
	quoted := fmt.Sprintf("%q", dir)
	if rapid.IntRange(0, 5).Draw(t, "escape") == 0 {
		quoted = strings.ReplaceAll(quoted, "f", `\u0066`)
	}
	pairs := []string{`"ssh_host":` + rapid.SampledFrom([]string{`"h"`, `"H."`, `"other"`, `""`, `3`, `null`}).Draw(t, "host"), `"ssh_remote_task_dir":` + quoted}
	for _, more := range []string{`"ssh_port":22`, `"SSH_HOST":"x"`, `"ssh_host":"again"`, `"ſsh_host":"x"`, `"é":1`, `"ssh_reclaim_task_dir":true`, `"cleanup_script":"a && b"`, `"cleanup_script":3`,
		`"ssh_materialized_worktrees":["a"]`, `"Note":"x"`, `"ssh_remote_t\u0061sk_dir":"/"`, `"is_remote":true`} {
		if rapid.IntRange(0, 9).Draw(t, "more") == 0 {
			pairs = append(pairs, more)
		}
	}
	return rapid.SampledFrom([]string{"%s", " %s\n", "%s}", "[%s]", "{%s", "null", "", "{}"}).Filter(func(form string) bool {
		return form == "%s" || rapid.IntRange(0, 3).Draw(t, "odd") == 0
	}).Draw(t, "form") + "\x00" + "{" + strings.Join(rapid.Permutation(pairs).Draw(t, "order"), ",") + "}"
}

func rendered(drawn string) string {
	form, body, _ := strings.Cut(drawn, "\x00")
	return strings.Replace(form, "%s", body, 1)
}

func anySnapshot(t *rapid.T) string {
	var targets []string
	for range rapid.IntRange(0, 3).Draw(t, "targets") {
		pairs := []string{`"host":"h"`, fmt.Sprintf(`"task_dir":%q`, anyDirectory.Draw(t, "dir")), `"workdir_root":""`}
		for _, more := range []string{`"enabled":true`, `"outcome":"removed"`, `"outcome":"skipped"`, `"TASK_DIR":"/"`, `"task_dir":"/mnt/disk/tasks/fix"`} {
			if rapid.IntRange(0, 5).Draw(t, "more") == 0 {
				pairs = append(pairs, more)
			}
		}
		targets = append(targets, "{"+strings.Join(pairs, ",")+"}")
	}
	odd := rapid.SampledFrom([]string{"null", "3", `{"host":"h"}`}).Draw(t, "element")
	if rapid.IntRange(0, 5).Draw(t, "odd") == 0 {
		targets = append(targets, odd)
	}
	list := "[" + strings.Join(targets, ",") + "]"
	return rapid.SampledFrom([]string{`{"ssh_task_dirs":` + list + `}`, `{"x":1,"ssh_task_dirs":` + list + `,"task_environment":{"id":"e","task_id":"t"}}`, `{"ssh_task_dirs":` + list + `,"ssh_task_dirs":[]}`,
		`{"SSH_task_dirs":` + list + `}`, `{"ssh_task_dirs":` + list, `{"ssh_task_dirs":{}}`, `{"task_environment":{"id":"e","ID":"f"},"ssh_task_dirs":` + list + `}`, `{"task_environment":{"id":3}}`, `null`, `{}`, `[]`, ``}).Draw(t, "snapshot")
}

// The index may hand over more than it must, never less. A second opinion reads
// every row.
func TestTheIndexFindsEveryClaimAFullReadingFinds(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db := installed(t, dialect)
			rows := seed{db, dialect}
			hosts := sqlstore.Over(db, dialect)
			claims := 0
			rapid.Check(t, func(rt *rapid.T) {
				rows.clear(t)
				opinion := memstore.New(time.Now)
				for i := range rapid.IntRange(0, 4).Draw(rt, "launches") {
					row := porttest.LaunchRow{SessionID: fmt.Sprint("s", i), TaskID: fmt.Sprint("s", i)}
					for range rapid.IntRange(1, 2).Draw(rt, "writes") {
						row.Metadata = rendered(anyMetadata(rt))
						rows.PutLaunch(t, row)
					}
					opinion.PutLaunch(memstore.Launch{Running: core.Running{SessionID: row.SessionID, TaskID: row.TaskID, Metadata: []byte(row.Metadata)}})
				}
				for i := range rapid.IntRange(0, 3).Draw(rt, "environments") {
					task := porttest.Task{ID: fmt.Sprint("e", i), Archived: rapid.IntRange(0, 3).Draw(rt, "archived") == 0}
					rows.PutTask(t, task)
					opened := memstore.Task{ID: task.ID}
					if task.Archived {
						opened.ArchivedAt = time.Now()
					}
					opinion.PutTask(opened)
					row := porttest.EnvironmentRow{ID: task.ID, TaskID: task.ID}
					for range rapid.IntRange(1, 2).Draw(rt, "writes") {
						row.WorkspacePath = anyDirectory.Draw(rt, "workspace")
						rows.PutEnvironment(t, row)
						if rapid.Bool().Draw(rt, "asked meanwhile") {
							store.Owner(t.Context(), core.Owner{TaskID: "t", Target: core.Target{Host: "h", TaskDir: "/x/tasks/y"}})
						}
					}
					opinion.PutEnvironment(memstore.Environment{ID: row.ID, TaskID: row.TaskID, ExecutorType: "ssh", WorkspacePath: row.WorkspacePath})
				}
				for i := range rapid.IntRange(0, 3).Draw(rt, "jobs") {
					j := ports.Job{ID: fmt.Sprint("j", i), OperationID: fmt.Sprint("j", i), TaskID: fmt.Sprint("j", i), Trigger: core.Archive, CreatedAt: time.Now(), UpdatedAt: time.Now()}
					j.State = rapid.SampledFrom([]ports.State{ports.Pending, ports.Succeeded, ports.Prepared, ports.JobFailed}).Draw(rt, "state")
					state := j.State
					j.State = ports.Prepared // directories are frozen from its end on
					for range rapid.IntRange(1, 2).Draw(rt, "writes") {
						j.Snapshot = []byte(anySnapshot(rt))
						rows.PutJob(t, j)
						if rapid.Bool().Draw(rt, "asked meanwhile") {
							store.Owner(t.Context(), core.Owner{TaskID: "t", Target: core.Target{Host: "h", TaskDir: "/x/tasks/y"}})
						}
					}
					j.State = state
					rows.PutJob(t, j)
					opinion.PutJob(j)
				}
				query := core.Owner{TaskID: "t", Target: core.Target{Host: "h", TaskDir: anyDirectory.Draw(rt, "ours")}}
				want := opinion.Owner(t.Context(), query)
				if diff := cmp.Diff(want, store.Owner(t.Context(), query), cmpopts.EquateEmpty()); diff != "" {
					rt.Fatalf("ours:\n%s", diff)
				}
				claims += len(want.Claims)
				if diff := cmp.Diff(want, hosts.Owner(t.Context(), query), cmpopts.EquateEmpty()); diff != "" {
					rt.Fatalf("a host's:\n%s", diff)
				}
			})
			if claims < 20 {
				t.Errorf("only %d claims were drawn", claims)
			}
		})
	}
}

// A host keeps every job it ever ran. Of one that has ended the snapshot is read
// only where it may name our directory, one above or one below it; however the
// path is written, and whatever wrote the JSON.
func TestTheClaimOfAnEndedJobIsFoundHoweverItsDirectoryIsWritten(t *testing.T) {
	directories := []string{"/home", "/home/dev", "/home/dev/", "/home/dev/.kandev", "/HOME/DEV/.KANDEV", "/home//dev", "/home/dev ", "/home/./dev", "/home/dev/..", "/dev", "/mnt/disk", "/home/dev/.kandev/tasks",
		"/home/dev/.kandev/tasks/", "/home/devo", "~", "~dev", "$HOME", "$HOME/x", "a:///fix", "/a://fix", "/a:/fix", "/a:/b", "/a://b"}
	for _, root := range nearRoots {
		for _, name := range nearNames {
			directories = append(directories, root+name)
		}
	}
	ours := []string{"/a:/b/tasks/fix", "/a://fix", "/", " "}
	for i, name := range nearNames {
		ours = append(ours, nearRoots[i%len(nearRoots)]+name)
	}
	for _, root := range nearRoots {
		ours = append(ours, root+"fix")
	}
	written := []func(string) string{
		func(dir string) string {
			plain, _ := json.Marshal(dir)
			return `{"sessions":[{"repo":"https://git.example/a.git"}],"ssh_task_dirs":[{"host":"h","workdir_root":"/home/dev/.kandev","task_dir":` + string(plain) + `,"outcome":"skipped","detail":"it is kept."}],"n":1}`
		},
		func(dir string) string {
			return fmt.Sprintf("{ \"ssh_task_dirs\" : [ { \"host\" : \"h\", \"task_dir\" :\t%s } ] }", strings.ReplaceAll(strconv.QuoteToASCII(dir), "/", `\/`))
		},
		func(dir string) string {
			plain, _ := json.Marshal(dir)
			return `{"ssh_task_dirs":[{"host":"h","task_d\u0069r":` + string(plain) + `},{"host":"h","task_dir":"/srv/else"}]}`
		},
	}
	opinion := memstore.New(time.Now)
	var jobs []ports.Job
	for i, dir := range directories {
		id := fmt.Sprint("j", i)
		j := ports.Job{ID: id, OperationID: id, TaskID: id, Trigger: core.Archive, CreatedAt: time.Now(), UpdatedAt: time.Now(), State: ports.JobFailed, Snapshot: []byte(written[i%len(written)](dir))}
		jobs = append(jobs, j)
		opinion.PutJob(j)
	}
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db := installed(t, dialect)
			for _, j := range jobs {
				seed{db, dialect}.PutJob(t, j)
			}
			for _, dir := range ours {
				query := core.Owner{TaskID: "t", Target: core.Target{Host: "h", TaskDir: dir}}
				want := opinion.Owner(t.Context(), query)
				for name, owners := range map[string]ports.Owners{"ours": store, "a host's": sqlstore.Over(db, dialect)} {
					if diff := cmp.Diff(want, owners.Owner(t.Context(), query), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("%q, %s:\n%s", dir, name, diff)
					}
				}
			}
		})
	}
}

// One row that an index cannot hold must not keep every other from being filed.
func TestADirectoryThatCannotBeIndexedIsFiledAllTheSame(t *testing.T) {
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			store, db := installed(t, dialect)
			for i, dir := range []string{`/r/tasks/a\u0000b`, "/r/tasks/" + strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz/", 120) + "x", "/r/tasks/plain"} {
				seed{db, dialect}.PutLaunch(t, porttest.LaunchRow{SessionID: fmt.Sprint("s", i), TaskID: fmt.Sprint("s", i), Metadata: `{"ssh_host":"h","ssh_remote_task_dir":"` + dir + `"}`})
			}
			if o := store.Owner(t.Context(), core.Owner{TaskID: "t", Target: core.Target{Host: "h", TaskDir: "/r/tasks/plain"}}); o.Error != "" || len(o.Claims) != 1 {
				t.Errorf("%+v", o)
			}
			var left int
			if err := db.QueryRow(`SELECT COUNT(*) FROM reclaim_places WHERE bucket = '?'`).Scan(&left); err != nil || left != 0 {
				t.Errorf("%d rows are not filed (%v)", left, err)
			}
		})
	}
}
