package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What each word comes to is written down here, not asked of the judge.
func TestEveryWordAtTheEndOfARemovalHasItsOutcome(t *testing.T) {
	q := recordedRemove
	claim := "=remove,4711,1,build1,1.1,1700000000,2,job-9"
	for _, row := range []struct{ how, what, want, says string }{
		{"late", "~", "failed remove_rejected", "after the time it was allowed"},
		{"no_clock", "~", "failed remove_rejected", "clock"},
		{"tasks_symlink", "~", "skipped not_a_checkout tasks_is_symlink", "symbolic link"},
		{"tasks_absent", "~", "skipped probe_failed tasks_missing", "gone"},
		{"tasks_other", "~", "skipped probe_failed unreadable", "cannot be entered"},
		{"tasks_unreadable", "~", "skipped probe_failed unreadable", "cannot be entered"},
		{"tasks_directory", "~", "skipped probe_failed unreadable", "cannot be entered"},
		{"target_absent", "~", "failed busy", "went away"},
		{"target_symlink", "~", "skipped not_a_checkout target_is_symlink", "symbolic link"},
		{"target_other", "~", "skipped not_a_checkout no_repository", "no longer a directory"},
		{"target_unreadable", "~", "skipped probe_failed unreadable", "no longer be seen"},
		{"replaced", "~", "skipped probe_failed changed", "another directory"},
		{"changed", "=0a", "skipped probe_failed changed", "put back"},
		{"mount", "=/m", "skipped probe_failed mount_inside", `"/m"`},
		{"no_mounts", "~", "skipped probe_failed mount_inside", "does not say"},
		{"foreign", "=f", "skipped probe_failed foreign_owner", `"f" belongs`},
		{"live", "=/proc/7/cwd", "skipped shared live_process", `"/proc/7/cwd"`},
		{"busy", claim, "failed busy", "remove, attempt 2 of job job-9, process 4711 on build1 since unix time 1700000000"},
		{"busy", "=somebody", "failed busy", `does not say whose it is ("somebody")`},
		{"busy", "=remove,4711,1,build1,1.1,lately,2,job-9", "failed busy", "since lately"},
		{"occupied", "=q", "failed half_removed", `holder "q"`},
		{"no_holder", "~", "failed remove_rejected", "nothing was moved"},
		{"no_note", "~", "failed remove_rejected", "takes no notes"},
		{"immovable", "~", "failed remove_rejected", "is where it was"},
		{"copied", "~", "failed remove_rejected", "was put back"},
		{"held", "=q", "failed half_removed", `the work is in "q"`},
		{"gone", "~", "failed half_removed", "cannot be read"}, // without what comes before it
		{"LATE", "~", "failed half_removed", "cannot be read"},
	} {
		out := q.Judge(Said{Body: "reclaim 1 remove\nabout " + about(q) + "\nended " + row.how + " " + row.what + "\nend 2\n"})
		if got := word(Done{out}); got != row.want || !strings.Contains(detailOf(out), row.says) {
			t.Errorf("%s %s: %s: %s", row.how, row.what, got, detailOf(out))
		}
	}
	// From behind the commit point nothing is kept any more.
	for _, row := range []struct{ middle, end, want, says string }{
		{"rm 0\nfreed 4096 12\ntarget absent\nholder absent", "gone ~", "removed", "12 entries removed"},
		{"rm 0\nfreed 4096 1\ntarget absent\nholder absent", "gone ~", "removed", "1 entry removed"},
		{"rm 1\nfreed 4096 12\ntarget absent\nholder absent", "gone ~", "failed remove_rejected", "status 1"},
		{"rm 0\nfreed 4096 12\ntarget absent\nholder directory", "gone ~", "failed still_present", "its holder directory"},
		{"rm 0\nfreed 4096 12\ntarget directory\nholder absent", "gone ~", "failed still_present", "target is directory"},
		{"rm 0\nfreed 4096 12\ntarget absent\nholder absent", "gone =x", "failed half_removed", "cannot be read"},
		{"rm 1\nfreed 0 0\ntarget absent\nholder directory", "left =x/y", "failed still_present", "x/y"},
		{"rm 0\nfreed 4096 12\ntarget absent\nholder directory", "stuck =w", "failed unregister_failed", `"w"`},
		{"rm 0\nfreed 4096 12\ntarget absent\nholder absent", "live ~", "failed half_removed", "cannot be read"},
		{"rm 0\nfreed 4096 12\nholder absent\ntarget absent", "gone ~", "failed half_removed", "cannot be read"},
		{"rm 0\nfreed 4096\ntarget absent\nholder absent", "gone ~", "failed half_removed", "cannot be read"},
		{"rm 0", "gone ~", "failed half_removed", "cannot be read"},
		{"rm -1\nfreed 4096 12\ntarget absent\nholder absent", "gone ~", "failed half_removed", "cannot be read"},
		{"rm 0\nfreed x 12\ntarget absent\nholder absent", "gone ~", "failed half_removed", "cannot be read"},
		{"rm 0\nfreed 4096 012\ntarget absent\nholder absent", "gone ~", "failed half_removed", "cannot be read"},
		{"rm 0\nfreed 4096 12\ntarget gone\nholder absent", "gone ~", "failed half_removed", "cannot be read"},
		{"rm 0\nfreed 4096 12\ntarget absent\nholder gone", "gone ~", "failed half_removed", "cannot be read"},
	} {
		n := strings.Count(row.middle, "\n") + 3
		out := q.Judge(Said{Body: fmt.Sprintf("reclaim 1 remove\nabout %s\n%s\nended %s\nend %d\n", about(q), row.middle, row.end, n)})
		if got := word(Done{out}); got != row.want || !strings.Contains(detailOf(out), row.says) {
			t.Errorf("%q %s: %s: %s", row.middle, row.end, got, detailOf(out))
		}
	}
	for _, unread := range []string{"ended late", "ended late x", "over late ~", "ended late ~ ~"} {
		if got := word(Done{q.Judge(Said{Body: "reclaim 1 remove\nabout " + about(q) + "\n" + unread + "\nend 2\n"})}); got != "failed half_removed" {
			t.Errorf("%q: %s", unread, got)
		}
	}
}

