package core

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reports are what other tools of this kind have done to people, by the number
// under which the report is known, and what shows that it does not happen here:
// scenarios that real git built and the inventory judged, or tests by name.
var reports = []struct {
	id, fact  string
	scenarios []string // each kept with its scenario's reason, or safe where the report was about keeping
	tests     []string // functions, or clauses of a conformance suite
}{
	{"B01", "a sweep did not ask for untracked files and took the current commit for its baseline", []string{"untracked-deep", "branch-without-upstream"}, nil},
	{"B03", "flagged files never show in a status", []string{"skip-worktree", "assume-unchanged-edited", "assume-unchanged-deleted"}, nil},
	{"B04", "an ignored file in a submodule shows in no status of its parent", []string{"submodule-deep-ignored"}, nil},
	{"B06", "a guard compared a submodule's pointer and missed its edits", []string{"submodule-modified", "submodule-ignore-all"}, nil},
	{"B08", "a failed question with no output was read as zero commits", []string{"branch-without-upstream"}, []string{"TestEachBadAnswerAloneKeepsTheDirectory"}},
	{"B09", "branches alone say nothing of a detached HEAD", []string{"detached-unpushed"}, nil},
	{"B11", "a repository that never pushed anything was shown green", []string{"first-commit-unpushed"}, nil},
	{"B13", "a missing part of an answer was rendered as no changes", nil, []string{"TestAC_002_5_ASafeAnswerCutAnywhereIsNotSafe", "TestAC_002_5_ADamagedSafeAnswerIsNeverSafeUnlessItSaysTheSame"}},
	{"B14", "a commit whose patch was pushed lost its last reference", []string{"patch-equivalent"}, nil},
	{"B16", "ignored content was held and never named", []string{"two-ignored-kinds"}, nil},
	{"B17", "a file the tool itself drops kept the directory for ever", []string{"kandev-untracked", "untracked-deep"}, nil},
	{"B19", "patterns at the root did not know the folders of nested packages", []string{"nested-package-ignored"}, []string{"TestAC_002_5_ALyingAnswerWithARightSumIsStillNotSafe"}},
	{"B21", "output edited by hand was thrown away as build output", []string{"tracked-dist-edited", "edited-beside-tracked-output"}, nil},
	{"B22", "squash-merged and pruned: its commits are on no remote", []string{"squash-merged-pruned"}, nil},
	{"B24", "a repository without a remote is kept with that in words", []string{"no-remote"}, nil},
	{"B25", "a submodule at an older commit", []string{"submodule-older-commit"}, nil},
	{"B27", "a lock on a worktree", []string{"wt-target-locked", "wt-prunable-locked"}, nil},
	{"B28", "a directory that four ended tasks share with a live one", nil, []string{"TestAC_D8_ClaimsMatchWhereverTheyCouldMeanTheSameDirectory"}},
	{"B30", "a process that another controller started", []string{"kandev-session-alive", "kandev-session-unreadable"}, nil},
	{"B33", "one of two tasks that share a directory is archived", nil, []string{"TestAC_003_OwnershipIsEstablishedOrTheDirectoryIsKept"}},
	{"B35", "the recorded directory is a person's project folder", nil, []string{"TestWhatEndsAnAttemptBeforeTheHostIsReached", "TestAC_003_4_AC_D16_AC_D30_TheTableOfPaths"}},
	{"B37", "the target is a link to another task", []string{"symlink-target"}, nil},
	{"B38", "a link to a shared folder is in the target", []string{"untracked-symlink-outside", "tracked-symlink-outside"}, []string{"TestAC_001_1_EveryShellRemovesTheTargetAndNothingElse"}},
	{"B40", "a share is mounted inside", []string{"mount-bind", "mount-tmpfs"}, []string{"TestAMountInsideIsNeverEmptied"}},
	{"B42", "an empty path meant the current directory", nil, []string{"TestWhatEndsAnAttemptBeforeTheHostIsReached", "TestAC_003_4_AC_D16_AC_D30_TheTableOfPaths"}},
	{"B43", "the root came out as / or as the home directory", nil, []string{"TestB43_ARootThatIsTheHomeDirectoryOrEverythingIsRefused"}},
	{"B46", "what was looked at was not what was removed; a timeout was written down as dirty", nil, []string{"TestOverlappingRemovalsLoseNothingWhateverTheirOrder", "TestEachBadAnswerAloneKeepsTheDirectory"}},
	{"B47", "the directory's repository was not complete yet", []string{"git-dir-just-begun"}, nil},
	{"B49", "something kept writing while the removal ran", nil, []string{"TestAC_Race_AWriterByPathNeverLosesAByte"}},
	{"B51", "tasks itself is a link", []string{"symlink-tasks"}, nil},
	{"B52", "a removal that failed was counted", nil, []string{"TestB52_B54_AnRmThatLiesOrFailsIsNoRemoval"}},
	{"B54", "success was printed whatever happened", nil, []string{"TestB52_B54_AnRmThatLiesOrFailsIsNoRemoval", "TestOnlyTheWholeAnswerToTheVeryQuestionIsARemoval"}},
	{"B55", "a module cache without write permission", nil, []string{"TestNamesOfEveryByteAndNestedClosedDirectoriesAreRemoved"}},
	{"B57", "a corrupt .git file was retried for ever", []string{"gitfile-corrupt"}, nil},
	{"B59", "a second run failed on what the first had removed", nil, []string{"TestB59_AnAbsentDirectoryIsRemovedOnlyWhereABeginIsRecorded"}},
	{"B60", "a job judged stuck went on in its first worker", nil, []string{"TestAWorkerThatLostItsLeaseStopsAndWritesNothing"}},
	{"B65", "an unusable trust file let any host in", nil, []string{"without a pin nothing is dialled", "a pin that no key can match is refused"}},
	{"B66", "a rebuilt machine shows another key", nil, []string{"a host that shows another key is refused before any credential or command", "TestAHostWithoutThePinnedKeyIsRefusedWithEveryKeyItShowed"}},
	{"B68", "the transport's own exit code was folded into success", nil, []string{"TestAServerThatDoesNotSayHowACommandEndedHasNotAnswered", "TestEachBadAnswerAloneKeepsTheDirectory"}},
	{"B70", "a connection that dropped during the removal left an orphan", nil, []string{"TestAC_005_ARemovalKilledInTheMiddleOfRmIsFinishedAndNeverSkipped"}},
	{"B71", "a login shell greets before every command", nil, []string{"TestAnyLoginShellCarriesAScriptAndGivesItsPathOrIsNoAnswer"}},
	{"B73", "a login shell prints what looks like an answer", nil, []string{"TestAnAnswerIsTheSameHoweverItArrivesAndWhateverSurroundsIt", "TestAnotherCallsFrameIsNoAnswer"}},
	{"B74", "a prune took other worktrees with it", nil, []string{"TestAC_001_2_ARegistrationIsRemovedExactlyAndLaterIfInterrupted"}},
	{"B76", "the main checkout of somebody's worktree", []string{"sibling-is-worktree", "wt-external-detached"}, nil},
	{"B78", "a look ran a program that the repository names", []string{"traps-everywhere", "filters-everywhere", "include-if"}, nil},
	{"B81", "the profile was gone, and its protection with it", nil, []string{"TestWhatEndsAnAttemptBeforeTheHostIsReached"}},
	{"B82", "what was announced was not what was used", nil, []string{"TestAPreviewIsComparedWithWhatTheArchiveFound"}},
}

