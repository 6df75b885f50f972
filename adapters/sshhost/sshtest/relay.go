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
	trips    atomic.Int64
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

// Trips counts the round trips so far that had to follow one another: the
// longest chain, over each connection, of a client that spoke once it had heard
// what the server said once it had heard the client. What is sent at the same
// time is one trip where the delay is longer than the time it takes to send it;
// how long either side thinks does not count. Connecting is not seen.
func (r *Relay) Trips() int { return int(r.trips.Load()) }

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
	var asked, answered atomic.Int64 // the longest chain that reached the server, the client
	var both sync.WaitGroup
	both.Go(func() {
		r.pipe(server, client, func() int64 { return answered.Load() + 1 }, func(chain int64) { asked.Store(max(asked.Load(), chain)) },
			func(p []byte) []byte { return p })
	})
	both.Go(func() {
		r.pipe(client, server, asked.Load, func(chain int64) {
			if before := answered.Load(); chain > before {
				answered.Store(chain)
				r.trips.Add(chain - before)
			}
		}, func(p []byte) []byte {
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
// way, as on a long line. What is read belongs to the chain sent tells of; come
// is called when it arrives.
func (r *Relay) pipe(to, from net.Conn, sent func() int64, come func(chain int64), pass func([]byte) []byte) {
	type parcel struct {
		due   time.Time
		chain int64
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
			come(p.chain)
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
			line <- parcel{time.Now().Add(time.Duration(r.delay.Load())), sent(), passed, len(passed) < n}
		}
		if err != nil {
			break
		}
	}
	close(line)
	writer.Wait()
}
