package porttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// twisted is an honest store in memory but for its fields.
type twisted struct {
	*memstore.Store
	ownership func(core.Owner, *core.Ownership)
	terminal  func(bool) bool
	begin     func(core.Begin, core.Begun) core.Begun // given what an honest store answers
	blind     bool                                    // a begin writes nothing
	conclude  func(error) error
	deaf      bool // an ended context is not noticed
	silent    bool // an outcome is not written

	end       func(w *twisted, tasks []string, cascade, deletes bool) ([]string, error)
	unarchive func(w *twisted, task string) error
	reconcile func(w *twisted, before time.Time) time.Time
	lease     func(w *twisted, worker string, hold []string) (ports.Job, bool, error)
	due       func([]ports.Job) []ports.Job
	beat      func(error) error
	stale     func(time.Duration) time.Duration
	finish    func(w *twisted, token ports.Token, end ports.Ending) error
	cancel    func(w *twisted, token ports.Token) error
	hooked    func() error
	sessions  func([]core.Running) []core.Running
	forget    func(w *twisted, task string, sessions []string) error
	keep      func(w *twisted, record core.Record) error
	desk      twistedDesk
}

func (w *twisted) live(ctx context.Context) context.Context {
	if w.deaf {
		return context.Background()
	}
	return ctx
}

func (w *twisted) Owner(ctx context.Context, q core.Owner) core.Ownership {
	o := w.Store.Owner(w.live(ctx), q)
	if w.ownership != nil {
		w.ownership(q, &o)
	}
	return o
}

func (w *twisted) Terminal(ctx context.Context, task string) (bool, error) {
	terminal, err := w.Store.Terminal(ctx, task)
	if w.terminal != nil {
		terminal = w.terminal(terminal)
	}
	return terminal, err
}

func (w *twisted) Begin(ctx context.Context, q core.Begin) core.Begun {
	if w.blind {
		return core.Begun{Ending: core.BeginRecorded}
	}
	b := w.Store.Begin(w.live(ctx), q)
	if w.begin != nil {
		b = w.begin(q, b)
	}
	return b
}

func (w *twisted) Conclude(ctx context.Context, c ports.Conclusion) error {
	if w.silent {
		return nil
	}
	err := w.Store.Conclude(w.live(ctx), c)
	if w.conclude != nil {
		err = w.conclude(err)
	}
	return err
}

func (w *twisted) Archive(ctx context.Context, tasks []string, cascade bool) ([]string, error) {
	if w.end != nil {
		return w.end(w, tasks, cascade, false)
	}
	return w.Store.Archive(w.live(ctx), tasks, cascade)
}

func (w *twisted) Delete(ctx context.Context, tasks []string, cascade bool) ([]string, error) {
	if w.end != nil {
		return w.end(w, tasks, cascade, true)
	}
	return w.Store.Delete(ctx, tasks, cascade)
}

func (w *twisted) Unarchive(ctx context.Context, task string, cascade bool) error {
	if w.unarchive != nil {
		return w.unarchive(w, task)
	}
	return w.Store.Unarchive(w.live(ctx), task, cascade)
}

func (w *twisted) Reconcile(ctx context.Context, before time.Time) (int, error) {
	if w.reconcile != nil {
		before = w.reconcile(w, before)
	}
	return w.Store.Reconcile(ctx, before)
}

func (w *twisted) Lease(ctx context.Context, worker string, hold []string) (ports.Job, bool, error) {
	if w.lease != nil {
		return w.lease(w, worker, hold)
	}
	return w.Store.Lease(w.live(ctx), worker, hold)
}

func (w *twisted) Due(ctx context.Context, limit int) ([]ports.Job, error) {
	all, err := w.Store.Due(ctx, limit)
	if w.due != nil {
		all = w.due(all)
	}
	return all, err
}

func (w *twisted) Beat(ctx context.Context, token ports.Token) error {
	err := w.Store.Beat(ctx, token)
	if w.beat != nil {
		err = w.beat(err)
	}
	return err
}

func (w *twisted) Recover(ctx context.Context, stale time.Duration) (int, error) {
	if w.stale != nil {
		stale = w.stale(stale)
	}
	return w.Store.Recover(ctx, stale)
}

