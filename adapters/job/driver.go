package job

import (
	"context"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// Driver puts one attempt's questions to the ports and records the answers. It
// decides nothing.
type Driver struct {
	Owners ports.Owners
	Policy ports.Policy
	Row    ports.Row
	// Connect yields the session to the target's host, dialling when it must.
	Connect func(ctx context.Context) (ports.Session, core.NeverRan)
	// Dry stops before anything is changed: where leftovers would be put right
	// and where the begin would be recorded.
	Dry bool
	// Asked, where set, hears of every question before it is put, and Answered of
	// every exchange once it is part of the transcript.
	Asked    func(core.Query)
	Answered func(core.Exchange)
}

// Run asks until the attempt ends, is cut short, or, dry, would change
// something. An attempt always starts with an empty transcript: no verdict is
// ever reused. Once ctx has ended no further question is put, and an answer that
// came while it ended says nothing about the directory: where its question
// changes nothing it is dropped, so that a shutdown is never recorded as a
// verdict. A removal that was sent is left to its host.
func (d Driver) Run(ctx context.Context, s core.Snapshot) core.Transcript {
	var t core.Transcript
	for {
		ask, more := core.Next(s, t).(core.Ask)
		if !more || ctx.Err() != nil {
			return t
		}
		if d.Dry && changes(ask.Query) {
			return t
		}
		if d.Asked != nil {
			d.Asked(ask.Query)
		}
		exchange := core.Exchange{Query: ask.Query, Answer: d.answer(ctx, ask.Query)}
		if ctx.Err() != nil && !changes(ask.Query) {
			return t
		}
		t = append(t, exchange)
		if d.Answered != nil {
			d.Answered(exchange)
		}
	}
}

// changes reports whether putting the question changes anything anywhere.
func changes(q core.Query) bool {
	switch q.(type) {
	case core.Settle, core.Begin, core.Remove:
		return true
	}
	return false
}

func (d Driver) answer(ctx context.Context, q core.Query) core.Answer {
	switch q := q.(type) {
	case core.Owner:
		return d.Owners.Owner(ctx, q)
	case core.Rule:
		return d.Policy.Rule(ctx, q.Facts)
	case core.Begin:
		return d.Row.Begin(ctx, q)
	case core.HostQuery:
		script := q.Script()
		heard := core.Heard{Script: core.ScriptDigest(script)}
		session, refusal := d.Connect(ctx)
		if session == nil {
			heard.Reply = refusal
			return heard
		}
		if heard.Reply = session.Run(ctx, script); heard.Reply == nil {
			heard.Reply = core.Unclear{Doubt: core.ConnectionLost, Detail: "the session answered nothing"}
		}
		return heard
	}
	// A question nobody here can answer: the row refuses it.
	return core.Begun{Ending: core.BeginFailed, Detail: "no port answers this question"}
}
