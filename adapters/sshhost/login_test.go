package sshhost_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
)

// loginShells are accounts as they are found on machines that nobody prepared.
// Each puts a directory of its own first in its PATH, the way its shell does it.
var loginShells = []struct {
	name  string
	shell string
	files map[string]string
	path  string // login, system, or empty: nothing runs at all
}{
	{"bash", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH; export PATH"}, "login"},
	{"bash with .profile", "/bin/bash", map[string]string{".profile": "PATH=HOME/own:$PATH; export PATH"}, "login"},
	{"ksh93", "/bin/ksh93", map[string]string{".profile": "PATH=HOME/own:$PATH; export PATH"}, "login"},
	{"mksh", "/bin/mksh", map[string]string{".profile": "PATH=HOME/own:$PATH; export PATH"}, "login"},
	{"zsh with .zprofile", "/bin/zsh", map[string]string{".zprofile": "export PATH=HOME/own:$PATH"}, "login"},
	{"zsh with .zlogin", "/bin/zsh", map[string]string{".zlogin": "path=(HOME/own $path)"}, "login"},
	{"dash", "/bin/dash", map[string]string{".profile": "PATH=HOME/own:$PATH; export PATH"}, "login"},
	{"busybox sh", "HOME/ash", map[string]string{".profile": "PATH=HOME/own:$PATH; export PATH"}, "login"},
	{"fish", "/usr/bin/fish", map[string]string{".config/fish/config.fish": "set -gx PATH HOME/own $PATH"}, "login"},
	{"tcsh with .tcshrc", "/bin/tcsh", map[string]string{".tcshrc": "setenv PATH HOME/own:$PATH"}, "login"},
	{"tcsh with .login", "/bin/tcsh", map[string]string{".login": "setenv PATH HOME/own:$PATH"}, "login"},
	{"csh", "/bin/csh", map[string]string{".login": "setenv PATH HOME/own:$PATH"}, "login"},
	{"a banner", "/bin/bash", map[string]string{".bash_profile": "echo Welcome; printf 'no newline'; PATH=HOME/own:$PATH", ".bashrc": "echo 'and again'; printf 'no newline'"}, "login"},
	{"exit 0 in the profile", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH; export PATH; exit 0"}, "system"},
	{"exit 1 in the profile", "/bin/bash", map[string]string{".bash_profile": "exit 1"}, "system"},
	{"strict options and traps", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH; export PATH; set -eu; trap 'echo left' EXIT; trap 'echo failed' ERR"}, "login"},
	{"git's variables exported", "/bin/bash", map[string]string{".bash_profile": "export PATH=HOME/own:$PATH GIT_DIR=/nowhere GIT_INDEX_FILE=/nowhere IFS=/ CDPATH=/ LC_ALL=xx"}, "login"},
	{"aliases and functions", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH; for f in git rm test printf echo cat; do eval \"$f() { echo false $f; }\"; export -f $f; alias $f='false'; done"}, "login"},
	{"functions exported from .bashrc", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH", ".bashrc": "for f in git rm test printf echo cat sed; do eval \"$f() { builtin echo false $f; }\"; export -f $f; done"}, "login"},
	{"the profile reads its input", "/bin/bash", map[string]string{".bash_profile": "cat >/dev/null; read line; PATH=HOME/own:$PATH"}, "login"},
	{".bashrc reads its input", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH", ".bashrc": "cat >/dev/null; read line"}, "login"},
	{"the profile sleeps", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH; sleep 600"}, "system"},
	{"the profile leaves a job behind", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH; sleep 600 &"}, "login"},
	{"the profile prints 20 MB", "/bin/bash", map[string]string{".bash_profile": "PATH=HOME/own:$PATH; head -c 20000000 /dev/zero | tr '\\000' x | fold"}, "login"},
	{".bashrc becomes fish", "/bin/bash", map[string]string{".bashrc": "exec fish"}, ""},
	{".profile becomes zsh", "/bin/bash", map[string]string{".profile": "exec zsh -l"}, "system"},
	{"PATH unset", "/bin/bash", map[string]string{".bash_profile": "unset PATH"}, "login?"},
	{"PATH with odd entries", "/bin/bash", map[string]string{".bash_profile": "PATH=.:bin::HOME/own:'HOME/with a space':$PATH:"}, "login"},
	{".zshenv noise and options", "/bin/zsh", map[string]string{".zshenv": "echo noise; setopt errexit noclobber", ".zprofile": "PATH=HOME/own:$PATH"}, "login"},
	{"fish that exits, with a function git", "/usr/bin/fish", map[string]string{".config/fish/config.fish": "function git; echo false; end\nset -gx PATH HOME/own $PATH\nexit 3"}, "login"},
	{"fish with a function git", "/usr/bin/fish", map[string]string{".config/fish/config.fish": "function git; echo false; end; echo noise\nset -gx PATH HOME/own $PATH"}, "login"},
	{"tcsh noise and an alias rm", "/bin/tcsh", map[string]string{".tcshrc": "echo noise; alias rm false; alias git false; setenv PATH HOME/own:$PATH"}, "login"},
	{"nologin", "/usr/sbin/nologin", nil, ""},
}

// odd is what a script must see whatever parsed the command before it.
const odd = "it's \"$HOME\" `id` $(id) ~ \\ ! % ^ \\n \\0101 !! {a,b} * ? \t;&|<># é \xff"

func TestAnyLoginShellCarriesAScriptAndGivesItsPathOrIsNoAnswer(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	for _, row := range loginShells {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			account := sshdtest.NewAccount(t, shellOf(t, row.shell), nil)
			account.Write(t, row.files)
			session := dial(t, sshhost.New(sshhost.Options{}), server.TargetOf(account.Name))
			body := "printf '%s\\n' " + quote(odd) + ` "$RECLAIM_PATH" "$PATH"; cat; test 1 = 1 && echo x | sed s/x/true/; exit 7`
			for range 2 { // the second script is handed what the first one learnt
				reply := session.Run(t.Context(), core.Script{Name: "greet", Body: body, Limit: time.Minute})
				said, is := reply.(core.Said)
				if row.path == "" {
					if unclear, is := reply.(core.Unclear); !is || unclear.Doubt != core.Unframed {
						t.Fatalf("something answered: %+v", reply)
					}
					continue
				}
				if !is {
					t.Fatalf("%+v", reply)
				}
				rest, whole := strings.CutPrefix(said.Body, odd+"\n")
				lines := strings.Split(rest, "\n")
				if !whole || len(lines) != 4 || lines[2] != "true" || said.Exit != 7 {
					t.Fatalf("%+v", said)
				}
				source, path := lines[0], lines[1]
				if want, sure := strings.CutSuffix(row.path, "?"); !sure && source != want {
					t.Errorf("PATH is of the %s: %s", source, path)
				}
				if own := filepath.Join(account.Home, "own"); (row.path == "login") != strings.Contains(path, own+":") {
					t.Errorf("PATH is %s", path)
				}
				if row.name == "PATH with odd entries" && !strings.Contains(path, account.Home+"/with a space:") {
					t.Errorf("PATH is %s", path)
				}
				for _, entry := range strings.Split(path, ":") {
					if !filepath.IsAbs(entry) {
						t.Errorf("PATH has the entry %q", entry)
					}
				}
			}
		})
	}
}

// The shell that a launch recorded is asked rather than the account's own.
func TestARecordedShellNamesThePath(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{})
	account := sshdtest.NewAccount(t, "/bin/bash", map[string]string{".bash_profile": "PATH=/of/bash:$PATH", ".zprofile": "PATH=/of/zsh:$PATH"})
	for shell, want := range map[string]string{"": "/of/bash:", "zsh": "/of/zsh:", "/bin/zsh": "/of/zsh:", "bash": "/of/bash:", "no-such-shell": "system", "-x; id": "system"} {
		target := server.TargetOf(account.Name)
		target.Shell = shell
		session := dial(t, sshhost.New(sshhost.Options{}), target)
		reply := session.Run(t.Context(), core.Script{Name: "greet", Body: `case $RECLAIM_PATH in login) echo "$PATH" ;; *) echo system ;; esac`, Limit: time.Minute})
		if said, is := reply.(core.Said); !is || !strings.HasPrefix(said.Body, want) {
			t.Errorf("shell %q: %+v", shell, reply)
		}
	}
}

// macOS has no timeout(1), and the profile must not hold a script up there
// either.
func TestWithoutTimeoutASleepingProfileCostsFiveSeconds(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{Config: "SetEnv PATH=" + toolsWithout(t, "timeout")})
	for name, row := range map[string]struct{ profile, want string }{
		"sleeps":   {"PATH=/of/bash:$PATH; sleep 600", "system"},
		"does not": {"PATH=/of/bash:$PATH", "login"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := sshdtest.NewAccount(t, "/bin/bash", map[string]string{".bash_profile": row.profile})
			session := dial(t, sshhost.New(sshhost.Options{}), server.TargetOf(account.Name))
			got := session.Run(t.Context(), core.Script{Name: "greet", Body: `echo $RECLAIM_PATH`, Limit: time.Minute})
			if diff := cmp.Diff(core.Reply(core.Said{Body: row.want + "\n"}), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// toolsWithout is a PATH with the usual tools but one.
func toolsWithout(t *testing.T, missing string) string {
	dir := sshdtest.OpenDir(t)
	for _, source := range []string{"/usr/bin", "/bin"} {
		entries, err := os.ReadDir(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.Name() != missing {
				_ = os.Symlink(filepath.Join(source, entry.Name()), filepath.Join(dir, entry.Name()))
			}
		}
	}
	return dir
}

// shellOf names a shell's program; busybox becomes a login shell under the name
// of its sh.
func shellOf(t *testing.T, shell string) string {
	name, is := strings.CutPrefix(shell, "HOME/")
	if !is {
		return shell
	}
	const busybox = "/bin/busybox"
	if _, err := os.Stat(busybox); err != nil {
		t.Fatalf("busybox is needed: apt-get install busybox (%v)", err)
	}
	link := filepath.Join(sshdtest.OpenDir(t), name)
	if err := os.Symlink(busybox, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
