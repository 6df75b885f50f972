package sshhost_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
)

func relayTo(t testing.TB, port int) *sshtest.Relay {
	t.Helper()
	relay, err := sshtest.NewRelay(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Close() })
	return relay
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// until asks again until the condition holds.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
