package sshtest

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Relay carries TCP connections from a loopback port to a server, and can slow
// them down, cut them, or swallow what they carry.
type Relay struct {
	Port int

	to       string
	delay    atomic.Int64 // one way
	listener net.Listener
	group    sync.WaitGroup
	accepted atomic.Int64
	turns    atomic.Int64
	answered atomic.Int64 // bytes that went to clients
	left     atomic.Int64 // bytes that may still go to a client; negative: any number
	hole     atomic.Bool

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// NewRelay starts a relay to the address; Close ends it.
func NewRelay(to string) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Port: listener.Addr().(*net.TCPAddr).Port, to: to, listener: listener, open: map[net.Conn]bool{}}
	r.left.Store(-1)
	r.group.Go(r.accept)
	return r, nil
}

// SetRoundTrip delays everything from now on by half of it in each direction.
func (r *Relay) SetRoundTrip(d time.Duration) { r.delay.Store(int64(d / 2)) }

// CutAfter drops the connections once n more bytes have gone to a client; a
// negative n means never.
func (r *Relay) CutAfter(n int) { r.left.Store(int64(n)) }

// BlackHole swallows everything from now on, without ending a connection.
func (r *Relay) BlackHole() { r.hole.Store(true) }

// Connections counts the connections accepted so far.
func (r *Relay) Connections() int { return int(r.accepted.Load()) }

// Answered counts the bytes that have gone to clients so far.
func (r *Relay) Answered() int { return int(r.answered.Load()) }

// Turns counts how often a client has spoken after the server did: with one
// thing going on at a time, the round trips so far.
func (r *Relay) Turns() int { return int(r.turns.Load()) }

// Close ends the relay and its connections and waits for its goroutines.
func (r *Relay) Close() error {
	r.mu.Lock()
	r.closed = true
	err := r.listener.Close()
	for connection := range r.open {
		connection.Close()
	}
	r.mu.Unlock()
	r.group.Wait()
	return err
}

// keep registers a connection that Close is to end.
func (r *Relay) keep(connection net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		connection.Close()
		return false
	}
	r.open[connection] = true
	return true
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		if !r.keep(client) {
			return
		}
		r.accepted.Add(1)
		r.group.Go(func() { r.carry(client) })
	}
}

func (r *Relay) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.to)
	if err != nil || !r.keep(server) {
		return
	}
	defer server.Close()
	var serverSpoke atomic.Bool
	serverSpoke.Store(true)
	var both sync.WaitGroup
	both.Go(func() {
		r.pipe(server, client, func(p []byte) []byte {
			if serverSpoke.Swap(false) {
				r.turns.Add(1)
			}
			return p
		})
	})
	both.Go(func() {
		r.pipe(client, server, func(p []byte) []byte {
			serverSpoke.Store(true)
			if left := r.left.Load(); left >= 0 && int64(len(p)) >= left {
				p = p[:left]
			} else if left >= 0 {
				r.left.Store(left - int64(len(p)))
			}
			r.answered.Add(int64(len(p)))
			return p
		})
	})
	both.Wait()
	r.mu.Lock()
	delete(r.open, client)
	delete(r.open, server)
	r.mu.Unlock()
}

// pipe carries one direction. Reading goes on while earlier bytes are on their
// way, as on a long line.
func (r *Relay) pipe(to, from net.Conn, pass func([]byte) []byte) {
	type parcel struct {
		due   time.Time
		bytes []byte
		last  bool
	}
	line := make(chan parcel, 4096)
	var writer sync.WaitGroup
	writer.Go(func() {
		defer func() {
			to.Close()
			from.Close()
			for range line { // whoever reads must not wait for us
			}
		}()
		for p := range line {
			if wait := time.Until(p.due); wait > 0 {
				time.Sleep(wait)
			}
			if _, err := to.Write(p.bytes); err != nil || p.last {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !r.hole.Load() {
			passed := pass(append([]byte(nil), buffer[:n]...))
			line <- parcel{time.Now().Add(time.Duration(r.delay.Load())), passed, len(passed) < n}
		}
		if err != nil {
			break
		}
	}
	close(line)
	writer.Wait()
}
