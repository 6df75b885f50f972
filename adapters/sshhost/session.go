package sshhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/adapters/frame"
	"github.com/kandev/reclaim/core"
)

// Session runs the scripts of one target over a connection that it may share
// with others. Its scripts find the PATH of the account's login shell, and in
// RECLAIM_PATH the word login, or system where the login shell told none.
type Session struct {
	connection *connection
	shell      string // names the login shell; empty: $SHELL
	release    func() error
	trips      atomic.Int64
	once       sync.Once
	closed     context.Context
	shut       context.CancelCauseFunc

	mu   sync.Mutex
	runs sync.WaitGroup // added to under mu, and only before closed
}

func newSession(c *connection, shell string, release func() error) *Session {
	closed, shut := context.WithCancelCause(context.Background())
	return &Session{connection: c, shell: shell, release: release, closed: closed, shut: shut}
}

// Trips counts the scripts sent so far.
func (s *Session) Trips() int { return int(s.trips.Load()) }

// closePatience bounds how long Close waits for the probes it ends.
const closePatience = 2 * time.Second

// Close gives the connection back; the last session to do so ends it, unless a
// Pool keeps it. Every Run returns at once; probes that still ran are given a
// moment to be killed, because that needs the connection.
func (s *Session) Close() error {
	var err error
	s.once.Do(func() {
		s.mu.Lock()
		s.shut(errors.New("the session was closed"))
		s.mu.Unlock()
		quiet := make(chan struct{})
		go func() {
			defer close(quiet)
			s.runs.Wait()
		}()
		patience := time.NewTimer(closePatience)
		defer patience.Stop()
		select {
		case <-quiet:
		case <-s.connection.done:
		case <-patience.C:
		}
		err = s.release()
	})
	return err
}

// enter registers a Run, unless the session is closed.
func (s *Session) enter() (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Err() != nil {
		return nil, false
	}
	s.runs.Add(1)
	return sync.OnceFunc(s.runs.Done), true
}

// left reports whether the script must be left to run whatever happens: it
// moves or removes things, and half of it is worse than the whole.
func left(script core.Script) bool { return script.Name == "remove" || script.Name == "settle" }

