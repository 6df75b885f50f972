package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
)

// hostile is what a file name on a host may hold: escape sequences, controls of
// both sets, text that reorders what follows, a byte that is no UTF-8.
const hostile = "a\x1b[2J\x07\u009b31m\u202egpj.exe\r\n\xff\ufeff\u2028z"

func steersTerminal(text string) bool {
	return strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), unprintable) || !utf8.ValidString(text)
}

func hostileResult() core.Result {
	return core.Result{TaskID: hostile, JobID: hostile, Outcome: core.OutcomeSkipped, Reason: core.DirtyWorktree, Cause: core.Untracked, Detail: hostile,
		Cure:      []core.Remedy{{What: hostile, Run: "git -C " + hostile}},
		Others:    []core.Finding{{Reason: core.Shared, Cause: core.Claimed, Detail: hostile}},
		Target:    core.Target{Host: hostile, User: hostile, TaskDir: hostile},
		Checkouts: []core.Checkout{{Path: hostile, Kind: hostile, Verdict: hostile, Reason: core.DirtyWorktree, Cause: core.Cause(hostile)}},
		Record:    hostile}
}

func TestWhatAHostSaysNeverSteersTheTerminal(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out, errs bytes.Buffer
		terminal := newTerminal(Invocation{Stdout: &out, Stderr: &errs})
		r := hostileResult()
		if err := terminal.result(r, asJSON); err != nil {
			t.Fatal(err)
		}
		terminal.say("%s", hostile)
		if text := out.String() + errs.String(); steersTerminal(text) {
			t.Errorf("json=%v: %q", asJSON, text)
		}
		if asJSON {
			var back core.Result
			if err := json.Unmarshal(out.Bytes(), &back); err != nil {
				t.Fatal(err)
			}
			// A byte that is no UTF-8 cannot stand in JSON; everything else is whole.
			if want := strings.ReplaceAll(hostile, "\xff", "\ufffd"); back.Detail != want {
				t.Errorf("the document says %q, want %q", back.Detail, want)
			}
		}
	}
}

func TestTablesFitEightyColumns(t *testing.T) {
	var out bytes.Buffer
	terminal := newTerminal(Invocation{Stdout: &out})
	long := strings.Repeat("very/long/", 40)
	terminal.table([]string{"checkout", "kind", "verdict", "why"}, [][]string{{".", "primary", "safe", ""}, {long, "linked_worktree", "kept", "unpushed_commits (abandoned)"}}, 0, nil)
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(lines[2], "unpushed_commits (abandoned)") || !strings.Contains(lines[2], "…") {
		t.Errorf("the wrong column gave way: %s", lines[2])
	}
}

// Whatever is long, and however wide its characters are, a line has at most 80
// columns and what is in a column stands below its header.
func TestATableFitsWhateverIsLong(t *testing.T) {
	for name, cell := range map[string]string{"latin": strings.Repeat("long-", 30), "wide": strings.Repeat("長い名前", 20), "combining": strings.Repeat("e\u0301", 90)} {
		var out bytes.Buffer
		newTerminal(Invocation{Stdout: &out}).table([]string{"a", "b", "c", "d"}, [][]string{{cell, cell, cell, "x"}, {"1", "2", "3", "x"}}, 1, nil)
		for _, line := range strings.Split(strings.TrimRight(out.String(), "\n"), "\n") {
			if n := columns(line); n > width {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
			if !utf8.ValidString(line) {
				t.Errorf("%s: a character was cut: %q", name, line)
			}
		}
		lines := strings.Split(out.String(), "\n")
		if at := columns(lines[1][:strings.LastIndex(lines[1], "x")]); at != columns(lines[2][:strings.LastIndex(lines[2], "x")]) {
			t.Errorf("%s: the last column is at %d and at %d", name, at, columns(lines[2])-1)
		}
	}
}

func TestTheKindsOfBuildOutputFitEightyColumnsOfHelp(t *testing.T) {
	for _, line := range strings.Split(profileSetCommand{}.Help(), "\n") {
		if len(line) > width-2 { // the parser moves such a block by two
			t.Errorf("%d: %s", len(line), line)
		}
	}
}

func TestColourIsForTerminalsThatWantIt(t *testing.T) {
	var out bytes.Buffer
	terminal := newTerminal(Invocation{Stdout: &out})
	if terminal.result(hostileResult(), false); strings.Contains(out.String(), "\x1b") {
		t.Errorf("a buffer got colour: %q", out.String())
	}
	terminal.colour = true
	if painted := terminal.paint(good, "removed"); painted != "\x1b[32mremoved\x1b[0m" {
		t.Errorf("%q", painted)
	}
}

func TestLinesAreBrokenAtSpacesAndWordsStayWhole(t *testing.T) {
	got := wrap("one two /a/path/that/is/too/long/for/it three", 10)
	if diff := cmp.Diff([]string{"one two", "/a/path/that/is/too/long/for/it", "three"}, got); diff != "" {
		t.Error(diff)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What could not be told was not done.
func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"policy", "test"}} {
		var stderr bytes.Buffer
		if status := Run(t.Context(), Invocation{Args: args, Stdout: full{}, Stderr: &stderr}); status != exitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%q: exit %d, %s", args, status, &stderr)
		}
	}
}