func detailOf(o Outcome) string {
	switch o := o.(type) {
	case Removed:
		return o.Detail
	case Skipped:
		return o.Detail
	case Failed:
		return o.Detail
	}
	return ""
}

// A question that does not name what may be removed is never answered with a
// removal, and its script refuses.
func TestARemovalThatNamesNothingRemovesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*Manifest){
		"no device": func(m *Manifest) { m.Device = "" }, "an odd device": func(m *Manifest) { m.Device = "x" },
		"no inode": func(m *Manifest) { m.Inode = "" }, "an odd inode": func(m *Manifest) { m.Inode = "07" },
		"no digest": func(m *Manifest) { m.Digest = "" }, "no entries": func(m *Manifest) { m.Count = 0 },
	} {
		q := recordedRemove
		spoil(&q.Manifest)
		body := strings.Replace(recordedAnswer(), about(recordedRemove), about(q), 1)
		if got := word(Done{q.Judge(Said{Body: body})}); got != "failed half_removed" {
			t.Errorf("%s: %s", name, got)
		}
		if script := "\n" + q.Script().Body; !strings.Contains(script, "\nexpected=''\n") || !strings.Contains(script, "\ntaken=''\n") {
			t.Errorf("%s: the script still expects something", name)
		}
	}
	q := recordedRemove
	q.Manifest.Outside = []string{"/c/w 1", "/c/w2"}
	q.Manifest.Registrations = []Registration{{"/c", "w'1", "/h/.git"}, {"/c", "w2", "/i/.git"}}
	script := q.Script()
	script.Body = "\n" + script.Body
	for _, part := range []string{"\nexpected='65024 77'\n", "\ntaken='0a1b 12'\n", "\nnot_after='9'\n", "\nwho='2,j'\n", "\nabout='" + about(q) + "'\n", "\nroot='/home/dev/.kandev'\n",
		"\nsegment='fix-login_ab12'\n", "\nholder='" + holderName(q.Segment) + "'\n", "manifest \"$1\" '/c/w 1' '/c/w2'\n",
		"note r1.dir '/c' && note r1.file '/h/.git' && note r1.name 'w'\\''1' || return 1\n", "note r2.dir '/c' && note r2.file '/i/.git' && note r2.name 'w2' || return 1\n"} {
		if !strings.Contains(script.Body, part) {
			t.Errorf("the script lacks %q", part)
		}
	}
}

