package porttest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// DialerSubject is what the Dialer suite works on: one dialer, a host that is
// there, and ways to look for it in vain. Targets are on loopback.
type DialerSubject struct {
	Dialer ports.Dialer
	Good   core.Target // reached, proved and logged in to
	BadKey core.Target // the same host, with an identity that it refuses
	Closed core.Target // a port on which nothing listens
	Silent core.Target // a server that accepts and never speaks

	SilentWithin time.Duration // how long the dialer waits for the silent one
	Connections  func() int    // counts the connections that the good host has seen
	Commands     func() int    // counts the commands it was asked to run
	KeysOffered  func() int    // counts the login keys that were offered to it
}

// Dialer checks ports.Dialer. open gives a fresh subject each time.
func Dialer(t *testing.T, open func(t *testing.T) DialerSubject) {
	t.Helper()
	run(t, dialerClauses, open)
}

var dialerClauses = []clause[DialerSubject]{
	{"the pinned host is reached and answers", func(t testing.TB, s DialerSubject) {
		session, refusal := s.Dialer.Dial(t.Context(), s.Good)
		if session == nil {
			t.Fatalf("refused: %+v", refusal)
		}
		if refusal != (core.NeverRan{}) {
			t.Errorf("a session and a refusal: %+v", refusal)
		}
		expect(t, session, "echo here", core.Said{Body: "here\n"})
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}},
	{"a host that shows another key is refused before any credential or command", func(t testing.TB, s DialerSubject) {
		target := s.Good
		target.Fingerprint = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		keys, commands := s.KeysOffered(), s.Commands()
		detail := refused(t, s, target, core.HostKeyMismatch)
		for _, want := range []string{target.Fingerprint, s.Good.Fingerprint, target.Host, "no credential was sent"} {
			if !strings.Contains(detail, want) {
				t.Errorf("%q does not name %q", detail, want)
			}
		}
		if s.KeysOffered() != keys || s.Commands() != commands {
			t.Errorf("%d keys and %d commands were sent", s.KeysOffered()-keys, s.Commands()-commands)
		}
	}},
	{"without a pin nothing is dialled", func(t testing.TB, s DialerSubject) {
		for _, pin := range []string{"", " "} {
			before := s.Connections()
			target := s.Good
			target.Fingerprint = pin
			refused(t, s, target, core.NoPin)
			if got := s.Connections() - before; got != 0 {
				t.Errorf("pin %q: %d connections", pin, got)
			}
		}
	}},
	{"a pin that no key can match is refused", func(t testing.TB, s DialerSubject) {
		good := s.Good.Fingerprint
		for _, pin := range []string{"SHA256:", "SHA256:abc", good + "=", good + " ", strings.ToLower(good[:6]) + good[6:], strings.TrimPrefix(good, "SHA256:"), good[:len(good)-1],
			"MD5:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff", "*"} {
			commands := s.Commands()
			target := s.Good
			target.Fingerprint = pin
			session, refusal := s.Dialer.Dial(t.Context(), target)
			if session != nil || refusal.Fault != core.HostKeyMismatch && refusal.Fault != core.NoPin {
				t.Errorf("pin %q: %v %+v", pin, session, refusal)
			}
			if s.Commands() != commands {
				t.Errorf("pin %q: a command was sent", pin)
			}
		}
	}},
	{"a port on which nothing listens is unreachable", func(t testing.TB, s DialerSubject) {
		refused(t, s, s.Closed, core.Unreachable)
	}},
	{"an identity that the host refuses is an authentication failure", func(t testing.TB, s DialerSubject) {
		commands := s.Commands()
		refused(t, s, s.BadKey, core.AuthFailed)
		if s.Commands() != commands {
			t.Error("a command was sent")
		}
	}},
	{"a server that never speaks is given up in time", func(t testing.TB, s DialerSubject) {
		begin := time.Now()
		refused(t, s, s.Silent, core.Unreachable)
		if took := time.Since(begin); took > s.SilentWithin+prompt {
			t.Errorf("after %s", took)
		}
	}},
	{"a caller that leaves does not wait", func(t testing.TB, s DialerSubject) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan core.NeverRan, 1)
		go func() {
			session, refusal := s.Dialer.Dial(ctx, s.Silent)
			if session != nil {
				session.Close()
			}
			done <- refusal
		}()
		cancel()
		timer := time.NewTimer(prompt)
		defer timer.Stop()
		select {
		case refusal := <-done:
			if refusal.Fault != core.Unreachable {
				t.Errorf("%+v", refusal)
			}
		case <-timer.C:
			t.Errorf("it still waits after %s", prompt)
		}
		before := s.Connections()
		if session, refusal := s.Dialer.Dial(ctx, s.Good); session != nil || refusal.Fault != core.Unreachable {
			t.Errorf("a caller that had left: %v %+v", session, refusal)
		}
		if s.Connections() != before {
			t.Error("a caller that had left dialled")
		}
	}},
}

// refused dials in vain and returns the detail, which must name the host.
func refused(t testing.TB, s DialerSubject, target core.Target, want core.Fault) string {
	t.Helper()
	session, refusal := s.Dialer.Dial(t.Context(), target)
	if session != nil {
		session.Close()
		t.Errorf("a session where %s was due", want)
	}
	if refusal.Fault != want || refusal.Detail == "" || strings.ContainsAny(refusal.Detail, "\n\x00") {
		t.Errorf("wanted %s with one sentence, got %+v", want, refusal)
	}
	if want != core.NoPin && !strings.Contains(refusal.Detail, target.Host) {
		t.Errorf("%q does not name the host %s", refusal.Detail, target.Host)
	}
	return refusal.Detail
}
