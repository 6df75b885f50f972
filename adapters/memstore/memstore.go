// Package memstore is storage in memory: for tests, simulation and dry uses. It
// is deterministic: no goroutine, no clock and no randomness of its own, ids are
// counted, and every list has one order. It is safe for concurrent use.
package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Store implements ports.Owners, Row, Tasks, Jobs, Sessions, Records and
// TaskEnds; Desk is its desk.
type Store struct {
	mu           sync.Mutex
	clock        func() time.Time
	counted      int
	tasks        map[string]Task
	environments map[string]Environment
	sessions     map[string]Session
	launches     map[string]Launch
	profiles     map[string]Profile
	jobs         map[string]ports.Job
	leases       map[string]lease
	records      []ports.Filed
	stopAll      bool
}

// New is an empty store that takes its time from clock.
func New(clock func() time.Time) *Store {
	return &Store{clock: clock, tasks: map[string]Task{}, environments: map[string]Environment{}, sessions: map[string]Session{},
		launches: map[string]Launch{}, profiles: map[string]Profile{}, jobs: map[string]ports.Job{}, leases: map[string]lease{}}
}

// Task is a row of tasks.
type Task struct {
	ID, Title, Parent, Cascade string
	ArchivedAt, CreatedAt      time.Time
}

// Environment is a row of task_environments.
type Environment struct {
	ID, TaskID, ExecutorType, ProfileID, WorkspacePath string
	CreatedAt, UpdatedAt                               time.Time
}

// Session is a row of task_sessions.
type Session struct{ ID, TaskID, State, EnvironmentID string }

// Launch is a row of executors_running.
type Launch struct {
	core.Running
	ProfileID string
	UpdatedAt time.Time
}

// Profile is a row of executor_profiles with its executor's.
type Profile struct{ ID, Name, Executor, ExecutorConfig, Config string }

type lease struct {
	attempt int
	worker  string
	beat    time.Time
}

// The Put methods put or replace one row; a time that is zero is now.

func (s *Store) PutTask(row Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row.CreatedAt = s.orNow(row.CreatedAt)
	s.tasks[row.ID] = row
}

func (s *Store) PutEnvironment(row Environment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row.CreatedAt, row.UpdatedAt = s.orNow(row.CreatedAt), s.orNow(row.UpdatedAt)
	s.environments[row.ID] = row
}

func (s *Store) PutSession(row Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[row.ID] = row
}

func (s *Store) PutLaunch(row Launch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row.UpdatedAt = s.orNow(row.UpdatedAt)
	s.launches[row.SessionID] = row
}

func (s *Store) PutProfile(row Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[row.ID] = row
}

func (s *Store) PutJob(row ports.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[row.ID] = row
}

// Drop takes rows of one id away, whatever they are.
func (s *Store) Drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tasks, id)
	delete(s.environments, id)
	delete(s.sessions, id)
	delete(s.launches, id)
	delete(s.profiles, id)
}

func (s *Store) orNow(t time.Time) time.Time {
	if t.IsZero() {
		return s.now()
	}
	return t
}

func (s *Store) now() time.Time { return s.clock().UTC() }

func (s *Store) id(kind string) string {
	s.counted++
	return fmt.Sprintf("%s-%06d", kind, s.counted)
}

// locked runs do alone, unless ctx has ended.
func (s *Store) locked(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

// sorted lists the rows of a table that match, in the order of compare and then
// of their ids.
func sorted[T any](table map[string]T, match func(T) bool, compare func(a, b T) int) []T {
	var ids []string
	for id, row := range table {
		if match(row) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		if compare != nil {
			if c := compare(table[a], table[b]); c != 0 {
				return c
			}
		}
		return strings.Compare(a, b)
	})
	rows := make([]T, len(ids))
	for i, id := range ids {
		rows[i] = table[id]
	}
	return rows
}

func (s *Store) terminal(task string) bool {
	row, ok := s.tasks[task]
	return !ok || !row.ArchivedAt.IsZero()
}

// Terminal implements ports.Tasks.
func (s *Store) Terminal(ctx context.Context, taskID string) (terminal bool, err error) {
	err = s.locked(ctx, func() error { terminal = s.terminal(taskID); return nil })
	return terminal, err
}

const maxRights = 1000

// Owner implements ports.Owners.
func (s *Store) Owner(ctx context.Context, query core.Owner) (o core.Ownership) {
	if err := s.locked(ctx, func() error { return s.owner(query, &o) }); err != nil {
		return core.Ownership{Error: err.Error()}
	}
	return o
}

