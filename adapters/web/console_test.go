package web

import (
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/kandev/reclaim/adapters/memstore"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func post(t *testing.T, address string, form url.Values, header ...string) (int, string, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Location"), string(body)
}

var tags = regexp.MustCompile(`(?s)<[^>]*>`)

// text is what a page says.
func text(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, ""))), " ")
}

func says(t *testing.T, page string, wants ...string) {
	t.Helper()
	said := text(page)
	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if t.Failed() {
		t.Logf("it says: %s", said)
	}
}

// pagesOf is every page of a furnished world.
func (w *world) pagesOf() []string {
	all := []string{"/", "/profiles", "/profiles/p-build/on", "/profiles/p-alias/on", "/kept", "/kept?reason=dirty_worktree", "/jobs", "/jobs?state=succeeded", "/hosts", "/stop", "/preview", "/login", "/nowhere"}
	for _, task := range []string{"t-pushed", "t-half-written", "t-one-commit", "t-hostile", "t-fault"} {
		filed := w.recordOf(task)
		all = append(all, at("records", filed.ID), at("jobs", filed.Record.Snapshot.JobID))
	}
	return append(all, at("records", w.recordOf("t-one-commit").ID)+"?replay=yes")
}

func TestEveryPageIsInertWhateverAFileIsCalled(t *testing.T) {
	w := furnished(t)
	for _, path := range w.pagesOf() {
		_, page := get(t, w.url+path)
		for _, r := range page {
			if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%s holds the character %U", path, r)
			}
		}
		for _, alive := range []string{"<script>document", "<img src=x", "style=", "onerror=alert(1)>", "onclick", "javascript:"} {
			if strings.Contains(page, alive) {
				t.Errorf("%s holds %q", path, alive)
			}
		}
		for _, secret := range []string{"hunter2", "env_secret"} {
			if strings.Contains(page, secret) {
				t.Errorf("%s shows a secret", path)
			}
		}
	}
	_, page := get(t, w.url+"/kept?reason=dirty_worktree")
	says(t, page, `<script>document.title='owned'`, "gpj.exe")
	_, page = get(t, w.url+at("records", w.recordOf("t-hostile").ID))
	says(t, page, `\x1b]0;owned\x07\x1b[2J\u{202E}gpj.exe`) // the script's own words
}

func TestAC_006_1_OnlyTheExactStringIsOn(t *testing.T) {
	for _, stored := range []string{"", "false", "TRUE", "True", "1", "yes", "on", " true", "true ", " true ", "true\n", "\ufefftrue", "\"true\""} {
		if (profile{ports.Profile{Reclaim: stored}}).On() {
			t.Errorf("%q is on", stored)
		}
	}
	if !(profile{ports.Profile{Reclaim: "true"}}).On() {
		t.Error("true is off")
	}
	w := newWorld(t)
	_, page := get(t, w.url+"/profiles")
	if n := strings.Count(page, `aria-checked="true"`); n != 1 {
		t.Errorf("%d switches are on", n)
	}
	says(t, page, "The stored value is “ true ”. Only exactly true is on, so this profile is off.")
}

func TestAC_006_4_TheSwitchStatesHostTreeAndPermanence(t *testing.T) {
	for _, c := range []struct {
		p          ports.Profile
		host, tree string
	}{
		{ports.Profile{Host: "h", Alias: "a", Executor: "e"}, "h", "~/.kandev/tasks/"},
		{ports.Profile{Host: " ", Alias: "a", Executor: "e", Root: "  "}, "a", "~/.kandev/tasks/"},
		{ports.Profile{Executor: "e", Root: "/srv/x///"}, "e", "/srv/x/tasks/"},
		{ports.Profile{Executor: "e", Root: "~/"}, "e", "~/tasks/"},
	} {
		p := profile{c.p}
		if p.Where() != c.host || p.Tree() != c.tree {
			t.Errorf("%+v: %s %s", c.p, p.Where(), p.Tree())
		}
	}
	w := newWorld(t)
	for _, path := range []string{"/profiles", "/profiles/p-alias/on"} {
		_, page := get(t, w.url+path)
		says(t, page, "on gpu-box (alias in the SSH configuration), below ~/.kandev/tasks/", "archived or deleted", "Removal is permanent", "Un-archiving clones again", "Existing directories are untouched", "off by default")
	}
}

