package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Inventory asks, in one script and one round trip, what a target holds and what
// would be lost with it. The target is Root + "/tasks/" + Segment.
//
// Baseline is the digest of the launch's baseline, as the launch itself recorded
// it with the backend; empty where it recorded none, and then nothing in the
// directory can take its place.
type Inventory struct {
	Root     string `json:"root"` // expanded, absolute, as spelled; a link on the way to it is fine
	Segment  string `json:"segment"`
	Baseline string `json:"baseline,omitempty"`
	// Disposable names the kinds of build output that may go, as ReadDisposable
	// gives them. Empty: none, and the script and its answer know of none.
	Disposable string `json:"disposable,omitempty"`
}

// Evidence is what an inventory proved. Its zero value proves nothing.
type Evidence struct {
	Findings       []Finding  // every reason to keep, worst first; empty only where Complete
	Complete       bool       // every required record was there, well formed, and nothing contradicted
	Checkouts      []Checkout // every repository found, with its own verdict
	Bytes, Entries int64      // what removing frees: apparent size of regular files with one link, and the entries below the target
	Manifest       Manifest
	Excused        []Excused // build output that goes as well, by kind, in their order; part of Bytes and Entries
	Notes          []string  // seen and told, not blocking
}

// Safe reports whether nothing would be lost, and that this was proved.
func (e Evidence) Safe() bool {
	return e.Complete && len(e.Findings) == 0 && len(e.Checkouts) > 0 && e.Manifest.usable()
}

// Checkout is one repository of the target.
type Checkout struct {
	Path    string `json:"path"`    // below the target, "." for the target itself
	Kind    string `json:"kind"`    // primary, child, submodule, nested, bare, linked_worktree, vanished_worktree
	Verdict string `json:"verdict"` // safe or kept
	Reason  Reason `json:"reason"`
	Cause   Cause  `json:"cause"`
}

// Manifest is what compare-and-remove compares.
type Manifest struct {
	Device        string         `json:"device"` // of the target directory itself, as the host spells it
	Inode         string         `json:"inode"`
	Digest        string         `json:"digest"`
	Count         int64          `json:"count"`
	Outside       []string       `json:"outside,omitempty"`       // repository directories elsewhere whose state belongs to it, in order
	Registrations []Registration `json:"registrations,omitempty"` // exactly those to remove afterwards
}

// Registration is a linked worktree's entry in a repository that survives:
// CommonDir/worktrees/Name, whose file gitdir must still hold GitDirFile.
type Registration struct {
	CommonDir  string `json:"common_dir"`
	Name       string `json:"name"`
	GitDirFile string `json:"gitdir_file"`
}

