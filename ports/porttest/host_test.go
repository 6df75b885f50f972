package porttest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// honest is the plainest session that keeps every promise: /bin/sh here. Its
// fields break it, one promise each.
type honest struct {
	mangle      func(string) string // what becomes of the output
	alter       func(string) string // what becomes of the script
	reply       func(core.Reply) core.Reply
	withStderr  bool // standard error is part of the answer
	stdin       string
	noKill      bool    // a probe is not killed at its limit, by cancel, by a close
	killAll     bool    // a removal is
	slow        bool    // a caller that leaves waits for the script
	cap         int     // 0: a MiB
	noClose     bool    // goes on after a close
	sendsAlways bool    // even for a caller that has left
	serial      *string // one buffer for all calls
	mute        bool
	miscount    bool

	started []func()
	mu      sync.Mutex
	trips   atomic.Int64
	once    sync.Once
	closed  chan struct{}
}

func open(h *honest) *honest {
	h.closed = make(chan struct{})
	return h
}

func (h *honest) Trips() int { return int(h.trips.Load()) }

func (h *honest) Close() error {
	if !h.noClose {
		h.once.Do(func() { close(h.closed) })
	}
	return nil
}

// end kills what a broken session has left running.
func (h *honest) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, end := range h.started {
		end()
	}
}

func (h *honest) Run(ctx context.Context, script core.Script) core.Reply {
	got := h.run(ctx, script)
	if unclear, is := got.(core.Unclear); is && h.mute {
		unclear.Detail = ""
		got = unclear
	}
	if h.reply != nil {
		return h.reply(got)
	}
	return got
}

func (h *honest) run(ctx context.Context, script core.Script) core.Reply {
	select {
	case <-h.closed:
		return core.NeverRan{Fault: core.Unreachable, Detail: "closed"}
	default:
	}
	if ctx.Err() != nil && !h.sendsAlways {
		return core.Unclear{Doubt: core.ConnectionLost, Detail: "not sent"}
	}
	body := script.Body
	if h.alter != nil {
		body = h.alter(body)
	}
	if strings.Contains(body, "\x00") {
		return core.Unclear{Doubt: core.Unframed, Detail: "NUL"}
	}
	if !h.miscount {
		h.trips.Add(1)
	}
	command := exec.Command("/bin/sh", "-c", body)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Stdin = strings.NewReader(h.stdin)
	most := h.cap
	if most == 0 {
		most = maxBody
	}
	output := &capped{most: most, over: make(chan struct{})}
	command.Stdout = output
	if h.withStderr {
		command.Stderr = output
	}
	if err := command.Start(); err != nil {
		return core.NeverRan{Fault: core.Unreachable, Detail: err.Error()}
	}
	ended := make(chan struct{})
	h.mu.Lock()
	h.started = append(h.started, func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	h.mu.Unlock()
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	limit := time.NewTimer(script.Limit)
	defer limit.Stop()
	removal := script.Name == "remove" || script.Name == "settle"
	give := func(doubt core.Doubt) core.Reply {
		if !h.noKill && (!removal || h.killAll) {
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		}
		if h.slow {
			<-ended
		}
		return core.Unclear{Doubt: doubt, Detail: string(doubt)}
	}
	select {
	case <-ended:
	case <-output.over:
		return give(core.Flooded)
	case <-limit.C:
		return give(core.LimitReached)
	case <-ctx.Done():
		return give(core.ConnectionLost)
	case <-h.closed:
		return give(core.ConnectionLost)
	}
	select {
	case <-output.over:
		return core.Unclear{Doubt: core.Flooded, Detail: "flooded"}
	default:
	}
	if !command.ProcessState.Exited() {
		return core.Unclear{Doubt: core.Unframed, Detail: "killed"}
	}
	said := core.Said{Body: output.String(), Exit: command.ProcessState.ExitCode()}
	if h.mangle != nil {
		said.Body = h.mangle(said.Body)
	}
	if h.serial != nil {
		h.mu.Lock()
		*h.serial += said.Body
		said.Body = *h.serial
		h.mu.Unlock()
	}
	return said
}

type capped struct {
	mu   sync.Mutex
	most int
	text bytes.Buffer
	once sync.Once
	over chan struct{}
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text.Len()+len(p) > c.most {
		c.once.Do(func() { close(c.over) })
		return len(p), nil
	}
	return c.text.Write(p)
}

func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// asZero makes a yes of whatever a fake would answer.
func asZero(reply core.Reply) core.Reply {
	if said, is := reply.(core.Said); is {
		return core.Said{Body: said.Body}
	}
	return core.Said{}
}

// brokenSessions has one session that breaks it for every clause.
var brokenSessions = map[string]func() *honest{
	"what a script prints is its answer, byte for byte":             func() *honest { return &honest{mangle: strings.TrimSpace} },
	"a script arrives byte for byte, quotes and odd bytes included": func() *honest { return &honest{alter: func(s string) string { return strings.ReplaceAll(s, "!", "") }} },
	"a status that is not zero is an answer":                        func() *honest { return &honest{reply: asZero} },
	"standard error is no part of the answer":                       func() *honest { return &honest{withStderr: true} },
	"a script finds its standard input empty":                       func() *honest { return &honest{stdin: "the next script\n"} },
	"a script that ends by a signal has not answered":               func() *honest { return &honest{reply: asZero} },
	"a script with a syntax error has not said yes":                 func() *honest { return &honest{reply: asZero} },
	"a script that holds a NUL byte is never answered with a frame": func() *honest {
		return &honest{alter: func(s string) string { s, _, _ = strings.Cut(s, "\x00"); return s }}
	},
	"the PATH and the shell's own process id are the script's": func() *honest {
		return &honest{alter: func(s string) string { return "( " + s + "\n)" + "; PATH=; " + "sh -c :" }}
	},
	"at its limit a probe is given up and killed":                                func() *honest { return &honest{noKill: true} },
	"at its limit a removal is given up and left to run":                         func() *honest { return &honest{killAll: true} },
	"when its caller leaves, a probe is given up at once and killed":             func() *honest { return &honest{slow: true, noKill: true} },
	"when its caller leaves, a removal is given up at once and left to run":      func() *honest { return &honest{killAll: true} },
	"a caller that has left sends nothing":                                       func() *honest { return &honest{sendsAlways: true, noKill: true, slow: true} },
	"a MiB is an answer, and a byte more a flood that leaves the session usable": func() *honest { return &honest{cap: maxBody + 1} },
	"a flood on standard error is dropped":                                       func() *honest { return &honest{withStderr: true} },
	"several scripts at once each get their own answer":                          func() *honest { return &honest{serial: new(string)} },
	"the trips are the scripts sent":                                             func() *honest { return &honest{miscount: true} },
	"a close kills the probes that run and lets nothing run after it":            func() *honest { return &honest{noClose: true} },
	"every doubt has a detail for people":                                        func() *honest { return &honest{mute: true} },
}

// recorder is a test whose failure is the point.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed []string
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, text)
}

