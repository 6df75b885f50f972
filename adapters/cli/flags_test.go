package cli

import (
	"bytes"
	"strings"
	"testing"
)

// What is wrong with a command line is said in one form: what is wrong, where, and
// what to write; the parser's own words show through nowhere.
func TestWhatIsWrongWithACommandLineIsSaidInOurWords(t *testing.T) {
	for line, says := range map[string]string{
		"--foo":                       `there is no flag --foo; see reclaim --help`,
		"foo":                         `there is no command foo; did you mean "job"?; see reclaim --help`,
		"job sho x":                   `there is no command sho; did you mean "show"?; see reclaim job --help`,
		"kept --jsn":                  `there is no flag --jsn; did you mean "--json"?; see reclaim kept --help`,
		"kept -v=3":                   `a flag of one letter is written without =; see reclaim kept --help`,
		"-q":                          `there is no flag -q; did you mean "-h" or "-v"?; see reclaim --help`,
		"jobs --state x":              `--state is "x"; write prepared, pending, running, retry_wait, succeeded, failed or cancelled; see reclaim jobs --help`,
		"jobs --limit x":              `--limit is "x"; write a whole number; see reclaim jobs --help`,
		"jobs --limit":                `--limit has no value; write --limit 100; see reclaim jobs --help`,
		"jobs --db":                   `--db has no value; write --db DSN; see reclaim jobs --help`,
		"work --policy":               `--policy has no value; write --policy FILE; see reclaim work --help`,
		"jobs --json=maybe":           `--json is "maybe" and takes no value; write it alone, or leave it out; see reclaim jobs --help`,
		"jobs extra":                  `"extra" is one argument too many; leave it out, or quote an argument with spaces; see reclaim jobs --help`,
		"inspect":                     `the argument TASKDIR is missing; see reclaim inspect --help`,
		"replay":                      `the argument RECORD.JSON is missing; see reclaim replay --help`,
		"inspect a --local --host b":  `--local and --host exclude each other; write one of them; see reclaim inspect --help`,
		"task launch x":               `this is missing: --profile ID; see reclaim task launch --help`,
		"stop-all maybe":              `the argument SWITCH is "maybe"; write on, off or show; see reclaim stop-all --help`,
		"profile set a --reclaim yes": `--reclaim is "yes"; write on or off; see reclaim profile set --help`,
		"job":                         `say what to do: show, retry or cancel; see reclaim job --help`,
		"task":                        `say what to do: launch, stop, resume, archive, delete or unarchive; see reclaim task --help`,
		"db":                          `say what to do: init; see reclaim db --help`,
	} {
		var out, errors bytes.Buffer
		status := Run(t.Context(), Invocation{Args: strings.Fields(line), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errors})
		if got := strings.TrimSuffix(errors.String(), "\n"); status != exitUsage || got != "reclaim: "+says || out.Len() > 0 {
			t.Errorf("%s: status %d\n got %s\nwant reclaim: %s\n%s", line, status, got, says, &out)
		}
	}
}
