package sshhost

import (
	"context"
	"sync"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Pool is a Dialer whose sessions share one connection for each host identity:
// host, port, user, pin, identity and the way there. A job makes one, dials its
// targets through it, and closes it at its end.
type Pool struct {
	dialer *Dialer

	mu     sync.Mutex
	closed bool
	shared map[core.Target]*share
}

type share struct {
	ready   chan struct{} // closed when the dial has ended
	cancel  context.CancelFunc
	waiting int // dials that wait for it
	users   int // sessions that use it

	connection *connection // after ready, unless refused
	refused    *core.NeverRan
}

// Pool makes an empty pool.
func (d *Dialer) Pool() *Pool { return &Pool{dialer: d, shared: map[core.Target]*share{}} }

// identityKey is what two targets must agree on to share a connection.
func identityKey(target core.Target) core.Target {
	if target.Port == 0 {
		target.Port = 22
	}
	return core.Target{Host: target.Host, Port: target.Port, User: target.User, Fingerprint: target.Fingerprint,
		IdentitySource: target.IdentitySource, IdentityFile: target.IdentityFile, ProxyJump: target.ProxyJump}
}

// Dial gives a session on the host's connection, making the connection if there
// is none or the one there was has ended. Dials of one host wait for one attempt
// and share its refusal; the attempt ends when none of them waits any more.
func (p *Pool) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	if ctx.Err() != nil {
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: "host " + target.Host + ": not dialled: " + context.Cause(ctx).Error()}
	}
	key := identityKey(target)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: "host " + target.Host + ": not dialled: the job has ended"}
	}
	s := p.shared[key]
	if s == nil || s.stale() {
		dialling, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s = &share{ready: make(chan struct{}), cancel: cancel}
		p.shared[key] = s
		go func() {
			defer cancel()
			s.connection, s.refused = p.dialer.connect(dialling, target)
			close(s.ready)
		}()
	}
	s.waiting++
	p.mu.Unlock()

	select {
	case <-s.ready:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.waiting--
	if !s.isReady() {
		if s.waiting == 0 {
			p.drop(key, s)
		}
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: "host " + target.Host + ": not dialled: " + context.Cause(ctx).Error()}
	}
	if s.refused != nil {
		if p.shared[key] == s {
			delete(p.shared, key)
		}
		return nil, *s.refused
	}
	if p.closed {
		p.drop(key, s)
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: "host " + target.Host + ": the job has ended"}
	}
	s.users++
	return newSession(s.connection, target.Shell, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.users--; s.users == 0 && (p.closed || p.shared[key] != s) {
			return s.connection.close()
		}
		return nil
	}), core.NeverRan{}
}

// Close ends every connection that no session uses, and each of the others when
// its last session closes. Nothing is dialled any more.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for key, s := range p.shared {
		if s.users == 0 {
			p.drop(key, s)
		}
	}
	return nil
}

// drop forgets an attempt or a connection that nobody uses, and ends it.
func (p *Pool) drop(key core.Target, s *share) {
	if p.shared[key] == s {
		delete(p.shared, key)
	}
	s.cancel()
	go func() {
		<-s.ready
		if s.connection != nil {
			s.connection.close()
		}
	}()
}

func (s *share) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// stale reports an attempt that failed or a connection that has ended.
func (s *share) stale() bool {
	return s.isReady() && (s.refused != nil || s.connection.ended())
}
