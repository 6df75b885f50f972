package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/kandev/reclaim"

// sourceFile is one Go file of the module that is part of a build.
type sourceFile struct {
	name    string // slash-separated, from the module's root
	pkg     string // the folder it lies in, likewise
	syntax  *ast.File
	imports []string
}

// sources parses every Go file below the module's folder, tests left out: they
// may import what they like.
func sources(t *testing.T, below string) []sourceFile {
	t.Helper()
	root := os.DirFS("..")
	var files []sourceFile
	err := fs.WalkDir(root, below, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(name)), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		file := sourceFile{name: name, pkg: path.Dir(name), syntax: syntax}
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			file.imports = append(file.imports, imported)
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no Go file below %s", below)
	}
	return files
}

func TestCoreIsArithmetic(t *testing.T) {
	pure := []string{"bytes", "cmp", "crypto/sha256", "embed", "encoding/base64", "encoding/hex", "encoding/json", "errors", "fmt", "maps",
		"net/netip", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8"}
	for _, file := range sources(t, "core") {
		for _, imported := range file.imports {
			if !slices.Contains(pure, imported) && imported != module+"/core/taskpath" {
				t.Errorf("%s imports %s: core is pure and needs nothing but %s", file.name, imported, strings.Join(pure, ", "))
			}
		}
		for _, trespass := range impurities(file.syntax) {
			t.Errorf("%s %s: core decides from its arguments alone", file.name, trespass)
		}
	}
}

// impurities finds what a pure function does not need, however it was imported.
func impurities(file *ast.File) []string {
	var found []string
	clock := ""
	for _, spec := range file.Imports {
		if spec.Name != nil && (spec.Name.Name == "." || spec.Name.Name == "_" && spec.Path.Value != `"embed"`) {
			found = append(found, "imports "+spec.Path.Value+" as "+spec.Name.Name)
		}
		if spec.Path.Value == `"time"` {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
	}
	durations := []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "starts a goroutine")
		case *ast.ChanType:
			found = append(found, "has a channel")
		case *ast.SelectStmt:
			found = append(found, "selects")
		case *ast.SendStmt:
			found = append(found, "sends")
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && clock != "" && x.Name == clock && !slices.Contains(durations, n.Sel.Name) {
				found = append(found, "uses time."+n.Sel.Name)
			}
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				if x, is := f.X.(*ast.Ident); is {
					name = x.Name + "." + f.Sel.Name
				}
			}
			if slices.Contains([]string{"print", "println", "fmt.Print", "fmt.Println", "fmt.Printf", "fmt.Scan", "fmt.Scanln", "fmt.Scanf"}, name) {
				found = append(found, "calls "+name)
			}
		}
		return true
	})
	return found
}

