package sshhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Dialer reaches hosts over SSH. Use New.
type Dialer struct {
	options Options

	mu    sync.Mutex
	found map[string]string // pin -> the type of key it is of
}

// New makes a dialer. The environment (HOME, USER, SSH_AUTH_SOCK) is read now,
// files are read at each Dial.
func New(options Options) *Dialer {
	return &Dialer{options: options.filled(), found: map[string]string{}}
}

// Dial makes a connection of its own for one session; Close ends both. See
// ports.Dialer for what it promises, and Pool for sharing.
func (d *Dialer) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	connected, refusal := d.connect(ctx, target)
	if refusal != nil {
		return nil, *refusal
	}
	return newSession(connected, target.Shell, connected.close), core.NeverRan{}
}

func refuse(fault core.Fault, format string, args ...any) *core.NeverRan {
	return &core.NeverRan{Fault: fault, Detail: fmt.Sprintf(format, args...)}
}

// connect does everything that needs no network first, so that what is wrong
// here is told without asking anybody.
func (d *Dialer) connect(ctx context.Context, target core.Target) (*connection, *core.NeverRan) {
	if refusal := checkPin(target.Fingerprint); refusal != nil {
		return nil, refusal
	}
	address, err := targetAddress(target)
	if err != nil {
		return nil, refuse(core.Unreachable, "%q cannot be dialled: %v", target.Host, err)
	}
	if address.User == "" {
		address.User = d.options.User
	}
	if address.User == "" {
		return nil, refuse(core.AuthFailed, "host %s: no user is recorded, and USER is not set here; write it as user@host", address.dialled())
	}
	hops, err := d.options.hops(target.ProxyJump)
	if err != nil {
		return nil, refuse(core.Unreachable, "host %s: the jump host %q cannot be used: %v", address.dialled(), target.ProxyJump, err)
	}
	for i := range hops {
		if hops[i].User == "" {
			hops[i].User = d.options.User
		}
		if hops[i].User == "" {
			hops[i].User = address.User
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, refuse(core.Unreachable, "host %s: not dialled: %v", address.dialled(), err)
	}
	patience := time.Duration(len(hops)+1) * (d.options.TCP + d.options.Handshake)
	keys, err := d.options.identityOf(target, time.Now().Add(patience))
	if err != nil {
		return nil, refuse(core.AuthFailed, "host %s: %v", address.dialled(), err)
	}
	defer keys.close()

	way := &route{options: d.options}
	for _, hop := range hops {
		if refusal := way.hop(ctx, hop, keys); refusal != nil {
			way.close()
			return nil, refusal
		}
	}
	d.mu.Lock()
	search := newKeySearch(target.Fingerprint, d.found[target.Fingerprint])
	d.mu.Unlock()
	client, refusal := way.pinned(ctx, address, search, keys)
	if refusal != nil {
		way.close()
		return nil, refusal
	}
	accepted, _, _ := search.state()
	d.mu.Lock()
	d.found[target.Fingerprint] = accepted
	d.mu.Unlock()
	return newConnection(d.options, way, client, way.name("host", address)), nil
}

// route is the chain of connections on the way to a host.
type route struct {
	options Options
	passed  []Address
	hops    []*ssh.Client
	first   net.Conn // the one TCP connection that carries everything
}

// close ends every connection of the chain. The one below comes first: what it
// carries then fails at once, whatever the other side does.
func (r *route) close() {
	if r.first != nil {
		r.first.Close()
	}
	for _, hop := range r.hops {
		hop.Close()
	}
}

// name names a host and how it is reached.
func (r *route) name(kind string, address Address) string {
	name := kind + " " + address.dialled()
	if len(r.passed) > 0 {
		through := make([]string, len(r.passed))
		for i, hop := range r.passed {
			through[i] = hop.dialled()
		}
		name += " (through jump host " + strings.Join(through, ", ") + ")"
	}
	return name
}

// reach opens a stream to the address from the end of the chain.
func (r *route) reach(ctx context.Context, address Address) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.TCP)
	defer cancel()
	if len(r.hops) > 0 {
		// A deadline on a stream through a hop is not supported; what can be
		// ended is the chain.
		stream, err := r.hops[len(r.hops)-1].DialContext(ctx, "tcp", address.dialled())
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		return stream, err
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address.dialled())
	if err == nil {
		r.first = connection
	}
	return connection, err
}

