package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JobSnapshot is a job row's resource_snapshot. It is kept as the bytes that
// were read: an edit changes the edited target's keys and nothing else, so that
// what another version of the host wrote survives. Edits return a new value.
type JobSnapshot struct {
	raw         []byte
	environment *Environment
	profiles    []string
	entries     []entry
}

// JobTarget is one distinct directory of a job snapshot with what is recorded
// about it.
type JobTarget struct {
	Target     Target        // Enabled only where every entry of the directory is; Disposable what all of them allow
	Outcome    string        // removed, skipped or failed; empty before the first attempt ended
	Reason     Reason        // with skipped
	Cause      Cause         // with skipped
	Fault      Fault         // with failed
	Final      bool          // with failed
	Detail     string        // of the outcome
	Cure       []Remedy      // of the outcome
	Bytes      int64         // of the directory, as the last inventory of it found; 0: not known
	Begun      int           // the attempt that last recorded its begin; 0 when none did
	BegunUntil int64         // with Begun: until when its removal may start, by the host's clock; 0 where none was recorded
	Profiles   []string      // executor profiles the directory was launched by, where the capture noted them
	Uncounted  int           // attempts at the job that are no tries of it (JobSnapshot.Tries)
	Hooks      []SessionHook // how the sessions' cleanup scripts ended in it, one a session
	Baseline   string        // digest of the launch's baseline; empty where none is recorded or launches disagree
	Notes      []string      // what people should know, such as launches that disagreed about the shell
	Invalid    string        // why the target cannot be acted on; empty when it can
	Unreadable bool          // with Invalid: where it leads cannot be told, so it may lead to any directory
}

// Settled reports whether the job has nothing left to do for the target.
func (t JobTarget) Settled() bool { return t.Outcome == OutcomeRemoved || t.Outcome == OutcomeSkipped }

// entry is one element of ssh_task_dirs.
type entry struct {
	start, end int // in the snapshot's bytes
	object     bool
	JobTarget
}

var (
	snapshotKeys    = []string{"ssh_task_dirs", "task_environment"}
	environmentKeys = []string{"id", "task_id", "executor_profile_id"}
	targetKeys      = []string{"host", "port", "user", "host_fingerprint", "identity_source", "identity_file", "proxy_jump", "shell",
		"workdir_root", "task_dir", "enabled", "outcome", "skip_reason", "detail", "reclaim"}
	placeKeys   = []string{"host", "host_fingerprint", "task_dir"} // what says where a target leads
	reclaimKeys = []string{"baseline", "begun", "begun_until", "bytes", "cause", "cure", "disposable", "fault", "final", "hooks", "notes", "profiles", "uncounted"}
)

// maxDetail bounds every text we write into a row, in bytes.
const maxDetail = 2048

// ParseJobSnapshot reads a resource_snapshot. What cannot be read as a whole is
// an error and never an empty list; what cannot be read of one target makes
// that target Invalid. No ssh_task_dirs (a row from before the feature) is a
// snapshot without targets.
func ParseJobSnapshot(raw []byte) (JobSnapshot, error) {
	if !json.Valid(raw) {
		return JobSnapshot{}, errors.New("the job snapshot is no JSON")
	}
	s := JobSnapshot{raw: bytes.Clone(raw)}
	if isNull(bytes.TrimSpace(raw)) {
		return s, nil
	}
	all, err := members(s.raw)
	if err != nil {
		return JobSnapshot{}, fmt.Errorf("the job snapshot: %w", err)
	}
	if why := ambiguous(all, snapshotKeys); why != "" {
		return JobSnapshot{}, errors.New("the job snapshot: " + why)
	}
	if m, ok := find(all, "task_environment"); ok && !isNull(m.value(s.raw)) {
		if err := s.readEnvironment(m.value(s.raw)); err != nil {
			return JobSnapshot{}, fmt.Errorf("the job snapshot's task_environment: %w", err)
		}
	}
	m, ok := find(all, "ssh_task_dirs")
	if !ok || isNull(m.value(s.raw)) {
		return s, nil
	}
	places, err := elements(m.value(s.raw))
	if err != nil {
		return JobSnapshot{}, fmt.Errorf("the job snapshot's ssh_task_dirs: %w", err)
	}
	for _, place := range places {
		e := readEntry(m.value(s.raw)[place[0]:place[1]])
		e.start, e.end = m.valStart+place[0], m.valStart+place[1]
		s.entries = append(s.entries, e)
	}
	return s, nil
}

