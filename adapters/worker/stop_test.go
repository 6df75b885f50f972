package worker

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// counting counts the connections made.
type counting struct {
	ports.Dialer
	dials atomic.Int32
}

func (c *counting) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	c.dials.Add(1)
	return c.Dialer.Dial(ctx, target)
}

// refusing is a host that cannot be reached.
type refusing struct{}

func (refusing) Dial(context.Context, core.Target) (ports.Session, core.NeverRan) {
	return nil, core.NeverRan{Fault: core.Unreachable, Detail: "nobody answers"}
}

// stage is a task with one session in a directory of this machine, its job
// leased.
type stage struct {
	*queue
	dir   string
	token ports.Token
	stop  *Stopping
	dials *counting
}

func newStage(t *testing.T, dialer ports.Dialer, target core.Target, dir, status, script string) *stage {
	t.Helper()
	target.TaskDir = dir
	metadata, err := json.Marshal(map[string]string{"ssh_host": target.Host, "ssh_port": strconv.Itoa(target.Port), "ssh_user": target.User,
		"ssh_host_fingerprint": target.Fingerprint, "ssh_identity_source": target.IdentitySource, "ssh_identity_file": target.IdentityFile,
		"ssh_remote_task_dir": dir, "cleanup_script": script})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := core.Capture(core.Captured{Launches: []core.Launch{{SessionID: "s", Target: target}}})
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{live: map[string][]core.Running{"t": {{SessionID: "s", TaskID: "t", Runtime: "ssh", Status: status, Metadata: metadata}}}}
	q.rows = []*row{{Job: ports.Job{ID: "j", TaskID: "t", Trigger: core.Archive, State: ports.Pending, Snapshot: snapshot}}}
	j, ok, err := q.Lease(t.Context(), "w", nil)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	dials := &counting{Dialer: dialer}
	return &stage{queue: q, dir: dir, token: ports.Token{JobID: "j", Attempt: j.Attempts, Worker: "w"}, dials: dials,
		stop: &Stopping{Dialer: dials, Sessions: q, Jobs: q}}
}

func (s *stage) run(t *testing.T) (Stopped, error) {
	t.Helper()
	return s.stop.Stop(t.Context(), s.row("j"), s.token)
}

// helper starts a stand-in agent from the session's folder.
func helper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	folder := filepath.Join(dir, ".kandev/sessions/s")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(folder, "agent")
	if err := os.WriteFile(agent, []byte("while :; do sleep 0.1; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sh", agent)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if err := os.WriteFile(filepath.Join(folder, "agentctl.pid"), []byte(strconv.Itoa(command.Process.Pid)), 0o644); err != nil {
		t.Fatal(err)
	}
	return command
}

func TestAC_D35_AStoppedSessionWithoutAScriptCostsNoConnection(t *testing.T) {
	s := newStage(t, localhost.Dialer{}, core.Target{Host: "h"}, t.TempDir(), core.Stopped, "")
	got, err := s.run(t)
	if err != nil || got.Stops != job.StopsSucceeded || got.Hook != core.HookNone || len(got.Sessions) != 1 || s.dials.dials.Load() != 0 {
		t.Errorf("%+v %v, %d connections", got, err, s.dials.dials.Load())
	}
}

func TestAC_007_1_TheCleanupScriptRunsOnceOnTheIntactDirectoryOverARealSSHD(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
	dir := filepath.Join(sshdtest.OpenDir(t), "task")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	agent := helper(t, dir)
	s := newStage(t, sshhost.New(sshhost.Options{}), server.Target(), dir, "running",
		`test -e .kandev/sessions/s/agentctl.pid && test "$PWD" = "$RECLAIM_TASK_DIR" && echo once >>ran`)
	got, err := s.run(t)
	if err != nil || got.Stops != job.StopsSucceeded || got.Hook != core.HookRan || len(got.Sessions) != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	if state, err := agent.Process.Wait(); err != nil || state.Success() {
		t.Errorf("the helper ended %v %v", state, err)
	}
	if s.live["t"][0].Status != core.Stopped {
		t.Errorf("the session's row is %q", s.live["t"][0].Status)
	}
	dials := s.dials.dials.Load()
	got, err = s.run(t) // a retry
	if err != nil || got.Hook != core.HookRan || s.dials.dials.Load() != dials {
		t.Errorf("again: %+v %v, %d connections more", got, err, s.dials.dials.Load()-dials)
	}
	if out, err := os.ReadFile(filepath.Join(dir, "ran")); string(out) != "once\n" {
		t.Errorf("it ran %q %v", out, err)
	}
}

