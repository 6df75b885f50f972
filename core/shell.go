package core

import (
	_ "embed"
	"strings"
)

// The scripts are written as shell, so that a shell's own tools can read them,
// and sent without their comments.
var (
	// preludeShell opens every script: the environment, and record, field. Where
	// $root is set before it, no program below its tasks is found.
	preludeShell = shell(preludeSource)
	// manifestShell defines speak, identity, listing, tree and manifest; it
	// needs the prelude and is used after "speak".
	manifestShell = shell(manifestSource)
	// inventoryShell is the inventory itself, once root and segment are set.
	inventoryShell = shell(inventorySource)

	//go:embed inventory.sh
	inventorySource string
	//go:embed prelude.sh
	preludeSource string
	//go:embed manifest.sh
	manifestSource string
)

// shell drops the comment lines and the indentation of a script that we wrote:
// what is sent is bounded. It knows no quotes: no line of ours inside quotes may
// start with # or depend on the tabs before it.
func shell(source string) string {
	var out strings.Builder
	for line := range strings.Lines(source) {
		if line = strings.TrimLeft(line, "\t"); !strings.HasPrefix(line, "#") && line != "\n" {
			out.WriteString(line)
		}
	}
	return out.String()
}