func (s *JobSnapshot) readEnvironment(raw []byte) error {
	all, err := members(raw)
	if err != nil {
		return err
	}
	if why := ambiguous(all, environmentKeys); why != "" {
		return errors.New(why)
	}
	var fields [3]string
	for i, name := range environmentKeys {
		if fields[i], err = textOf(all, raw, name); err != nil {
			return err
		}
		fields[i] = strings.TrimSpace(fields[i])
	}
	s.environment = &Environment{ID: fields[0], TaskID: fields[1]}
	if fields[2] != "" {
		s.profiles = []string{fields[2]}
	}
	return nil
}

func readEntry(raw []byte) entry {
	all, err := members(raw)
	if err != nil {
		return entry{JobTarget: JobTarget{Invalid: "the entry is " + err.Error(), Unreadable: true}}
	}
	e := entry{object: true}
	refuse := func(why string) {
		if e.Invalid == "" && why != "" {
			e.Invalid = why
		}
	}
	refuse(ambiguous(all, targetKeys))
	read := func(name string) string {
		s, err := textOf(all, raw, name)
		if err != nil {
			refuse(err.Error())
		}
		return s
	}
	e.Target = Target{
		Host: strings.TrimSpace(read("host")), User: strings.TrimSpace(read("user")),
		Fingerprint:    strings.TrimSpace(read("host_fingerprint")),
		IdentitySource: strings.TrimSpace(read("identity_source")), IdentityFile: strings.TrimSpace(read("identity_file")),
		ProxyJump: strings.TrimSpace(read("proxy_jump")), Shell: strings.TrimSpace(read("shell")),
		WorkdirRoot: read("workdir_root"), TaskDir: read("task_dir"),
	}
	if e.Target.Port, err = port(all, raw); err != nil {
		refuse(err.Error())
	}
	if e.Target.Enabled, err = truth(all, raw, "enabled"); err != nil {
		refuse(err.Error())
	}
	e.Outcome, e.Reason, e.Detail = read("outcome"), Reason(read("skip_reason")), read("detail")
	e.Unreadable = e.Target.TaskDir == "" || ambiguous(all, placeKeys) != "" ||
		slices.ContainsFunc(placeKeys, func(name string) bool { _, err := textOf(all, raw, name); return err != nil })
	switch {
	case e.Target.Host == "":
		refuse("the target names no host")
	case e.Target.TaskDir == "":
		refuse("the target names no directory")
	case strings.TrimSpace(e.Target.TaskDir) != e.Target.TaskDir:
		// The host trims what it records: such a name may have been another directory's.
		refuse("the task directory begins or ends with white space, so which directory is meant cannot be told")
	case !slices.Contains([]string{"", OutcomeRemoved, OutcomeSkipped, OutcomeFailed}, e.Outcome):
		refuse(fmt.Sprintf("the recorded outcome %.80q is none this version knows", e.Outcome))
	}
	if m, ok := find(all, "reclaim"); ok && !isNull(m.value(raw)) {
		if err := e.readReclaim(m.value(raw)); err != nil {
			refuse("reclaim: " + err.Error())
		}
	}
	return e
}

