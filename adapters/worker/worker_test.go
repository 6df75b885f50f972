package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

func TestOnceRunsWhatIsDueAndSaysWhatCameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j1", "t1", "a")
		q.add("j2", "t2", "a")
		w := on(q, "w", nothingRuns, func(_ context.Context, j job.Job) (job.Report, error) {
			if j.ID == "j2" {
				return job.Report{}, failing(core.Unreachable)
			}
			return job.Report{Targets: []job.TargetReport{{Result: core.Result{Outcome: core.OutcomeRemoved}, Attempted: true}}}, nil
		})
		got, err := w.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b Ended) int { return strings.Compare(a.ID, b.ID) })
		want := []Ended{
			{ID: "j1", TaskID: "t1", State: ports.Succeeded, Attempts: 1, Results: []core.Result{{Outcome: core.OutcomeRemoved}}},
			{ID: "j2", TaskID: "t2", State: ports.RetryWait, Attempts: 1, Results: []core.Result{}, Delay: time.Minute, Error: got[1].Error},
		}
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(got[1].Error, string(core.Unreachable)) {
			t.Error(diff, got[1].Error)
		}
		raw, err := json.Marshal(got[1])
		if err != nil || string(raw) != `{"id":"j2","task_id":"t2","state":"retry_wait","attempts":1,"results":[]}` {
			t.Errorf("%s %v", raw, err)
		}
		if again, err := w.Once(t.Context()); err != nil || len(again) != 0 {
			t.Errorf("nothing is due, but %v %v", again, err)
		}
	})
}

func TestAC_005_2_AFailedAttemptIsRetriedAfterTheHostsDelaysAndTheEighthIsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		w := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) { return job.Report{}, failing(core.Unreachable) })
		delays := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour}
		for i, delay := range delays {
			if _, err := w.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := q.row("j")
			if wait := time.Until(r.NextAttemptAt); r.State != ports.RetryWait || r.Attempts != i+1 || wait != delay || !strings.Contains(r.LastError, "unreachable") {
				t.Errorf("attempt %d: %s after %d attempts, in %s, %q", i+1, r.State, r.Attempts, wait, r.LastError)
			}
			time.Sleep(delay - time.Second)
			if early, _ := w.Once(t.Context()); len(early) != 0 {
				t.Errorf("attempt %d came a second early", i+2)
			}
			time.Sleep(time.Second)
		}
		if _, err := w.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := q.row("j"); r.State != ports.JobFailed || r.Attempts != 8 || r.LastError == "" {
			t.Errorf("after the eighth failure: %s %d %q", r.State, r.Attempts, r.LastError)
		}
	})
}

// What an operator holds is tried again for as long as it is held; what fails is
// tried eight times, whatever comes between, and every attempt has its own token.
func TestAHoldIsNoneOfAJobsEightTries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		course := rapid.SliceOfN(rapid.SampledFrom([]string{"held", "held", "unreachable", "both", "a shutdown"}), 0, 40).Draw(rt, "course")
		synctest.Test(t, func(t *testing.T) {
			q := &queue{}
			q.add("j", "t", "a", "b")
			failures, holds := 0, 0
			try := func(what string) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				before := q.row("j")
				_, err := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) {
					switch what {
					case "held":
						return job.Report{}, errors.Join(failing(core.PolicyHeld), failing(core.PolicyHeld))
					case "both":
						return job.Report{}, errors.Join(failing(core.PolicyHeld), failing(core.Unreachable))
					case "a shutdown":
						stop()
					}
					return job.Report{}, failing(core.Unreachable)
				}).Once(ctx)
				if err != nil {
					rt.Fatal(err)
				}
				wait := time.Duration(0)
				switch what {
				case "held":
					holds++
					wait = core.HoldAfter(holds)
				case "a shutdown":
					holds++
				default:
					failures++
					wait, _ = core.RetryAfter(failures)
				}
				want, now := ports.RetryWait, q.row("j")
				if failures == 8 {
					want = ports.JobFailed
				}
				if now.State != want || now.Attempts != before.Attempts+1 || want == ports.RetryWait && time.Until(now.NextAttemptAt) != wait {
					rt.Fatalf("%s, after %d failures and %d that were none: %s, attempt %d, in %s and not in %s", what, failures, holds, now.State, now.Attempts, time.Until(now.NextAttemptAt), wait)
				}
				time.Sleep(time.Until(now.NextAttemptAt))
			}
			for _, what := range course {
				if failures < 8 {
					try(what)
				}
			}
			for failures < 8 {
				try("unreachable")
			}
		})
	})
}

