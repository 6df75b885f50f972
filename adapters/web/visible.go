package web

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain is text from outside as a line of ordinary text: bytes that are no
// UTF-8, control characters, and characters that are not seen or that turn the
// text around are spelled out, and the credentials of a URL are struck out.
func plain(s string) string {
	var b strings.Builder
	pieces(s, func(text string, spelled bool) { b.WriteString(text) })
	return b.String()
}

// shown is plain as HTML: isolated from the direction of what stands around it,
// with what was spelled out marked as such.
func shown(s string) template.HTML {
	var b strings.Builder
	b.WriteString("<bdi>")
	pieces(s, func(text string, spelled bool) {
		if spelled {
			b.WriteString(`<span class="odd">`)
		}
		b.WriteString(html.EscapeString(text))
		if spelled {
			b.WriteString(`</span>`)
		}
	})
	b.WriteString("</bdi>")
	return template.HTML(b.String())
}

// odd reports whether text shows otherwise than it is, so that what is seen is
// not what would be copied.
func odd(s string) bool { return plain(s) != s }

func pieces(s string, put func(text string, spelled bool)) {
	s = withoutCredentials(s)
	from := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		spelling := ""
		switch {
		case r == utf8.RuneError && size == 1:
			spelling = fmt.Sprintf(`\x%02x`, s[i])
		case r < 0x80 && unicode.IsControl(r):
			spelling = fmt.Sprintf(`\x%02x`, r)
			switch r {
			case '\n':
				spelling = `\n`
			case '\t':
				spelling = `\t`
			case '\r':
				spelling = `\r`
			}
		case !unicode.IsPrint(r) || unseen(r):
			spelling = fmt.Sprintf(`\u{%04X}`, r)
		}
		if spelling != "" {
			if from < i {
				put(s[from:i], false)
			}
			put(spelling, true)
			from = i + size
		}
		i += size
	}
	if from < len(s) {
		put(s[from:], false)
	}
}

// unseen reports printable characters that leave no mark of their own: fillers,
// variation selectors and the like. (Everything of category Cf, the
// bidirectional controls among them, is not printable to begin with.)
func unseen(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == 0x2800
}

var urlUser = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\s'"@]*(?:@[^/?#\s'"@]*)*)@`)

// withoutCredentials strikes out what a URL carries before its @: the whole of
// it for http, where it is a token as often as not; the password elsewhere.
func withoutCredentials(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	return urlUser.ReplaceAllStringFunc(s, func(match string) string {
		scheme, user, _ := strings.Cut(strings.TrimSuffix(match, "@"), "://")
		if strings.HasPrefix(strings.ToLower(scheme), "http") {
			return scheme + "://***@"
		}
		if name, _, secret := strings.Cut(user, ":"); secret {
			return scheme + "://" + name + ":***@"
		}
		return match
	})
}

// cell makes a value of a CSV file inert: spreadsheets take a cell that opens
// with one of these for a formula.
func cell(s string) string {
	s = plain(s)
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, " '"))
	if strings.ContainsRune("=+-@|%\uff1d\uff0b\uff0d\uff20", first) {
		return "'" + s
	}
	return s
}
