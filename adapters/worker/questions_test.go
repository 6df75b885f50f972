package worker_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// mortal ends its process, as kill -9 does, at one moment of an attempt:
// "before 3" is when the third question is about to be put, "after 8" when the
// answer to the eighth has come and nothing of it is written.
type mortal struct {
	moment          string
	asked, answered int
}

const atTheEnd = "before the job's end is written"

func (m *mortal) at(moment string) {
	if m.moment == moment {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // a signal to oneself may come a little later
	}
}

func (m *mortal) Asked(core.Query) {
	m.asked++
	m.at(fmt.Sprint("before ", m.asked))
}

func (m *mortal) Answered(core.Exchange) {
	m.answered++
	m.at(fmt.Sprint("after ", m.answered))
}

func (m *mortal) Ended(core.Record) {}

type mortalJobs struct {
	ports.Jobs
	*mortal
}

func (j mortalJobs) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	j.at(atTheEnd)
	return j.Jobs.Finish(ctx, token, end)
}

func dying(moment string, phase *job.Phase, jobs ports.Jobs) ports.Jobs {
	phase.Watch = func(context.Context, core.Snapshot) job.Watched { return &mortal{moment: moment} }
	return mortalJobs{jobs, &mortal{moment: moment}}
}

// A worker of its own, on a real database and a real host, is killed between
// every two questions of an attempt. Whatever it had done, another one brings the
// job to the end it would have come to: removed once, or kept for its reason.
func TestAC_005_3_AWorkerKilledBetweenAnyTwoQuestionsIsFinishedByTheNext(t *testing.T) {
	w := newWorld(t)
	questions := []string{"owner", "rule", "greet", "inventory", "owner", "rule", "begin", "remove"}
	type moment struct{ when, make, outcome string }
	var moments []moment
	for n := range questions {
		moments = append(moments, moment{fmt.Sprint("before ", n+1), ":", core.OutcomeRemoved})
	}
	const dirty = "echo precious >unsaved"
	for _, when := range []string{"before 3", "before 4", "after 4", atTheEnd} {
		moments = append(moments, moment{when, dirty, core.OutcomeSkipped})
	}
	for _, when := range []string{fmt.Sprint("after ", len(questions)), atTheEnd} {
		moments = append(moments, moment{when, ":", core.OutcomeRemoved})
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spread := map[string]bool{"before 3, removed": true, "before 5, removed": true, "before 7, removed": true, "before 8, removed": true, "after 8, removed": true, "after 4, skipped": true}
	for i, m := range moments {
		if os.Getenv(long) == "" && !spread[m.when+", "+m.outcome] {
			continue
		}
		t.Run(m.when+", "+m.outcome, func(t *testing.T) {
			task := fmt.Sprint("t", i)
			dir := w.archived(task, m.make)
			before := w.outside(dir)
			child := exec.Command(self)
			child.Env = append(os.Environ(), processDB+"="+w.spec, processKill+"="+m.when)
			child.Stderr = os.Stderr
			child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			died := make(chan error, 1)
			go func() { died <- child.Wait() }()
			select {
			case <-died:
			case <-time.After(2 * time.Minute):
				_ = child.Process.Kill()
				t.Fatal("it does not come to the moment")
			}
			if status := child.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
				t.Fatalf("it was not killed: %v", child.ProcessState)
			}
			if state, _ := w.row(task); state != string(ports.Running) {
				t.Fatalf("the killed worker's row is %s", state)
			}
			gone := m.outcome == core.OutcomeRemoved && (m.when == atTheEnd || m.when == fmt.Sprint("after ", len(questions)))
			if w.there(dir) == gone {
				t.Errorf("the directory is there: %v", !gone)
			}
			if n, err := w.store.Recover(t.Context(), 0); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			w.exec(`UPDATE task_resource_cleanup_jobs SET next_attempt_at = NULL WHERE state = 'retry_wait'`)
			ended, result := w.work()
			switch {
			case m.when == atTheEnd && m.outcome == core.OutcomeRemoved: // what is recorded as removed is not asked again
				if ended.State != ports.Succeeded || len(ended.Results) != 0 {
					t.Errorf("%+v", ended)
				}
			case ended.State != ports.Succeeded || result.Outcome != m.outcome:
				t.Errorf("%s, %s: %s", ended.State, result.Outcome, result.Detail)
			}
			if m.outcome == core.OutcomeSkipped && (result.Reason != core.DirtyWorktree || result.Cause != core.Untracked) {
				t.Errorf("kept for %s (%s)", result.Reason, result.Cause)
			}
			if after := w.outside(dir); after != before {
				t.Errorf("elsewhere was\n%s\nand is\n%s", before, after)
			}
			if m.outcome == core.OutcomeSkipped {
				if content, err := os.ReadFile(filepath.Join(dir, "unsaved")); string(content) != "precious\n" {
					t.Errorf("the work is %q: %v", content, err)
				}
				return
			}
			// Once is once: what is made there now is nobody's to remove.
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if n, err := w.store.Recover(t.Context(), 0); n != 0 || err != nil {
				t.Error(n, err)
			}
			if ended, err := w.worker.Once(t.Context()); len(ended) != 0 || err != nil || !w.there(dir) {
				t.Errorf("%+v %v", ended, err)
			}
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
	}
}
