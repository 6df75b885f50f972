package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
)

// Every session in testdata is one a person can type.
func TestSessions(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
	reached := server.Target()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/sessions",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("LC_ALL", "C")
			env.Setenv("HOST", fmt.Sprintf("%s@127.0.0.1:%d", reached.User, reached.Port))
			env.Setenv("FINGERPRINT", reached.Fingerprint)
			env.Setenv("IDENTITY", server.Identity)
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "Dev")
				env.Setenv("GIT_"+who+"_EMAIL", "dev@example.org")
			}
			return os.MkdirAll(env.WorkDir+"/home/.kandev/tasks", 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"seed":  seed,
			"jobof": jobOf,
			"postgres": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Setenv("RECLAIM_DB", pgtest.Start(t, "fsync=off", "full_page_writes=off").NewDSN(t))
			},
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// seed writes into the session's database what a backend has of tasks that ran
// on a host where nobody listens.
func seed(ts *testscript.TestScript, neg bool, tasks []string) {
	ctx := context.Background()
	db := sessionDatabase(ts)
	defer db.Close()
	var d demo
	ts.Check(d.profiles(ctx, db.DB))
	for _, task := range tasks {
		ts.Check(d.launch(ctx, db.DB, situation{name: task, there: task}, core.Target{Host: "127.0.0.1", Port: 1, User: "dev", Fingerprint: "SHA256:" + strings.Repeat("A", 43),
			IdentitySource: "file", IdentityFile: identityFile(ts), WorkdirRoot: "/srv/kandev", TaskDir: "/srv/kandev/tasks/" + task, Enabled: true}))
	}
}

func sessionDatabase(ts *testscript.TestScript) database {
	dsn := ts.Getenv("RECLAIM_DB")
	if path, is := strings.CutPrefix(dsn, "sqlite:"); is {
		dsn = "sqlite:" + ts.MkAbs(path)
	}
	db, err := openDatabase(context.Background(), dsn, writes)
	ts.Check(err)
	return db
}

// jobOf sets JOB to the newest job of a task.
func jobOf(ts *testscript.TestScript, neg bool, args []string) {
	db := sessionDatabase(ts)
	defer db.Close()
	var id string
	ts.Check(db.QueryRow("SELECT id FROM task_resource_cleanup_jobs WHERE task_id = $1 ORDER BY created_at DESC", args[0]).Scan(&id))
	ts.Setenv("JOB", id)
}

func identityFile(ts *testscript.TestScript) string {
	path := filepath.Join(ts.Getenv("WORK"), "id")
	if _, err := os.Stat(path); err != nil {
		ts.Check(writeIdentity(path))
	}
	return path
}
