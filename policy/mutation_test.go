package policy

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// A mutant is one of our rule files with one condition wrong.
type mutant struct {
	file string
	what string // file:row: the condition: what was done to it
	text string
}

// mutants deletes and negates every condition of every rule of the file, takes
// every word out of every set it tests for, shifts every number by one, removes
// every rule that stands beside another of its name, and turns every default.
func mutants(t testing.TB, file, text string) []mutant {
	t.Helper()
	module, err := ast.ParseModuleWithOpts(file, text, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	edit := func(loc *ast.Location, from, to int, with, did string) {
		word := regexp.MustCompile(`\s+`).ReplaceAllString(text[from:to], " ")
		if len(word) > 70 {
			word = word[:70] + "..."
		}
		all = append(all, mutant{file, fmt.Sprintf("%s:%d: %s: %s", file, loc.Row, word, did), text[:from] + with + text[to:]})
	}
	span := func(loc *ast.Location) (from, to int) { return loc.Offset, loc.Offset + len(loc.Text) }

	count := map[string]int{}
	for _, rule := range module.Rules {
		count[rule.Head.Ref().String()]++
	}
	for _, rule := range module.Rules {
		from, to := span(rule.Location)
		if rule.Default {
			line := from + strings.Index(text[from:], "\n")
			edit(rule.Location, from, line, strings.Replace(text[from:line], "false", "true", 1), "default true")
			continue
		}
		if line := from + strings.Index(text[from:], "\n"); line > to && !strings.Contains(text[from:to], "\n") {
			to = line
		}
		if count[rule.Head.Ref().String()] > 1 {
			edit(rule.Location, from, to, "", "the rule removed")
		}
	}
	seen := map[int]bool{}
	ast.WalkExprs(module, func(e *ast.Expr) bool {
		from, to := span(e.Location)
		if e.Generated || from >= to || seen[from] || text[from:to] == "true" && !strings.Contains(text[max(0, from-1):from], "\t") {
			return false
		}
		seen[from] = true
		condition := text[from:to]
		_, isEvery := e.Terms.(*ast.Every)
		_, isSome := e.Terms.(*ast.SomeDecl)
		assigns := e.IsAssignment()
		if !assigns && !isSome {
			edit(e.Location, from, to, "true", "deleted")
			switch {
			case e.Negated:
				edit(e.Location, from, to, strings.TrimPrefix(condition, "not "), "negated")
			case !isEvery:
				edit(e.Location, from, to, "not "+condition, "negated")
			}
		}
		return false
	})
	// Words of sets that are tested for, and numbers.
	for _, m := range regexp.MustCompile(` in \{([^{}|]*)\}`).FindAllStringSubmatchIndex(text, -1) {
		words := strings.Split(text[m[2]:m[3]], ", ")
		row := strings.Count(text[:m[2]], "\n") + 1
		for i := range words {
			if len(words) < 2 {
				continue
			}
			rest := strings.Join(slices.Delete(slices.Clone(words), i, i+1), ", ")
			edit(&ast.Location{Row: row}, m[2], m[3], rest, "without "+words[i])
		}
	}
	for _, m := range regexp.MustCompile(`(<= )(\d+)\b`).FindAllStringSubmatchIndex(text, -1) {
		n, _ := strconv.Atoi(text[m[4]:m[5]])
		row := strings.Count(text[:m[4]], "\n") + 1
		// Lengths are of hexadecimal text, two a byte.
		for _, by := range []int{-2, 2} {
			edit(&ast.Location{Row: row}, m[4], m[5], strconv.Itoa(n+by), fmt.Sprintf("%+d", by))
		}
	}
	return all
}

// testsThatHold is what the barrier's test package comes to: every test that
// holds, with every case that does. It is a tenth of the test runner's work, and
// TestRego shows that unchanged rules leave nothing out of it.
func testsThatHold(barrier string, modules map[string]*ast.Module) (string, error) {
	compiler := ast.NewCompiler()
	compiler.Compile(modules)
	if compiler.Failed() {
		return "", compiler.Errors
	}
	results, err := rego.New(rego.Query("data.policy."+barrier+"_test"), rego.Compiler(compiler),
		rego.GenerateJSON(func(term *ast.Term, _ *rego.EvalContext) (any, error) { return term.String(), nil })).Eval(context.Background())
	if err != nil {
		return "an error: " + err.Error(), nil // two answers to one question, for one
	}
	return fmt.Sprint(results), nil
}

// equivalent names the mutants that decide the same, each with the reason.
var equivalent = map[string]string{
	"pathshape/pathshape.rego:79: short(paths) if count(paths) <= 1000: the rule removed": "a short cut: what is short in all is short in each",
	"pathshape/pathshape.rego:79: 1000: -2":                                               "a short cut: what is left out of it is counted in bytes",
	"pathshape/pathshape.rego:79: 1000: +2":                                               "a short cut: 1002 characters hold at most 4000 bytes beside the rest",
}

func TestEveryConditionIsHeldByATest(t *testing.T) {
	t.Parallel()
	modules, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	excused := map[string]bool{}
	var listed []string
	stillborn := 0
	for _, barrier := range []string{"optin", "ownership", "pathshape", "ruling"} {
		file := path.Join(barrier, barrier+".rego")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all, err := testsThatHold(barrier, modules)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mutants(t, file, string(text)) {
			changed, err := ast.ParseModuleWithOpts(file, m.text, ast.ParserOptions{RegoVersion: ast.RegoV1})
			if err != nil || changed == nil {
				stillborn++
				t.Logf("does not parse: %s", m.what)
				continue
			}
			// The mutated barrier with its own tests; the ruling needs the others.
			tried := map[string]*ast.Module{}
			for name, module := range modules {
				if barrier == "ruling" && !strings.HasSuffix(name, "_test.rego") || strings.HasPrefix(name, barrier+"/") {
					tried[name] = module
				}
			}
			tried[file] = changed
			held, err := testsThatHold(barrier, tried)
			if err != nil {
				stillborn++
				t.Logf("does not compile: %s: %v", m.what, err)
				continue
			}
			caught := held != all
			if why, same := equivalent[m.what]; same {
				excused[m.what] = true
				if caught {
					t.Errorf("excused (%s), but caught: %s", why, m.what)
				}
				continue
			}
			if !caught {
				t.Errorf("no test notices: %s", m.what)
			}
			listed = append(listed, m.what)
		}
	}
	for what := range equivalent {
		if !excused[what] {
			t.Errorf("excused, but there is no such mutant: %s", what)
		}
	}
	t.Logf("%d mutants, each caught; %d decide the same and are excused; %d were no Rego", len(listed), len(equivalent), stillborn)
	for _, what := range listed {
		t.Log(what)
	}
	if len(listed) < 150 {
		t.Errorf("only %d mutants", len(listed))
	}
}
