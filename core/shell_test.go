package core

import (
	"os/exec"
	"strings"
	"testing"
)

func TestThePreludeAndTheManifestSayTheSameInEveryShell(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("sh", "-c", "cd "+quote(dir)+" && mkdir -p 'a b/c' && : > 'a b/x' && ln -s x 'a b/l' && : > 'n\nl'").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	printable := ""
	for c := ' '; c <= '~'; c++ {
		printable += string(c)
	}
	script := preludeShell + manifestShell + "speak\nopening x\nmanifest " + quote(dir) + "\nrecord tree \"$digest\" \"$count\" \"$walked\"\n" +
		"for v in 'a b' /x/y '' " + quote(printable[:60]) + " " + quote(printable[60:]) + " " + quote(printable) + " 'h\xc3\xa4 '; do field \"$v\"; record word \"$field\"; done\n" +
		"record git \"$(env | sed -n 's/^GIT_\\([A-Z_]*\\)=.*/\\1/p' | sort | tr '\\n' ,)${GIT_DIR-gone}${GIT_X-gone}\"\nclosing\n"
	words := []string{"a b", "/x/y", "", printable[:60], printable[60:], printable, "h\xc3\xa4 "}
	var first string
	for _, sh := range [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}, {"zsh", "--emulate", "sh"}} {
		cmd := exec.Command(sh[0], append(sh[1:], "-c", script)...)
		cmd.Env = append(cmd.Environ(), "GIT_DIR=/elsewhere", "GIT_X=a\nb", "VISIBLE=a\nexport GIT_HIDDEN='", "GIT_HIDDEN=x=GIT_y", "GIT_HIDDEN_2=")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", sh, err)
		}
		if first == "" {
			first = string(out)
			if records, err := parseRecords("x", first); err != nil || len(records) != 9 || !strings.Contains(first, "tree ") || records[0].fields[1] != "6" || records[0].fields[2] != "0" {
				t.Fatalf("%v:\n%s", err, first)
			} else {
				for i, word := range words {
					if got, ok := text(records[i+1].fields[0]); !ok || got != word {
						t.Errorf("%q comes as %q", word, got)
					}
				}
				if left := records[8].fields[0]; strings.Contains(left, "HIDDEN") || strings.Contains(left, "X,") || !strings.HasSuffix(left, "gonegone") {
					t.Errorf("git would see %s", left)
				}
			}
		}
		if string(out) != first {
			t.Errorf("%v says\n%s\nbut dash\n%s", sh, out, first)
		}
	}
}