// port takes an integer, a float that is one, and a numeric string; absent and
// null are 0.
func port(all []member, raw []byte) (int, error) {
	m, ok := find(all, "port")
	if !ok || isNull(m.value(raw)) {
		return 0, nil
	}
	number := string(m.value(raw))
	if number[0] == '"' {
		number, _ = textOf(all, raw, "port")
		if number = strings.TrimSpace(number); number == "" {
			return 0, nil
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		f, floatErr := strconv.ParseFloat(number, 64)
		if n = int(f); floatErr != nil || float64(n) != f {
			return 0, errors.New(`"port" is no number of a port`)
		}
	}
	if n < 0 || n > 65535 {
		return 0, fmt.Errorf(`"port" is %d, no number of a port`, n)
	}
	return n, nil
}

func (e *entry) readReclaim(raw []byte) error {
	all, err := members(raw)
	if err != nil {
		return err
	}
	if why := ambiguous(all, reclaimKeys); why != "" {
		return errors.New(why)
	}
	if m, ok := find(all, "begun"); ok && !isNull(m.value(raw)) {
		if e.Begun, err = strconv.Atoi(string(m.value(raw))); err != nil || e.Begun < 0 {
			// An intent that cannot be read is still an intent.
			e.Begun = 1
			return errors.New(`"begun" is no attempt`)
		}
	}
	if m, ok := find(all, "begun_until"); ok && !isNull(m.value(raw)) {
		if e.BegunUntil, err = strconv.ParseInt(string(m.value(raw)), 10, 64); err != nil {
			return errors.New(`"begun_until" is no time`)
		}
	}
	if m, ok := find(all, "bytes"); ok {
		if n, err := strconv.ParseInt(string(m.value(raw)), 10, 64); err == nil && n > 0 {
			e.Bytes = n // it decides nothing, so one that cannot be read is as good as none
		}
	}
	if m, ok := find(all, "uncounted"); ok {
		if n, err := strconv.Atoi(string(m.value(raw))); err == nil && n > 0 {
			e.Uncounted = n // one that cannot be read counts every attempt
		}
	}
	cause, err := textOf(all, raw, "cause")
	if err != nil {
		return err
	}
	fault, err := textOf(all, raw, "fault")
	if err != nil {
		return err
	}
	disposable, err := textOf(all, raw, "disposable")
	if err != nil {
		return err
	}
	e.Target.Disposable = ReadDisposable(disposable)
	e.Cause, e.Fault = Cause(cause), Fault(fault)
	if e.Baseline, err = textOf(all, raw, "baseline"); err != nil {
		return err
	}
	if e.Final, err = truth(all, raw, "final"); err != nil {
		return err
	}
	for _, list := range []struct {
		name string
		into any
	}{{"cure", &e.Cure}, {"hooks", &e.Hooks}, {"notes", &e.Notes}, {"profiles", &e.Profiles}} {
		if m, ok := find(all, list.name); ok {
			if json.Unmarshal(m.value(raw), list.into) != nil {
				return fmt.Errorf("%q is of another type", list.name)
			}
		}
	}
	return nil
}

// Bytes is the snapshot as it stands in the row. The caller must not write into
// it.
func (s JobSnapshot) Bytes() []byte { return s.raw }

// Environment is the snapshot's copy of the environment row, nil when it holds
// none.
func (s JobSnapshot) Environment() *Environment {
	if s.environment == nil {
		return nil
	}
	copied := *s.environment
	return &copied
}

// Profiles are the executor profiles the snapshot names for t: those that the
// entries of its directory note, whatever their user, and the environment's. Empty
// when it names none.
func (s JobSnapshot) Profiles(t Target) []string {
	all := slices.Clone(s.profiles)
	for _, e := range s.entries {
		if e.key() == (entry{JobTarget: JobTarget{Target: t}}).key() || sameDirectory(e.Target, t) {
			all = append(all, e.Profiles...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// directory is what makes two entries the same target: host, port, user and
// directory, with the host's case folded and the default port filled in.
type directory struct {
	host    string
	port    int
	user    string
	taskDir string
}

func (e entry) key() directory {
	t := e.Target
	return directory{host: foldHost(t.Host), port: orSSH(t.Port), user: t.User, taskDir: squeezeSlashes(t.TaskDir)}
}

func foldHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

func orSSH(port int) int {
	if port == 0 {
		return 22
	}
	return port
}

// squeezeSlashes drops redundant and trailing slashes (D30).
func squeezeSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// sameDirectory says that two targets may be one directory whatever their user,
// name or port: one launch without the opt-in then holds for both.
func sameDirectory(a, b Target) bool {
	if !slices.Equal(namesOf(a.TaskDir), namesOf(b.TaskDir)) {
		return false
	}
	pin := canonicalPin(a.Fingerprint)
	return canonicalHost(a.Host) == canonicalHost(b.Host) || pin != "" && pin == canonicalPin(b.Fingerprint)
}

// Targets lists the snapshot's distinct directories in order. Of several
// entries of one directory the first (the most recently updated launch) gives
// everything but the opt-in and the kinds of build output, which all of them
// must have given; it is removed
// only where all of them say so, and begun where any of them says so.
func (s JobSnapshot) Targets() []JobTarget {
	var targets []JobTarget
	at := map[directory]int{}
	for _, e := range s.entries {
		i, merged := at[e.key()]
		if !merged {
			at[e.key()] = len(targets)
			t := e.JobTarget
			t.Cure, t.Notes, t.Profiles = slices.Clone(t.Cure), slices.Clone(t.Notes), slices.Clone(t.Profiles)
			targets = append(targets, t)
			continue
		}
		targets[i].merge(e.JobTarget)
	}
	for i := range targets {
		if targets[i].Baseline == disputed {
			targets[i].Baseline = ""
		}
		for _, e := range s.entries {
			if sameDirectory(e.Target, targets[i].Target) {
				targets[i].Target.Enabled = targets[i].Target.Enabled && e.Target.Enabled
				targets[i].Target.Disposable = BothDisposable(targets[i].Target.Disposable, e.Target.Disposable)
			}
		}
	}
	return targets
}

func (t *JobTarget) merge(other JobTarget) {
	if t.Invalid == "" {
		t.Invalid = other.Invalid
	}
	t.Unreadable = t.Unreadable || other.Unreadable
	t.Begun, t.BegunUntil = max(t.Begun, other.Begun), max(t.BegunUntil, other.BegunUntil)
	t.Bytes, t.Uncounted = max(t.Bytes, other.Bytes), max(t.Uncounted, other.Uncounted)
	switch {
	case t.Baseline == "":
		t.Baseline = other.Baseline
	case other.Baseline != "" && other.Baseline != t.Baseline:
		t.Baseline = disputed
	}
	if left(other.Outcome) > left(t.Outcome) {
		t.Outcome, t.Reason, t.Cause, t.Fault, t.Final, t.Detail, t.Cure =
			other.Outcome, other.Reason, other.Cause, other.Fault, other.Final, other.Detail, slices.Clone(other.Cure)
	}
	for _, hook := range other.Hooks {
		if !slices.ContainsFunc(t.Hooks, func(h SessionHook) bool { return h.SessionID == hook.SessionID }) {
			t.Hooks = append(slices.Clip(t.Hooks), hook)
		}
	}
	t.Profiles = append(t.Profiles, other.Profiles...)
	t.Notes = append(t.Notes, other.Notes...)
	t.Notes = append(t.Notes, disagreements(t.Target, other.Target)...)
}

// left is how much an outcome leaves to be done, so that of two the one counts
// that says less was done.
func left(outcome string) int {
	switch outcome {
	case OutcomeRemoved:
		return 0
	case OutcomeSkipped:
		return 1
	}
	return 2
}

// disputed stands for a baseline while entries that disagree about it are merged.
const disputed = "disputed"

// disagreements tells where two launches into one directory differ in what
// decides how it is judged (D34).
func disagreements(kept, other Target) (notes []string) {
	for _, field := range []struct{ name, kept, other string }{
		{"workdir root", kept.WorkdirRoot, other.WorkdirRoot},
		{"shell", kept.Shell, other.Shell},
		{"host fingerprint", kept.Fingerprint, other.Fingerprint},
	} {
		if field.kept != field.other {
			notes = append(notes, fmt.Sprintf("launches into this directory disagree about the %s: %.200q, the most recent, is used, not %.200q", field.name, field.kept, field.other))
		}
	}
	return notes
}

// WithBegun records the intent to remove a target's directory. A skip that an
// earlier attempt left there is no longer so. An error says that the snapshot
// holds no such target, that it says another thing of it now than the attempt was
// made from (somebody wrote to the row meanwhile), or that it cannot hold the
// intent.
func (s JobSnapshot) WithBegun(q Begin) (JobSnapshot, error) {
	begun, err := s.edited(q.Target, func(e entry, raw []byte) ([]byte, error) {
		until := max(q.NotAfter, e.BegunUntil) // an earlier one may be allowed to start later
		changes := []change{{"begun", []byte(strconv.Itoa(q.Attempt))}}
		if until > 0 {
			changes = append(changes, change{"begun_until", []byte(strconv.FormatInt(until, 10))})
		}
		if e.Outcome == OutcomeSkipped {
			var err error
			if raw, err = edit(raw, change{"outcome", nil}, change{"skip_reason", nil}, change{"detail", nil}); err != nil {
				return nil, err
			}
			changes = append(changes, change{"cause", nil}, change{"cure", nil})
		}
		return editReclaim(raw, changes...)
	})
	if err != nil {
		return s, err
	}
	key := (entry{JobTarget: JobTarget{Target: q.Target}}).key()
	for i, t := range s.Targets() {
		switch {
		case (entry{JobTarget: t}).key() != key:
		case t.Invalid != "":
			return s, fmt.Errorf("the job snapshot's directory %.200q cannot be acted on any more: %s", q.Target.TaskDir, t.Invalid)
		case t.Target != q.Target:
			return s, fmt.Errorf("the job snapshot says another thing of the directory %.200q now than when the attempt was made from it", q.Target.TaskDir)
		case begun.Targets()[i].Begun != q.Attempt:
			return s, fmt.Errorf("the job snapshot does not hold the intent at the directory %.200q", q.Target.TaskDir)
		}
	}
	return begun, nil
}

// WithHook records how a session's cleanup script ended in target's directory,
// in place of an earlier ending. An error says that the snapshot holds no such
// target.
func (s JobSnapshot) WithHook(target Target, hook SessionHook) (JobSnapshot, error) {
	hook.Detail = clipped(hook.Detail, maxDetail)
	return s.edited(target, func(e entry, raw []byte) ([]byte, error) {
		hooks := slices.DeleteFunc(slices.Clone(e.Hooks), func(h SessionHook) bool { return h.SessionID == hook.SessionID })
		value, _ := json.Marshal(append(hooks, hook)) // of texts: it cannot fail
		return editReclaim(raw, change{"hooks", value})
	})
}

// WithOutcome folds an outcome into target's entries, in the host's words. A skip
// ends a recorded begin, because leftovers were put right before it: whoever
// removes the directory afterwards, it was not us. Every other outcome leaves
// the begin. An error says that the snapshot holds no such target or
// that o is no outcome.
func (s JobSnapshot) WithOutcome(target Target, o Outcome) (JobSnapshot, error) {
	var word, reason, detail string
	cause, fault, final, cure := []byte(nil), []byte(nil), []byte(nil), []byte(nil)
	switch o := o.(type) {
	case Removed:
		word, detail = OutcomeRemoved, o.Detail
	case Skipped:
		word, reason, detail = OutcomeSkipped, string(o.Reason), o.Detail
		if o.Checkout != "" && o.Checkout != "." && !strings.Contains(detail, o.Checkout) {
			detail = o.Checkout + ": " + detail
		}
		cause, cure = jsonText(string(o.Cause)), jsonCure(o.Cure)
	case Failed:
		word, detail = OutcomeFailed, o.Detail
		fault, cure = jsonText(string(o.Fault)), jsonCure(o.Cure)
		if o.Final {
			final = []byte("true")
		}
	default:
		return s, fmt.Errorf("%T is no outcome", o)
	}
	return s.edited(target, func(e entry, raw []byte) ([]byte, error) {
		raw, err := edit(raw, change{"outcome", jsonText(word)}, change{"skip_reason", jsonText(reason)}, change{"detail", jsonText(detail)})
		if err != nil {
			return nil, err
		}
		changes := []change{{"cause", cause}, {"fault", fault}, {"final", final}, {"cure", cure}}
		if word == OutcomeSkipped {
			changes = append(changes, change{"begun", nil}, change{"begun_until", nil})
		}
		return editReclaim(raw, changes...)
	})
}

// WithSize records how large target's directory was found to be, so that a list
// of what was kept can begin with the largest. Nothing is decided by it. An error
// says that the snapshot holds no such target.
func (s JobSnapshot) WithSize(target Target, bytes int64) (JobSnapshot, error) {
	return s.edited(target, func(e entry, raw []byte) ([]byte, error) {
		return editReclaim(raw, change{"bytes", []byte(strconv.FormatInt(bytes, 10))})
	})
}

// Tries is which of the job's tries its attempt is, from 1: a lease counts an
// attempt, and what was held or cut short by a shutdown is an attempt and no try.
func (s JobSnapshot) Tries(attempt int) int { return max(1, attempt-s.Uncounted()) }

// Uncounted is how many attempts at the job were no tries.
func (s JobSnapshot) Uncounted() int {
	n := 0
	for _, e := range s.entries {
		n = max(n, e.Uncounted)
	}
	return n
}

// WithUncounted notes one more attempt that was no try. It stands in every
// target, because what is ours stands in targets; a snapshot without any is
// unchanged.
func (s JobSnapshot) WithUncounted() (JobSnapshot, error) {
	return s.counted([]byte(strconv.Itoa(s.Uncounted() + 1)))
}

func (s JobSnapshot) counted(value []byte) (JobSnapshot, error) {
	raw := s.raw
	for _, e := range slices.Backward(s.entries) {
		if !e.object {
			continue
		}
		changed, err := editReclaim(s.raw[e.start:e.end], change{"uncounted", value})
		if err != nil {
			return s, err
		}
		raw = splice(raw, e.start, e.end, changed)
	}
	return ParseJobSnapshot(raw)
}

// Held reports whether the last that was recorded of every directory that is not
// settled is that somebody held it, of one at least.
func (s JobSnapshot) Held() bool {
	held := false
	for _, t := range s.Targets() {
		switch {
		case t.Outcome == OutcomeFailed && t.Fault == PolicyHeld:
			held = true
		case !t.Settled():
			return false
		}
	}
	return held
}

// edited applies change to every entry of target's directory, last one first so
// that the places of the others stay right.
func (s JobSnapshot) edited(target Target, change func(entry, []byte) ([]byte, error)) (JobSnapshot, error) {
	wanted, raw, found := (entry{JobTarget: JobTarget{Target: target}}).key(), s.raw, false
	for _, e := range slices.Backward(s.entries) {
		if e.key() != wanted {
			continue
		}
		found = true
		if !e.object {
			continue
		}
		changed, err := change(e, s.raw[e.start:e.end])
		if err != nil {
			return s, err
		}
		raw = splice(raw, e.start, e.end, changed)
	}
	if !found {
		return s, fmt.Errorf("the job snapshot holds no directory %.200q on %.200q", target.TaskDir, target.Host)
	}
	return ParseJobSnapshot(raw)
}

// editReclaim edits the one object of ours inside a target. It is there only
// while it says something; one that is no object is left alone.
func editReclaim(raw []byte, changes ...change) ([]byte, error) {
	all, err := members(raw)
	if err != nil {
		return nil, err
	}
	ours := []byte("{}")
	m, there := find(all, "reclaim")
	if there && !isNull(m.value(raw)) {
		if ours = m.value(raw); ours[0] != '{' {
			return raw, nil
		}
	}
	changed, err := edit(ours, changes...)
	switch {
	case err != nil:
		return nil, err
	case bytes.Equal(changed, ours):
		return raw, nil
	case bytes.Equal(changed, []byte("{}")):
		return edit(raw, change{"reclaim", nil})
	}
	return edit(raw, change{"reclaim", changed})
}

// jsonText is a JSON string, bounded; nil for the empty one, which the host
// leaves out.
func jsonText(s string) []byte {
	if s == "" {
		return nil
	}
	raw, _ := json.Marshal(clipped(s, maxDetail))
	return raw
}

func jsonCure(cure []Remedy) []byte {
	if len(cure) == 0 {
		return nil
	}
	var short []Remedy
	for _, r := range cure[:min(len(cure), 8)] {
		if len(r.Run) > maxDetail { // half a command is no command
			r.Run = ""
		}
		short = append(short, Remedy{What: clipped(r.What, maxDetail), Run: r.Run})
	}
	raw, _ := json.Marshal(short)
	return raw
}

// clipped bounds a text to limit bytes and never cuts a rune.
func clipped(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = " [...]"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// Result is what the snapshot records of t's last attempt, as people read it.
func (t JobTarget) Result(taskID, jobID string, attempt int) Result {
	r := Result{TaskID: taskID, JobID: jobID, Attempt: attempt, Outcome: t.Outcome, Reason: t.Reason, Cause: t.Cause, Fault: t.Fault,
		Final: t.Final, Detail: t.Detail, Cure: slices.Clone(t.Cure), Bytes: t.Bytes, Target: t.Target, Checkouts: []Checkout{}}
	if r.Cure == nil {
		r.Cure = []Remedy{}
	}
	return r
}
