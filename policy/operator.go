package policy

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/kandev/reclaim/core"
)

// DefaultDeadline bounds one operator policy in one ruling.
const DefaultDeadline = 100 * time.Millisecond

// maxDenials and maxMessage bound what one operator policy may say in a ruling.
const (
	maxDenials = 100
	maxMessage = 1000 // bytes
)

// WithOperator adds an operator's policy. name is what rulings call it: the
// file, usually. A policy that cannot rule - one Check has problems with, one
// that takes too long, one whose deny is not what it should be - makes every
// ruling refuse with an Error that says name.
func WithOperator(name string, text []byte) Option {
	return func(o *options) error {
		if strings.TrimSpace(name) == "" {
			return errors.New("an operator policy needs a name")
		}
		for _, other := range o.operators {
			if other.name == name {
				return fmt.Errorf("two operator policies are named %s", name)
			}
		}
		o.operators = append(o.operators, source{name, slices.Clone(text)})
		return nil
	}
}

// WithDeadline bounds each operator policy in each ruling, in place of
// DefaultDeadline.
func WithDeadline(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("a deadline of %s leaves operator policies no time", d)
		}
		o.deadline = d
		return nil
	}
}

// operator is one operator policy, compiled apart from everything else, or why
// it cannot rule.
type operator struct {
	name     string
	denials  document
	deadline time.Duration
	broken   Problems
}

func prepare(ctx context.Context, s source, deadline time.Duration) operator {
	o := operator{name: s.name, deadline: deadline}
	module, problems := readOperator(s.name, s.text)
	if len(problems) > 0 {
		o.broken = problems
		return o
	}
	deny := ast.NewBody(ast.NewExpr(ast.NewTerm(module.Package.Path.Append(ast.StringTerm("deny")))))
	var err error
	if o.denials, err = compile(ctx, deny, schema(), map[string]*ast.Module{s.name: module}); err != nil {
		o.broken = compileProblems(s.name, err)
	}
	return o
}

// deny is the policy's denials, in the order of their text.
func (o operator) deny(ctx context.Context, given ast.Value) ([]core.Denial, error) {
	if o.broken != nil {
		return nil, o.broken
	}
	limited, end := context.WithTimeout(ctx, o.deadline)
	defer end()
	stop := topdown.NewCancel()
	defer context.AfterFunc(limited, stop.Cancel)()
	answer, err := o.denials.ask(limited, given, stop)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("it did not answer within %s", o.deadline)
		}
		return nil, err
	}
	set, ok := answer.(ast.Set)
	if !ok {
		return nil, errors.New("deny is no set")
	}
	if set.Len() > maxDenials {
		return nil, fmt.Errorf("deny has %d entries, more than %d", set.Len(), maxDenials)
	}
	var denials []core.Denial
	for _, term := range set.Slice() {
		denial, err := readDenial(term.Value)
		if err != nil {
			return nil, err
		}
		denial.Policy = o.name
		denials = append(denials, denial)
	}
	return denials, nil
}

// readDenial takes an entry of deny: a message, or an object of a message and,
// if wanted, retry.
func readDenial(v ast.Value) (core.Denial, error) {
	var d core.Denial
	switch v := v.(type) {
	case ast.String:
		d.Says = string(v)
	case ast.Object:
		message, ok := at(v, tMessage).(ast.String)
		if !ok {
			return d, fmt.Errorf("the entry %s of deny has no message", short(v.String()))
		}
		d.Says = string(message)
		known := 1
		if retry := at(v, tRetry); retry != nil {
			again, ok := retry.(ast.Boolean)
			if !ok {
				return d, fmt.Errorf("retry in the entry %s of deny is neither true nor false", short(v.String()))
			}
			d.Retry = bool(again)
			known++
		}
		if v.Len() != known {
			return d, fmt.Errorf("the entry %s of deny holds more than message and retry", short(v.String()))
		}
	default:
		return d, fmt.Errorf("the entry %s of deny is neither a message nor an object", short(v.String()))
	}
	if strings.TrimSpace(d.Says) == "" {
		return d, errors.New("an entry of deny has an empty message")
	}
	d.Says = short(d.Says)
	return d, nil
}

var tMessage, tRetry = key("message"), key("retry")

func short(s string) string {
	if len(s) > maxMessage {
		return strings.ToValidUTF8(s[:maxMessage], "") + "..."
	}
	return s
}

// Problem is one thing wrong with an operator policy, in words a person can act
// on. Row counts from 1; 0 is the whole file.
type Problem struct {
	File string
	Row  int
	Says string
}

func (p Problem) String() string {
	if p.Row == 0 {
		return p.File + ": " + p.Says
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Row, p.Says)
}

// Problems is what is wrong with one operator policy. None is a good policy.
type Problems []Problem

func (ps Problems) Error() string {
	words := make([]string, len(ps))
	for i, p := range ps {
		words[i] = p.String()
	}
	return strings.Join(words, "; ")
}

// Check says what is wrong with an operator policy: how it is written, what it
// calls, and what it answers on sample facts within the deadline.
func Check(name string, text []byte) Problems {
	o := prepare(context.Background(), source{name, text}, DefaultDeadline)
	if o.broken != nil {
		return o.broken
	}
	for _, sample := range samples() {
		if _, err := o.deny(context.Background(), input(sample)); err != nil {
			return Problems{{File: name, Says: fmt.Sprintf("on sample facts for %s: %s", sample.Moment, err)}}
		}
	}
	return nil
}

