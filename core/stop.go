package core

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

//go:embed hook.sh
var hookSource string

//go:embed endsession.sh
var endSessionSource string

// RunHook runs a profile's cleanup script on the intact task directory: in the
// account's login shell, with the directory as its working directory and in
// RECLAIM_TASK_DIR, nothing on its standard input. It is no question of an
// attempt: it belongs to the stop phase before it.
type RunHook struct {
	TaskDir string
	Shell   string // the login shell's name; empty: the account's own
	Program string // the cleanup script, in the login shell's language
	Limit   time.Duration
}

// Script renders it.
func (q RunHook) Script() Script {
	return Script{Name: "hook", Limit: q.Limit,
		Body: "dir=" + quote(q.TaskDir) + "\nshell=" + quote(q.Shell) + "\nprogram=" + quote(q.Program) + "\n" + shell(hookSource)}
}

// Judge says whether the cleanup script ran to its end: it was started in the
// directory, it ended, and its status was zero. The sentence says what came of
// it otherwise.
func (q RunHook) Judge(reply Reply) (Hook, string) {
	var said Said
	switch r := reply.(type) {
	case Said:
		said = r
	case Unclear:
		if r.Doubt == LimitReached {
			return HookFailed, fmt.Sprintf("the cleanup script did not end within %s", q.Limit)
		}
		return HookFailed, "nobody knows how the cleanup script ended: " + r.Detail
	case NeverRan:
		return HookFailed, "the cleanup script was not started: " + r.Detail
	default:
		return HookFailed, "nobody knows how the cleanup script ended"
	}
	records, err := parseRecords("hook", said.Body)
	if err != nil || said.Exit != 0 {
		return HookFailed, "the answer about the cleanup script cannot be read"
	}
	var cannot, output string
	status, started := int64(-1), false
	for _, r := range records {
		switch {
		case r.kind == "started" && len(r.fields) == 0 && !started:
			started = true
		case r.kind == "cannot" && len(r.fields) == 1 && cannot == "":
			cannot, _ = text(r.fields[0])
		case r.kind == "status" && len(r.fields) == 1 && status < 0:
			if n, ok := number(r.fields[0]); ok {
				status = n
			}
		case r.kind == "output" && len(r.fields) == 1 && output == "":
			output, _ = text(r.fields[0])
		default:
			return HookFailed, "the answer about the cleanup script cannot be read"
		}
	}
	switch {
	case cannot != "":
		return HookFailed, "the cleanup script was not started: " + cannot
	case !started:
		return HookFailed, fmt.Sprintf("the login shell did not come to the cleanup script (status %d)%s", status, lastSaid(output))
	case status != 0:
		return HookFailed, fmt.Sprintf("the cleanup script ended with status %d%s", status, lastSaid(output))
	}
	return HookRan, ""
}

func lastSaid(output string) string {
	if output = strings.TrimSpace(output); output == "" {
		return ""
	}
	return fmt.Sprintf("; it last said %q", clipped(output, 400))
}

// EndSession ends one session's helper on the host and removes the session's
// own folder below the directory's .kandev/sessions. The helper is the process
// that the folder's pid file names, and only if it was started from that folder;
// where that cannot be told nothing is signalled.
type EndSession struct {
	TaskDir   string
	SessionID string
	Limit     time.Duration
}

// Script renders it.
func (q EndSession) Script() Script {
	return Script{Name: "endsession", Limit: q.Limit,
		Body: "dir=" + quote(q.TaskDir) + "\nsession=" + quote(q.SessionID) + "\n" + shell(endSessionSource)}
}

// Judge returns nil only where nothing of the session runs any more, as far as
// the host lets us see.
func (q EndSession) Judge(reply Reply) error {
	switch r := reply.(type) {
	case Said:
		records, err := parseRecords("endsession", r.Body)
		if err != nil || r.Exit != 0 || len(records) != 1 || len(records[0].fields) > 1 {
			return fmt.Errorf("the host's answer about the session %q cannot be read", q.SessionID)
		}
		switch records[0].kind {
		case "ended", "absent", "foreign": // a process that is not the helper is the inventory's to judge
			return nil
		case "alive":
			return fmt.Errorf("the helper of the session %q still runs on the host", q.SessionID)
		}
		return fmt.Errorf("the session %q could not be ended on the host: %s", q.SessionID, records[0].kind)
	case Unclear:
		return fmt.Errorf("nobody knows whether the session %q ended: %s", q.SessionID, r.Detail)
	case NeverRan:
		return fmt.Errorf("the session %q could not be ended: %s", q.SessionID, r.Detail)
	}
	return fmt.Errorf("nobody knows whether the session %q ended", q.SessionID)
}
