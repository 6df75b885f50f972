// Command mutate makes small mistakes in core, one at a time, and counts those
// that a test of core notices. Only tests that need no host count: those that
// pass with an empty PATH.
//
//	go run ./.ci/mutate              all mistakes, results in .ci/mutate/results.md
//	go run ./.ci/mutate -n 300       as many, drawn by -seed
//	go run ./.ci/mutate -only decide.go:120
//
// The package is compiled once with every mistake in it; which of them is made
// is said by the environment. The mistakes:
//
//	condition   a condition is turned, wherever one stands
//	operator    && for || and the other way round
//	boundary    < for <=, > for >= and the other way round
//	number      one more
//	arithmetic  + for - and the other way round
//	case        a word of a switch is not recognised
//	return      nothing is returned: nil, "", 0
//	statement   an assignment, a call, a break or a continue is left out
//
// A mistake that changes nothing that can be seen, or only how fast, is named in
// excused.txt with its reason.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	dir     = flag.String("dir", "core", "the package's directory")
	count   = flag.Int("n", 0, "how many to draw; 0 is all")
	seed    = flag.Uint64("seed", 1, "of the order in which they are tried")
	only    = flag.String("only", "", "only mistakes whose place begins with this")
	results = flag.String("results", "", "the file for the results; default .ci/mutate/results.md for a run of all")
	until   = flag.Duration("for", 0, "stop after this; what was tried is then a sample")
)

// mistake is one of them.
type mistake struct {
	id          int
	kind, place string // file:line:column
	text        string // the line's
	block       string
}

func (m mistake) String() string { return m.place + " " + m.kind + ": " + m.text }

// edit puts text before a place in a file, or in place of what stands there.
type edit struct {
	at, until int
	text      string
	close     bool // closes at its place: goes before what opens there
	order     int
}

type mutator struct {
	fset     *token.FileSet
	info     *types.Info
	pkg      *types.Package
	file     *ast.File
	source   []byte
	name     string
	edits    []edit
	mistakes []mistake
	taken    map[string]bool
	constant map[ast.Node]bool
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run() error {
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	mistakes, overlay, err := mutate(work)
	if err != nil {
		return err
	}
	fmt.Printf("%d mistakes\n", len(mistakes))
	tests, err := measure(work)
	if err != nil {
		return err
	}
	binary := filepath.Join(work, "mutants.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+*dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%v\n%s", err, out)
	}
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(mistakes), func(i, j int) { mistakes[i], mistakes[j] = mistakes[j], mistakes[i] })
	if *only != "" {
		mistakes = slices.DeleteFunc(mistakes, func(m mistake) bool { return !strings.HasPrefix(m.place, *only) })
	}
	all := len(mistakes)
	if *count > 0 && *count < all {
		mistakes = mistakes[:*count]
	}
	excused, err := excuses()
	if err != nil {
		return err
	}
	began := time.Now()
	var survivors []mistake
	tried, killed, slow := 0, 0, 0
	for _, m := range mistakes {
		if *until > 0 && time.Since(began) > *until {
			break
		}
		tried++
		dead, late := kill(binary, m, tests)
		switch {
		case late:
			slow++
			killed++
		case dead:
			killed++
		default:
			survivors = append(survivors, m)
			fmt.Println("lives:", m)
		}
		if tried%200 == 0 {
			fmt.Printf("%d tried, %d killed, %s\n", tried, killed, time.Since(began).Truncate(time.Second))
		}
	}
	return report(all, tried, killed, slow, survivors, excused, time.Since(began))
}

// test is one that needs no host.
type test struct {
	name   string
	takes  time.Duration
	blocks map[string]bool
}

// measure finds the tests that need no host, and what each of them runs.
func measure(work string) ([]test, error) {
	binary := filepath.Join(work, "plain.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-cover", "-o", binary, "./"+*dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v\n%s", err, out)
	}
	list := exec.Command(binary, "-test.list", "^Test")
	list.Dir = *dir
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	var tests []test
	profile := filepath.Join(work, "profile")
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); !strings.HasPrefix(name, "Test") {
			continue
		}
		began := time.Now()
		if _, err := call(binary, []string{name}, time.Minute, "-test.coverprofile="+profile); err != nil {
			continue // it needs a host
		}
		t := test{name, time.Since(began), map[string]bool{}}
		raw, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(raw)) {
			if words := strings.Fields(line); len(words) == 3 && words[2] != "0" {
				t.blocks[filepath.Base(strings.Replace(words[0], ":", "\x00", 1))] = true
				t.blocks[words[0][strings.LastIndex(words[0], "/")+1:]] = true
			}
		}
		tests = append(tests, t)
	}
	slices.SortFunc(tests, func(a, b test) int { return int(a.takes - b.takes) })
	fmt.Printf("%d tests need no host\n", len(tests))
	if len(tests) < 20 {
		return nil, errors.New("too few")
	}
	return tests, nil
}

