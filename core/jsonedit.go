package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// member is one key of a JSON object with its places in the object's bytes.
// Offsets are into the bytes the object was read from.
type member struct {
	name             string
	keyStart, keyEnd int
	valStart, valEnd int
}

// members lists an object's keys in order, duplicates included. encoding/json
// folds case and lets the last duplicate win; this does neither. raw must be
// valid JSON.
func members(raw []byte) ([]member, error) {
	at := space(raw, 0)
	if at == len(raw) || raw[at] != '{' {
		return nil, errors.New("not a JSON object")
	}
	var all []member
	for at = space(raw, at+1); at < len(raw) && raw[at] != '}'; at = next(raw, at) {
		m := member{keyStart: at, keyEnd: after(raw, at)}
		key := raw[m.keyStart:m.keyEnd]
		if m.name = string(key[1 : len(key)-1]); bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
			if err := json.Unmarshal(key, &m.name); err != nil {
				return nil, err
			}
		}
		m.valStart = space(raw, space(raw, m.keyEnd)+1)
		m.valEnd = after(raw, m.valStart)
		all, at = append(all, m), m.valEnd
	}
	return all, nil
}

// elements lists the places of an array's elements. raw must be valid JSON.
func elements(raw []byte) ([][2]int, error) {
	at := space(raw, 0)
	if at == len(raw) || raw[at] != '[' {
		return nil, errors.New("not a JSON list")
	}
	var all [][2]int
	for at = space(raw, at+1); at < len(raw) && raw[at] != ']'; at = next(raw, at) {
		end := after(raw, at)
		all, at = append(all, [2]int{at, end}), end
	}
	return all, nil
}

// space is the place of the first byte at or after at that is no white space.
func space(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\n' || raw[at] == '\r') {
		at++
	}
	return at
}

// next goes from the end of one member or element to the start of the next, or
// to the closing bracket.
func next(raw []byte, at int) int {
	if at = space(raw, at); at < len(raw) && raw[at] == ',' {
		at = space(raw, at+1)
	}
	return at
}

// after is the place behind the JSON value that starts at at, in valid JSON.
func after(raw []byte, at int) int {
	depth := 0
	for ; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			for at++; at < len(raw) && raw[at] != '"'; at++ {
				if raw[at] == '\\' {
					at++
				}
			}
			if depth == 0 {
				return min(at+1, len(raw))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
			if depth < 0 {
				return at // the value was a bare word, ended by what encloses it
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	return at
}

// ambiguous says which known key a decoder could read in two ways: written
// twice, or in another case (D27). Empty when there is none.
func ambiguous(all []member, known []string) string {
	for i, m := range all {
		if slices.Contains(known, m.name) {
			if slices.ContainsFunc(all[:i], func(earlier member) bool { return earlier.name == m.name }) {
				return fmt.Sprintf("the key %q is there twice", m.name)
			}
			continue
		}
		for _, name := range known {
			if strings.EqualFold(m.name, name) {
				return fmt.Sprintf("the key %.80q is a variant of %q; which of them counts cannot be told", m.name, name)
			}
		}
	}
	return ""
}

func find(all []member, name string) (member, bool) {
	for _, m := range all {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

func (m member) value(raw []byte) []byte { return raw[m.valStart:m.valEnd] }

func isNull(raw []byte) bool { return string(raw) == "null" }

// textOf reads a JSON string; null and absence are the empty string.
func textOf(all []member, raw []byte, name string) (string, error) {
	m, ok := find(all, name)
	if !ok || isNull(m.value(raw)) {
		return "", nil
	}
	var s string
	if m.value(raw)[0] != '"' || json.Unmarshal(m.value(raw), &s) != nil {
		return "", fmt.Errorf("%q is no string", name)
	}
	return s, nil
}

// truth reads a JSON bool; null and absence are false.
func truth(all []member, raw []byte, name string) (bool, error) {
	m, ok := find(all, name)
	if !ok {
		return false, nil
	}
	switch string(m.value(raw)) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", name)
}

// change sets a key to a value, or removes it where value is nil.
type change struct {
	name  string
	value []byte
}

// edit applies changes to an object and leaves every other byte where it is: a
// key that is there keeps its place, a new one goes to the end. A key that is
// there more than once is set wherever it stands and never removed, so that an
// ambiguous object stays ambiguous.
func edit(raw []byte, changes ...change) ([]byte, error) {
	for _, c := range changes {
		all, err := members(raw)
		if err != nil {
			return nil, err
		}
		var at []int
		for i, m := range all {
			if m.name == c.name {
				at = append(at, i)
			}
		}
		switch {
		case c.value == nil && len(at) == 0:
		case c.value == nil && len(at) == 1:
			raw = without(raw, all, at[0])
		case len(at) == 0:
			raw = appended(raw, all, c)
		default:
			set := c.value
			if set == nil {
				set = []byte("null")
			}
			for _, i := range slices.Backward(at) {
				raw = splice(raw, all[i].valStart, all[i].valEnd, set)
			}
		}
	}
	return raw, nil
}

// without cuts one member and the comma that tied it to its neighbour.
func without(raw []byte, all []member, i int) []byte {
	switch {
	case i > 0:
		return splice(raw, all[i-1].valEnd, all[i].valEnd, nil)
	case len(all) > 1:
		return splice(raw, all[0].keyStart, all[1].keyStart, nil)
	}
	return splice(raw, all[0].keyStart, all[0].valEnd, nil)
}

func appended(raw []byte, all []member, c change) []byte {
	key, _ := json.Marshal(c.name)
	added := slices.Concat(key, []byte(":"), c.value)
	if len(all) == 0 {
		at := bytes.IndexByte(raw, '{') + 1
		return splice(raw, at, at, added)
	}
	end := all[len(all)-1].valEnd
	return splice(raw, end, end, slices.Concat([]byte(","), added))
}

// splice never writes into raw.
func splice(raw []byte, start, end int, with []byte) []byte {
	return slices.Concat(raw[:start], with, raw[end:])
}
