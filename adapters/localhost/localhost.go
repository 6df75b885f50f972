// Package localhost runs scripts on this machine, through /bin/sh, without a
// login shell and in the caller's environment. It answers exactly as sshhost
// does over a connection: same frame, same endings.
package localhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kandev/reclaim/adapters/frame"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Dialer reaches the machine it runs on. Nothing of a target is used: there is
// no host to prove and nobody to log in as.
type Dialer struct{}

// Dial never refuses, unless ctx has ended.
func (Dialer) Dial(ctx context.Context, _ core.Target) (ports.Session, core.NeverRan) {
	if err := ctx.Err(); err != nil {
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: "not started: " + err.Error()}
	}
	return &session{closed: make(chan struct{})}, core.NeverRan{}
}

type session struct {
	trips  atomic.Int64
	once   sync.Once
	closed chan struct{}
}

func (s *session) Trips() int { return int(s.trips.Load()) }

func (s *session) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// survives reports whether the script must be left to run whatever happens to
// us: it moves or removes things, and a half of it is worse than the whole.
func survives(script core.Script) bool { return script.Name == "remove" || script.Name == "settle" }

// Run starts the script in a session of its own (setsid), so that neither a
// terminal's interrupt nor our death reaches it.
func (s *session) Run(ctx context.Context, script core.Script) core.Reply {
	select {
	case <-s.closed:
		return core.NeverRan{Fault: core.Unreachable, Detail: "this machine's session is closed"}
	default:
	}
	if ctx.Err() != nil {
		return core.Unclear{Doubt: core.ConnectionLost, Detail: "not started: " + ctx.Err().Error()}
	}
	if strings.ContainsRune(script.Body, 0) {
		return core.Unclear{Doubt: core.Unframed, Detail: "not started: the script holds a NUL byte"}
	}
	mark := frame.New()
	command := exec.Command("/bin/sh", "-c", mark.Around("", `"$1"`), "reclaim", script.Body)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Env = environment(os.Environ())
	reader, writer, err := os.Pipe()
	if err != nil {
		return core.NeverRan{Fault: core.Unreachable, Detail: "no pipe for a script: " + err.Error()}
	}
	command.Stdout = writer
	if err := command.Start(); err != nil {
		reader.Close()
		writer.Close()
		if errors.Is(err, syscall.E2BIG) {
			return core.Unclear{Doubt: core.Unframed, Detail: fmt.Sprintf("not started: the script of %d bytes is too long for one argument", len(script.Body))}
		}
		return core.NeverRan{Fault: core.Unreachable, Detail: "/bin/sh does not start: " + err.Error()}
	}
	writer.Close()
	s.trips.Add(1)

	ended := make(chan core.Reply, 1)
	go func() { ended <- converse(command, reader, mark.Answer()) }()
	limit, stop := deadline(script.Limit)
	defer stop()
	var doubt core.Unclear
	select {
	case reply := <-ended:
		if unclear, is := reply.(core.Unclear); is && unclear.Doubt == core.Flooded && !survives(script) {
			kill(command)
		}
		return reply
	case <-ctx.Done():
		doubt = core.Unclear{Doubt: core.ConnectionLost, Detail: "left alone: " + ctx.Err().Error()}
	case <-s.closed:
		doubt = core.Unclear{Doubt: core.ConnectionLost, Detail: "left alone: the session was closed"}
	case <-limit:
		doubt = core.Unclear{Doubt: core.LimitReached, Detail: fmt.Sprintf("the script %s did not end within %s", script.Name, script.Limit)}
	}
	if !survives(script) {
		kill(command)
	}
	return doubt
}

// converse reads the script's output to its closing mark or its end, and waits
// for the process. What comes later goes on being read and dropped until every
// process that can write it has ended: a removal that was left alone must not
// be stopped by a full pipe.
func converse(command *exec.Cmd, output *os.File, answer *frame.Answer) core.Reply {
	settled := make(chan error, 1)
	go func() {
		defer output.Close()
		settled <- read(output, answer)
		_, _ = io.Copy(io.Discard, output)
	}()
	err := <-settled
	if errors.Is(err, frame.ErrFlooded) {
		go func() { _ = command.Wait() }()
		return core.Unclear{Doubt: core.Flooded, Detail: "the script printed more than an answer may have"}
	}
	_ = command.Wait() // its status is the frame's business
	if body, exit, _, ok := answer.Whole(); ok {
		return core.Said{Body: body, Exit: exit}
	}
	return core.Unclear{Doubt: core.Unframed, Detail: "the script ended without its closing mark: " + command.ProcessState.String()}
}

// read feeds the answer until it is whole, flooded, or the output ends.
func read(output io.Reader, answer *frame.Answer) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := output.Read(buffer)
		if _, flood := answer.Write(buffer[:n]); flood != nil {
			return flood
		}
		if _, _, _, ok := answer.Whole(); ok || err != nil {
			return err
		}
	}
}

// kill ends the script and everything it started in its session's first group.
func kill(command *exec.Cmd) { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }

// deadline is a channel that fires when the limit passes; never, where there is
// none.
func deadline(limit time.Duration) (<-chan time.Time, func()) {
	if limit <= 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(limit)
	return timer.C, func() { timer.Stop() }
}

// environment is the caller's, except that a PATH entry which is not absolute
// is left out: scripts change into directories they do not trust, and must not
// find a git there.
func environment(caller []string) []string {
	kept := make([]string, 0, len(caller))
	for _, entry := range caller {
		if value, is := strings.CutPrefix(entry, "PATH="); is {
			var absolute []string
			for _, directory := range filepath.SplitList(value) {
				if filepath.IsAbs(directory) {
					absolute = append(absolute, directory)
				}
			}
			entry = "PATH=" + strings.Join(absolute, string(filepath.ListSeparator))
		}
		kept = append(kept, entry)
	}
	return kept
}