func (r *recorder) Helper()                      {}
func (r *recorder) Error(args ...any)            { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.note(fmt.Sprint(args...)); panic(r) }
func (r *recorder) Fatalf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)); panic(r) }

// failures runs one clause and returns what it found wrong.
func failures[S any](t *testing.T, clause clause[S], subject S) []string {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if stop := recover(); stop != nil && stop != any(r) {
				panic(stop)
			}
		}()
		clause.check(r, subject)
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// shorten makes the waits for what a broken session never does short.
func shorten(t *testing.T) {
	before, soon := patience, prompt
	patience, prompt = 3*time.Second, time.Second
	t.Cleanup(func() { patience, prompt = before, soon })
}

func TestEverySessionClauseHoldsForAnHonestSessionAndCanFail(t *testing.T) {
	shorten(t)
	for _, clause := range sessionClauses {
		t.Run(clause.name, func(t *testing.T) {
			subject := func(h *honest) SessionSubject {
				t.Cleanup(h.end)
				return SessionSubject{Session: open(h), Dir: t.TempDir()}
			}
			if wrong := failures(t, clause, subject(&honest{})); len(wrong) > 0 {
				t.Errorf("an honest session fails: %.500q", wrong)
			}
			broken, exists := brokenSessions[clause.name]
			if !exists {
				t.Fatal("no session breaks this clause")
			}
			if wrong := failures(t, clause, subject(broken())); len(wrong) == 0 {
				t.Error("a broken session passes")
			}
		})
	}
	if len(brokenSessions) != len(sessionClauses) {
		t.Errorf("%d broken sessions for %d clauses", len(brokenSessions), len(sessionClauses))
	}
}

