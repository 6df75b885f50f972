// Package core decides whether one finished task's directory may be removed. It
// is arithmetic: it touches nothing, waits for nothing, and gives the same
// answer for the same input.
//
// One attempt at one target is a conversation. The caller holds a Snapshot (what
// was frozen when the attempt began) and an empty Transcript, and repeats:
//
//	for {
//		switch step := core.Next(snapshot, transcript).(type) {
//		case core.Ask:
//			answer := put(step.Query) // to storage, to the policy, or as a script to the host
//			transcript = append(transcript, core.Exchange{Query: step.Query, Answer: answer})
//		case core.Done:
//			return step.Outcome // Removed, Skipped or Failed
//		case core.Withdraw:
//			return nil // cancelled; nothing was touched
//		}
//	}
//
// The caller has four duties: to put every question and no other; to record
// whatever came back, also when nothing clear did; to make the intent durable
// before it answers Begin with BeginRecorded; and never to reuse a transcript for
// another attempt. In return Next promises that Remove is asked only after every
// answer before it was one well-formed yes, and that whatever it decided can be
// decided again offline by Replay.
//
// A question to a host renders its own script (HostQuery.Script) and its own
// answer is judged here, so the shell that runs on somebody's machine, the
// reading of what it said, and the rule that follows from it stand together.
//
// # What an inventory can know
//
// Decided, by asking the host: whatever git can tell of a repository that lies in
// the directory, at any depth and of any kind: its files against its last commit,
// with every setting and index flag that blinds status taken into account; every
// ref, HEAD, stash, stopped operation and what HEAD's log left; which remotes lead
// outside; who borrows its objects or is checked out from it; mounts, links,
// owners, permissions, and the processes of this account.
//
//	kept as inconclusive                         what would settle it
//	pushed, but no tracking ref says so          git fetch
//	a remote that is gone, or was renamed        git remote add, git fetch
//	squash-merged, and the branch pruned         delete the branch
//	a tag that did not come with the clone       git push --tags, or the baseline of the launch
//	what this account cannot read, or not own    permission, or the other account
//	a lock file                                  whoever holds it ends
//	more than 400 repositories, 1 MiB of answer  a person looks
//	git older than 2.20, or a newer format       another git
//	the line-ending phantom                      git add --renormalize
//
// Not to be seen at all, and so neither kept nor known: objects borrowed by a
// repository outside the root; a tracking ref somebody forged, or whose remote has
// gone back since; files of LFS that were never uploaded; files put into .git by
// hand; dropped stashes; processes of other accounts; a git on the PATH that lies.
//
// # What a removal cannot see
//
// Who writes by a path loses nothing: until the rename the second manifest sees
// it, after it there is no such path. A process that has a directory below the
// target open keeps it over the rename. It is looked for once more then, and found
// if it is this account's and the host shows processes. One that is not found can
// lose what it writes between the reading of that directory by the second manifest
// and the end of rm, which is as long as both take: of a directory of a dozen
// entries about an eighth of the removal, some 100 ms on a busy machine (7 of 60
// files made at random moments; TestTheWindowOfAWriterWithAnOpenDirectory).
//
// Files of a repository's object store are compared without what sharing them by
// hard links changes (manifest.sh): links, ctime, and where a digest names one that
// nobody may write, mtime.
package core
