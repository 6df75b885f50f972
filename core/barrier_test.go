package core

import (
	"fmt"
	"strings"
	"testing"
)

// ownedOutright is a snapshot and an answer of storage that together say: owned.
func ownedOutright() (Snapshot, Ownership) {
	s := Snapshot{JobID: "job-1", TaskID: "t-1", Trigger: Archive, Attempt: 1,
		Environment: &Environment{ID: "env-1", TaskID: "t-1"},
		Target: Target{Host: "build.example", Port: 22, Fingerprint: "SHA256:aaa", WorkdirRoot: "~/.kandev",
			TaskDir: "/home/dev/.kandev/tasks/fix-login", Enabled: true}}
	return s, Ownership{TaskTerminal: true, OptInNow: On, Environment: &Environment{ID: "env-1", TaskID: "t-1"}}
}

// endOf is an end in words that a table can hold.
func endOf(step Step) string {
	switch step := step.(type) {
	case nil:
		return "owned"
	case Withdraw:
		return "withdrawn"
	case Done:
		switch o := step.Outcome.(type) {
		case Skipped:
			return fmt.Sprintf("%s/%s", o.Reason, o.Cause)
		case Failed:
			return string(o.Fault)
		}
	}
	return fmt.Sprintf("%T", step)
}

func TestAC_003_OwnershipIsEstablishedOrTheDirectoryIsKept(t *testing.T) {
	// gone has run in the directory and has given it up: no claim by itself.
	gone := Claim{TaskID: "t-2", Host: "build.example", TaskDir: "/home/dev/.kandev/tasks/fix-login", TaskTerminal: true, Stopped: true, OptedIn: true}
	live := func(e *Environment) func(*Snapshot, *Ownership) {
		return func(_ *Snapshot, o *Ownership) { o.Environment = e }
	}
	for name, row := range map[string]struct {
		change func(*Snapshot, *Ownership)
		want   string
	}{
		"everything in order":                        {func(*Snapshot, *Ownership) {}, "owned"},
		"the zero answer":                            {func(_ *Snapshot, o *Ownership) { *o = Ownership{} }, "withdrawn"},
		"storage failed, whatever else it says":      {func(_ *Snapshot, o *Ownership) { o.Error = "disk I/O error"; o.TaskTerminal = false }, "shared/owner_unknown"},
		"un-archived":                                {func(_ *Snapshot, o *Ownership) { o.TaskTerminal = false; o.OptInNow = Off }, "withdrawn"},
		"switched off now":                           {func(_ *Snapshot, o *Ownership) { o.OptInNow = Off; o.Environment = nil }, "disabled/opt_out"},
		"a switch nobody knows":                      {func(_ *Snapshot, o *Ownership) { o.OptInNow = "ON" }, "disabled/opt_out"},
		"no answer about the switch":                 {func(_ *Snapshot, o *Ownership) { o.OptInNow = "" }, "disabled/opt_out"},
		"a host that cannot tell the switch":         {func(_ *Snapshot, o *Ownership) { o.OptInNow = Unknown }, "owned"},
		"environment of another task":                {live(&Environment{ID: "env-1", TaskID: "t-2"}), "shared/owner_unknown"},
		"environment of a task spelled with spaces":  {live(&Environment{ID: "env-1", TaskID: " t-1"}), "shared/owner_unknown"},
		"environment without id":                     {live(&Environment{ID: " ", TaskID: "t-1"}), "shared/owner_unknown"},
		"environment changed since the job was made": {live(&Environment{ID: "env-2", TaskID: "t-1"}), "shared/owner_unknown"},
		"the copy names another task":                {func(s *Snapshot, _ *Ownership) { s.Environment.TaskID = "t-2" }, "shared/owner_unknown"},
		"no copy, a live row":                        {func(s *Snapshot, _ *Ownership) { s.Environment = nil }, "owned"},
		"archived and the row is gone":               {live(nil), "shared/owner_unknown"},
		"cascade-archived and the row is gone":       {func(s *Snapshot, o *Ownership) { s.Trigger = CascadeArchive; o.Environment = nil }, "shared/owner_unknown"},
		"deleted and the row is gone":                {func(s *Snapshot, o *Ownership) { s.Trigger = Delete; o.Environment = nil }, "owned"},
		"cascade-deleted and the row is gone":        {func(s *Snapshot, o *Ownership) { s.Trigger = CascadeDelete; o.Environment = nil }, "owned"},
		"deleted, and nothing is left to read":       {func(s *Snapshot, o *Ownership) { s.Trigger = Delete; s.Environment = nil; o.Environment = nil }, "shared/owner_unknown"},
		"deleted, and the copy names another":        {func(s *Snapshot, o *Ownership) { s.Trigger = Delete; s.Environment.TaskID = "t-2"; o.Environment = nil }, "shared/owner_unknown"},
		"AC-D14 an unknown trigger":                  {func(s *Snapshot, _ *Ownership) { s.Trigger = "archive " }, "shared/owner_unknown"},
		"a snapshot without a task": {func(s *Snapshot, o *Ownership) {
			s.TaskID, s.Environment.TaskID, o.Environment.TaskID = "", "", ""
		}, "shared/owner_unknown"},
		"AC-D7 a sleeping borrower of a live task": {func(_ *Snapshot, o *Ownership) { o.Borrowers = []Borrower{{"s-9", "t-2", "IDLE", false, ""}} }, "shared/borrower"},
		"a borrower of an ended task":              {func(_ *Snapshot, o *Ownership) { o.Borrowers = []Borrower{{"s-9", "t-2", "RUNNING", true, ""}} }, "owned"},
		"a borrower that names no task":            {func(_ *Snapshot, o *Ownership) { o.Borrowers = []Borrower{{"s-9", " ", "COMPLETED", true, ""}} }, "shared/borrower"},
		"AC-D7 a borrower of a claimant's environment": {func(_ *Snapshot, o *Ownership) {
			o.Claims = []Claim{gone}
			o.Borrowers = []Borrower{{"s-9", "t-3", "IDLE", false, gone.TaskID}}
		}, "shared/borrower"},
		"a borrower of a claimant's that is still being cleaned up": {func(_ *Snapshot, o *Ownership) {
			o.Claims = []Claim{gone}
			o.Claims[0].CleanupOpen = true
			o.Borrowers = []Borrower{{"s-9", "t-3", "IDLE", false, gone.TaskID}}
		}, "shared/borrower"},
		"a borrower of a claimant's, of an ended task": {func(_ *Snapshot, o *Ownership) {
			o.Claims = []Claim{gone}
			o.Borrowers = []Borrower{{"s-9", "t-3", "IDLE", true, gone.TaskID}}
		}, "owned"},
		"our own sessions in a claimant's environment": {func(_ *Snapshot, o *Ownership) {
			o.Claims = []Claim{gone}
			o.Borrowers = []Borrower{{"s-9", "t-1", "RUNNING", false, gone.TaskID}}
		}, "owned"},
		"our own sessions": {func(_ *Snapshot, o *Ownership) { o.Borrowers = []Borrower{{"s-9", "t-1", "RUNNING", false, ""}} }, "owned"},
		"a stranger's environment before a claim": {func(_ *Snapshot, o *Ownership) {
			o.Environment.TaskID = "t-2"
			o.Claims = []Claim{{TaskID: "t-3", Unreadable: true}}
		}, "shared/owner_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := ownedOutright()
			row.change(&s, &o)
			if got := endOf(JudgeOwnership(s, o)); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestAC_D6_WhatAnotherTasksRightIs(t *testing.T) {
	const same = "/home/dev/.kandev/tasks/fix-login"
	for name, row := range map[string]struct {
		claims []Claim
		want   string
	}{
		"live":                                 {[]Claim{{TaskID: "t-2", TaskDir: same}}, "shared/claim"},
		"live with a prepared job":             {[]Claim{{TaskID: "t-2", TaskDir: same, CleanupOpen: true, OptedIn: true}}, "shared/claim"},
		"ended, cleanup open":                  {[]Claim{{TaskID: "t-2", TaskDir: same, TaskTerminal: true, Stopped: true, OptedIn: true, CleanupOpen: true}}, "claim_closing"},
		"ended, cleanup open, opted out":       {[]Claim{{TaskID: "t-2", TaskDir: same, TaskTerminal: true, CleanupOpen: true}}, "claim_closing"},
		"AC-D32 ended, a row still names it":   {[]Claim{{TaskID: "t-2", TaskDir: same, TaskTerminal: true, OptedIn: true}}, "claim_closing"},
		"ended, stopped, opted out":            {[]Claim{{TaskID: "t-2", TaskDir: same, TaskTerminal: true, Stopped: true}}, "shared/claim"},
		"ended, stopped, opted in":             {[]Claim{{TaskID: "t-2", TaskDir: same, TaskTerminal: true, Stopped: true, OptedIn: true}}, "owned"},
		"our own":                              {[]Claim{{TaskID: "t-1", TaskDir: same}}, "owned"},
		"our own, unreadable":                  {[]Claim{{TaskID: "t-1", Unreadable: true}}, "owned"},
		"names no task":                        {[]Claim{{TaskID: " ", TaskDir: same, TaskTerminal: true, Stopped: true, OptedIn: true}}, "shared/claim"},
		"unreadable":                           {[]Claim{{TaskID: "t-2", Unreadable: true}}, "shared/claim"},
		"a claim that is shared beats closing": {[]Claim{{TaskID: "t-2", TaskDir: same, TaskTerminal: true}, {TaskID: "t-3", TaskDir: same}}, "shared/claim"},
		"a session without a directory":        {[]Claim{{TaskID: "t-2"}}, "owned"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := ownedOutright()
			o.Claims = row.claims
			if got := endOf(JudgeOwnership(s, o)); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestAC_D8_ClaimsMatchWhereverTheyCouldMeanTheSameDirectory(t *testing.T) {
	for name, row := range map[string]struct {
		claim Claim
		want  bool
	}{
		"the same":                           {Claim{Host: "build.example", Port: 22, TaskDir: "/home/dev/.kandev/tasks/fix-login"}, true},
		"case, trailing dot, default port":   {Claim{Host: "Build.Example.", TaskDir: "/home/dev/.kandev/tasks/fix-login/"}, true},
		"another user":                       {Claim{Host: "build.example", User: "root", TaskDir: "/home/dev/.kandev/tasks/fix-login"}, true},
		"another host":                       {Claim{Host: "other.example", TaskDir: "/home/dev/.kandev/tasks/fix-login"}, false},
		"AC-D33 another name, the same pin":  {Claim{Host: "10.0.0.7", Port: 2222, Fingerprint: "SHA256:aaa", TaskDir: "/home/dev/.kandev/tasks/fix-login"}, true},
		"AC-D33 the same name, another pin":  {Claim{Host: "build.example", Fingerprint: "SHA256:bbb", TaskDir: "/home/dev/.kandev/tasks/fix-login"}, true},
		"another port, no pin":               {Claim{Host: "build.example", Port: 2222, TaskDir: "/home/dev/.kandev/tasks/fix-login"}, true},
		"another port, another pin":          {Claim{Host: "build.example", Port: 2222, Fingerprint: "SHA256:bbb", TaskDir: "/home/dev/.kandev/tasks/fix-login"}, false},
		"no host":                            {Claim{TaskDir: "/home/dev/.kandev/tasks/fix-login"}, true},
		"a sibling":                          {Claim{Host: "build.example", TaskDir: "/home/dev/.kandev/tasks/fix-logout"}, false},
		"a longer name":                      {Claim{Host: "build.example", TaskDir: "/home/dev/.kandev/tasks/fix-login2"}, false},
		"below":                              {Claim{Host: "build.example", TaskDir: "/home/dev//.kandev/tasks/fix-login/api"}, true},
		"above":                              {Claim{Host: "build.example", TaskDir: "/home/dev/.kandev"}, true},
		"the root of everything":             {Claim{Host: "build.example", TaskDir: "/"}, true},
		"above, on a disk that ignores case": {Claim{Host: "build.example", TaskDir: "/HOME/Dev"}, true},
		"through a link":                     {Claim{Host: "build.example", TaskDir: "/mnt/big/tasks/Fix-Login"}, true},
		"not absolute, the same name":        {Claim{Host: "build.example", TaskDir: "~/.kandev/tasks/fix-login"}, true},
		"not absolute, another name":         {Claim{Host: "build.example", TaskDir: "~/.kandev/tasks/other"}, false},
		"not absolute, perhaps above":        {Claim{Host: "build.example", TaskDir: "~/.kandev/tasks"}, true},
		"not absolute, perhaps below":        {Claim{Host: "build.example", TaskDir: "~/.kandev/tasks/fix-login/api"}, true},
		"a home directory":                   {Claim{Host: "build.example", TaskDir: "~"}, true},
		"dots that may lead here":            {Claim{Host: "build.example", TaskDir: "/home/dev/.kandev/tasks/other/.."}, true},
		"dots, another name":                 {Claim{Host: "build.example", TaskDir: "/srv/../data/other"}, false},
		"AC-D8 unreadable":                   {Claim{Unreadable: true, Host: "other.example", TaskDir: "/x"}, true},
		"white space at its end":             {Claim{Host: "build.example", TaskDir: "/home/dev/.kandev/tasks/fix-login \n"}, true},
		"white space around another name":    {Claim{Host: "build.example", TaskDir: " /home/dev/.kandev/tasks/other "}, false},
		"no directory":                       {Claim{Host: "build.example"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := ownedOutright()
			if got := row.claim.matches(s.Target); got != row.want {
				t.Errorf("matches is %t, want %t", got, row.want)
			}
		})
	}
}

func TestSpellingsOfOneHostAreEqual(t *testing.T) {
	for _, same := range [][]string{
		{"localhost", "LOCALHOST.", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", " localhost "},
		{"2001:db8::7", "[2001:DB8:0:0:0:0:0:7]", "2001:0db8::0007"},
		{"10.0.0.1", "::ffff:10.0.0.1"},
	} {
		for _, spelling := range same {
			if got, want := canonicalHost(spelling), canonicalHost(same[0]); got != want {
				t.Errorf("%q is %q, but %q is %q", spelling, got, same[0], want)
			}
		}
	}
	for _, pair := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"localhost", "localhost.example"}, {"2001:db8::7", "2001:db8::8"}, {"a", "b"}} {
		if canonicalHost(pair[0]) == canonicalHost(pair[1]) {
			t.Errorf("%q and %q are two hosts", pair[0], pair[1])
		}
	}
}

func TestAnOwnershipRefusalNamesTheOtherTaskAndWhatToDo(t *testing.T) {
	s, o := ownedOutright()
	o.Borrowers = []Borrower{{"s-9", "t-2", "IDLE", false, ""}}
	o.Claims = []Claim{{TaskID: "t-3\nsudo", Host: "build.example", TaskDir: s.Target.TaskDir}}
	skipped := JudgeOwnership(s, o).(Done).Outcome.(Skipped)
	if len(skipped.Others) != 1 {
		t.Fatalf("%d other findings, want the claim beside the borrower", len(skipped.Others))
	}
	for _, f := range append(skipped.Others, skipped.Finding) {
		if len(f.Cure) == 0 || strings.Contains(f.Detail, "\n") {
			t.Errorf("detail %q, cure %v", f.Detail, f.Cure)
		}
	}
	if !strings.Contains(skipped.Detail, "t-2") || !strings.Contains(skipped.Others[0].Detail, "t-3") {
		t.Errorf("the other tasks are not named: %q, %q", skipped.Detail, skipped.Others[0].Detail)
	}

	o.Claims[0].Unreadable = true
	if skipped = JudgeOwnership(s, o).(Done).Outcome.(Skipped); !strings.Contains(skipped.Others[0].Detail, "row does not let us read") {
		t.Errorf("%q", skipped.Others[0].Detail)
	}
	for i := range 1000 {
		o.Claims = append(o.Claims, Claim{TaskID: fmt.Sprint("t-", i+10), TaskDir: strings.Repeat("/x", 3000), Unreadable: true})
	}
	skipped = JudgeOwnership(s, o).(Done).Outcome.(Skipped)
	if len(skipped.Others)+1 != maxTold || !strings.HasPrefix(skipped.Others[maxTold-2].Detail, "995 further") {
		t.Errorf("%d findings, the last: %v", len(skipped.Others)+1, skipped.Others[len(skipped.Others)-1])
	}
}
