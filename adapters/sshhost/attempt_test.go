package sshhost_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// long is whether everything is tried; otherwise what is tried is spread.
var long = os.Getenv("RECLAIM_TEST_LONG") == "1"

func inLong(many, few int) int {
	if long {
		return many
	}
	return few
}

// snapshot is an attempt at a directory that nothing but the host can keep.
func snapshot(target core.Target, root, segment string) core.Snapshot {
	target.WorkdirRoot, target.TaskDir, target.Enabled = root, root+"/tasks/"+segment, true
	return core.Snapshot{JobID: "job-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, At: 1, Hook: core.HookNone,
		Environment: &core.Environment{ID: "env-1", TaskID: "t-1"}, Target: target}
}

// attempt is one attempt at which storage and the policy agree to everything:
// only the host decides. It tells the outcome and whether the begin was recorded.
func attempt(s core.Snapshot, ask func(core.HostQuery) core.Reply) (outcome core.Outcome, begun bool) {
	var transcript core.Transcript
	for {
		var answer core.Answer
		switch step := core.Next(s, transcript).(type) {
		case core.Done:
			return step.Outcome, begun
		case core.Ask:
			switch q := step.Query.(type) {
			case core.Owner:
				answer = core.Ownership{TaskTerminal: true, OptInNow: core.On, Environment: s.Environment}
			case core.Rule:
				answer = core.Ruling{Allow: true, Passed: core.Barriers()}
			case core.Begin:
				answer, begun = core.Begun{Ending: core.BeginRecorded}, true
			case core.HostQuery:
				answer = core.Heard{Script: core.ScriptDigest(q.Script()), Reply: ask(q)}
			}
			transcript = append(transcript, core.Exchange{Query: step.Query, Answer: answer})
		default:
			return nil, begun
		}
	}
}

// finish attempts again, as a job does, until the target is removed or kept for
// good, and tells how it ended.
func finish(t testing.TB, s core.Snapshot, ask func(core.HostQuery) core.Reply) core.Outcome {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s.Attempt++
		outcome, _ := attempt(s, ask)
		if failed, is := outcome.(core.Failed); !is {
			return outcome
		} else if time.Now().After(deadline) {
			t.Fatalf("still %+v", failed)
		}
	}
}

// field is a workdir root with pushed checkouts in it, on this machine.
type field struct {
	root string
	made int
}

func newField(t testing.TB) *field {
	f := &field{root: t.TempDir() + "/k root"}
	f.sh(t, `cd "$1"; git init -q seed; cd seed; echo x >file; git add .; git -c user.name=n -c user.email=e@x commit -qm first
git clone -q --bare . ../origin.git; git clone -q --no-hardlinks ../origin.git ../template; mkdir "$1/tasks" "$1/tasks/sibling"`, f.root)
	return f
}

func (f *field) sh(t testing.TB, body string, args ...string) {
	t.Helper()
	if err := os.MkdirAll(f.root, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sh", append([]string{"-ec", body, "sh"}, args...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// task makes one more task directory.
func (f *field) task(t testing.TB) string {
	f.made++
	segment := fmt.Sprint("task-", f.made)
	f.sh(t, `cp -a "$1/template" "$1/tasks/$2"`, f.root, segment)
	return segment
}

// over puts questions through one session.
func over(ctx context.Context, session ports.Session) func(core.HostQuery) core.Reply {
	return func(q core.HostQuery) core.Reply { return session.Run(ctx, q.Script()) }
}

// ground is where answers can be cut.
type ground struct {
	dial   func() ports.Session
	task   func() string
	root   string
	target core.Target
	cut    func(after int) // the next answer; negative: no more
}

func inProcessGround(t *testing.T) ground {
	server, target := inProcess(t, sshtest.Options{})
	target.Shell = "/bin/false" // the PATH is not the point, and false tells none
	f := newField(t)
	return ground{dial: func() ports.Session { return dial(t, sshhost.New(quick), target) }, task: func() string { return f.task(t) }, root: f.root, target: target,
		cut: func(after int) { server.SetFaults(sshtest.Faults{CutAnswer: after >= 0, CutAfter: after}) }}
}

func realGround(t *testing.T) ground {
	y := newYard(t)
	y.template(t, 1)
	return ground{dial: func() ports.Session { return dial(t, sshhost.New(quick), y.target) }, task: func() string { return y.task(t) }, root: y.root, target: y.target,
		cut: func(after int) {
			if after >= 0 {
				settled(t, y.relay)
			}
			y.relay.CutAfter(after)
		}}
}

// The answers of the inventory and of the removal, of a directory that would be
// removed, are cut after any number of bytes. What was cut never lets the
// directory go and never says removed; the next attempt does. In the long form
// over a real server, and after every byte of the wire.
func TestAnInventoryOrARemovalCutAtAnyByteIsNeverAnOutcome(t *testing.T) {
	g := inProcessGround
	if long {
		g = realGround
	}
	for script, stride := range map[string]int{"inventory": 131, "remove": 41} {
		t.Run(script, func(t *testing.T) {
			if !long {
				t.Parallel()
			}
			g := g(t)
			segment, tried := g.task(), 0
			for after := 0; ; after += inLong(1, stride) {
				session := g.dial()
				s := snapshot(g.target, g.root, segment)
				whole := false
				outcome, begun := attempt(s, func(q core.HostQuery) core.Reply {
					if q.Script().Name != script {
						return session.Run(t.Context(), q.Script())
					}
					g.cut(after)
					defer g.cut(-1)
					reply := session.Run(t.Context(), q.Script())
					_, whole = reply.(core.Said)
					return reply
				})
				session.Close()
				if whole {
					if _, is := outcome.(core.Removed); !is {
						t.Fatalf("the whole answer, of %d bytes, brought %+v", after, outcome)
					}
					break
				}
				if failed, is := outcome.(core.Failed); !is || failed.Fault != core.Lost && failed.Fault != core.Unreachable || begun != (script == "remove") {
					t.Fatalf("cut after %d bytes: %+v, begun %v", after, outcome, begun)
				}
				tried++
				if script == "remove" {
					again := g.dial()
					s.Begun = begun
					end := finish(t, s, over(t.Context(), again))
					// What was cut may still be at work, and a look that it runs through can
					// only keep: it is looked at again, as it would be a minute later.
					for deadline := time.Now().Add(time.Minute); !isRemoved(end); end = finish(t, s, over(t.Context(), again)) {
						if time.Now().After(deadline) {
							t.Fatalf("cut after %d bytes, and the next attempts came to %+v", after, end)
						}
					}
					again.Close()
					segment = g.task()
				}
			}
			t.Logf("cut at %d places", tried)
			if tried < 4 {
				t.Errorf("cut at %d places only", tried)
			}
			if _, err := os.Stat(filepath.Join(g.root, "tasks/sibling")); err != nil && !long {
				t.Error(err)
			}
		})
	}
}

func isRemoved(o core.Outcome) bool { _, is := o.(core.Removed); return is }
