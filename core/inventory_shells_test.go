package core

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// What the shells and tools are tried on: states that use most of the script.
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
	body := Inventory{Root: "/srv/it's", Segment: "a b"}.Script().Body
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(body), "inventory"); err != nil {
		t.Error(err)
	}
	whole := filepath.Join(t.TempDir(), "whole.sh")
	if err := os.WriteFile(whole, []byte(preludeSource+manifestSource+"root=/r segment=s\n"+inventorySource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("shellcheck", "-s", "sh", whole).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	packed := 0
	for _, b := range []byte(body) {
		if plain(rune(b)) {
			packed++
		} else {
			packed += 5
		}
	}
	if packed > 100_000 {
		t.Errorf("the script packs to %d bytes; an exec request holds 100,000", packed)
	}
}

func TestTheInventoryIsTheSameInEveryShell(t *testing.T) {
	for _, s := range scenariosNamed(t, portable) {
		t.Run(s.ID, func(t *testing.T) {
			root := openTemp(t)
			s.build(t, root)
			for _, shell := range [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}, {"zsh", "--emulate", "sh"}} {
				q, said := s.ask(t, root, hostPath, shell...)
				if wrong := s.verdict(q.Judge(said)); wrong != "" {
					t.Errorf("%v: %s", shell, wrong)
				}
			}
		})
	}
}

// toolbox is a PATH on which some tools are others.
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
	return dir + ":" + hostPath
}

// A find without -printf, and a stat that knows only BSD's -f with the letters
// we use, made from GNU's.
const (
	plainFind = `for a; do case $a in -printf|-lname|-readable) echo "find: unknown predicate $a" >&2; exit 1 ;; esac; done; exec /usr/bin/find "$@"`
	bsdStat   = `[ "$1" = -f ] || { echo "stat: illegal option" >&2; exit 1; }
f=$(printf '%s' "$2" | sed 's/%Sp/%A/g;s/%Mp%Lp/%04a/g;s/%z/%s/g;s/%l/%h/g;s/%Fm/%.9Y/g;s/%Fc/%.9Z/g;s/%N/%n/g')
shift 2; exec /usr/bin/stat -c "$f" "$@"`
)

func TestTheInventoryNeedsNoGNUTool(t *testing.T) {
	boxes := map[string]map[string]string{
		"find without -printf, stat -c":  {"find": plainFind},
		"find without -printf, stat -f":  {"find": plainFind, "stat": bsdStat},
		"busybox find, stat, awk, sed":   {"find": `exec busybox find "$@"`, "stat": `exec busybox stat "$@"`, "awk": `exec busybox awk "$@"`, "sed": `exec busybox sed "$@"`, "tr": `exec busybox tr "$@"`, "od": `exec busybox od "$@"`, "readlink": `exec busybox readlink "$@"`, "ls": `exec busybox ls "$@"`},
		"no readable tool but the first": {"timeout": "exit 127", "sha256sum": "exit 127", "realpath": "exit 127"},
	}
	for _, s := range scenariosNamed(t, portable) {
		t.Run(s.ID, func(t *testing.T) {
			root := openTemp(t)
			s.build(t, root)
			for name, tools := range boxes {
				q, said := s.ask(t, root, toolbox(t, tools), "/bin/sh")
				if wrong := s.verdict(q.Judge(said)); wrong != "" {
					t.Errorf("%s: %s\n%.3000s", name, wrong, said.Body)
				}
			}
		})
	}
}

func TestAC_002_5_AHostWithoutAGitThatCanBeAskedKeeps(t *testing.T) {
	s := scenariosNamed(t, []string{"clean-pushed"})[0]
	s.noisy = true
	root := openTemp(t)
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
			q, said := s.ask(t, root, toolbox(t, map[string]string{"git": c.git}), "/bin/sh")
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