func (s *Store) owner(query core.Owner, o *core.Ownership) error {
	o.TaskTerminal = s.terminal(query.TaskID)
	var err error
	if o.OptInNow, o.Disposable, err = s.optIn(query); err != nil {
		return err
	}
	if e, ok := s.environments[query.Environment]; ok {
		o.Environment = &core.Environment{ID: e.ID, TaskID: e.TaskID}
	} else if query.Environment == "" {
		if e := s.environmentOf(query.TaskID); e != nil {
			o.Environment = &core.Environment{ID: e.ID, TaskID: e.TaskID}
		}
	}
	claims, claimants, environments := s.claims(query)
	own := func(id string) bool {
		e := s.environments[id]
		return id == query.Environment || o.Environment != nil && id == o.Environment.ID ||
			e.TaskID == query.TaskID && (strings.TrimSpace(e.WorkspacePath) == "" || core.EnvironmentClaim(e.TaskID, e.WorkspacePath, nil).Matches(query.Target))
	}
	for _, row := range sorted(s.sessions, func(row Session) bool { return row.EnvironmentID != "" && row.TaskID != query.TaskID }, nil) {
		lender, near := environments[row.EnvironmentID]
		if e, ok := s.environments[row.EnvironmentID]; ok && near {
			lender = e.TaskID
		}
		switch {
		case own(row.EnvironmentID):
			lender = ""
		case !near || lender == row.TaskID && claimants[lender]: // at home, and its claim is judged
			continue
		}
		o.Borrowers = append(o.Borrowers, core.Borrower{SessionID: row.ID, TaskID: row.TaskID, State: row.State, TaskTerminal: s.terminal(row.TaskID), Lender: lender})
	}
	if len(claims) > maxRights || len(o.Borrowers) > maxRights {
		return fmt.Errorf("more than %d tasks have a right to the directory", maxRights)
	}
	for c := range claims {
		o.Claims = append(o.Claims, c)
	}
	slices.SortFunc(o.Claims, func(a, b core.Claim) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return nil
}

func (s *Store) environmentOf(task string) *Environment {
	all := sorted(s.environments, func(e Environment) bool { return e.TaskID == task }, func(a, b Environment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

func claimOf(t core.Target) core.Claim {
	return core.Claim{Host: t.Host, Port: t.Port, User: t.User, Fingerprint: t.Fingerprint, TaskDir: t.TaskDir, OptedIn: t.Enabled}
}

// optIn answers the switch of the profiles the directory was launched by, and the
// kinds of build output that all of them let go.
func (s *Store) optIn(query core.Owner) (core.OptIn, string, error) {
	profiles := map[string]bool{}
	if j, ok := s.jobs[query.JobID]; ok {
		snapshot, err := core.ParseJobSnapshot(j.Snapshot)
		if err != nil {
			return "", "", err
		}
		for _, id := range snapshot.Profiles(query.Target) {
			profiles[id] = true
		}
	}
	for _, row := range s.launches {
		if row.TaskID != query.TaskID {
			continue
		}
		if launch, err := core.ParseLaunch(row.Metadata); err != nil || claimOf(launch.Target).Matches(query.Target) {
			profiles[strings.TrimSpace(row.ProfileID)], profiles[launch.Profile] = true, true
		}
	}
	delete(profiles, "")
	if len(profiles) == 0 {
		return core.Unknown, "", nil
	}
	kinds := query.Target.Disposable
	for id := range profiles {
		if !core.OptedIn([]byte(s.profiles[id].Config)) {
			return core.Off, "", nil
		}
		kinds = core.BothDisposable(kinds, core.DisposableIn([]byte(s.profiles[id].Config)))
	}
	return core.On, kinds, nil
}

// claims are what other tasks' launches, jobs and environments say about the directory, the
// tasks that have one, and the environments that lead there too, each with whose it is: those of the claimants,
// the ones their jobs copied, and the ones their sessions in the directory run in.
func (s *Store) claims(query core.Owner) (found map[core.Claim]bool, claimants map[string]bool, environments map[string]string) {
	found, claimants, environments = map[core.Claim]bool{}, map[string]bool{}, map[string]string{}
	running, open := map[string]bool{}, map[string]bool{}
	for _, j := range s.jobs {
		open[j.TaskID] = open[j.TaskID] || !over(j.State)
	}
	for _, row := range s.launches {
		launch, err := core.ParseLaunch(row.Metadata)
		c := claimOf(launch.Target)
		if err != nil {
			c = core.Claim{Unreadable: true}
		}
		c.TaskID, c.TaskTerminal, c.CleanupOpen = row.TaskID, s.terminal(row.TaskID), open[row.TaskID]
		if row.TaskID != query.TaskID && c.Matches(query.Target) {
			found[c], running[row.TaskID] = true, true
			environments[s.sessions[row.SessionID].EnvironmentID] = row.TaskID
		}
	}
	for _, j := range s.jobs {
		if j.TaskID == query.TaskID {
			continue
		}
		snapshot, err := core.ParseJobSnapshot(j.Snapshot)
		if err != nil {
			if !over(j.State) {
				found[core.Claim{TaskID: j.TaskID, TaskTerminal: s.terminal(j.TaskID), CleanupOpen: true, Stopped: !running[j.TaskID], Unreadable: true}] = true
			}
			continue
		}
		for _, t := range snapshot.Targets() {
			c := claimOf(t.Target)
			c.TaskID, c.TaskTerminal, c.Stopped, c.CleanupOpen = j.TaskID, s.terminal(j.TaskID), !running[j.TaskID], open[j.TaskID]
			c.OptedIn, c.Unreadable = c.OptedIn && t.Invalid == "", t.Unreadable && !over(j.State)
			if !(over(j.State) && t.Outcome == core.OutcomeRemoved) && c.Matches(query.Target) {
				found[c] = true
				if e := snapshot.Environment(); e != nil {
					environments[e.ID] = j.TaskID
				}
			}
		}
	}
	for id, e := range s.environments {
		if e.TaskID == query.TaskID || running[e.TaskID] || s.terminal(e.TaskID) || e.ExecutorType != "ssh" && e.ExecutorType != "" {
			continue
		}
		c := core.EnvironmentClaim(e.TaskID, e.WorkspacePath, []byte(s.profiles[e.ProfileID].ExecutorConfig))
		if c.CleanupOpen = open[e.TaskID]; c.Matches(query.Target) {
			found[c], environments[id] = true, e.TaskID
		}
	}
	for c := range found {
		claimants[c.TaskID] = true
	}
	for id, e := range s.environments {
		if claimants[e.TaskID] {
			environments[id] = e.TaskID
		}
	}
	return found, claimants, environments
}

func over(s ports.State) bool {
	return s == ports.Succeeded || s == ports.JobFailed || s == ports.Cancelled
}

// Begin implements ports.Row.
func (s *Store) Begin(ctx context.Context, query core.Begin) (b core.Begun) {
	err := s.locked(ctx, func() error {
		j, err := s.running(query.JobID, query.Attempt)
		switch {
		case err != nil || j.TaskID != query.TaskID || !s.terminal(query.TaskID):
			b = core.Begun{Ending: core.BeginWithdrawn, Detail: "the row is no longer this attempt's, or the task is open again"}
			return nil
		case s.stopAll:
			b = core.Begun{Ending: core.BeginHalted, Detail: "removals are stopped for this installation"}
			return nil
		}
		b = core.Begun{Ending: core.BeginRecorded}
		return s.edit(j, func(snapshot core.JobSnapshot) (core.JobSnapshot, error) {
			return snapshot.WithBegun(query)
		})
	})
	if err != nil {
		return core.Begun{Ending: core.BeginFailed, Detail: err.Error()}
	}
	return b
}

// Conclude implements ports.Row.
func (s *Store) Conclude(ctx context.Context, c ports.Conclusion) error {
	return s.locked(ctx, func() error {
		j, err := s.running(c.JobID, c.Attempt)
		if err != nil {
			return err
		}
		return s.edit(j, func(snapshot core.JobSnapshot) (core.JobSnapshot, error) {
			return c.Fold(snapshot)
		})
	})
}

func (s *Store) running(id string, attempt int) (ports.Job, error) {
	j, ok := s.jobs[id]
	if !ok || j.State != ports.Running || j.Attempts != attempt {
		return j, ports.ErrRowLost
	}
	return j, nil
}

func (s *Store) edit(j ports.Job, change func(core.JobSnapshot) (core.JobSnapshot, error)) error {
	snapshot, err := core.ParseJobSnapshot(j.Snapshot)
	if err != nil {
		return err
	}
	if snapshot, err = change(snapshot); err != nil {
		return err
	}
	j.Snapshot, j.UpdatedAt = snapshot.Bytes(), s.now()
	s.jobs[j.ID] = j
	return nil
}