func TestEveryWordAtTheEndOfASettlementHasItsOutcome(t *testing.T) {
	unread := "failed half_removed"
	for _, row := range []struct {
		found        Holder
		target       string
		settled      string
		want, says   string
		done, backed bool
	}{
		{HolderCommitted, "absent", "committed ~ 10 3", "", "", true, false},
		{HolderCommitted, "directory", "committed ~ 10 3", "", "", true, false},
		{HolderQuarantined, "directory", "quarantined ~ 0 0", "", "", false, true},
		{HolderEmpty, "directory", "empty ~ 0 0", "", "", false, false},
		{HolderEmpty, "absent", "empty ~ 0 0", "", "", false, false},
		{HolderQuarantined, "absent", "quarantined ~ 0 0", unread, "contradicts itself", false, false},
		{HolderCommitted, "unreadable", "committed ~ 10 3", unread, "contradicts itself", false, false},
		{HolderEmpty, "absent", "committed ~ 10 3", unread, "contradicts itself", false, false},
		{HolderCommitted, "absent", "committed =x 10 3", unread, "contradicts itself", false, false},
		{HolderCommitted, "gone", "committed ~ 10 3", unread, "cannot be read", false, false},
		{HolderCommitted, "absent", "committed x 10 3", unread, "cannot be read", false, false},
		{HolderCommitted, "absent", "committed ~ -1 3", unread, "cannot be read", false, false},
		{HolderCommitted, "absent", "committed ~ 10 03", unread, "cannot be read", false, false},
		{HolderCommitted, "absent", "committed ~ 10", unread, "cannot be read", false, false},
		{HolderCommitted, "absent", "finished ~ 10 3", unread, "cannot be read", false, false},
		{HolderCommitted, "absent", "complained ~ 10 3", "failed remove_rejected", "rm reported an error", false, false},
		{HolderCommitted, "absent", "alive =settle,1,1,h,1.1,9,3,j 0 0", "failed busy", "settle, attempt 3 of job j", false, false},
		{HolderCommitted, "absent", "other =empty 0 0", "failed busy", "changed meanwhile (empty)", false, false},
		{HolderCommitted, "absent", "contradictory =plan 0 0", unread, "contradicts itself (plan); nothing was touched", false, false},
		{HolderQuarantined, "directory", "held =q 0 0", unread, `the work is in "q"`, false, false},
		{HolderCommitted, "absent", "live =x 0 0", unread, "a process is at work", false, false},
		{HolderCommitted, "absent", "mount =x 0 0", unread, "mounted", false, false},
		{HolderCommitted, "absent", "newer =x/a 0 0", unread, "after it was committed", false, false},
		{HolderCommitted, "absent", "left =x 0 0", "failed still_present", "could not be removed", false, false},
		{HolderCommitted, "absent", "stuck =w 0 0", "failed unregister_failed", `"w"`, false, false},
		{HolderCommitted, "absent", "unseen =mounts 0 0", unread, "the mounts of the host", false, false},
	} {
		q := Settle{Root: "/r", Segment: "s", Holder: row.found}
		s, failed := q.Judge(Said{Body: "reclaim 1 settle\nabout " + about(q) + "\ntarget " + row.target + "\nsettled " + row.settled + "\nend 3\n"})
		switch {
		case row.want == "" && (failed != nil || s.Finished != row.done || s.Restored != row.backed || string(s.Target) != row.target):
			t.Errorf("%s: %+v %v", row.settled, s, failed)
		case row.want != "" && (failed == nil || word(Done{*failed}) != row.want || !strings.Contains(failed.Detail, row.says) || len(failed.Cure) == 0 || s != Settlement{}):
			t.Errorf("%s %s: %+v %v", row.target, row.settled, s, failed)
		}
	}
	q := Settle{Root: "/r", Segment: "s", Holder: HolderCommitted}
	for _, body := range []string{"about 0\ntarget absent\nsettled committed ~ 10 3", "about\ntarget absent\nsettled committed ~ 10 3", "target absent\nabout " + about(q) + "\nsettled committed ~ 10 3"} {
		if s, failed := q.Judge(Said{Body: "reclaim 1 settle\n" + body + "\nend 3\n"}); failed == nil || failed.Fault != HalfRemoved {
			t.Errorf("%q: %+v %v", body, s, failed)
		}
	}
	body := "\n" + q.Script().Body
	for _, part := range []string{"\nroot='/r'\n", "\nsegment='s'\n", "\nexpected_state='committed'\n", "\nwho='0,settle'\n", "\nabout='" + about(q) + "'\n"} {
		if !strings.Contains(body, part) {
			t.Errorf("the script lacks %q", part)
		}
	}
}

func TestAClaimNamesItsAttemptInWordsThatCannotBeMistaken(t *testing.T) {
	for job, want := range map[string]string{
		"job-7": "3,job-7", strings.Repeat("j", 64): "3," + strings.Repeat("j", 64),
	} {
		if got := claimant(job, 3); got != want {
			t.Errorf("%q: %q", job, got)
		}
	}
	for _, job := range []string{"", strings.Repeat("j", 65), "a,b", "a b", "a\nb", "a'b"} {
		got := claimant(job, 3)
		if rest, ok := strings.CutPrefix(got, "3,"); !ok || len(rest) != 16 || strings.Trim(rest, "0123456789abcdef") != "" {
			t.Errorf("%q: %q", job, got)
		}
	}
}

