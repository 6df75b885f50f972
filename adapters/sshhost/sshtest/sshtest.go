// Package sshtest is a small SSH server on a loopback port: for demonstrations
// and tests that must need nothing but Go. It runs exec requests through a shell
// as the current user, forwards connections for a ProxyJump, counts what it was
// asked, and can be told to fail in the ways real servers and networks do.
//
// It treats a lost client as OpenSSH does: the command goes on, and what it
// prints from then on gets SIGPIPE. It is no server for anything else: whoever
// holds its one key runs commands as its owner.
package sshtest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/core"
)

// Options describe the server. The zero value is a healthy one with an ed25519
// key.
type Options struct {
	Shell       string   // runs each command with -c, like a login shell; /bin/sh
	Env         []string // of the commands; nil means the server's own
	HostKeys    []string // ed25519, ecdsa, rsa
	Certificate string   // the type of host key that has a certificate besides
	MaxSessions int      // on one connection, idle ones count; 0 means 10

	Faults Faults
}

// Faults are what the server does wrong.
type Faults struct {
	Silent       bool // accepts connections and never speaks
	RefuseLogin  bool
	RefuseExec   bool
	CutAnswer    bool // drops the connection when CutAfter bytes of a command's output have been sent
	CutAfter     int
	StallAnswer  bool // like CutAnswer, but falls silent altogether and keeps the connection
	NoExitStatus bool // closes a command's channel without saying how it ended
	StatusFirst  bool // says how a command ended before its output, as OpenSSH may; a command that prints little
}

// Server is a running server.
type Server struct {
	Port         int
	Fingerprints map[string]string // of each host key, by type; "certificate" is the certificate's own

	options     Options
	config      *ssh.ServerConfig
	listener    net.Listener
	identity    []byte
	connections atomic.Int64
	execs       atomic.Int64
	logins      atomic.Int64
	most        atomic.Int64 // sessions open at once on one connection

	mu     sync.Mutex
	faults Faults
	open   map[net.Conn]bool
	closed bool
	group  sync.WaitGroup
}

// Start starts a server; Close ends it.
func Start(options Options) (*Server, error) {
	if options.Shell == "" {
		options.Shell = "/bin/sh"
	}
	if options.HostKeys == nil {
		options.HostKeys = []string{"ed25519"}
	}
	if options.MaxSessions == 0 {
		options.MaxSessions = 10
	}
	s := &Server{options: options, faults: options.Faults, Fingerprints: map[string]string{}, open: map[net.Conn]bool{}}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	login, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "reclaim")
	if err != nil {
		return nil, err
	}
	s.identity = pem.EncodeToMemory(block)
	s.config = &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			s.logins.Add(1)
			if s.current().RefuseLogin || string(key.Marshal()) != string(login.PublicKey().Marshal()) {
				return nil, errors.New("not this key")
			}
			return nil, nil
		},
	}
	for _, kind := range options.HostKeys {
		signer, err := newKey(kind)
		if err != nil {
			return nil, err
		}
		s.Fingerprints[kind] = ssh.FingerprintSHA256(signer.PublicKey())
		s.config.AddHostKey(signer)
		if kind == options.Certificate {
			certified, err := certify(signer)
			if err != nil {
				return nil, err
			}
			s.Fingerprints["certificate"] = ssh.FingerprintSHA256(certified.PublicKey())
			s.config.AddHostKey(certified)
		}
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.Port = s.listener.Addr().(*net.TCPAddr).Port
	s.group.Go(s.accept)
	return s, nil
}

// Close ends the server and its connections and waits for its goroutines.
// Commands that run are left to run.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	err := s.listener.Close()
	for connection := range s.open {
		connection.Close()
	}
	s.mu.Unlock()
	s.group.Wait()
	return err
}

