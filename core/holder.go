package core

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Beside a target lies at most one holder directory. Whoever makes it (mkdir)
// may remove the target, and its names alone say how far a removal came, so
// that a process killed at any instruction leaves what the next one reads. All
// work is done from inside the holder, by relative names: a script that sleeps
// until its holder is gone finds no directory to rename into.
//
//	g1, g2 ...  claims: dangling links "=KIND,PID,BORN,NODE,BOOT,TIME,ATTEMPT,JOB". Making
//	            one is exclusive and whole; the highest owns the holder. Links, not
//	            files: they need no free block, so a full disk can be cleared.
//	plan        dangling link "=DEVICE INODE open|closed": the target. closed: its owner
//	            had no write permission on it, which a rename needs.
//	rN.dir, rN.name, rN.file   a worktree registration to take out of its repository
//	mark        empty file, made before the manifest is compared: what is newer came later
//	q           the target, renamed, not yet compared
//	x           the target, compared and committed: to be removed
//
// The highest claim is alive when its process runs and is the one that claimed
// (start time). A host that restarted (boot id, start of process 1) has no live
// claim. A claim of another machine on a shared disk cannot be checked; it
// counts as alive for six hours.
//
//	names                   means                              settle does
//	live claim              a removal or settlement is at work  nothing: busy
//	no q, x, mark           nothing was moved, or all put back  drops the holder
//	q; no target            renamed, not committed              renames q back, drops
//	x and mark and plan     committed                           finishes x, registrations, drops
//	mark and plan alone     committed, the tree is gone         finishes registrations, drops
//	q beside the target, q and x, an unknown name, q or x that
//	is not the plan's       contradiction                       nothing: half_removed
//
// A target beside x is a new directory and not looked at. The order that keeps
// this true: claim, plan and registrations, target->q, mark, manifest, q->x, rm,
// registrations, then r*, mark, plan, claims (ours last), rmdir. Putting back
// removes the mark before q gets its name.
//
// A writer by absolute path finds its directory until the rename, and after it
// none: what it wrote before the manifest is seen by it. A writer that holds an
// open directory (and was not seen by the look for live processes) can lose what
// it writes between the manifest's visit of that directory and the end of rm:
// 0.2 s for 20 files and 5 s for 50,000, most of it rm, on two cores under a load of 15.
const holderPrefix = ".reclaim-"

// holderName is the holder's name in the tasks directory. It is made of the
// segment alone: the directory it lies in is the other half of the target's
// path, so that every spelling of a root leads to the same holder.
func holderName(segment string) string {
	sum := sha256.Sum256([]byte(segment))
	return holderPrefix + hex.EncodeToString(sum[:8])
}

var (
	//go:embed holder.sh
	holderSource string
	//go:embed greet.sh
	greetSource string
	//go:embed settle.sh
	settleSource string
	//go:embed remove.sh
	removeSource string
	//go:embed progress.sh
	progressSource string

	holderShell   = shell(holderSource)
	greetShell    = shell(greetSource)
	settleShell   = shell(settleSource)
	removeShell   = shell(removeSource)
	progressShell = shell(progressSource)
)

// holderScript is parameters (name and value in turn), prelude, shared functions
// and body as one program.
func holderScript(name string, limit time.Duration, body string, parameters ...string) Script {
	var b strings.Builder
	for i := 0; i+1 < len(parameters); i += 2 {
		b.WriteString(parameters[i] + "=" + quote(parameters[i+1]) + "\n")
	}
	b.WriteString(preludeShell)
	b.WriteString(manifestShell)
	b.WriteString(holderShell)
	b.WriteString(body)
	return Script{Name: name, Body: b.String(), Limit: limit}
}

// about names one question in its answer, so that the answer to another is not
// taken for it.
func about(q Query) string {
	b, _ := json.Marshal(q) // of words and numbers: it cannot fail
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// inWords turns a claim into words for a person.
func inWords(claim string) string {
	f := strings.Split(claim, ",")
	if len(f) < 8 {
		return fmt.Sprintf("a holder that does not say whose it is (%q)", claim)
	}
	since := f[5]
	if n, err := strconv.ParseInt(f[5], 10, 64); err == nil {
		since = "unix time " + strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s, attempt %s of job %s, process %s on %s since %s", f[0], f[6], f[7], f[1], f[3], since)
}

// claimant is the part of a claim that says for which attempt it is made.
func claimant(job string, attempt int) string {
	if job == "" || len(job) > 64 || strings.ContainsFunc(job, func(r rune) bool { return r == ',' || !plain(r) }) {
		sum := sha256.Sum256([]byte(job))
		job = hex.EncodeToString(sum[:8])
	}
	return strconv.Itoa(attempt) + "," + job
}
