package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
)

// everyModule is what `opa test policy fixtures/rulings` sees: the modules this
// binary carries, the operator examples, and the table's test.
func everyModule(t testing.TB) map[string]*ast.Module {
	t.Helper()
	modules, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"examples", "../fixtures/rulings"} {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".rego") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			modules[name], err = ast.ParseModuleWithOpts(name, string(text), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return modules
}

func table(t testing.TB) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("../fixtures/rulings/rulings.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"fixtures": map[string]any{"rulings": doc}}
}

func TestRego(t *testing.T) {
	modules := everyModule(t)
	coverage := cover.New()
	results, err := runTests(context.Background(), ast.NewCompiler().WithStrict(true), modules, table(t), coverage)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Run(r.name, func(t *testing.T) {
			if !r.passed {
				t.Error("failed" + r.why)
			}
		})
	}
	if len(results) < 250 {
		t.Errorf("only %d tests ran", len(results))
	}
	if report := coverage.Report(modules); report.Coverage < 100 {
		for name, file := range report.Files {
			for _, r := range file.NotCovered {
				t.Errorf("%s:%d-%d is not covered", name, r.Start.Row, r.End.Row)
			}
		}
	}
}

func TestTheTestsThisBinaryCarriesPass(t *testing.T) {
	var out bytes.Buffer
	passed, failed, err := RunTests(context.Background(), &out)
	if err != nil || failed != 0 || passed < 200 || strings.Count(out.String(), "\n") != passed {
		t.Errorf("%d passed, %d failed, %v\n%s", passed, failed, err, out.String())
	}
}

// house says what our Rego breaks of the house's rules.
func house(name string, module *ast.Module, text []byte, others map[string]*ast.Module) []string {
	var broken []string
	say := func(format string, args ...any) {
		broken = append(broken, fmt.Sprintf(format, args...))
	}
	formatted, err := format.SourceWithOpts(name, text, format.Opts{RegoVersion: ast.RegoV1})
	if err != nil || !bytes.Equal(formatted, text) {
		say("it is not as opa fmt writes it")
	}
	isTest := strings.HasSuffix(name, "_test.rego")
	isExample := strings.HasPrefix(name, "examples/")
	folder := path.Base(path.Dir(name))
	want := "data.policy." + folder
	switch {
	case isExample:
		want = "data.operator." + folder
	case strings.HasPrefix(name, "../"):
		want = "data.fixtures.rulings"
	}
	if isTest {
		want += "_test"
	}
	if got := module.Package.Path.String(); got != want {
		say("the package is %s, the folder wants %s", got, want)
	}
	if isTest {
		return broken
	}
	if others[strings.TrimSuffix(name, ".rego")+"_test.rego"] == nil {
		say("no test stands beside it")
	}
	described := false
	for _, a := range module.Annotations {
		if a.Scope == "package" && a.Title != "" && a.Description != "" {
			reason, _ := a.Custom["reason"].(string)
			described = isExample || reason != ""
		}
	}
	if !described {
		say("METADATA lacks title, description or custom.reason")
	}
	if isExample {
		return broken
	}
	decisions, defaults := 0, 0
	for _, rule := range module.Rules {
		ref := rule.Head.Ref().String()
		if ref == "deny" || strings.HasPrefix(ref, "deny") {
			say("line %d: our own rules have no deny", rule.Location.Row)
		}
		if ref == "passed" && folder != "ruling" || ref == "allow" {
			decisions++
			if rule.Default {
				if rule.Head.Value.Value.Compare(ast.Boolean(false)) == 0 {
					defaults++
				} else {
					say("line %d: the default is not false", rule.Location.Row)
				}
			}
		}
	}
	if decisions < 2 || defaults != 1 {
		say("%d decisions with %d default false", decisions, defaults)
	}
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		if ref.HasPrefix(ast.DefaultRootRef) && !strings.HasPrefix(ref.String(), "data.policy.") {
			say("line %d: it reads %s", ref[0].Location.Row, ref)
		}
		return false
	})
	ast.WalkExprs(module, func(e *ast.Expr) bool {
		if len(e.With) > 0 {
			say("line %d: with", e.Location.Row)
		}
		return false
	})
	return broken
}

