package core

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Every script answers in records: one line each, ASCII, words parted by one
// space. The first word is the record's kind. A value that came from the host
// (a path, a ref name, a URL) is written so that it can neither end a line nor
// look like another word:
//
//	=text   the bytes themselves, only A-Z a-z 0-9 and /._,:@+- and at least one
//	~hex    any bytes, in lower-case hexadecimal, two digits each; may be empty
//
// Everything else (numbers, closed words) stands bare. The first line is
// "reclaim 1 NAME" with the script's name, the last "end N" with N the number
// of lines between the two. Output without the last line is no answer.
const recordsVersion = "1"

// maxRecords bounds what one answer may hold; scripts stay far below it.
const maxRecords = 20000

// record is one line of an answer.
type record struct {
	kind   string
	fields []string
}

var errRecords = errors.New("the answer is not well formed")

// parseRecords reads the whole answer of the script called name, or refuses.
func parseRecords(name, body string) ([]record, error) {
	bad := func(format string, args ...any) ([]record, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{errRecords}, args...)...)
	}
	for i := 0; i < len(body); i++ {
		if b := body[i]; b != '\n' && (b < ' ' || b > '~') {
			return bad("byte %#02x at offset %d", b, i)
		}
	}
	if !strings.HasSuffix(body, "\n") {
		return bad("the last line is cut off")
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if len(lines) < 2 || len(lines) > maxRecords {
		return bad("%d lines", len(lines))
	}
	if want := "reclaim " + recordsVersion + " " + name; lines[0] != want {
		return bad("it does not open with %q", want)
	}
	last := len(lines) - 1
	if want := "end " + strconv.Itoa(last-1); lines[last] != want {
		return bad("it does not close with %q", want)
	}
	records := make([]record, 0, last-1)
	for n, line := range lines[1:last] {
		words := strings.Split(line, " ")
		for _, word := range words {
			if word == "" {
				return bad("record %d has an empty word", n+1)
			}
		}
		if words[0] == "reclaim" || words[0] == "end" {
			return bad("record %d is a second %q", n+1, words[0])
		}
		records = append(records, record{kind: words[0], fields: words[1:]})
	}
	return records, nil
}

// text decodes a field that carries bytes of the host.
func text(field string) (string, bool) {
	if field == "" {
		return "", false
	}
	switch rest := field[1:]; field[0] {
	case '=':
		if rest == "" || strings.ContainsFunc(rest, func(r rune) bool { return !plain(r) }) {
			return "", false
		}
		return rest, true
	case '~':
		raw, err := hex.DecodeString(rest)
		if err != nil || strings.ToLower(rest) != rest {
			return "", false
		}
		return string(raw), true
	}
	return "", false
}

func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._,:@+-", r)
}

// number decodes a bare decimal that is not negative and has no leading zero.
func number(field string) (int64, bool) {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != field {
		return 0, false
	}
	return n, true
}

// quote writes s as one word of POSIX shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