func (w *twisted) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	if w.finish != nil {
		return w.finish(w, token, end)
	}
	return w.Store.Finish(ctx, token, end)
}

func (w *twisted) Cancel(ctx context.Context, token ports.Token) error {
	if w.cancel != nil {
		return w.cancel(w, token)
	}
	return w.Store.Cancel(ctx, token)
}

func (w *twisted) Hooked(ctx context.Context, token ports.Token, target core.Target, hook core.SessionHook) error {
	if w.hooked != nil {
		return w.hooked()
	}
	return w.Store.Hooked(ctx, token, target, hook)
}

func (w *twisted) Sessions(ctx context.Context, task string) ([]core.Running, error) {
	all, err := w.Store.Sessions(ctx, task)
	if w.sessions != nil {
		all = w.sessions(all)
	}
	return all, err
}

func (w *twisted) Forget(ctx context.Context, task string, sessions []string) error {
	if w.forget != nil {
		return w.forget(w, task, sessions)
	}
	return w.Store.Forget(ctx, task, sessions)
}

func (w *twisted) Keep(ctx context.Context, record core.Record) error {
	if w.keep != nil {
		return w.keep(w, record)
	}
	return w.Store.Keep(ctx, record)
}

// change rewrites a job as no store may.
func (w *twisted) change(id string, how func(*ports.Job)) {
	j, err := w.Store.Desk().Job(ctx, id)
	if err == nil {
		how(&j)
		w.PutJob(j)
	}
}

// everyJob rewrites all of them.
func (w *twisted) everyJob(how func(*ports.Job)) {
	all, _ := w.Store.Desk().Jobs(ctx, "", 1000)
	for _, j := range all {
		w.change(j.ID, how)
	}
}

type twistedDesk struct {
	ports.Desk
	profiles   func([]ports.Profile) []ports.Profile
	jobs       func([]ports.Job) []ports.Job
	kept       func([]ports.Kept) []ports.Kept
	retry      func(id string, err error) (string, error)
	cancel     func(w ports.Desk, id string) error
	judgeAgain func(id string, err error) (string, error)
	records    func([]ports.Filed) []ports.Filed
}

func (d twistedDesk) Profiles(ctx context.Context) ([]ports.Profile, error) {
	all, err := d.Desk.Profiles(ctx)
	if d.profiles != nil {
		all = d.profiles(all)
	}
	return all, err
}

func (d twistedDesk) Jobs(ctx context.Context, state ports.State, limit int) ([]ports.Job, error) {
	all, err := d.Desk.Jobs(ctx, state, limit)
	if d.jobs != nil {
		all = d.jobs(all)
	}
	return all, err
}

func (d twistedDesk) Kept(ctx context.Context) ([]ports.Kept, error) {
	all, err := d.Desk.Kept(ctx)
	if d.kept != nil {
		all = d.kept(all)
	}
	return all, err
}

func (d twistedDesk) Retry(ctx context.Context, id string) (string, error) {
	due, err := d.Desk.Retry(ctx, id)
	if d.retry != nil {
		return d.retry(id, err)
	}
	return due, err
}

func (d twistedDesk) Cancel(ctx context.Context, id string) error {
	if d.cancel != nil {
		return d.cancel(d.Desk, id)
	}
	return d.Desk.Cancel(ctx, id)
}

func (d twistedDesk) JudgeAgain(ctx context.Context, id string) (string, error) {
	again, err := d.Desk.JudgeAgain(ctx, id)
	if d.judgeAgain != nil {
		return d.judgeAgain(again, err)
	}
	return again, err
}

func (d twistedDesk) RecordsOf(ctx context.Context, job string) ([]ports.Filed, error) {
	all, err := d.Desk.RecordsOf(ctx, job)
	if d.records != nil {
		all = d.records(all)
	}
	return all, err
}

// dropping takes claims away.
func dropping(which func(core.Owner, core.Claim) bool) *twisted {
	return &twisted{ownership: func(q core.Owner, o *core.Ownership) {
		o.Claims = slices.DeleteFunc(o.Claims, func(c core.Claim) bool { return which(q, c) })
	}}
}

// switched answers one word for every profile.
func switched(now core.OptIn) *twisted {
	return &twisted{ownership: func(_ core.Owner, o *core.Ownership) { o.OptInNow = now }}
}

