package core

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// judges holds the recorded answers of scenarios against what a requirement's row
// says: a reason, and a cause where it names one; "safe" is none.
func judges(t *testing.T, want map[string]string) {
	t.Helper()
	for id, words := range want {
		e := labInventory.Judge(answer(t, id))
		got := "safe"
		if !e.Safe() {
			got = ""
			for _, f := range e.Findings {
				got += string(f.Reason) + " " + string(f.Cause) + ";"
			}
		}
		if !strings.Contains(got, words) {
			t.Errorf("%s is %q, want %q", id, got, words)
		}
	}
}

func TestAC_002_2_ContentOutsideKandevThatNoCommitHasKeeps(t *testing.T) {
	judges(t, map[string]string{"staged": "dirty_worktree modified", "staged-delete": "dirty_worktree", "untracked-deep": "dirty_worktree untracked",
		"ignored-file": "dirty_worktree ignored", "multi-child-dirty": "dirty_worktree modified", "skip-worktree": "dirty_worktree hidden_edit", "clean-pushed": "safe"})
}

func TestAC_002_3_ACommitThatOnlyALocalRefHoldsKeeps(t *testing.T) {
	judges(t, map[string]string{"detached-unpushed": "unpushed_commits detached", "tag-light-unpushed": "unpushed_commits local_refs", "notes": "unpushed_commits local_refs",
		"refs-wip": "unpushed_commits local_refs", "submodule-branch": "unpushed_commits submodule", "wt-target-branch-unpushed": "unpushed_commits branch",
		"feature-pushed": "safe", "detached-pushed": "safe"})
}

func TestAC_002_4_AStashAnywhereInsideKeeps(t *testing.T) {
	judges(t, map[string]string{"stash-no-reflog": "stash_present", "multi-child-stash": "stash_present", "submodule-stash": "stash_present",
		"stash-in-child-noreflog": "stash_present", "merge-autostash": "stash_present", "wt-target-cache-stash": "safe"})
}

func TestAC_D9_OnlyTheRootCheckoutsOwnKandevIsExcused(t *testing.T) {
	judges(t, map[string]string{"kandev-untracked": "safe", "kandev-subdir": "dirty_worktree ignored", "kandev-of-child": "dirty_worktree", "kandev-lookalike": "dirty_worktree",
		"kandev-repo-unpushed": "unpushed_commits", "kandev-symlink": "dirty_worktree", "kandev-tracked-modified": "dirty_worktree modified", "unreadable-in-kandev": "probe_failed unreadable"})
}

func TestAC_D10_AChildIsExcusedExactlyWhereItWasItselfJudged(t *testing.T) {
	judges(t, map[string]string{"multi-untracked-child": "safe", "multi-two-children": "safe", "twenty-children": "safe", "multi-child-dirty": "dirty_worktree", "nested-empty-git-dir": "dirty_worktree"})
}

func TestAC_D12_AnEnclosingRepositoryNeverSpeaksForTheDirectory(t *testing.T) {
	judges(t, map[string]string{"parent-repo": "not_a_checkout enclosing_repository", "parent-repo-clean": "not_a_checkout enclosing_repository", "core-worktree-parent": "not_a_checkout"})
}

func TestAC_D13_OnlyARemoteThatLeadsOutsideProvesAPush(t *testing.T) {
	judges(t, map[string]string{"remote-inside": "unpushed_commits branch", "remote-sibling-task": "unpushed_commits branch", "remote-loopback-v4": "unpushed_commits remote_inside",
		"remote-loopback-v6": "unpushed_commits", "remote-localhost": "unpushed_commits", "remote-ext": "unpushed_commits", "remote-insteadof-inside": "unpushed_commits",
		"remote-borrows-target": "unpushed_commits", "remote-path-gone": "unpushed_commits", "stale-tracking-no-remote": "unpushed_commits", "remote-insteadof-outside": "safe", "remote-https-clean": "safe"})
}

func TestAC_D18_TipsLeftByResetOrCheckoutAreWorkAndRewrittenOnesAreNot(t *testing.T) {
	judges(t, map[string]string{"reset-hard-lost": "unpushed_commits abandoned", "reflog-detached-left": "unpushed_commits abandoned", "reflog-branch-deleted": "unpushed_commits abandoned",
		"amended-pushed": "safe", "rebased-pushed": "safe", "squashed-pushed": "safe", "reset-hard-pushed": "safe"})
}

func TestAC_D20_LivenessIsWhatCanBeSeen(t *testing.T) {
	judges(t, map[string]string{"live-cwd": "shared live_process", "kandev-session-alive": "shared live_process", "kandev-session-dead": "safe", "kandev-session-unreadable": "probe_failed unreadable"})
	unseen := Said{Body: strings.Replace(answer(t, "clean-pushed").Body, "\nlive 0 0 0 0\n", "\nlive unknown 0 0 0\n", 1)}
	lines := strings.Split(strings.TrimSuffix(unseen.Body, "\n"), "\n")
	sealedAgain := sealed(lines[:len(lines)-2])
	if e := labInventory.Judge(sealedAgain); !e.Safe() || len(e.Notes) == 0 {
		t.Errorf("a host that shows no processes: %v, told %v", e.Findings, e.Notes)
	}
}