func TestEveryWordOfAGreetingIsKnownOrRefused(t *testing.T) {
	q := Greet{Root: "~", TaskDir: "/h/tasks/s", Segment: "s"}
	body := func(tasks, target, holder string) Said {
		return Said{Body: "reclaim 1 greet\nhome =/h\nroot =/h\nplatform =Linux\ngit =2.39.5\nclock 1700000000\ntasks " + tasks + "\ntarget " + target + "\nholder " + holder + "\nend 8\n"}
	}
	claim := "=remove,4711,1,build1,1.1,1700000000,2,job-9"
	for _, row := range []struct {
		tasks, target, holder string
		want                  Greeting
		note                  string
	}{
		{"directory", "directory", "none ~ ~", Greeting{Tasks: IsDirectory, Target: IsDirectory, Holder: NoHolder}, ""},
		{"directory", "symlink", "none ~ ~", Greeting{Tasks: IsDirectory, Target: IsSymlink, Holder: NoHolder}, ""},
		{"directory", "other", "none ~ ~", Greeting{Tasks: IsDirectory, Target: IsOther, Holder: NoHolder}, ""},
		{"directory", "unreadable", "none ~ ~", Greeting{Tasks: IsDirectory, Target: CannotSee, Holder: NoHolder}, ""},
		{"directory", "directory", "alive " + claim + " ~", Greeting{Tasks: IsDirectory, Target: IsDirectory, Holder: HolderAlive}, "remove, attempt 2 of job job-9"},
		{"directory", "directory", "empty ~ ~", Greeting{Tasks: IsDirectory, Target: IsDirectory, Holder: HolderEmpty}, ""},
		{"directory", "absent", "quarantined ~ ~", Greeting{Tasks: IsDirectory, Target: Absent, Holder: HolderQuarantined}, ""},
		{"directory", "absent", "committed ~ ~", Greeting{Tasks: IsDirectory, Target: Absent, Holder: HolderCommitted}, ""},
		{"directory", "directory", "contradictory " + claim + " =both", Greeting{Tasks: IsDirectory, Target: IsDirectory, Holder: HolderContradictory}, "cannot be read as a state (both)"},
		{"directory", "unseen", "unseen ~ ~", Greeting{Tasks: IsDirectory, Target: CannotSee}, ""},
		{"symlink", "unseen", "unseen ~ ~", Greeting{Tasks: IsSymlink, Target: CannotSee}, ""},
		{"unreadable", "unseen", "unseen ~ ~", Greeting{Tasks: CannotSee, Target: CannotSee}, ""},
	} {
		g, err := q.Judge(body(row.tasks, row.target, row.holder))
		if err != nil || g.Tasks != row.want.Tasks || g.Target != row.want.Target || g.Holder != row.want.Holder || (g.Note == "") != (row.note == "") || !strings.Contains(g.Note, row.note) {
			t.Errorf("%s, %s, %s: %+v %v", row.tasks, row.target, row.holder, g, err)
		}
		if g.Home != "/h" || g.Root != "/h" || g.Platform != "Linux" || g.Git != "2.39.5" || g.Clock != 1700000000 {
			t.Errorf("%+v", g)
		}
	}
	for _, row := range [][3]string{
		{"directory", "directory", "asleep ~ ~"}, {"directory", "directory", "none x ~"}, {"directory", "directory", "none ~ x"}, {"directory", "gone", "none ~ ~"},
		{"gone", "unseen", "unseen ~ ~"}, {"directory", "unseen", "none ~ ~"}, {"directory", "absent", "unseen ~ ~"}, {"absent", "absent", "unseen ~ ~"}, {"absent", "unseen", "none ~ ~"},
		{"directory", "directory", "quarantined ~ ~"}, {"directory", "directory", "contradictory ~ ~"}, {"directory", "directory", "none ~ =both"},
	} {
		if g, err := q.Judge(body(row[0], row[1], row[2])); err == nil || g != (Greeting{}) {
			t.Errorf("%v: %+v", row, g)
		}
	}
	for _, spoilt := range [][2]string{{"home =/h", "home =h"}, {"root =/h", "root =h"}, {"root =/h", "root x"}, {"git =2.39.5", "git 2"}, {"clock 17", "clock 017"}, {"platform =Linux", "platform Linux"},
		{"end 8", "end 9\nx\nend 9"}, {"holder none ~ ~\nend 8", "end 7"}, {"home =/h\nroot =/h", "root =/h\nhome =/h"}, {"tasks directory", "tasks directory directory"}} {
		said := body("directory", "directory", "none ~ ~")
		said.Body = strings.Replace(said.Body, spoilt[0], spoilt[1], 1)
		if g, err := q.Judge(said); err == nil {
			t.Errorf("%q: %+v", spoilt[1], g)
		}
	}
	// A root without a directory of tasks may be there or not.
	if g, err := q.Judge(Said{Body: strings.Replace(body("absent", "unseen", "unseen ~ ~").Body, "root =/h", "root ~", 1)}); err != nil || g.Root != "" {
		t.Errorf("%+v %v", g, err)
	}
	for _, row := range []struct{ q, root, segment string }{{"", "~/.kandev", "s"}, {" ", "~/.kandev", "s"}, {"/srv", "/srv", "s"}, {"/srv", "/srv", ".."}} {
		script := "\n" + Greet{Root: row.q, TaskDir: "/x", Segment: row.segment}.Script().Body
		segment := row.segment
		if segment == ".." {
			segment = ""
		}
		for _, part := range []string{"\nroot='" + row.root + "'\n", "\nsegment='" + segment + "'\n", "\ndir='/x'\n", "\nholder='" + holderName(row.segment) + "'\n"} {
			if !strings.Contains(script, part) {
				t.Errorf("the greeting lacks %q", part)
			}
		}
	}
}

