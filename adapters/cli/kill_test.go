package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kandev/reclaim/core"
)

func TestAnAttemptKilledAnywhereIsFinishedByTheNext(t *testing.T) {
	questions := []string{"owner", "rule", "greet", "inventory", "owner", "rule", "begin", "remove"}
	for _, keeps := range []string{"beside the case", "in a record"} {
		kill := map[string][]string{
			"before the result is told": {"RECLAIM_TEST_KILL_AT_RESULT=before"},
			"after the result was told": {"RECLAIM_TEST_KILL_AT_RESULT=after"},
		}
		for i, q := range questions {
			kill[fmt.Sprintf("at question %d, %s", i+1, q)] = []string{fmt.Sprintf("RECLAIM_TEST_KILL_AT_LINE=%d", i+1)}
		}
		for where, env := range kill {
			t.Run(keeps+"/"+where, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t)
				args := []string{"attempt", m.caseFile, "--local", "--json", "--verbose"}
				if keeps == "in a record" {
					args = append(args, "--record", filepath.Join(m.home, "record.json"))
				}
				if killed := m.reclaim(t, env, args...); killed.status != -1 {
					t.Fatalf("it was not killed: exit %d, stderr %s", killed.status, killed.stderr)
				}
				if r := m.finish(t, args...); r.Outcome != core.OutcomeRemoved {
					t.Errorf("the next attempt came to %s: %s", headline(r), r.Detail)
				}
				m.gone(t)
				if _, err := os.Stat(m.caseFile + ".begun"); !os.IsNotExist(err) {
					t.Errorf("the intent is still there: %v", err)
				}
			})
		}
	}
}

// A removal is interrupted itself: an rm that comes first on PATH removes one
// thing and then kills the script, its own shell, or nothing but the command.
func TestARemovalKilledInTheMiddleIsFinishedByTheNext(t *testing.T) {
	victims := map[string]string{
		"the script and its shell":              `kill -9 0`,
		"the command, and the script goes on":   `kill -9 $COMMAND`,
		"the command, the script and its shell": `kill -9 $COMMAND; kill -9 0`,
	}
	for victim, kills := range victims {
		for _, keeps := range []string{"beside the case", "in a record"} {
			t.Run(victim+"/"+keeps, func(t *testing.T) { midway(t, kills, keeps) })
		}
	}
}

func midway(t *testing.T, kills, keeps string) {
	m := newMachine(t)
	bin := filepath.Join(m.home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	rm, err := exec.LookPath("rm")
	if err != nil {
		t.Fatal(err)
	}
	flag := filepath.Join(m.home, "interrupt")
	write(t, flag, "")
	script := fmt.Sprintf(`#!/bin/sh
for last; do :; done
if [ -e %[1]s ] && [ -d "$last/.git" ]; then
  %[2]s %[1]s
  %[2]s -rf "$last/.git"
  COMMAND=$(cat %[1]s.pid)
  %[3]s
fi
exec %[2]s "$@"
`, flag, rm, kills)
	if err := os.WriteFile(filepath.Join(bin, "rm"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	path := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "RECLAIM_TEST_PID_IN=" + flag + ".pid"}
	args := []string{"attempt", m.caseFile, "--local", "--json"}
	if keeps == "in a record" {
		args = append(args, "--record", filepath.Join(m.home, "record.json"))
	}
	first := m.reclaim(t, path, args...)
	if _, err := os.Stat(flag); !os.IsNotExist(err) {
		t.Fatalf("nothing was interrupted: exit %d, %s %s", first.status, first.stdout, first.stderr)
	}
	if first.status == exitDone {
		t.Errorf("the interrupted removal was called done: %s", first.stdout)
	}
	if r := m.finish(t, args...); r.Outcome != core.OutcomeRemoved {
		t.Errorf("the next attempt came to %s: %s", headline(r), r.Detail)
	}
	m.gone(t)
}

func TestARecordThatAloneKnowsOfABeginIsNeverOverwritten(t *testing.T) {
	m := newMachine(t)
	record := filepath.Join(m.home, "record.json")
	args := []string{"attempt", m.caseFile, "--local", "--json", "--record", record}
	if killed := m.reclaim(t, []string{"RECLAIM_TEST_KILL_AT_LINE=8"}, append(args, "--verbose")...); killed.status != -1 {
		t.Fatalf("%+v", killed)
	}
	before, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	m.writeCase(t, func(c map[string]any) { c["job_id"] = "job-8" })
	if got := m.reclaim(t, nil, args...); got.status != exitUsage || !strings.Contains(got.stderr, "job-7") {
		t.Errorf("another job's attempt: %+v", got)
	}
	if after, err := os.ReadFile(record); err != nil || string(after) != string(before) {
		t.Errorf("the record was overwritten: %v", err)
	}
	m.writeCase(t, func(map[string]any) {})
	// A look at the case keeps what the record knows.
	if got := m.reclaim(t, nil, append(args, "--dry-run")...); got.result(t).Outcome != core.OutcomeReclaimable {
		t.Errorf("looked at: %+v", got)
	}
	if looked, err := readRecord(record); err != nil || !begunIn(looked) {
		t.Errorf("the look has forgotten the begin: %v", err)
	}
	if r := m.reclaim(t, nil, args...).result(t); r.Outcome != core.OutcomeRemoved {
		t.Errorf("finished: %s", headline(r))
	}
	// Now nothing hangs on it, and another case may take its place.
	m.writeCase(t, func(c map[string]any) { c["job_id"] = "job-8" })
	if r := m.reclaim(t, nil, args...).result(t); r.JobID != "job-8" || r.Cause != core.AlreadyAbsent {
		t.Errorf("another case afterwards: %s", headline(r))
	}
}