// claiming changes every claim.
func claiming(how func(*core.Claim)) *twisted {
	return &twisted{ownership: func(_ core.Owner, o *core.Ownership) {
		for i := range o.Claims {
			how(&o.Claims[i])
		}
	}}
}

// brokenRows has one store that breaks it for every clause about rows.
var brokenRows = map[string]func() *twisted{
	"a task with its own environment and an opted-in profile owns its directory": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) { o.Environment = nil }}
	},
	"an open task is not terminal, an absent one is":                                  func() *twisted { return &twisted{terminal: func(bool) bool { return true }} },
	"AC_D17: only the exact string true opts in, and a profile that is gone does not": func() *twisted { return switched(core.On) },
	"AC_D17: where nothing names a profile the switch is unknown":                     func() *twisted { return switched(core.Off) },
	"AC_D17: every profile the directory was launched by must be on":                  func() *twisted { return switched(core.On) },
	"what every profile of the directory lets go is told, and nothing the directory was not launched with": func() *twisted {
		return &twisted{ownership: func(q core.Owner, o *core.Ownership) { o.Disposable = q.Target.Disposable }} // whatever the profiles say now
	},
	"an environment that went to another task is told as it is": func() *twisted {
		return &twisted{ownership: func(q core.Owner, o *core.Ownership) { o.Environment.TaskID = q.TaskID }}
	},
	"an environment that is gone is no environment": func() *twisted {
		return &twisted{ownership: func(q core.Owner, o *core.Ownership) {
			o.Environment = &core.Environment{ID: "env-1", TaskID: q.TaskID}
		}}
	},
	"AC_D7: a session of another open task in our environment is a borrower, in whatever state": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) {
			o.Borrowers = slices.DeleteFunc(o.Borrowers, func(b core.Borrower) bool { return b.State == "IDLE" }) // as the host does
		}}
	},
	"AC_D7: a borrower's archived task does not keep the directory, and our own sessions are none": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) {
			for i := range o.Borrowers {
				o.Borrowers[i].TaskTerminal = false
			}
		}}
	},
	"AC_D7: a session in the environment of another claimant is a borrower too, whether or not the claimant goes on": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) {
			o.Borrowers = slices.DeleteFunc(o.Borrowers, func(b core.Borrower) bool { return b.Lender != "" }) // our own environment alone is looked at
		}}
	},
	"AC_D7: a session beside a claimant's, in an environment that neither owns, is a borrower too": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) {
			o.Borrowers = slices.DeleteFunc(o.Borrowers, func(b core.Borrower) bool { // only the claimants' own rows are looked at
				return b.Lender != "" && !slices.ContainsFunc(o.Claims, func(c core.Claim) bool { return c.TaskID == b.Lender })
			})
		}}
	},
	"AC_D7: a session in the environment of a task that claims nothing is no borrower": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) {
			o.Borrowers = append(o.Borrowers, core.Borrower{SessionID: "s-3", TaskID: "t-3", Lender: "t-2"})
		}}
	},
	"AC_D7: a session in another environment of our task is a borrower too, where that may lead to the directory": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) { o.Borrowers = nil }} // the newest environment alone is looked at
	},
	"AC_003_2: an open task whose environment names the directory has a claim, also where its launch's row was dropped": func() *twisted {
		return dropping(func(_ core.Owner, c core.Claim) bool { return c.Host == "" }) // whoever names no host is passed over
	},
	"AC_D8: a target that does not say where it leads is a claim while its job has not ended": func() *twisted {
		return dropping(func(_ core.Owner, c core.Claim) bool { return c.Unreadable })
	},
	"AC_D8: another open task's launch into the directory is a claim, however it is spelled": func() *twisted {
		return dropping(func(q core.Owner, c core.Claim) bool { return !c.Unreadable && c.TaskDir != q.Target.TaskDir })
	},
	"a letter that folds to one of ours is the same name": func() *twisted {
		return dropping(func(q core.Owner, c core.Claim) bool { return !strings.HasSuffix(c.TaskDir, "fix-login") })
	},
	"launches elsewhere, without a directory and of our own task are no claims": func() *twisted {
		return &twisted{ownership: func(q core.Owner, o *core.Ownership) {
			o.Claims = append(o.Claims, core.Claim{TaskID: "t-2", Unreadable: true})
		}}
	},
	"AC_D6, AC_D32: a terminal task's launch that is left is still closing":                      func() *twisted { return claiming(func(c *core.Claim) { c.Stopped = true }) },
	"AC_D6: an unfinished cleanup job of another task that names the directory is still closing": func() *twisted { return claiming(func(c *core.Claim) { c.CleanupOpen = false }) },
	"AC_D6: an ended task that had not opted in keeps what it left; one that had does not":       func() *twisted { return claiming(func(c *core.Claim) { c.OptedIn = true }) },
	"an open task whose directory was kept has a claim although its launch is forgotten":         func() *twisted { return dropping(func(_ core.Owner, c core.Claim) bool { return c.Stopped }) },
	"a snapshot that cannot be read is a claim while its job has not ended":                      func() *twisted { return dropping(func(_ core.Owner, c core.Claim) bool { return c.Unreadable }) },
	"jobs of another shape and rows from before the feature claim nothing": func() *twisted {
		return &twisted{ownership: func(_ core.Owner, o *core.Ownership) { o.Claims = []core.Claim{{TaskID: "t-2", Unreadable: true}} }}
	},
	"more claims than the bound are an error, not an answer cut short":                                                 func() *twisted { return &twisted{ownership: func(_ core.Owner, o *core.Ownership) { o.Error = "" }} },
	"an ended context is an error, never an answer":                                                                    func() *twisted { return &twisted{deaf: true} },
	"a begin is in the row's snapshot and nothing else changed":                                                        func() *twisted { return &twisted{blind: true} },
	"AC_D11: a begin fails and writes nothing where the row's directory was edited since the attempt was made from it": func() *twisted { return &twisted{blind: true} },
	"a begin at a directory the row does not name fails":                                                               func() *twisted { return &twisted{blind: true} },
	"002.7: an outcome is in the row in the host's words; a failure leaves the begin, a skip ends it":                  func() *twisted { return &twisted{silent: true} },
	"an outcome for another attempt, or a row in another state, is lost and writes nothing":                            func() *twisted { return &twisted{conclude: func(error) error { return nil }} },
	"AC_D11: a begin is withdrawn when the row is another attempt's, in another state or gone, and when the task is open again": func() *twisted {
		return &twisted{begin: func(q core.Begin, b core.Begun) core.Begun {
			if b.Ending == core.BeginWithdrawn {
				b.Ending = core.BeginFailed // which would be tried again
			}
			return b
		}}
	},
}