func TestHowFarARemovalIsIsReadOrNotKnown(t *testing.T) {
	for said, want := range map[string]string{"progress none 0": "none 0 true", "progress preparing 0": "preparing 0 true", "progress checking 0": "checking 0 true",
		"progress removing 17": "removing 17 true", "progress removing x": "removing 0 false", "progress gone 0": " 0 false", "progress none": " 0 false", "stage none 0": " 0 false"} {
		stage, left, ok := Progress{}.Judge(Said{Body: "reclaim 1 progress\n" + said + "\nend 1\n"})
		if got := fmt.Sprint(stage, " ", left, " ", ok); got != want {
			t.Errorf("%s: %s", said, got)
		}
	}
	for _, said := range []Said{{}, {Body: "reclaim 1 progress\nprogress none 0\nend 1\n", Exit: 1}, {Body: "reclaim 1 progress\nprogress none 0\nprogress none 0\nend 2\n"}} {
		if _, _, ok := (Progress{}).Judge(said); ok {
			t.Errorf("%+v", said)
		}
	}
	body := "\n" + Progress{Root: "/r", Segment: "s"}.Script().Body
	for _, part := range []string{"\nroot='/r'\n", "\nsegment='s'\n", "\nholder='" + holderName("s") + "'\n"} {
		if !strings.Contains(body, part) {
			t.Errorf("the script lacks %q", part)
		}
	}
}

