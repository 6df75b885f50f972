package core

import "time"

// Script is one POSIX shell program for one host, whole: parameters are inside
// it, quoted. It is sent as a single exec request and never on standard input,
// so that it arrives whole or not at all.
type Script struct {
	Name  string        // inventory, greet, settle, remove
	Body  string        // POSIX sh, no NUL byte
	Limit time.Duration // how long it may run on a living connection
}

// Reply is what came of one script: Said, Unclear or NeverRan. A nil Reply
// proves nothing and is treated as Unclear.
type Reply interface{ reply() }

// Said is a script that ran to its end: Body is everything it printed between
// the opening and the closing mark of the frame. Whatever the exit status, an
// answer without its closing mark is not Said.
type Said struct {
	Body string
	Exit int
}

// Unclear is a script that may have run, to some point nobody knows.
type Unclear struct {
	Doubt  Doubt
	Detail string
}

// NeverRan is a script that certainly did not start.
type NeverRan struct {
	Fault  Fault // no_pin, host_key_mismatch, auth_failed, unreachable
	Detail string
}

func (Said) reply()     {}
func (Unclear) reply()  {}
func (NeverRan) reply() {}

// Doubt says what is not known about a script that may have run.
type Doubt string

const (
	// ConnectionLost: the connection ended, or no exit status came. It says
	// nothing about the directory.
	ConnectionLost Doubt = "lost"
	// LimitReached: the script's limit passed while the connection lived.
	LimitReached Doubt = "limit"
	// Unframed: the command ended but its frame did not: a login shell that
	// exits, a shell that is missing, a script that was killed.
	Unframed Doubt = "unframed"
	// Flooded: the output cap was reached.
	Flooded Doubt = "flooded"
)