func TestAC_D2_AJobIsFinalOnlyWhenEveryFailureIs(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want ports.State
	}{
		{"every target finally", errors.Join(failing(core.PathRefused), failing(core.NoPin)), ports.JobFailed},
		{"one for the other's sake", errors.Join(failing(core.PathRefused), failing(core.Unreachable)), ports.RetryWait},
		{"storage besides", errors.Join(failing(core.PathRefused), errors.New("disk full")), ports.RetryWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &queue{}
				q.add("j", "t", "a")
				if _, err := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) { return job.Report{}, c.err }).Once(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := q.row("j").State; got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestAC_005_4_NeitherASkipNorAFailureKeepsTheRestOfTheCleanupFromHappening(t *testing.T) {
	for name, err := range map[string]error{"a skip": nil, "a failure": failing(core.Unreachable), "a final failure": failing(core.PathRefused)} {
		synctest.Test(t, func(t *testing.T) {
			q := &queue{live: map[string][]core.Running{"t": {{SessionID: "s1"}, {SessionID: "s2"}}}}
			q.add("j", "t", "a")
			w := on(q, "w", func(context.Context, ports.Job, ports.Token) (Stopped, error) {
				return Stopped{Stops: job.StopsSucceeded, Hook: core.HookNone, Sessions: []string{"s1", "s2"}}, nil
			}, func(context.Context, job.Job) (job.Report, error) { return job.Report{}, err })
			if _, err := w.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := q.live["t"]; len(left) != 0 {
				t.Errorf("after %s these rows are left: %v", name, left)
			}
		})
	}
}

func TestAC_D19_AFailedStopKeepsItsRowAndThePhaseDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{live: map[string][]core.Running{"t": {{SessionID: "s1"}, {SessionID: "s2"}}}}
		q.add("j", "t", "a")
		w := on(q, "w", func(context.Context, ports.Job, ports.Token) (Stopped, error) {
			return Stopped{Stops: job.StopsFailed, Sessions: []string{"s2"}}, errors.New("the helper lives on")
		}, func(context.Context, job.Job) (job.Report, error) {
			t.Error("the phase ran")
			return job.Report{}, nil
		})
		if _, err := w.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := q.live["t"]; len(left) != 1 || left[0].SessionID != "s1" {
			t.Errorf("left %v", left)
		}
		if r := q.row("j"); r.State != ports.RetryWait || !strings.Contains(r.LastError, "lives on") {
			t.Errorf("%s %q", r.State, r.LastError)
		}
	})
}

func TestAC_004_3_AnUnArchiveSeenBeforeOrAfterTheStopsCancelsTheJob(t *testing.T) {
	for _, when := range []string{"before the stops", "after the stops", "in the phase"} {
		synctest.Test(t, func(t *testing.T) {
			q := &queue{alive: map[string]bool{"t": when == "before the stops"}, live: map[string][]core.Running{"t": {{SessionID: "s"}}}}
			q.add("j", "t", "a")
			w := on(q, "w", func(context.Context, ports.Job, ports.Token) (Stopped, error) {
				if when == "before the stops" {
					t.Errorf("%s: sessions were stopped", when)
				}
				q.alive["t"] = when == "after the stops"
				return Stopped{Stops: job.StopsSucceeded, Hook: core.HookNone, Sessions: []string{"s"}}, nil
			}, func(context.Context, job.Job) (job.Report, error) {
				if when != "in the phase" {
					t.Errorf("%s: the phase ran", when)
				}
				return job.Report{Withdrawn: true}, nil
			})
			got, err := w.Once(t.Context())
			if err != nil || len(got) != 1 || got[0].State != ports.Cancelled || q.row("j").State != ports.Cancelled {
				t.Errorf("%s: %v %v, the row is %s", when, got, err, q.row("j").State)
			}
			if len(q.live["t"]) != 1 {
				t.Errorf("%s: the task's session was forgotten", when)
			}
		})
	}
}

