package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// lease is how fresh an attempt's hold on its row is.
type lease struct {
	renewed atomic.Pointer[time.Time] // from before the renewal was sent
	trusted time.Duration
}

type leaseKey struct{}

// gone reports whether another worker may soon hold the row, or does.
func (l *lease) gone() bool { return time.Since(*l.renewed.Load()) >= l.trusted }

// Fenced is a dialer for attempts: what is asked of a host under a lease that
// has not been renewed in time is not sent. A process that stood still and wakes
// up so keeps from the hosts what it would have sent next, before it has noticed
// anything else.
func Fenced(d ports.Dialer) ports.Dialer { return fenced{d} }

type fenced struct{ ports.Dialer }

const stoodStill = "not sent: the lease on the job was not renewed in time"

func (f fenced) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	l, under := ctx.Value(leaseKey{}).(*lease)
	if under && l.gone() {
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: stoodStill}
	}
	session, refusal := f.Dialer.Dial(ctx, target)
	if session == nil || !under {
		return session, refusal
	}
	return fencedSession{session, l}, refusal
}

type fencedSession struct {
	ports.Session
	lease *lease
}

func (s fencedSession) Run(ctx context.Context, script core.Script) core.Reply {
	if s.lease.gone() {
		return core.Unclear{Doubt: core.ConnectionLost, Detail: stoodStill}
	}
	return s.Session.Run(ctx, script)
}
