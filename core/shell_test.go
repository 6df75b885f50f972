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
	script := preludeShell + manifestShell + "speak\nopening x\nmanifest " + quote(dir) + "\nrecord tree \"$digest\" \"$count\" \"$walked\"\n" +
		"for v in 'a b' /x/y ''; do field \"$v\"; record word \"$field\"; done\nrecord git \"${GIT_DIR-gone}\"\nclosing\n"
	var first string
	for _, sh := range [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}, {"zsh", "--emulate", "sh"}} {
		cmd := exec.Command(sh[0], append(sh[1:], "-c", script)...)
		cmd.Env = append(cmd.Environ(), "GIT_DIR=/elsewhere", "GIT_X=a\nb")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", sh, err)
		}
		if first == "" {
			first = string(out)
			if records, err := parseRecords("x", first); err != nil || len(records) != 5 || records[4].fields[0] != "gone" || !strings.Contains(first, "tree ") || records[0].fields[1] != "6" || records[0].fields[2] != "0" {
				t.Fatalf("%v:\n%s", err, first)
			}
		}
		if string(out) != first {
			t.Errorf("%v says\n%s\nbut dash\n%s", sh, out, first)
		}
	}
}
