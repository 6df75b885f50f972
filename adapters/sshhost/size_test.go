package sshhost

import (
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/frame"
	"github.com/kandev/reclaim/core"
)

// Every script fits one request with room for its parameters at their longest.
func TestEveryScriptFitsOneRequest(t *testing.T) {
	segment, root := strings.Repeat("'", 255), "/"+strings.Repeat("long name/", 100)+"end"
	registrations := make([]core.Registration, 20)
	for i := range registrations {
		registrations[i] = core.Registration{CommonDir: strings.Repeat("d", 300), Name: strings.Repeat("n", 60), GitDirFile: strings.Repeat("g", 300)}
	}
	var kinds []string
	for _, kind := range core.DisposableKinds() {
		kinds = append(kinds, kind.Word)
	}
	for _, script := range []core.Script{
		core.Greet{Root: root, TaskDir: root + "/tasks/" + segment, Segment: segment}.Script(),
		core.Inventory{Root: root, Segment: segment, Baseline: strings.Repeat("a", 64)}.Script(),
		core.Inventory{Root: root, Segment: segment, Baseline: strings.Repeat("a", 64), Disposable: strings.Join(kinds, ",")}.Script(),
		core.Remove{Root: root, Segment: segment, Manifest: core.Manifest{Device: "1", Inode: "1", Digest: strings.Repeat("0", 64), Count: 1, Registrations: registrations}, NotAfter: time.Now().Unix()}.Script(),
		core.Settle{Root: root, Segment: segment}.Script(),
	} {
		mark := frame.New()
		line, err := command(mark.Around(learnPath("/bin/bash", mark.Nonce()), packedBody), script.Body)
		t.Logf("%s: %d bytes, packed %d", script.Name, len(script.Body), len(line))
		if err != nil {
			t.Errorf("%s: %v", script.Name, err)
		}
	}
}
