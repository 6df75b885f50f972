package sshhost_test

import (
	"strings"
	"testing"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
)

const wrongPin = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// A pin is of one key; which key a server shows is decided by what the client
// asks for.
func TestThePinnedKeyIsFoundWhateverTheServerOffers(t *testing.T) {
	all := []string{"ed25519", "ecdsa", "rsa"}
	for name, row := range map[string]struct {
		options sshdtest.Options
		pins    []string
	}{
		"three types":                 {sshdtest.Options{HostKeys: all}, all},
		"rsa alone":                   {sshdtest.Options{HostKeys: []string{"rsa"}}, []string{"rsa"}},
		"a certificate of one type":   {sshdtest.Options{HostKeys: all, Certificate: "ed25519"}, append(all, "certificate")},
		"a certificate of the rsa":    {sshdtest.Options{HostKeys: all, Certificate: "rsa"}, append(all, "certificate")},
		"a certificate and one key":   {sshdtest.Options{HostKeys: []string{"ecdsa"}, Certificate: "ecdsa"}, []string{"ecdsa", "certificate"}},
		"only a certificate is shown": {sshdtest.Options{HostKeys: []string{"ed25519"}, Certificate: "ed25519", Config: "HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com"}, []string{"ed25519", "certificate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := sshdtest.Start(t, row.options)
			for _, pin := range row.pins {
				dialer := sshhost.New(quick)
				target := server.Target()
				target.Fingerprint = server.Fingerprints[pin]
				before := strings.Count(server.Log(), "Connection from ")
				dial(t, dialer, target).Close()
				first := strings.Count(server.Log(), "Connection from ") - before
				if first > 4 {
					t.Errorf("%s: %d connections", pin, first)
				}
				dial(t, dialer, target).Close()
				if again := strings.Count(server.Log(), "Connection from ") - before - first; again != 1 {
					t.Errorf("%s, found before: %d connections", pin, again)
				}
			}
		})
	}
}

func TestAHostWithoutThePinnedKeyIsRefusedWithEveryKeyItShowed(t *testing.T) {
	for name, options := range map[string]sshdtest.Options{
		"three types":   {},
		"rsa alone":     {HostKeys: []string{"rsa"}},
		"a certificate": {HostKeys: []string{"ed25519"}, Certificate: "ed25519"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := sshdtest.Start(t, options)
			target := server.Target()
			target.Fingerprint = wrongPin
			before := strings.Count(server.Log(), "Connection from ")
			session, refusal := sshhost.New(quick).Dial(t.Context(), target)
			if session != nil || refusal.Fault != core.HostKeyMismatch {
				t.Fatalf("%v %+v", session, refusal)
			}
			for kind, print := range server.Fingerprints {
				if !strings.Contains(refusal.Detail, print) {
					t.Errorf("the %s key %s is not named: %s", kind, print, refusal.Detail)
				}
			}
			if !strings.Contains(refusal.Detail, wrongPin) || !strings.Contains(refusal.Detail, "no credential was sent") {
				t.Error(refusal.Detail)
			}
			log := server.Log()
			if n := strings.Count(log, "Connection from ") - before; n > 4 {
				t.Errorf("%d connections", n)
			}
			if strings.Contains(log, "userauth-request") {
				t.Error("the server saw a login")
			}
		})
	}
}

// What is no SSH server at all, or one that leaves half-way, is not looked at
// again with other types.
func TestOnlyAnotherKeyIsAReasonToAskAgain(t *testing.T) {
	server, target := inProcess(t, sshtest.Options{HostKeys: []string{"ed25519", "rsa"}})
	relay := relayTo(t, server.Port)
	target.Port = relay.Port
	for cut := 0; cut < 900; cut += 100 {
		before := relay.Connections()
		relay.CutAfter(cut)
		session, refusal := sshhost.New(quick).Dial(t.Context(), target)
		if session != nil || refusal.Fault != core.Unreachable {
			t.Errorf("cut after %d: %v %+v", cut, session, refusal)
		}
		if n := relay.Connections() - before; n != 1 {
			t.Errorf("cut after %d: %d connections", cut, n)
		}
	}
}
