package core

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// What the inventory proved is what the removal finds again under another name.
func TestAC_D15_WhatTheInventoryProvedSafeIsRemoved(t *testing.T) {
	for what, build := range map[string]string{
		"a clone":           `git clone -q --no-hardlinks "$TOP/remote.git" "$AT"`,
		"two clones":        `git clone -q --no-hardlinks "$TOP/remote.git" "$AT" && echo lib/ >>"$AT/.git/info/exclude" && git clone -q --no-hardlinks "$TOP/remote.git" "$AT/lib"`,
		"a linked worktree": `git clone -q --no-hardlinks "$TOP/remote.git" "$TOP/cache" && git -C "$TOP/cache" worktree add -q --detach "$AT" HEAD`,
	} {
		t.Run(what, func(t *testing.T) {
			p := newPlot(t)
			p.clear()
			p.give(1000)
			p.env = []string{"GIT_CONFIG_NOSYSTEM=1", "TOP=" + p.top(), "AT=" + p.at()}
			p.run(Script{Name: "build", Body: `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
				git init -q --bare -b main "$TOP/remote.git"; git init -q -b main "$TOP/seed"; cd "$TOP/seed"; mkdir d; echo 1 >d/f; git add .; git commit -qm 1
				git push -q "$TOP/remote.git" main; ` + build})
			q := Inventory{Root: p.root, Segment: p.segment}
			evidence := q.Judge(p.run(q.Script()))
			if !evidence.Safe() {
				t.Fatalf("%+v", evidence.Findings)
			}
			admin := filepath.Join(p.top(), "cache/.git/worktrees", p.segment)
			if what == "a linked worktree" && (len(evidence.Manifest.Registrations) != 1 || !there(admin)) {
				t.Fatalf("%+v", evidence.Manifest)
			}
			before := p.told(p.at(), p.holder(), filepath.Dir(admin))
			out := p.remove(Remove{Root: p.root, Segment: p.segment, Manifest: evidence.Manifest, JobID: "j", Attempt: 1, NotAfter: time.Now().Unix() + 60})
			if verdict(out) != "removed" {
				t.Fatalf("%+v", out)
			}
			if there(p.at()) || there(p.holder()) || there(admin) {
				t.Error("something is left")
			}
			if after := p.told(p.at(), p.holder(), filepath.Dir(admin)); after != before {
				t.Errorf("elsewhere:\n%s", differ(before, after))
			}
		})
	}
}

func (p *plot) clear() {
	p.t.Helper()
	if out, err := exec.Command("sh", "-c", "chmod -R u+rwx "+quote(p.at())+" && rm -rf "+quote(p.at())).CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}
