package sshhost

import (
	"fmt"
	"strings"

	"github.com/kandev/reclaim/adapters/frame"
)

// commandCap is the longest exec request that is sent. Linux refuses one
// argument of 128 KiB, and OpenSSH drops the whole connection above 256 KiB.
const commandCap = 120 << 10

// command is the exec request for one script. The account's shell, whichever it
// is, sees one line: two words in single quotes that hold no character which
// any of sh, csh or fish reads specially there. /bin/sh unpacks the first and
// runs it, and that runs the second.
func command(program, body string) (string, error) {
	if at := strings.IndexByte(body, 0); at >= 0 {
		return "", fmt.Errorf("it holds a NUL byte at offset %d", at)
	}
	line := `exec /bin/sh -c 'unset -f printf;eval "$(printf %b "$0")"' '` + pack(program) + `' '` + pack(body) + `'`
	if len(line) > commandCap {
		return "", fmt.Errorf("packed it is %d bytes, and one request holds %d", len(line), commandCap)
	}
	return line, nil
}

// packedBody is the shell word that unpacks the second argument.
const packedBody = "\"$(printf %b \"$1\")\n\""

// pack writes text so that printf %b reads it back, with nothing in it that a
// quoted word of any login shell could change: not the quote itself, not the
// backslash but before a letter or a zero (fish takes two for one, csh one
// before a newline or "!" for none), not "!", newline, "^" and "%". It is short
// where scripts are long: a script is as many round trips as TCP needs to get
// going.
func pack(text string) string {
	var packed strings.Builder
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\n':
			packed.WriteString(`\n`)
		case b == '\t':
			packed.WriteString(`\t`)
		case b < ' ' || b > '~' || strings.IndexByte(`'\!%^`, b) >= 0:
			digits := 3
			if b < 0o100 && (i+1 == len(text) || text[i+1] < '0' || text[i+1] > '7') {
				digits = 2
			}
			fmt.Fprintf(&packed, `\0%0*o`, digits, b)
		default:
			packed.WriteByte(b)
		}
	}
	return packed.String()
}

// Where the PATH of a script comes from; scripts find the word in RECLAIM_PATH.
const (
	pathOfLogin  = "login"  // the account's login shell named it
	pathOfSystem = "system" // it did not, within five seconds: the server's own
)

const systemPath = "/usr/local/bin:/usr/bin:/bin"

// setPath is the prologue of a script whose PATH is known.
func setPath(source, path string) string {
	return "PATH=" + frame.Quote(path) + " RECLAIM_PATH=" + source + "\nexport PATH RECLAIM_PATH"
}

// learnPath is the prologue of a connection's first script: it asks the login
// shell for its PATH and takes nothing else from it. Profiles may print, read,
// sleep, fail, exit, leave jobs behind or replace themselves; whatever they do
// stays in a process of its own whose output is dropped but for one marked line,
// and which is given five seconds. Entries that are not absolute are left out:
// scripts change into directories they do not trust. The note of the frame
// carries what was found.
func learnPath(shell, nonce string) string {
	const unset = `"${SHELL:-/bin/sh}"`
	word := unset
	if shell != "" {
		word = frame.Quote(shell)
	}
	return strings.NewReplacer("SHELL_WORD", word, "NONCE", nonce, "SYSTEM_PATH", systemPath).Replace(`
shell=SHELL_WORD
say='exec /bin/sh -c '\''unset -f echo;echo;echo "NONCE:$PATH:NONCE"'\'
case ${shell##*/} in
*csh) option=-c say="if ( -r ~/.login ) source ~/.login; $say" ;;
*) option=-lc ;;
esac
pick() { LC_ALL=C exec sed -n '/^NONCE:.*:NONCE$/{s/^NONCE://;s/:NONCE$//;p;q;}'; }
if timeout -k 1 5 true </dev/null >/dev/null 2>&1; then
	found=$({ timeout -k 1 5 "$shell" $option "$say" </dev/null 2>/dev/null & } | pick)
else
	found=$({ "$shell" $option "$say" </dev/null 2>/dev/null & } | {
		exec 3<&0
		pick <&3 & picker=$!
		{ sleep 5; kill -9 $picker; } </dev/null >/dev/null 2>&1 3<&- & watch=$!
		wait $picker
		kill $watch
	} 2>/dev/null)
fi
path=
set -f
IFS=:
for entry in $found; do
	case $entry in /*) path=$path$entry: ;; esac
done
unset IFS
set +f
case $path in
'') RECLAIM_PATH=system path=$PATH: ;;
*) RECLAIM_PATH=login ;;
esac
PATH=${path}SYSTEM_PATH
export PATH RECLAIM_PATH
note="$RECLAIM_PATH $PATH"`)
}
