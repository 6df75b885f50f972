package core

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is judged lends its judge no program: a profile may have put a directory
// of the target, or of its sibling, first in PATH (a virtual environment, a
// project's bin), and there stand programs by the names of ours.
func TestAC_002_6_NoProgramIsTakenFromTheDirectoryThatIsJudged(t *testing.T) {
	for _, shell := range shells {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			p := newPlot(t)
			p.shell = shell
			must(0, exec.Command("rm", "-rf", p.at()).Run())
			git := func(args ...string) {
				t.Helper()
				command := exec.Command("git", args...)
				command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@x", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@x")
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			work, origin := filepath.Join(p.top(), "work"), filepath.Join(p.top(), "origin.git")
			trap := filepath.Join(p.top(), "trap")
			for _, name := range strings.Fields("git find stat awk sed sort od tr cat ls readlink mv rm mkdir rmdir ln chmod cksum env date uname id grep head ps") {
				p.mkdir(filepath.Join(work, "bin"))
				must(0, os.WriteFile(filepath.Join(work, "bin", name), []byte("#!/bin/dash\necho "+name+" >>"+trap+"\nexit 0\n"), 0o755))
			}
			git("init", "-q", work)
			git("-C", work, "add", ".")
			git("-C", work, "commit", "-qm", "first")
			git("clone", "-q", "--bare", work, origin)
			git("clone", "-q", "--no-hardlinks", origin, p.at())
			git("clone", "-q", "--no-hardlinks", origin, filepath.Join(p.tasks(), "other"))
			must(0, os.Symlink(p.at("bin"), filepath.Join(p.top(), "home", "linked")))
			p.give(1000)
			lent := "PATH=" + strings.Join([]string{p.at("bin"), filepath.Join(p.top(), "home", "linked"), filepath.Join(p.tasks(), "other", "bin"), p.tasks() + "//other/../other/bin/.", filepath.Join(p.holder("q"), "bin"),
				os.Getenv("PATH")}, ":")
			q := Inventory{Root: p.root, Segment: p.segment}
			e := q.Judge(p.run(q.Script(), lent))
			if !e.Safe() {
				t.Errorf("%+v", e.Findings)
			}
			if said := (Greet{Root: p.root, TaskDir: p.at(), Segment: p.segment}); true {
				if g, err := said.Judge(p.run(said.Script(), lent)); err != nil || g.Target != IsDirectory {
					t.Errorf("%+v %v", g, err)
				}
			}
			remove := Remove{Root: p.root, Segment: p.segment, Manifest: e.Manifest, JobID: "job-1", Attempt: 1, NotAfter: time.Now().Unix() + 900}
			if out := remove.Judge(p.run(remove.Script(), lent)); verdict(out) != "removed" {
				t.Errorf("%+v", out)
			}
			p.target()
			p.make(p.at(), "bin/rm")
			p.abandoned("plan", "q")
			p.give(1000)
			settle := Settle{Root: p.root, Segment: p.segment, Holder: HolderQuarantined}
			if s, failed := settle.Judge(p.run(settle.Script(), lent)); failed != nil || !s.Restored {
				t.Errorf("%+v %v", s, failed)
			}
			if ran, err := os.ReadFile(trap); err == nil {
				t.Errorf("it ran the directory's own %q", ran)
			}
		})
	}
}
