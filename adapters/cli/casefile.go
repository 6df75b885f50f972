package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/kandev/reclaim/adapters/replay"
	"github.com/kandev/reclaim/core"
)

// caseFile is everything one attempt needs, in a file.
type caseFile struct {
	JobID          string         `json:"job_id" need:"the id of the cleanup job"`
	TaskID         string         `json:"task_id" need:"the id of the task that ended"`
	Trigger        core.Trigger   `json:"trigger" need:"what ended the task: archive or delete"`
	Begun          bool           `json:"begun"`
	Target         caseTarget     `json:"target" need:"the directory and its host"`
	StopsSucceeded bool           `json:"stops_succeeded"`
	Hook           core.Hook      `json:"hook"`
	Ownership      core.Ownership `json:"ownership" need:"what storage knows about the directory's owner"`

	path string
}

// caseTarget is a target of a job snapshot. What an earlier attempt came to may
// stand in it and is never reused.
type caseTarget struct {
	core.Target
	Outcome    string `json:"outcome,omitempty"`
	SkipReason string `json:"skip_reason,omitempty"`
	Detail     string `json:"detail,omitempty"`
}

// words are the values of the types that are words. Of the triggers these are
// the host's: those that never reclaim are known, and refused later.
var words = map[reflect.Type][]string{
	reflect.TypeFor[core.Trigger](): {"archive", "delete", "cascade_archive", "cascade_delete",
		"workspace_delete", "quick_chat_expire", "reconcile", "session_delete", "archive_reclaim"},
	reflect.TypeFor[core.Hook]():  {"ran", "none", "not_run"},
	reflect.TypeFor[core.OptIn](): {"on", "off", "unknown"},
}

const mostCase, mostRecord = 1 << 20, 64 << 20

// readFile reads a file of bounded size; the error says what is wrong with it
// in one sentence, naming it.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, usage("%s: there is no such file", path)
	case err != nil:
		return nil, usage("%s cannot be read: %w", path, unwrapPath(err))
	case info.IsDir():
		return nil, usage("%s is a directory, not a file", path)
	case info.Size() > most:
		return nil, usage("%s has %s, more than the %s such a file may have", path, replay.Size(info.Size()), replay.Size(most))
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("%s cannot be read: %w", path, unwrapPath(err))
	}
	return raw, nil
}

// unwrapPath drops the operation and path that os puts into its errors: the
// sentence names the file already.
func unwrapPath(err error) error {
	if path, is := err.(*os.PathError); is {
		return path.Err
	}
	return err
}

func readCase(path string) (caseFile, error) {
	raw, err := readFile(path, mostCase)
	if err != nil {
		return caseFile{}, err
	}
	c := caseFile{path: path}
	if err := decodeStrictly(raw, &c, words); err != nil {
		return caseFile{}, usage("case file %s: %w", path, err)
	}
	return c, nil
}

// Owner answers as storage would.
func (c caseFile) Owner(context.Context, core.Owner) core.Ownership { return c.Ownership }

// reached is the target as it is dialled: an identity file lies relative to the
// case file's folder.
func (c caseFile) reached() core.Target {
	t := c.Target.Target
	if t.IdentityFile != "" && !filepath.IsAbs(t.IdentityFile) && !strings.HasPrefix(t.IdentityFile, "~") {
		t.IdentityFile = filepath.Join(filepath.Dir(c.path), t.IdentityFile)
	}
	return t
}

// same reports whether an earlier attempt was at this case: the same job's, at
// the same directory of the same host.
func (c caseFile) same(s core.Snapshot) bool {
	port := func(n int) int {
		if n == 0 {
			return 22
		}
		return n
	}
	ours, theirs := c.Target, s.Target
	return c.JobID == s.JobID && c.TaskID == s.TaskID && strings.EqualFold(ours.Host, theirs.Host) &&
		port(ours.Port) == port(theirs.Port) && ours.TaskDir == theirs.TaskDir
}

// begunIn reports whether a record leaves a begin behind that a later attempt
// must know of: one was recorded, now or before, and no verdict was reached
// since that found the directory whole.
func begunIn(r core.Record) bool {
	begun := r.Snapshot.Begun
	for _, e := range r.Transcript {
		if answer, is := e.Answer.(core.Begun); is && answer.Ending == core.BeginRecorded {
			begun = true
		}
	}
	return begun && r.Result.Outcome != core.OutcomeSkipped
}

// begunUntil is until when a removal that the record knows of may start, by the
// host's clock.
func begunUntil(r core.Record) int64 {
	until := r.Snapshot.BegunUntil
	for _, e := range r.Transcript {
		if q, is := e.Query.(core.Begin); is {
			until = max(until, q.NotAfter)
		}
	}
	return until
}

// openEnded reports whether a record is the only thing that knows of a removal
// that may not have ended.
func openEnded(r core.Record) bool { return begunIn(r) && r.Result.Outcome != core.OutcomeRemoved }

// readRecord reads a record; the error is one sentence that names the file.
func readRecord(path string) (core.Record, error) {
	raw, err := readFile(path, mostRecord)
	if err != nil {
		return core.Record{}, err
	}
	record, err := parseRecord(raw)
	if err != nil {
		return core.Record{}, usage("record %s: %w", path, err)
	}
	return record, nil
}

func parseRecord(raw []byte) (core.Record, error) {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return core.Record{}, fmt.Errorf("it is empty")
	}
	return core.ParseRecord(raw)
}