// afterEnd lets tasks end honestly and then changes what was made.
func afterEnd(how func(w *twisted, ids []string)) *twisted {
	return &twisted{end: func(w *twisted, tasks []string, cascade, deletes bool) ([]string, error) {
		do := w.Store.Archive
		if deletes {
			do = w.Store.Delete
		}
		ids, err := do(ctx, tasks, cascade)
		if err == nil {
			how(w, ids)
		}
		return ids, err
	}}
}

// snapshots replaces text in the snapshots of the jobs that tasks ended with.
func snapshots(pairs ...string) *twisted {
	return afterEnd(func(w *twisted, ids []string) {
		for _, id := range ids {
			w.change(id, func(j *ports.Job) { j.Snapshot = []byte(strings.NewReplacer(pairs...).Replace(string(j.Snapshot))) })
		}
	})
}

// leasing changes what was leased, in the row and in the answer.
func leasing(how func(*ports.Job)) *twisted {
	return &twisted{lease: func(w *twisted, worker string, hold []string) (ports.Job, bool, error) {
		j, ok, err := w.Store.Lease(ctx, worker, hold)
		if ok {
			how(&j)
			w.PutJob(j)
		}
		return j, ok, err
	}}
}

// anyway leases whatever job there is.
func anyway(which func(ports.Job) bool) *twisted {
	return &twisted{lease: func(w *twisted, worker string, hold []string) (ports.Job, bool, error) {
		if j, ok, err := w.Store.Lease(ctx, worker, hold); ok || err != nil {
			return j, ok, err
		}
		all, _ := w.Store.Desk().Jobs(ctx, "", 1000)
		for _, j := range all {
			if which(j) {
				return j, true, nil
			}
		}
		return ports.Job{}, false, nil
	}}
}

