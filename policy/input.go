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
	kStopped, kOptedIn, kCleanupOpen, kUnreadable                = key("stopped"), key("opted_in"), key("cleanup_open"), key("unreadable")
	kRoot, kHome, kDir                                           = key("root"), key("home"), key("dir")

	vTrue, vFalse, vNull = ast.BooleanTerm(true), ast.BooleanTerm(false), ast.NullTerm()
)

func flag(b bool) *ast.Term {
	if b {
		return vTrue
	}
	return vFalse
}

func number(n int64) *ast.Term { return ast.NewTerm(ast.Number(strconv.FormatInt(n, 10))) }

// fields collects an object's fields; opt leaves out what JSON leaves out.
type fields [][2]*ast.Term

func (f fields) text(k *ast.Term, v string) fields {
	return append(f, [2]*ast.Term{k, ast.StringTerm(v)})
}
func (f fields) term(k, v *ast.Term) fields { return append(f, [2]*ast.Term{k, v}) }
func (f fields) opt(k *ast.Term, v string) fields {
	if v == "" {
		return f
	}
	return f.text(k, v)
}
func (f fields) object() *ast.Term { return ast.NewTerm(ast.NewObject(f...)) }

// input is facts as their JSON says them, built without going through it.
func input(f core.Facts) ast.Value {
	doc := make(fields, 0, 10).
		text(kMoment, string(f.Moment)).
		term(kJob, job(f.Job)).
		term(kTarget, target(f.Target)).
		text(kOptInNow, string(f.OptInNow)).
		term(kOwnership, ownership(f.Ownership)).
		term(kPath, make(fields, 0, 3).text(kRoot, f.Path.Root).text(kHome, f.Path.Home).text(kDir, f.Path.Dir).object()).
		term(kTime, number(f.Time)).
		term(kBytes, number(f.Bytes)).
		term(kEntries, number(f.Entries))
	if len(f.Labels) > 0 {
		labels := make(fields, 0, len(f.Labels))
		for name, value := range f.Labels {
			labels = labels.text(key(name), value)
		}
		doc = doc.term(kLabels, labels.object())
	}
	return ast.NewObject(doc...)
}

func job(j core.JobFacts) *ast.Term {
	return make(fields, 0, 6).
		text(kID, j.ID).
		text(kTaskID, j.TaskID).
		text(kTrigger, string(j.Trigger)).
		term(kAttempt, number(int64(j.Attempt))).
		term(kBegun, flag(j.Begun)).
		term(kEnvironment, environment(j.Environment)).
		object()
}

func environment(e *core.Environment) *ast.Term {
	if e == nil {
		return vNull
	}
	return make(fields, 0, 2).text(kID, e.ID).text(kTaskID, e.TaskID).object()
}

func target(t core.Target) *ast.Term {
	f := make(fields, 0, 11).
		text(kHost, t.Host).
		opt(kUser, t.User).
		opt(kFingerprint, t.Fingerprint).
		opt(kIdentity, t.IdentitySource).
		opt(kIdentityFile, t.IdentityFile).
		opt(kProxyJump, t.ProxyJump).
		opt(kShell, t.Shell).
		text(kWorkdirRoot, t.WorkdirRoot).
		text(kTaskDir, t.TaskDir)
	if t.Port != 0 {
		f = f.term(kPort, number(int64(t.Port)))
	}
	if t.Enabled {
		f = f.term(kEnabled, vTrue)
	}
	return f.object()
}

func ownership(o *core.Ownership) *ast.Term {
	if o == nil {
		return vNull
	}
	f := make(fields, 0, 6).term(kTaskTerminal, flag(o.TaskTerminal)).text(kOptInNow, string(o.OptInNow)).opt(kError, o.Error)
	if o.Environment != nil {
		f = f.term(kEnvironment, environment(o.Environment))
	}
	if len(o.Borrowers) > 0 {
		all := make([]*ast.Term, 0, len(o.Borrowers))
		for _, b := range o.Borrowers {
			all = append(all, make(fields, 0, 4).text(kSession, b.SessionID).text(kTaskID, b.TaskID).text(kState, b.State).
				term(kTaskTerminal, flag(b.TaskTerminal)).object())
		}
		f = f.term(kBorrowers, ast.ArrayTerm(all...))
	}
	if len(o.Claims) > 0 {
		all := make([]*ast.Term, 0, len(o.Claims))
		for _, c := range o.Claims {
			all = append(all, claim(c))
		}
		f = f.term(kClaims, ast.ArrayTerm(all...))
	}
	return f.object()
}

func claim(c core.Claim) *ast.Term {
	f := make(fields, 0, 11).
		text(kTaskID, c.TaskID).
		text(kHost, c.Host).
		term(kPort, number(int64(c.Port))).
		text(kUser, c.User).
		text(kFingerprint, c.Fingerprint).
		text(kTaskDir, c.TaskDir).
		term(kTaskTerminal, flag(c.TaskTerminal)).
		term(kStopped, flag(c.Stopped)).
		term(kOptedIn, flag(c.OptedIn)).
		term(kCleanupOpen, flag(c.CleanupOpen))
	if c.Unreadable {
		f = f.term(kUnreadable, vTrue)
	}
	return f.object()
}
