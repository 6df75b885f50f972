package policy

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/kandev/reclaim/core"
)

//go:embed optin/*.rego ownership/*.rego pathshape/*.rego ruling/*.rego
var files embed.FS

// Policy rules on facts. It is safe for concurrent use.
type Policy struct {
	barriers  document
	operators []operator
	digest    string
}

// Option changes what New makes.
type Option func(*options) error

type options struct {
	operators []source
	deadline  time.Duration
}

type source struct {
	name string
	text []byte
}

// New prepares our barriers and the operator policies given. Its error means
// that an option makes no sense; an operator policy that does not compile is
// none: every ruling then says so and refuses, until it is mended.
func New(opts ...Option) (*Policy, error) {
	o := options{deadline: DefaultDeadline}
	for _, set := range opts {
		if err := set(&o); err != nil {
			return nil, err
		}
	}
	modules, texts, err := rules()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	barriers, err := compile(ctx, ruling, nil, modules)
	if err != nil {
		return nil, fmt.Errorf("our own policy: %w", err)
	}
	p := &Policy{barriers: barriers}
	for _, s := range o.operators {
		p.operators = append(p.operators, prepare(ctx, s, o.deadline))
	}
	p.digest = digest(append(texts, o.operators...))
	return p, nil
}

var ruling = ast.MustParseBody("[data.policy.ruling.allow, data.policy.ruling.passed, data.policy.ruling.refusals]")

// unhurried never stops an evaluation: our own rules are bounded by their facts.
var unhurried = topdown.NewCancel()

// rules are our own modules, without their tests.
func rules() (map[string]*ast.Module, []source, error) {
	modules := map[string]*ast.Module{}
	var texts []source
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		modules[name], err = parse(name, text)
		texts = append(texts, source{name, text})
		return err
	})
	return modules, texts, err
}

func parse(name string, text []byte) (*ast.Module, error) {
	module, err := ast.ParseModuleWithOpts(name, string(text), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true, Capabilities: closed()})
	if err == nil && module == nil {
		err = errors.New("the file holds no package")
	}
	return module, err
}

// digest is the sha256 over the name and text of every module, hexadecimal.
func digest(modules []source) string {
	sum := sha256.New()
	for _, m := range modules {
		fmt.Fprintf(sum, "%d %s %d ", len(m.name), m.name, len(m.text))
		sum.Write(m.text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Digest is the sha256 over every module that rules, hexadecimal.
func (p *Policy) Digest() string { return p.digest }

// Rule asks the three barriers and, where all passed, the operator policies.
// Whatever goes wrong is in the ruling's Error, which refuses.
func (p *Policy) Rule(ctx context.Context, facts core.Facts) core.Ruling {
	if err := ctx.Err(); err != nil {
		return core.Ruling{Digest: p.digest, Error: "the ruling was not asked for any more: " + err.Error()}
	}
	given := input(facts)
	answer, err := p.barriers.ask(ctx, given, unhurried)
	if err != nil {
		return core.Ruling{Digest: p.digest, Error: "our own policy: " + err.Error()}
	}
	r, err := read(answer)
	if err != nil {
		return core.Ruling{Digest: p.digest, Error: "our own policy: " + err.Error()}
	}
	r.Digest = p.digest
	if !r.Allow {
		return r
	}
	for _, o := range p.operators {
		denials, err := o.deny(ctx, given)
		if err != nil {
			return core.Ruling{Digest: p.digest, Error: fmt.Sprintf("the operator's policy %s: %s", o.name, err)}
		}
		r.Denials = append(r.Denials, denials...)
	}
	r.Allow = len(r.Denials) == 0
	return r
}

// read takes a ruling only in its one shape: the three fields, each of its
// type, allowed with all three barriers and no refusal, or not allowed with one.
func read(answer ast.Value) (core.Ruling, error) {
	parts, ok := answer.(*ast.Array)
	if !ok || parts.Len() != 3 {
		return core.Ruling{}, errors.New("the ruling is not allow, passed and refusals")
	}
	allow, ok := parts.Elem(0).Value.(ast.Boolean)
	if !ok {
		return core.Ruling{}, errors.New("allow is neither true nor false")
	}
	passed, ok := parts.Elem(1).Value.(*ast.Array)
	if !ok {
		return core.Ruling{}, errors.New("passed is no list")
	}
	refusals, ok := parts.Elem(2).Value.(ast.Set)
	if !ok {
		return core.Ruling{}, errors.New("refusals is no set")
	}
	r := core.Ruling{Allow: bool(allow)}
	for i := range passed.Len() {
		name, ok := passed.Elem(i).Value.(ast.String)
		if !ok || !slices.Contains(core.Barriers(), string(name)) || slices.Contains(r.Passed, string(name)) {
			return core.Ruling{}, fmt.Errorf("passed names %v, which is no barrier or named twice", passed.Elem(i))
		}
		r.Passed = append(r.Passed, string(name))
	}
	for _, term := range refusals.Slice() {
		refusal, err := readRefusal(term.Value)
		if err != nil {
			return core.Ruling{}, err
		}
		r.Refusals = append(r.Refusals, refusal)
	}
	switch {
	case r.Allow && len(r.Refusals) > 0:
		return core.Ruling{}, errors.New("the ruling allows and refuses")
	case r.Allow && !slices.Equal(r.Passed, core.Barriers()):
		return core.Ruling{}, errors.New("the ruling allows although not every barrier passed")
	case !r.Allow && len(r.Refusals) == 0:
		return core.Ruling{}, errors.New("the ruling neither allows nor refuses")
	}
	return r, nil
}

var (
	tBarrier, tRule, tSays = key("barrier"), key("rule"), key("says")
)

func at(doc ast.Object, name *ast.Term) ast.Value {
	if term := doc.Get(name); term != nil {
		return term.Value
	}
	return nil
}

func readRefusal(v ast.Value) (core.Refusal, error) {
	doc, ok := v.(ast.Object)
	if !ok {
		return core.Refusal{}, fmt.Errorf("the refusal %v is no object", v)
	}
	barrier, isBarrier := at(doc, tBarrier).(ast.String)
	rule, isRule := at(doc, tRule).(ast.String)
	says, isSays := at(doc, tSays).(ast.String)
	if !isBarrier || !isRule || !isSays || doc.Len() != 3 {
		return core.Refusal{}, fmt.Errorf("the refusal %v is not barrier, rule and says", v)
	}
	return core.Refusal{Barrier: string(barrier), Rule: string(rule), Says: string(says)}, nil
}
