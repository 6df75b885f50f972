package porttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// SessionSubject is what the Session suite works on.
type SessionSubject struct {
	Session ports.Session
	// Dir is a directory that scripts of the session and the test can write:
	// both run on one machine.
	Dir string
}

// Session checks ports.Session. open gives a fresh session each time and closes
// it when the test ends.
func Session(t *testing.T, open func(t *testing.T) SessionSubject) {
	t.Helper()
	run(t, sessionClauses, open)
}

// patience bounds what should happen at once, and prompt what must not wait for
// something else: far longer than either takes, far shorter than what is waited
// for in vain, so that a loaded machine fails nothing.
var patience, prompt = 60 * time.Second, 20 * time.Second

const maxBody = 1 << 20

var sessionClauses = []clause[SessionSubject]{
	{"what a script prints is its answer, byte for byte", func(t testing.TB, s SessionSubject) {
		for _, body := range []string{"", "\n", "x", " a  b \n\n", "reclaim 1 greet\nend 0\n"} {
			expect(t, s.Session, "printf %s "+quote(body), core.Said{Body: body})
		}
	}},
	{"a script arrives byte for byte, quotes and odd bytes included", func(t testing.TB, s SessionSubject) {
		var all []byte
		for b := 1; b < 256; b++ {
			all = append(all, byte(b))
		}
		for _, text := range []string{string(all), "it's \"$HOME\" `id` $(id) ~ \\ ! % ^ * ? {a,b} #\n\t;&|<>", "\\n\\0101\\c", "%s%d%%", "'\\''", "!!", "\xff\xfe\n"} {
			expect(t, s.Session, "printf %s "+quote(text)+"; echo .", core.Said{Body: text + ".\n"})
		}
	}},
	{"a status that is not zero is an answer", func(t testing.TB, s SessionSubject) {
		for _, exit := range []int{1, 2, 42, 127} {
			expect(t, s.Session, fmt.Sprintf("echo said; exit %d", exit), core.Said{Body: "said\n", Exit: exit})
		}
	}},
	{"standard error is no part of the answer", func(t testing.TB, s SessionSubject) {
		expect(t, s.Session, "echo one; echo two >&2; echo three", core.Said{Body: "one\nthree\n"})
	}},
	{"a script finds its standard input empty", func(t testing.TB, s SessionSubject) {
		expect(t, s.Session, "cat; echo end", core.Said{Body: "end\n"})
	}},
	{"a script that ends by a signal has not answered", func(t testing.TB, s SessionSubject) {
		for _, signal := range []string{"KILL", "TERM"} {
			reply := s.Session.Run(t.Context(), script("probe", "echo said; kill -"+signal+" $$; sleep 30"))
			expectDoubt(t, reply, core.Unframed)
		}
	}},
	{"a script with a syntax error has not said yes", func(t testing.TB, s SessionSubject) {
		for _, body := range []string{"echo said; if", "echo said; )", "echo 'said", "echo said; done"} {
			if said, is := s.Session.Run(t.Context(), script("probe", body)).(core.Said); is && said.Exit == 0 {
				t.Errorf("%q: %+v", body, said)
			}
		}
	}},
	{"a script that holds a NUL byte is never answered with a frame", func(t testing.TB, s SessionSubject) {
		reply := s.Session.Run(t.Context(), script("probe", "echo said\x00; exit 0"))
		if said, is := reply.(core.Said); is || reply == nil {
			t.Errorf("%+v", said)
		}
	}},
	{"the PATH and the shell's own process id are the script's", func(t testing.TB, s SessionSubject) {
		expect(t, s.Session, `sh -c 'test "$PPID" = "$1"' sh $$ && command -v cat >/dev/null && echo yes`, core.Said{Body: "yes\n"})
	}},
	{"at its limit a probe is given up and killed", func(t testing.TB, s SessionSubject) {
		pid := filepath.Join(s.Dir, "pid")
		expect(t, s.Session, "echo ready", core.Said{Body: "ready\n"}) // what a first script costs besides is over
		probe := script("probe", "echo $$ >"+quote(pid)+".new; mv "+quote(pid)+".new "+quote(pid)+"; sleep 300 & wait")
		probe.Limit = 2 * time.Second
		expectDoubt(t, s.Session.Run(t.Context(), probe), core.LimitReached)
		expectGone(t, pid)
		expect(t, s.Session, "echo still here", core.Said{Body: "still here\n"})
	}},
	{"at its limit a removal is given up and left to run", func(t testing.TB, s SessionSubject) {
		expect(t, s.Session, "echo ready", core.Said{Body: "ready\n"})
		// Long enough that the script has begun on a machine as busy as this one.
		begin := time.Now()
		expect(t, s.Session, "echo ready", core.Said{Body: "ready\n"})
		limit := 300*time.Millisecond + 10*time.Since(begin)
		for _, name := range []string{"remove", "settle"} {
			removal, finish := waiting(t, s, name)
			removal.Limit = limit
			expectDoubt(t, s.Session.Run(t.Context(), removal), core.LimitReached)
			finish()
		}
	}},
	{"when its caller leaves, a probe is given up at once and killed", func(t testing.TB, s SessionSubject) {
		pid := filepath.Join(s.Dir, "pid")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reply := start(ctx, s.Session, script("probe", "echo $$ >"+quote(pid)+".new; mv "+quote(pid)+".new "+quote(pid)+"; sleep 300 & wait"))
		expectFile(t, pid)
		cancel()
		expectDoubt(t, promptly(t, reply), core.ConnectionLost)
		expectGone(t, pid)
	}},
	{"when its caller leaves, a removal is given up at once and left to run", func(t testing.TB, s SessionSubject) {
		for _, name := range []string{"remove", "settle"} {
			removal, finish := waiting(t, s, name)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reply := start(ctx, s.Session, removal)
			expectFile(t, filepath.Join(s.Dir, name+".begun"))
			cancel()
			expectDoubt(t, promptly(t, reply), core.ConnectionLost)
			finish()
		}
	}},
	{"a caller that has left sends nothing", func(t testing.TB, s SessionSubject) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		mark := filepath.Join(s.Dir, "mark")
		expectDoubt(t, s.Session.Run(ctx, script("probe", "echo >"+quote(mark))), core.ConnectionLost)
		expect(t, s.Session, "test -e "+quote(mark)+" || echo nothing", core.Said{Body: "nothing\n"})
	}},
	{"a MiB is an answer, and a byte more a flood that leaves the session usable", func(t testing.TB, s SessionSubject) {
		zeros := func(n int) string { return fmt.Sprintf("head -c %d /dev/zero | tr '\\000' x", n) }
		expect(t, s.Session, zeros(maxBody), core.Said{Body: strings.Repeat("x", maxBody)})
		expectDoubt(t, s.Session.Run(t.Context(), script("probe", zeros(maxBody+1))), core.Flooded)
		pid := filepath.Join(s.Dir, "pid")
		expectDoubt(t, s.Session.Run(t.Context(), script("probe", "echo $$ >"+quote(pid)+"; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done")), core.Flooded)
		expectGone(t, pid)
		expect(t, s.Session, "echo still here", core.Said{Body: "still here\n"})
	}},
	{"a flood on standard error is dropped", func(t testing.TB, s SessionSubject) {
		expect(t, s.Session, "echo one; head -c 20000000 /dev/zero >&2; echo two", core.Said{Body: "one\ntwo\n"})
	}},
	{"several scripts at once each get their own answer", func(t testing.TB, s SessionSubject) {
		var replies []<-chan core.Reply
		for n := range 8 {
			replies = append(replies, start(t.Context(), s.Session, script("probe", fmt.Sprintf("i=0; while [ $i -lt 50 ]; do echo %d; i=$((i+1)); done", n))))
		}
		for n, reply := range replies {
			want := core.Said{Body: strings.Repeat(fmt.Sprintf("%d\n", n), 50)}
			if diff := cmp.Diff(core.Reply(want), within(t, reply, patience)); diff != "" {
				t.Errorf("script %d: %s", n, diff)
			}
		}
	}},
	{"the trips are the scripts sent", func(t testing.TB, s SessionSubject) {
		for n := range 3 {
			if got := s.Session.Trips(); got != n {
				t.Fatalf("%d trips after %d scripts", got, n)
			}
			expect(t, s.Session, "exit 1", core.Said{Exit: 1})
		}
	}},
	{"a close kills the probes that run and lets nothing run after it", func(t testing.TB, s SessionSubject) {
		pid, mark := filepath.Join(s.Dir, "pid"), filepath.Join(s.Dir, "mark")
		reply := start(t.Context(), s.Session, script("probe", "echo $$ >"+quote(pid)+".new; mv "+quote(pid)+".new "+quote(pid)+"; sleep 300 & wait"))
		expectFile(t, pid)
		closed := make(chan error, 1)
		go func() { closed <- s.Session.Close() }()
		expectDoubt(t, promptly(t, reply), core.ConnectionLost)
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		expectGone(t, pid)
		after := s.Session.Run(t.Context(), script("probe", "echo >"+quote(mark)))
		if never, is := after.(core.NeverRan); !is || never.Fault != core.Unreachable {
			t.Errorf("after the close: %+v", after)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Error("a script ran after the close")
		}
		if err := s.Session.Close(); err != nil {
			t.Errorf("a second close: %v", err)
		}
	}},
	{"every doubt has a detail for people", func(t testing.TB, s SessionSubject) {
		reply := s.Session.Run(t.Context(), script("probe", "kill -KILL $$"))
		if doubt, is := reply.(core.Unclear); !is || doubt.Detail == "" || strings.ContainsAny(doubt.Detail, "\n\x00") {
			t.Errorf("%+v", reply)
		}
	}},
}

