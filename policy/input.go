package policy

import (
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/kandev/reclaim/core"
)

// key makes the name of a field once, for all rulings.
func key(name string) *ast.Term { return ast.StringTerm(name) }

var (
	kMoment, kJob, kTarget, kOptInNow, kOwnership, kPath         = key("moment"), key("job"), key("target"), key("opt_in_now"), key("ownership"), key("path")
	kTime, kLabels, kBytes, kEntries                             = key("time"), key("labels"), key("bytes"), key("entries")
	kID, kTaskID, kTrigger, kAttempt, kBegun, kEnvironment       = key("id"), key("task_id"), key("trigger"), key("attempt"), key("begun"), key("environment")
	kHost, kPort, kUser, kFingerprint, kIdentity, kIdentityFile  = key("host"), key("port"), key("user"), key("host_fingerprint"), key("identity_source"), key("identity_file")
	kProxyJump, kShell, kWorkdirRoot, kTaskDir, kEnabled         = key("proxy_jump"), key("shell"), key("workdir_root"), key("task_dir"), key("enabled")
	kTaskTerminal, kBorrowers, kClaims, kError, kSession, kState = key("task_terminal"), key("borrowers"), key("claims"), key("error"), key("session_id"), key("state")
	kStopped, kOptedIn, kCleanupOpen, kUnreadable, kLender       = key("stopped"), key("opted_in"), key("cleanup_open"), key("unreadable"), key("lender")
	kRoot, kHome, kDir                                           = key("root"), key("home"), key("dir")
	kDisposable, kExcused, kKinds, kKind, kTrees                 = key("disposable"), key("excused"), key("kinds"), key("kind"), key("trees")
)

func flag(b bool) *ast.Term { return ast.InternedTerm(b) }

// writer makes the terms of one document in one block of memory, and the
// fields of its objects in another.
type writer struct {
	terms  []ast.Term
	fields [][2]*ast.Term
	marks  []int
}

func (w *writer) value(v ast.Value) *ast.Term {
	if len(w.terms) == cap(w.terms) {
		w.terms = make([]ast.Term, 0, 64)
	}
	w.terms = append(w.terms, ast.Term{Value: v})
	return &w.terms[len(w.terms)-1]
}

func (w *writer) put(k, v *ast.Term) { w.fields = append(w.fields, [2]*ast.Term{k, v}) }

func (w *writer) text(k *ast.Term, v string) {
	if ast.HasInternedValue(v) {
		w.put(k, ast.InternedTerm(v))
		return
	}
	w.put(k, w.value(ast.String(v)))
}

// some leaves out an empty text, as the JSON does.
func (w *writer) some(k *ast.Term, v string) {
	if v != "" {
		w.text(k, v)
	}
}

func (w *writer) number(k *ast.Term, n int64) {
	if small := int(n); int64(small) == n && ast.HasInternedIntNumberTerm(small) {
		w.put(k, ast.InternedTerm(small))
		return
	}
	w.put(k, w.value(ast.Number(strconv.FormatInt(n, 10))))
}

// open begins an object; close makes it of the fields put since.
func (w *writer) open() { w.marks = append(w.marks, len(w.fields)) }

func (w *writer) close() ast.Value {
	from := w.marks[len(w.marks)-1]
	object := ast.NewObject(w.fields[from:]...)
	w.fields, w.marks = w.fields[:from], w.marks[:len(w.marks)-1]
	return object
}

// input is facts as their JSON says them, built without going through it.
func input(f core.Facts) ast.Value {
	w := &writer{terms: make([]ast.Term, 0, 64), fields: make([][2]*ast.Term, 0, 32), marks: make([]int, 0, 4)}
	w.open()
	w.text(kMoment, string(f.Moment))
	w.put(kJob, w.job(f.Job))
	w.put(kTarget, w.target(f.Target))
	w.text(kOptInNow, string(f.OptInNow))
	w.put(kOwnership, w.ownership(f.Ownership))
	w.open()
	w.text(kRoot, f.Path.Root)
	w.text(kHome, f.Path.Home)
	w.text(kDir, f.Path.Dir)
	w.put(kPath, w.value(w.close()))
	w.number(kTime, f.Time)
	w.number(kBytes, f.Bytes)
	w.number(kEntries, f.Entries)
	if f.Excused != nil {
		w.put(kExcused, w.excused(f.Excused))
	}
	if len(f.Labels) > 0 {
		w.open()
		for name, value := range f.Labels {
			w.text(key(name), value)
		}
		w.put(kLabels, w.value(w.close()))
	}
	return w.close()
}

