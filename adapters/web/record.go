package web

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// row is one question of a record, for people.
type row struct {
	replay.Chapter
	Name  string   // on the wire
	Lines []string // what a script said, decoded
	Raw   []string // question and answer as recorded
}

type recordPage struct {
	Filed    ports.Filed
	Result   core.Result
	Story    replay.Story
	Rows     []row
	Changed  *comparison
	Replayed *replayed
}

// replayed is what deciding again came to.
type replayed struct {
	replay.Replayed
	Drift []string // what today's policy rules otherwise
}

func (c *Console) record(r *http.Request) (answer, error) {
	filed, err := c.Store.Record(r.Context(), r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	page := told(filed)
	page.Changed = c.previews.compare(filed.Record)
	a := answer{page: "record", nav: "kept", title: "Record"}
	if r.FormValue("replay") != "" {
		page.Replayed = &replayed{Replayed: replay.Again(filed.Record)}
		if c.Policy != nil {
			page.Replayed.Drift = replay.Drift(r.Context(), c.Policy, filed.Record.Transcript)
		}
		a.fragment = "replayed"
	}
	a.body = page
	return a, nil
}

func told(filed ports.Filed) recordPage {
	page := recordPage{Filed: filed, Result: filed.Record.Result, Story: replay.Tell(filed.Record)}
	for i, e := range filed.Record.Transcript {
		r := row{Chapter: page.Story.Chapters[i], Name: core.QueryName(e.Query)}
		if raw, err := json.MarshalIndent(e, "", "  "); err == nil {
			r.Raw = strings.Split(string(raw), "\n")
		}
		if heard, is := e.Answer.(core.Heard); is {
			if said, is := heard.Reply.(core.Said); is {
				r.Lines = decoded(said.Body)
			}
		}
		page.Rows = append(page.Rows, r)
	}
	return page
}

// decoded is a script's answer with the bytes that came from the host written
// out, a line each.
func decoded(body string) []string {
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	for i, line := range lines {
		words := strings.Split(line, " ")
		for j, word := range words {
			if hexed, is := strings.CutPrefix(word, "~"); is {
				if raw, err := hex.DecodeString(hexed); err == nil {
					words[j] = string(raw)
				}
			} else if text, is := strings.CutPrefix(word, "="); is {
				words[j] = text
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return lines
}