// finishing lets an attempt end honestly and then changes the row.
func finishing(how func(*ports.Job)) *twisted {
	return &twisted{finish: func(w *twisted, token ports.Token, end ports.Ending) error {
		err := w.Store.Finish(ctx, token, end)
		if err == nil {
			w.change(token.JobID, how)
		}
		return err
	}}
}

// opening un-archives whatever stands against it and leaves jobs as how says.
func opening(how func(*ports.Job)) *twisted {
	return &twisted{unarchive: func(w *twisted, task string) error {
		w.everyJob(how)
		w.PutTask(memstore.Task{ID: task})
		return nil
	}}
}

var brokenStores = map[string]func() *twisted{
	"4.6: prepare, commit, activate make one pending job with the directory as it was launched": func() *twisted { return snapshots(`"port":22`, `"port":"22"`) },
	"006: an opt-in is frozen at launch, and one launch without it disables the directory": func() *twisted {
		return afterEnd(func(w *twisted, ids []string) {
			w.change(ids[0], func(j *ports.Job) {
				j.Snapshot = []byte(strings.Replace(string(j.Snapshot), `"task_dir":`, `"enabled":true,"task_dir":`, 1))
			})
		})
	},
	"a launch that cannot be read disables every directory of its task": func() *twisted {
		return snapshots(`"task_dir":`, `"enabled":true,"task_dir":`)
	},
	"where no launch is left the environment's path is told, without an opt-in": func() *twisted { return snapshots(`"ssh_task_dirs"`, `"none"`) },
	"an unknown task is not found, an archived one is refused, and the others stay as they were": func() *twisted {
		return &twisted{end: func(w *twisted, tasks []string, cascade, _ bool) (ids []string, err error) {
			for _, task := range tasks { // one after the other, and the first stays ended
				made, oneErr := w.Store.Archive(ctx, []string{task}, cascade)
				ids, err = append(ids, made...), errors.Join(err, oneErr)
			}
			return ids, err
		}}
	},
	"a deleted task is gone with its rows, and its job keeps the environment's copy": func() *twisted { return snapshots(`"task_environment"`, `"environment"`) },
	"a deleted task's environment goes to a surviving borrower":                      func() *twisted { return afterEnd(func(w *twisted, _ []string) { w.Drop("env-1") }) },
	"AC_D37: a cascade takes the tasks below along, with one cascade id, parents first": func() *twisted {
		return afterEnd(func(w *twisted, ids []string) { slices.Reverse(ids) })
	},
	"without cascade the tasks below stay": func() *twisted {
		return &twisted{end: func(w *twisted, tasks []string, _, _ bool) ([]string, error) {
			return w.Store.Archive(ctx, tasks, true)
		}}
	},
	"4.6: a lease counts the attempt, clears the time and makes the job running": func() *twisted { return leasing(func(j *ports.Job) { j.Attempts-- }) },
	"the oldest due job is leased first": func() *twisted {
		return &twisted{due: func(all []ports.Job) []ports.Job { slices.Reverse(all); return all }}
	},
	"AC_D14, AC_D31: other triggers and unknown states are never leased, recovered or settled": func() *twisted {
		return anyway(func(j ports.Job) bool { return j.State == ports.Pending })
	},
	"AC_D37: two jobs of one task run one after the other": func() *twisted {
		return anyway(func(j ports.Job) bool { return j.State == ports.Pending })
	},
	"jobs whose hosts are held are passed over, however many": func() *twisted {
		return &twisted{lease: func(w *twisted, worker string, _ []string) (ports.Job, bool, error) {
			return w.Store.Lease(ctx, worker, nil)
		}}
	},
	"a retry is not due before its time": func() *twisted { return finishing(func(j *ports.Job) { j.NextAttemptAt = time.Now() }) },
	"4.6: an attempt ends succeeded, failed or waiting, and only by its holder": func() *twisted {
		return &twisted{finish: func(w *twisted, token ports.Token, end ports.Ending) error {
			token.Worker = "w-1" // whoever it is
			return w.Store.Finish(ctx, token, end)
		}}
	},
	"4.6: a job found un-archived is cancelled by its holder": func() *twisted {
		return &twisted{cancel: func(w *twisted, token ports.Token) error {
			return w.Store.Finish(ctx, token, ports.Ending{State: ports.RetryWait})
		}}
	},
	"an attempt that was no try is noted with its end, once, and a job judged again has all its tries": func() *twisted {
		return &twisted{finish: func(w *twisted, token ports.Token, end ports.Ending) error {
			end.Uncounted = false
			return w.Store.Finish(ctx, token, end)
		}}
	},
	"4.6: a stale lease is recovered with its attempts, a fresh one is not, and the old holder has lost": func() *twisted {
		return &twisted{stale: func(time.Duration) time.Duration { return 0 }}
	},
	"a running row without a lease, such as one from before a crash, is recovered": func() *twisted {
		return &twisted{lease: func(w *twisted, worker string, _ []string) (ports.Job, bool, error) { return ports.Job{}, false, nil }}
	},
	"a cleanup script's ending is in the row, under its directory": func() *twisted { return &twisted{hooked: func() error { return nil }} },
	"sessions are listed newest first, marked stopped, and forgotten by name only": func() *twisted {
		return &twisted{forget: func(w *twisted, _ string, sessions []string) error {
			for _, id := range sessions { // whosever it is
				w.Drop(id)
			}
			return nil
		}}
	},
	"004.3, 4.6: un-archive cancels a prepared, pending, waiting or running job that has not begun": func() *twisted {
		return opening(func(j *ports.Job) {
			if j.State != ports.Running {
				j.State, j.CompletedAt = ports.Cancelled, made
			}
		})
	},
	"4.6: un-archive leaves ended jobs and delete jobs as they are": func() *twisted {
		return opening(func(j *ports.Job) { j.State, j.CompletedAt = ports.Cancelled, made })
	},
	"AC_D11: un-archive is refused, changing nothing, while a removal has begun and not ended": func() *twisted {
		return opening(func(j *ports.Job) { j.State, j.CompletedAt = ports.Cancelled, made })
	},
	"un-archive of an open or unknown task is refused": func() *twisted { return opening(func(*ports.Job) {}) },
	"4.6: a prepared row of a committed change is activated, of one that was not made cancelled once it is old or marked": func() *twisted {
		return &twisted{reconcile: func(_ *twisted, before time.Time) time.Time { return before.Add(time.Hour) }}
	},
	"a delete after an archive makes a second job": func() *twisted {
		return &twisted{end: func(w *twisted, tasks []string, cascade, deletes bool) ([]string, error) {
			if !deletes {
				return w.Store.Archive(ctx, tasks, cascade)
			}
			all, _ := w.Store.Desk().Jobs(ctx, "", 1)
			w.everyJob(func(j *ports.Job) { j.State, j.CompletedAt = ports.Cancelled, made })
			return []string{all[0].ID}, nil
		}}
	},
	"the stop-all switch halts a begin and writes nothing": func() *twisted { return &twisted{blind: true} },
	"a profile's switch is written as true or false and everything else in its config stays": func() *twisted {
		return &twisted{desk: twistedDesk{profiles: func(all []ports.Profile) []ports.Profile {
			for i := range all {
				all[i].Reclaim = strings.ToLower(strings.TrimSpace(all[i].Reclaim)) // which shows on what is off
			}
			return all
		}}}
	},
	"a profile's kinds of build output are written in order, a word that is none refuses them all": func() *twisted {
		return &twisted{desk: twistedDesk{profiles: func(all []ports.Profile) []ports.Profile {
			for i := range all {
				kinds := strings.Split(all[i].Disposable, ",")
				slices.Reverse(kinds)
				all[i].Disposable = strings.Join(kinds, ",")
			}
			return all
		}}}
	},
	"jobs are listed newest first, by state, and found by id": func() *twisted {
		return &twisted{desk: twistedDesk{jobs: func(all []ports.Job) []ports.Job { slices.Reverse(all); return all }}}
	},
	"job retry makes a waiting job due and a failed one into a new job; others are refused": func() *twisted {
		return &twisted{desk: twistedDesk{retry: func(id string, _ error) (string, error) { return id, nil }}}
	},
	"job cancel ends a waiting job, and none that runs, ended or began a removal": func() *twisted {
		return &twisted{desk: twistedDesk{cancel: func(d ports.Desk, id string) error {
			if err := d.Cancel(ctx, id); errors.Is(err, ports.ErrNotFound) {
				return err
			}
			return nil
		}}}
	},
	"002.7, D29: a kept directory is listed with its reason and judged again by a new job": func() *twisted {
		return &twisted{desk: twistedDesk{kept: func(all []ports.Kept) []ports.Kept {
			for i := range all {
				all[i].Result.Cause = ""
			}
			return all
		}}}
	},
	"a directory of a task that is open again is not judged again": func() *twisted {
		return &twisted{desk: twistedDesk{judgeAgain: func(id string, _ error) (string, error) { return id, nil }}}
	},
	"every attempt's record is found again, newest first, with the kept directory": func() *twisted {
		return &twisted{keep: func(w *twisted, record core.Record) error {
			if record.Snapshot.Attempt == 1 {
				return nil // only the last one counts
			}
			return w.Store.Keep(ctx, record)
		}}
	},
	"an ended context changes nothing": func() *twisted { return &twisted{deaf: true} },
}

