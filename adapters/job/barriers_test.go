package job_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// yes is a policy with every barrier switched off.
type yes struct{}

func (yes) Rule(context.Context, core.Facts) core.Ruling {
	return core.Ruling{Allow: true, Passed: core.Barriers(), Digest: "none"}
}

type storage struct{ core.Ownership }

func (s storage) Owner(context.Context, core.Owner) core.Ownership { return s.Ownership }
func (storage) Begin(context.Context, core.Begin) core.Begun {
	return core.Begun{Ending: core.BeginRecorded}
}

func (storage) Conclude(context.Context, ports.Conclusion) error { return nil }

// pushedClone makes dir a clone that nothing would be lost with.
func pushedClone(t *testing.T, dir string) {
	t.Helper()
	script := `set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.test GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.test
origin=$2
[ -d "$origin" ] || { git init -q --bare "$origin"; git -C "$origin" commit-tree -m one "$(git -C "$origin" mktree </dev/null)" >"$origin/tip"; git -C "$origin" update-ref HEAD "$(cat "$origin/tip")"; rm "$origin/tip"; }
mkdir -p "$(dirname "$1")"
git clone -q "$origin" "$1"`
	if out, err := exec.Command("sh", "-c", script, "sh", dir, filepath.Join(filepath.Dir(filepath.Dir(dir)), "origin.git")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// With the policy saying yes to everything, and nothing else against it, the one
// barrier in core that has something to say keeps the directory. The policy's
// own side of this is TestEachBarrierAloneRefuses in package policy.
func TestEachBarrierAloneKeepsTheDirectory(t *testing.T) {
	good := core.Ownership{TaskTerminal: true, OptInNow: core.On, Environment: &core.Environment{ID: "e", TaskID: "t-1"}}
	for _, row := range []struct {
		barrier string // that speaks against it
		dir     string // below the root
		edit    func(*core.Snapshot, *core.Ownership)
		outcome string
	}{
		{"none", "tasks/fix-login", func(*core.Snapshot, *core.Ownership) {}, core.OutcomeRemoved},
		{"optin", "tasks/fix-login", func(s *core.Snapshot, _ *core.Ownership) { s.Target.Enabled = false }, core.OutcomeSkipped},
		{"optin", "tasks/fix-login", func(_ *core.Snapshot, o *core.Ownership) { o.OptInNow = core.Off }, core.OutcomeSkipped},
		{"ownership", "tasks/fix-login", func(_ *core.Snapshot, o *core.Ownership) { o.Environment.TaskID = "t-2" }, core.OutcomeSkipped},
		{"ownership", "tasks/fix-login", func(_ *core.Snapshot, o *core.Ownership) {
			o.Borrowers = []core.Borrower{{SessionID: "s", TaskID: "t-2", State: "RUNNING"}}
		}, core.OutcomeSkipped},
		{"pathshape", "tasks/deeper/fix-login", func(*core.Snapshot, *core.Ownership) {}, core.OutcomeFailed},
		{"pathshape", "other/fix-login", func(*core.Snapshot, *core.Ownership) {}, core.OutcomeFailed},
	} {
		t.Run(row.barrier+" "+row.dir, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(root, row.dir)
			pushedClone(t, dir)
			s := core.Snapshot{JobID: "j", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, At: time.Now().Unix(), Hook: core.HookNone,
				Environment: &core.Environment{ID: "e", TaskID: "t-1"},
				Target:      core.Target{Host: "h", Port: 22, User: "u", Fingerprint: "SHA256:x", WorkdirRoot: root, TaskDir: dir, Enabled: true}}
			owns := good
			owns.Environment = &core.Environment{ID: "e", TaskID: "t-1"}
			row.edit(&s, &owns)

			session, _ := localhost.Dialer{}.Dial(t.Context(), s.Target)
			defer session.Close()
			transcript := job.Driver{Owners: storage{owns}, Policy: yes{}, Row: storage{},
				Connect: func(context.Context) (ports.Session, core.NeverRan) { return session, core.NeverRan{} }}.Run(t.Context(), s)
			got := core.Conclude(s, transcript)
			_, err = os.Lstat(filepath.Join(dir, ".git", "HEAD"))
			if gone := os.IsNotExist(err); got.Outcome != row.outcome || gone != (row.outcome == core.OutcomeRemoved) {
				t.Errorf("%s (%s %s): %s; gone: %t", got.Outcome, got.Reason, got.Cause, got.Detail, gone)
			}
		})
	}
}
