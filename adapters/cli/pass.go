package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kandev/reclaim/adapters/job"
	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/policy"
	"github.com/kandev/reclaim/ports"
)

// pass is one attempt at one directory, made by the command itself.
type pass struct {
	snapshot core.Snapshot
	owners   ports.Owners
	rules    ports.Policy
	dialer   ports.Dialer
	reached  core.Target // as it is dialled
	dry      bool
	// begin makes the intent durable, given the record as it will stand once it
	// is; nil where nothing is ever begun.
	begin func(core.Record) error
}

// run makes the attempt. The record it returns is whole, whatever happened.
func (p pass) run(ctx context.Context, t *terminal) core.Record {
	started := time.Now()
	trips := 0
	var session ports.Session
	defer func() {
		if session != nil {
			session.Close()
		}
	}()
	var sofar core.Transcript
	row := beginner{func(q core.Begin) core.Begun {
		recorded := core.Begun{Ending: core.BeginRecorded}
		intent := core.NewRecord(p.snapshot, append(sofar[:len(sofar):len(sofar)], core.Exchange{Query: q, Answer: recorded}))
		if err := p.begin(intent); err != nil {
			return core.Begun{Ending: core.BeginFailed, Detail: err.Error()}
		}
		return recorded
	}}
	driver := job.Driver{Owners: p.owners, Policy: p.rules, Row: row, Dry: p.dry || p.begin == nil,
		Connect: func(ctx context.Context) (ports.Session, core.NeverRan) {
			if session != nil {
				return session, core.NeverRan{}
			}
			connected, refusal := p.dialer.Dial(ctx, p.reached)
			session = connected
			return connected, refusal
		},
		Asked: func(q core.Query) { t.progress("%s", doing(q)) },
		Answered: func(e core.Exchange) {
			sofar = append(sofar, e)
		}}
	record := core.NewRecord(p.snapshot, driver.Run(ctx, p.snapshot))
	if session != nil {
		trips = session.Trips()
	}
	record.Result.RoundTrips = trips
	record.Result.DurationMS = time.Since(started).Milliseconds()
	return record
}

// beginner is the row of a command: the only durable thing about it is that it
// began.
type beginner struct {
	begin func(core.Begin) core.Begun
}

func (b beginner) Begin(_ context.Context, q core.Begin) core.Begun { return b.begin(q) }
func (b beginner) Conclude(context.Context, ports.Conclusion) error { return nil }

// doing says what a question does, while it is waited for.
func doing(q core.Query) string {
	switch q.(type) {
	case core.Owner:
		return "asking who owns the directory"
	case core.Rule:
		return "asking the policy"
	case core.Greet:
		return "connecting and greeting the host"
	case core.Settle:
		return "putting right what an earlier removal left"
	case core.Inventory:
		return "looking for work that would be lost"
	case core.Begin:
		return "recording the intent to remove it"
	case core.Remove:
		return "removing it"
	}
	return "asking"
}

// rulesFrom is our policy with the operator's files beside it.
func rulesFrom(files []string) (*policy.Policy, error) {
	var options []policy.Option
	for _, path := range files {
		text, err := readFile(path, mostCase)
		if err != nil {
			return nil, err
		}
		options = append(options, policy.WithOperator(path, text))
	}
	return policy.New(options...)
}

// dialerFor reaches this machine or hosts over SSH.
func dialerFor(t *terminal, local bool) ports.Dialer {
	if local {
		return localhost.Dialer{}
	}
	return sshhost.New(sshhost.Options{Home: t.env["HOME"], User: t.env["USER"], AgentSocket: t.env["SSH_AUTH_SOCK"]})
}

func encodeRecord(r core.Record) ([]byte, error) {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

// saveRecord writes a record into a folder and returns the file's name.
func saveRecord(folder, id string, r core.Record) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(folder, fileName(id)+".json")
	return path, keep(path, r)
}

// fileName is an id without what could lead out of a folder.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
}
