package sshhost_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
)

func TestARealServerAnswersAScriptInItsFrame(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	session, refusal := sshhost.New(sshhost.Options{}).Dial(t.Context(), server.Target())
	if session == nil {
		t.Fatal(refusal)
	}
	defer session.Close()
	for range 2 {
		got := session.Run(context.Background(), core.Script{Name: "greet", Body: "echo 'a  b'; cat; echo noise >&2; exit 3", Limit: 10 * time.Second})
		if diff := cmp.Diff(core.Reply(core.Said{Body: "a  b\n", Exit: 3}), got); diff != "" {
			t.Error(diff)
		}
	}
	t.Log(session.Run(context.Background(), core.Script{Name: "greet", Body: `echo "$PATH $RECLAIM_PATH $0 $#"`, Limit: 10 * time.Second}))
}