func TestAC_D19_ACleanupScriptThatDidNotRunToItsEndKeepsTheDirectoryAndIsRunAgainWhenJudgedAgain(t *testing.T) {
	for name, script := range map[string]string{"it hangs": "sleep 30", "it fails": "exit 7", "it cannot run": "no-such-command-here"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := newStage(t, localhost.Dialer{}, core.Target{Host: "h"}, dir, core.Stopped, "test -e mended || "+script)
			if name == "it hangs" {
				s.stop.HookLimit = 2 * time.Second
			}
			got, err := s.run(t)
			if err != nil || got.Stops != job.StopsSucceeded || got.Hook != core.HookFailed || len(got.Sessions) != 1 {
				t.Fatalf("%+v %v", got, err)
			}
			parsed, err := core.ParseJobSnapshot(s.row("j").Snapshot)
			if err != nil || len(parsed.Targets()[0].Hooks) != 1 || parsed.Targets()[0].Hooks[0].Detail == "" {
				t.Fatalf("%+v %v", parsed.Targets(), err)
			}
			// Its row is gone when it is judged again; the script is known from the job.
			s.live["t"] = nil
			if got, err := s.run(t); err != nil || got.Hook != core.HookFailed {
				t.Errorf("judged again as it was: %+v %v", got, err)
			}
			if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if got, err := s.run(t); err != nil || got.Hook != core.HookRan || len(got.Sessions) != 0 {
				t.Errorf("judged again when mended: %+v %v", got, err)
			}
		})
	}
}

func TestAHostThatCannotBeReachedIsAFailedStop(t *testing.T) {
	for _, c := range []struct{ status, script string }{{"running", ""}, {core.Stopped, "true"}, {"running", "true"}} {
		s := newStage(t, refusing{}, core.Target{Host: "h"}, t.TempDir(), c.status, c.script)
		got, err := s.run(t)
		if err == nil || !strings.Contains(err.Error(), "unreachable") || got.Stops != job.StopsFailed || len(got.Sessions) != 0 {
			t.Errorf("%+v: %+v %v", c, got, err)
		}
	}
}

func TestAnEndingThatCannotBeRecordedIsAFailedStop(t *testing.T) {
	s := newStage(t, localhost.Dialer{}, core.Target{Host: "h"}, t.TempDir(), core.Stopped, "true")
	s.fault = func(call string) error {
		if call == "hooked" {
			return errors.New("disk full")
		}
		return nil
	}
	if got, err := s.run(t); err == nil || got.Stops != job.StopsFailed || len(got.Sessions) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestARowWithoutTargetsStopsNothing(t *testing.T) {
	s := newStage(t, localhost.Dialer{}, core.Target{Host: "h"}, t.TempDir(), "running", "touch ran")
	s.rows[0].Snapshot = []byte(`{}`)
	if got, err := s.run(t); err != nil || got.Stops != job.StopsSucceeded || len(got.Sessions) != 0 || s.dials.dials.Load() != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestMetadataThatCannotBeReadStopsNothingAndRunsNoPhase(t *testing.T) {
	s := newStage(t, localhost.Dialer{}, core.Target{Host: "h"}, t.TempDir(), "running", "")
	s.live["t"][0].Metadata = []byte(`{"ssh_host":"h","SSH_HOST":"g"}`)
	if got, err := s.run(t); err == nil || got.Stops == job.StopsSucceeded {
		t.Errorf("%+v %v", got, err)
	}
}

func TestLookingRunsNothing(t *testing.T) {
	s := newStage(t, localhost.Dialer{}, core.Target{Host: "h"}, t.TempDir(), "running", "true")
	got, err := s.stop.Look(t.Context(), s.row("j"))
	if err != nil || got.Hook != core.HookFailed || s.dials.dials.Load() != 0 || len(s.writes) != 0 {
		t.Errorf("%+v %v, %d connections, wrote %v", got, err, s.dials.dials.Load(), s.writes)
	}
}