func TestTheSwitchGoesOnOnlyForWhatWasConfirmed(t *testing.T) {
	w := newWorld(t)
	on := func() bool {
		all, err := w.store.Desk().Profiles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.ID == "p-alias" {
				return profile{p}.On()
			}
		}
		return false
	}
	address := w.url + "/profiles/p-alias/on"
	right := url.Values{"host": {"gpu-box"}, "tree": {"~/.kandev/tasks/"}, "understood": {"yes"}}
	for what, form := range map[string]url.Values{
		"nothing":         {},
		"no box ticked":   {"host": {"gpu-box"}, "tree": {"~/.kandev/tasks/"}},
		"another host":    {"host": {"other"}, "tree": {"~/.kandev/tasks/"}, "understood": {"yes"}},
		"another tree":    {"host": {"gpu-box"}, "tree": {"/srv/tasks/"}, "understood": {"yes"}},
		"a half-said yes": {"host": {"gpu-box"}, "tree": {"~/.kandev/tasks/"}, "understood": {"true"}},
	} {
		if status, to, _ := post(t, address, form); status != http.StatusOK || to != "" || on() {
			t.Errorf("%s: %d to %q, on %v", what, status, to, on())
		}
	}
	if status, to, _ := post(t, address, right); status != http.StatusSeeOther || to != "/profiles?did=on" || !on() {
		t.Errorf("confirmed: %d to %q, on %v", status, to, on())
	}
	if status, _, _ := post(t, w.url+"/profiles/p-alias/off", nil); status != http.StatusSeeOther || on() {
		t.Errorf("off: %d, on %v", status, on())
	}
	if status, _, _ := post(t, w.url+"/profiles/nobody/off", nil); status != http.StatusNotFound {
		t.Errorf("an unknown profile: %d", status)
	}
}

func TestAC_002_7_KeptSaysReasonCauseCheckoutCureAndLeadsToTheRecord(t *testing.T) {
	w := furnished(t)
	_, page := get(t, w.url+"/kept")
	says(t, page, "4 of 4 directories", "holds changes that are only here dirty_worktree / untracked", "holds commits that are only here unpushed_commits / branch",
		"the path is not one that may be removed path_refused", "no retry can change it", "Judge again", "What to do")
	if strings.Contains(page, "tasks/pushed") {
		t.Error("what was removed is listed as kept")
	}
	filed := w.recordOf("t-one-commit")
	if !strings.Contains(page, at("records", filed.ID)) {
		t.Error("no link to the record")
	}
	_, page = get(t, w.url+at("records", filed.ID))
	says(t, page, "Would anything in the directory be lost? inventory This decided it", "unpushed_commits / branch")
	if strings.Count(page, `class="decides"`) != 1 {
		t.Error("not exactly one row decides")
	}
}