func call(binary string, names []string, limit time.Duration, more ...string) (late bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := append([]string{"-c", `ulimit -v 6000000; exec "$0" "$@"`, binary, "-test.failfast", "-rapid.seed=1", "-rapid.nofailfile", "-test.run", "^(" + strings.Join(names, "|") + ")$"}, more...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Dir = *dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PATH=") }), "PATH=/nonexistent", "GOMAXPROCS=1")
	for _, word := range more {
		if id, ok := strings.CutPrefix(word, "-test.paniconexit0=mutant"); ok {
			cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return a == word })
			cmd.Env = append(cmd.Env, "RECLAIM_MISTAKE="+id)
		}
	}
	err = cmd.Run()
	return ctx.Err() != nil, err
}

// kill runs the tests that come to the mistake's place, the quick ones first and
// together, until one fails. One that does not end is noticed, too.
func kill(binary string, m mistake, tests []test) (dead, late bool) {
	var quick []string
	var rest []test
	var sum time.Duration
	for _, t := range tests {
		switch {
		case m.block != "" && !t.blocks[m.block]:
		case t.takes < 150*time.Millisecond:
			quick = append(quick, t.name)
			sum += t.takes
		default:
			rest = append(rest, t)
		}
	}
	mutant := "-test.paniconexit0=mutant" + strconv.Itoa(m.id)
	if len(quick) > 0 {
		if late, err := call(binary, quick, 15*time.Second+2*sum, mutant); err != nil {
			return true, late
		}
	}
	for _, t := range rest {
		if late, err := call(binary, []string{t.name}, 15*time.Second+5*t.takes, mutant); err != nil {
			return true, late
		}
	}
	return false, false
}

// mutate writes the package with every mistake in it.
func mutate(work string) ([]mistake, string, error) {
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(*dir, "*.go"))
	if err != nil {
		return nil, "", err
	}
	var files []*ast.File
	var paths []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, "", err
		}
		files, paths = append(files, file), append(paths, name)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := config.Check(*dir, fset, files, info)
	if err != nil {
		return nil, "", err
	}
	blocks, err := blocksOf(work)
	if err != nil {
		return nil, "", err
	}
	replace := map[string]string{}
	var all []mistake
	for i, file := range files {
		source, err := os.ReadFile(paths[i])
		if err != nil {
			return nil, "", err
		}
		m := &mutator{fset: fset, info: info, pkg: pkg, file: file, source: source, name: filepath.Base(paths[i]), mistakes: all, taken: map[string]bool{}, constant: map[ast.Node]bool{}}
		m.walk()
		all = m.mistakes
		out := filepath.Join(work, filepath.Base(paths[i]))
		if err := os.WriteFile(out, m.edited(), 0o600); err != nil {
			return nil, "", err
		}
		full, _ := filepath.Abs(paths[i])
		replace[full] = out
	}
	for i := range all {
		all[i].block = blocks.at(all[i].place)
	}
	helper := filepath.Join(work, "zz_mistakes.go")
	if err := os.WriteFile(helper, []byte("package "+pkg.Name()+"\n"+helpers), 0o600); err != nil {
		return nil, "", err
	}
	full, _ := filepath.Abs(filepath.Join(*dir, "zz_mistakes.go"))
	replace[full] = helper
	raw, _ := json.Marshal(map[string]any{"Replace": replace})
	overlay := filepath.Join(work, "overlay.json")
	return all, overlay, os.WriteFile(overlay, raw, 0o600)
}

