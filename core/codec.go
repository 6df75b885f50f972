package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// RecordVersion is the version of the record format this core writes and the
// newest it reads.
const RecordVersion = 1

// QueryName is a question's name on the wire, in logs and in records.
func QueryName(q Query) string {
	switch q.(type) {
	case Owner:
		return "owner"
	case Rule:
		return "rule"
	case Greet:
		return "greet"
	case Settle:
		return "settle"
	case Inventory:
		return "inventory"
	case Begin:
		return "begin"
	case Remove:
		return "remove"
	}
	return "nothing"
}

func sameQuery(a, b Query) bool {
	if QueryName(a) != QueryName(b) {
		return false
	}
	switch a.(type) {
	case Owner, Greet, Settle, Inventory, Begin: // of words and numbers alone
		if a == b {
			return true
		}
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// wireReply is a Reply on the wire: exactly one of the three.
type wireReply struct {
	Said     *wireSaid     `json:"said,omitempty"`
	Unclear  *wireUnclear  `json:"unclear,omitempty"`
	NeverRan *wireNeverRan `json:"never_ran,omitempty"`
	Script   string        `json:"script,omitempty"`
}

// wireSaid holds the body as lines, so that a record can be read and compared
// line by line; the lines are joined by "\n".
type wireSaid struct {
	Exit int      `json:"exit"`
	Body []string `json:"body"`
}

type wireUnclear struct {
	Doubt  Doubt  `json:"doubt"`
	Detail string `json:"detail"`
}

type wireNeverRan struct {
	Fault  Fault  `json:"fault"`
	Detail string `json:"detail"`
}

// MarshalJSON writes the reply under its own name.
func (h Heard) MarshalJSON() ([]byte, error) {
	w := wireReply{Script: h.Script}
	switch r := h.Reply.(type) {
	case Said:
		w.Said = &wireSaid{Exit: r.Exit, Body: strings.Split(r.Body, "\n")}
	case Unclear:
		w.Unclear = &wireUnclear{r.Doubt, r.Detail}
	case NeverRan:
		w.NeverRan = &wireNeverRan{r.Fault, r.Detail}
	default:
		return nil, errors.New("a host's answer without a reply cannot be recorded")
	}
	return json.Marshal(w)
}

// UnmarshalJSON refuses anything but exactly one reply.
func (h *Heard) UnmarshalJSON(raw []byte) error {
	var w wireReply
	if err := strictly(raw, &w); err != nil {
		return err
	}
	var replies []Reply
	if w.Said != nil {
		replies = append(replies, Said{Exit: w.Said.Exit, Body: strings.Join(w.Said.Body, "\n")})
	}
	if w.Unclear != nil {
		replies = append(replies, Unclear{w.Unclear.Doubt, w.Unclear.Detail})
	}
	if w.NeverRan != nil {
		replies = append(replies, NeverRan{w.NeverRan.Fault, w.NeverRan.Detail})
	}
	if len(replies) != 1 {
		return fmt.Errorf("a host's answer holds %d replies, not one", len(replies))
	}
	*h = Heard{Reply: replies[0], Script: w.Script}
	return nil
}

type wireExchange struct {
	Ask    string          `json:"ask"`
	Query  json.RawMessage `json:"query"`
	Answer json.RawMessage `json:"answer"`
}

type exchangeToWrite struct {
	Ask    string `json:"ask"`
	Query  Query  `json:"query"`
	Answer Answer `json:"answer"`
}

// MarshalJSON writes the question's kind, the question and the answer.
func (e Exchange) MarshalJSON() ([]byte, error) {
	if e.Query == nil || e.Answer == nil {
		return nil, errors.New("an exchange needs a question and an answer")
	}
	return json.Marshal(exchangeToWrite{QueryName(e.Query), e.Query, e.Answer})
}

// UnmarshalJSON reads an exchange; an unknown kind or key is an error.
func (e *Exchange) UnmarshalJSON(raw []byte) error {
	var w wireExchange
	if err := strictly(raw, &w); err != nil {
		return err
	}
	var err error
	switch w.Ask {
	case "owner":
		err = exchange[Owner, Ownership](w, e)
	case "rule":
		err = exchange[Rule, Ruling](w, e)
	case "greet":
		err = exchange[Greet, Heard](w, e)
	case "settle":
		err = exchange[Settle, Heard](w, e)
	case "inventory":
		err = exchange[Inventory, Heard](w, e)
	case "begin":
		err = exchange[Begin, Begun](w, e)
	case "remove":
		err = exchange[Remove, Heard](w, e)
	default:
		return fmt.Errorf("the record asks %q, a question this version does not know", w.Ask)
	}
	if err != nil {
		return fmt.Errorf("the exchange %q: %w", w.Ask, err)
	}
	return nil
}

func exchange[Q Query, A Answer](w wireExchange, e *Exchange) error {
	var q Q
	var a A
	if err := strictly(w.Query, &q); err != nil {
		return err
	}
	if err := strictly(w.Answer, &a); err != nil {
		return err
	}
	*e = Exchange{q, a}
	return nil
}

// strictly decodes one JSON value and refuses unknown keys and anything after
// it.
func strictly(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}

// spelledOnce refuses valid JSON in which a key stands twice or is not spelled
// in the small letters that all keys of ours have: encoding/json takes the last
// of two, and "Allow" for "allow", so that two readers could read two records
// (D27). Labels are anybody's words and spelled as they like.
func spelledOnce(raw []byte, path string, free bool) error {
	switch raw[space(raw, 0)] {
	case '[':
		places, _ := elements(raw) // it begins as a list
		for i, place := range places {
			if err := spelledOnce(raw[place[0]:place[1]], fmt.Sprintf("%s[%d]", path, i), false); err != nil {
				return err
			}
		}
	case '{':
		all, err := members(raw)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, m := range all {
			here := m.name
			if path != "" {
				here = path + "." + m.name
			}
			if seen[m.name] {
				return fmt.Errorf("the key %.200q stands twice", here)
			}
			seen[m.name] = true
			if !free && strings.Trim(m.name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				return fmt.Errorf("the key %.200q is unknown", here)
			}
			if err := spelledOnce(m.value(raw), here, m.name == "labels"); err != nil {
				return err
			}
		}
	}
	return nil
}

// ParseRecord reads a record. One from a newer version is an error that says
// so; a key that is unknown, in another case or there twice, and an unknown
// kind, is an error that names it.
func ParseRecord(raw []byte) (Record, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return Record{}, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case version.Version > RecordVersion:
		return Record{}, fmt.Errorf("the record has version %d; this reclaim reads up to version %d: use a newer one", version.Version, RecordVersion)
	case version.Version < 1:
		return Record{}, errors.New("not a record: it names no version")
	}
	if err := spelledOnce(raw, "", false); err != nil {
		return Record{}, fmt.Errorf("the record cannot be read: %w", err)
	}
	var r Record
	if err := strictly(raw, &r); err != nil {
		return Record{}, fmt.Errorf("the record cannot be read: %w", err)
	}
	return r, nil
}