func TestEveryPublicReportHasWhatShowsThatItDoesNotHappenHere(t *testing.T) {
	known := map[string]scenario{}
	for _, s := range scenarios(t) {
		known[s.ID] = s
	}
	named := named(t)
	for _, report := range reports {
		t.Run(report.id+" "+report.fact, func(t *testing.T) {
			if len(report.scenarios)+len(report.tests) == 0 {
				t.Error("nothing shows it")
			}
			for _, id := range report.scenarios {
				s, ok := known[id]
				if !ok {
					t.Errorf("there is no scenario %s", id)
					continue
				}
				e := labInventory.Judge(answer(t, id))
				if wrong := s.verdict(e); wrong != "" || s.Either {
					t.Errorf("%s: %s", id, wrong)
				}
			}
			for _, name := range report.tests {
				if !named[name] {
					t.Errorf("there is no test %q", name)
				}
			}
		})
	}
	// Where a report wants something named, the detail names it.
	for id, want := range map[string]string{"two-ignored-kinds": "deploy.key", "no-remote": "remote", "submodule-older-commit": "another commit"} {
		var said []string
		for _, f := range labInventory.Judge(answer(t, id)).Findings {
			said = append(said, f.Detail)
		}
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("%s: %q does not speak of %q", id, said, want)
		}
	}
}

