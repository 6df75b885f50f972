package localhost_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/core"
)

func TestAScriptIsAnsweredInItsFrame(t *testing.T) {
	session, refusal := localhost.Dialer{}.Dial(context.Background(), core.Target{})
	if session == nil {
		t.Fatal(refusal)
	}
	defer session.Close()
	got := session.Run(context.Background(), core.Script{Name: "greet", Body: "echo 'a  b'; cat; echo noise >&2; exit 3", Limit: 10 * time.Second})
	if diff := cmp.Diff(core.Reply(core.Said{Body: "a  b\n", Exit: 3}), got); diff != "" {
		t.Error(diff)
	}
}
