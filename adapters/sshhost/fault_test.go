package sshhost_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
)

// safe is an answer that would let a directory go.
const safe = "reclaim 1 inventory\nverdict safe\nend 1\n"

func probe(body string) core.Script {
	return core.Script{Name: "inventory", Body: body, Limit: 20 * time.Second}
}

var safeScript = probe("printf '%s' " + quote(safe))

// Also where the server said how the command ended before it sent what the command
// had said: a status is no answer, and a lost connection no word about the host.
func TestAnAnswerCutAtAnyByteIsNeverSaid(t *testing.T) {
	for stride, statusFirst := range map[int]bool{1: false, 7: true} {
		server, target := inProcess(t, sshtest.Options{})
		target.Shell = "/bin/false" // the PATH is not the point, and false tells none
		dialer := sshhost.New(quick)
		whole := false
		for cut := 0; !whole; cut += stride {
			server.SetFaults(sshtest.Faults{CutAnswer: true, CutAfter: cut, StatusFirst: statusFirst})
			session, refusal := dialer.Dial(t.Context(), target)
			if session == nil {
				t.Fatal(refusal)
			}
			reply := session.Run(t.Context(), safeScript)
			if unclear, is := reply.(core.Unclear); !is || unclear.Doubt != core.ConnectionLost {
				said, is := reply.(core.Said)
				if !is || said.Body != safe || cut < len(safe)+50 {
					t.Fatalf("cut after %d bytes, the status first %v: %+v", cut, statusFirst, reply)
				}
				whole = true // there was no byte left to cut after
			}
			session.Close()
			if cut > 5000 {
				t.Fatal("the answer never ends")
			}
		}
	}
}

// The same on the wire: whatever part of a packet is missing.
func TestAConnectionCutAtAnyByteIsNeverSaid(t *testing.T) {
	server, target := inProcess(t, sshtest.Options{})
	target.Shell = "/bin/false"
	relay := relayTo(t, server.Port)
	target.Port = relay.Port
	dialer := sshhost.New(quick)
	for cut := 0; ; cut++ {
		session, refusal := dialer.Dial(t.Context(), target)
		if session == nil {
			t.Fatal(refusal)
		}
		// The spare channel is open, so that what follows is the answer's.
		if got := session.Run(t.Context(), probe("exit 4")); got != (core.Said{Exit: 4}) {
			t.Fatalf("%+v", got)
		}
		settled(t, relay)
		relay.CutAfter(cut)
		reply := session.Run(t.Context(), safeScript)
		relay.CutAfter(-1)
		session.Close()
		switch reply := reply.(type) {
		case core.Said:
			if reply.Body != safe || reply.Exit != 0 || cut < 100 {
				t.Fatalf("cut after %d bytes: %+v", cut, reply)
			}
			t.Logf("whole after %d bytes", cut)
			return
		case core.Unclear:
			if reply.Doubt != core.ConnectionLost {
				t.Fatalf("cut after %d bytes: %+v", cut, reply)
			}
		default: // the connection ended before the script was sent
			t.Fatalf("cut after %d bytes: %+v", cut, reply)
		}
		if cut > 5000 {
			t.Fatal("the answer never ends")
		}
	}
}

