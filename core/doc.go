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
package core