func TestAC_D36_TheLeaseIsRenewedEvery20SecondsForAsLongAsTheJobTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		var beats []time.Duration
		start := time.Now()
		q.fault = func(call string) error {
			if call == "beat" {
				beats = append(beats, time.Since(start))
			}
			return nil
		}
		w := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) {
			time.Sleep(50 * time.Second)
			return job.Report{}, nil
		})
		if _, err := w.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]time.Duration{20 * time.Second, 40 * time.Second}, beats); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAWorkerThatLostItsLeaseStopsAndWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{live: map[string][]core.Running{}}
		q.add("j", "t", "a")
		w := on(q, "w", nothingRuns, func(ctx context.Context, _ job.Job) (job.Report, error) {
			q.mu.Lock()
			q.rows[0].Attempts++ // another worker has it
			q.rows[0].worker = "another"
			q.mu.Unlock()
			<-ctx.Done()
			return job.Report{}, ctx.Err()
		})
		start := time.Now()
		got, err := w.Once(t.Context())
		if err != nil || len(got) != 1 || got[0].State != ports.Running {
			t.Errorf("%v %v", got, err)
		}
		if len(q.writes) != 0 {
			t.Errorf("it wrote %v", q.writes)
		}
		if took := time.Since(start); took > 21*time.Second {
			t.Errorf("it noticed after %s", took)
		}
	})
}

func TestALeaseThatCannotBeRenewedIsGivenUpBeforeAnotherWorkerMayTakeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		q.fault = func(call string) error {
			if call == "beat" {
				return errors.New("the database is away")
			}
			return nil
		}
		start := time.Now()
		var stopped time.Duration
		w := on(q, "w", nothingRuns, func(ctx context.Context, _ job.Job) (job.Report, error) {
			<-ctx.Done()
			stopped = time.Since(start)
			return job.Report{}, ctx.Err()
		})
		if _, err := w.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if stopped < 40*time.Second || stopped >= time.Minute {
			t.Errorf("it stopped after %s", stopped)
		}
		if len(q.writes) != 0 {
			t.Errorf("it wrote %v", q.writes)
		}
	})
}

func TestAHeartbeatThatFailsNowAndThenCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		n := 0
		q.fault = func(call string) error {
			if call == "beat" {
				if n++; n%3 != 0 {
					return errors.New("the database is away")
				}
			}
			return nil
		}
		w := on(q, "w", nothingRuns, func(ctx context.Context, _ job.Job) (job.Report, error) {
			select {
			case <-time.After(10 * time.Minute):
				return job.Report{}, nil
			case <-ctx.Done():
				return job.Report{}, ctx.Err()
			}
		})
		if _, err := w.Once(t.Context()); err != nil || q.row("j").State != ports.Succeeded {
			t.Errorf("%v, the row is %s", err, q.row("j").State)
		}
	})
}

// A full host's queue is looked through once a poll and not once a job.
func TestAQueueForOneFullHostIsNotLookedThroughForEveryJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 400
		q := &queue{}
		for i := range jobs {
			q.add(fmt.Sprint("j", i), fmt.Sprint("t", i), "a")
		}
		looks, began := 0, time.Now()
		q.fault = func(call string) error {
			if call == "lease" {
				looks++
			}
			return nil
		}
		w := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) {
			time.Sleep(100 * time.Millisecond)
			return job.Report{}, nil
		})
		ended, err := w.Once(t.Context())
		if err != nil || len(ended) != jobs {
			t.Fatal(len(ended), err)
		}
		// Each job is leased by one look; only what finds nothing comes on top.
		if looks > jobs+jobs/20 {
			t.Errorf("%d looks for %d jobs in %s", looks, jobs, time.Since(began))
		}
	})
}

func TestAHostThatSwallowsEverythingDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		for i := range 500 {
			q.add(fmt.Sprint("hole", i), fmt.Sprint("h", i), "black-hole")
		}
		for i := range 100 {
			q.add(fmt.Sprint("good", i), fmt.Sprint("g", i), "good")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var good atomic.Int32
		w := on(q, "w", nothingRuns, func(ctx context.Context, j job.Job) (job.Report, error) {
			if strings.HasPrefix(j.ID, "hole") {
				<-ctx.Done()
				return job.Report{}, ctx.Err()
			}
			time.Sleep(100 * time.Millisecond)
			if good.Add(1) == 100 {
				cancel()
			}
			return job.Report{}, nil
		})
		start := time.Now()
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); good.Load() != 100 || took > 4*time.Second {
			t.Errorf("%d jobs of the good host in %s", good.Load(), took)
		}
		running := 0
		for key := range q.leased {
			if strings.HasPrefix(key, "hole") {
				running++
			}
		}
		if running != 4 {
			t.Errorf("%d jobs of the dead host were started, not 4", running)
		}
	})
}

