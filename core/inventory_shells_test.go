package core

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// What every set of tools is tried on: states that use most of the script.
var portable = []string{"multi-two-children", "submodule-deinit-unpushed", "wt-target-clean", "wt-inside-detached", "cloned-annotated-tags", "skip-worktree",
	"sparse-clean", "squashed-pushed", "reset-hard-lost", "lent-to-sibling", "live-cwd", "kandev-session-alive", "name-control-characters", "newline-directory-repo",
	"unreadable-ignored", "autocrlf-flagged-clean", "remote-rewound", "root-spelled-oddly", "env-index-file", "child-name-backslash"}

func scenariosNamed(t *testing.T, names []string) []scenario {
	t.Helper()
	known := map[string]scenario{}
	for _, s := range scenarios(t) {
		known[s.ID] = s
	}
	var all []scenario
	for _, name := range names {
		s, ok := known[name]
		if !ok {
			t.Fatalf("no scenario %q", name)
		}
		all = append(all, s)
	}
	return all
}

func TestTheInventoryIsPOSIXShell(t *testing.T) {
	body := Inventory{Root: "/srv/it's", Segment: "a b", Baseline: strings.Repeat("a", 64)}.Script().Body
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(body), "inventory"); err != nil {
		t.Error(err)
	}
	whole := filepath.Join(t.TempDir(), "whole.sh")
	if err := os.WriteFile(whole, []byte(preludeSource+manifestSource+"root=/r segment=s baseline=b\n"+baselineSource+inventorySource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("shellcheck", "-s", "sh", whole).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A way to ask: a shell, and the tools on its PATH.
type way struct {
	shell []string
	tools string
}

const ownTools = "its own tools"

// awks take turns as the shells do: Debian's, Fedora's, and the one that macOS
// and the BSDs have, to whom a comparison among the arguments of a print is an
// error unless it stands in brackets.
var awks = []string{"mawk", "gawk", "original-awk"}

// ways are those in which the nth scenario is asked. The shells take turns, and
// over the portable ones the tools do; in the long form all meet all.
func (s scenario) ways(n int) []way {
	if *update {
		return []way{{[]string{"/bin/sh"}, ownTools}}
	}
	if !long {
		ways := []way{{shells[n%len(shells)], awks[n%len(awks)]}}
		if at := slices.Index(portable, s.ID); at >= 0 {
			ways = append(ways, way{shells[at%len(shells)], foreignTools[at%len(foreignTools)]})
		}
		return ways
	}
	var ways []way
	for _, shell := range shells {
		for _, tools := range slices.Concat(awks, foreignTools) {
			ways = append(ways, way{shell, tools})
		}
	}
	return ways
}

func TestTheScenariosMeetEveryShellAndEverySetOfTools(t *testing.T) {
	met := map[string]int{}
	known := map[string]bool{}
	for n, s := range scenarios(t) {
		known[s.ID] = true
		for _, w := range s.ways(n) {
			met[strings.Join(w.shell, " ")]++
			met[w.tools]++
		}
	}
	for _, shell := range shells {
		if name := strings.Join(shell, " "); met[name] < 30 {
			t.Errorf("%s judges %d scenarios", name, met[name])
		}
	}
	for _, tools := range slices.Concat(awks, foreignTools) {
		if met[tools] < 5 {
			t.Errorf("%s judge %d scenarios", tools, met[tools])
		}
	}
	for _, id := range portable {
		if !known[id] {
			t.Errorf("no scenario %q", id)
		}
	}
}

// toolbox is the beginning of a PATH on which some tools are others.
func toolbox(t *testing.T, tools map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tools-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, body := range tools {
		if err := os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir + ":"
}

// A find without -printf, and a stat that knows only BSD's -f with the letters
// we use, made from GNU's.
const (
	plainFind = `for a; do case $a in -printf|-lname|-readable) echo "find: unknown predicate $a" >&2; exit 1 ;; esac; done; exec /usr/bin/find "$@"`
	bsdStat   = `[ "$1" = -f ] || { echo "stat: illegal option" >&2; exit 1; }
f=$(printf '%s' "$2" | sed 's/%Sp/%A/g;s/%Mp%Lp/%04a/g;s/%z/%s/g;s/%l/%h/g;s/%Fm/%.9Y/g;s/%Fc/%.9Z/g;s/%N/%n/g')
shift 2; exec /usr/bin/stat -c "$f" "$@"`
)

var foreignTools = []string{"find without -printf, stat -c", "find without -printf, stat -f", "busybox find, stat, awk, sed", "neither timeout nor sha256sum nor realpath"}

// toolboxes has the beginning of a PATH for each set of tools.
func toolboxes(t *testing.T) map[string]string {
	t.Helper()
	busybox := map[string]string{}
	for _, name := range strings.Fields("find stat awk sed tr od readlink ls") {
		busybox[name] = "exec busybox " + name + ` "$@"`
	}
	boxes := map[string]string{ownTools: ""}
	for n, tools := range []map[string]string{{"find": plainFind}, {"find": plainFind, "stat": bsdStat}, busybox,
		{"timeout": "exit 127", "sha256sum": "exit 127", "realpath": "exit 127"}} {
		boxes[foreignTools[n]] = toolbox(t, tools)
	}
	for _, awk := range awks {
		boxes[awk] = toolbox(t, nil)
		path, err := exec.LookPath(awk)
		if err == nil {
			err = os.Symlink(path, strings.TrimSuffix(boxes[awk], ":")+"/awk")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return boxes
}

func TestAC_002_5_AC_D23_AHostWithoutAGitThatCanBeAskedKeeps(t *testing.T) {
	s := scenariosNamed(t, []string{"clean-pushed"})[0]
	s.noisy = true
	root := openTemp(t, quickTemp())
	s.build(t, root)
	for name, c := range map[string]struct {
		git  string
		want Cause
	}{
		"git too old":           {`[ "$1" = version ] && { echo git version 2.17.1; exit; }; exec /usr/bin/git "$@"`, GitTooOld},
		"git says nothing":      {`exit 0`, GitTooOld},
		"git missing":           {`exit 127`, GitTooOld},
		"git warns, exit 0":     {`echo "warning: something" >&2; exec /usr/bin/git "$@"`, ProbeError},
		"git status fails":      {`for a; do [ "$a" = status ] && exit 1; done; exec /usr/bin/git "$@"`, ProbeError},
		"git rev-list fails":    {`for a; do [ "$a" = rev-list ] && exit 1; done; exec /usr/bin/git "$@"`, ProbeError},
		"git rev-list is empty": {`for a; do [ "$a" = rev-list ] && exit 0; done; exec /usr/bin/git "$@"`, ProbeError},
		"git ls-files is empty": {`for a; do [ "$a" = ls-files ] && exit 3; done; exec /usr/bin/git "$@"`, ProbeError},
		"git refs fail":         {`for a; do [ "$a" = for-each-ref ] && exit 1; done; exec /usr/bin/git "$@"`, ProbeError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, said := s.ask(t, root, toolbox(t, map[string]string{"git": c.git})+hostPath, "/bin/sh")
			e := q.Judge(said)
			if e.Safe() || len(e.Findings) == 0 || e.Findings[0].Reason != ProbeFailed {
				t.Fatalf("%+v\n%s", e, said.Body)
			}
			var causes []Cause
			for _, f := range e.Findings {
				causes = append(causes, f.Cause)
			}
			if !strings.Contains(join(causes), string(c.want)) {
				t.Errorf("causes %v, want %s", causes, c.want)
			}
		})
	}
}

func join(causes []Cause) string {
	var words []string
	for _, c := range causes {
		words = append(words, string(c))
	}
	return strings.Join(words, " ")
}
