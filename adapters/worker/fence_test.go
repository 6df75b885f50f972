package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// heard is a host that counts what it is sent.
type heard struct {
	ports.Session
	dials, scripts int
}

func (h *heard) Dial(context.Context, core.Target) (ports.Session, core.NeverRan) {
	h.dials++
	return h, core.NeverRan{}
}

func (h *heard) Run(context.Context, core.Script) core.Reply {
	h.scripts++
	return core.Said{}
}

// A process that stood still has not noticed yet: its context goes on.
func TestNothingIsSentUnderALeaseThatWasNotRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{trusted: 45 * time.Second}
		renew := func() {
			now := time.Now()
			l.renewed.Store(&now)
		}
		renew()
		host := &heard{}
		dialer := Fenced(host)
		ctx := context.WithValue(t.Context(), leaseKey{}, l)
		session, _ := dialer.Dial(ctx, core.Target{})
		time.Sleep(44 * time.Second)
		if _, sent := session.Run(ctx, core.Script{}).(core.Said); !sent || host.scripts != 1 {
			t.Error("a fresh lease was not enough")
		}
		time.Sleep(time.Second)
		if reply, lost := session.Run(ctx, core.Script{}).(core.Unclear); !lost || reply.Doubt != core.ConnectionLost || host.scripts != 1 {
			t.Errorf("%d scripts, %v", host.scripts, reply)
		}
		if session, refusal := dialer.Dial(ctx, core.Target{}); session != nil || refusal.Fault != core.Unreachable || host.dials != 1 {
			t.Errorf("dialled again: %v", refusal)
		}
		renew()
		if _, sent := session.Run(ctx, core.Script{}).(core.Said); !sent {
			t.Error("a renewed lease was not enough")
		}
	})
}

func TestAnAttemptsHeartbeatsRenewWhatItMaySendUnder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.add("j", "t", "a")
		host := &heard{}
		w := on(q, "w", nothingRuns, func(ctx context.Context, _ job.Job) (job.Report, error) {
			session, _ := Fenced(host).Dial(ctx, core.Target{})
			time.Sleep(10 * time.Minute)
			if _, sent := session.Run(ctx, core.Script{}).(core.Said); !sent {
				t.Error("the lease that was renewed all along was not enough")
			}
			ctx.Value(leaseKey{}).(*lease).trusted = 0
			if _, sent := session.Run(ctx, core.Script{}).(core.Said); sent {
				t.Error("it was sent without a lease")
			}
			return job.Report{}, ctx.Err()
		})
		if _, err := w.Once(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatNoLeaseCoversIsSent(t *testing.T) {
	host := &heard{}
	session, _ := Fenced(host).Dial(t.Context(), core.Target{})
	if _, sent := session.Run(t.Context(), core.Script{}).(core.Said); !sent {
		t.Error("a preview needs no lease")
	}
}
