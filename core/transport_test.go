package core

import "testing"

// transport is what can go wrong between us and a directory, and what an SSH
// adapter and the scripts must show about it, each with the tests that bring it
// about for real: a server, a shell, a process, a disk that does it. The words in
// parentheses are what comes of it.
var transport = []struct {
	row   string
	tests []string // functions, or clauses of a conformance suite
}{
	// What is observed.
	{"a whole frame, and a look that is not safe (kept, with its reason)", []string{"TestAC_002_1_EveryScenarioIsJudgedAsItMustBeAndAC_002_6_NothingIsWrittenOrRun"}},
	{"a whole frame, and a command that failed, said something odd or too much (kept, probe_failed)", []string{"TestAC_002_5_ADamagedSafeAnswerIsNeverSafeUnlessItSaysTheSame",
		"TestAC_D3_WhatIsLostFailsAndWhatAnswersBadlyKeepsUntilARemovalWasSent", "TestAC_002_5_AC_D23_AHostWithoutAGitThatCanBeAskedKeeps"}},
	{"the second manifest differs (kept, changed; put back)", []string{"TestAC_D15_BuildOutputThatChangesAfterItWasExcusedIsPutBack", "TestATargetWithoutWritePermissionIsRemovedOrLeftAsItWas", "TestAC_Race_AWriterByPathNeverLosesAByte"}},
	{"a mount inside, a link, a live process (kept, with its cause)", []string{"TestAC_D22_WhateverStandsInTheWayIsSeenBeforeAnythingMoves", "TestAMountInsideIsNeverEmptied"}},
	{"no frame on a living connection (kept, probe_failed; a removal failed)", []string{"TestAnyLoginShellCarriesAScriptAndGivesItsPathOrIsNoAnswer", "a script that ends by a signal has not answered",
		"TestAC_D3_WhatIsLostFailsAndWhatAnswersBadlyKeepsUntilARemovalWasSent"}},
	{"no exit status, the connection's end, no sign of life (failed, lost)", []string{"TestAServerThatDoesNotSayHowACommandEndedHasNotAnswered", "TestALostServerProcessIsALostConnection",
		"TestABlackHoleIsALostConnectionAndNeverALimit", "TestAnInventoryOrARemovalCutAtAnyByteIsNeverAnOutcome"}},
	{"the limit of a look on a living connection (kept, probe_timeout)", []string{"at its limit a probe is given up and killed"}},
	{"the limit of a removal (failed, and left to run)", []string{"at its limit a removal is given up and left to run"}},
	{"refused, no such name, a hop that refuses, too many sessions (failed, unreachable)", []string{"a port on which nothing listens is unreachable",
		"TestAHostThatHasNoAddressIsUnreachable", "TestFaultsBehindAHopAreToldAndEndInTime", "TestTheServersSessionLimitIsFound"}},
	{"a handshake that does not end (failed, unreachable)", []string{"a server that never speaks is given up in time"}},
	{"no key of any type is the pinned one (failed, host_key_mismatch)", []string{"TestAHostWithoutThePinnedKeyIsRefusedWithEveryKeyItShowed"}},
	{"the login is refused, or there is nothing to log in with (failed, auth_failed)", []string{"an identity that the host refuses is an authentication failure", "TestTheKeyComesFromWhereTheTargetSays"}},
	{"nothing is there, in a parent that can be read (removed after a begin, else kept)", []string{"TestB59_AnAbsentDirectoryIsRemovedOnlyWhereABeginIsRecorded", "TestAGreetingExpandsTheRootAndSeesWhatCanBeSeen"}},
	{"a parent that is missing or cannot be read (kept, or failed after a begin)", []string{"TestAGreetingExpandsTheRootAndSeesWhatCanBeSeen", "TestAC_D38_EveryLeftoverStateIsReadAndPutRight"}},
	{"a committed tombstone (finished without a look)", []string{"TestAC_D38_EveryLeftoverStateIsReadAndPutRight", "TestAHalfRemovedTreeIsFinishedWhateverItsDates"}},
	{"both names at once, or a name that was taken (failed, nothing touched)", []string{"TestAC_D38_EveryLeftoverStateIsReadAndPutRight", "TestOverlappingRemovalsLoseNothingWhateverTheirOrder"}},
	{"rm complains and nothing is left, or is content and something is (failed)", []string{"TestB52_B54_AnRmThatLiesOrFailsIsNoRemoval"}},
	{"our process is killed between any two questions", []string{"TestAC_005_3_AWorkerKilledBetweenAnyTwoQuestionsIsFinishedByTheNext", "TestAnAttemptKilledAnywhereIsFinishedByTheNext",
		"TestNothingIsLostOrDoneTwiceWhenTheWorkerIsKilledAtAnyMoment"}},
	{"the host goes down between rename and rm", []string{"TestAHostThatRestartsInTheMiddleOfARemovalIsFinishedByTheNextAttempt"}},

	// What an adapter must show.
	{"1 any login shell: the same answer, or none", []string{"TestAnyLoginShellCarriesAScriptAndGivesItsPathOrIsNoAnswer", "TestARecordedShellNamesThePath"}},
	{"2 every byte arrives, and nothing on standard input", []string{"TestPackedTextIsReadBackByPrintf", "a script arrives byte for byte, quotes and odd bytes included", "a script finds its standard input empty"}},
	{"3 an answer cut at any byte is no answer", []string{"TestAC_002_5_ASafeAnswerCutAnywhereIsNotSafe", "TestOnlyTheWholeAnswerToTheVeryQuestionIsARemoval", "TestAnAnswerCutAnywhereIsNotWhole",
		"TestAnAnswerCutAtAnyByteIsNeverSaid", "TestAConnectionCutAtAnyByteIsNeverSaid", "TestAnInventoryOrARemovalCutAtAnyByteIsNeverAnOutcome"}},
	{"4 a removal killed anywhere is finished, and nothing beside it changes", []string{"TestARemovalKilledAtAnyStepIsFinishedOrPutBackWhole", "TestAC_005_ARemovalKilledInTheMiddleOfRmIsFinishedAndNeverSkipped",
		"TestASettlementKilledAtAnyStepIsFinishedByTheNext"}},
	{"5 the pinned key is found or the host refused before a credential", []string{"TestThePinnedKeyIsFoundWhateverTheServerOffers", "TestAHostWithoutThePinnedKeyIsRefusedWithEveryKeyItShowed",
		"a host that shows another key is refused before any credential or command"}},
	{"6 silence, a black hole and a caller that leaves are bounded, and nothing is left running", []string{"a server that never speaks is given up in time", "TestFaultsBehindAHopAreToldAndEndInTime",
		"TestABlackHoleIsALostConnectionAndNeverALimit", "TestACancelledScriptReturnsAtOnceWhateverTheLineDoes", "TestNoGoroutineOutlivesItsConnection"}},
	{"7 a flood is bounded and leaves the connection usable", []string{"TestAFloodIsBoundedInMemoryAndLeavesTheConnectionUsable", "a MiB is an answer, and a byte more a flood that leaves the session usable"}},
	{"8 a server that allows one session", []string{"TestSessionOverARealServerThatAllowsOneSession", "TestTheServersSessionLimitIsFound"}},
	{"9 mounts, links, slashes, closed trees, foreign files, a full disk", []string{"TestAMountInsideIsNeverEmptied", "TestAC_D22_WhateverStandsInTheWayIsSeenBeforeAnythingMoves", "TestAC_003_4_AC_D16_AC_D30_TheTableOfPaths",
		"TestNamesOfEveryByteAndNestedClosedDirectoriesAreRemoved", "TestAFullDiskIsNoObstacle", "TestAFullDiskKeepsNothing"}},
	{"10 what is written between the verdict and the rename keeps the directory", []string{"TestAC_Race_AWriterByPathNeverLosesAByte", "TestTheWindowOfAWriterWithAnOpenDirectory"}},
	{"11 round trips are few and do not grow", []string{"TestRoundTripsAreFewAndDoNotGrowWithTheCheckouts", "TestTargetsOfOneHostShareAConnection"}},
	{"12 agent and file are both tried, the configured one first", []string{"TestTheKeyComesFromWhereTheTargetSays"}},
}

func TestEveryFaultOfTheTransportIsBroughtAboutByATest(t *testing.T) {
	named := named(t)
	for _, fault := range transport {
		if len(fault.tests) == 0 {
			t.Errorf("nothing brings about: %s", fault.row)
		}
		for _, name := range fault.tests {
			if !named[name] {
				t.Errorf("%s: there is no test %q", fault.row, name)
			}
		}
	}
}