// memory seeds a store in memory.
type memory struct{ *memstore.Store }

func (m memory) PutTask(_ testing.TB, row Task) {
	t := memstore.Task{ID: row.ID, Title: row.Title, Parent: row.Parent}
	if row.Archived {
		t.ArchivedAt = time.Now()
	}
	m.Store.PutTask(t)
}

func (m memory) PutEnvironment(_ testing.TB, row EnvironmentRow) {
	m.Store.PutEnvironment(memstore.Environment{ID: row.ID, TaskID: row.TaskID, ExecutorType: "ssh", ProfileID: row.ProfileID, WorkspacePath: row.WorkspacePath})
}

func (m memory) PutSession(_ testing.TB, row SessionRow) { m.Store.PutSession(memstore.Session(row)) }

func (m memory) PutLaunch(_ testing.TB, row LaunchRow) {
	m.Store.PutLaunch(memstore.Launch{Running: core.Running{SessionID: row.SessionID, TaskID: row.TaskID, Runtime: row.Runtime, Status: row.Status, Metadata: []byte(row.Metadata)},
		ProfileID: row.ProfileID, UpdatedAt: row.Updated})
}

func (m memory) PutProfile(_ testing.TB, id, executor, profile string) {
	m.Store.PutProfile(memstore.Profile{ID: id, Name: id, Executor: id, ExecutorConfig: executor, Config: profile})
}

