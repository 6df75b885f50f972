package replay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
)

// Whatever core can say without a cure has one here; core's own list is read, so
// that a word that is added to it is missed here.
func TestEveryFaultAndEveryCauseHasACure(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../core/reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]core.Result{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && spec.Type != nil && len(spec.Values) == 1 {
			word, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			switch spec.Type.(*ast.Ident).Name {
			case "Fault":
				results[word] = core.Result{Outcome: core.OutcomeFailed, Fault: core.Fault(word)}
			case "Cause":
				results[word] = core.Result{Outcome: core.OutcomeSkipped, Cause: core.Cause(word)}
			}
		}
		return true
	})
	if len(results) < 16+39 {
		t.Fatalf("%d words were read", len(results))
	}
	for word, r := range results {
		if cures := replay.Cures(r); len(cures) != 1 || len(cures[0].What) < 15 || strings.HasSuffix(cures[0].What, ".") {
			t.Errorf("%s: %+v", word, cures)
		}
	}
	own := []core.Remedy{{What: "what the attempt told"}}
	if cures := replay.Cures(core.Result{Outcome: core.OutcomeFailed, Fault: core.Lost, Cure: own}); len(cures) != 1 || cures[0] != own[0] {
		t.Errorf("%+v", cures)
	}
	if cures := replay.Cures(core.Result{Outcome: core.OutcomeRemoved}); len(cures) != 0 {
		t.Errorf("there is something to do about a removal: %+v", cures)
	}
}

func TestALastErrorHasACureForEveryFaultItNames(t *testing.T) {
	for text, want := range map[string]int{"": 0, "the database hiccups": 0, "unreachable": 0, "stopping the session s: unreachable: no route": 1,
		"auth_failed: no": 1, "h:/d: lost: x\nh:/e: lost: y": 1, "h:/d: lost: x\nh:/e: busy: y": 2} {
		if got := replay.CuresOf(text); len(got) != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := replay.CuresOf("h:/d: lost: x\nh:/e: busy: y", core.Lost); len(got) != 1 || !strings.Contains(got[0].What, "wait") {
		t.Errorf("%+v", got)
	}
}