// handshake proves the server and logs in. The chain is ended when ctx ends
// first: nothing else unblocks a handshake whose stream runs through a hop.
func (r *route) handshake(ctx context.Context, stream net.Conn, address Address, config *ssh.ClientConfig) (*ssh.Client, error) {
	stop := context.AfterFunc(ctx, r.close)
	connection, channels, requests, err := ssh.NewClientConn(stream, address.dialled(), config)
	if !stop() {
		if err == nil {
			connection.Close()
		}
		return nil, ctx.Err()
	}
	if err != nil {
		stream.Close()
		return nil, err
	}
	return ssh.NewClient(connection, channels, requests), nil
}

func credentials(keys *identity) []ssh.AuthMethod {
	// One method with all keys: a second public-key method is never tried.
	return []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) { return keys.signers, nil })}
}

// pinned connects to the host whose key search looks for.
func (r *route) pinned(ctx context.Context, address Address, search *keySearch, keys *identity) (*ssh.Client, *core.NeverRan) {
	where := r.name("host", address)
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	var offers []string // what the server says it has, where it said so
	for range maxSearch {
		offer := search.next()
		if len(offer) == 0 {
			break
		}
		stream, err := r.reach(ended, address)
		if err != nil {
			return nil, refuse(core.Unreachable, "%s is not reached: %s", where, reason(ctx, err, r.options.TCP))
		}
		limited, done := context.WithTimeout(ended, r.options.Handshake)
		client, err := r.handshake(limited, stream, address, &ssh.ClientConfig{
			User:              address.User,
			Auth:              credentials(keys),
			HostKeyAlgorithms: offer,
			HostKeyCallback:   func(_ string, _ net.Addr, key ssh.PublicKey) error { return search.check(key) },
		})
		done()
		accepted, shown, seen := search.state()
		var none *ssh.AlgorithmNegotiationError
		switch {
		case err == nil:
			return client, nil
		case accepted != "":
			return nil, r.loginRefused(ctx, where, address, err, keys)
		case shown && !timedOut(err):
			continue // another type may be the pinned one
		case errors.As(err, &none) && none.What == "host key":
			offers = none.RequestedAlgorithms
		default:
			if len(seen) > 0 {
				return nil, refuse(core.Unreachable, "%s stopped answering while its keys were compared (%s so far, none the pinned %s): %s; no credential was sent",
					where, strings.Join(seen, ", "), search.pin, reason(ctx, err, r.options.Handshake))
			}
			return nil, refuse(core.Unreachable, "%s does not complete an SSH handshake: %s; no credential was sent", where, reason(ctx, err, r.options.Handshake))
		}
		break
	}
	_, _, seen := search.state()
	shown := "showed " + strings.Join(seen, ", ")
	if len(seen) == 0 {
		shown = "has no key of a type that can be checked"
	}
	if len(offers) > 0 {
		shown += " (it offers " + strings.Join(offers, ", ") + ")"
	}
	return nil, refuse(core.HostKeyMismatch, "%s is not the host that was pinned: wanted %s, it %s; no credential was sent. If the machine was rebuilt, check its key and pin it again",
		where, search.pin, shown)
}

// loginRefused tells a refused login from a connection that ended meanwhile.
func (r *route) loginRefused(ctx context.Context, where string, address Address, err error, keys *identity) *core.NeverRan {
	if timedOut(err) || ctx.Err() != nil || broken(err) {
		return refuse(core.Unreachable, "%s showed the right key, but the login did not end: %s", where, reason(ctx, err, r.options.Handshake))
	}
	return refuse(core.AuthFailed, "%s refused the login of %s with %s: %s", where, address.User, keys.tried(), plainError(err))
}

// reason is why a phase of a dial ended, in words.
func reason(ctx context.Context, err error, limit time.Duration) string {
	switch {
	case ctx.Err() != nil:
		return "stopped by the caller: " + context.Cause(ctx).Error()
	case timedOut(err):
		return fmt.Sprintf("no answer within %s", limit)
	}
	return plainError(err)
}

func plainError(err error) string {
	text := strings.TrimPrefix(err.Error(), "ssh: handshake failed: ")
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		text = "the jump host says " + refused.Message
	}
	if errors.Is(err, io.EOF) {
		text = "the connection was closed"
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, text)
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}

// broken reports an end of the transport, as opposed to an answer.
func broken(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.As(err, &network)
}

// sameAlgorithms lists the signature algorithms of the given key types.
func algorithmsOf(types []string) []string {
	var algorithms []string
	for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
		if slices.Contains(types, keyType(algorithm)) {
			algorithms = append(algorithms, algorithm)
		}
	}
	return algorithms
}
