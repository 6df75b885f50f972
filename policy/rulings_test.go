package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/core"
)

type rulingRow struct {
	Name    string
	Facts   core.Facts
	Refused []string
}

// merge changes what change names: objects by their keys, everything else whole.
func merge(base, change any) any {
	b, isObject := base.(map[string]any)
	c, changes := change.(map[string]any)
	if !isObject || !changes {
		return change
	}
	merged := map[string]any{}
	for k, v := range b {
		merged[k] = v
	}
	for k, v := range c {
		merged[k] = merge(b[k], v)
	}
	return merged
}

func rulingsTable(t testing.TB) []rulingRow {
	t.Helper()
	raw, err := os.ReadFile("../fixtures/rulings/rulings.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		About string `json:"about"`
		Base  any    `json:"base"`
		Rows  []struct {
			Name    string   `json:"name"`
			Change  any      `json:"change"`
			Refused []string `json:"refused"`
		} `json:"rows"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) <= 30 {
		t.Fatalf("only %d rows", len(table.Rows))
	}
	var rows []rulingRow
	for _, r := range table.Rows {
		merged, err := json.Marshal(merge(table.Base, r.Change))
		if err != nil {
			t.Fatal(err)
		}
		row := rulingRow{Name: r.Name, Refused: r.Refused}
		decoder := json.NewDecoder(bytes.NewReader(merged))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&row.Facts); err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestTheTableOfRulings(t *testing.T) {
	p := newPolicy(t)
	for _, row := range rulingsTable(t) {
		t.Run(row.Name, func(t *testing.T) {
			r := p.Rule(context.Background(), row.Facts)
			var refused []string
			for _, x := range r.Refusals {
				refused = append(refused, x.Barrier+"/"+x.Rule)
			}
			slices.Sort(refused)
			slices.Sort(row.Refused)
			if diff := cmp.Diff(row.Refused, slices.Clip(append([]string{}, refused...))); diff != "" || r.Allow != (len(row.Refused) == 0) || r.Error != "" {
				t.Errorf("allow=%t, error %q\n%s", r.Allow, r.Error, diff)
			}
			if bad := disagreement(row.Facts, r); bad != "" {
				t.Error(bad)
			}
		})
	}
}

func TestTheTableOfPathsInRego(t *testing.T) {
	raw, err := os.ReadFile("../fixtures/paths/paths.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Name, Root, Home, Dir, Want string }
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) < 40 {
		t.Fatal(len(rows), err)
	}
	p := newPolicy(t)
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			f := owned()
			f.Path = core.PathFacts{Root: row.Root, Home: row.Home, Dir: row.Dir}
			if row.Home == "" {
				f.Moment = core.Connect
			}
			r := p.Rule(context.Background(), f)
			if passed := slices.Contains(r.Passed, "pathshape"); passed != (row.Want != "refused") {
				t.Errorf("passed=%t, want %q", passed, row.Want)
			}
		})
	}
}
