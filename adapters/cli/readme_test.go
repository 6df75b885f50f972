package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
)

// typed is one command of a README session and what the README shows of its
// output; "..." stands for anything.
type typed struct{ command, shows string }

func readmeSessions(t *testing.T) []typed {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []typed
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			if command, is := strings.CutPrefix(line, "$ "); is {
				all = append(all, typed{command: strings.TrimSpace(command)})
			} else if len(all) > 0 {
				all[len(all)-1].shows += line
			}
		}
	}
	if len(all) < 5 {
		t.Fatalf("the README shows %d commands", len(all))
	}
	return all
}

// shown turns what the README shows into a pattern: a line of "..." is any
// number of lines, "..." in a line is anything.
func shown(text string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "..." {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), regexp.QuoteMeta("..."), `[^\n]*`) + `\n`)
	}
	return regexp.MustCompile(strings.ReplaceAll(b.String(), `(?:.*\n)*?`, `(?:[^\n]*\n)*?`) + `\z`)
}

// The sessions of the README are typed one after the other into one shell, on a
// machine whose state it describes.
func TestTheReadmeShowsWhatHappens(t *testing.T) {
	m := newMachine(t)
	readmeMachine(t, m)
	sessions := readmeSessions(t)
	server := sshdtest.Start(t, sshdtest.Options{Home: m.home})
	key := filepath.Join(m.home, ".ssh", "id_ed25519")
	m.copyFile(t, server.Identity, key)
	reached := server.Target()
	// What stands in the README for a reader's own host, key and repository.
	mine := strings.NewReplacer("/tmp/", "TEMP/", "dev@build1", fmt.Sprintf("%s@127.0.0.1:%d", reached.User, reached.Port), "SHA256:...", reached.Fingerprint,
		"https://git.example.org/app.git", filepath.Join(filepath.Dir(m.home), "remotes", "app.git"))
	const mark = "\x1e"
	temp := t.TempDir()
	script := "TMPDIR=" + temp + "; export TMPDIR; cd " + filepath.Dir(m.caseFile) + "\n"
	for _, s := range sessions {
		script += strings.ReplaceAll(mine.Replace(s.command), "TEMP/", temp+"/") + "\nprintf '" + mark + "'\n"
	}
	shell := exec.Command("/bin/sh", "-c", script)
	shell.Env = append([]string{}, m.env...)
	shell.Env[1] = "PATH=" + reclaimOnPath(t) + ":" + os.Getenv("PATH")
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	told := strings.Split(strings.NewReplacer(m.home, "/home/dev", temp, "/tmp").Replace(string(out)), mark)
	if len(told) != len(sessions)+1 {
		t.Fatalf("%d commands gave %d outputs:\n%s", len(sessions), len(told)-1, out)
	}
	for i, s := range sessions {
		if !shown(strings.ReplaceAll(s.shows, " on build1", " on 127.0.0.1")).MatchString(told[i]) {
			t.Errorf("$ %s\n%s\nthe README shows\n%s", s.command, told[i], s.shows)
		}
	}
}

func (m machine) copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reclaimOnPath is a folder in which this test binary is the command.
func reclaimOnPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "reclaim"), []byte("#!/bin/sh\nRECLAIM_TEST_CALLED=1 exec '"+self+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// readmeMachine makes what the README's sessions find.
func readmeMachine(t *testing.T, m machine) {
	t.Helper()
	second := filepath.Join(m.root, "tasks", "add-search")
	m.git(t, m.home, "clone", "-q", filepath.Join(filepath.Dir(m.home), "remotes", "app.git"), second)
	m.writeCase(t, func(c map[string]any) { c["target"].(map[string]any)["task_dir"] = second })
	write(t, filepath.Join(m.dir, "app.go"), "package app // otherwise\n")
	m.git(t, m.dir, "stash", "-q")
}

// What the README shows of embedding is compiled, word for word.
func TestTheReadmesEmbeddingCompiles(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../job/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d blocks of Go", len(blocks))
	}
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if !strings.Contains(flat(string(example)), flat(blocks[0][1])) {
		t.Errorf("adapters/job/example_test.go does not hold\n%s", blocks[0][1])
	}
}

// Every command the README names is one, and every command is shown, in the
// README or in a session.
func TestEveryCommandIsKnownAndTried(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := string(readme)
	sessions, err := filepath.Glob("testdata/sessions/*.txtar")
	if err != nil || len(sessions) == 0 {
		t.Fatal(sessions, err)
	}
	for _, path := range sessions {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tried += string(text)
	}
	parser, err := kong.New(&grammar{}, kong.Name("reclaim"), kong.Vars{"db": "", "kinds": ""})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, leaf := range parser.Model.Leaves(false) {
		words := commandPath(leaf)
		known[words[0]] = true
		if words[len(words)-1] == "list" {
			continue // the default of its command
		}
		if command := "reclaim " + strings.Join(words, " "); !strings.Contains(tried, command) {
			t.Errorf("nobody tries %q", command)
		}
	}
	for _, named := range regexp.MustCompile("(?:`|\\$ |\n    )reclaim ([a-z-]+)").FindAllStringSubmatch(string(readme), -1) {
		if !known[named[1]] {
			t.Errorf("the README names %q", named[0])
		}
	}
}
