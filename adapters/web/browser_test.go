package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe.min.js
var axe string

// browser is a tab of a real Chromium that nothing outside this machine can be
// reached from.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is needed: apt-get install chromium")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, endProcess := chromedp.NewExecAllocator(t.Context(), options...)
	tab, endTab := chromedp.NewContext(allocator)
	t.Cleanup(func() { endTab(); endProcess() })
	if _, err := chromedp.Run(tab, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	bounded, endTime := context.WithTimeout(tab, 5*time.Minute)
	t.Cleanup(endTime)
	return &browser{t, bounded}
}

func run[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *browser) open(address string) {
	b.t.Helper()
	run(b, chromedp.Navigate(address))
	run(b, chromedp.WaitVisible("main"))
}

func (b *browser) click(selector string) {
	b.t.Helper()
	run(b, chromedp.WaitVisible(selector))
	run(b, chromedp.Click(selector))
}

// see waits until the page says all of it.
func (b *browser) see(wants ...string) {
	b.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for _, want := range wants {
		for said := ""; !strings.Contains(said, want); {
			if time.Now().After(deadline) {
				b.t.Fatalf("the page never says %q; it says: %s", want, said)
			}
			// While a page is being left there is nothing to evaluate in.
			if now, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`)); err == nil {
				said = strings.Join(strings.Fields(now), " ")
			} else if b.ctx.Err() != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func (b *browser) wide(width, height int64) {
	b.t.Helper()
	run(b, chromedp.EmulateViewport(width, height))
}

func (b *browser) scheme(value string) {
	b.t.Helper()
	run(b, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
		return err
	}))
}

func (b *browser) withoutScripts() {
	b.t.Helper()
	run(b, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

func TestInABrowserTheSwitchIsTurnedOn(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		w, b := newWorld(t), newBrowser(t)
		if !scripts {
			b.withoutScripts()
		}
		b.open(w.url + "/profiles")
		b.click(`form[action="/profiles/p-alias/on"] button[role=switch]`)
		b.see("Turn it on for By alias?", "on gpu-box (alias in the SSH configuration), below ~/.kandev/tasks/", "Removal is permanent.", "archived or deleted",
			"Un-archiving clones again", "Existing directories are untouched", "It is off by default", "I have read that removals below ~/.kandev/tasks/ on gpu-box are permanent.")
		b.click(`main form button.danger`) // the box is not ticked: the browser holds it back
		b.see("Turn it on for By alias?")
		b.click(`#understood`)
		b.click(`main form button.danger`)
		b.see("The switch is on. It counts for directories launched from now on.")
		if got := run(b, chromedp.OuterHTML(`form[action="/profiles/p-alias/off"] button`)); !strings.Contains(got, `aria-checked="true"`) {
			t.Error(got)
		}
	}
}

func TestInABrowserKeptLeadsToRecordReplayAndJudgingAgain(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		w, b := furnished(t), newBrowser(t)
		if !scripts {
			b.withoutScripts()
		}
		b.open(w.url + "/kept")
		b.see("4 of 4 directories", "dirty_worktree / untracked", "unpushed_commits / branch", "What to do")
		filed := w.recordOf("t-one-commit")
		b.click(`a[href="` + at("records", filed.ID) + `"]`)
		b.see("Question by question", "This decided it", "Would anything in the directory be lost?")
		b.click(`.actions button`)
		b.see("Replayed: the same outcome. Decided again from the record alone: kept.")
		b.open(w.url + "/kept")
		b.click(`form:has(input[value="` + filed.Record.Snapshot.JobID + `"]) button`)
		b.see("A new job judges the directory again.", "for task t-one-commit")
		w.work()
		b.open(w.url + "/jobs")
		b.see("6 jobs, newest first")
	}
}

func TestInABrowserAllRemovalsAreStopped(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		w, b := newWorld(t), newBrowser(t)
		if !scripts {
			b.withoutScripts()
		}
		b.open(w.url + "/jobs")
		b.click(`#stop-all`)
		b.see("No removal begins any more until this is turned off.", "All removals are stopped: nothing begins until this is turned off.")
		w.archive(w.task("pushed", nil))
		if r := w.recordOf("t-pushed").Record.Result; r.Fault != "policy_held" {
			t.Errorf("while stopped: %s %s", r.Outcome, r.Fault)
		}
		if _, err := os.Stat(filepath.Join(w.root, "tasks", "pushed", "app.go")); err != nil {
			t.Error(err)
		}
		b.open(w.url + "/stop")
		b.click(`main form button`)
		b.see("Removals may begin again.")
		if on, err := w.store.Desk().Stopped(t.Context()); on || err != nil {
			t.Errorf("stopped %v, %v", on, err)
		}
	}
}