// SetFaults changes what goes wrong from now on.
func (s *Server) SetFaults(faults Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

func (s *Server) current() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// Connections counts the TCP connections accepted so far.
func (s *Server) Connections() int { return int(s.connections.Load()) }

// Execs counts the commands asked for so far, refused ones included.
func (s *Server) Execs() int { return int(s.execs.Load()) }

// MostSessions is how many sessions have been open at once on one connection,
// idle ones included.
func (s *Server) MostSessions() int { return int(s.most.Load()) }

// KeysOffered counts the public keys that clients have offered so far.
func (s *Server) KeysOffered() int { return int(s.logins.Load()) }

// WriteIdentity writes the one private key that may log in to a new file.
func (s *Server) WriteIdentity(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(s.identity)
	return errors.Join(err, file.Close())
}

// Target names the server as a launch would have recorded it, the identity
// having been written to the given file.
func (s *Server) Target(identity string) core.Target {
	return core.Target{Host: "127.0.0.1", Port: s.Port, User: "dev", Fingerprint: s.Fingerprints[s.options.HostKeys[0]],
		IdentitySource: "file", IdentityFile: identity, Enabled: true}
}

func (s *Server) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.connections.Add(1)
		s.mu.Lock()
		if s.closed {
			connection.Close()
		} else {
			s.open[connection] = true
			s.group.Go(func() {
				s.serve(connection)
				s.mu.Lock()
				delete(s.open, connection)
				s.mu.Unlock()
			})
		}
		s.mu.Unlock()
	}
}

func (s *Server) serve(raw net.Conn) {
	defer raw.Close()
	if s.current().Silent {
		_, _ = io.Copy(io.Discard, raw)
		return
	}
	wire := &wire{Conn: raw, gone: make(chan struct{})}
	defer wire.Close()
	connection, channels, requests, err := ssh.NewServerConn(wire, s.config)
	if err != nil {
		return
	}
	defer connection.Close()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for request := range requests {
			if request.WantReply {
				_ = request.Reply(false, nil)
			}
		}
	})
	var sessions atomic.Int64
	for asked := range channels {
		switch asked.ChannelType() {
		case "session":
			open := sessions.Add(1)
			if open > int64(s.options.MaxSessions) {
				sessions.Add(-1)
				_ = asked.Reject(ssh.ConnectionFailed, "open failed")
				continue
			}
			for most := s.most.Load(); open > most && !s.most.CompareAndSwap(most, open); most = s.most.Load() {
			}
			channel, requests, err := asked.Accept()
			if err != nil {
				sessions.Add(-1)
				continue
			}
			group.Go(func() {
				defer sessions.Add(-1)
				s.session(wire, channel, requests)
			})
		case "direct-tcpip":
			group.Go(func() { forward(asked) })
		default:
			_ = asked.Reject(ssh.UnknownChannelType, "not here")
		}
	}
}

// session serves one session channel: one command.
func (s *Server) session(wire *wire, channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() {
		channel.Close()
		go ssh.DiscardRequests(requests)
	}()
	var command *exec.Cmd
	finished := make(chan struct{})
	for {
		select {
		case <-finished:
			return
		case request, more := <-requests:
			if !more {
				return // the client left; the command goes on
			}
			ok := false
			switch request.Type {
			case "exec":
				s.execs.Add(1)
				var message struct{ Command string }
				if command == nil && ssh.Unmarshal(request.Payload, &message) == nil && !s.current().RefuseExec {
					command = exec.Command(s.options.Shell, "-c", message.Command)
					ok = true
				}
			case "signal":
				var message struct{ Signal string }
				if command != nil && command.Process != nil && ssh.Unmarshal(request.Payload, &message) == nil && message.Signal == "KILL" {
					_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
					ok = true
				}
			}
			if request.WantReply {
				_ = request.Reply(ok, nil)
			}
			if ok && request.Type == "exec" {
				s.run(command, wire, channel, finished)
			}
		}
	}
}

