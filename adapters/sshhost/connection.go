package sshhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/core"
)

// connection is one logged-in connection, shared by the sessions on it.
type connection struct {
	options Options
	way     *route
	client  *ssh.Client
	name    string // for messages: the host and how it is reached

	ending sync.Once
	done   chan struct{} // closed when the connection has ended
	cause  error         // why; read after done

	slots chan struct{} // one for each script that may run at once

	mu      sync.Mutex
	spare   chan opened       // a channel opened ahead of its script; nil without one
	running int               // channels in use
	crowded bool              // the server has no room for a spare beside a running script
	paths   map[string]string // shell -> prologue that sets its PATH
}

type opened struct {
	channel *channel
	err     error
}

var errClosedHere = errors.New("it was closed on this side")

func newConnection(options Options, way *route, client *ssh.Client, name string) *connection {
	c := &connection{
		options: options,
		way:     way,
		client:  client,
		name:    name,
		done:    make(chan struct{}),
		slots:   make(chan struct{}, options.Sessions),
		paths:   map[string]string{},
	}
	for range options.Sessions {
		c.slots <- struct{}{}
	}
	go func() {
		err := client.Wait()
		if err == nil {
			err = io.EOF
		}
		c.end(fmt.Errorf("the connection was lost: %w", err))
	}()
	go c.watch()
	c.open()
	return c
}

// end closes everything the connection is made of. The first cause stays.
func (c *connection) end(cause error) {
	c.ending.Do(func() {
		c.cause = cause
		close(c.done)
		c.way.close()
		c.client.Close()
	})
}

func (c *connection) close() error {
	c.end(errClosedHere)
	return nil
}

func (c *connection) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// sign asks the server for a sign of life; any answer is one.
func (c *connection) sign() <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
		answer <- err
	}()
	return answer
}

// watch ends the connection once the server has not answered for long enough.
func (c *connection) watch() {
	tick := time.NewTicker(c.options.Keepalive)
	defer tick.Stop()
	var asked <-chan error
	missed := 0
	for {
		select {
		case <-c.done:
			return
		case <-asked:
			asked, missed = nil, 0
		case <-tick.C:
			if asked == nil {
				asked = c.sign()
				continue
			}
			if missed++; missed >= c.options.Misses {
				c.end(fmt.Errorf("the connection was lost: no sign of life for %s", time.Duration(missed)*c.options.Keepalive))
				return
			}
		}
	}
}

// alive asks for a sign of life now, and ends the connection if none comes: a
// limit that passes on a dead connection says nothing about the script.
func (c *connection) alive(ctx context.Context) bool {
	patience := time.NewTimer(c.options.Keepalive)
	defer patience.Stop()
	select {
	case err := <-c.sign():
		return err == nil
	case <-c.done:
	case <-ctx.Done():
	case <-patience.C:
		c.end(fmt.Errorf("the connection was lost: no sign of life for %s", c.options.Keepalive))
	}
	return false
}

// channel is one session channel: one script at most.
type channel struct {
	ssh.Channel
	ended  chan struct{} // closed when the server has closed the channel
	status chan ending   // how the command ended, if the server says
}

type ending struct {
	exit   uint32
	signal string
}

// open opens a channel ahead of its script, so that the script itself costs one
// round trip. At most one is open or being opened.
func (c *connection) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare != nil || c.crowded && c.running > 0 || c.ended() {
		return
	}
	spare := make(chan opened, 1)
	c.spare = spare
	go func() {
		channel, err := c.openNow()
		if err != nil {
			c.mu.Lock()
			if refusedOpen(err) && c.running > 0 {
				c.crowded = true
			}
			c.mu.Unlock()
		}
		spare <- opened{channel, err}
	}()
}

func (c *connection) openNow() (*channel, error) {
	raw, requests, err := c.client.OpenChannel("session", nil)
	if err != nil {
		return nil, err
	}
	channel := &channel{Channel: raw, ended: make(chan struct{}), status: make(chan ending, 1)}
	go func() {
		defer close(channel.ended)
		for request := range requests {
			var end ending
			known := false
			switch request.Type {
			case "exit-status":
				var message struct{ Status uint32 }
				known = ssh.Unmarshal(request.Payload, &message) == nil
				end.exit = message.Status
			case "exit-signal":
				var message struct {
					Signal     string
					CoreDumped bool
					Error      string
					Lang       string
				}
				known = ssh.Unmarshal(request.Payload, &message) == nil
				end.signal = message.Signal
			}
			if known {
				select {
				case channel.status <- end:
				default:
				}
			}
			if request.WantReply {
				_ = request.Reply(false, nil)
			}
		}
	}()
	return channel, nil
}