const helpers = `
import (
	"os"
	"strconv"
)

var mistakeMade = func() int { n, _ := strconv.Atoi(os.Getenv("RECLAIM_MISTAKE")); return n }()

func mIs(n int) bool { return n == mistakeMade }
func mAnd(n int, a bool, b func() bool) bool {
	if n == mistakeMade {
		return a || b()
	}
	return a && b()
}
func mOr(n int, a bool, b func() bool) bool {
	if n == mistakeMade {
		return a && b()
	}
	return a || b()
}

type mNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float64
}

func mLess[T mNumber | ~string](n int, a, b T) bool {
	if n == mistakeMade {
		return a <= b
	}
	return a < b
}
func mLessEqual[T mNumber | ~string](n int, a, b T) bool {
	if n == mistakeMade {
		return a < b
	}
	return a <= b
}
func mMore[T mNumber | ~string](n int, a, b T) bool {
	if n == mistakeMade {
		return a >= b
	}
	return a > b
}
func mMoreEqual[T mNumber | ~string](n int, a, b T) bool {
	if n == mistakeMade {
		return a > b
	}
	return a >= b
}
func mNext[T mNumber](n int, v T) T {
	if n == mistakeMade {
		return v + 1
	}
	return v
}
func mPlus[T mNumber](n int, a, b T) T {
	if n == mistakeMade {
		return a - b
	}
	return a + b
}
func mMinus[T mNumber](n int, a, b T) T {
	if n == mistakeMade {
		return a + b
	}
	return a - b
}
func mWord[T ~string](n int, v T) T {
	if n == mistakeMade {
		return "\x00"
	}
	return v
}
func mNothing[T any](n int, v T) T {
	if n == mistakeMade {
		var none T
		return none
	}
	return v
}
`

func (m *mutator) offset(p token.Pos) int { return m.fset.Position(p).Offset }

// make notes one mistake at a place and returns its number.
func (m *mutator) make(kind string, at token.Pos) string {
	p := m.fset.Position(at)
	line := bytes.Split(m.source, []byte("\n"))[p.Line-1]
	text := strings.TrimSpace(string(line))
	if len(text) > 110 {
		text = text[:110] + "..."
	}
	id := len(m.mistakes) + 1
	m.mistakes = append(m.mistakes, mistake{id: id, kind: kind, place: fmt.Sprintf("%s:%d:%d", m.name, p.Line, p.Column), text: text})
	return strconv.Itoa(id)
}

// around puts text before and behind a node. What is put around an outer node
// must be put first.
func (m *mutator) around(n ast.Node, before, behind string) {
	order := len(m.edits)
	m.edits = append(m.edits, edit{m.offset(n.Pos()), m.offset(n.Pos()), before, false, order}, edit{m.offset(n.End()), m.offset(n.End()), behind, true, -order})
}

func (m *mutator) instead(from, to token.Pos, text string) {
	m.edits = append(m.edits, edit{m.offset(from), m.offset(to), text, false, 1 << 30})
}

func (m *mutator) edited() []byte {
	slices.SortStableFunc(m.edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.close != b.close:
			if a.close {
				return -1
			}
			return 1
		}
		return a.order - b.order
	})
	var out bytes.Buffer
	at := 0
	for _, e := range m.edits {
		out.Write(m.source[at:e.at])
		out.WriteString(e.text)
		at = e.until
	}
	out.Write(m.source[at:])
	return out.Bytes()
}

func (m *mutator) typeOf(e ast.Expr) types.Type { return m.info.Types[e].Type }

func (m *mutator) spelled(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == m.pkg {
			return ""
		}
		return p.Name()
	})
}

func (m *mutator) boolean(e ast.Expr) bool {
	t := m.typeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

func (m *mutator) numeric(e ast.Expr) bool {
	t := m.typeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0 && b.Info()&types.IsUntyped == 0
}

// conditions turns every single one of a boolean expression. It is called with
// outer expressions first.
func (m *mutator) conditions(e ast.Expr) {
	if e == nil || !m.boolean(e) {
		return
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		m.conditions(e.X)
		return
	case *ast.UnaryExpr:
		m.conditions(e.X)
		return
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			return // walk comes to its two sides
		}
	}
	key := fmt.Sprint("c", e.Pos(), e.End())
	if m.taken[key] {
		return
	}
	m.taken[key] = true
	m.around(e, "((", ") != mIs("+m.make("condition", e.Pos())+"))")
}

