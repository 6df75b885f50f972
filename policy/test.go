package policy

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// RunTests runs the Rego tests this binary carries, those of the rules that it
// rules with, and tells each on w, a line each. The error says that they could
// not be run; tests that fail are counted.
func RunTests(ctx context.Context, w io.Writer) (passed, failed int, err error) {
	modules, err := embedded()
	if err != nil {
		return 0, 0, err
	}
	results, err := runTests(ctx, ast.NewCompiler().WithStrict(true), modules, map[string]any{}, nil)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range results {
		word := "ok  "
		if !r.passed {
			word = "FAIL"
			failed++
		} else {
			passed++
		}
		if _, err := fmt.Fprintf(w, "%s  %s%s\n", word, r.name, r.why); err != nil {
			return passed, failed, err
		}
	}
	return passed, failed, nil
}

// embedded is every module this binary carries, tests included.
func embedded() (map[string]*ast.Module, error) {
	modules := map[string]*ast.Module{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		modules[name], err = ast.ParseModuleWithOpts(name, string(text), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		return err
	})
	return modules, err
}

type testResult struct {
	name   string // package, test and, where it has some, case
	passed bool
	why    string
}

// runTests runs the tests among modules, compiled by compiler, over data.
func runTests(ctx context.Context, compiler *ast.Compiler, modules map[string]*ast.Module, data map[string]any, coverage topdown.QueryTracer) ([]testResult, error) {
	store := inmem.NewFromObject(data)
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		return nil, err
	}
	defer store.Abort(ctx, txn)
	runner := tester.NewRunner().
		SetCompiler(compiler.WithEnablePrintStatements(true)).
		SetStore(store).
		SetModules(modules).
		CapturePrintOutput(true).
		SetTimeout(10 * time.Minute). // a loaded machine fails no test
		RaiseBuiltinErrors(false)
	if coverage != nil {
		runner = runner.SetCoverageQueryTracer(coverage)
	}
	answers, err := runner.RunTests(ctx, txn)
	if err != nil {
		return nil, err
	}
	var results []testResult
	for r := range answers {
		name := strings.TrimPrefix(r.Package, "data.") + "." + r.Name
		why := ""
		if r.Error != nil {
			why = ": " + r.Error.Error()
		}
		if len(r.SubResults) == 0 {
			results = append(results, testResult{name, r.Pass(), why})
			continue
		}
		failed := false
		for at, sub := range r.SubResults.Iter {
			if len(sub.SubResults) == 0 {
				results = append(results, testResult{name + ": " + strconv.Quote(strings.Join(at, ", ")), !sub.Fail, why})
				failed = failed || sub.Fail
			}
		}
		if r.Pass() == failed {
			results = append(results, testResult{name, r.Pass(), why})
		}
	}
	slices.SortFunc(results, func(a, b testResult) int { return strings.Compare(a.name, b.name) })
	return results, nil
}