// settled waits until nothing moves on the relay any more.
func settled(t testing.TB, relay *sshtest.Relay) {
	last, since := relay.Answered(), time.Now()
	until(t, "the line is quiet", func() bool {
		if now := relay.Answered(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 5*time.Millisecond
	})
}

func TestAServerThatDoesNotSayHowACommandEndedHasNotAnswered(t *testing.T) {
	server, target := inProcess(t, sshtest.Options{})
	session := dial(t, sshhost.New(quick), target)
	server.SetFaults(sshtest.Faults{NoExitStatus: true})
	if unclear, is := session.Run(t.Context(), safeScript).(core.Unclear); !is || unclear.Doubt != core.ConnectionLost {
		t.Errorf("%+v", unclear)
	}
	server.SetFaults(sshtest.Faults{RefuseExec: true})
	if never, is := session.Run(t.Context(), safeScript).(core.NeverRan); !is || never.Fault != core.Unreachable {
		t.Errorf("%+v", never)
	}
	server.SetFaults(sshtest.Faults{})
	if got := session.Run(t.Context(), safeScript); got != (core.Said{Body: safe}) {
		t.Errorf("%+v", got)
	}
}

// A connection that has died without a word is found out by keepalives, and
// until then nothing is concluded about the script: neither at its limit nor
// after it.
func TestABlackHoleIsALostConnectionAndNeverALimit(t *testing.T) {
	for name, row := range map[string]struct {
		limit time.Duration
		stall bool
	}{
		"before the limit":           {10 * time.Minute, false},
		"at the limit":               {100 * time.Millisecond, false},
		"in the middle of an answer": {10 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, target := inProcess(t, sshtest.Options{})
			relay := relayTo(t, server.Port)
			target.Port = relay.Port
			session := dial(t, sshhost.New(quick), target)
			if got := session.Run(t.Context(), safeScript); got != (core.Said{Body: safe}) {
				t.Fatalf("%+v", got)
			}
			if row.stall {
				server.SetFaults(sshtest.Faults{StallAnswer: true, CutAfter: 60})
			} else {
				relay.BlackHole()
			}
			begin := time.Now()
			script := safeScript
			script.Limit = row.limit
			reply := session.Run(t.Context(), script)
			if unclear, is := reply.(core.Unclear); !is || unclear.Doubt != core.ConnectionLost {
				t.Errorf("%+v", reply)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("after %s", took) // two keepalives are four seconds
			}
			if never, is := session.Run(t.Context(), safeScript).(core.NeverRan); !is || never.Fault != core.Unreachable {
				t.Errorf("after the loss: %+v", never)
			}
		})
	}
}

func TestACancelledScriptReturnsAtOnceWhateverTheLineDoes(t *testing.T) {
	t.Parallel()
	server, target := inProcess(t, sshtest.Options{})
	relay := relayTo(t, server.Port)
	target.Port = relay.Port
	session := dial(t, sshhost.New(quick), target)
	if got := session.Run(t.Context(), safeScript); got != (core.Said{Body: safe}) {
		t.Fatalf("%+v", got)
	}
	relay.BlackHole()
	for _, name := range []string{"inventory", "remove"} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("the job's time is over"))
		begin := time.Now()
		script := safeScript
		script.Name = name
		reply := session.Run(ctx, script)
		cancel()
		if unclear, is := reply.(core.Unclear); !is || unclear.Doubt != core.ConnectionLost || !strings.Contains(unclear.Detail, "the job's time is over") {
			t.Errorf("%s: %+v", name, reply)
		}
		if took := time.Since(begin); took > 15*time.Second { // its limit is 20
			t.Errorf("%s: after %s", name, took)
		}
	}
}