// named is every test function and every clause of a suite in the module.
func named(t *testing.T) map[string]bool {
	names := map[string]bool{}
	test, clause := regexp.MustCompile(`(?m)^func (Test\w+)\(`), regexp.MustCompile(`(?m)^\t\{"([^"]+)", func\(t `)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, kind := range []*regexp.Regexp{test, clause} {
			for _, m := range kind.FindAllStringSubmatch(string(raw), -1) {
				names[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestB43_ARootThatIsTheHomeDirectoryOrEverythingIsRefused(t *testing.T) {
	s := lab()
	for _, edit := range [][2]string{{"home =/home/dev", "home =/srv/lab"}, {"root =/srv/lab", "root =/"}, {"root =/srv/lab", "root =/home/dev"}} {
		body := greets("directory", "none").Reply.(Said).Body
		spoilt := strings.Replace(body, edit[0], edit[1], 1)
		if spoilt == body {
			t.Fatal(edit)
		}
		step, _ := upTo(t, s, mine(), allowed(), Heard{Reply: Said{Body: spoilt}})
		if got := word(step); got != "failed path_refused final" {
			t.Errorf("%s: %s", edit[1], got)
		}
	}
	// Without a home directory the greeting is no answer.
	step, _ := upTo(t, s, mine(), allowed(), Heard{Reply: Said{Body: strings.Replace(greets("directory", "none").Reply.(Said).Body, "home =/home/dev", "home ~", 1)}})
	if got := word(step); got != "skipped probe_failed probe_error" {
		t.Error(got)
	}
}

func TestB59_AnAbsentDirectoryIsRemovedOnlyWhereABeginIsRecorded(t *testing.T) {
	s := lab()
	if step, _ := upTo(t, s, mine(), allowed(), greets("absent", "none")); word(step) != "skipped not_a_checkout already_absent" {
		t.Error(word(step))
	}
	s.Begun = true
	if step, _ := upTo(t, s, allowed(), greets("absent", "none")); word(step) != "removed" {
		t.Error(word(step))
	}
}

// Another worker's removal that was sent late may take the directory between
// the greeting and the inventory.
func TestADirectoryThatGoesAwayWhileItIsJudgedIsNeverCalledKept(t *testing.T) {
	absent := Heard{Reply: sealed([]string{"reclaim 1 inventory", "host =Linux 0 printf ~6769742076657273696f6e20322e33392e35", "shape absent"})}
	if e := labInventory.Judge(absent.Reply.(Said)); len(e.Findings) != 1 || e.Findings[0].Cause != AlreadyAbsent {
		t.Fatal(e.Findings)
	}
	for _, begun := range []bool{false, true} {
		s := lab()
		s.Begun = begun
		answers := []Answer{mine(), allowed(), greets("directory", "none"), absent}
		if begun {
			answers = []Answer{allowed(), greets("directory", "none"), mine(), absent}
		}
		if step, _ := upTo(t, s, answers...); word(step) != "failed busy" {
			t.Errorf("begun %v: %s", begun, word(step))
		}
	}
}
