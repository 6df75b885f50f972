package simulation

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

// network is what one backend dials through.
type network struct {
	w *world
	b *backend
}

func (n network) host(name string) *host {
	for _, h := range n.w.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

func (n network) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	v := n.w.enter(ctx, &call{key: n.b.name + " dials " + target.Host, kind: dials, backend: n.b})
	h := n.host(target.Host)
	switch {
	case v != goOn || h == nil || !h.up:
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: "nobody answers at " + target.Host}
	case target.Fingerprint == "":
		return nil, core.NeverRan{Fault: core.NoPin, Detail: "no fingerprint is pinned"}
	case h.key != target.Fingerprint:
		return nil, core.NeverRan{Fault: core.HostKeyMismatch, Detail: "the host shows another key"}
	}
	s := &session{w: n.w, b: n.b, host: h, broken: make(chan struct{})}
	n.b.sessions = append(n.b.sessions, s)
	return s, core.NeverRan{}
}

// session is one connection.
type session struct {
	w      *world
	b      *backend
	host   *host
	mu     sync.Mutex
	trips  int
	is     bool // broken
	broken chan struct{}
}

func (s *session) Trips() int { s.mu.Lock(); defer s.mu.Unlock(); return s.trips }

// Close ends the connection; what is tied to it ends, too.
func (s *session) Close() error { s.cut(); return nil }

func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.is {
		s.is = true
		close(s.broken)
	}
}

func (s *session) gone() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.is }

// fault is what happens to one script on its way and to its answer.
type fault struct {
	what  string
	after int           // steps of the script before the connection breaks
	late  time.Duration // how late the script starts although nobody waits any more
	lie   string
	roll  uint64
}

func (f fault) String() string {
	if f.what == "" && f.lie == "" {
		return ""
	}
	return strings.TrimRight(fmt.Sprintf(" - %s %s", f.what, f.lie), " ")
}

func (w *world) misfortune(c *call) fault {
	f := fault{roll: w.random.Uint64()}
	p := w.random.Float64()
	if w.temper.faults == 0 {
		return fault{}
	}
	p /= w.temper.faults
	if strings.Contains(c.key, " sends remove ") || strings.Contains(c.key, " sends settle ") {
		p /= 3
	}
	switch {
	case p < 0.03:
		f.what = "never arrives"
	case p < 0.05:
		f.what, f.late = "arrives late, unheard", w.upTo([]time.Duration{time.Second, 2 * time.Minute, 20 * time.Minute}[w.pick(3)])
	case p < 0.10:
		f.what, f.after = "is cut off", w.pick(14)
	case p < 0.11:
		f.what = "does not end in time"
	case p < 0.15:
		f.lie = []string{"cut short", "doubled", "empty", "status 1", "a byte is another", "the answer to another question", "an earlier answer", "unframed", "flooded", "nothing at all"}[w.pick(10)]
	}
	return f
}

func (s *session) Run(ctx context.Context, script core.Script) core.Reply {
	s.mu.Lock()
	s.trips++
	s.mu.Unlock()
	lost := core.Unclear{Doubt: core.ConnectionLost, Detail: "the connection ended"}
	c := &call{key: s.b.name + " sends " + script.Name + " to " + s.host.name + " " + parameter(script.Body, "segment") + parameter(script.Body, "session"), kind: sends, backend: s.b}
	if s.gone() {
		return core.NeverRan{Fault: core.Unreachable, Detail: "the connection is closed"}
	}
	if s.w.enter(ctx, c) != goOn {
		return lost
	}
	if s.gone() || !s.host.up {
		s.cut()
		return lost
	}
	switch f := c.fault; {
	case f.what == "never arrives":
		s.cut()
		return lost
	case f.late > 0:
		s.cut()
		if h := s.host; script.Name == "remove" || script.Name == "settle" {
			boots := h.boots
			time.AfterFunc(f.late, func() {
				v := s.w.enter(context.Background(), &call{key: h.name + " comes to a " + script.Name + " it was sent", kind: reads})
				if v != dead && h.up && h.boots == boots {
					h.start(script, s, fault{})
				}
			})
		}
		return lost
	}
	p := s.host.start(script, s, c.fault)
	limit := time.NewTimer(script.Limit)
	defer limit.Stop()
	select {
	case <-p.done:
		if p.killed {
			return lost
		}
		return s.garbled(script, p.said, c.fault)
	case <-s.broken:
		if p.tied {
			p.die()
		}
		return lost
	case <-ctx.Done():
		if p.tied {
			p.die()
		}
		return lost
	case <-limit.C:
		if p.tied {
			p.die()
		}
		return core.Unclear{Doubt: core.LimitReached, Detail: "the limit passed"}
	}
}

// garbled is the answer as it arrives.
func (s *session) garbled(script core.Script, said core.Said, f fault) core.Reply {
	body := said.Body
	switch f.lie {
	case "cut short":
		said.Body = body[:f.roll%uint64(len(body))]
	case "doubled":
		said.Body = body + body
	case "empty":
		said.Body = ""
	case "status 1":
		said.Exit = 1
	case "a byte is another":
		if script.Name != "inventory" { // the only answer that carries its own sum
			break
		}
		at := f.roll % uint64(len(body))
		said.Body = body[:at] + string(rune(' '+(f.roll>>32)%95)) + body[at+1:]
	case "the answer to another question":
		said.Body = strings.ReplaceAll(body, "\nabout ", "\nabout 0")
		if said.Body == body {
			said.Body = "reclaim 1 " + script.Name + "\nend 0\n"
		}
	case "an earlier answer":
		if earlier := s.w.answered[parameter(script.Body, "segment")]; script.Name == "inventory" && len(earlier) > 0 {
			return earlier[f.roll%uint64(len(earlier))]
		}
	case "unframed":
		return core.Unclear{Doubt: core.Unframed, Detail: "the frame was not closed"}
	case "flooded":
		return core.Unclear{Doubt: core.Flooded, Detail: "more than was allowed"}
	case "nothing at all":
		return nil
	}
	return said
}

// crash ends a backend where it is: nothing of it happens any more.
func (w *world) crash(b *backend) {
	w.mu.Lock()
	b.dead = true
	w.mu.Unlock()
	b.cancel()
	w.free(func(c *call) bool { return c.backend == b })
	for _, s := range b.sessions {
		s.cut()
	}
}

// restart ends everything on a host that is not on its disk.
func (h *host) crash() {
	h.boots++
	for _, p := range slices.Clone(h.running) {
		p.die()
	}
	for _, a := range h.agents {
		a.alive = false
	}
	for _, b := range h.w.backends {
		for _, s := range b.sessions {
			if s.host == h {
				s.cut()
			}
		}
	}
}