func (m *mutator) walk() {
	var results []*types.Signature
	var visit func(n ast.Node) bool
	inspect := func(n ast.Node) {
		if n != nil {
			ast.Inspect(n, visit)
		}
	}
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // constants, types and imports are what they are
		case *ast.FuncDecl:
			if n.Body != nil {
				results = append(results, m.info.Defs[n.Name].Type().(*types.Signature))
				inspect(n.Body)
				results = results[:len(results)-1]
			}
			return false
		case *ast.FuncLit:
			results = append(results, m.typeOf(n).(*types.Signature))
			inspect(n.Body)
			results = results[:len(results)-1]
			return false
		case *ast.BlockStmt:
			m.statements(n.List)
		case *ast.CaseClause:
			m.statements(n.Body)
		case *ast.SwitchStmt:
			for _, clause := range n.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					if n.Tag == nil {
						m.conditions(e)
					} else if t, ok := m.typeOf(n.Tag).Underlying().(*types.Basic); ok && t.Info()&types.IsString != 0 {
						m.around(e, "mWord["+m.spelled(m.typeOf(n.Tag))+"]("+m.make("case", e.Pos())+", ", ")")
					}
				}
			}
		case *ast.IfStmt:
			m.conditions(n.Cond)
		case *ast.ForStmt:
			m.conditions(n.Cond)
		case *ast.ReturnStmt:
			m.returns(n, results[len(results)-1])
		case *ast.AssignStmt:
			for _, e := range n.Rhs {
				if len(n.Rhs) == len(n.Lhs) {
					m.conditions(e)
				}
			}
		case *ast.CallExpr:
			for _, e := range n.Args {
				m.conditions(e)
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				m.conditions(e)
			}
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					m.conditions(pair.Value)
				}
			}
			if _, array := m.typeOf(n).Underlying().(*types.Array); array && n.Type != nil {
				for _, e := range n.Elts {
					inspect(e)
				}
				return false // not its length
			}
		case *ast.ArrayType:
			return false
		case *ast.BinaryExpr:
			m.operator(n)
		case *ast.BasicLit:
			if n.Kind != token.INT && n.Kind != token.CHAR || !m.numeric(n) {
				return true
			}
			m.around(n, "mNext["+m.spelled(m.typeOf(n))+"]("+m.make("number", n.Pos())+", ", ")")
		}
		return true
	}
	inspect(m.file)
}

func (m *mutator) operator(n *ast.BinaryExpr) {
	if m.info.Types[n].Value != nil {
		return
	}
	function, kind := "", ""
	switch n.Op {
	case token.LAND, token.LOR:
		name := map[token.Token]string{token.LAND: "mAnd(", token.LOR: "mOr("}[n.Op]
		m.around(n, name+m.make("operator", n.OpPos)+", ", ") })")
		m.instead(n.OpPos, n.OpPos+2, ", func() bool { return (")
		m.conditions(n.X)
		m.conditions(n.Y)
		return
	case token.LSS:
		function, kind = "mLess(", "boundary"
	case token.LEQ:
		function, kind = "mLessEqual(", "boundary"
	case token.GTR:
		function, kind = "mMore(", "boundary"
	case token.GEQ:
		function, kind = "mMoreEqual(", "boundary"
	case token.ADD, token.SUB:
		if !m.numeric(n) {
			return
		}
		function, kind = map[token.Token]string{token.ADD: "mPlus(", token.SUB: "mMinus("}[n.Op], "arithmetic"
	default:
		return
	}
	m.around(n, function+m.make(kind, n.OpPos)+", ", ")")
	m.instead(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), ", ")
}

func (m *mutator) returns(n *ast.ReturnStmt, signature *types.Signature) {
	if len(n.Results) != signature.Results().Len() {
		return
	}
	for i, e := range n.Results {
		m.conditions(e)
		t := signature.Results().At(i).Type()
		v := m.info.Types[e]
		if m.boolean(e) || v.IsNil() || v.Value != nil && (v.Value.ExactString() == `""` || v.Value.ExactString() == "0") {
			continue
		}
		if lit, ok := e.(*ast.CompositeLit); ok && len(lit.Elts) == 0 {
			continue
		}
		m.around(e, "mNothing["+m.spelled(t)+"]("+m.make("return", e.Pos())+", ", ")")
	}
}