// Each row changes one record of a safe answer and names every finding that
// follows: the verdict table, word by word.
func TestEveryWordOfAnInventoryThatIsNotTheSafeOneKeepsForItsReason(t *testing.T) {
	plain, linked := linesOf(answer(t, "clean-pushed")), linesOf(answer(t, "wt-target-clean"))
	sample := func(what, shown string) string { return "sample " + what + " " + shown }
	for _, row := range []struct {
		of        []string
		old, new  string // a prefix of one line, and what stands there instead
		want      string
		says      string
		incurable bool
	}{
		{plain, "host =Linux 1000", "host =Linux x", "probe_failed probe_error", "who we are", true},
		{plain, "host =Linux 1000", "host =Linux 1-", "probe_failed probe_error", "who we are", true},
		{plain, "host =Linux 1000 printf", "host =Linux 1000 stat-c", "", "", true},
		{plain, "host =Linux 1000 printf", "host =Linux 1000 stat-f", "", "", true},
		{plain, "host =Linux 1000 printf", "host =Linux 1000 ls", "probe_failed probe_error", "no find and stat", true},
		{plain, "host", "host =Linux 1000 printf ~", "probe_failed git_too_old", "no git was found", false},
		{plain, "host", "host =Linux 1000 printf =fatal:bad-config", "probe_failed probe_error", "does not say its version", false},
		{plain, "host", "host =Linux 1000 printf ~6769743a206e6f7420666f756e64", "probe_failed git_too_old", "no git was found", false},
		{plain, "host", "host =Linux 1000 printf " + hexWord("git version x"), "probe_failed git_too_old", "older than 2.20", false},
		{plain, "host", "host =Linux 1000 printf " + hexWord("git version 1.99.0"), "probe_failed git_too_old", "older than 2.20", false},
		{plain, "host", "host =Linux 1000 printf " + hexWord("git version 2.19.6"), "probe_failed git_too_old", "older than 2.20", false},
		{plain, "host", "host =Linux 1000 printf " + hexWord("git version 2.20.0"), "", "", true},
		{plain, "host", "host =Linux 1000 printf " + hexWord("git version 3.0"), "", "", true},
		{plain, "identity", "identity x 7", "probe_failed probe_error", "device and inode", true},
		{plain, "identity", "identity 7 x", "probe_failed probe_error", "device and inode", true},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980", "tree =. none", "probe_failed probe_error", `digest of "."`, true},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0", "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 1", "probe_failed unreadable", "cannot be listed", false},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0", "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 2", "probe_failed foreign_owner", "2 entries belong", false},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 0", "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 1", "probe_failed unreadable", "1 file or directory cannot be read", false},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 0 0", "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 0 1", "probe_failed probe_error", "line break", true},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 0 0 0", "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 0 0 1", "dirty_worktree untracked", "1 symbolic link below .kandev", true},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 0 0 0 0", "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79 78 26214 0 0 0 0 0 1", "probe_failed lock_present", "1 lock file lies", false},
		{plain, "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 79", "tree =. f9da9dd82e4a2313d1edd4cb99514feec4ded980 78", "probe_failed probe_error", "79 lines over listings of 78", true},
		{plain, "manifest", "manifest f9 79", "probe_failed probe_error", "no usable manifest", true},
		{linked, "outside", "", "probe_failed probe_error", "2 listings for 1 directories", true},
		{plain, "live 0", "live unknown", "", "", true},
		{plain, "live 0", "live some", "probe_failed probe_error", `"some" live processes`, true},
		{plain, "live 0", "live 1", "shared live_process", "1 running process has", false},
		{plain, "live 0 0 0", "live 0 1 1", "shared live_process", "1 session process named", false},
		{plain, "live 0 0 0 0", "live 0 1 0 1", "probe_failed unreadable", "1 session pid file cannot", true},
		{plain, "mounts 0", "mounts unknown", "probe_failed mount_inside", "could not be listed", true},
		{plain, "mounts 0", "mounts 2", "probe_failed mount_inside", "2 file systems are", false},
		{plain, "borrowers 0", "borrowers 1", "shared lent_objects", "1 other repository borrows", false},
		{plain, "borrowers 0 0", "borrowers 0 1", "shared hosted_worktree", "1 other directory is a checkout", true},
		{plain, "worktrees 0 0", "worktrees 0 1", "shared hosted_worktree", "1 worktree elsewhere", false},
		{plain, "worktrees 0 0 0", "worktrees 0 0 1", "shared locked_worktree", "1 worktree registered inside is locked", false},
		{plain, "worktrees 0 0 0 0", "worktrees 0 0 0 1", "probe_failed probe_error", "1 worktree registration inside holds", false},
		{plain, "repositories 1", "repositories 0", "probe_failed probe_error", "no repository at all", true},
		{plain, "repositories 1", "repositories 401", "probe_failed probe_error", "more than 400", true},
		{plain, "repositories 1", "repositories 2", "probe_failed probe_error", `no record "repository 2"`, true},
		{plain, "repository 1 primary", "repository 1 odd", "probe_failed probe_error", `of the kind "odd"`, true},
		{plain, "repository 1 primary =.", "repository 1 primary =sub", "probe_failed probe_error", "the target's own repository", true},
		{plain, "checkout 1 itself", "checkout 1 tracked", "probe_failed probe_error", "not bare", true},
		{plain, "checkout 1 itself", "checkout 1 begun", "not_a_checkout no_repository probe_failed probe_error", "only begun", false},
		{plain, "checkout 1 itself", "checkout 1 bare", "not_a_checkout no_repository probe_failed probe_error", "core.bare", false},
		{plain, "checkout 1 itself", "checkout 1 elsewhere", "not_a_checkout no_repository probe_failed probe_error", "core.worktree", false},
		{plain, "checkout 1 itself", "checkout 1 unresolved", "probe_failed probe_error", "cannot be followed", false},
		{plain, "checkout 1 itself", "checkout 1 unclear", "probe_failed probe_error", "does not accept", false},
		{plain, "checkout 1 itself", "checkout 1 too_new", "probe_failed git_too_old probe_failed probe_error", "beyond what is read", true},
		{plain, "checkout 1 itself", "checkout 1 foreign", "probe_failed foreign_owner probe_failed probe_error", "another account", false},
		{plain, "checkout 1 itself", "checkout 1 odd", "probe_failed probe_error", `a checkout that is "odd"`, true},
		{linked, "registration 1 mutual no yes", "registration 1 mutual no no", "", "", true},
		{linked, "registration 1 mutual no yes", "registration 1 mutual no odd", "probe_failed probe_error", `survives "odd"`, true},
		{linked, "registration 1 mutual", "registration 1 another", "probe_failed probe_error", "names another directory", false},
		{linked, "registration 1 mutual", "registration 1 broken", "probe_failed probe_error", "names another directory", false},
		{linked, "registration 1 mutual", "registration 1 odd", "probe_failed probe_error", `a registration that is "odd"`, true},
		{linked, "registration 1 mutual no", "registration 1 mutual yes", "shared locked_worktree", "is locked", false},
		{linked, "registration 1 mutual no", "registration 1 mutual odd", "probe_failed probe_error", `locked "odd"`, true},
		{linked, "repository 1 linked_worktree", "repository 1 primary", "probe_failed probe_error", "fits no linked worktree", true},
		{plain, "operations 1 0 0", "operations 1 0 0 rebase merge", "dirty_worktree operation_in_progress", "rebase, merge", false},
		{plain, "operations 1 0", "operations 1 1", "stash_present stash", "autostash", false},
		{plain, "operations 1 0 0", "operations 1 0 1", "probe_failed lock_present", "a git may be writing", true},
		{plain, "settings 1 0", "settings 1 1", "", "", true},
		{plain, "settings 1 0", "settings 1 2", "probe_failed probe_error", "configuration cannot be read", true},
		{plain, "settings 1 0 0", "settings 1 0 1", "probe_failed probe_error", "configuration cannot be read", true},
		{plain, "files 1 0", "files 1 128", "probe_failed probe_error", "ls-files 128, status 0, 0 lines", false},
		{plain, "files 1 0 0", "files 1 0 1", "probe_failed probe_error", "ls-files 0, status 1, 0 lines", false},
		{plain, "files 1 0 0 5 0 0 0 0 0", "files 1 0 0 5 0 0 0 0 3", "probe_failed probe_error", "ls-files 0, status 0, 3 lines", false},
		{plain, "files 1 0 0 5 0", "files 1 0 0 5 2", "dirty_worktree modified", "2 tracked files differ", false},
		{plain, "files 1 0 0 5 0 0", "files 1 0 0 5 0 1", "dirty_worktree modified", "submodule pointer only: 1 submodule is", false},
		{plain, "files 1 0 0 5 0 0 0", "files 1 0 0 5 0 0 1", "dirty_worktree untracked", "1 untracked file", false},
		{plain, "files 1 0 0 5 0 0 0 0", "files 1 0 0 5 0 0 0 2", "dirty_worktree ignored", "2 ignored files", false},
		{plain, "hidden 1 0 0", "hidden 1 0 1", "dirty_worktree hidden_edit", "1 file that an index flag hides", false},
		{plain, "hidden 1 0 0 0 0", "hidden 1 0 0 0 1", "dirty_worktree untracked", "1 submodule directory", true},
		{plain, "files 1", "index 1 0", "probe_failed probe_error", "", true}, // a checkout without its work tree
		{plain, "remotes 1 0", "remotes 1 1", "probe_failed probe_error", "remotes cannot be listed", true},
		{plain, "refs 1 0", "refs 1 1", "probe_failed probe_error", "exit 1, 0 lines", false},
		{plain, "refs 1 0 4 0", "refs 1 0 4 1", "stash_present stash", "refs/stash", false},
		{plain, "refs 1 0 4 0 3 0 0", "refs 1 0 4 0 3 0 2", "unpushed_commits local_refs", "2 refs hold objects", false},
		{plain, "refs 1 0 4 0 3 0 0 0", "refs 1 0 4 0 3 0 0 1", "probe_failed probe_error", "1 lines not understood", false},
		{plain, "refs 1 0 4 0 3 0 0 0 0", "refs 1 0 4 0 3 0 0 0 1", "probe_failed probe_error", "1 broken", false},
		{plain, "refs 1 0 4 0 3 0 0", sample("1 loose", "=annex/objects") + "\nrefs 1 0 4 0 3 0 1", "unpushed_commits local_refs", "git-annex", false},
		{plain, "unpushed 1 0", "unpushed 1 128", "probe_failed probe_error", "exit 128", false},
		{plain, "unpushed 1 0 0", "unpushed 1 0 2", "unpushed_commits local_refs", "no trusted remote-tracking ref holds 2 commits", false},
		{plain, "unpushed 1 0 0", sample("1 holder", "=refs/heads/a") + "\nunpushed 1 0 1", "unpushed_commits branch", `1 commit ("refs/heads/a")`, false},
		{plain, "unpushed 1 0 0", sample("1 holder", "=HEAD") + "\n" + sample("1 holder", "=refs/notes/x") + "\nunpushed 1 0 1", "unpushed_commits detached", `("HEAD", "refs/notes/x")`, false},
		{plain, "remotes 1 0 1 1 0 0", "remotes 1 0 0 0 0 0\x00unpushed 1 0 1", "unpushed_commits no_remote", "no remote is configured", false},
		{plain, "remotes 1 0 1 1 0 0", "remotes 1 0 1 0 1 0\x00unpushed 1 0 1", "unpushed_commits remote_inside", "no remote that leads outside", false},
		{plain, "abandoned 1 0", "abandoned 1 128", "probe_failed probe_error", "exit 128", true},
		{plain, "abandoned 1 0 0", "abandoned 1 0 2", "unpushed_commits abandoned", "2 commits were left behind by reset or checkout and nothing reaches them", false},
		{plain, "abandoned 1 0 0", sample("1 abandoned", "=ab12") + "\nabandoned 1 0 1", "unpushed_commits abandoned", `reaches it ("ab12")`, false},
		{plain, "finished", "", "probe_failed probe_error", `no record "finished"`, true},
		{plain, "judged 1", "", "probe_failed probe_error", `no record "judged 1"`, true},
		{plain, "judged 1", "judged 1\njudged 2", "probe_failed probe_error", "nothing that was found", true},
		{plain, "judged 1", "judged", "probe_failed probe_error", "of no repository", true},
		{plain, "judged 1", "judged x", "probe_failed probe_error", `the repository "x"`, true},
		{plain, "judged 1", "moon 1", "probe_failed probe_error", `unknown kind "moon"`, true},
		{plain, "judged 1", "judged 1\nsample 1 x", "probe_failed probe_error", "a sample of 2 words", true},
		{plain, "judged 1", "judged 1\nsample x y =z", "probe_failed probe_error", "a sample that cannot be read", true},
		{plain, "judged 1", "judged 1\nsample 1 y z", "probe_failed probe_error", "a sample that cannot be read", true},
		{plain, "judged 1", "judged 1\nsample - y =z", "", "", true},
		{plain, "repositories 1", "repositories x", "probe_failed probe_error", "word 1 of a record \"repositories\"", true},
		{plain, "borrowers 0", "borrowers -1", "probe_failed probe_error", "word 1 of a record \"borrowers\"", true},
		{plain, "shape directory", "shape", "probe_failed probe_error", "of 0 words", true},
		{plain, "shape directory", "shape directory directory", "probe_failed probe_error", "of 2 words", true},
		{plain, "shape directory", "shape symlink", "not_a_checkout target_is_symlink probe_failed probe_error", "", true},
		{plain, "finished", "baseline whole\nfinished", "probe_failed probe_error", "nothing that was found", true},
	} {
		var lines []string
		found := 0
		fresh, also, _ := strings.Cut(row.new, "\x00")
		for _, line := range row.of {
			switch {
			case strings.HasPrefix(line, row.old+" ") || line == row.old:
				found++
				if fresh != "" {
					lines = append(lines, strings.Split(fresh+strings.TrimPrefix(line, row.old), "\n")...)
				}
				if strings.Count(row.old, " ") == 0 && fresh != "" && !strings.HasSuffix(fresh, "\nfinished") { // a whole record
					lines = slices.Delete(lines, len(lines)-strings.Count(fresh, "\n")-1, len(lines))
					lines = append(lines, strings.Split(fresh, "\n")...)
				}
			case also != "" && strings.HasPrefix(line, strings.Join(strings.Fields(also)[:2], " ")+" "):
				lines = append(lines, also)
			default:
				lines = append(lines, line)
			}
		}
		if found != 1 {
			t.Fatalf("%q stands in %d lines", row.old, found)
		}
		e := labInventory.Judge(sealed(lines))
		var got []string
		said, cured := "", false
		for _, f := range e.Findings {
			if word := string(f.Reason) + " " + string(f.Cause); !slices.Contains(got, word) {
				got = append(got, word)
			}
			said += f.Detail + "\n"
			cured = cured || len(f.Cure) > 0
		}
		if words := strings.Join(got, " "); words != row.want || !strings.Contains(said, row.says) || e.Safe() != (row.want == "") || cured == row.incurable {
			t.Errorf("%q for %q: %q, safe %v, cured %v:\n%s", row.new, row.old, words, e.Safe(), cured, said)
		}
	}
}