// plain is a dialer over nothing: it looks at the target and answers as an
// honest one would, but for its fields.
type plain struct {
	good           core.Target
	connections    int
	commands       int
	keys           int
	noSession      bool
	sendsKey       bool
	emptyIsAny     bool
	malformedIsAny bool
	closedFault    core.Fault
	authFault      core.Fault
	waits          time.Duration
	ignoresContext bool
	silent, closed int
	badKey         string
}

func (p *plain) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	no := func(fault core.Fault, detail string) (ports.Session, core.NeverRan) {
		return nil, core.NeverRan{Fault: fault, Detail: "host " + net.JoinHostPort(target.Host, fmt.Sprint(target.Port)) + ": " + detail}
	}
	if ctx.Err() != nil && !p.ignoresContext {
		return no(core.Unreachable, "the caller left")
	}
	if strings.TrimSpace(target.Fingerprint) == "" && !p.emptyIsAny {
		return no(core.NoPin, "no pin")
	}
	switch target.Port {
	case p.closed:
		return no(p.closedFault, "nothing listens")
	case p.silent:
		if p.ignoresContext {
			time.Sleep(2 * prompt)
			return no(core.Unreachable, "no answer")
		}
		timer := time.NewTimer(p.waits)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		return no(core.Unreachable, "no answer")
	}
	p.connections++
	if p.sendsKey {
		p.keys++
	}
	malformed := len(target.Fingerprint) != len(p.good.Fingerprint) || !strings.HasPrefix(target.Fingerprint, "SHA256:")
	switch {
	case target.Fingerprint == p.good.Fingerprint, malformed && p.malformedIsAny, p.emptyIsAny && strings.TrimSpace(target.Fingerprint) == "":
	default:
		return no(core.HostKeyMismatch, "wanted "+target.Fingerprint+", saw "+p.good.Fingerprint+"; no credential was sent")
	}
	p.keys++
	if target.IdentityFile == p.badKey {
		return no(p.authFault, "refused")
	}
	if p.noSession {
		return no(core.Unreachable, "no")
	}
	return open(&honest{}), core.NeverRan{}
}

var brokenDialers = map[string]func(*plain){
	"the pinned host is reached and answers":                                    func(p *plain) { p.noSession = true },
	"a host that shows another key is refused before any credential or command": func(p *plain) { p.sendsKey = true },
	"without a pin nothing is dialled":                                          func(p *plain) { p.emptyIsAny = true },
	"a pin that no key can match is refused":                                    func(p *plain) { p.malformedIsAny = true },
	"a port on which nothing listens is unreachable":                            func(p *plain) { p.closedFault = core.Lost },
	"an identity that the host refuses is an authentication failure":            func(p *plain) { p.authFault = core.Unreachable },
	"a server that never speaks is given up in time":                            func(p *plain) { p.waits = 2 * prompt },
	"a caller that leaves does not wait":                                        func(p *plain) { p.ignoresContext = true },
}

func TestEveryDialerClauseHoldsForAnHonestDialerAndCanFail(t *testing.T) {
	shorten(t)
	for _, clause := range dialerClauses {
		t.Run(clause.name, func(t *testing.T) {
			subject := func(change func(*plain)) DialerSubject {
				good := core.Target{Host: "127.0.0.1", Port: 22, Fingerprint: "SHA256:" + strings.Repeat("x", 43), IdentityFile: "right"}
				p := &plain{good: good, closed: 1, silent: 2, badKey: "wrong", closedFault: core.Unreachable, authFault: core.AuthFailed, waits: 100 * time.Millisecond}
				change(p)
				badKey, closed, silent := good, good, good
				badKey.IdentityFile, closed.Port, silent.Port = "wrong", 1, 2
				return DialerSubject{Dialer: p, Good: good, BadKey: badKey, Closed: closed, Silent: silent, SilentWithin: 100 * time.Millisecond,
					Connections: func() int { return p.connections }, Commands: func() int { return p.commands }, KeysOffered: func() int { return p.keys }}
			}
			if wrong := failures(t, clause, subject(func(*plain) {})); len(wrong) > 0 {
				t.Errorf("an honest dialer fails: %q", wrong)
			}
			broken, exists := brokenDialers[clause.name]
			if !exists {
				t.Fatal("no dialer breaks this clause")
			}
			if wrong := failures(t, clause, subject(broken)); len(wrong) == 0 {
				t.Error("a broken dialer passes")
			}
		})
	}
}
