package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
)

// overSSH points the machine's case at a real sshd: an absolute root, because
// the account's home is the real one.
func (m machine) overSSH(t *testing.T, server *sshdtest.Server, change func(target map[string]any)) {
	t.Helper()
	reached := server.Target()
	m.writeCase(t, func(c map[string]any) {
		target := map[string]any{"host": reached.Host, "port": reached.Port, "user": reached.User, "host_fingerprint": reached.Fingerprint,
			"identity_source": "file", "identity_file": "id", "workdir_root": m.root, "task_dir": m.dir, "enabled": true}
		change(target)
		c["target"] = target
	})
	key, err := os.ReadFile(server.Identity)
	if err != nil {
		t.Fatal(err)
	}
	// The case names its key relative to its own folder.
	if err := os.WriteFile(filepath.Join(filepath.Dir(m.caseFile), "id"), key, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOverARealSSHServer(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
	tests := map[string]struct {
		state  func(*testing.T, machine)
		target func(map[string]any)
		status int
		says   string
	}{
		"everything pushed": {status: exitDone, says: "removed"},
		"a file nobody committed": {status: exitKept, says: "kept: dirty_worktree (untracked)",
			state: func(t *testing.T, m machine) { write(t, filepath.Join(m.dir, "new.go"), "package app\n") }},
		"a commit nobody pushed": {status: exitKept, says: "kept: unpushed_commits",
			state: func(t *testing.T, m machine) { m.git(t, m.dir, "commit", "-q", "--allow-empty", "-m", "one more") }},
		"a stash": {status: exitKept, says: "kept: stash_present (stash)",
			state: func(t *testing.T, m machine) {
				write(t, filepath.Join(m.dir, "app.go"), "package app // otherwise\n")
				m.git(t, m.dir, "stash", "-q")
			}},
		"another machine's key": {status: exitFailed, says: "failed: host_key_mismatch",
			target: func(target map[string]any) {
				target["host_fingerprint"] = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
			}},
		"no pin": {status: exitFailed, says: "failed: no_pin (no retry can change it)",
			target: func(target map[string]any) { target["host_fingerprint"] = "" }},
		"a host that does not resolve": {status: exitFailed, says: "failed: unreachable",
			target: func(target map[string]any) { target["host"] = "no-such-host.invalid" }},
		"nobody listens": {status: exitFailed, says: "failed: unreachable",
			target: func(target map[string]any) { target["port"] = 1 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if test.state != nil {
				test.state(t, m)
			}
			change := test.target
			if change == nil {
				change = func(map[string]any) {}
			}
			m.overSSH(t, server, change)
			record := filepath.Join(m.home, "record.json")
			got := m.reclaim(t, nil, "attempt", m.caseFile, "--record", record)
			if got.status != test.status || !strings.HasPrefix(got.stdout, test.says) {
				t.Errorf("exit %d, %s%s\nwant exit %d and %q", got.status, got.stdout, got.stderr, test.status, test.says)
			}
			_, err := os.Stat(m.dir)
			if removed := os.IsNotExist(err); removed != (test.status == exitDone) {
				t.Errorf("the directory: %v", err)
			}
			if again := m.reclaim(t, nil, "replay", record); again.status != exitDone {
				t.Errorf("replayed: exit %d, %s%s", again.status, again.stdout, again.stderr)
			}
		})
	}
}

func TestInspectOverARealSSHServerNeedsTwoRoundTrips(t *testing.T) {
	m := newMachine(t)
	server := sshdtest.Start(t, sshdtest.Options{Home: m.home})
	m.overSSH(t, server, func(map[string]any) {})
	reached := server.Target()
	got := m.reclaim(t, nil, "inspect", m.dir, "--host", reached.User+"@127.0.0.1:"+strconv.Itoa(reached.Port), "--fingerprint", reached.Fingerprint,
		"--identity", filepath.Join(filepath.Dir(m.caseFile), "id"), "--json")
	r := got.result(t)
	if got.status != exitDone || r.Outcome != core.OutcomeReclaimable || r.RoundTrips != 2 {
		t.Errorf("exit %d, %s, %d round trips: %s", got.status, r.Outcome, r.RoundTrips, r.Detail)
	}
}
