package sshhost_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
)

// lines joins known_hosts files.
func lines(t *testing.T, files ...string) []string {
	t.Helper()
	var text []byte
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, raw...)
	}
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

func TestAHostIsReachedThroughOneHopAndThroughSeveral(t *testing.T) {
	t.Parallel()
	first, second, host := sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
	target := host.Target()
	for _, server := range []*sshdtest.Server{first, second} {
		raw, err := os.ReadFile(host.Identity + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		server.AuthorizeLine(string(raw))
	}
	hop := func(server *sshdtest.Server) string { return fmt.Sprintf("%s@127.0.0.1:%d", target.User, server.Port) }
	// Only one type of each hop's three is recorded, and not the one a server
	// would show of itself.
	options := quick
	options.KnownHosts = lines(t, first.KnownHosts("rsa"), second.KnownHosts("ed25519"))
	for _, jump := range []string{hop(first), hop(second), hop(first) + "," + hop(second)} {
		target.ProxyJump = jump
		for _, pin := range []string{"ed25519", "rsa"} {
			target.Fingerprint = host.Fingerprints[pin]
			session := dial(t, sshhost.New(options), target)
			got := session.Run(t.Context(), core.Script{Name: "greet", Body: "echo here", Limit: time.Minute})
			if diff := cmp.Diff(core.Reply(core.Said{Body: "here\n"}), got); diff != "" {
				t.Error(diff)
			}
			session.Close()
		}
	}
}

func TestAC_D24_AHopThatIsNotTheRecordedOneIsRefusedAndNamed(t *testing.T) {
	hop, host := sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{})
	other := sshdtest.Start(t, sshdtest.Options{})
	raw, err := os.ReadFile(other.KnownHosts("ed25519"))
	if err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	text := strings.ReplaceAll(string(raw), fmt.Sprint("]:", other.Port), fmt.Sprint("]:", hop.Port))
	if err := os.WriteFile(moved, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("this is no known_hosts line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		known string
		says  string
	}{
		"no file":              {filepath.Join(t.TempDir(), "none"), fmt.Sprintf("ssh -p %d me@127.0.0.1 true", hop.Port)},
		"another host's file":  {other.KnownHosts("ed25519", "rsa"), fmt.Sprintf("ssh -p %d me@127.0.0.1 true", hop.Port)},
		"another key":          {moved, hop.Fingerprints["ed25519"]},
		"a file of other text": {broken, "unusable"},
	} {
		t.Run(name, func(t *testing.T) {
			options := quick
			options.KnownHosts = []string{row.known}
			target := host.Target()
			target.ProxyJump = fmt.Sprintf("me@127.0.0.1:%d", hop.Port)
			session, refusal := sshhost.New(options).Dial(t.Context(), target)
			if session != nil || refusal.Fault != core.HostKeyMismatch || !strings.Contains(refusal.Detail, row.says) ||
				!strings.Contains(refusal.Detail, fmt.Sprintf("jump host 127.0.0.1:%d", hop.Port)) || !strings.Contains(refusal.Detail, "no credential was sent") {
				t.Errorf("%v %+v", session, refusal)
			}
		})
	}
	if strings.Contains(hop.Log(), "userauth-request") || strings.Contains(host.Log(), "Connection from 127.0.0.1 port") && strings.Contains(host.Log(), "userauth-request") {
		t.Error("a login was seen")
	}
}

// throughHop is a healthy hop in front of whatever listens on the port.
func throughHop(t *testing.T, target core.Target, port int) (core.Target, sshhost.Options) {
	hop := sshdtest.Start(t, sshdtest.Options{})
	options := quick
	options.KnownHosts = []string{hop.KnownHosts("ed25519")}
	target.Port = port
	target.ProxyJump = fmt.Sprintf("%s@127.0.0.1:%d", hop.Target().User, hop.Port)
	target.IdentityFile = hop.Identity
	return target, options
}

func TestFaultsBehindAHopAreToldAndEndInTime(t *testing.T) {
	t.Parallel()
	mute, target := inProcess(t, sshtest.Options{Faults: sshtest.Faults{Silent: true}})
	healthy, _ := inProcess(t, sshtest.Options{})
	_, closed := inProcess(t, sshtest.Options{})
	silent, options := throughHop(t, target, mute.Port)

	begin := time.Now()
	session, refusal := sshhost.New(options).Dial(t.Context(), silent)
	if session != nil || refusal.Fault != core.Unreachable || !strings.Contains(refusal.Detail, "through jump host") {
		t.Errorf("silent: %v %+v", session, refusal)
	}
	if took := time.Since(begin); took > time.Minute { // two phases of four seconds
		t.Errorf("silent: %s", took)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan core.NeverRan, 1)
	slow := options
	slow.Handshake = time.Minute
	seen := mute.Connections()
	go func() {
		_, refusal := sshhost.New(slow).Dial(ctx, silent)
		done <- refusal
	}()
	until(t, "the silent server is reached", func() bool { return mute.Connections() > seen })
	cancel()
	select {
	case refusal := <-done:
		if refusal.Fault != core.Unreachable {
			t.Errorf("cancelled: %+v", refusal)
		}
	case <-time.After(30 * time.Second):
		t.Error("cancelled: it still waits")
	}

	wrong := silent
	wrong.Port, wrong.Fingerprint = healthy.Port, wrongPin
	if session, refusal := sshhost.New(options).Dial(t.Context(), wrong); session != nil || refusal.Fault != core.HostKeyMismatch || healthy.KeysOffered() != 0 {
		t.Errorf("wrong pin: %v %+v", session, refusal)
	}
	nobody := silent
	nobody.Port = freePort(t)
	if session, refusal := sshhost.New(options).Dial(t.Context(), nobody); session != nil || refusal.Fault != core.Unreachable || !strings.Contains(refusal.Detail, fmt.Sprint(nobody.Port)) {
		t.Errorf("closed port: %v %+v", session, refusal)
	}
	gone := closed
	gone.ProxyJump = fmt.Sprintf("me@127.0.0.1:%d", nobody.Port)
	if session, refusal := sshhost.New(options).Dial(t.Context(), gone); session != nil || refusal.Fault != core.Unreachable || !strings.Contains(refusal.Detail, "jump host") {
		t.Errorf("closed hop: %v %+v", session, refusal)
	}
	odd := closed
	for _, jump := range []string{"-oProxyCommand=id", "a b", "host:0", "host:22,", "$(id)@host", ",host"} {
		odd.ProxyJump = jump
		if session, refusal := sshhost.New(options).Dial(t.Context(), odd); session != nil || refusal.Fault != core.Unreachable {
			t.Errorf("%q: %v %+v", jump, session, refusal)
		}
	}
}
