package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Every session in testdata is one a person can type.
func TestSessions(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/sessions",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("LC_ALL", "C")
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "Dev")
				env.Setenv("GIT_"+who+"_EMAIL", "dev@example.org")
			}
			return os.MkdirAll(env.WorkDir+"/home/.kandev/tasks", 0o755)
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