var operatorName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readOperator parses a policy and looks at how it is written.
func readOperator(name string, text []byte) (*ast.Module, Problems) {
	if strings.TrimSpace(string(text)) == "" {
		return nil, Problems{{File: name, Says: "the file is empty; a policy starts with: package operator.<name>"}}
	}
	module, err := parse(name, text)
	if err != nil {
		return nil, compileProblems(name, err)
	}
	var problems Problems
	say := func(loc *ast.Location, format string, args ...any) {
		p := Problem{File: name, Says: fmt.Sprintf(format, args...)}
		if loc != nil {
			p.Row = loc.Row
		}
		problems = append(problems, p)
	}

	path := module.Package.Path
	own := strings.TrimPrefix(path.String(), "data.")
	named := false
	if len(path) == 3 {
		last, isString := path[2].Value.(ast.String)
		named = path[1].Value.Compare(ast.String("operator")) == 0 && isString && operatorName.MatchString(string(last))
	}
	if !named {
		say(module.Package.Location, "the package is %s; an operator policy's package is operator.<name>, with one name", own)
	}

	denies := false
	for _, rule := range module.Rules {
		if rule.Default && rule.Head.Name == "deny" {
			say(rule.Location, "deny has a default; write only: deny contains message if { ... }")
			continue
		}
		if ref := rule.Head.Ref(); len(ref) > 0 && ref[0].Value.Compare(ast.Var("deny")) == 0 {
			denies = true
			if len(ref) != 1 || rule.Head.RuleKind() != ast.MultiValue || len(rule.Head.Args) > 0 {
				say(rule.Location, "deny is not a set here; write: deny contains message if { ... }")
			}
		}
	}
	if !denies {
		say(module.Package.Location, "nothing is called deny, and deny is all that is read; write: deny contains message if { ... }")
	}

	// A reference to data that is not there is undefined, and an undefined
	// denial denies nothing: it must not pass for a policy.
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		if ref.HasPrefix(ast.DefaultRootRef) && !ref.Equal(path) && !(named && ref.HasPrefix(path)) {
			say(locationOf(ref), "%s is out of reach; a policy is given the facts as input and nothing else", ref)
		}
		return false
	})
	ast.WalkExprs(module, func(e *ast.Expr) bool {
		for _, w := range e.With {
			say(w.Location, "with replaces what is ruled on; leave it to tests")
		}
		return false
	})
	return module, problems
}

func locationOf(ref ast.Ref) *ast.Location { return ref[0].Location }

// compileProblems turns the engine's errors into ours.
func compileProblems(name string, err error) Problems {
	var errs ast.Errors
	if !errors.As(err, &errs) {
		return Problems{{File: name, Says: err.Error()}}
	}
	var problems Problems
	for _, e := range errs {
		p := Problem{File: name, Says: e.Message}
		if e.Location != nil {
			p.Row = e.Location.Row
		}
		if unknown, ok := strings.CutPrefix(e.Message, "undefined function "); ok {
			p.Says = outOfReach(unknown)
		} else if ref, ok := strings.CutPrefix(e.Message, "undefined ref: "); ok {
			p.Says = fmt.Sprintf("the facts hold no %s; a misspelled name would deny nothing", ref)
		}
		problems = append(problems, p)
	}
	return problems
}

func outOfReach(builtin string) string {
	known := slices.ContainsFunc(ast.CapabilitiesForThisVersion().Builtins, func(b *ast.Builtin) bool { return b.Name == builtin })
	switch {
	case strings.HasPrefix(builtin, "time.now"):
		return fmt.Sprintf("%s asks the clock; the time is a fact: input.time, in unix seconds", builtin)
	case builtin == "http.send" || builtin == "net.lookup_ip_addr":
		return fmt.Sprintf("%s asks the network; a ruling is decided from its facts alone", builtin)
	case strings.HasPrefix(builtin, "rand.") || strings.HasPrefix(builtin, "uuid.") || builtin == "opa.runtime":
		return fmt.Sprintf("%s answers differently every time; a ruling must be the same whenever it is made again", builtin)
	case known:
		return fmt.Sprintf("%s is not among the built-in functions a policy may call", builtin)
	}
	return fmt.Sprintf("there is no function %s", builtin)
}

// samples are facts of both moments for Check.
func samples() []core.Facts {
	environment := core.Environment{ID: "env-1", TaskID: "t-1"}
	connect := core.Facts{
		Moment: core.Connect,
		Job:    core.JobFacts{ID: "job-1", TaskID: "t-1", Trigger: core.Archive, Attempt: 1, Environment: &environment},
		Target: core.Target{Host: "build.example", Port: 22, User: "dev", Fingerprint: "SHA256:aaaa", WorkdirRoot: "~/.kandev",
			TaskDir: "/home/dev/.kandev/tasks/fix-login", Enabled: true},
		OptInNow: core.On,
		Ownership: &core.Ownership{TaskTerminal: true, OptInNow: core.On, Environment: &environment,
			Borrowers: []core.Borrower{{SessionID: "s-2", TaskID: "t-2", State: "COMPLETED", TaskTerminal: true}},
			Claims:    []core.Claim{{TaskID: "t-2", Host: "build.example", TaskDir: "/home/dev/.kandev/tasks/other", TaskTerminal: true, Stopped: true, OptedIn: true}}},
		Path: core.PathFacts{Root: "~/.kandev", Dir: "/home/dev/.kandev/tasks/fix-login"},
		Time: 1796000000,
	}
	remove := connect
	remove.Moment, remove.Path.Home, remove.Bytes, remove.Entries = core.RemoveNow, "/home/dev", 1<<40, 1_000_000
	remove.Labels = map[string]string{"hold": "alice", "team": "payments"}
	return []core.Facts{connect, remove}
}