// script is a body with a limit that is not the point of the test.
func script(name, body string) core.Script {
	return core.Script{Name: name, Body: body, Limit: patience}
}

// waiting is a removal that says it has begun, waits to be told, and leaves a
// sign that it ran to its end; finish tells it and waits for the sign. Like the
// real one it does not mind that nobody listens.
func waiting(t testing.TB, s SessionSubject, name string) (core.Script, func()) {
	path := filepath.Join(s.Dir, name)
	body := "trap '' PIPE HUP; echo >" + quote(path+".begun") + "; n=0; while ! test -e " + quote(path+".go") +
		" && [ $n -lt 1000 ]; do sleep 0.02; n=$((n+1)); done; echo told; echo >" + quote(path+".done")
	return script(name, body), func() {
		t.Helper()
		expectFile(t, path+".begun")
		if _, err := os.Stat(path + ".done"); err == nil {
			t.Errorf("%s did not wait", name)
		}
		if err := os.WriteFile(path+".go", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		expectFile(t, path+".done")
	}
}

func start(ctx context.Context, session ports.Session, script core.Script) <-chan core.Reply {
	reply := make(chan core.Reply, 1)
	go func() { reply <- session.Run(ctx, script) }()
	return reply
}

func promptly(t testing.TB, reply <-chan core.Reply) core.Reply {
	t.Helper()
	return within(t, reply, prompt)
}

func within(t testing.TB, reply <-chan core.Reply, limit time.Duration) core.Reply {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-reply:
		return got
	case <-timer.C:
		t.Fatalf("no reply within %s", limit)
		return nil
	}
}

func expect(t testing.TB, session ports.Session, body string, want core.Said) {
	t.Helper()
	reply := within(t, start(t.Context(), session, script("probe", body)), 2*patience)
	if diff := cmp.Diff(core.Reply(want), reply); diff != "" {
		if len(diff) > 2000 {
			diff = diff[:2000] + "..."
		}
		t.Errorf("%.200q: %s", body, diff)
	}
}

func expectDoubt(t testing.TB, reply core.Reply, want core.Doubt) {
	t.Helper()
	if doubt, is := reply.(core.Unclear); !is || doubt.Doubt != want {
		t.Errorf("wanted Unclear(%s), got %T %.300v", want, reply, reply)
	}
}

// expectFile waits until the file is there.
func expectFile(t testing.TB, path string) {
	t.Helper()
	eventually(t, path+" appears", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// expectGone waits until the process whose id is in the file has ended.
func expectGone(t testing.TB, file string) {
	t.Helper()
	expectFile(t, file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(raw), &pid); err != nil || pid < 2 {
		t.Fatalf("%q holds no process id", raw)
	}
	eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

// eventually asks again until the condition holds or patience ends.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(pause)
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
