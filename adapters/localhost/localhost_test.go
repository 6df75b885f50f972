package localhost_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSession(t *testing.T) {
	porttest.Session(t, func(t *testing.T) porttest.SessionSubject {
		session, refusal := localhost.Dialer{}.Dial(t.Context(), core.Target{})
		if session == nil {
			t.Fatal(refusal)
		}
		t.Cleanup(func() { session.Close() })
		return porttest.SessionSubject{Session: session, Dir: t.TempDir()}
	})
}