// statements leaves one out.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
			if id, ok := s.Lhs[0].(*ast.Ident); ok && id.Name == "_" {
				continue
			}
		case *ast.IncDecStmt, *ast.BranchStmt:
		case *ast.ExprStmt:
		default:
			continue
		}
		m.around(s, "if !mIs("+m.make("statement", s.Pos())+") { ", " }")
	}
}

// blocks are those of the coverage profile.
type blocks map[string][]block

type block struct {
	name                           string
	fromLine, fromCol, toLine, toC int
}

var blockLine = regexp.MustCompile(`([^/]+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ \d+$`)

func blocksOf(work string) (blocks, error) {
	profile := filepath.Join(work, "blocks")
	if out, err := exec.Command("go", "test", "-vet=off", "-run", "^$", "-coverprofile", profile, "./"+*dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	all := blocks{}
	for line := range strings.Lines(string(raw)) {
		f := blockLine.FindStringSubmatch(strings.TrimSpace(line))
		if f == nil {
			continue
		}
		n := make([]int, 4)
		for i := range n {
			n[i], _ = strconv.Atoi(f[i+2])
		}
		name, _, _ := strings.Cut(f[0], " ")
		all[f[1]] = append(all[f[1]], block{name, n[0], n[1], n[2], n[3]})
	}
	return all, nil
}

// at is the innermost block at a place, empty where none is.
func (b blocks) at(place string) string {
	words := strings.Split(place, ":")
	line, _ := strconv.Atoi(words[1])
	col, _ := strconv.Atoi(words[2])
	best := block{}
	for _, one := range b[words[0]] {
		if (line > one.fromLine || line == one.fromLine && col >= one.fromCol) && (line < one.toLine || line == one.toLine && col < one.toC) {
			if best.name == "" || one.fromLine > best.fromLine || one.fromLine == best.fromLine && one.fromCol > best.fromCol {
				best = one
			}
		}
	}
	return best.name
}

// excuses are the mistakes that change nothing, each with its reason: a line
// FILE KIND, the source line, and the reason, parted by tabs.
func excuses() (map[string]string, error) {
	file, err := os.Open(".ci/mutate/excused.txt")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all := map[string]string{}
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if f := strings.Split(scanner.Text(), "\t"); len(f) == 3 {
			all[f[0]+"\t"+f[1]] = f[2]
		}
	}
	return all, scanner.Err()
}

func (m mistake) key() string {
	return strings.Split(m.place, ":")[0] + " " + m.kind + "\t" + m.text
}

func report(all, tried, killed, slow int, survivors []mistake, excused map[string]string, took time.Duration) error {
	slices.SortFunc(survivors, func(a, b mistake) int { return a.id - b.id })
	var out strings.Builder
	drawn := "all of them"
	if tried < all {
		drawn = fmt.Sprintf("%d of them, drawn with seed %d", tried, *seed)
	}
	fmt.Fprintf(&out, "# Mistakes made in %s on purpose\n\n", *dir)
	fmt.Fprintf(&out, "`go run ./.ci/mutate` makes them one at a time and runs the tests that need no host. There are %d; tried: %s.\n", all, drawn)
	fmt.Fprintf(&out, "%d were noticed (**%.1f %%**), %d of those because a test did not end. %s, %s/%s, %d cores, %s.\n\n", killed, 100*float64(killed)/float64(max(tried, 1)), slow,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), took.Truncate(time.Second))
	fmt.Fprintf(&out, "The Rego of policy has mistakes of its own, made by `TestEveryConditionIsHeldByATest` in every run of its tests: every condition of every rule\ndeleted and negated, every word of every set left out, every bound moved, every rule left out. All are noticed but for those it names as deciding the same.\n\n")
	fmt.Fprintf(&out, "## Not noticed: %d\n\n| place | mistake | line | why it stays |\n|---|---|---|---|\n", len(survivors))
	without := 0
	for _, m := range survivors {
		why := excused[m.key()]
		if why == "" {
			without++
			why = "-"
		}
		fmt.Fprintf(&out, "| %s | %s | `%s` | %s |\n", m.place, m.kind, strings.ReplaceAll(m.text, "|", "\\|"), why)
	}
	fmt.Printf("%d of %d killed, %d survivors without a reason\n", killed, tried, without)
	file := *results
	if file == "" && *only == "" {
		file = ".ci/mutate/results.md"
	}
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}
