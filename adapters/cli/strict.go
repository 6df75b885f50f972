package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decodeStrictly reads one JSON object into a struct and takes nothing for
// granted: every key must be spelled exactly as its tag and stand once, every
// value be of its kind, and a type in words be one of them. An error names line
// and key and says what is meant. (encoding/json takes "ENABLED" for "enabled"
// and the last of two equal keys.)
func decodeStrictly(raw []byte, into any, words map[reflect.Type][]string) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not UTF-8 text")
	}
	d := document{raw: raw, words: words}
	d.decoder = json.NewDecoder(bytes.NewReader(raw))
	d.decoder.UseNumber()
	root, err := d.value(0)
	if err != nil {
		return d.broken(err)
	}
	if _, err := d.decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: there is more after the end of the object", d.line(d.decoder.InputOffset()))
	}
	if err := d.check(root, reflect.TypeOf(into).Elem(), ""); err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

type document struct {
	raw     []byte
	decoder *json.Decoder
	words   map[reflect.Type][]string
}

// node is one JSON value: a map has members, a list items.
type node struct {
	kind    string // "an object", "a list", "a string", "a number", "true or false", "null"
	end     int64  // offset of its first token's end
	text    string
	members []member
	items   []node
}

type member struct {
	key   string
	end   int64
	value node
}

const deepest = 32

func (d *document) value(depth int) (node, error) {
	if depth > deepest {
		return node{}, errors.New("it is nested too deeply")
	}
	token, err := d.decoder.Token()
	if err != nil {
		return node{}, err
	}
	n := node{end: d.decoder.InputOffset()}
	switch token := token.(type) {
	case nil:
		n.kind = "null"
	case bool:
		n.kind, n.text = "true or false", strconv.FormatBool(token)
	case json.Number:
		n.kind, n.text = "a number", token.String()
	case string:
		n.kind, n.text = "a string", token
	case json.Delim:
		if token == '[' {
			n.kind = "a list"
			for d.decoder.More() {
				item, err := d.value(depth + 1)
				if err != nil {
					return node{}, err
				}
				n.items = append(n.items, item)
			}
		} else {
			n.kind = "an object"
			for d.decoder.More() {
				key, err := d.decoder.Token()
				if err != nil {
					return node{}, err
				}
				m := member{end: d.decoder.InputOffset()}
				m.key, _ = key.(string)
				if m.value, err = d.value(depth + 1); err != nil {
					return node{}, err
				}
				n.members = append(n.members, m)
			}
		}
		if _, err := d.decoder.Token(); err != nil {
			return node{}, err
		}
	}
	return n, nil
}

func (d *document) line(offset int64) int {
	return 1 + bytes.Count(d.raw[:min(offset, int64(len(d.raw)))], []byte("\n"))
}

func (d *document) broken(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if len(bytes.TrimSpace(d.raw)) == 0 {
			return errors.New("it is empty")
		}
		return fmt.Errorf("line %d: it ends in the middle of the JSON", d.line(int64(len(d.raw))))
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: it is not JSON: %w", d.line(syntax.Offset), err)
	}
	return fmt.Errorf("line %d: %w", d.line(d.decoder.InputOffset()), err)
}

// check compares a value with the Go type it is for.
func (d *document) check(n node, t reflect.Type, path string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("line %d: "+format, append([]any{d.line(n.end)}, args...)...)
	}
	what := fmt.Sprintf("%q", path)
	if path == "" {
		what = "the document"
	}
	wanted := func(kind string) error {
		if n.kind == kind {
			return nil
		}
		return bad("%s is %s, and must be %s", what, n.kind, kind)
	}
	switch t.Kind() {
	case reflect.Pointer:
		if n.kind == "null" {
			return nil
		}
		return d.check(n, t.Elem(), path)
	case reflect.Struct:
		if err := wanted("an object"); err != nil {
			return err
		}
		return d.checkMembers(n, t, path)
	case reflect.Slice:
		if err := wanted("a list"); err != nil {
			return err
		}
		for i, item := range n.items {
			if err := d.check(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		if err := wanted("an object"); err != nil {
			return err
		}
		for i, m := range n.members {
			if slices.ContainsFunc(n.members[:i], func(earlier member) bool { return earlier.key == m.key }) {
				return fmt.Errorf("line %d: the key %q stands twice", d.line(m.end), join(path, m.key))
			}
			if err := d.check(m.value, t.Elem(), join(path, m.key)); err != nil {
				return err
			}
		}
	case reflect.Bool:
		return wanted("true or false")
	case reflect.Int, reflect.Int64:
		if err := wanted("a number"); err != nil {
			return err
		}
		if _, err := strconv.ParseInt(n.text, 10, t.Bits()); err != nil {
			return bad("%s is %s, and must be a whole number", what, n.text)
		}
	case reflect.String:
		if err := wanted("a string"); err != nil {
			return err
		}
		words := d.words[t]
		if len(words) > 0 && !slices.Contains(words, n.text) {
			return bad("%s is %q, and must be one of %s%s", what, n.text, strings.Join(words, ", "), meant(n.text, words))
		}
	default:
		return bad("%s has a type that cannot be read", what)
	}
	return nil
}

func (d *document) checkMembers(n node, t reflect.Type, path string) error {
	fields := map[string]reflect.Type{}
	var names []string
	needed := map[string]string{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue // an embedded struct: its fields are visible themselves
		}
		fields[name] = field.Type
		needed[name] = field.Tag.Get("need")
		names = append(names, name)
	}
	seen := map[string]bool{}
	for _, m := range n.members {
		field, known := fields[m.key]
		switch {
		case !known:
			hint := meant(m.key, names)
			if hint == "" {
				hint = "; here belong " + strings.Join(names, ", ")
			}
			return fmt.Errorf("line %d: the key %q is unknown%s", d.line(m.end), join(path, m.key), hint)
		case seen[m.key]:
			return fmt.Errorf("line %d: the key %q stands twice; leave one", d.line(m.end), join(path, m.key))
		}
		seen[m.key] = true
		if err := d.check(m.value, field, join(path, m.key)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if needed[name] != "" && !seen[name] {
			return fmt.Errorf("the key %q is missing: %s", join(path, name), needed[name])
		}
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// meant guesses which of the known words was meant.
func meant(typed string, known []string) string {
	plain := strings.NewReplacer("-", "_", " ", "_")
	for _, word := range known {
		if strings.EqualFold(plain.Replace(strings.TrimSpace(typed)), word) || distance(typed, word) <= 2 && len(word) > 3 {
			return fmt.Sprintf("; did you mean %q?", word)
		}
	}
	return ""
}

// distance counts the letters to insert, drop, change or swap with their
// neighbour (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return 64
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
