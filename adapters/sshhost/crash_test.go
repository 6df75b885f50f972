package sshhost_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
)

// The host goes down with everything that runs on it, between two steps of a
// removal, and comes up again: the attempt has failed, never kept and never
// removed; the next one puts back what was only renamed and finishes what was
// committed, and nothing beside it has changed.
func TestAHostThatRestartsInTheMiddleOfARemovalIsFinishedByTheNextAttempt(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.template(t, 1)
	// Each stands for a command that the removal runs: it does its work, or a part
	// of it, and then nothing more happens on this host.
	for moment, c := range map[string]struct{ command, stand, left string }{
		"after the directory was renamed": {"mv", `/bin/mv "$@"; case " $* " in *" q ") hang ;; esac`, "q"},
		"before rm":                       {"rm", `case " $* " in *" -- x ") hang ;; esac; exec /bin/rm "$@"`, "x"},
		"in the middle of rm":             {"rm", `case " $* " in *" -- x ") /bin/rm -rf x/.git; hang ;; esac; exec /bin/rm "$@"`, "x"},
		"after rm":                        {"rm", `/bin/rm "$@"; case " $* " in *" -- x ") hang ;; esac`, "mark"},
	} {
		t.Run(moment, func(t *testing.T) {
			y.local = dial(t, sshhost.New(quick), y.direct())
			segment := y.task(t)
			reached := filepath.Join(y.account.Home, "reached")
			y.account.Write(t, map[string]string{
				".bash_profile":    "PATH=HOME/own:$PATH; export PATH",
				"own/" + c.command: "#!/bin/sh\nhang() { : >HOME/reached; while :; do sleep 60; done; }\n" + c.stand,
			})
			own := filepath.Join(y.account.Home, "own", c.command)
			if err := os.Chmod(own, 0o755); err != nil {
				t.Fatal(err)
			}
			beside := y.sh(t, `cd .kandev/tasks; mkdir -p sibling; echo kept >sibling/file; stat -c '%n %i %s %y %z' sibling sibling/file`)
			target := y.direct()
			s := snapshot(target, y.root, segment)
			session := dial(t, sshhost.New(quick), target)
			over := func(q core.HostQuery) core.Reply {
				if q.Script().Name != "remove" {
					return session.Run(t.Context(), q.Script())
				}
				reply := make(chan core.Reply, 1)
				go func() { reply <- session.Run(t.Context(), q.Script()) }()
				until(t, "the removal comes to the moment", func() bool { _, err := os.Stat(reached); return err == nil })
				y.server.Crash()
				return <-reply
			}
			outcome, begun := attempt(s, over)
			if failed, is := outcome.(core.Failed); !is || failed.Fault != core.Lost || !begun {
				t.Errorf("%+v, begun %v", outcome, begun)
			}
			for _, path := range []string{own, reached} {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			y.server.Restart()
			y.local = dial(t, sshhost.New(quick), target)
			if left := y.sh(t, "cd .kandev/tasks/.reclaim-*; ls"); !strings.Contains("\n"+left, "\n"+c.left+"\n") {
				t.Errorf("left was %q, without %s", left, c.left)
			}
			again := dial(t, sshhost.New(quick), target)
			s.Begun = true
			restored := false
			end := finish(t, s, func(q core.HostQuery) core.Reply {
				reply := again.Run(t.Context(), q.Script())
				if settle, is := q.(core.Settle); is {
					if said, is := reply.(core.Said); is {
						settlement, _ := settle.Judge(said)
						restored = restored || settlement.Restored
					}
				}
				return reply
			})
			if !isRemoved(end) || restored != (c.left == "q") {
				t.Errorf("the next attempt came to %+v, put back first: %v", end, restored)
			}
			if after := y.sh(t, `cd .kandev/tasks; ls -A; stat -c '%n %i %s %y %z' sibling sibling/file`); after != "sibling\n"+beside {
				t.Errorf("in tasks is\n%swhere\n%s was", after, beside)
			}
		})
	}
}
