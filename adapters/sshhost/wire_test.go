package sshhost

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"github.com/kandev/reclaim/adapters/frame"
)

// shells may stand behind /bin/sh on some machine.
var shells = [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"ksh93"}, {"mksh"}, {"busybox", "sh"}, {"zsh", "--emulate", "sh"}}

func TestTheProgramsArePosix(t *testing.T) {
	mark := frame.New()
	for _, program := range []string{mark.Around(learnPath("", mark.Nonce()), packedBody), mark.Around(learnPath("/bin/it's", mark.Nonce()), packedBody), mark.Around(setPath("login", "/a:/b c"), packedBody)} {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(program), "program"); err != nil {
			t.Errorf("%v:\n%s", err, program)
		}
	}
}

// The frame and the search for the PATH work whichever shell /bin/sh is.
func TestAnyShellBehindBinShFramesAScript(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte("echo noise; PATH=/of/profile:$PATH; export PATH\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, shell := range shells {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			program, err := exec.LookPath(shell[0])
			if err != nil {
				t.Fatalf("%s is needed for this test: %v", shell[0], err)
			}
			for _, body := range []string{"printf '%s' 'it'\\''s'; exit 3", "kill -KILL $$", "exit 129", "exit 128", "if", ""} {
				mark := frame.New()
				answer := mark.Answer()
				arguments := append(append([]string{}, shell[1:]...), "-c", `unset -f printf;eval "$(printf %b "$0")"`, pack(mark.Around(learnPath("/bin/dash", mark.Nonce()), packedBody)), pack(body))
				command := exec.Command(program, arguments...)
				command.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "BASH_FUNC_sed%%=() { echo false; }", "BASH_FUNC_printf%%=() { builtin echo false; }"}
				command.Stdout = answer
				var complaint bytes.Buffer
				command.Stderr = &complaint
				_ = command.Run()
				said, exit, note, whole := answer.Whole()
				switch body {
				case "kill -KILL $$", "exit 129":
					if whole {
						t.Errorf("%q: %q %d", body, said, exit)
					}
					continue
				case "if":
					if whole && exit == 0 {
						t.Errorf("%q: %q %d", body, said, exit)
					}
					continue
				case "exit 128":
					if exit != 128 {
						t.Errorf("%q: %d", body, exit)
					}
				case "":
					if said != "" || exit != 0 {
						t.Errorf("%q: %q %d", body, said, exit)
					}
				default:
					if said != "it's" || exit != 3 {
						t.Errorf("%q: %q %d", body, said, exit)
					}
				}
				if !whole || !strings.HasPrefix(note, "login /of/profile:/") {
					t.Errorf("%q: whole %v, note %q, complaint %q", body, whole, note, complaint.String())
				}
			}
		})
	}
}

// Packing loses nothing and leaves nothing that a quoted word could change.
func TestPackedTextIsReadBackByPrintf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 200).Draw(t, "text")
		text := string(raw) + "." // a command substitution drops newlines at the end
		packed := pack(text)
		for _, b := range []byte(packed) {
			if b < ' ' || b > '~' || strings.IndexByte("'!%^", b) >= 0 {
				t.Fatalf("%q keeps %q", packed, b)
			}
		}
		out, err := exec.Command("/bin/sh", "-c", `printf %b "$0"`, packed).Output()
		if err != nil || string(out) != text {
			t.Fatalf("%q came back as %q (%v)", text, out, err)
		}
	})
}

func TestAScriptThatIsTooLongOrHoldsNulIsRefused(t *testing.T) {
	for _, body := range []string{strings.Repeat("x", commandCap), strings.Repeat("\n", commandCap/2), "a\x00b"} {
		if line, err := command(frame.New().Around("", packedBody), body); err == nil {
			t.Errorf("%d bytes were accepted", len(line))
		}
	}
	if _, err := command(frame.New().Around("", packedBody), strings.Repeat("x", commandCap-4096)); err != nil {
		t.Error(err)
	}
}