func TestReplayTellsTheSameAndTellsADifference(t *testing.T) {
	w := furnished(t)
	filed := w.recordOf("t-half-written")
	_, page := get(t, w.url+at("records", filed.ID)+"?replay=yes")
	says(t, page, "Replayed: the same outcome.", "Question by question")
	request, err := http.NewRequest(http.MethodGet, w.url+at("records", filed.ID)+"?replay=yes", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("HX-Request", "true")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	part, _ := io.ReadAll(response.Body)
	if !strings.HasPrefix(strings.TrimSpace(string(part)), `<div id="replayed"`) {
		t.Errorf("htmx is sent %q", part)
	}

	forged := filed.Record
	forged.Snapshot.JobID, forged.Result.Outcome, forged.Result.Reason = "job-forged", core.OutcomeRemoved, ""
	w.store.PutJob(ports.Job{ID: "job-forged", OperationID: "x", TaskID: "t-forged", Trigger: core.Archive, State: ports.Succeeded, Snapshot: []byte("{}"), CreatedAt: time.Now()})
	if err := w.store.Keep(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	records, err := w.store.Desk().RecordsOf(t.Context(), "job-forged")
	if err != nil || len(records) != 1 {
		t.Fatal(err, len(records))
	}
	_, page = get(t, w.url+at("records", records[0].ID)+"?replay=yes")
	says(t, page, "Replayed: it differs.", "the record diverges at exchange 1", "the record says removed, untracked, the replay skipped")
}

func TestAC_D29_JudgeAgainMakesANewJob(t *testing.T) {
	w := furnished(t)
	filed := w.recordOf("t-one-commit")
	status, to, _ := post(t, w.url+"/kept/judge", url.Values{"job": {filed.Record.Snapshot.JobID}})
	if status != http.StatusSeeOther || to == at("jobs", filed.Record.Snapshot.JobID)+"?did=judged" {
		t.Fatalf("%d to %q", status, to)
	}
	_, page := get(t, w.url+to)
	says(t, page, "A new job judges the directory again.", "waiting for task t-one-commit")
	_, page = get(t, w.url+"/kept")
	says(t, page, "It is being judged again")
	if status, _, page := post(t, w.url+"/kept/judge", url.Values{"job": {filed.Record.Snapshot.JobID}}); status != http.StatusConflict {
		t.Errorf("a second one: %d", status)
	} else {
		says(t, page, "has not ended")
	}
	if status, _, _ := post(t, w.url+"/kept/judge", url.Values{"job": {"none"}}); status != http.StatusNotFound {
		t.Errorf("no such job: %d", status)
	}
}

func TestJobsTellWhatTheyCameTo(t *testing.T) {
	w := furnished(t)
	_, page := get(t, w.url+"/jobs")
	says(t, page, "Came to", "removed", "kept: holds changes that are only here", "kept: holds commits that are only here")
}

func TestJobsAreRetriedAndCancelled(t *testing.T) {
	w := newWorld(t)
	w.store.PutTask(memstore.Task{ID: "t", ArchivedAt: time.Now()})
	w.store.PutJob(ports.Job{ID: "j", OperationID: "o", TaskID: "t", Trigger: core.Archive, State: ports.RetryWait, Attempts: 5,
		Snapshot:      []byte(`{"ssh_task_dirs":[{"host":"h","task_dir":"/d","reclaim":{"uncounted":2}}]}`),
		NextAttemptAt: time.Now().Add(3*time.Hour + time.Minute), LastError: "stopping the session s: unreachable: gone \x1b[2J", CreatedAt: time.Now(), UpdatedAt: time.Now()})
	_, page := get(t, w.url+"/jobs")
	says(t, page, "1 job, newest first", "waits to try again", "3 of 8", "in 3 h", `gone \x1b[2J`)
	_, page = get(t, w.url+"/jobs/j")
	says(t, page, "3 of 8, and 2 attempts held or cut short", "see that the host is up and can be reached from here")
	if status, to, _ := post(t, w.url+"/jobs/j/retry", nil); status != http.StatusSeeOther || to != "/jobs/j?did=retried" {
		t.Errorf("retry: %d to %q", status, to)
	}
	if j, err := w.store.Desk().Job(t.Context(), "j"); err != nil || j.NextAttemptAt.After(time.Now()) {
		t.Errorf("not due: %v, %v", j.NextAttemptAt, err)
	}
	if status, to, _ := post(t, w.url+"/jobs/j/cancel", nil); status != http.StatusSeeOther || to != "/jobs/j?did=cancel" {
		t.Errorf("cancel: %d to %q", status, to)
	}
	if status, _, _ := post(t, w.url+"/jobs/j/cancel", nil); status != http.StatusConflict {
		t.Errorf("cancelled twice: %d", status)
	}
}

func TestHostsTellFreedHeldAndTheLastFault(t *testing.T) {
	w := furnished(t)
	_, page := get(t, w.url+"/hosts")
	says(t, page, "2 hosts", "localhost", "(1)", "(3)", "build-2.example", "the path is not one that may be removed")
}

func TestAPreviewIsComparedWithWhatTheArchiveFound(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name   string
		change func(dir string)
		wants  []string
	}{
		{"steady", nil, []string{"would be removed.", "Nothing that decides had changed"}},
		{"moved-on", func(dir string) { w.write(dir+"/late.txt", "x") }, []string{"Changed since:", "the directory's content", "kept (dirty_worktree, untracked) at the attempt"}},
	} {
		task := w.task(c.name, nil)
		status, to, _ := post(t, w.url+"/preview", url.Values{"task": {task}})
		if status != http.StatusSeeOther {
			t.Fatalf("%s: %d", c.name, status)
		}
		_, page := get(t, w.url+to)
		says(t, page, "would be removed", "nothing in the directory would be lost")
		if c.change != nil {
			c.change(w.root + "/tasks/" + c.name)
		}
		w.archive(task)
		_, page = get(t, w.url+at("records", w.recordOf(task).ID))
		says(t, page, append(c.wants, "Previewed")...)
	}
	if status, _, _ := post(t, w.url+"/preview", url.Values{"task": {"t-none"}}); status != http.StatusNotFound {
		t.Errorf("no such task: %d", status)
	}
}

func TestAChangeFromElsewhereIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		if status, _, _ := post(t, w.url+"/stop", url.Values{"stop": {"on"}}, header...); status != http.StatusForbidden {
			t.Errorf("%v: %d", header, status)
		}
	}
	for _, path := range []string{"/stop?stop=on", "/profiles/p-alias/off", "/kept/judge", "/jobs/j/retry", "/jobs/j/cancel", "/logout"} {
		if status, _ := get(t, w.url+path); path != "/stop?stop=on" && status < 400 {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	if on, err := w.store.Desk().Stopped(t.Context()); on || err != nil {
		t.Errorf("stopped %v, %v", on, err)
	}
}

func TestEveryAnswerCarriesTheHeaders(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/", "/login", "/static/console.css", "/healthz", "/nowhere", "/static/none.css"} {
		response, err := client.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		for name, want := range map[string]string{"Content-Security-Policy": contentSecurity, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	if strings.Contains(contentSecurity, "unsafe") || !strings.Contains(contentSecurity, "frame-ancestors 'none'") {
		t.Error(contentSecurity)
	}
}

func TestAnAddressOthersReachNeedsAGuard(t *testing.T) {
	token, proxy := strings.Repeat("k", MinToken), []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	for _, c := range []struct {
		a      Access
		listen string
		fine   bool
	}{
		{Access{}, "127.0.0.1:1", true}, {Access{}, "[::1]:1", true}, {Access{}, "localhost:1", true},
		{Access{}, ":1", false}, {Access{}, "0.0.0.0:1", false}, {Access{}, "[::]:1", false}, {Access{}, "build.example:1", false}, {Access{}, "192.168.1.2:1", false},
		{Access{}, "127.0.0.1.evil.example:1", false}, {Access{}, "nonsense", false},
		{Access{Token: token}, "0.0.0.0:1", true}, {Access{Token: "short"}, "0.0.0.0:1", false}, {Access{Token: "short"}, "127.0.0.1:1", false},
		{Access{Header: "X-User"}, "0.0.0.0:1", false}, {Access{Header: "X-User", Proxies: proxy}, "0.0.0.0:1", true}, {Access{Proxies: proxy}, "0.0.0.0:1", false},
	} {
		if err := c.a.Check(c.listen); (err == nil) != c.fine {
			t.Errorf("%+v on %s: %v", c.a, c.listen, err)
		}
	}
}

func TestTheTokenOpensTheConsoleAndNothingElseDoes(t *testing.T) {
	token := "correct-horse-battery"
	clock := time.Now()
	w := newWorld(t)
	console := &Console{Store: w.store.Desk(), Access: Access{Token: token}, Now: func() time.Time { return clock }}
	server := httptest.NewServer(console.Handler())
	t.Cleanup(server.Close)
	status := func(header ...string) int {
		request, err := http.NewRequest(http.MethodGet, server.URL+"/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if got := status(); got != http.StatusSeeOther {
		t.Errorf("without: %d", got)
	}
	if got := status("Authorization", "Bearer "+token); got != http.StatusOK {
		t.Errorf("bearer: %d", got)
	}
	if got := status("Authorization", "Bearer "+token+"x"); got != http.StatusForbidden {
		t.Errorf("wrong bearer: %d", got)
	}
	if got := status("X-User", "root"); got != http.StatusSeeOther {
		t.Errorf("a header nobody trusts: %d", got)
	}
	if got, _, _ := post(t, server.URL+"/stop", url.Values{"stop": {"on"}}); got != http.StatusForbidden {
		t.Errorf("a change without: %d", got)
	}
	response, err := client.PostForm(server.URL+"/login", url.Values{"token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if len(response.Cookies()) != 1 {
		t.Fatalf("cookies: %v", response.Cookies())
	}
	cookie := response.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, token) {
		t.Errorf("the cookie is %v", cookie)
	}
	pass := cookieName + "=" + cookie.Value
	if got := status("Cookie", pass); got != http.StatusOK {
		t.Errorf("with the cookie: %d", got)
	}
	_, mac, _ := strings.Cut(cookie.Value, ".")
	if got := status("Cookie", fmt.Sprintf("%s=%d.%s", cookieName, clock.Add(99*time.Hour).Unix(), mac)); got != http.StatusSeeOther {
		t.Errorf("a cookie made longer: %d", got)
	}
	clock = clock.Add(cookieLife + time.Second)
	if got := status("Cookie", pass); got != http.StatusSeeOther {
		t.Errorf("an old cookie: %d", got)
	}
	for i := range 12 {
		got, _, page := post(t, server.URL+"/login", url.Values{"token": {fmt.Sprint("guess ", i)}})
		want := http.StatusForbidden
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		if got != want || strings.Contains(page, "guess") {
			t.Errorf("guess %d: %d", i, got)
		}
	}
	if strings.Contains(w.log.String(), "guess") || strings.Contains(w.log.String(), token) {
		t.Error("a token is in the log")
	}
}

func TestAProxysHeaderCountsOnlyFromTheProxy(t *testing.T) {
	for _, c := range []struct {
		from, user string
		in         bool
	}{{"10.0.0.1:99", "ann", true}, {"10.0.0.1:99", " ", false}, {"10.0.0.2:99", "ann", false}, {"[::ffff:10.0.0.1]:99", "ann", true}} {
		g := &guard{Access: Access{Header: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}, now: time.Now}
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		r.RemoteAddr = c.from
		r.Header.Set("X-User", c.user)
		if _, in := g.who(r); in != c.in {
			t.Errorf("%+v: %v", c, in)
		}
	}
}

func TestAPageElsewhereCannotLendItsName(t *testing.T) {
	w := newWorld(t)
	request, err := http.NewRequest(http.MethodGet, w.url+"/kept", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "rebound.example"
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", response.StatusCode)
	}
}

func TestACSVHoldsNoFormula(t *testing.T) {
	for _, evil := range []string{"=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "|calc", "%0a", "＝1", "'=1"} {
		if got := cell(evil); !strings.HasPrefix(got, "'") && !strings.HasPrefix(got, `\`) {
			t.Errorf("%q becomes %q", evil, got)
		}
	}
	w := newWorld(t)
	const evil = "=cmd|' /C calc'!A1"
	snapshot := `{"task_environment":{"id":"e","task_id":"` + evil + `"},"ssh_task_dirs":[{"host":"+1","workdir_root":"/srv","task_dir":"@SUM(A1)","enabled":true}]}`
	w.store.PutTask(memstore.Task{ID: evil, ArchivedAt: time.Now()})
	w.store.PutEnvironment(memstore.Environment{ID: "e", TaskID: evil, ExecutorType: "ssh"})
	w.store.PutJob(ports.Job{ID: "-2+3", OperationID: "o", TaskID: evil, Trigger: core.Archive, State: ports.Pending, Snapshot: []byte(snapshot), CreatedAt: time.Now()})
	w.work()
	_, body := get(t, w.url+"/kept.csv")
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, want := range map[int]string{0: "'+1", 1: "'@SUM(A1)", 13: "'" + evil, 14: "'-2+3"} {
		if rows[1][i] != want {
			t.Errorf("column %s is %q", rows[0][i], rows[1][i])
		}
	}
}

func TestShownTextHasNoCharacterThatIsNotSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("<>&\"'\x00\x1b\u202e\u2066\u200b\u00ad\ufeff\u3164\u115f\u2800\ufe0f\U000e0041\n\r\u2028")))).Draw(t, "s")
		if rapid.Bool().Draw(t, "broken") {
			s += "\xff\xc0"
		}
		seen := html.UnescapeString(tags.ReplaceAllString(string(shown(s)), ""))
		if seen != plain(s) {
			t.Fatalf("%q is shown as %q, not as %q", s, seen, plain(s))
		}
		for _, r := range seen {
			if !unicode.IsPrint(r) || unseen(r) {
				t.Fatalf("%q shows %U", s, r)
			}
		}
	})
}

// A remote's address may carry a token; it is neither shown nor recorded.
func TestATokenInARemotesAddressIsNowhere(t *testing.T) {
	w := newWorld(t)
	w.archive(w.task("token", func(dir string) {
		w.git(dir, "remote", "set-url", "origin", "https://bot:ghp_s3cret@example.org/a.git")
		w.git(dir, "commit", "-q", "--allow-empty", "-m", "only here")
	}))
	filed := w.recordOf("t-token")
	_, record := get(t, w.url+at("records", filed.ID, "json"))
	_, told := get(t, w.url+at("records", filed.ID))
	_, kept := get(t, w.url+"/kept")
	for what, text := range map[string]string{"the record": record, "its page": told, "kept": kept} {
		for _, form := range []string{"ghp_s3cret", hex.EncodeToString([]byte("ghp_s3cret"))} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds the token", what)
			}
		}
	}
	says(t, told, "unpushed_commits / branch")
}

func TestCredentialsOfAURLAreStruckOut(t *testing.T) {
	for given, want := range map[string]string{
		"https://x-access-token:ghp_secret@github.com/a/b":    "https://***@github.com/a/b",
		"https://ghp_secret@github.com/a":                     "https://***@github.com/a",
		"to HTTPS://u:p%40ss@h/ and http://a:b@c/":            "to HTTPS://***@h/ and http://***@c/",
		"ssh://git:pw@h/x ssh://git@h/x git@h:x https://h/@x": "ssh://git:***@h/x ssh://git@h/x git@h:x https://h/@x",
		"postgres://reclaim:pw@db/reclaim":                    "postgres://reclaim:***@db/reclaim",
		"https://u:p@ss@h/x":                                  "https://***@h/x",
	} {
		if got := plain(given); got != want {
			t.Errorf("%q is shown as %q", given, got)
		}
	}
}