func TestAtAShutdownNothingMoreIsLeasedAndWhatIsInFlightIsDueAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{live: map[string][]core.Running{"t": {{SessionID: "s"}}}}
		q.add("j", "t", "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := on(q, "w", func(context.Context, ports.Job, ports.Token) (Stopped, error) {
			return Stopped{Stops: job.StopsSucceeded, Hook: core.HookNone, Sessions: []string{"s"}}, nil
		}, func(ctx context.Context, _ job.Job) (job.Report, error) {
			cancel(errors.New("the machine goes down"))
			q.add("later", "t2", "a")
			<-ctx.Done()
			return job.Report{}, fmt.Errorf("%w: %w", job.ErrCutShort, context.Cause(ctx))
		})
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		r := q.row("j")
		if r.State != ports.RetryWait || r.NextAttemptAt.After(time.Now()) || !strings.Contains(r.LastError, "goes down") {
			t.Errorf("%s in %s: %q", r.State, time.Until(r.NextAttemptAt), r.LastError)
		}
		if got := q.row("later").State; got != ports.Pending {
			t.Errorf("a job was leased during the shutdown: %s", got)
		}
		if len(q.live["t"]) != 1 {
			t.Error("the session was forgotten during the shutdown")
		}
	})
}

func TestAShutdownWaitsNoLongerThanItsGraceForAPortThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		w := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) {
			cancel()
			<-release
			return job.Report{}, nil
		})
		start := time.Now()
		err := w.Run(ctx)
		if took := time.Since(start); !errors.Is(err, ErrAbandoned) || took != 30*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		close(release)
	})
}

// A worker whose heartbeats failed makes its own lease due again, and may lease
// the job anew before it has put the earlier attempt down.
func TestAJobThatIsInTheSameHandsTwiceIsWaitedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		q.fault = func(call string) error {
			if call == "beat" {
				return errors.New("the database is away")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var first, second atomic.Bool
		w := on(q, "w", nothingRuns, func(ctx context.Context, j job.Job) (job.Report, error) {
			ended := &second
			switch j.Attempt {
			case 1:
				ended = &first
				<-ctx.Done()
				time.Sleep(time.Minute) // a port that is slow to give up
			default:
				cancel()
			}
			ended.Store(true)
			return job.Report{}, nil
		})
		w.Grace = time.Hour
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if !first.Load() || !second.Load() {
			t.Errorf("of two attempts in flight at the shutdown these were waited for: %t, %t", first.Load(), second.Load())
		}
	})
}

func TestOnlyStaleLeasesAreRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		if _, ok, err := q.Lease(t.Context(), "a worker that was killed", nil); !ok || err != nil {
			t.Fatal(ok, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var at time.Duration
		w := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) {
			at = time.Since(start)
			cancel()
			return job.Report{}, nil
		})
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if at < time.Minute || at > 70*time.Second {
			t.Errorf("it was taken after %s", at)
		}
		if r := q.row("j"); r.Attempts != 2 {
			t.Errorf("%d attempts", r.Attempts)
		}
	})
}

// settled tells what a worker asks to be settled.
type settled func(before time.Time) (int, error)

func (s settled) Reconcile(_ context.Context, before time.Time) (int, error) { return s(before) }

func TestPreparedJobsThatACrashLeftAreSettledWhileTheWorkerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		ctx, cancel := context.WithCancel(t.Context())
		w := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) { return job.Report{}, nil })
		var asked int
		w.Prepared = settled(func(before time.Time) (int, error) {
			if left := time.Since(before); left != 15*time.Minute {
				t.Errorf("a row is left to whoever prepared it for %s", left)
			}
			if asked++; asked == 1 {
				return 0, errors.New("the database is away") // no reason to stop working
			}
			q.add("j", "t", "a")
			if asked == 3 {
				cancel()
			}
			return 1, nil
		})
		start := time.Now()
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); asked != 3 || took < 10*time.Second || took > 20*time.Second {
			t.Errorf("asked %d times in %s", asked, took)
		}
	})
}

func TestAnObserverJudgesEverythingAndWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		for i := range 20 {
			q.add(fmt.Sprint("j", i), fmt.Sprint("t", i), "a")
		}
		q.fault = func(call string) error {
			if call != "due" && call != "terminal" {
				t.Errorf("an observer called %s", call)
			}
			return nil
		}
		var judged atomic.Int32
		w := on(q, "w", func(context.Context, ports.Job, ports.Token) (Stopped, error) {
			t.Error("an observer stopped a session")
			return Stopped{}, nil
		}, func(_ context.Context, j job.Job) (job.Report, error) {
			judged.Add(1)
			if j.Attempt != 1 {
				t.Errorf("attempt %d", j.Attempt)
			}
			return job.Report{Targets: []job.TargetReport{{Result: core.Result{Outcome: core.OutcomeReclaimable}}}}, nil
		})
		w.Observe = true
		got, err := w.Once(t.Context())
		if err != nil || len(got) != 20 || judged.Load() != 20 {
			t.Fatalf("%d jobs, %d judged, %v", len(got), judged.Load(), err)
		}
		if got[0].State != ports.Pending || got[0].Attempts != 0 || got[0].Results[0].Outcome != core.OutcomeReclaimable {
			t.Errorf("%+v", got[0])
		}
		// Left running it judges a row again only after an hour.
		judged.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		if err := w.Run(ctx); err != nil || judged.Load() != 40 {
			t.Errorf("in 90 minutes it judged %d times, %v", judged.Load(), err)
		}
	})
}

