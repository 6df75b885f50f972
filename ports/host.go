package ports

import (
	"context"

	"github.com/kandev/reclaim/core"
)

// Dialer reaches hosts.
type Dialer interface {
	// Dial connects to the host that target names, proves by the pinned
	// fingerprint that it is that host before any credential is sent, and logs
	// in. Either the Session is non-nil and the refusal is the zero value, or
	// Session is nil and the refusal says why: its Fault is one of no_pin,
	// host_key_mismatch, auth_failed, unreachable, and its Detail is one
	// sentence for a person that names host, hop and cure. Dial returns within
	// its own deadlines and promptly when ctx ends (refusal unreachable).
	Dial(ctx context.Context, target core.Target) (Session, core.NeverRan)
}

// Session runs scripts on one connected host. It is safe for concurrent use.
type Session interface {
	// Run sends one script and waits for what came of it. It never returns nil.
	// When ctx ends Run returns promptly with Unclear(lost); a script whose
	// name is "remove" or "settle" is then left to run on the host, never
	// signalled. When the script's own Limit passes on a living connection the
	// answer is Unclear(limit), and anything but a removal is killed. Standard
	// error is not part of the answer; more than 1 MiB of output is
	// Unclear(flooded).
	Run(ctx context.Context, script core.Script) core.Reply
	// Trips counts the scripts sent so far.
	Trips() int
	// Close ends the connection; every Run still waiting returns
	// Unclear(lost), and a Run after Close is NeverRan(unreachable).
	Close() error
}
