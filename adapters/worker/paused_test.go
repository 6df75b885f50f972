package worker_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// The moments at which a worker of its own pauses, as a machine that is
// suspended does, and goes on when it is woken.
const (
	beforeRemoval = "before the removal is sent"
	beforeOutcome = "before the outcome is written"
)

// pause stops this process until somebody continues it and says so: a stop
// reaches the thread that asked for it some time after it asked.
func pause() {
	fmt.Println("paused")
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// sleeper is a dialer whose removals are sent late, whatever the worker has
// learnt meanwhile: only the host itself can refuse them.
type sleeper struct{ ports.Dialer }

func (s sleeper) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	session, refusal := s.Dialer.Dial(context.WithoutCancel(ctx), target)
	if session == nil {
		return nil, refusal
	}
	return sleepy{session}, refusal
}

type sleepy struct{ ports.Session }

func (s sleepy) Run(ctx context.Context, script core.Script) core.Reply {
	if script.Name != "remove" {
		return s.Session.Run(ctx, script)
	}
	pause()
	return s.Session.Run(context.WithoutCancel(ctx), script)
}

// lateRow writes an outcome late.
type lateRow struct{ ports.Row }

func (r lateRow) Conclude(ctx context.Context, c ports.Conclusion) error {
	pause()
	err := r.Row.Conclude(context.WithoutCancel(ctx), c)
	fmt.Println("concluded:", err)
	return err
}

// lateJobs says what became of the job's end.
type lateJobs struct{ ports.Jobs }

func (j lateJobs) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	err := j.Jobs.Finish(ctx, token, end)
	fmt.Println("finished:", err)
	return err
}

func TestAWorkerThatWasPausedPastItsLeaseIsRefusedByTheRowAndByTheHost(t *testing.T) {
	for _, moment := range []string{beforeRemoval, beforeOutcome} {
		t.Run(moment, func(t *testing.T) {
			w := newWorld(t)
			dir := w.archived("t1", ":")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			child := exec.Command(self)
			child.Env = append(os.Environ(), processDB+"="+w.spec, processPause+"="+moment)
			child.Stderr = os.Stderr
			child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
			said := make(chan string, 100)
			go func() {
				for lines := bufio.NewScanner(out); lines.Scan(); {
					said <- lines.Text()
				}
				close(said)
			}()
			hear := func(want string) (line string) {
				t.Helper()
				for limit := time.After(4 * time.Minute); ; {
					select {
					case line, open := <-said:
						if strings.HasPrefix(line, want) {
							return line
						}
						if !open {
							t.Fatalf("the worker ended before it said %q", want)
						}
					case <-time.After(time.Second): // an attempt its limit cut short is due later
						w.exec(`UPDATE task_resource_cleanup_jobs SET next_attempt_at = NULL WHERE state = 'retry_wait'`)
					case <-limit:
						t.Fatalf("the worker did not say %q", want)
					}
				}
			}
			hear("paused")
			stopped := func() bool {
				state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Process.Pid))
				return err == nil && bytes.Contains(state, []byte(") T "))
			}
			for limit := time.Now().Add(time.Minute); !stopped(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatal("the worker does not stop")
				}
			}

			// Its lease goes to another, who finishes; then the directory is made anew.
			if n, err := w.store.Recover(t.Context(), 0); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			w.exec(`UPDATE task_resource_cleanup_jobs SET next_attempt_at = NULL`)
			if ended, result := w.work(); ended.State != ports.Succeeded || result.Outcome != core.OutcomeRemoved || w.there(dir) {
				t.Fatalf("%+v", ended)
			}
			w.sh("", `git clone -q --no-hardlinks "$1" "$2" && echo precious >"$2/unsaved"`, w.remote, dir)
			before, row := w.sh("", `find "$1" -printf '%p %i %y %m %s %T@ %C@\n' | sort`, dir), w.whole()

			// It goes on once the time its removal was given has passed on the host.
			for woken := time.Now().Add(pausedLimit + 2*time.Second); time.Now().Before(woken); {
				time.Sleep(100 * time.Millisecond)
			}
			if err := child.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			if moment == beforeOutcome {
				if line := hear("concluded:"); !strings.Contains(line, ports.ErrRowLost.Error()) {
					t.Errorf("the row took its outcome: %s", line)
				}
			}
			if line := hear("finished:"); !strings.Contains(line, ports.ErrRowLost.Error()) {
				t.Errorf("the row took its end: %s", line)
			}
			if after := w.sh("", `find "$1" -printf '%p %i %y %m %s %T@ %C@\n' | sort`, dir); after != before {
				t.Errorf("the directory that was made anew was touched:\n%s\n%s", before, after)
			}
			if now := w.whole(); now != row {
				t.Errorf("the row was\n%s\nand is\n%s", row, now)
			}
			if moment == beforeRemoval {
				var id string
				if err := w.db.QueryRow(`SELECT id FROM task_resource_cleanup_jobs`).Scan(&id); err != nil {
					t.Fatal(err)
				}
				filed, err := w.store.Desk().RecordsOf(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				late := ""
				for _, f := range filed {
					if f.Record.Result.Fault == core.RemoveRejected {
						late = f.Record.Result.Detail
					}
				}
				if !strings.Contains(late, "after the time it was allowed") {
					t.Errorf("the host did not say that the removal came late: %q", late)
				}
			}
			if left, _ := filepath.Glob(w.root + "/tasks/.reclaim-*"); len(left) > 0 {
				t.Errorf("holders are left: %v", left)
			}
		})
	}
}

// whole is all of the one job's row.
func (w *world) whole() string {
	w.Helper()
	var all [12]any
	into := make([]any, len(all))
	for i := range all {
		into[i] = &all[i]
	}
	if err := w.db.QueryRow(`SELECT id, operation_id, task_id, trigger, state, resource_snapshot, attempts, next_attempt_at, last_error, created_at, updated_at, completed_at
		FROM task_resource_cleanup_jobs`).Scan(into...); err != nil {
		w.Fatal(err)
	}
	return fmt.Sprint(all[:]...)
}

// paused makes the worker pause at a moment; its lease is not its own guard.
func paused(moment string, phase *job.Phase, jobs ports.Jobs) ports.Jobs {
	phase.Limit = pausedLimit
	switch moment {
	case beforeRemoval:
		phase.Dialer = sleeper{phase.Dialer}
	case beforeOutcome:
		phase.Row = lateRow{phase.Row}
	}
	return lateJobs{jobs}
}