func TestThePurityCheckSeesWhatItForbids(t *testing.T) {
	for what, code := range map[string]string{
		"a goroutine":      `package p; func f() { go f() }`,
		"a channel":        `package p; var c chan int`,
		"a channel made":   `package p; var c = make(chan int)`,
		"a select":         `package p; func f() { select {} }`,
		"the clock":        `package p; import "time"; var now = time.Now()`,
		"the clock, named": `package p; import t "time"; var now = t.Now`,
		"a sleep":          `package p; import "time"; func f() { time.Sleep(1) }`,
		"a hidden clock":   `package p; import . "time"; var now = Now()`,
		"output":           `package p; import "fmt"; func f() { fmt.Println() }`,
		"debugging":        `package p; func f() { println() }`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if len(impurities(file)) == 0 {
			t.Errorf("%s is not seen", what)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", `package p; import "time"; const d = 5*time.Second; type s struct{ d time.Duration }`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if found := impurities(file); len(found) > 0 {
		t.Errorf("a duration %v", found)
	}
}

// within says that packages below pkg may import of the module only what lies
// below one of only.
var within = []struct {
	pkg  string
	only []string
	why  string
}{
	{"core", []string{"core"}, "the decision depends on nothing that can act"},
	{"ports", []string{"core", "ports"}, "what the phase needs is said in core's words, not in an adapter's"},
	{"policy", []string{"core", "policy"}, "a ruling is a pure function of facts"},
	{"adapters/job", []string{"core", "ports", "adapters/job"}, "a backend that embeds the phase brings its own adapters, and gets none of ours"},
	{"adapters/frame", []string{"adapters/frame"}, "the frame knows no question"},
	{"adapters/localhost", []string{"core", "ports", "adapters/localhost", "adapters/frame"}, "one adapter never needs another"},
	{"adapters/sshhost", []string{"core", "ports", "adapters/sshhost", "adapters/frame"}, "one adapter never needs another"},
	{"adapters/sqlstore", []string{"core", "ports", "adapters/sqlstore"}, "one adapter never needs another"},
	{"adapters/memstore", []string{"core", "ports", "adapters/memstore"}, "one adapter never needs another"},
	{"adapters/launch", []string{"core", "ports", "adapters/launch"}, "a launch needs a dialer, whichever"},
	{"adapters/worker", []string{"core", "ports", "adapters/worker", "adapters/job"}, "the worker is the phase's backend; storage and transport are given to it"},
	{"adapters/riverqueue", []string{"core", "ports", "adapters/riverqueue", "adapters/worker"}, "River only says who runs a job and when; storage is given to it"},
	{"adapters/replay", []string{"core", "ports", "adapters/replay"}, "nothing is asked but the record"},
	{"adapters/web", []string{"core", "ports", "adapters/replay", "adapters/web"}, "the console sees storage through ports and connects to nothing itself"},
}

// kept says that what lies below path is imported only below one of by.
var kept = []struct {
	path string
	by   []string
	why  string
}{
	{module + "/adapters/cli", []string{"adapters/cli"}, "the command is the outermost ring: a program, not a library"},
	{module + "/adapters/web", []string{"adapters/cli", "adapters/web"}, "the console is put together by the command"},
	{module + "/adapters/worker", []string{"adapters/cli", "adapters/worker", "adapters/web", "adapters/riverqueue"}, "a backend that embeds us has its own queue"},
	{"modernc.org/sqlite", []string{"adapters/cli"}, "two SQLite drivers of one name in one program panic, so only a program links one"},
	{"github.com/jackc/pgx", []string{"adapters/cli", "adapters/riverqueue", "adapters/sqlstore/pgtest"}, "a library takes an open *sql.DB and leaves the driver to its host"},
	{"github.com/riverqueue", []string{"adapters/riverqueue"}, "one machine needs no River, and a host may have another one"},
	{"riverqueue.com", []string{"adapters/riverqueue"}, "one machine needs no River, and a host may have another one"},
	{"github.com/alecthomas/kong", []string{"adapters/cli"}, "flags belong to the command"},
	{"github.com/mattn/go-isatty", []string{"adapters/cli"}, "only the command has a terminal"},
	{"github.com/open-policy-agent/opa", []string{"policy", "adapters/cli"}, "Rego is one adapter's business; the others see rulings"},
	{"golang.org/x/crypto", []string{"adapters/sshhost", "adapters/cli"}, "SSH is one adapter's business; the others see sessions"},
	{"go.opentelemetry.io/otel/sdk", []string{"adapters/cli"}, "a library only speaks the API; which SDK runs is the program's choice"},
	{"go.opentelemetry.io/otel/exporters", []string{"adapters/cli"}, "a library only speaks the API; where it goes is the program's choice"},
	{"os/exec", []string{"adapters/localhost", "adapters/sshhost", "adapters/cli", "adapters/sqlstore/pgtest"}, "whatever starts a program is an adapter at the edge"},
	{"testing", []string{"ports/porttest", "adapters/sshhost/sshdtest", "adapters/sqlstore/pgtest"}, "what is built into the program tests nothing"},
}

func below(pkg, prefix string) bool { return pkg == prefix || strings.HasPrefix(pkg, prefix+"/") }

func TestImportsPointInwards(t *testing.T) {
	for _, file := range sources(t, ".") {
		for _, imported := range file.imports {
			inside, ours := strings.CutPrefix(imported, module+"/")
			for _, rule := range within {
				if ours && below(file.pkg, rule.pkg) && !slices.ContainsFunc(rule.only, func(p string) bool { return below(inside, p) }) {
					t.Errorf("%s imports %s: %s", file.name, inside, rule.why)
				}
			}
			for _, rule := range kept {
				if below(imported, rule.path) && !slices.ContainsFunc(rule.by, func(p string) bool { return below(file.pkg, p) }) {
					t.Errorf("%s imports %s: %s", file.name, imported, rule.why)
				}
			}
		}
	}
}

// A rule about a package that is gone forbids nothing and misleads.
func TestEveryImportRuleIsAboutSomething(t *testing.T) {
	var named []string
	for _, rule := range within {
		named = append(append(named, rule.pkg), rule.only...)
	}
	for _, rule := range kept {
		named = append(named, rule.by...)
		if inside, ours := strings.CutPrefix(rule.path, module+"/"); ours {
			named = append(named, inside)
		}
	}
	for _, pkg := range named {
		if info, err := os.Stat(filepath.Join("..", filepath.FromSlash(pkg))); err != nil || !info.IsDir() {
			t.Errorf("a rule names %s, which is not there", pkg)
		}
	}
}

func TestTheTopLevelHoldsNothingElse(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	belong := []string{"go.mod", "go.sum", "README.md", "core", "policy", "ports", "adapters", "fixtures"}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(belong, name) {
			t.Errorf("%s lies at the top level, where only %s and dotfiles belong", name, strings.Join(belong, ", "))
		}
	}
}