func TestAFloodIsBoundedInMemoryAndLeavesTheConnectionUsable(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	account := sshdtest.NewAccount(t, "/bin/dash", nil)
	session := dial(t, sshhost.New(quick), server.TargetOf(account.Name))
	if got := session.Run(t.Context(), safeScript); got != (core.Said{Body: safe}) {
		t.Fatalf("%+v", got)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 3 {
		reply := session.Run(t.Context(), probe("head -c 100000000 /dev/zero & head -c 100000000 /dev/zero >&2; wait; printf '%s' "+quote(safe)))
		if unclear, is := reply.(core.Unclear); !is || unclear.Doubt != core.Flooded {
			t.Errorf("%+v", reply)
		}
		if got := session.Run(t.Context(), probe("head -c 100000000 /dev/zero >&2; printf '%s' "+quote(safe))); got != (core.Said{Body: safe}) {
			t.Errorf("%.200v", got)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func TestAHostThatHasNoAddressIsUnreachable(t *testing.T) {
	t.Parallel()
	_, target := inProcess(t, sshtest.Options{})
	target.Host = "no.such.host.invalid"
	session, refusal := sshhost.New(quick).Dial(t.Context(), target)
	if session != nil || refusal.Fault != core.Unreachable || !strings.Contains(refusal.Detail, target.Host) {
		t.Errorf("%v %+v", session, refusal)
	}
}

// A server that is busy with logins closes new connections before it has named
// itself (sshd_config(5), MaxStartups): the host is away, whatever its key is.
func TestAServerThatTakesNoMoreLoginsIsUnreachable(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t), Config: "MaxStartups 1:100:1"})
	hold, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(server.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if _, err := bufio.NewReader(hold).ReadString('\n'); err != nil { // it counts as a login from here on
		t.Fatal(err)
	}
	session, refusal := sshhost.New(quick).Dial(t.Context(), server.Target())
	if session != nil {
		session.Close()
		t.Fatal("a server that is full let us in")
	}
	if refusal.Fault != core.Unreachable {
		t.Errorf("%+v", refusal)
	}
	hold.Close()
	for end := time.Now().Add(time.Minute); ; {
		if session, refusal = sshhost.New(quick).Dial(t.Context(), server.Target()); session != nil {
			session.Close()
			return
		}
		if refusal.Fault != core.Unreachable || time.Now().After(end) {
			t.Fatalf("%+v", refusal)
		}
	}
}

func TestTheServersSessionLimitIsFound(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2, 5} {
		t.Run(fmt.Sprint("MaxSessions ", limit), func(t *testing.T) {
			server, target := inProcess(t, sshtest.Options{MaxSessions: limit})
			session := dial(t, sshhost.New(quick), target)
			for range 2 {
				replies := make(chan core.Reply, 8)
				for range cap(replies) {
					go func() { replies <- session.Run(t.Context(), safeScript) }()
				}
				for range cap(replies) {
					if got := <-replies; got != (core.Said{Body: safe}) {
						t.Fatalf("%+v", got)
					}
				}
			}
			if server.Execs() != 16 || server.Connections() != 1 {
				t.Errorf("%d commands on %d connections", server.Execs(), server.Connections())
			}
		})
	}
}

func TestNoGoroutineOutlivesItsConnection(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
	before := goleak.IgnoreCurrent()
	for range 3 {
		session, refusal := sshhost.New(quick).Dial(t.Context(), server.Target())
		if session == nil {
			t.Fatal(refusal)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		session.Run(ctx, probe("sleep 300"))
		cancel()
		session.Run(t.Context(), safeScript)
		session.Close()
		target := server.Target()
		target.Fingerprint = wrongPin
		if session, _ := sshhost.New(quick).Dial(t.Context(), target); session != nil {
			t.Error("a session with the wrong pin")
		}
	}
	goleak.VerifyNone(t, before)
}

// The daemon's child for the connection dies: what was asked is unclear, and
// what is asked later did not run.
func TestALostServerProcessIsALostConnection(t *testing.T) {
	t.Parallel()
	server, target := inProcess(t, sshtest.Options{})
	session := dial(t, sshhost.New(quick), target)
	reply := make(chan core.Reply, 1)
	wait := filepath.Join(t.TempDir(), "wait")
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(wait)
	go func() {
		reply <- session.Run(t.Context(), probe("while test -e "+quote(wait)+"; do sleep 0.02; done; printf '%s' "+quote(safe)))
	}()
	until(t, "the script runs", func() bool { return server.Execs() == 1 })
	server.Close()
	if unclear, is := (<-reply).(core.Unclear); !is || unclear.Doubt != core.ConnectionLost {
		t.Errorf("%+v", unclear)
	}
	until(t, "the loss is noticed", func() bool {
		switch reply := session.Run(t.Context(), safeScript).(type) {
		case core.NeverRan:
			return reply.Fault == core.Unreachable
		case core.Said:
			t.Fatalf("%+v", reply)
		}
		return false
	})
}