func (m Manifest) usable() bool {
	return digits(m.Device) && digits(m.Inode) && hexDigest(m.Digest) && m.Count > 0
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func hexDigest(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// inventoryLimit is how long the inventory may run on a living connection.
const inventoryLimit = 120 * time.Second

// Script renders the question.
func (q Inventory) Script() Script {
	body := "root=" + quote(q.Root) + " segment=" + quote(q.Segment) + " baseline=" + quote(q.Baseline) + "\n" + preludeShell + manifestShell
	if q.Baseline != "" {
		body += shell(baselineSource)
	}
	if kinds := ReadDisposable(q.Disposable); kinds != "" {
		body += shell(woven(inventorySource, disposableParts(kinds)))
	} else {
		body += inventoryShell
	}
	return Script{Name: "inventory", Limit: inventoryLimit, Body: body}
}

// A row of the inventory: one kind of record. The shell function probe_PROBE in
// inventory.sh prints it; Judge refuses an answer in which a row that must be
// there is missing, doubled or not of its words, and reads it by keep.
type row struct {
	record string
	probe  string
	of     subject
	words  string // n number, t text, w bare word, * any bare words
	safe   string
	why    string
	keep   func(*reading, cells)
}

type subject int

const (
	wholeTarget  subject = iota // once
	everyRepo                   // once for each repository
	judgedRepo                  // once for each repository that proved to be itself
	workTree                    // the same, with a work tree
	noWorkTree                  // the same, without
	linkedTree                  // the same, a linked worktree
	settledTrees                // any number
)

func inventoryRows() []row {
	return []row{
		{"host", "host", wholeTarget, "twwt", "git 2.20 or newer", "an old git answers wrongly or writes", keepHost},
		{"shape", "shape", wholeTarget, "w", "directory", "links and missing parts make every other answer speak of something else", keepShape},
		{"identity", "manifest", wholeTarget, "ww", "device and inode", "what is removed must be what was judged", keepIdentity},
		{"tree", "manifest", settledTrees, "twnnnnnnnnn", "walked, nothing foreign, dark, newline-named, linked, locked", "one pass over every entry, taken before any judging", keepTree},
		{"outside", "manifest", settledTrees, "tw", "told", "a repository directory elsewhere belongs to the manifest", keepOutside},
		{"manifest", "manifest", wholeTarget, "wn", "a digest", "compare-and-remove", keepManifest},
		{"live", "live", wholeTarget, "wnnn", "0, no session alive, no odd pid file", "somebody is working there", keepLive},
		{"mounts", "mounts", wholeTarget, "w", "0", "a removal walks through mounts", keepMounts},
		{"borrowers", "borrowers", wholeTarget, "nn", "0 0", "a sibling that needs our objects or repository would break", keepBorrowers},
		{"worktrees", "worktrees", wholeTarget, "nnnn", "none elsewhere, locked or broken", "another directory's checkout would break", keepWorktrees},
		{"baseline", "baseline", wholeTarget, "w", "told, where a launch recorded one", "what its remotes had before any agent ran is not local", keepBaseline},
		{"repositories", "", wholeTarget, "n", "at most 400", "bounded", keepRepositories},
		{"finished", "", wholeTarget, "", "there", "the script came to its end", nil},
		{"repository", "", everyRepo, "wt", "told", "every repository at any depth", nil},
		{"checkout", "checkout", everyRepo, "w", "itself", "an enclosing or redirected repository answers for another tree", keepCheckout},
		{"registration", "registration", linkedTree, "wwwttt", "mutual, not locked", "the registration must be this directory's own", keepRegistration},
		{"operations", "operations", judgedRepo, "nn*", "none", "stopped work lives only in the git directory", keepOperations},
		{"settings", "settings", judgedRepo, "nn", "0 or 1, nothing odd", "filters must be overridden, fetch rules known", keepSettings},
		{"files", "files", workTree, "nnnnnnnnn", "exit 0 and nothing left after the excuses", "uncommitted, untracked and ignored content", keepFiles},
		{"hidden", "hidden", workTree, "nnnn", "no difference, no loose file", "index flags and submodule directories hide content from status", keepHidden},
		{"index", "files", noWorkTree, "n", "0", "what was staged in a submodule that is checked out no more", keepIndex},
		{"remotes", "remotes", judgedRepo, "nnnnn", "told", "only a remote that leads away proves a push", keepRemotes},
		{"refs", "refs", judgedRepo, "nnnnnnnn", "no stash, nothing loose, odd or dangling", "what is not a commit is not counted as unpushed", keepRefs},
		{"vouched", "vouched", judgedRepo, "nn", "told", "a local remote proves only what it still holds", nil},
		{"unpushed", "unpushed", judgedRepo, "nn", "0 0", "commits that no trusted tracking ref holds", keepUnpushed},
		{"abandoned", "unpushed", judgedRepo, "nn", "0 0", "tips that HEAD left by reset or checkout", keepAbandoned},
		{"judged", "", judgedRepo, "", "there", "this repository's probes came to their end", nil},
	}
}

// disposableRows are asked where kinds of build output may go.
func disposableRows() []row {
	return []row{
		{"heap", "heaps", settledTrees, "nwwnntt", "fit", "a tree is excused whole or not at all", nil},
		{"held", "files", settledTrees, "nnnnnw*", "nothing tracked or untracked, ignored by a tracked rule, beside its build file", "git's view of the same tree", nil},
		{"heaps", "heaps", wholeTarget, "n", "as many as there are records", "bounded, and whole", keepHeaps},
		{"holding", "files", workTree, "nn", "as many as there are records", "bounded, and whole", keepHolding},
	}
}

func (q Inventory) table() []row {
	if q.Disposable == "" {
		return plainTable
	}
	return wholeTable
}

var (
	plainTable = inventoryRows()
	wholeTable = append(inventoryRows(), disposableRows()...)
)

type cell struct {
	word   string
	text   string
	number int64
}

type cells []cell

func (v cells) n(i int) int64  { return v[i].number }
func (v cells) t(i int) string { return v[i].text }
func (v cells) w(i int) string { return v[i].word }

// reading is an answer being judged.
type reading struct {
	q        Inventory
	evidence Evidence
	rows     map[string]row
	once     map[string]cells // "record" or "record I"
	many     map[string][]cells
	samples  map[string][]string // "I what"
	heaps    map[int64]*heap     // trees that look like build output, by their number
	at       *repository         // whose record is being judged; nil for the whole target
	trees    int
	lines    int64
}

type repository struct {
	index       string
	path        string
	kind        string
	findings    []Finding
	noRemote    bool
	noneOutside bool
}

// maxFindings bounds what is told; the rest is counted in the last of them.
const maxFindings = 60

// Judge reads the answer. It is total: whatever is missing, odd, doubled or
// unknown makes the evidence incomplete and adds a finding.
func (q Inventory) Judge(said Said) Evidence {
	r := &reading{q: q, rows: map[string]row{}, once: map[string]cells{}, many: map[string][]cells{}, samples: map[string][]string{}}
	r.evidence.Complete = true
	for _, row := range q.table() {
		r.rows[row.record] = row
	}
	if said.Exit != 0 {
		r.odd("the script ended with status %d", said.Exit)
	}
	records, err := parseRecords("inventory", said.Body)
	if err != nil {
		r.odd("%v", err)
	}
	if n := len(records); n > 0 {
		if last := records[n-1]; last.kind == "sum" && slices.Equal(last.fields, cksum(said.Body)) {
			records = records[:n-1]
		} else {
			r.odd("it does not carry its own sum")
		}
	}
	for _, rec := range records {
		r.read(rec)
	}
	if r.evidence.Complete {
		r.judge()
	}
	e := r.evidence
	slices.SortStableFunc(e.Findings, func(a, b Finding) int { return a.Reason.rank() - b.Reason.rank() })
	if more := len(e.Findings) - maxFindings; more > 0 {
		e.Findings = e.Findings[:maxFindings:maxFindings]
		e.Findings[maxFindings-1].Detail += fmt.Sprintf(" (and %d more findings)", more)
	}
	return e
}

// crcTable is what eight bits do to POSIX's check value.
var crcTable = func() (table [256]uint32) {
	for i := range table {
		crc := uint32(i) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ 0x04c11db7
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// cksum is what POSIX cksum says of all lines but the last two: the check value
// and the number of bytes. body holds a record at least.
func cksum(body string) []string {
	lines := strings.SplitAfter(body, "\n")
	body = strings.Join(lines[:len(lines)-3], "")
	var crc uint32
	feed := func(b byte) { crc = crc<<8 ^ crcTable[byte(crc>>24)^b] }
	for i := range len(body) {
		feed(body[i])
	}
	for n := len(body); n > 0; n >>= 8 {
		feed(byte(n))
	}
	return []string{fmt.Sprint(^crc), fmt.Sprint(len(body))}
}

func (r *reading) odd(format string, args ...any) {
	r.evidence.Complete = false
	r.at = nil
	r.keep(ProbeFailed, ProbeError, nil, "the inventory's answer cannot be relied on: %s", fmt.Sprintf(format, args...))
}

func (r *reading) keep(reason Reason, cause Cause, cure []Remedy, format string, args ...any) {
	f := Finding{Reason: reason, Cause: cause, Detail: format, Cure: cure}
	if len(args) > 0 {
		f.Detail = fmt.Sprintf(format, args...)
	}
	if r.at != nil {
		f.Checkout = r.at.path
		r.at.findings = append(r.at.findings, f)
	}
	r.evidence.Findings = append(r.evidence.Findings, f)
}

func (r *reading) note(format string, args ...any) {
	r.evidence.Notes = append(r.evidence.Notes, fmt.Sprintf(format, args...))
}

// read takes one record apart by its row.
func (r *reading) read(rec record) {
	if rec.kind == "sample" {
		if len(rec.fields) != 3 {
			r.odd("a sample of %d words", len(rec.fields))
			return
		}
		shown, ok := text(rec.fields[2])
		if _, index := number(rec.fields[0]); !ok || (!index && rec.fields[0] != "-") {
			r.odd("a sample that cannot be read")
			return
		}
		key := rec.fields[0] + " " + rec.fields[1]
		r.samples[key] = append(r.samples[key], shown)
		return
	}
	row, known := r.rows[rec.kind]
	if !known {
		r.odd("a record of the unknown kind %q", rec.kind)
		return
	}
	key, fields := rec.kind, rec.fields
	if row.of != wholeTarget && row.of != settledTrees {
		if len(fields) == 0 {
			r.odd("a record %q of no repository", rec.kind)
			return
		}
		if _, ok := number(fields[0]); !ok {
			r.odd("a record %q of the repository %q", rec.kind, fields[0])
			return
		}
		key, fields = rec.kind+" "+fields[0], fields[1:]
	}
	got := make(cells, 0, len(fields))
	words, open := strings.CutSuffix(row.words, "*")
	if len(fields) < len(words) || (!open && len(fields) > len(words)) {
		r.odd("a record %q of %d words", rec.kind, len(fields))
		return
	}
	for i, field := range fields {
		v, ok := cell{word: field}, true
		if i < len(words) {
			switch words[i] {
			case 'n':
				v.number, ok = number(field)
			case 't':
				v.text, ok = text(field)
			}
		}
		if !ok {
			r.odd("word %d of a record %q", i+1, rec.kind)
			return
		}
		got = append(got, v)
	}
	if row.of == settledTrees {
		r.many[key] = append(r.many[key], got)
		return
	}
	if _, twice := r.once[key]; twice {
		r.odd("two records %q", key)
		return
	}
	r.once[key] = got
}

// judge goes through the table.
func (r *reading) judge() {
	used := map[string]bool{}
	take := func(row row, index string) {
		key := row.record
		if index != "" {
			key += " " + index
		}
		got, there := r.once[key]
		used[key] = true
		if !there {
			r.odd("no record %q", key)
			return
		}
		if row.keep != nil {
			row.keep(r, got)
		}
	}
	rows := r.q.table()
	for _, row := range rows {
		if row.record == "host" || row.record == "shape" {
			take(row, "")
		}
	}
	if shape, ok := r.once["shape"]; ok && shape.w(0) != "directory" {
		if len(r.once) != 2 || len(r.many) != 0 {
			r.odd("records of a target that is not there")
		}
		return
	}
	for _, row := range rows {
		switch {
		case row.of == settledTrees:
			for _, got := range r.many[row.record] {
				if row.keep != nil {
					row.keep(r, got)
				}
			}
		case row.record == "baseline" && r.q.Baseline == "": // not asked for, and so no record of it may be there
		case row.of == wholeTarget && row.record != "host" && row.record != "shape":
			take(row, "")
		}
	}
	if outside := len(r.many["outside"]); r.trees != outside+1 {
		r.odd("%d listings for %d directories", r.trees, outside+1)
	}
	if r.lines != r.evidence.Manifest.Count {
		r.odd("a manifest of %d lines over listings of %d", r.evidence.Manifest.Count, r.lines)
	}
	count, ok := r.once["repositories"]
	if !ok {
		return
	}
	root := false
	for i := int64(1); i <= min(count.n(0), maxRepositories); i++ {
		index := fmt.Sprint(i)
		r.at = nil
		head, there := r.once["repository "+index]
		if !there {
			r.odd("no record %q", "repository "+index)
			continue
		}
		used["repository "+index] = true
		r.at = &repository{index: index, kind: head.w(0), path: head.t(1)}
		root = root || r.at.path == "."
		if !slices.Contains(kinds, r.at.kind) {
			r.odd("a repository of the kind %q", r.at.kind)
			continue
		}
		here := r.at
		for _, row := range rows {
			if row.record == "checkout" {
				take(row, index)
			}
		}
		if state, ok := r.once["checkout "+index]; ok && state.w(0) == "itself" {
			_, bare := r.once["index "+index]
			_, linked := r.once["registration "+index]
			if linked != (here.kind == "linked_worktree") {
				r.odd("a registration that fits no linked worktree")
			}
			for _, row := range rows {
				r.at = here
				switch {
				case row.of == judgedRepo, row.of == workTree && !bare, row.of == noWorkTree && bare, row.of == linkedTree && linked:
					take(row, index)
				}
			}
			if bare && here.kind != "bare" && here.kind != "submodule" && here.kind != "vanished_worktree" {
				r.odd("a checkout without a work tree")
			}
		}
		c := Checkout{Path: here.path, Kind: here.kind, Verdict: "safe"}
		if len(here.findings) > 0 {
			worst := slices.MinFunc(here.findings, func(a, b Finding) int { return a.Reason.rank() - b.Reason.rank() })
			c.Verdict, c.Reason, c.Cause = "kept", worst.Reason, worst.Cause
		}
		r.evidence.Checkouts = append(r.evidence.Checkouts, c)
	}
	r.at = nil
	if !root {
		r.odd("no record of the target's own repository")
	}
	for _, key := range slices.Sorted(maps.Keys(r.once)) { // of several always the same is told
		if !used[key] {
			r.odd("a record %q of nothing that was found", key)
			break
		}
	}
	// A repository that ours speaks of and that needs ours is told where nothing else keeps.
	if lent, hosted := r.samples["- named_borrower"], r.samples["- named_dependant"]; len(r.evidence.Findings) == 0 {
		r.samples["- borrower"], r.samples["- dependant"] = lent, hosted
		keepBorrowers(r, cells{{number: int64(len(lent))}, {number: int64(len(hosted))}})
	}
	r.excuse()
	if r.evidence.Complete && len(r.evidence.Findings) == 0 && !r.evidence.Manifest.usable() {
		r.odd("no usable manifest")
	}
}

// maxRepositories is as many as one inventory judges.
const maxRepositories = 400

var kinds = []string{"primary", "child", "submodule", "nested", "bare", "linked_worktree", "vanished_worktree"}

// where is the absolute path of the repository being judged.
func (r *reading) where() string {
	top := strings.TrimRight(r.q.Root, "/") + "/tasks/" + r.q.Segment
	switch {
	case r.at == nil || r.at.path == ".":
		return top
	case strings.HasPrefix(r.at.path, "/"):
		return r.at.path
	}
	return top + "/" + r.at.path
}

// git is a command line for a person, in the repository being judged.
func (r *reading) git(rest string) string { return "git -C " + quote(r.where()) + " " + rest }

// shown is up to three samples of one kind, in words.
func (r *reading) shown(what string) string {
	index := "-"
	if r.at != nil {
		index = r.at.index
	}
	samples := r.samples[index+" "+what]
	if len(samples) == 0 {
		return ""
	}
	var quoted []string
	for _, s := range samples[:min(3, len(samples))] {
		if what == "said" { // git's first line; what it advises below is not ours to advise
			s, _, _ = strings.Cut(s, "\n")
		}
		quoted = append(quoted, fmt.Sprintf("%q", s))
	}
	return " (" + strings.Join(quoted, ", ") + ")"
}
