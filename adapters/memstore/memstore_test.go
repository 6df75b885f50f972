package memstore_test

import (
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

func TestAStoreInMemoryKeepsTheStorageContract(t *testing.T) {
	porttest.TestStorage(t, func(*testing.T) (porttest.Storage, ports.Desk, porttest.Seed) {
		s := memstore.New(time.Now)
		return s, s.Desk(), seed{s}
	})
	porttest.TestRows(t, func(*testing.T) (porttest.Rows, porttest.Seed) {
		s := memstore.New(time.Now)
		return s, seed{s}
	})
}

type seed struct{ s *memstore.Store }

func (d seed) PutTask(_ testing.TB, row porttest.Task) {
	t := memstore.Task{ID: row.ID, Title: row.Title, Parent: row.Parent}
	if row.Archived {
		t.ArchivedAt = time.Now()
	}
	d.s.PutTask(t)
}

func (d seed) PutEnvironment(_ testing.TB, row porttest.EnvironmentRow) {
	d.s.PutEnvironment(memstore.Environment{ID: row.ID, TaskID: row.TaskID, ExecutorType: "ssh", ProfileID: row.ProfileID, WorkspacePath: row.WorkspacePath})
}

func (d seed) PutSession(_ testing.TB, row porttest.SessionRow) {
	d.s.PutSession(memstore.Session(row))
}

func (d seed) PutLaunch(_ testing.TB, row porttest.LaunchRow) {
	d.s.PutLaunch(memstore.Launch{Running: core.Running{SessionID: row.SessionID, TaskID: row.TaskID, Runtime: row.Runtime, Status: row.Status, Metadata: []byte(row.Metadata)},
		ProfileID: row.ProfileID, UpdatedAt: row.Updated})
}

func (d seed) PutProfile(_ testing.TB, id, executor, profile string) {
	d.s.PutProfile(memstore.Profile{ID: id, Name: id, Executor: id, ExecutorConfig: executor, Config: profile})
}

func (d seed) PutJob(_ testing.TB, j ports.Job) { d.s.PutJob(j) }

func (d seed) GetJob(t testing.TB, id string) ports.Job {
	t.Helper()
	j, err := d.s.Desk().Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (d seed) Archived(t testing.TB, task string, archived bool) {
	d.PutTask(t, porttest.Task{ID: task, Archived: archived})
}

func (d seed) Remove(_ testing.TB, _, id string) { d.s.Drop(id) }