// run starts the command; finished is closed once the client knows its end.
func (s *Server) run(command *exec.Cmd, wire *wire, channel ssh.Channel, finished chan struct{}) {
	faults := s.current()
	command.Env = s.options.Env
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, stdout, err := os.Pipe()
	if err != nil {
		close(finished)
		return
	}
	complaints, stderr, err := os.Pipe()
	if err != nil {
		output.Close()
		stdout.Close()
		close(finished)
		return
	}
	command.Stdout, command.Stderr = stdout, stderr
	if err := command.Start(); err != nil {
		fmt.Fprintln(channel.Stderr(), err)
	}
	stdout.Close()
	stderr.Close()
	exited := make(chan struct{})
	if command.Process != nil {
		go func() { // outlives the connection with the command
			defer close(exited)
			_ = command.Wait()
		}()
	} else {
		close(exited)
	}
	var pipes sync.WaitGroup
	pipes.Go(func() {
		defer output.Close()
		limit := -1
		if faults.CutAnswer || faults.StallAnswer {
			limit = faults.CutAfter
		}
		if faults.StatusFirst {
			<-exited
			sayHow(command, channel)
		}
		copyUntil(channel, output, limit, wire, faults.StallAnswer)
	})
	pipes.Go(func() {
		defer complaints.Close()
		_, _ = io.Copy(channel.Stderr(), complaints)
	})
	go func() {
		// A lost client closes our ends of the pipes, as OpenSSH does.
		select {
		case <-wire.gone:
			output.Close()
			complaints.Close()
		case <-finished:
		}
	}()
	go func() {
		defer close(finished)
		pipes.Wait()
		select {
		case <-exited:
		case <-wire.gone:
			return
		}
		if !faults.NoExitStatus && !faults.StatusFirst {
			sayHow(command, channel)
		}
	}()
}

// sayHow tells the client how the command ended, if it began.
func sayHow(command *exec.Cmd, channel ssh.Channel) {
	if command.ProcessState == nil {
		return
	}
	status := command.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		name := map[syscall.Signal]string{syscall.SIGKILL: "KILL", syscall.SIGTERM: "TERM", syscall.SIGPIPE: "PIPE", syscall.SIGHUP: "HUP"}[status.Signal()]
		_, _ = channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal     string
			CoreDumped bool
			Error      string
			Lang       string
		}{Signal: name}))
		return
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status.ExitStatus())}))
}

// copyUntil copies the output; once limit bytes have been sent (never, if it is
// negative) it ends or silences the connection.
func copyUntil(to io.Writer, from io.Reader, limit int, wire *wire, stall bool) {
	buffer := make([]byte, 32<<10)
	sent := 0
	for {
		n, err := from.Read(buffer)
		if limit >= 0 && sent+n >= limit {
			_, _ = to.Write(buffer[:limit-sent])
			if stall {
				wire.stalled.Store(true)
				<-wire.gone
			} else {
				wire.Close()
			}
			return
		}
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
		sent += n
	}
}

// wire is the connection, which can fall silent and whose end can be waited for.
type wire struct {
	net.Conn
	stalled atomic.Bool
	once    sync.Once
	gone    chan struct{}
}

func (w *wire) Write(p []byte) (int, error) {
	if w.stalled.Load() {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.Close()
	}
	return n, err
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.gone) })
	return w.Conn.Close()
}

// forward serves a jump: a stream to another address.
func forward(asked ssh.NewChannel) {
	var wanted struct {
		Host   string
		Port   uint32
		Origin string
		From   uint32
	}
	if err := ssh.Unmarshal(asked.ExtraData(), &wanted); err != nil {
		_ = asked.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	onward, err := net.Dial("tcp", net.JoinHostPort(wanted.Host, fmt.Sprint(wanted.Port)))
	if err != nil {
		_ = asked.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	defer onward.Close()
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	var group sync.WaitGroup
	group.Go(func() { ssh.DiscardRequests(requests) })
	group.Go(func() {
		_, _ = io.Copy(onward, channel)
		onward.Close()
	})
	_, _ = io.Copy(channel, onward)
	channel.Close()
	onward.Close()
	group.Wait()
}

func newKey(kind string) (ssh.Signer, error) {
	var key any
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		return nil, fmt.Errorf("%q is no type of host key", kind)
	}
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

func certify(signer ssh.Signer) (ssh.Signer, error) {
	authority, err := newKey("ed25519")
	if err != nil {
		return nil, err
	}
	certificate := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.HostCert, KeyId: "reclaim", ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, authority); err != nil {
		return nil, err
	}
	return ssh.NewCertSigner(certificate, signer)
}