func (m memory) PutJob(_ testing.TB, j ports.Job) { m.Store.PutJob(j) }

func (m memory) GetJob(t testing.TB, id string) ports.Job {
	j, err := m.Store.Desk().Job(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (m memory) Archived(t testing.TB, task string, archived bool) {
	m.PutTask(t, Task{ID: task, Archived: archived})
}

func (m memory) Remove(_ testing.TB, _, id string) { m.Drop(id) }

func TestEveryStorageClauseHoldsForAnHonestStoreAndCanFail(t *testing.T) {
	type promise struct {
		name   string
		prove  func(testing.TB, *twisted)
		broken map[string]func() *twisted
	}
	var all []promise
	for _, c := range rowClauses {
		all = append(all, promise{c.sentence, func(t testing.TB, w *twisted) {
			c.prove(&rowBench{TB: t, rows: w, seed: memory{w.Store}})
		}, brokenRows})
	}
	for _, c := range storageClauses {
		all = append(all, promise{c.sentence, func(t testing.TB, w *twisted) {
			c.prove(&bench{rowBench: &rowBench{TB: t, rows: w, seed: memory{w.Store}}, store: w, desk: w.desk})
		}, brokenStores})
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			check := clause[*twisted]{p.name, p.prove}
			open := func(w *twisted) *twisted {
				w.Store = memstore.New(time.Now)
				w.desk.Desk = w.Store.Desk()
				return w
			}
			if wrong := failures(t, check, open(&twisted{})); len(wrong) > 0 {
				t.Errorf("an honest store fails: %.500q", wrong)
			}
			broken, exists := p.broken[p.name]
			if !exists {
				t.Fatal("no store breaks this clause")
			}
			if wrong := failures(t, check, open(broken())); len(wrong) == 0 {
				t.Error("a broken store passes")
			}
		})
	}
	if broken := len(brokenRows) + len(brokenStores); broken != len(all) {
		t.Errorf("%d broken stores for %d clauses", broken, len(all))
	}
}
