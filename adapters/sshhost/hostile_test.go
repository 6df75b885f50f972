package sshhost_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
)

// meddlers are login shells that get between us and our scripts without knowing
// what an answer must say: they run things twice, late or in part, say what was
// said before, or put programs of their own in front.
var meddlers = []struct {
	name   string
	bashrc string            // RUN stands for what we asked for
	own    map[string]string // programs that come first in PATH
}{
	{"everything twice, one after the other", `"$@"; "$@"`, nil},
	{"everything twice at once", `"$@" & "$@"; wait`, nil},
	{"what was said before", `if [ -f ~/said.$N ]; then cat ~/said.$N; else "$@" | tee ~/said.$N; fi`, nil},
	{"what was said before, and then what is asked", `cat ~/said 2>/dev/null; "$@" | tee -a ~/said`, nil},
	{"lines in another order", `"$@" | LC_ALL=C sort`, nil},
	{"every line twice", `"$@" | sed p`, nil},
	{"all but the first record", `"$@" | sed 4d`, nil},
	{"a half", `"$@" | head -c 300`, nil},
	{"the last first", `"$@" | tac`, nil},
	{"frames that look like ours", `printf '\n@AAAAAAAAAAAAAAAAAAAAAAAAAA@BEGIN 1\nreclaim 1 inventory\nend 0\n\n@AAAAAAAAAAAAAAAAAAAAAAAAAA@END 0 login /bin\n'; "$@"`, nil},
	{"success whatever happens", `"$@"; true`, nil},
	{"nothing at all", `true`, nil},
	{"a date in the past", "", map[string]string{"date": `echo 1000`}},
	{"a date in the future", "", map[string]string{"date": `echo 99999999999`}},
	{"a date that is none", "", map[string]string{"date": `echo 08:15`}},
	{"an rm that does nothing", "", map[string]string{"rm": `exit 0`}},
	{"an mv that does nothing", "", map[string]string{"mv": `exit 0`}},
	{"an mv that copies", "", map[string]string{"mv": `for to; do from=${last-}; last=$to; done; cp -a -- "$from" "$to"`}},
	{"a find that finds nothing", "", map[string]string{"find": `exit 0`}},
	{"a stat, an ls and an awk that say nothing", "", map[string]string{"stat": `exit 0`, "ls": `exit 0`, "awk": `exit 0`}},
	{"exported functions and options", "for f in rm mv find git test printf cat sed awk; do eval \"$f() { return 0; }\"; export -f $f; done; export BASH_ENV=~/.env ENV=~/.env POSIXLY_CORRECT=1 SHELLOPTS", map[string]string{"x": ":"}},
}

// Whatever a login shell does with what it is asked to run: work is never lost,
// removed is only said of what is gone, and what is gone is never called kept.
func TestNoLoginShellThatMeddlesBringsAFalseOutcome(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.template(t, 1)
	for i, m := range meddlers {
		if !long && i%4 != 1 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			y.account.Write(t, map[string]string{".bashrc": "", ".bash_profile": ""})
			clean, dirty := y.task(t), y.task(t)
			y.sh(t, `cd .kandev/tasks; echo precious >`+dirty+`/repo; rm -rf ~/own ~/said*`)
			files := map[string]string{".bash_profile": "PATH=HOME/own:$PATH; export PATH", ".env": "rm() { :; }"}
			switch {
			case m.own == nil:
				files[".bashrc"] = "exec() {\nN=0; while [ -f ~/asked.$N ]; do N=$((N+1)); done; : >~/asked.$N\n" + m.bashrc + "\n}"
			default:
				files[".bashrc"] = m.bashrc
			}
			for name, body := range m.own {
				files["own/"+name] = "#!/bin/sh\n" + body
			}
			y.account.Write(t, files)
			for name := range m.own {
				if err := os.Chmod(filepath.Join(y.account.Home, "own", name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			there := func(segment string) bool {
				_, err := os.Stat(filepath.Join(y.root, "tasks", segment))
				return err == nil
			}
			for _, segment := range []string{clean, dirty, clean, dirty} { // the second time with what the first one left
				session := dial(t, sshhost.New(quick), y.direct())
				s := snapshot(y.direct(), y.root, segment)
				outcome, begun := attempt(s, over(t.Context(), session))
				session.Close()
				t.Logf("%s: %T %.200v", segment, outcome, outcome)
				switch outcome.(type) {
				case core.Removed:
					if there(segment) {
						t.Errorf("%s: said to be removed, and is there", segment)
					}
				case core.Skipped:
					if begun && !there(segment) {
						t.Errorf("%s: said to be kept, and is gone", segment)
					}
				}
			}
			content, err := os.ReadFile(filepath.Join(y.root, "tasks", dirty, "repo"))
			if string(content) != "precious\n" {
				held, _ := filepath.Glob(filepath.Join(y.root, "tasks/.reclaim-*/[qx]/repo"))
				t.Errorf("the work is %q: %v; in a holder: %v", content, err, held)
			}
		})
	}
}
