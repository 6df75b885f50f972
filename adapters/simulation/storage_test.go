package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

var (
	errStorage = errors.New("storage is not there")
	errDead    = errors.New("this process is no more")
)

// storage is the store as one backend reaches it.
type storage struct {
	w *world
	b *backend
}

// ask puts one question or change to the store. An error says that nothing is
// known of it.
func (s storage) ask(ctx context.Context, k kind, key string, do func() error) error {
	switch s.w.enter(ctx, &call{key: s.b.name + " " + key, kind: k, backend: s.b}) {
	case goOn:
		if k == writes {
			s.w.changed = true
		}
		return do()
	case unheard:
		s.w.changed = true
		do()
		return errStorage
	case refused:
		return errStorage
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errDead
}

func (s storage) Terminal(ctx context.Context, taskID string) (terminal bool, err error) {
	err = s.ask(ctx, reads, "asks whether "+taskID+" has ended", func() (err error) {
		terminal, err = s.w.store.Terminal(context.Background(), taskID)
		return err
	})
	return terminal && err == nil, err
}

func (s storage) Sessions(ctx context.Context, taskID string) (all []core.Running, err error) {
	err = s.ask(ctx, reads, "lists the sessions of "+taskID, func() (err error) {
		all, err = s.w.store.Sessions(context.Background(), taskID)
		return err
	})
	return all, err
}

func (s storage) MarkStopped(ctx context.Context, sessionID string) error {
	return s.ask(ctx, writes, "marks "+sessionID+" stopped", func() error { return s.w.store.MarkStopped(context.Background(), sessionID) })
}

func (s storage) Forget(ctx context.Context, taskID string, sessionIDs []string) error {
	return s.ask(ctx, writes, fmt.Sprint("forgets sessions of ", taskID), func() error { return s.w.store.Forget(context.Background(), taskID, sessionIDs) })
}

func (s storage) Owner(ctx context.Context, q core.Owner) (o core.Ownership) {
	if err := s.ask(ctx, reads, fmt.Sprintf("asks who owns %s on %s for %s, the %s look", q.Target.TaskDir, q.Target.Host, q.JobID, q.Look), func() error {
		o = s.w.store.Owner(context.Background(), q)
		if q.Look == core.LastLook {
			s.w.ledger.looked(s.w, q)
		}
		switch {
		case s.w.broken == "no other task's right is seen":
			o.Claims = nil
		case s.w.broken == "another claimant's borrower is not seen":
			o.Borrowers = slices.DeleteFunc(o.Borrowers, func(b core.Borrower) bool { return b.Lender != "" })
		case s.w.broken == "the switch is read as it was" && o.OptInNow == core.Off:
			o.OptInNow = core.Unknown
		}
		return nil
	}); err != nil {
		return core.Ownership{Error: err.Error()}
	}
	return o
}

func (s storage) Begin(ctx context.Context, q core.Begin) (b core.Begun) {
	if err := s.ask(ctx, writes, fmt.Sprintf("begins %s on %s for %s, attempt %d", q.Target.TaskDir, q.Target.Host, q.JobID, q.Attempt), func() error {
		if s.w.broken == "the begin compares nothing" {
			b = core.Begun{Ending: core.BeginRecorded}
			return nil
		}
		b = s.w.store.Begin(context.Background(), q)
		if b.Ending != core.BeginRecorded {
			s.w.tell("    the begin is %s", b.Ending)
		}
		return nil
	}); err != nil {
		return core.Begun{Ending: core.BeginFailed, Detail: err.Error()}
	}
	return b
}

func (s storage) Conclude(ctx context.Context, c ports.Conclusion) error {
	return s.ask(ctx, writes, fmt.Sprintf("concludes %s, attempt %d, on %s: %s", c.JobID, c.Attempt, c.Target.Host, said(c.Outcome)), func() error {
		if failed, is := c.Outcome.(core.Failed); is && s.w.broken == "a half-removed directory is a skip" && (failed.Fault == core.HalfRemoved || failed.Fault == core.Lost || failed.Fault == core.StillPresent) {
			c.Outcome = core.Skipped{Finding: core.Finding{Reason: core.ProbeFailed, Cause: core.ProbeError}}
		}
		err := s.w.store.Conclude(context.Background(), c)
		if err == nil {
			s.w.ledger.concluded(s.w, c)
		}
		return err
	})
}

func said(o core.Outcome) string {
	switch o := o.(type) {
	case core.Removed:
		return "removed"
	case core.Skipped:
		return fmt.Sprintf("kept, %s (%s)", o.Reason, o.Cause)
	case core.Failed:
		return fmt.Sprintf("failed, %s: %.80s", o.Fault, o.Detail)
	}
	return "nothing"
}

func (s storage) Keep(ctx context.Context, r core.Record) error {
	return s.ask(ctx, writes, fmt.Sprintf("keeps the record of %s, attempt %d, on %s: %s %s%s", r.Snapshot.JobID, r.Snapshot.Attempt, r.Snapshot.Target.Host,
		r.Result.Outcome, r.Result.Reason, r.Result.Fault), func() error {
		if n := len(r.Transcript); n > 1 && s.w.broken == "a record loses an exchange" {
			r.Transcript = append(r.Transcript[:n-2:n-2], r.Transcript[n-1])
		}
		s.w.ledger.kept(s.w, r)
		return nil
	})
}

func (s storage) Lease(ctx context.Context, worker string, hold []string) (j ports.Job, ok bool, err error) {
	err = s.ask(ctx, quiet, "looks for a due job", func() (err error) {
		j, ok, err = s.w.store.Lease(context.Background(), worker, hold)
		if ok {
			s.w.changed = true
			s.w.tell("%s leases %s, attempt %d, of %s", s.b.name, j.ID, j.Attempts, j.TaskID)
		}
		return err
	})
	return j, ok && err == nil, err
}

func (s storage) Beat(ctx context.Context, token ports.Token) error {
	return s.ask(ctx, quiet, fmt.Sprintf("beats %s %d", token.JobID, token.Attempt), func() error { return s.w.store.Beat(context.Background(), token) })
}

func (s storage) Recover(ctx context.Context, stale time.Duration) (n int, err error) {
	err = s.ask(ctx, quiet, "looks for stale leases", func() (err error) {
		if s.w.broken == "stale leases stay" {
			return nil
		}
		if n, err = s.w.store.Recover(context.Background(), stale); n > 0 {
			s.w.changed = true
			s.w.tell("%s makes %d jobs due again", s.b.name, n)
		}
		return err
	})
	return n, err
}

func (s storage) Finish(ctx context.Context, token ports.Token, end ports.Ending) error {
	return s.ask(ctx, writes, fmt.Sprintf("ends attempt %d of %s: %s", token.Attempt, token.JobID, end.State), func() error {
		if s.w.broken == "a hold is a try" {
			end.Uncounted = false
			if _, again := core.RetryAfter(token.Attempt); !again {
				end.State = ports.JobFailed
			}
		}
		err := s.w.store.Finish(context.Background(), token, end)
		if err == nil {
			s.w.ledger.tried(s.w, token, end)
		}
		return err
	})
}

func (s storage) Cancel(ctx context.Context, token ports.Token) error {
	return s.ask(ctx, writes, "cancels "+token.JobID, func() error { return s.w.store.Cancel(context.Background(), token) })
}

func (s storage) Hooked(ctx context.Context, token ports.Token, target core.Target, hook core.SessionHook) error {
	return s.ask(ctx, writes, fmt.Sprintf("notes that the cleanup script of %s %s", hook.SessionID, hook.Ending), func() error {
		return s.w.store.Hooked(context.Background(), token, target, hook)
	})
}

func (s storage) Due(ctx context.Context, limit int) (all []ports.Job, err error) {
	err = s.ask(ctx, reads, "lists what is due", func() (err error) {
		all, err = s.w.store.Due(context.Background(), limit)
		return err
	})
	return all, err
}

// agreeable is a policy that never subtracts: whatever core alone lets through
// is seen. Some seeds use the real one.
type agreeable struct{}

func (agreeable) Rule(context.Context, core.Facts) core.Ruling {
	return core.Ruling{Allow: true, Passed: core.Barriers(), Digest: "agreeable"}
}
