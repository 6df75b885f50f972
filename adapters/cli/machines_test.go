package cli

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/sqlstore/pgtest"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
)

// On PostgreSQL `work` and `serve` share the jobs by River, whose pages stand
// beside the console behind its login.
func TestMachinesOnPostgreSQLShareTheJobsByRiver(t *testing.T) {
	m := newMachine(t)
	server := sshdtest.Start(t, sshdtest.Options{Home: m.home})
	postgres := pgtest.Start(t, "fsync=off")
	dsn := postgres.NewDSN(t)
	run := func(args ...string) called {
		t.Helper()
		got := m.reclaim(t, []string{"RECLAIM_DB=" + dsn}, args...)
		if got.status != exitDone {
			t.Fatalf("reclaim %s: exit %d, %s%s", strings.Join(args, " "), got.status, got.stdout, got.stderr)
		}
		return got
	}
	run("db", "init")
	run("db", "init")
	target := server.Target()
	run("profile", "add", "build1", "--host", target.User+"@"+target.Host+":"+strconv.Itoa(target.Port), "--fingerprint", target.Fingerprint, "--identity", target.IdentityFile, "--workdir-root", m.root)
	run("profile", "set", "build1", "--reclaim", "on")
	const remote = "remotes/app.git"
	archive := []string{"task", "archive"}
	for _, task := range []string{"a", "b", "c"} {
		run("task", "launch", task, "--profile", "build1", "--repository", filepath.Join(filepath.Dir(m.home), remote))
		archive = append(archive, task)
	}
	write(t, filepath.Join(m.root, "tasks", "task-c", "idea.go"), "package app\n")
	run(archive...)

	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	count := func(query string) (n int) {
		if err := db.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	// An observer on the same database takes nothing.
	if got := m.reclaim(t, []string{"RECLAIM_DB=" + dsn}, "work", "--once", "--observe"); got.status != exitDone || !strings.Contains(got.stdout, "task a") {
		t.Errorf("observing: exit %d, %s%s", got.status, got.stdout, got.stderr)
	}
	if n := count(`SELECT count(*) FROM task_resource_cleanup_jobs WHERE state = 'pending'`); n != 3 {
		t.Errorf("%d jobs wait after they were observed", n)
	}

	token := filepath.Join(m.home, "token")
	write(t, token, "a-token-of-some-length\n")
	address, endServe, log := m.serve(t, dsn, "--token-file", token)
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan int, 1)
	var errors lines
	go func() {
		worked <- Run(ctx, Invocation{Args: []string{"work", "--db", dsn}, Env: m.env, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errors})
	}()
	until(t, "every job ends, and River knows", func() (bool, bool) {
		return true, count(`SELECT count(*) FROM task_resource_cleanup_jobs WHERE state = 'succeeded'`) == 3 && count(`SELECT count(*) FROM reclaim_river.river_job WHERE state = 'completed'`) == 3
	})
	for task, there := range map[string]bool{"a": false, "b": false, "c": true} {
		if _, err := os.Stat(filepath.Join(m.root, "tasks", "task-"+task)); os.IsNotExist(err) == there {
			t.Errorf("%s: %v", task, err)
		}
	}

	ask := func(method, path string, header ...string) (int, string, http.Header) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(`{"ids":["1"]}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "text/html, application/json")
		for _, h := range header {
			name, value, _ := strings.Cut(h, ": ")
			request.Header.Set(name, value)
		}
		response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body), response.Header
	}
	const known = "Authorization: Bearer a-token-of-some-length"
	for _, path := range []string{"/river/", "/river/api/jobs", "/river/api/queues", "/river/favicon.ico"} {
		if status, _, header := ask("GET", path); status != http.StatusSeeOther || header.Get("Location") != "/login" {
			t.Errorf("%s without a login: %d to %q", path, status, header.Get("Location"))
		}
		if status, body, _ := ask("GET", path, "Authorization: Bearer another-token-of-some-length"); status != http.StatusForbidden {
			t.Errorf("%s with a wrong token: %d %.200s", path, status, body)
		}
		if status, body, _ := ask("GET", path, known); status != http.StatusOK {
			t.Errorf("%s with the token: %d %.200s", path, status, body)
		}
	}
	if status, body, header := ask("GET", "/river/", known); status != http.StatusOK || !strings.Contains(body, `src="/river/assets/`) || !strings.Contains(header.Get("Content-Security-Policy"), "script-src 'self';") {
		t.Errorf("%d %v %s", status, header, body)
	}
	if status, body, _ := ask("GET", "/river/api/jobs?state=completed&limit=20", known); status != http.StatusOK || strings.Count(body, "reclaim_cleanup") != 3 {
		t.Errorf("%d %s", status, body)
	}
	for _, change := range []string{"/river/api/jobs/cancel", "/river/api/jobs/delete"} {
		if status, body, _ := ask("POST", change, known); status != http.StatusConflict || !strings.Contains(body, "in the console") {
			t.Errorf("%s: %d %s", change, status, body)
		}
	}
	if status, body, _ := ask("POST", "/river/api/jobs/retry", known, "Sec-Fetch-Site: cross-site"); status != http.StatusForbidden {
		t.Errorf("from another site: %d %s", status, body)
	}
	if _, body, _ := ask("GET", "/jobs", known); !strings.Contains(body, `href="/river/"`) {
		t.Error("the console does not lead there")
	}
	if _, body, _ := ask("GET", "/metrics", known); !strings.Contains(body, "reclaim_queue_oldest_due_seconds 0") {
		t.Error(body)
	}

	// A host that is full shows in the figures.
	if _, err := db.Exec(`INSERT INTO reclaim_river.reclaim_slots (host, job_id, attempt, worker, beat) SELECT 'busy.example', 'job-' || n, 1, 'w', clock_timestamp() + interval '1 minute' FROM generate_series(1, 4) n`); err != nil {
		t.Fatal(err)
	}
	_, figures, _ := ask("GET", "/metrics", known)
	for _, want := range []string{`reclaim_host_running{host="busy.example"} 4`, `reclaim_host_waiting{host="busy.example"} 0`, `reclaim_host_cap{host="busy.example"} 4`} {
		if !slices.Contains(strings.Split(figures, "\n"), want) {
			t.Errorf("no %s", want)
		}
	}

	stop()
	if status := endServe(); status != exitDone {
		t.Errorf("serve ended with %d: %s", status, log)
	}
	select {
	case status := <-worked:
		if status != exitDone {
			t.Errorf("work ended with %d: %s", status, errors.String())
		}
	case <-time.After(time.Minute):
		t.Error("work does not end")
	}
}