func TestOfTwoWorkersEachAttemptOfAThousandJobsIsLeasedByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		for i := range 1000 {
			q.add(fmt.Sprint("j", i), fmt.Sprint("t", i%700), fmt.Sprint("host", i%50))
		}
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		flip := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(3) == 0
		}
		inTask := map[string]int{}
		p := func(_ context.Context, j job.Job) (job.Report, error) {
			mu.Lock()
			if inTask[j.TaskID]++; inTask[j.TaskID] > 1 {
				t.Errorf("two jobs of %s run at once", j.TaskID)
			}
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			inTask[j.TaskID]--
			mu.Unlock()
			if flip() {
				return job.Report{}, failing(core.Busy)
			}
			return job.Report{}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		go q.whenEnded(cancel)
		var workers sync.WaitGroup
		for _, name := range []string{"one", "two"} {
			workers.Go(func() {
				w := on(q, name, nothingRuns, p)
				w.Poll = time.Minute
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		for key, n := range q.leased {
			if n != 1 {
				t.Errorf("%s was leased %d times", key, n)
			}
		}
		for _, r := range q.rows {
			if r.State != ports.Succeeded && r.State != ports.JobFailed {
				t.Errorf("%s is %s after %d attempts", r.ID, r.State, r.Attempts)
			}
		}
	})
}

func TestWithAStoreThatFailsAtRandomEveryJobEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{live: map[string][]core.Running{}}
		for i := range 200 {
			q.add(fmt.Sprint("j", i), fmt.Sprint("t", i), fmt.Sprint("host", i%10))
		}
		random := rand.New(rand.NewPCG(3, 4))
		var mu sync.Mutex
		q.fault = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if random.IntN(5) == 0 {
				return errors.New("the database hiccups")
			}
			return nil
		}
		done := map[string]int{}
		w := on(q, "w", nothingRuns, func(_ context.Context, j job.Job) (job.Report, error) {
			mu.Lock()
			defer mu.Unlock()
			done[j.ID]++
			return job.Report{}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		go q.whenEnded(cancel)
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		// Goroutines draw from one source in any order, so that now and then a job
		// meets the hiccup eight times; then it has failed, and says why.
		succeeded := 0
		for _, r := range q.rows {
			switch {
			case r.State == ports.Succeeded && done[r.ID] > 0:
				succeeded++
			case r.State == ports.JobFailed && r.Attempts == 8 && strings.Contains(r.LastError, "the database hiccups"):
			default:
				t.Errorf("%s is %s after %d attempts: %s", r.ID, r.State, r.Attempts, r.LastError)
			}
		}
		if succeeded < 180 {
			t.Errorf("only %d of %d succeeded", succeeded, len(q.rows))
		}
	})
}

func TestOnceSaysThatItCouldNotSeeWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{fault: func(string) error { return errors.New("no database") }}
		q.add("j", "t", "a")
		if _, err := on(q, "w", nothingRuns, allWell).Once(t.Context()); err == nil || !strings.Contains(err.Error(), "no database") {
			t.Error(err)
		}
	})
}

func TestAWakeUpIsQuickerThanThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		wake := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var took time.Duration
		var since time.Time
		w := on(q, "w", nothingRuns, func(context.Context, job.Job) (job.Report, error) {
			took = time.Since(since)
			cancel()
			return job.Report{}, nil
		})
		w.Wake = wake
		go func() {
			time.Sleep(7 * time.Second)
			since = time.Now()
			q.mu.Lock()
			q.add("j", "t", "a")
			q.mu.Unlock()
			wake <- struct{}{}
		}()
		if err := w.Run(ctx); err != nil || took != 0 {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestAWorkerWithoutANameWorksNothing(t *testing.T) {
	q := &queue{}
	q.add("j", "t", "a")
	if _, err := on(q, "", nothingRuns, allWell).Once(t.Context()); err == nil || q.row("j").State != ports.Pending {
		t.Error(err, q.row("j").State)
	}
}