func (w *writer) job(j core.JobFacts) *ast.Term {
	w.open()
	w.text(kID, j.ID)
	w.text(kTaskID, j.TaskID)
	w.text(kTrigger, string(j.Trigger))
	w.number(kAttempt, int64(j.Attempt))
	w.put(kBegun, flag(j.Begun))
	w.put(kEnvironment, w.environment(j.Environment))
	return w.value(w.close())
}

func (w *writer) environment(e *core.Environment) *ast.Term {
	if e == nil {
		return ast.InternedNullTerm
	}
	w.open()
	w.text(kID, e.ID)
	w.text(kTaskID, e.TaskID)
	return w.value(w.close())
}

func (w *writer) target(t core.Target) *ast.Term {
	w.open()
	w.text(kHost, t.Host)
	if t.Port != 0 {
		w.number(kPort, int64(t.Port))
	}
	w.some(kUser, t.User)
	w.some(kFingerprint, t.Fingerprint)
	w.some(kIdentity, t.IdentitySource)
	w.some(kIdentityFile, t.IdentityFile)
	w.some(kProxyJump, t.ProxyJump)
	w.some(kShell, t.Shell)
	w.text(kWorkdirRoot, t.WorkdirRoot)
	w.text(kTaskDir, t.TaskDir)
	if t.Enabled {
		w.put(kEnabled, flag(true))
	}
	w.some(kDisposable, t.Disposable)
	return w.value(w.close())
}

func (w *writer) ownership(o *core.Ownership) *ast.Term {
	if o == nil {
		return ast.InternedNullTerm
	}
	w.open()
	w.put(kTaskTerminal, flag(o.TaskTerminal))
	w.text(kOptInNow, string(o.OptInNow))
	w.some(kDisposable, o.Disposable)
	w.some(kError, o.Error)
	if o.Environment != nil {
		w.put(kEnvironment, w.environment(o.Environment))
	}
	if len(o.Borrowers) > 0 {
		all := make([]*ast.Term, 0, len(o.Borrowers))
		for _, b := range o.Borrowers {
			all = append(all, w.borrower(b))
		}
		w.put(kBorrowers, w.value(ast.NewArray(all...)))
	}
	if len(o.Claims) > 0 {
		all := make([]*ast.Term, 0, len(o.Claims))
		for _, c := range o.Claims {
			all = append(all, w.claim(c))
		}
		w.put(kClaims, w.value(ast.NewArray(all...)))
	}
	return w.value(w.close())
}

func (w *writer) excused(e *core.Excusal) *ast.Term {
	w.open()
	w.number(kBytes, e.Bytes)
	w.number(kEntries, e.Entries)
	all := make([]*ast.Term, 0, len(e.Kinds))
	for _, kind := range e.Kinds {
		w.open()
		w.text(kKind, kind.Kind)
		w.number(kTrees, kind.Trees)
		w.number(kBytes, kind.Bytes)
		w.number(kEntries, kind.Entries)
		all = append(all, w.value(w.close()))
	}
	w.put(kKinds, w.value(ast.NewArray(all...)))
	return w.value(w.close())
}

func (w *writer) borrower(b core.Borrower) *ast.Term {
	w.open()
	w.text(kSession, b.SessionID)
	w.text(kTaskID, b.TaskID)
	w.text(kState, b.State)
	w.put(kTaskTerminal, flag(b.TaskTerminal))
	w.some(kLender, b.Lender)
	return w.value(w.close())
}

func (w *writer) claim(c core.Claim) *ast.Term {
	w.open()
	w.text(kTaskID, c.TaskID)
	w.text(kHost, c.Host)
	w.number(kPort, int64(c.Port))
	w.text(kUser, c.User)
	w.text(kFingerprint, c.Fingerprint)
	w.text(kTaskDir, c.TaskDir)
	w.put(kTaskTerminal, flag(c.TaskTerminal))
	w.put(kStopped, flag(c.Stopped))
	w.put(kOptedIn, flag(c.OptedIn))
	w.put(kCleanupOpen, flag(c.CleanupOpen))
	if c.Unreadable {
		w.put(kUnreadable, flag(true))
	}
	return w.value(w.close())
}
