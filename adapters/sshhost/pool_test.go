package sshhost_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
)

func TestTargetsOfOneHostShareAConnection(t *testing.T) {
	server, target := inProcess(t, sshtest.Options{})
	pool := sshhost.New(quick).Pool()
	defer pool.Close()
	var group sync.WaitGroup
	targets := inLong(200, 40)
	for n := range targets {
		group.Go(func() {
			mine := target
			mine.TaskDir, mine.WorkdirRoot = fmt.Sprint("/t/tasks/", n), fmt.Sprint(n%3)
			session, refusal := pool.Dial(t.Context(), mine)
			if session == nil {
				t.Errorf("%+v", refusal)
				return
			}
			defer session.Close()
			if got := session.Run(t.Context(), safeScript); got != (core.Said{Body: safe}) {
				t.Errorf("%+v", got)
			}
			if session.Trips() != 1 {
				t.Errorf("%d trips", session.Trips())
			}
		})
	}
	group.Wait()
	if server.Connections() != 1 || server.Execs() != targets {
		t.Errorf("%d connections, %d commands", server.Connections(), server.Execs())
	}
	// Four at work, each of which may be closing, and one opened ahead.
	if most := server.MostSessions(); most > 2*4+1 {
		t.Errorf("%d sessions were open at once", most)
	}
	// Another identity is another connection, whatever else is equal.
	other := target
	other.User = "somebody-else"
	if session := dial(t, pool, other); session == nil || server.Connections() != 2 {
		t.Errorf("%d connections", server.Connections())
	}
	same := target
	same.Port = server.Port
	dial(t, pool, same)
	if server.Connections() != 2 {
		t.Errorf("%d connections", server.Connections())
	}
}

func TestAPoolDialsAgainOnceAConnectionHasEnded(t *testing.T) {
	server, target := inProcess(t, sshtest.Options{})
	relay := relayTo(t, server.Port)
	target.Port = relay.Port
	pool := sshhost.New(quick).Pool()
	defer pool.Close()
	first := dial(t, pool, target)
	relay.CutAfter(0)
	if _, is := first.Run(t.Context(), safeScript).(core.Said); is {
		t.Fatal("the line was not cut")
	}
	relay.CutAfter(-1)
	var second interface {
		Run(context.Context, core.Script) core.Reply
	}
	until(t, "the loss is noticed", func() bool {
		second = dial(t, pool, target)
		return second.Run(t.Context(), safeScript) == core.Reply(core.Said{Body: safe})
	})
	if server.Connections() != 2 {
		t.Errorf("%d connections", server.Connections())
	}
}

func TestAPoolsRefusalIsNotKept(t *testing.T) {
	server, target := inProcess(t, sshtest.Options{Faults: sshtest.Faults{RefuseLogin: true}})
	pool := sshhost.New(quick).Pool()
	defer pool.Close()
	if session, refusal := pool.Dial(t.Context(), target); session != nil || refusal.Fault != core.AuthFailed {
		t.Errorf("%v %+v", session, refusal)
	}
	server.SetFaults(sshtest.Faults{})
	dial(t, pool, target)
}

func TestOneCallerThatLeavesDoesNotEndTheDialOfAnother(t *testing.T) {
	server, target := inProcess(t, sshtest.Options{})
	relay := relayTo(t, server.Port)
	relay.SetRoundTrip(40 * time.Millisecond)
	target.Port = relay.Port
	pool := sshhost.New(sshhost.Options{AgentSocket: "/nonexistent"}).Pool()
	defer pool.Close()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan core.NeverRan, 1)
	go func() {
		_, refusal := pool.Dial(ctx, target)
		left <- refusal
	}()
	until(t, "the dial has begun", func() bool { return relay.Connections() == 1 })
	stayed := make(chan core.NeverRan, 1)
	go func() {
		session, refusal := pool.Dial(t.Context(), target)
		if session != nil {
			session.Close()
		}
		stayed <- refusal
	}()
	time.Sleep(20 * time.Millisecond) // so that the second one waits too; either way it must succeed
	cancel()
	if refusal := <-left; refusal.Fault != core.Unreachable {
		t.Errorf("%+v", refusal)
	}
	if refusal := <-stayed; refusal != (core.NeverRan{}) {
		t.Errorf("%+v", refusal)
	}
}

func TestAClosedPoolEndsWhatIsIdleAtOnceAndTheRestWithItsLastSession(t *testing.T) {
	_, target := inProcess(t, sshtest.Options{})
	pool := sshhost.New(quick).Pool()
	used := dial(t, pool, target)
	pool.Close()
	if got := used.Run(t.Context(), safeScript); got != (core.Said{Body: safe}) {
		t.Errorf("%+v", got)
	}
	if session, refusal := pool.Dial(t.Context(), target); session != nil || refusal.Fault != core.Unreachable {
		t.Errorf("%v %+v", session, refusal)
	}
	used.Close()
	if _, is := used.Run(t.Context(), safeScript).(core.NeverRan); !is {
		t.Error("a closed session ran a script")
	}
}
