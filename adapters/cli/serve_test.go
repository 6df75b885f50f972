package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
)

// lines is standard error that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// until waits for a condition, at most for a minute.
func until[T any](t *testing.T, what string, look func() (T, bool)) T {
	t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	deadline := time.After(time.Minute)
	for {
		if v, ok := look(); ok {
			return v
		}
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// serving starts the command in this process and returns the console's address
// and a way to end it, which says how it ended.
func (m machine) serve(t *testing.T, dsn string, args ...string) (address string, end func() int, log *lines) {
	t.Helper()
	log = &lines{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, Invocation{Args: append([]string{"serve", "--db", dsn, "--listen", "127.0.0.1:0"}, args...), Env: m.env, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: log})
	}()
	address = until(t, "the console listens", func() (string, bool) {
		found := regexp.MustCompile(`the console: (http://\S+)/`).FindStringSubmatch(log.String())
		select {
		case status := <-ended:
			t.Fatalf("serve ended with %d: %s", status, log)
		default:
		}
		if found == nil {
			return "", false
		}
		return found[1], true
	})
	once := sync.OnceValue(func() int { stop(); return <-ended })
	t.Cleanup(func() { once() })
	return address, once, log
}

func page(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestServeWorksTheQueueAndShowsWhatItDid(t *testing.T) {
	m := newMachine(t)
	server := sshdtest.Start(t, sshdtest.Options{Home: m.home})
	dsn := "sqlite:" + filepath.Join(filepath.Dir(m.home), "jobs.db")
	if got := m.reclaim(t, nil, "db", "init", "--db", dsn); got.status != exitDone {
		t.Fatal(got.stderr)
	}
	db, err := openDatabase(t.Context(), dsn, writes)
	if err != nil {
		t.Fatal(err)
	}
	var d demo
	if err := d.profiles(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pushed", "dirty"} {
		dir := filepath.Join(m.root, "tasks", name)
		m.git(t, m.home, "clone", "-q", filepath.Join(filepath.Dir(m.home), "remotes", "app.git"), dir)
		target := server.Target()
		target.WorkdirRoot, target.TaskDir = m.root, dir
		if err := d.launch(t.Context(), db.DB, situation{name: name, there: name}, target); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	write(t, filepath.Join(m.root, "tasks", "dirty", "new.go"), "package app\n")

	otlp := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp.URL)
	m.env = append(m.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+otlp.URL)
	address, end, log := m.serve(t, dsn)
	previews := map[string]string{"pushed": "would be removed", "dirty": "dirty_worktree / untracked"}
	for task, want := range previews {
		response, err := http.PostForm(address+"/preview", url.Values{"task": {task}})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusOK || !strings.Contains(plainText(string(body)), want) {
			t.Errorf("the preview of %s: %d, %s", task, response.StatusCode, plainText(string(body)))
		}
		if _, err := os.Stat(filepath.Join(m.root, "tasks", task, "app.go")); err != nil {
			t.Errorf("the preview touched %s: %v", task, err)
		}
	}
	if got := m.reclaim(t, nil, "task", "archive", "pushed", "dirty", "--db", dsn); got.status != exitDone {
		t.Fatal(got.stderr)
	}
	until(t, "both jobs end", func() (string, bool) {
		jobs := page(t, address+"/jobs?state=succeeded")
		return jobs, strings.Contains(jobs, "2 jobs")
	})
	if _, err := os.Stat(filepath.Join(m.root, "tasks", "pushed")); !os.IsNotExist(err) {
		t.Errorf("pushed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(m.root, "tasks", "dirty", "new.go")); err != nil {
		t.Errorf("dirty: %v", err)
	}
	kept := page(t, address+"/kept")
	if !strings.Contains(plainText(kept), "1 of 1 directories") {
		t.Error(plainText(kept))
	}
	record := regexp.MustCompile(`href="(/records/[^"]+)"`).FindStringSubmatch(kept)
	if record == nil {
		t.Fatal("no record")
	}
	if told := plainText(page(t, address+record[1]+"?replay=yes")); !strings.Contains(told, "Replayed: the same outcome.") || !strings.Contains(told, "Nothing that decides had changed") {
		t.Error(told)
	}

	figures := page(t, address+"/metrics")
	for _, want := range []string{`reclaim_attempts_total{cause="",outcome="removed",reason=""} 1`, `reclaim_attempts_total{cause="untracked",outcome="skipped",reason="dirty_worktree"} 1`,
		`reclaim_queue_depth{state="pending"} 0`, `reclaim_queue_oldest_due_seconds 0`, `reclaim_stopped 0`} {
		if !strings.Contains(figures, want) {
			t.Errorf("no %s", want)
		}
	}
	if status := end(); status != exitDone {
		t.Errorf("it ended with %d: %s", status, log)
	}
	otlp.got(t, []string{"reclaim.attempt", "reclaim.question.greet", "reclaim.question.inventory", "reclaim.question.remove"},
		[]string{"reclaim.attempts", "reclaim.size", "reclaim.attempt.duration", "reclaim.round_trips", "reclaim.queue.depth", "reclaim.queue.oldest_due"})
	key, err := os.ReadFile(server.Identity)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(key)), "\n") {
		if strings.Contains(log.String(), line) {
			t.Error("the log holds key material")
		}
	}
}

var markup = regexp.MustCompile(`(?s)<[^>]*>`)

func plainText(page string) string {
	return strings.Join(strings.Fields(markup.ReplaceAllString(page, "")), " ")
}

// A dashboard over a figure that is not there shows nothing, and an alert over
// one never fires.
func TestEveryFigureOfTheDashboardAndTheAlertsIsServed(t *testing.T) {
	m := newMachine(t)
	dsn := "sqlite:" + filepath.Join(filepath.Dir(m.home), "jobs.db")
	if got := m.reclaim(t, nil, "db", "init", "--db", dsn); got.status != exitDone {
		t.Fatal(got.stderr)
	}
	db, err := openDatabase(t.Context(), dsn, writes)
	if err != nil {
		t.Fatal(err)
	}
	var d demo
	if err := d.profiles(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	target := sshdtest.Start(t, sshdtest.Options{Home: m.home}).Target()
	target.Fingerprint, target.WorkdirRoot, target.TaskDir = "SHA256:"+strings.Repeat("A", 43), m.root, m.dir
	if err := d.launch(t.Context(), db.DB, situation{name: "fix-login", there: "x"}, target); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if got := m.reclaim(t, nil, "task", "archive", "fix-login", "--db", dsn); got.status != exitDone {
		t.Fatal(got.stderr)
	}
	address, _, _ := m.serve(t, dsn)
	figures := until(t, "the attempt fails", func() (string, bool) {
		figures := page(t, address+"/metrics")
		return figures, strings.Contains(figures, `reclaim_faults_total{fault="host_key_mismatch"`)
	})
	served := regexp.MustCompile(`(?m)^(reclaim_\w+)`).FindAllString(figures, -1)
	served = append(served, "reclaim_host_running", "reclaim_host_waiting", "reclaim_host_cap") // on PostgreSQL
	labels := regexp.MustCompile(`[{,](\w+)="`)
	name := regexp.MustCompile(`reclaim_\w+`)
	by := regexp.MustCompile(`by \(([^)]*)\)`)
	for _, file := range []string{"grafana.json", "rules.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "telemetry", file))
		if err != nil {
			t.Fatal(err)
		}
		named := name.FindAllString(string(text), -1)
		if len(named) < 8 {
			t.Errorf("%s names %d figures only", file, len(named))
		}
		for _, figure := range named {
			if !slices.Contains(served, figure) {
				t.Errorf("%s names %s, which is not served", file, figure)
			}
		}
		for _, list := range by.FindAllStringSubmatch(string(text), -1) {
			for _, label := range strings.Split(list[1], ", ") {
				if !slices.ContainsFunc(labels.FindAllStringSubmatch(figures, -1), func(found []string) bool { return found[1] == label }) {
					t.Errorf("%s groups by %s, which no figure has", file, label)
				}
			}
		}
	}
}

func TestServeRefusesAnAddressNobodyGuards(t *testing.T) {
	m := newMachine(t)
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:0"}, {"--listen", ":0"}, {"--listen", "nonsense"},
		{"--listen", "0.0.0.0:0", "--trust-header", "X-User"}, {"--listen", "0.0.0.0:0", "--trust-proxy", "10.0.0.1"}, {"--listen", "0.0.0.0:0", "--trust-proxy", "x", "--trust-header", "X-User"},
	} {
		got := m.reclaim(t, nil, append([]string{"serve", "--db", "sqlite:" + filepath.Join(m.home, "none.db")}, args...)...)
		if got.status != exitUsage {
			t.Errorf("%v: exit %d, %s", args, got.status, got.stderr)
		}
	}
	short := filepath.Join(m.home, "token")
	write(t, short, "short\n")
	if got := m.reclaim(t, nil, "serve", "--db", "sqlite:x", "--listen", "0.0.0.0:0", "--token-file", short); got.status != exitUsage || !strings.Contains(got.stderr, "at least 16") {
		t.Errorf("a short token: %d, %s", got.status, got.stderr)
	}
}
