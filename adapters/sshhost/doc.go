// Package sshhost runs scripts on hosts reached over SSH.
//
// A host is proved by its pinned fingerprint before any credential is sent, the
// hops on the way to it by known_hosts. A script goes as one exec request, whole
// or not at all, never on standard input, so that the account's login shell only
// ever parses one line that means the same in every shell. What comes of it is
// one of three answers: it said something, framed from its first byte to its
// last; nobody knows; or it certainly did not run.
//
// One connection carries several scripts at once, and a Pool shares it between
// the targets of one host. Everything has a deadline, and no goroutine outlives
// the connection it serves.
package sshhost