func refusedOpen(err error) bool {
	var refused *ssh.OpenChannelError
	return errors.As(err, &refused)
}

// take waits for a slot and gives a channel for one script. Where the server
// has room for fewer sessions than we would use, the number of slots shrinks to
// what it has. What comes instead of a channel is the answer to the script.
func (c *connection) take(ctx context.Context) (*channel, core.Reply) {
	for attempt := 0; ; {
		select {
		case <-c.slots:
		case <-ctx.Done():
			return nil, core.Unclear{Doubt: core.ConnectionLost, Detail: c.name + ": not sent: " + context.Cause(ctx).Error()}
		case <-c.done:
		}
		if c.ended() {
			return nil, core.NeverRan{Fault: core.Unreachable, Detail: c.name + ": not sent: " + c.cause.Error()}
		}
		channel, err := c.channel(ctx)
		if err == nil {
			return channel, nil
		}
		if !refusedOpen(err) {
			c.slots <- struct{}{}
			if ctx.Err() != nil {
				return nil, core.Unclear{Doubt: core.ConnectionLost, Detail: c.name + ": not sent: " + context.Cause(ctx).Error()}
			}
			return nil, core.NeverRan{Fault: core.Unreachable, Detail: c.name + ": not sent: no session could be opened: " + plainError(err)}
		}
		c.mu.Lock()
		others := c.running > 0
		c.crowded = true
		c.mu.Unlock()
		if others {
			continue // and keep the slot: the server has no room for it
		}
		c.slots <- struct{}{}
		// Nothing of ours runs, yet the server has no room: it may not have
		// noticed the end of our last session.
		if attempt++; attempt > 10 {
			return nil, core.NeverRan{Fault: core.Unreachable, Detail: c.name + ": not sent: the server refuses a session: " + plainError(err)}
		}
		pause := time.NewTimer(time.Duration(attempt) * 20 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-c.done:
		}
		pause.Stop()
	}
}

// channel gives the spare channel if it is still good, or opens one.
func (c *connection) channel(ctx context.Context) (*channel, error) {
	for {
		c.mu.Lock()
		spare := c.spare
		c.spare = nil
		c.mu.Unlock()
		if spare == nil {
			spare = make(chan opened, 1)
			go func() {
				channel, err := c.openNow()
				spare <- opened{channel, err}
			}()
		} else {
			var got opened
			select {
			case got = <-spare:
			case <-ctx.Done():
				go discard(spare)
				return nil, ctx.Err()
			}
			if got.err == nil && !got.channel.closed() {
				c.begin()
				return got.channel, nil
			}
			continue // it failed or was closed by the server meanwhile
		}
		select {
		case got := <-spare:
			if got.err == nil {
				c.begin()
			}
			return got.channel, got.err
		case <-ctx.Done():
			go discard(spare)
			return nil, ctx.Err()
		}
	}
}

func discard(spare chan opened) {
	if got := <-spare; got.err == nil {
		got.channel.Close()
	}
}

func (ch *channel) closed() bool {
	select {
	case <-ch.ended:
		return true
	default:
		return false
	}
}

func (c *connection) begin() {
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
}

// finish gives a channel back. Its slot is free again once the server has
// closed it too: until then the server counts it.
func (c *connection) finish(channel *channel) {
	go func() {
		channel.Close()
		select {
		case <-channel.ended:
		case <-c.done:
		}
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
		c.slots <- struct{}{}
		c.open()
	}()
}

// killPatience is how long a command has to end by a signal before it is ended
// by other means.
const killPatience = 500 * time.Millisecond

// kill ends what runs on the channel. The SSH signal is the way; OpenSSH ignores
// it for root, old servers for everybody, so that a command which is still there
// after it is ended by a second one: the process group of pid, if that process
// still carries the nonce in its arguments.
func (c *connection) kill(channel *channel, pid int, nonce string) {
	_, _ = channel.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{"KILL"}))
	patience := time.NewTimer(killPatience)
	defer patience.Stop()
	select {
	case <-channel.ended:
		return
	case <-c.done:
		return
	case <-patience.C:
	}
	if pid <= 1 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Keepalive)
	defer cancel()
	killer, err := c.channel(ctx)
	if err != nil {
		return
	}
	line := `exec /bin/sh -c 'if grep -q "$1" "/proc/$0/cmdline" 2>/dev/null || ps -ww -o args= -p "$0" 2>/dev/null | grep -q "$1"; then kill -s KILL -- "-$0"; fi' '` +
		strconv.Itoa(pid) + `' '` + nonce + `'`
	_, _ = killer.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{line}))
	_ = killer.CloseWrite()
	select {
	case <-killer.status:
	case <-killer.ended:
	case <-c.done:
	case <-ctx.Done():
	}
	killer.Close()
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
}
