package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Builtins names every built-in function a policy may call, ours and an
// operator's alike. All are pure: the same arguments give the same answer
// everywhere, and nothing is read, sent or waited for.
func Builtins() []string { return slices.Clone(builtins) }

var builtins = []string{
	"and", "array.concat", "array.flatten", "array.reverse", "array.slice", "assign", "concat", "contains", "count", "div", "endswith",
	"eq", "equal", "format_int", "glob.match", "gt", "gte", "hex.encode", "indexof", "internal.member_2", "internal.member_3",
	"internal.template_string", "intersection", "is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string",
	"lower", "lt", "lte", "max", "min", "minus", "mul", "neq", "net.cidr_contains", "object.get", "object.keys",
	"object.union", "or", "plus", "regex.match", "regex.replace", "rem", "replace", "round", "ceil", "floor", "sort", "split", "sprintf",
	"startswith", "substring", "sum", "time.clock", "time.date", "time.parse_rfc3339_ns", "time.weekday", "to_number", "trim",
	"trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "type_name", "union", "upper",
}

// closed is what a policy can be written in: the language of this engine, the
// built-ins above, no network.
func closed() *ast.Capabilities {
	whole := ast.CapabilitiesForThisVersion()
	cut := &ast.Capabilities{FutureKeywords: whole.FutureKeywords, Features: whole.Features, AllowNet: []string{}}
	for _, b := range whole.Builtins {
		if slices.Contains(builtins, b.Name) {
			cut.Builtins = append(cut.Builtins, b)
		}
	}
	return cut
}

// document is one compiled question to Rego. It is safe for concurrent use.
type document struct {
	query rego.PreparedEvalQuery
}

// compile prepares the question for modules compiled by themselves: nothing
// else is in reach of them.
func compile(ctx context.Context, question ast.Body, schemas *ast.SchemaSet, modules map[string]*ast.Module) (document, error) {
	compiler := ast.NewCompiler().WithCapabilities(closed()).WithStrict(true).WithSchemas(schemas).WithDefaultRegoVersion(ast.RegoV1)
	compiler.Compile(modules)
	if compiler.Failed() {
		return document{}, compiler.Errors
	}
	query, err := rego.New(
		rego.ParsedQuery(question),
		rego.Compiler(compiler),
		rego.Strict(true),
		rego.StrictBuiltinErrors(true),
		rego.GenerateJSON(func(term *ast.Term, _ *rego.EvalContext) (any, error) { return term.Value, nil }),
	).PrepareForEval(ctx)
	return document{query}, err
}

// ask evaluates the question over input, unless cancel says stop. An undefined
// document, and more than one, is an error.
func (d document) ask(ctx context.Context, input ast.Value, cancel topdown.Cancel) (ast.Value, error) {
	m := newMemory()
	defer m.release()
	results, err := d.query.Eval(ctx, rego.EvalParsedInput(input), rego.EvalMetrics(metrics.NoOp()), rego.EvalExternalCancel(cancel), rego.EvalVirtualCache(m))
	switch {
	case err != nil:
		return nil, err
	case len(results) == 0:
		return nil, errors.New("the document is undefined")
	case len(results) > 1:
		return nil, fmt.Errorf("there are %d answers, not one", len(results))
	case len(results[0].Expressions) != 1:
		return nil, fmt.Errorf("the answer has %d parts, not one", len(results[0].Expressions))
	}
	value, ok := results[0].Expressions[0].Value.(ast.Value)
	if !ok {
		return nil, errors.New("the answer is no document")
	}
	return value, nil
}
