package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	eastasian "golang.org/x/text/width"
)

// terminal is where a command reads and writes. Everything a person sees goes
// through clean: names and output of hosts are never printed raw.
type terminal struct {
	stdin    io.Reader
	stdout   *output
	stderr   io.Writer
	env      map[string]string
	colour   bool
	verbose  bool // -v was given
	watching bool // somebody watches standard error: progress is welcome
}

const width = 80

// output is standard output that remembers the first thing that went wrong.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func newTerminal(in Invocation) *terminal {
	t := &terminal{stdin: in.Stdin, stdout: &output{Writer: in.Stdout}, stderr: in.Stderr, env: map[string]string{}}
	for _, entry := range in.Env {
		if name, value, is := strings.Cut(entry, "="); is {
			t.env[name] = value
		}
	}
	t.colour = isTerminal(in.Stdout) && t.env["NO_COLOR"] == "" && t.env["TERM"] != "dumb"
	t.watching = isTerminal(in.Stderr)
	return t
}

func isTerminal(w io.Writer) bool {
	file, is := w.(*os.File)
	return is && isatty.IsTerminal(file.Fd())
}

// say writes one line to standard error.
func (t *terminal) say(format string, args ...any) {
	fmt.Fprintln(t.stderr, clean(fmt.Sprintf(format, args...)))
}

// progress writes one line to standard error where somebody watches it.
func (t *terminal) progress(format string, args ...any) {
	if t.watching {
		t.say(format, args...)
	}
}

// json prints the command's one document. Characters that could steer a
// terminal are escaped in it too; to a decoder it is the same document.
func (t *terminal) json(document any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range b.String() {
		if r != '\n' && steers(r) {
			fmt.Fprintf(&out, `\u%04x`, r) // all of them lie in the basic plane
		} else {
			out.WriteRune(r)
		}
	}
	_, err := io.WriteString(t.stdout, out.String())
	return err
}

// steers reports whether a terminal may obey the character instead of showing
// it: controls of both sets, and those that reorder or hide text.
func steers(r rune) bool {
	switch {
	case r == 0x2028, r == 0x2029, r == 0xfeff:
		return true
	case unicode.IsControl(r), r <= 0xffff && unicode.Is(unicode.Cf, r) && r != 0x200d:
		return true
	}
	return false
}

// clean makes text safe to print on one line.
func clean(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unprintable(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unprintable(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

func unprintable(r rune) bool { return steers(r) || unicode.Is(unicode.Cf, r) && r != 0x200d }

// style is a colour by what it says.
type style string

const (
	good   style = "32"
	bad    style = "31"
	kept   style = "33"
	faint  style = "2"
	strong style = "1"
)

func (t *terminal) paint(s style, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// outcomeStyle colours an outcome's word.
func outcomeStyle(outcome string) style {
	switch outcome {
	case "removed", "reclaimable", "succeeded", "safe":
		return good
	case "failed":
		return bad
	}
	return kept
}

// printf writes to standard output; arguments are cleaned by whoever built
// them.
func (t *terminal) printf(format string, args ...any) { fmt.Fprintf(t.stdout, format, args...) }

// paragraph prints cleaned text wrapped within the width, every line indented.
func (t *terminal) paragraph(indent, text string) {
	for _, line := range wrap(clean(text), width-len(indent)) {
		t.printf("%s%s\n", indent, line)
	}
}

// item prints cleaned text as one of a list.
func (t *terminal) item(text string) {
	for i, line := range wrap(clean(text), width-4) {
		t.printf("%s%s\n", []string{"  - ", "    "}[min(i, 1)], line)
	}
}

// wrap breaks at spaces; a word longer than the width (a path, a command) gets
// a line of its own, whole.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && columns(line)+1+columns(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// columns is how much room text takes on a terminal: wide characters take two,
// those that combine with the one before them take none.
func columns(text string) (n int) {
	for _, r := range text {
		switch kind := eastasian.LookupRune(r).Kind(); {
		case kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth:
			n += 2
		case !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
			n++
		}
	}
	return n
}

// table prints aligned columns within the width: when a row is too long, the
// column named by its index gives way first, then whichever is widest; text is cut
// in the middle.
func (t *terminal) table(header []string, rows [][]string, gives int, paint func(column int, cell string) style) {
	all := append([][]string{header}, rows...)
	for i, row := range all {
		all[i] = make([]string, len(row))
		for j, cell := range row {
			all[i][j] = clean(cell)
		}
	}
	widths := make([]int, len(header))
	for _, row := range all {
		for j, cell := range row {
			widths[j] = max(widths[j], columns(cell))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	const least = 8
	for over := total - width; over > 0; over-- {
		if widths[gives] <= least {
			gives = slices.Index(widths, slices.Max(widths))
		}
		if widths[gives] <= least {
			break
		}
		widths[gives]--
	}
	for i, row := range all {
		var line strings.Builder
		for j, cell := range row {
			cell = shorten(cell, widths[j])
			pad := strings.Repeat(" ", widths[j]-columns(cell))
			switch {
			case i == 0:
				cell = t.paint(faint, cell)
			case paint != nil:
				if s := paint(j, cell); s != "" {
					cell = t.paint(s, cell)
				}
			}
			line.WriteString(cell)
			if j < len(row)-1 {
				line.WriteString(pad + "  ")
			}
		}
		t.printf("%s\n", strings.TrimRight(line.String(), " "))
	}
}

// shorten cuts the middle out of a text that is too long: both ends of a path
// say more than its middle.
func shorten(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	runes := []rune(text)
	head, tail := 0, len(runes)
	for columns(string(runes[:head+1])) <= (most-1)/2 {
		head++
	}
	for columns(string(runes[tail-1:])) <= most-1-columns(string(runes[:head])) {
		tail--
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}
