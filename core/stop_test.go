package core

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

var everyShell = [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}, {"zsh", "--emulate", "sh"}}

func sayIn(t *testing.T, shell []string, script Script, env ...string) Reply {
	t.Helper()
	command := exec.Command(shell[0], append(shell[1:], "-c", script.Body)...)
	command.Env = append(command.Environ(), env...)
	out, err := command.Output()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return Said{Body: string(out), Exit: command.ProcessState.ExitCode()}
}

func TestTheStopScriptsAreInPOSIXShell(t *testing.T) {
	for _, script := range []Script{RunHook{TaskDir: "/a'b", Program: "it's"}.Script(), EndSession{TaskDir: "/a b", SessionID: "-s"}.Script()} {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script.Body), script.Name); err != nil {
			t.Error(err)
		}
	}
}

func TestAC_007_1_ACleanupScriptRanOnlyIfItWasReachedAndEndedWithZero(t *testing.T) {
	for _, shell := range everyShell {
		dir := filepath.Join(t.TempDir(), "it's a $dir")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, program, shell, dir, profile string
			want                               Hook
			says                               string
		}{
			{name: "it ends well", program: `test "$PWD" = "$RECLAIM_TASK_DIR" && pwd > here`, want: HookRan},
			{name: "it exits early with zero", program: "exit 0\nfalse", want: HookRan},
			{name: "it is empty but for a comment", program: "# nothing", want: HookRan},
			{name: "it leaves a job that holds its output", program: "sleep 3 & :", want: HookRan},
			{name: "it ends badly", program: "echo it\\'s broken; exit 3", want: HookFailed, says: `status 3; it last said "it's broken"`},
			{name: "it has a syntax error", program: "if", want: HookFailed},
			{name: "the shell is missing", program: "true", shell: "no-such-shell", want: HookFailed, says: "not on this host"},
			{name: "the directory is missing", program: "true", dir: "/nonexistent/x", want: HookFailed, says: "cannot be entered"},
			{name: "the profile ends the shell", program: "true", profile: "exit 0\n", want: HookFailed, says: "did not come to"},
			{name: "the profile goes elsewhere", program: `test "$PWD" = "$RECLAIM_TASK_DIR"`, profile: "cd /\n", want: HookRan},
		} {
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, ".profile"), []byte(c.profile), 0o600); err != nil {
				t.Fatal(err)
			}
			q := RunHook{TaskDir: dir, Shell: "bash", Program: c.program, Limit: time.Minute}
			if c.shell != "" {
				q.Shell = c.shell
			}
			if c.dir != "" {
				q.TaskDir = c.dir
			}
			started := time.Now()
			got, detail := q.Judge(sayIn(t, shell, q.Script(), "HOME="+home, "TMPDIR="+home))
			if got != c.want || !strings.Contains(detail, c.says) {
				t.Errorf("%v: %s: %s %q, want %s %q", shell, c.name, got, detail, c.want, c.says)
			}
			if took := time.Since(started); took > 2500*time.Millisecond {
				t.Errorf("%v: %s: the answer took %s", shell, c.name, took)
			}
			if left, _ := filepath.Glob(filepath.Join(home, "reclaim-hook.*")); len(left) > 0 {
				t.Errorf("%v: %s: left %v", shell, c.name, left)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "here")); err != nil {
			t.Errorf("%v: the script did not run in the directory: %v", shell, err)
		}
	}
}

func TestTheCleanupScriptRunsInEveryLoginShell(t *testing.T) {
	for _, shell := range []string{"", "sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "ksh93", "mksh"} {
		if _, err := exec.LookPath(shell); shell != "" && err != nil {
			t.Logf("%s is not on this machine", shell)
			continue
		}
		dir, home := t.TempDir(), t.TempDir()
		q := RunHook{TaskDir: dir, Shell: shell, Program: "echo reached > reached\nexit 0", Limit: time.Minute}
		if got, detail := q.Judge(sayIn(t, []string{"dash"}, q.Script(), "HOME="+home, "SHELL=/bin/sh")); got != HookRan {
			t.Errorf("%s: %s", shell, detail)
		}
		if _, err := os.Stat(filepath.Join(dir, "reached")); err != nil {
			t.Errorf("%s: %v", shell, err)
		}
	}
}

func TestNothingButAWholeAnswerSaysThatACleanupScriptRan(t *testing.T) {
	whole := "reclaim 1 hook\nstarted\nstatus 0\noutput ~\nend 3\n"
	if got, _ := (RunHook{}).Judge(Said{Body: whole}); got != HookRan {
		t.Fatalf("a whole answer is %s", got)
	}
	for at := range whole {
		if got, _ := (RunHook{}).Judge(Said{Body: whole[:at]}); got != HookFailed {
			t.Errorf("cut after %d bytes it is %s", at, got)
		}
	}
	for _, reply := range []Reply{nil, Said{}, Said{Body: whole, Exit: 1}, Unclear{Doubt: LimitReached}, Unclear{Doubt: ConnectionLost}, Unclear{}, NeverRan{},
		Said{Body: "reclaim 1 hook\nstatus 0\noutput ~\nend 2\n"}, Said{Body: "reclaim 1 hook\nstarted\nend 1\n"}, Said{Body: "reclaim 1 hook\nstarted\nstatus 0\ncannot =x\nend 3\n"}} {
		if got, detail := (RunHook{}).Judge(reply); got != HookFailed || detail == "" {
			t.Errorf("%#v is %s %q", reply, got, detail)
		}
	}
}