func TestInABrowserAPreviewIsMade(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	task := w.task("soon", nil)
	b.open(w.url + "/preview")
	run(b, chromedp.SendKeys("#task", task))
	b.click("main form button")
	b.see("would be removed", "nothing in the directory would be lost")
}

func TestInABrowserTheFilterWorksInPlace(t *testing.T) {
	w, b := furnished(t), newBrowser(t)
	b.open(w.url + "/kept")
	run(b, chromedp.Evaluate[bool](`(window.stayed = true)`))
	run(b, chromedp.Evaluate[bool](`(() => { const s = document.querySelector("#reason"); s.value = "unpushed_commits"; s.dispatchEvent(new Event("change", {bubbles: true})); return true })()`))
	b.see("1 of 4 directories")
	if !run(b, chromedp.Evaluate[bool](`window.stayed === true && location.search === "?reason=unpushed_commits"`)) {
		t.Error("the page was loaded anew, or its address does not tell the filter")
	}
}

func TestInABrowserEveryPageIsAccessibleInertAndFits(t *testing.T) {
	w, b := furnished(t), newBrowser(t)
	task := w.task("soon", nil)
	if status, _, _ := post(t, w.url+"/preview", map[string][]string{"task": {task}}); status != http.StatusSeeOther {
		t.Fatal(status)
	}
	shots := os.Getenv("RECLAIM_SCREENSHOTS")
	for _, path := range append(w.pagesOf(), at("preview", task)) {
		b.wide(1200, 900)
		b.scheme("light")
		b.open(w.url + path)
		if got := run(b, chromedp.Evaluate[string](`document.title`)); strings.Contains(got, "owned") {
			t.Errorf("%s: a file name ran", path)
		}
		if foreign := run(b, chromedp.Evaluate[[]string](`performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith(location.origin + "/static/"))`)); len(foreign) > 0 {
			t.Errorf("%s: loads %v", path, foreign)
		}
		run(b, chromedp.Evaluate[bool](axe+`;true`))
		for _, look := range []struct {
			name   string
			width  int64
			scheme string
			rules  string
		}{{"light", 1200, "light", "{}"}, {"dark", 1200, "dark", `{runOnly: ["color-contrast"]}`}, {"narrow", 375, "light", "{}"}, {"narrow-dark", 375, "dark", `{runOnly: ["color-contrast"]}`}} {
			where := path + ", " + look.name
			b.wide(look.width, 900)
			b.scheme(look.scheme)
			if shots != "" {
				name := strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(path) + "-" + look.name + ".png"
				if err := os.WriteFile(filepath.Join(shots, name), run(b, chromedp.FullScreenshot(100)), 0o644); err != nil {
					t.Fatal(err)
				}
				b.wide(look.width, 900)
			}
			if over := run(b, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); over > 0 {
				t.Errorf("%s: %d pixels too wide", where, over)
			}
			for _, bad := range b.violations(look.rules) {
				t.Errorf("%s: %s", where, bad)
			}
		}
		run(b, chromedp.Evaluate[bool](`(document.querySelectorAll("details").forEach(d => { d.open = true }), true)`))
		if over := run(b, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); over > 0 {
			t.Errorf("%s, narrow and all open: %d pixels too wide", path, over)
		}
	}
}

// violations is what axe has to say about the page as it stands, apart from
// what it calls minor. It must have looked at something.
func (b *browser) violations(options string) (bad []string) {
	b.t.Helper()
	report := run(b, chromedp.Evaluate[string](`axe.run(document, `+options+`).then(r => JSON.stringify({
		looked: r.passes.length + r.violations.length,
		bad: r.violations.filter(v => v.impact !== "minor").map(v => v.id + " (" + v.impact + "): " + v.nodes.map(n => n.html.slice(0, 160)).slice(0, 3).join(" | "))}))`, chromedp.EvalAwaitPromise))
	var found struct {
		Looked int
		Bad    []string
	}
	if err := json.Unmarshal([]byte(report), &found); err != nil {
		b.t.Fatal(err)
	}
	if found.Looked == 0 {
		b.t.Error("axe looked at nothing")
	}
	return found.Bad
}

func TestAxeSeesWhatIsWrong(t *testing.T) {
	b := newBrowser(t)
	run(b, chromedp.Navigate(`data:text/html,<html><body><main style="color:%23999;background:%23aaa">faint<input><img src="x"></main></body></html>`))
	run(b, chromedp.Evaluate[bool](axe+`;true`))
	for _, options := range []string{"{}", `{runOnly: ["color-contrast"]}`} {
		if len(b.violations(options)) == 0 {
			t.Errorf("%s: faint text and a field without a label pass", options)
		}
	}
}