// Run sends one script; see ports.Session. A script that cannot be sent whole
// (a NUL byte, more than 100 KB packed) is not sent at all and answered
// Unclear(unframed), which keeps the directory like any answer without a frame.
func (s *Session) Run(ctx context.Context, script core.Script) core.Reply {
	c := s.connection
	unclear := func(doubt core.Doubt, format string, args ...any) core.Reply {
		return core.Unclear{Doubt: doubt, Detail: c.name + ": " + fmt.Sprintf(format, args...)}
	}
	leave, ok := s.enter()
	if !ok {
		return core.NeverRan{Fault: core.Unreachable, Detail: c.name + ": not sent: " + context.Cause(s.closed).Error()}
	}
	abandoned := false
	defer func() {
		if !abandoned {
			leave()
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closed, func() { cancel(context.Cause(s.closed)) })()
	if ctx.Err() != nil {
		return unclear(core.ConnectionLost, "not sent: %v", context.Cause(ctx))
	}

	mark := frame.New()
	c.mu.Lock()
	prologue, known := c.paths[s.shell]
	c.mu.Unlock()
	if !known {
		prologue = learnPath(s.shell, mark.Nonce())
	}
	line, err := command(mark.Around(prologue, packedBody), script.Body)
	if err != nil {
		return unclear(core.Unframed, "the script %s was not sent: %v", script.Name, err)
	}
	channel, refused := c.take(ctx)
	if refused != nil {
		return refused
	}
	s.trips.Add(1)
	talk := &exchange{channel: channel, answer: mark.Answer()}
	ended := make(chan core.Reply, 1)
	go func() { ended <- talk.run(line) }()
	c.open()

	abandon := func() {
		// In a goroutine of its own: a write may block on a dead network.
		abandoned = true
		go func() {
			defer leave()
			if !left(script) {
				c.kill(channel, int(talk.pid.Load()), mark.Nonce())
			}
			c.finish(channel)
		}()
	}
	var limit <-chan time.Time
	if script.Limit > 0 {
		timer := time.NewTimer(script.Limit)
		defer timer.Stop()
		limit = timer.C
	}
	for {
		select {
		case reply := <-ended:
			switch said := reply.(type) {
			case core.Said:
				c.finish(channel)
				if !known {
					c.learn(s.shell, talk.note)
				}
				return said
			case core.Unclear:
				if said.Doubt == core.Flooded {
					abandon()
				} else {
					c.finish(channel)
				}
				if said.Doubt == core.Unframed && !c.alive(ctx) { // the rest of it was on its way
					said.Doubt = core.ConnectionLost
				}
				if said.Doubt == core.ConnectionLost && c.ended() {
					said.Detail = c.cause.Error()
				}
				said.Detail = c.name + ": " + said.Detail
				return said
			case core.NeverRan:
				c.finish(channel)
				said.Detail = c.name + ": " + said.Detail
				return said
			}
			return unclear(core.ConnectionLost, "no answer")
		case <-c.done:
			return unclear(core.ConnectionLost, "%v", c.cause)
		case <-ctx.Done():
			abandon()
			return unclear(core.ConnectionLost, "left alone: %v", context.Cause(ctx))
		case <-limit:
			limit = nil
			if !c.alive(ctx) {
				continue // one of the other cases has happened, or the answer came with the end
			}
			abandon()
			return unclear(core.LimitReached, "the script %s did not end within %s", script.Name, script.Limit)
		}
	}
}

// learn keeps the PATH that the first script found.
func (c *connection) learn(shell, note string) {
	source, path, ok := strings.Cut(note, " ")
	if !ok || source != pathOfLogin && source != pathOfSystem || path == "" {
		return
	}
	c.mu.Lock()
	c.paths[shell] = setPath(source, path)
	c.mu.Unlock()
}

// exchange is one script on one channel.
type exchange struct {
	channel *channel
	answer  *frame.Answer
	note    string
	pid     atomic.Int64 // of the process that holds the frame, once it is known
}

// run sends the exec request and reads what comes of it. It returns when the
// answer is whole and the command has ended, when the output is too long, when
// the channel has ended, or when the connection has.
func (e *exchange) run(line string) core.Reply {
	accepted, err := e.channel.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{line}))
	if err != nil {
		return core.Unclear{Doubt: core.ConnectionLost, Detail: "the connection ended while the script was sent"}
	}
	if !accepted {
		return core.NeverRan{Fault: core.Unreachable, Detail: "the server refuses to run a command for this account"}
	}
	_ = e.channel.CloseWrite()
	complaint := &tail{}
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		_, _ = io.Copy(complaint, e.channel.Stderr())
	}()

	buffer := make([]byte, 32<<10)
	for {
		n, err := e.channel.Read(buffer)
		if _, flood := e.answer.Write(buffer[:n]); flood != nil {
			return core.Unclear{Doubt: core.Flooded, Detail: "the script printed more than an answer may have"}
		}
		if pid, begun := e.answer.Begun(); begun {
			e.pid.Store(int64(pid))
		}
		if _, _, _, whole := e.answer.Whole(); whole || err != nil {
			break
		}
	}
	body, exit, note, whole := e.answer.Whole()
	var how ending
	select {
	case how = <-e.channel.status:
	case <-e.channel.ended:
		select {
		case how = <-e.channel.status: // it came before the end
		default:
			return core.Unclear{Doubt: core.ConnectionLost, Detail: "the command ended without an exit status"}
		}
	}
	if whole && how.signal == "" {
		e.note = note
		return core.Said{Body: body, Exit: exit}
	}
	// Nothing of ours writes any more; what it complained of may say why.
	if !whole {
		<-e.channel.ended
		<-quiet
	}
	detail := fmt.Sprintf("the command ended (status %d) without the frame of its answer", how.exit)
	if how.signal != "" {
		detail = "the command was ended by the signal " + how.signal
	}
	if _, begun := e.answer.Begun(); !begun {
		detail += "; it did not start: the account's login shell may end or replace itself"
	}
	if last := complaint.String(); last != "" {
		detail += ": " + last
	}
	return core.Unclear{Doubt: core.Unframed, Detail: detail}
}

// tail keeps the end of a stream that is otherwise dropped.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailCap = 300

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > tailCap {
		t.kept = append(t.kept[:0], p[len(p)-tailCap:]...)
		return len(p), nil
	}
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailCap; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String is what was kept, on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return ' '
		}
		return r
	}, string(t.kept))), " ")
}