// session makes .kandev/sessions/<id> with a helper started from it.
func session(t *testing.T, dir, id string, trap string) *exec.Cmd {
	t.Helper()
	folder := filepath.Join(dir, ".kandev", "sessions", id)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(folder, "agent")
	if err := os.WriteFile(agent, []byte(trap+"\necho up\nwhile :; do sleep 0.1; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	helper := exec.Command("sh", agent)
	up, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = helper.Process.Kill(); _, _ = helper.Process.Wait() })
	if _, err := up.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "agentctl.pid"), []byte(fmt.Sprintln(helper.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	return helper
}

func TestASessionEndsWithItsHelperAndItsFolderAndNothingElse(t *testing.T) {
	for _, shell := range everyShell {
		dir := t.TempDir()
		helper, other := session(t, dir, "s-1", ""), session(t, dir, "s-2", "")
		q := EndSession{TaskDir: dir, SessionID: "s-1"}
		if err := q.Judge(sayIn(t, shell, q.Script())); err != nil {
			t.Errorf("%v: %v", shell, err)
		}
		if state, err := helper.Process.Wait(); err != nil || state.Success() {
			t.Errorf("%v: the helper ended %v %v", shell, state, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".kandev/sessions/s-1")); !os.IsNotExist(err) {
			t.Errorf("%v: the folder: %v", shell, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".kandev/sessions/s-2/agentctl.pid")); err != nil || other.ProcessState != nil {
			t.Errorf("%v: the other session was touched: %v", shell, err)
		}
		if err := q.Judge(sayIn(t, shell, q.Script())); err != nil {
			t.Errorf("%v: a second time: %v", shell, err)
		}
	}
}

func TestAHelperThatIgnoresTheFirstSignalIsEndedAllTheSame(t *testing.T) {
	dir := t.TempDir()
	session(t, dir, "s", "trap '' TERM")
	q := EndSession{TaskDir: dir, SessionID: "s"}
	if err := q.Judge(sayIn(t, []string{"dash"}, q.Script())); err != nil {
		t.Error(err)
	}
}

func TestAPidThatIsNotTheHelpersIsNotSignalled(t *testing.T) {
	for _, shell := range everyShell {
		dir := t.TempDir()
		folder := filepath.Join(dir, ".kandev/sessions/s")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		stranger := exec.Command("sleep", "60")
		if err := stranger.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stranger.Process.Kill(); _, _ = stranger.Process.Wait() })
		if err := os.WriteFile(filepath.Join(folder, "agentctl.pid"), []byte(fmt.Sprint(stranger.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		q := EndSession{TaskDir: dir, SessionID: "s"}
		if err := q.Judge(sayIn(t, shell, q.Script())); err != nil {
			t.Errorf("%v: %v", shell, err)
		}
		if out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(stranger.Process.Pid)).Output(); err != nil || strings.HasPrefix(string(out), "Z") {
			t.Errorf("%v: the stranger was ended: %q %v", shell, out, err)
		}
		if _, err := os.Stat(folder); err != nil {
			t.Errorf("%v: the evidence is gone: %v", shell, err)
		}
	}
}

func TestEndingASessionGoesNowhereThroughALinkOrAName(t *testing.T) {
	for _, c := range []struct{ name, session, make string }{
		{"the folder is a link", "s", "mkdir -p .kandev/sessions ../out && touch ../out/keep && ln -s ../../../out .kandev/sessions/s"},
		{"sessions is a link", "s", "mkdir -p .kandev ../out/s && touch ../out/s/keep && ln -s ../../out .kandev/sessions"},
		{".kandev is a link", "s", "mkdir -p ../out/sessions/s && touch ../out/sessions/s/keep && ln -s ../out .kandev"},
		{"the name climbs", "../..", "mkdir -p .kandev/sessions && touch keep"},
		{"the name is a parent", "..", "mkdir -p .kandev/sessions && touch .kandev/keep"},
		{"the name is empty", "", "mkdir -p .kandev/sessions && touch .kandev/sessions/keep"},
		{"the folder is a file", "s", "mkdir -p .kandev/sessions && touch .kandev/sessions/s"},
	} {
		base := t.TempDir()
		dir := filepath.Join(base, "t")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		setup := exec.Command("sh", "-c", c.make)
		setup.Dir = dir
		if out, err := setup.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", c.name, err, out)
		}
		list := func() string {
			out, err := exec.Command("find", base, "-printf", "%p %i %y %Ts\n").Output()
			if err != nil {
				t.Fatal(err)
			}
			return string(out)
		}
		before := list()
		q := EndSession{TaskDir: dir, SessionID: c.session}
		if err := q.Judge(sayIn(t, []string{"dash"}, q.Script())); err == nil {
			t.Errorf("%s: it says the session ended", c.name)
		}
		if after := list(); after != before {
			t.Errorf("%s: was\n%s\nis\n%s", c.name, before, after)
		}
	}
}

func TestTheLaunchScriptIsInPOSIXShell(t *testing.T) {
	script := Prepare{Root: "~/k", Segment: "t", SessionID: "s", Repositories: []Repository{{URL: "u"}, {Name: "it's", URL: "u"}}}.Script()
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script.Body), script.Name); err != nil {
		t.Error(err)
	}
}