func TestAC_003_1_WithoutAnEstablishedOwnerTheDirectoryIsSharedAndAC_003_3_NoHostIsAsked(t *testing.T) {
	for name, o := range map[string]Ownership{
		"a storage error":            {Error: "timeout"},
		"no environment":             {TaskTerminal: true, OptInNow: On},
		"another task's environment": {TaskTerminal: true, OptInNow: On, Environment: &Environment{ID: "env-1", TaskID: "t-2"}},
	} {
		step, transcript := upTo(t, lab(), o)
		if word(step) != "skipped shared owner_unknown" {
			t.Errorf("%s: %s", name, word(step))
		}
		for _, e := range transcript {
			if _, host := e.Query.(HostQuery); host {
				t.Errorf("%s: the host was asked %s", name, QueryName(e.Query))
			}
		}
	}
}

func TestAC_003_2_AnotherLiveTaskOnTheDirectoryMakesItShared(t *testing.T) {
	o := mine()
	o.Claims = []Claim{{TaskID: "t-2", Host: lab().Target.Host, Port: lab().Target.Port, TaskDir: lab().Target.TaskDir, OptedIn: true}}
	if step, _ := upTo(t, lab(), o); word(step) != "skipped shared claim" {
		t.Error(word(step))
	}
}

func TestAC_D1_SevenReasonsAndTheHostsWordsOnTheWire(t *testing.T) {
	want := []Reason{"disabled", "not_a_checkout", "probe_failed", "shared", "dirty_worktree", "stash_present", "unpushed_commits"}
	if !slices.Equal(Reasons(), want) {
		t.Errorf("%v", Reasons())
	}
	s, err := ParseJobSnapshot([]byte(`{"ssh_task_dirs":[{"host":"h","task_dir":"/r/tasks/x","enabled":true}]}`))
	if err != nil || len(s.Targets()) != 1 || !s.Targets()[0].Target.Enabled {
		t.Fatal(err)
	}
	target := s.Targets()[0].Target
	for _, row := range []struct {
		outcome             Outcome
		word, reason, fault string
	}{
		{Removed{Detail: "d"}, "removed", "", ""},
		{skip(Finding{Reason: DirtyWorktree, Cause: Untracked, Detail: "d"}), "skipped", "dirty_worktree", ""},
		{fail(Unreachable, "d"), "failed", "", "unreachable"},
	} {
		after, err := s.WithOutcome(target, row.outcome)
		if err != nil {
			t.Fatal(err)
		}
		var wire struct {
			Dirs []struct {
				TaskDir    string `json:"task_dir"`
				Enabled    bool   `json:"enabled"`
				Outcome    string `json:"outcome"`
				SkipReason string `json:"skip_reason"`
				Reclaim    struct {
					Fault string `json:"fault"`
				} `json:"reclaim"`
			} `json:"ssh_task_dirs"`
		}
		if err := json.Unmarshal(after.Bytes(), &wire); err != nil || len(wire.Dirs) != 1 {
			t.Fatal(err)
		}
		if got := wire.Dirs[0]; got.TaskDir != "/r/tasks/x" || !got.Enabled || got.Outcome != row.word || got.SkipReason != row.reason || got.Reclaim.Fault != row.fault {
			t.Errorf("%s", after.Bytes())
		}
	}
}

func TestAC_D3_WhatIsLostFailsAndWhatAnswersBadlyKeepsUntilARemovalWasSent(t *testing.T) {
	safe := Heard{Reply: answer(t, "clean-pushed")}
	for name, row := range map[string]struct {
		reply         Reply
		before, after string
	}{
		"lost":          {Unclear{Doubt: ConnectionLost}, "failed lost", "failed lost"},
		"the limit":     {Unclear{Doubt: LimitReached}, "skipped probe_failed probe_timeout", "failed half_removed"},
		"unframed":      {Unclear{Doubt: Unframed}, "skipped probe_failed unframed", "failed half_removed"},
		"flooded":       {Unclear{Doubt: Flooded}, "skipped probe_failed probe_error", "failed half_removed"},
		"not zero":      {Said{Exit: 1}, "skipped probe_failed probe_error", "failed half_removed"},
		"empty":         {Said{}, "skipped probe_failed probe_error", "failed half_removed"},
		"never started": {NeverRan{Fault: Unreachable}, "failed unreachable", "failed unreachable"},
	} {
		if step, _ := upTo(t, lab(), mine(), allowed(), greets("directory", "none"), Heard{Reply: row.reply}); word(step) != row.before {
			t.Errorf("%s while looking: %s, want %s", name, word(step), row.before)
		}
		if step, _ := upTo(t, lab(), mine(), allowed(), greets("directory", "none"), safe, mine(), allowed(), Begun{Ending: BeginRecorded}, Heard{Reply: row.reply}); word(step) != row.after {
			t.Errorf("%s after the removal was sent: %s, want %s", name, word(step), row.after)
		}
	}
}

func TestAC_D26_EveryScriptHasItsLimit(t *testing.T) {
	for q, want := range map[HostQuery]time.Duration{Greet{}: 15 * time.Second, Settle{}: 10 * time.Minute} {
		if got := q.Script().Limit; got != want {
			t.Errorf("%s may take %s, want %s", QueryName(q), got, want)
		}
	}
	if got := (Inventory{}).Script().Limit; got != 2*time.Minute {
		t.Errorf("the inventory may take %s", got)
	}
	if got := (Remove{}).Script().Limit; got != 10*time.Minute {
		t.Errorf("the removal may take %s", got)
	}
	if DefaultWindow != 15*60 {
		t.Errorf("an attempt may take %d seconds", DefaultWindow)
	}
}
