package sshhost_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
	"github.com/kandev/reclaim/ports/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick are options with which a silent server is given up soon.
var quick = sshhost.Options{TCP: 4 * time.Second, Handshake: 4 * time.Second, Keepalive: 2 * time.Second, AgentSocket: "/nonexistent"}

func TestSessionOverAServerInProcess(t *testing.T) {
	t.Parallel()
	porttest.Session(t, func(t *testing.T) porttest.SessionSubject {
		_, target := inProcess(t, sshtest.Options{})
		return porttest.SessionSubject{Session: dial(t, sshhost.New(quick), target), Dir: t.TempDir()}
	})
}

// Root differs: OpenSSH does not deliver signals to it.
func TestSessionOverARealServerAsRoot(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
	porttest.Session(t, func(t *testing.T) porttest.SessionSubject {
		return porttest.SessionSubject{Session: dial(t, sshhost.New(quick), server.Target()), Dir: t.TempDir()}
	})
}

func TestSessionOverARealServerThatAllowsOneSession(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{Config: "MaxSessions 1"})
	account := sshdtest.NewAccount(t, "/bin/dash", nil)
	porttest.Session(t, func(t *testing.T) porttest.SessionSubject {
		return porttest.SessionSubject{Session: dial(t, sshhost.New(quick), server.TargetOf(account.Name)), Dir: shared(t)}
	})
}

// shared is a directory that every account can write.
func shared(t *testing.T) string {
	dir := sshdtest.OpenDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSessionOfAPool(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{})
	account := sshdtest.NewAccount(t, "/bin/bash", nil)
	pool := sshhost.New(quick).Pool()
	t.Cleanup(func() { pool.Close() })
	porttest.Session(t, func(t *testing.T) porttest.SessionSubject {
		return porttest.SessionSubject{Session: dial(t, pool, server.TargetOf(account.Name)), Dir: shared(t)}
	})
}

func TestDialerToAServerInProcess(t *testing.T) {
	t.Parallel()
	porttest.Dialer(t, func(t *testing.T) porttest.DialerSubject {
		server, target := inProcess(t, sshtest.Options{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
		return subject(t, sshhost.New(quick), target, server.Connections, server.Execs, server.KeysOffered)
	})
}

func TestDialerToARealServer(t *testing.T) {
	t.Parallel()
	porttest.Dialer(t, func(t *testing.T) porttest.DialerSubject {
		server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
		count := func(line string) func() int { return func() int { return strings.Count(server.Log(), line) } }
		return subject(t, sshhost.New(quick), server.Target(), count("Connection from "), count("Starting session: command"), count("userauth-request for user "))
	})
}

func TestDialerOfAPool(t *testing.T) {
	t.Parallel()
	porttest.Dialer(t, func(t *testing.T) porttest.DialerSubject {
		server, target := inProcess(t, sshtest.Options{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
		pool := sshhost.New(quick).Pool()
		t.Cleanup(func() { pool.Close() })
		return subject(t, pool, target, server.Connections, server.Execs, server.KeysOffered)
	})
}

func subject(t *testing.T, dialer ports.Dialer, good core.Target, connections, commands, keys func() int) porttest.DialerSubject {
	badKey, closed, silent := good, good, good
	badKey.IdentityFile = filepath.Join(t.TempDir(), "unknown")
	sshdtest.WriteKey(t, badKey.IdentityFile, "ed25519")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Port = listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	mute, _ := inProcess(t, sshtest.Options{Faults: sshtest.Faults{Silent: true}})
	silent.Port = mute.Port
	return porttest.DialerSubject{Dialer: dialer, Good: good, BadKey: badKey, Closed: closed, Silent: silent,
		SilentWithin: quick.TCP + quick.Handshake, Connections: connections, Commands: commands, KeysOffered: keys}
}

// inProcess starts a server of this process and names it as a target. Whoever
// logs in finds an empty home there, and not this account's own profiles.
func inProcess(t testing.TB, options sshtest.Options) (*sshtest.Server, core.Target) {
	t.Helper()
	options.Env = append(os.Environ(), "HOME="+t.TempDir())
	server, err := sshtest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	identity := filepath.Join(t.TempDir(), "id")
	if err := server.WriteIdentity(identity); err != nil {
		t.Fatal(err)
	}
	return server, server.Target(identity)
}

func dial(t testing.TB, dialer ports.Dialer, target core.Target) ports.Session {
	t.Helper()
	session, refusal := dialer.Dial(t.Context(), target)
	if session == nil {
		t.Fatalf("%s: %s", refusal.Fault, refusal.Detail)
	}
	t.Cleanup(func() { session.Close() })
	return session
}