func TestHouseRulesForRego(t *testing.T) {
	modules := everyModule(t)
	for name, module := range modules {
		text := moduleText(t, name)
		for _, broken := range house(name, module, text, modules) {
			t.Errorf("%s: %s", name, broken)
		}
	}
}

func moduleText(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestHouseRulesNoticeWhatBreaksThem(t *testing.T) {
	const name = "optin/optin.rego"
	good := string(moduleText(t, name))
	others := everyModule(t)
	for what, text := range map[string]string{
		"not formatted":       strings.Replace(good, "default passed := false", "default passed:=false", 1),
		"another package":     strings.Replace(good, "package policy.optin", "package policy.optout", 1),
		"no reason":           strings.Replace(good, "# custom:\n#   reason: disabled\n", "", 1),
		"no title":            strings.Replace(good, "# title: Opt-in\n", "", 1),
		"default true":        strings.Replace(good, "default passed := false", "default passed := true", 1),
		"no default":          strings.Replace(good, "default passed := false\n\n", "", 1),
		"a deny":              good + "\ndeny contains \"no\" if input.x\n",
		"reads other data":    good + "\nx if data.y\n",
		"replaces its input":  good + "\nx if put_off with input as {}\n",
		"nothing but default": "# METADATA\n# title: a\n# description: b\n# custom:\n#   reason: c\npackage policy.optin\n\ndefault passed := false\n",
	} {
		module, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{ProcessAnnotation: true})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if text == good || len(house(name, module, []byte(text), others)) == 0 {
			t.Errorf("%s: not noticed", what)
		}
	}
	if lonely := house(name, others[name], []byte(good), map[string]*ast.Module{}); len(lonely) != 1 {
		t.Errorf("a rule without a test: %v", lonely)
	}
}

func TestEveryBuiltinAllowedExistsAndIsPure(t *testing.T) {
	known := map[string]*ast.Builtin{}
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		known[b.Name] = b
	}
	for _, name := range Builtins() {
		switch b := known[name]; {
		case b == nil:
			t.Errorf("the engine has no %s", name)
		case b.IsNondeterministic():
			t.Errorf("%s is not deterministic", name)
		}
	}
	for _, name := range []string{"http.send", "time.now_ns", "rand.intn", "uuid.rfc4122", "opa.runtime", "net.lookup_ip_addr", "print", "trace", "io.jwt.decode_verify"} {
		if slices.Contains(Builtins(), name) {
			t.Errorf("%s is allowed", name)
		}
	}
	if cut := closed(); cut.AllowNet == nil || len(cut.AllowNet) != 0 || len(cut.Builtins) != len(Builtins()) {
		t.Errorf("network %v, %d built-ins for %d names", cut.AllowNet, len(cut.Builtins), len(Builtins()))
	}
}

func TestOneVersionOfOPA(t *testing.T) {
	version := regexp.MustCompile(`github\.com/open-policy-agent/opa (v\S+)`)
	var seen []string
	for _, file := range []string{"../go.mod", "../.ci/tools/go.mod"} {
		match := version.FindSubmatch(moduleText(t, file))
		if match == nil {
			t.Fatalf("%s names no version of OPA", file)
		}
		seen = append(seen, string(match[1]))
	}
	if seen[0] != seen[1] {
		t.Errorf("the module rules with OPA %s, the tools test with %s", seen[0], seen[1])
	}
	if text := string(moduleText(t, "../go.mod")); regexp.MustCompile(`(?m)^tool\b`).MatchString(text) {
		t.Error("the root go.mod has a tool line: every tool would become a version floor for whoever embeds us")
	}
}

func TestTheCheckScriptIsPOSIX(t *testing.T) {
	if out, err := exec.Command("sh", "-n", "../.ci/rego").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
