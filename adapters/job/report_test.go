package job_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// dying is a host that answers until a removal is sent, and then no more.
type dying struct{ inventory string }

func (h dying) Dial(context.Context, core.Target) (ports.Session, core.NeverRan) {
	return h, core.NeverRan{}
}
func (dying) Trips() int   { return 0 }
func (dying) Close() error { return nil }

func (h dying) Run(_ context.Context, script core.Script) core.Reply {
	switch script.Name {
	case "greet":
		return core.Said{Body: fmt.Sprintf("reclaim 1 greet\nhome =/home/dev\nroot =/home/dev/.kandev\nplatform =Linux\ngit =2.39.5\nclock %d\ntasks directory\ntarget directory\nholder none ~ ~\nend 8\n", time.Now().Unix())}
	case "inventory":
		return core.Said{Body: h.inventory}
	}
	return core.Unclear{Doubt: core.ConnectionLost, Detail: "the power went"}
}

// halting has a begin recorded and ends the attempt before the removal is sent.
type halting struct {
	ports.Row
	end context.CancelFunc
}

func (h halting) Begin(ctx context.Context, q core.Begin) core.Begun {
	defer h.end()
	return h.Row.Begin(ctx, q)
}

// A host writes the report's snapshot into its row. What the attempt itself wrote
// there meanwhile must be in it: a begin that is lost is a removal forgotten.
func TestAC_D5_TheReportsSnapshotIsTheRowsAlsoAfterABegin(t *testing.T) {
	raw, err := os.ReadFile("../../fixtures/transcripts/clean-pushed.json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Body []string }
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []bool{false, true} {
		store := memstore.New(time.Now)
		store.PutTask(memstore.Task{ID: "t-1", ArchivedAt: time.Now()})
		store.PutEnvironment(memstore.Environment{ID: "e", TaskID: "t-1", ExecutorType: "ssh"})
		target := `{"host":"h","port":22,"user":"dev","host_fingerprint":"SHA256:x","workdir_root":"~/.kandev","task_dir":"/home/dev/.kandev/tasks/%s","enabled":true}`
		snapshot := `{"task_environment":{"id":"e","task_id":"t-1"},"ssh_task_dirs":[` + fmt.Sprintf(target, "a") + `,` + strings.Replace(fmt.Sprintf(target, "b"), `,"enabled":true`, "", 1) + `]}`
		store.PutJob(ports.Job{ID: "j", TaskID: "t-1", Trigger: core.Archive, State: ports.Running, Attempts: 1, Snapshot: []byte(snapshot)})
		ctx, end := context.WithCancel(t.Context())
		phase := &job.Phase{Dialer: dying{strings.Join(answer.Body, "\n")}, Owners: store, Row: store, Policy: yes{}}
		if cut {
			phase.Row, phase.PerHost = halting{store, end}, 1
		}
		report, err := phase.Run(ctx, job.Job{ID: "j", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, Snapshot: []byte(snapshot), Stops: job.StopsSucceeded, Hook: core.HookNone})
		end()
		row, failed := store.Desk().Job(t.Context(), "j")
		if err == nil || failed != nil {
			t.Fatal(err, failed)
		}
		read, err := core.ParseJobSnapshot(row.Snapshot)
		if err != nil || read.Targets()[0].Begun != 1 {
			t.Fatalf("cut short %v: nothing was begun: %v %s", cut, err, row.Snapshot)
		}
		if string(report.Snapshot) != string(row.Snapshot) {
			t.Errorf("cut short %v: the report says\n%s\nand the row\n%s", cut, report.Snapshot, row.Snapshot)
		}
	}
}