func hexWord(s string) string { return "~" + hexOf(s) }

func TestATargetThatIsNoDirectoryIsJudgedByItsShapeAlone(t *testing.T) {
	host := linesOf(answer(t, "clean-pushed"))[1]
	for shape, want := range map[string]string{
		"root_missing": "probe_failed tasks_missing", "tasks_missing": "probe_failed tasks_missing", "tasks_symlink": "not_a_checkout tasks_is_symlink",
		"symlink": "not_a_checkout target_is_symlink", "absent": "not_a_checkout already_absent", "other": "not_a_checkout no_repository", "elsewhere": "not_a_checkout no_repository",
		"no_repository": "not_a_checkout no_repository", "enclosed": "not_a_checkout enclosing_repository", "unreadable": "probe_failed unreadable", "moon": "probe_failed probe_error",
	} {
		e := labInventory.Judge(sealed([]string{"reclaim 1 inventory", host, "shape " + shape}))
		if len(e.Findings) != 1 || string(e.Findings[0].Reason)+" "+string(e.Findings[0].Cause) != want || e.Findings[0].Detail == "" || e.Safe() || e.Complete != (shape != "moon") {
			t.Errorf("%s: %+v", shape, e)
		}
	}
	// Nothing said at all.
	if e := labInventory.Judge(Said{Body: "reclaim 1 inventory\n"}); !strings.Contains(e.Findings[0].Detail, "not well formed") {
		t.Errorf("%+v", e)
	}
	for _, said := range []Said{{}, {Body: "\n"}, {Body: "reclaim 1 inventory\nend 0\n"}, {Body: "reclaim 1 inventory\nsum 1 2\nend 1\n"}} {
		if e := labInventory.Judge(said); e.Safe() || e.Complete || len(e.Findings) == 0 {
			t.Errorf("%q: %+v", said.Body, e)
		}
	}
}

func TestMoreFindingsThanAreToldAreCounted(t *testing.T) {
	lines := linesOf(answer(t, "clean-pushed"))
	at := slices.Index(lines, "repositories 1")
	lines[at] = "repositories 100"
	e := labInventory.Judge(sealed(lines))
	lines[at] = "repositories 61" // 60 of which are not there
	if e := labInventory.Judge(sealed(lines)); len(e.Findings) != maxFindings || strings.Contains(e.Findings[maxFindings-1].Detail, "more") {
		t.Errorf("%d: %s", len(e.Findings), e.Findings[len(e.Findings)-1].Detail)
	}
	lines[at] = "repositories 62"
	if e := labInventory.Judge(sealed(lines)); len(e.Findings) != maxFindings || !strings.HasSuffix(e.Findings[maxFindings-1].Detail, "(and 1 more findings)") {
		t.Errorf("%d: %s", len(e.Findings), e.Findings[len(e.Findings)-1].Detail)
	}
	if len(e.Findings) != maxFindings || !strings.HasSuffix(e.Findings[maxFindings-1].Detail, "(and 39 more findings)") {
		t.Errorf("%d: %s", len(e.Findings), e.Findings[len(e.Findings)-1].Detail)
	}
}
