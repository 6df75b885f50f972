package job

import (
	"context"
	"sync"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// identity is everything that decides which host is reached and as whom.
type identity struct {
	host, user, fingerprint, source, file, jump, shell string
	port                                               int
}

func identityOf(t core.Target) identity {
	port := t.Port
	if port == 0 {
		port = 22
	}
	return identity{host: t.Host, port: port, user: t.User, fingerprint: t.Fingerprint,
		source: t.IdentitySource, file: t.IdentityFile, jump: t.ProxyJump, shell: t.Shell}
}

// connections holds one connection per host identity for the targets of one
// job.
type connections struct {
	dialer ports.Dialer
	mu     sync.Mutex
	open   map[identity]*connection
}

// connection is held by one at a time: a channel and no mutex, because it is
// held while a host is dialled, and who waits for that must hear of ctx.
type connection struct {
	turn    chan struct{}
	session ports.Session
}

func (c *connection) hold()  { c.turn <- struct{}{} }
func (c *connection) letGo() { <-c.turn }

// session dials on first use. A dial that was refused is tried again for the
// next target: whatever refused it may have passed.
func (c *connections) session(ctx context.Context, t core.Target) (ports.Session, core.NeverRan) {
	c.mu.Lock()
	id := identityOf(t)
	held := c.open[id]
	if held == nil {
		held = &connection{turn: make(chan struct{}, 1)}
		c.open[id] = held
	}
	c.mu.Unlock()
	select {
	case held.turn <- struct{}{}:
		defer held.letGo()
	case <-ctx.Done():
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: "the attempt ended while another target of its job dialled " + t.Host}
	}
	if held.session != nil {
		return held.session, core.NeverRan{}
	}
	session, refusal := c.dialer.Dial(ctx, t)
	if session == nil {
		return nil, refusal
	}
	held.session = &watched{Session: session, held: held}
	return held.session, core.NeverRan{}
}

// watched gives a connection up once it proved dead, so that the next target
// dials anew instead of failing on it too.
type watched struct {
	ports.Session
	held *connection
}

func (w *watched) Run(ctx context.Context, script core.Script) core.Reply {
	reply := w.Session.Run(ctx, script)
	unclear, ok := reply.(core.Unclear)
	_, dead := reply.(core.NeverRan)
	if (dead || ok && unclear.Doubt == core.ConnectionLost) && ctx.Err() == nil {
		w.held.hold()
		defer w.held.letGo()
		if w.held.session == w {
			w.held.session = nil
			w.Session.Close()
		}
	}
	return reply
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, held := range c.open {
		held.hold()
		if held.session != nil {
			held.session.Close()
		}
		held.letGo()
	}
}
