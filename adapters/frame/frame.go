// Package frame puts a frame around a script's output, so that an answer can be
// told from noise and a whole answer from a part of one.
//
// An exit status proves nothing: a login shell whose profile says "exit 0", a
// profile that eats a script, a shell that replaces itself by another all end
// with status 0 and no output. Only the closing mark, which carries a nonce
// made for this one call, proves that the script ran to its end.
package frame

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
)

// Cap is how much a script may print between its marks.
const Cap = 1 << 20

// noiseCap bounds what may come before the opening mark. It is dropped as it
// comes; the bound only ends an account that never stops printing.
const noiseCap = 64 << 20

// noteCap bounds the closing mark's line.
const noteCap = 64 << 10

// ErrFlooded says that a cap was reached.
var ErrFlooded = errors.New("more output than an answer may have")

// Frame is the pair of marks of one call. The zero value frames nothing: use New.
type Frame struct{ nonce string }

// New makes the frame for one call, with a nonce of 130 bits.
func New() Frame { return Frame{nonce: rand.Text()} }

// Nonce is the frame's nonce: letters and digits, without meaning.
func (f Frame) Nonce() string { return f.nonce }

// Around is the POSIX program that runs a script between the marks. The script's
// text is taken from the shell word body (for example "$1", with its quotes),
// and runs in a shell of its own: its $$ is the process that does the work, and
// neither exit, nor a syntax error, nor a trap of the script reaches the frame.
// Its standard input is /dev/null.
//
// prologue runs first and may set the environment of the script. Shell
// functions that bash imports from the environment are forgotten before it:
// they would stand in for the commands of the script. Where the prologue sets
// the shell variable note, its one line is reported with the closing mark.
//
// A script ended by a signal (status above 128) gets no closing mark: it did
// not run to its end. The opening mark names the process that holds the frame.
func (f Frame) Around(prologue, body string) string {
	return `unset -f printf
case $BASH_VERSION in ?*) unset -f compgen; unset -f $(compgen -A function) printf ;; esac
note=
` + prologue + `
printf '\n@%s@BEGIN %s\n' ` + f.nonce + ` $$
/bin/sh -c ` + body + ` reclaim </dev/null
s=$?
case $s in ?|??|1[01]?|12[0-8]) printf '\n@%s@END %d %s\n' ` + f.nonce + ` $s "$note" ;; esac
`
}

// Answer reads the output of one call as it comes. Its memory is bounded by Cap.
type Answer struct {
	begin, end []byte
	kept       []byte // before the opening mark: the last few bytes; after it: everything
	noise      int
	open, done bool
	body, note string
	exit, pid  int
}

// Answer starts reading the output of the one call that f frames.
func (f Frame) Answer() *Answer {
	return &Answer{begin: []byte("\n@" + f.nonce + "@BEGIN "), end: []byte("\n@" + f.nonce + "@END ")}
}

// Write takes the next output. Its only error is ErrFlooded, after which the
// answer never becomes whole.
func (a *Answer) Write(p []byte) (int, error) {
	if a.done {
		return len(p), nil
	}
	if a.open {
		return len(p), a.take(p)
	}
	a.noise += len(p)
	a.kept = append(a.kept, p...)
	at := bytes.Index(a.kept, a.begin)
	if at < 0 {
		a.kept = append(a.kept[:0], a.kept[max(0, len(a.kept)-len(a.begin)+1):]...)
		if a.noise > noiseCap {
			return len(p), ErrFlooded
		}
		return len(p), nil
	}
	a.kept = append(a.kept[:0], a.kept[at:]...)
	process, rest, whole := bytes.Cut(a.kept[len(a.begin):], []byte("\n"))
	if !whole {
		if len(process) > 32 {
			return len(p), ErrFlooded
		}
		return len(p), nil
	}
	a.pid, _ = strconv.Atoi(string(process))
	a.open = true
	a.kept = nil
	return len(p), a.take(rest)
}

func (a *Answer) take(p []byte) error {
	if len(a.kept) > Cap+noteCap {
		return ErrFlooded
	}
	// A first cut keeps the memory bounded however large p is.
	if room := Cap + 2*noteCap - len(a.kept); len(p) > room {
		p = p[:room]
	}
	from := max(0, len(a.kept)-noteCap)
	a.kept = append(a.kept, p...)
	at := bytes.Index(a.kept[from:], a.end)
	if at < 0 {
		if len(a.kept) > Cap+noteCap {
			return ErrFlooded
		}
		return nil
	}
	at += from
	line, _, whole := strings.Cut(string(a.kept[at+len(a.end):]), "\n")
	if !whole {
		if len(line) > noteCap {
			return ErrFlooded
		}
		return nil
	}
	status, note, _ := strings.Cut(line, " ")
	exit, err := strconv.Atoi(status)
	if err != nil || exit < 0 || exit > 128 || strconv.Itoa(exit) != status {
		return nil // not a mark of ours, and so never a whole answer
	}
	if at > Cap {
		return ErrFlooded
	}
	a.done, a.exit, a.note, a.body = true, exit, note, string(a.kept[:at])
	a.kept = nil
	return nil
}

// Whole reports whether both marks came, and with them everything the script
// printed between the two, its exit status, and the prologue's note.
func (a *Answer) Whole() (body string, exit int, note string, ok bool) {
	return a.body, a.exit, a.note, a.done
}

// Begun reports whether the opening mark came, and which process holds the
// frame: the script is a child of it.
func (a *Answer) Begun() (pid int, ok bool) { return a.pid, a.open }

// Quote writes s as one word of POSIX shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
