// Package simulation is a world in which the real core, phase and worker run
// against ports that are all simulated: hosts with a file system and git,
// storage, the network, the clock, and people. It holds tests only.
//
// # One seed, one world
//
// Everything happens inside one testing/synctest bubble. Whatever a worker or a
// process on a host does that another could notice stops at a gate; when
// all are stopped there, the scheduler lets one go, lets time pass, or has
// something happen: an agent writes, a person un-archives, a host crashes, a
// connection breaks, we are killed. It chooses by the seed alone, so that one
// seed is one history, to the byte. After a stormy time everything heals, and
// every job must end.
//
// # The model
//
// A directory is a tree with an inode, a version that every change moves (its
// ctimes), repositories and parts to remove. A repository has commits with
// parents, refs, HEAD, tips that HEAD left, files in one of six states, a stopped
// operation. A remote is a set of commits; tracking refs follow a push. What is at
// risk is computed from that alone: files that differ from a commit, and commits
// that no remote outside has. The scripts are programs of a few steps over the
// same state, answering in core's records: what they may do at each step
// is the state table in core's holder.go.
//
// TestTheModelOfGitSaysWhatGitSays holds the model against git: every kind of work
// and every state the model has is also made in a real checkout (a clone, a linked
// worktree, a clone inside a clone), and the engine must come to the same verdict
// by the model's answer as by the real inventory script's. Its long form does every
// three kinds in a row. Mounts, foreign owners, borrowers, processes and the steps
// of a removal are modelled and not held against a host here: core's tests of the
// scripts do that.
//
// Left out, because the design admits the loss: a process nobody can see that
// writes by a relative path while its directory is renamed; a remote that was
// rewound or lies about what it holds. A host may garble, cut, double and
// mix up its answers; it does not forge a whole, right answer to the very question
// it was asked.
//
// # What must hold
//
// After every step: no byte at risk is gone; removed is only said of what is
// gone; a directory of a task that is not terminal is untouched, and so is one
// that another task had a right to, or whose profile was off, at the last look;
// at most one removal of a directory is at work; no leftover is forgotten;
// siblings, registrations of others and the helper are untouched; every record
// replays to its outcome; a job is given up at its eighth failure and not before, and a
// hold is none. In the end: every job has ended. The breakages show
// that each of these can fail.
package simulation
