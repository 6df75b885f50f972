package core

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALaunchsMetadataIsReadOrRefusedAndNeverGuessed(t *testing.T) {
	for raw, want := range map[string]Launch{
		"": {}, " null ": {}, "{}": {},
		`{"ssh_host":" h ","ssh_port":"2222","ssh_user":" u ","ssh_host_fingerprint":" f ","ssh_identity_source":" file ","ssh_identity_file":" k ","ssh_proxy_jump":" j ","ssh_shell":" sh ",
		  "ssh_workdir_root":" ~/k ","ssh_remote_task_dir":"/d ","ssh_reclaim_task_dir":"true","ssh_baseline":" b ","cleanup_script":" c ","executor_profile_id":" p ","ssh_reclaim_disposable":"rust,node"}`: {Profile: "p", CleanupScript: " c ", Baseline: "b",
			Target: Target{Host: "h", Port: 2222, User: "u", Fingerprint: "f", IdentitySource: "file", IdentityFile: "k", ProxyJump: "j", Shell: "sh", WorkdirRoot: "~/k", TaskDir: "/d ", Enabled: true, Disposable: ReadDisposable("rust,node")}},
		`{"ssh_port":22}`: {Target: Target{Port: 22}}, `{"ssh_port":22.0}`: {Target: Target{Port: 22}}, `{"ssh_port":" 22 "}`: {Target: Target{Port: 22}}, `{"ssh_port":"x"}`: {}, `{"ssh_port":22.5}`: {},
		`{"ssh_port":65535}`: {Target: Target{Port: 65535}}, `{"ssh_port":65536}`: {}, `{"ssh_port":0}`: {}, `{"ssh_port":1}`: {Target: Target{Port: 1}}, `{"ssh_port":-1}`: {}, `{"ssh_port":[]}`: {},
		`{"ssh_remote_task_dir":" \t"}`:     {},
		`{"ssh_reclaim_disposable":7}`:      {},
		`{"ssh_reclaim_task_dir":"True"}`:   {},
		`{"ssh_reclaim_task_dir":true}`:     {},
		`{"ssh_reclaim_task_dir":["true"]}`: {},
	} {
		got, err := ParseLaunch([]byte(raw))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", raw, err, diff)
		}
	}
	for raw, says := range map[string]string{`{`: "no JSON", `[]`: "not a JSON object", `{"ssh_host":"a","ssh_host":"b"}`: "there twice", `{"SSH_HOST":"a"}`: "variant", `{"ssh_host":1,"ssh_user":2}`: `"ssh_host" is no string`} {
		if _, err := ParseLaunch([]byte(raw)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestAProfilesSwitchIsReadExactlyAndSetWithoutTouchingTheRest(t *testing.T) {
	for config, on := range map[string]bool{`{"ssh_reclaim_task_dir":"true"}`: true, `{"ssh_reclaim_task_dir":"true "}`: false, `{"ssh_reclaim_task_dir":true}`: false, `{}`: false, ``: false, `null`: false,
		`[]`: false, `{"ssh_reclaim_task_dir":"true","ssh_reclaim_task_dir":"true"}`: false, `{"ssh_reclaim_task_dir":"true","Ssh_reclaim_task_dir":"true"}`: false} {
		if OptedIn([]byte(config)) != on {
			t.Errorf("%s: %v", config, !on)
		}
	}
	for config, want := range map[string]string{"": `{"ssh_reclaim_task_dir":"true"}`, " null": `{"ssh_reclaim_task_dir":"true"}`, `{ "a" : 1 }`: `{ "a" : 1,"ssh_reclaim_task_dir":"true" }`,
		`{"ssh_reclaim_task_dir":"false", "b":2}`: `{"ssh_reclaim_task_dir":"true", "b":2}`} {
		if got, err := WithOptIn([]byte(config), true); err != nil || string(got) != want {
			t.Errorf("%s: %s %v", config, got, err)
		}
	}
	if got, err := WithOptIn([]byte(`{"ssh_reclaim_task_dir":"true"}`), false); err != nil || string(got) != `{"ssh_reclaim_task_dir":"false"}` {
		t.Errorf("%s %v", got, err)
	}
	for config, says := range map[string]string{`{`: "no JSON", `[]`: "not a JSON object", `{"ssh_reclaim_task_dir":"","ssh_reclaim_task_dir":""}`: "twice"} {
		if got, err := WithOptIn([]byte(config), true); err == nil || got != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s %v", config, got, err)
		}
	}
}

// captured is a task with one launch into a directory.
func captured(launches ...Launch) Captured {
	return Captured{Launches: launches, Environment: &CapturedEnvironment{ID: "env-1", TaskID: "t-1", ExecutorType: "ssh", WorkspacePath: "/home/dev/.kandev/tasks/old"},
		Fallback: Target{Host: "h", WorkdirRoot: "~/.kandev", Enabled: true, Disposable: "node"}}
}

func launched(edit func(*Launch)) Launch {
	l := Launch{SessionID: "s-1", ExecutionID: "x-1", Profile: "p-1", Baseline: strings.Repeat("a", 64),
		Target: Target{Host: "h", Port: 22, User: "dev", Fingerprint: "SHA256:a", WorkdirRoot: "~/.kandev", TaskDir: "/home/dev/.kandev/tasks/x", Enabled: true, Disposable: "node"}}
	if edit != nil {
		edit(&l)
	}
	return l
}

func TestASnapshotIsMadeOfWhatWasLaunchedAndOfNothingElse(t *testing.T) {
	for _, row := range []struct {
		name    string
		made    Captured
		targets int
		check   func(JobTarget) bool
		has     []string
		hasNot  []string
	}{
		{"one launch", captured(launched(nil)), 1, func(j JobTarget) bool {
			return j.Target.Enabled && j.Target.Disposable == "node" && j.Baseline == strings.Repeat("a", 64) && slices.Equal(j.Profiles, []string{"p-1"}) && j.Notes == nil
		}, []string{`"stop_targets":[{"session_id":"s-1","execution_id":"x-1"}]`, `"task_environment":{"id":"env-1"`}, []string{"delete_environment_row", "terminal"}},
		{"a launch that ended", captured(launched(func(l *Launch) { l.Ended = true })), 1, nil, []string{`"terminal":true`}, nil},
		{"the task is deleted", func() Captured { c := captured(launched(nil)); c.Deletes = true; return c }(), 1, nil, []string{`"delete_environment_row":true`}, nil},
		{"the task is deleted without an environment", Captured{Deletes: true}, 0, nil, nil, []string{"delete_environment_row", "task_environment"}},
		{"no launch into a host", captured(launched(func(l *Launch) { l.Target.Host = "" }), launched(func(l *Launch) { l.Target.TaskDir = "" })), 1, func(j JobTarget) bool {
			return !j.Target.Enabled && j.Target.Disposable == "" && j.Target.TaskDir == "/home/dev/.kandev/tasks/old" && j.Target.Host == "h" && len(j.Notes) == 1 && strings.Contains(j.Notes[0], "no launch of this task is recorded")
		}, nil, nil},
		{"no launch, and another kind of executor", func() Captured { c := captured(); c.Environment.ExecutorType = "docker"; return c }(), 0, nil, nil, nil},
		{"no launch, and no path", func() Captured { c := captured(); c.Environment.WorkspacePath = " "; return c }(), 0, nil, nil, nil},
		{"no launch, and no environment", Captured{}, 0, nil, nil, nil},
		{"nothing but launches that cannot be read", func() Captured { c := captured(); c.Unreadable = 1; return c }(), 0, nil, nil, nil},
		{"one of two cannot be read", func() Captured { c := captured(launched(nil)); c.Unreadable = 1; return c }(), 1, func(j JobTarget) bool {
			return !j.Target.Enabled && len(j.Notes) == 1 && strings.Contains(j.Notes[0], "cannot be read")
		}, nil, nil},
		{"two profiles in one directory", captured(launched(func(l *Launch) { l.Profile = "p-2" }), launched(nil), launched(nil)), 1, func(j JobTarget) bool { return slices.Equal(j.Profiles, []string{"p-1", "p-2"}) }, nil, nil},
		{"a launch of no profile", captured(launched(func(l *Launch) { l.Profile, l.Baseline, l.Target.Disposable = "", "", "" })), 1, func(j JobTarget) bool { return j.Profiles == nil }, nil, []string{"reclaim"}},
		{"one of two is off and names no host", captured(launched(nil), launched(func(l *Launch) { l.Target.Host, l.Target.Enabled = "", false })), 1, func(j JobTarget) bool {
			return !j.Target.Enabled && len(j.Notes) == 1 && strings.Contains(j.Notes[0], "names no host")
		}, nil, nil},
		{"one of two is off, names no host, and ran in another directory", captured(launched(nil), launched(func(l *Launch) { l.Target.Host, l.Target.TaskDir, l.Target.Enabled = "", "/srv/else", false })), 1, func(j JobTarget) bool {
			return j.Target.Enabled && len(j.Notes) == 0
		}, nil, nil},
		{"one of two is off", captured(launched(nil), launched(func(l *Launch) { l.Target.Enabled = false })), 1, func(j JobTarget) bool { return !j.Target.Enabled }, nil, nil},
	} {
		raw, err := Capture(row.made)
		if err != nil {
			t.Fatal(err)
		}
		targets := parse(t, string(raw)).Targets()
		if len(targets) != row.targets || row.check != nil && !row.check(targets[0]) {
			t.Errorf("%s: %+v\n%s", row.name, targets, raw)
		}
		for _, part := range row.has {
			if !strings.Contains(string(raw), part) {
				t.Errorf("%s lacks %s: %s", row.name, part, raw)
			}
		}
		for _, part := range row.hasNot {
			if strings.Contains(string(raw), part) {
				t.Errorf("%s has %s: %s", row.name, part, raw)
			}
		}
	}
}

func TestAnExecutorsConfigLeadsWhereItSays(t *testing.T) {
	got := ExecutorTarget([]byte(`{"ssh_host":" h ","ssh_port":"2222","ssh_user":"u","ssh_host_fingerprint":"f","ssh_identity_source":"file","ssh_identity_file":"k","ssh_proxy_jump":"j","ssh_host_alias":"al"}`),
		[]byte(`{"ssh_shell":"sh","ssh_workdir_root":"~/k","ssh_reclaim_task_dir":"true","ssh_host":"not this"}`))
	want := Target{Host: "h", Port: 2222, User: "u", Fingerprint: "f", IdentitySource: "file", IdentityFile: "k", ProxyJump: "j", Shell: "sh", WorkdirRoot: "~/k"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := ExecutorTarget([]byte(`{"ssh_host_alias":" al "}`), nil); got != (Target{Host: "al"}) {
		t.Errorf("%+v", got)
	}
	for config, want := range map[string]string{`{"a":" x "}`: " x ", `{"a":1}`: "", `{"a":"x","a":"y"}`: "", `{"A":"x"}`: "", `[]`: "", `{`: "", `{}`: ""} {
		if got := ConfigText([]byte(config), "a"); got != want {
			t.Errorf("%s: %q", config, got)
		}
	}
}

func TestADirectoryIsIndexedByItsNamesOrNotAtAll(t *testing.T) {
	for dir, want := range map[string][]string{"/Home//dev/Tasks/x/": {"home", "dev", "tasks", "x"}, "/": nil, "": nil, "home/x": nil, "/a/./b": nil, "/a/..": nil} {
		got, ok := DirectoryNames(dir)
		if !slices.Equal(got, want) || ok != (want != nil) {
			t.Errorf("%s: %v %v", dir, got, ok)
		}
	}
	target := fit().Target
	mine := Claim{Host: target.Host, Port: target.Port, Fingerprint: target.Fingerprint, TaskDir: target.TaskDir}
	other := mine
	other.TaskDir = "/srv/k/tasks/another"
	if !mine.Matches(target) || other.Matches(target) {
		t.Error("a claim's right is another one's")
	}
}

func TestASnapshotKnowsOfARemovalThatWasNotSeenToEndAndIsJudgedAgainWithoutItsOutcomes(t *testing.T) {
	const dir = `{"host":"h","port":22,"user":"u","task_dir":"/srv/k/tasks/`
	rows := map[string]bool{ // whether a removal is outstanding
		dir + `a","reclaim":{"begun":2}}`:                                   true,
		dir + `a","outcome":"removed","reclaim":{"begun":2}}`:               false,
		dir + `a","outcome":"failed","reclaim":{"begun":2,"fault":"lost"}}`: true,
		dir + `a","outcome":"skipped"}`:                                     false,
		dir + `a"}`:                                                         false,
	}
	for row, removing := range rows {
		if s := parse(t, `{"ssh_task_dirs":[`+row+`]}`); s.Removing() != removing {
			t.Errorf("%s: %v", row, !removing)
		}
	}
	s := parse(t, `{"x":1,"ssh_task_dirs":[`+dir+`a","outcome":"removed","detail":"gone"},`+
		dir+`b","enabled":true,"outcome":"skipped","skip_reason":"stash_present","detail":"a stash","reclaim":{"cause":"stash","cure":[{"what":"pop"}],"profiles":["p"]}},`+
		dir+`c","outcome":"failed","detail":"cut","reclaim":{"begun":3,"fault":"path_refused","final":true}},`+dir+`d","outcome":"skipped","reclaim":7}]}`)
	again, err := s.Again()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"x":1,"ssh_task_dirs":[` + dir + `a","outcome":"removed","detail":"gone"},` + dir + `b","enabled":true,"reclaim":{"profiles":["p"]}},` +
		dir + `c","reclaim":{"begun":3}},` + dir + `d","reclaim":7}]}`
	if diff := cmp.Diff(want, string(again.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestWhatMustNotReachAHostIsRefusedBeforeALaunch(t *testing.T) {
	good := func() Prepare {
		return Prepare{Root: "~/.kandev", Segment: "task-7", SessionID: "s-1", Repositories: []Repository{{URL: "https://git.example/a.git", Base: "main"}, {Name: "lib", URL: "u"}, {Name: "Lib2", URL: "u"}}}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Prepare){
		"a segment with a slash": func(q *Prepare) { q.Segment = "a/b" }, "no segment": func(q *Prepare) { q.Segment = "" }, "no session": func(q *Prepare) { q.SessionID = "" },
		"a session elsewhere": func(q *Prepare) { q.SessionID = ".." }, "a root elsewhere": func(q *Prepare) { q.Root = "k" }, "no repository": func(q *Prepare) { q.Repositories = nil },
		"a first one beside the directory": func(q *Prepare) { q.Repositories[0].Name = "x" }, "a URL that is an option": func(q *Prepare) { q.Repositories[1].URL = "-x" },
		"a branch that is an option": func(q *Prepare) { q.Repositories[0].Base = "--upload-pack=x" }, "a URL of two lines": func(q *Prepare) { q.Repositories[0].URL = "a\nb" },
		"a URL with a delete": func(q *Prepare) { q.Repositories[0].URL = "a\x7f" }, "no URL": func(q *Prepare) { q.Repositories[2].URL = "" }, "a repository above": func(q *Prepare) { q.Repositories[1].Name = ".." },
		"a repository without a name": func(q *Prepare) { q.Repositories[1].Name = "" }, "two of a name": func(q *Prepare) { q.Repositories[2].Name = "LIB" }, "the first's own": func(q *Prepare) { q.Repositories[1].Name = ".GIT" },
		"the backend's own": func(q *Prepare) { q.Repositories[1].Name = ".kandev" }, "an option": func(q *Prepare) { q.Repositories[1].Name = "-lib" },
	} {
		q := good()
		edit(&q)
		if err := q.Check(); err == nil {
			t.Errorf("%s is sent", name)
		}
	}
	body := good().Script().Body
	for _, part := range []string{"root='~/.kandev'\nsegment='task-7'\nsession='s-1'\n", "\nprimary 'https://git.example/a.git' 'main'\nadditional 'lib' 'u' ''\nadditional 'Lib2' 'u' ''\nbaseline\nagent\nclosing\n"} {
		if !strings.Contains(body, part) {
			t.Errorf("the script lacks %q", part)
		}
	}
}

func TestALaunchCameToWhatItsWholeAnswerSays(t *testing.T) {
	q := Prepare{Root: "~/.kandev", Segment: "task-7"}
	digest := strings.Repeat("ab", 32)
	whole := "home =/home/dev\ndir =/home/dev/.kandev/tasks/task-7\ncheckout made\nbaseline " + digest + "\nagent started\npid 4711"
	say := func(text string) Reply {
		return Said{Body: "reclaim 1 prepare\n" + text + "\nend " + string(rune('0'+strings.Count(text, "\n")+1)) + "\n"}
	}
	got, err := q.Judge(say(whole))
	if diff := cmp.Diff(Prepared{Home: "/home/dev", TaskDir: "/home/dev/.kandev/tasks/task-7", PID: 4711, Baseline: digest}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := q.Judge(say(strings.NewReplacer("made", "reused", "started", "resumed", "4711", "2").Replace(whole))); err != nil || !got.Reused || !got.Resumed || got.PID != 2 {
		t.Errorf("%+v %v", got, err)
	}
	for _, row := range []struct{ from, to, says string }{
		{"home =/home/dev", "home x", "not well formed"}, {"dir =", "dir ", "not well formed"}, {"pid 4711", "pid x", "not well formed"}, {"baseline " + digest, "baseline x", "not well formed"},
		{"pid 4711", "pid 4711\npid 4711", "not well formed"}, {"pid 4711", "pid 4711 1", "not well formed"}, {"pid 4711", "pid 1", "names no agent"}, {"pid 4711", "pid 0", "names no agent"},
		{"home =/home/dev", "home =home", "not absolute"}, {"tasks/task-7", "tasks/a/b", "more than one segment"}, {"tasks/task-7", "tasks/task-8", `made "/home/dev/.kandev/tasks/task-8"`},
		{"agent started", "cannot =here", "here"}, {"agent started", "cannot x", ""},
	} {
		got, err := q.Judge(say(strings.Replace(whole, row.from, row.to, 1)))
		if err == nil || !strings.Contains(err.Error(), row.says) || got != (Prepared{}) {
			t.Errorf("%q: %+v %v", row.to, got, err)
		}
	}
	for reply, says := range map[Reply]string{Said{}: "not well formed", Unclear{Detail: "cut"}: "nobody knows how far the launch came: cut", NeverRan{Detail: "refused"}: "refused", nil: "nobody knows how far the launch came"} {
		if got, err := q.Judge(reply); err == nil || !strings.Contains(err.Error(), says) || got != (Prepared{}) {
			t.Errorf("%v: %+v %v", reply, got, err)
		}
	}
}

func TestASessionHasEndedOnlyWhereTheHostSaysSo(t *testing.T) {
	q := EndSession{TaskDir: "/t'x", SessionID: "s-1"}
	say := func(text string) Reply { return Said{Body: "reclaim 1 endsession\n" + text + "\nend 1\n"} }
	for _, reply := range []Reply{say("ended"), say("absent"), say("foreign =x")} {
		if err := q.Judge(reply); err != nil {
			t.Errorf("%v: %v", reply, err)
		}
	}
	for reply, says := range map[Reply]string{say("alive"): "still runs", say("stuck"): "could not be ended on the host: stuck", say("ended a b"): "cannot be read", Said{}: "cannot be read",
		Said{Body: "reclaim 1 endsession\nended\nend 1\n", Exit: 1}: "cannot be read", Said{Body: "reclaim 1 endsession\nended\nended\nend 2\n"}: "cannot be read",
		Unclear{Detail: "cut"}: "nobody knows whether the session \"s-1\" ended: cut", NeverRan{Detail: "refused"}: "could not be ended: refused", nil: "nobody knows whether"} {
		if err := q.Judge(reply); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", reply, err)
		}
	}
	if body := q.Script().Body; !strings.HasPrefix(body, "dir='/t'\\''x'\nsession='s-1'\n") {
		t.Errorf("%.80q", body)
	}
	for status, live := range map[string]bool{Stopped: false, "completed": false, "failed": false, "running": true, "": true, "STOPPED": true} {
		if (Running{Status: status}).Live() != live {
			t.Errorf("%q: %v", status, !live)
		}
	}
}

func TestAnEnvironmentThatCannotBeReadIsNoSnapshot(t *testing.T) {
	for raw, says := range map[string]string{`{"task_environment":[]}`: "not a JSON object", `{"task_environment":{"id":"a","id":"b"}}`: "twice", `{"task_environment":{"id":1}}`: `"id" is no string`} {
		if _, err := ParseJobSnapshot([]byte(raw)); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "task_environment") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if s := parse(t, `{}`); s.Environment() != nil || s.Targets() != nil || s.Removing() {
		t.Errorf("%+v", s)
	}
	s := parse(t, `{"task_environment":{"id":"a","task_id":"t","executor_profile_id":" p "}}`)
	s.Environment().ID = "changed"
	if s.Environment().ID != "a" {
		t.Error("the caller's copy is the snapshot's own")
	}
}

func TestWhatOurOwnObjectSaysIsReadOrRefusesTheTarget(t *testing.T) {
	const dir = `{"ssh_task_dirs":[{"host":"h","task_dir":"/srv/k/tasks/a","enabled":true,"reclaim":`
	for raw, says := range map[string]string{`{"begun":-1}`: `"begun" is no attempt`, `{"begun":"x"}`: `"begun" is no attempt`, `{"begun_until":1.5}`: `"begun_until" is no time`, `{"cause":1}`: `"cause" is no string`,
		`{"fault":1}`: `"fault" is no string`, `{"disposable":1}`: `"disposable" is no string`, `{"baseline":1}`: `"baseline" is no string`, `{"final":"x"}`: `"final" is neither`, `{"cure":1,"hooks":1}`: `"cure" is of another type`,
		`{"hooks":1,"notes":1}`: `"hooks" is of another type`, `{"notes":1,"profiles":1}`: `"notes" is of another type`, `{"profiles":1}`: `"profiles" is of another type`, `[]`: "not a JSON object", `{"begun":1,"begun":2}`: "twice", `{"Begun":1}`: "variant"} {
		got := parse(t, dir+raw+"}]}").Targets()[0]
		if !strings.Contains(got.Invalid, says) || !strings.HasPrefix(got.Invalid, "reclaim: ") {
			t.Errorf("%s: %q", raw, got.Invalid)
		}
		if strings.Contains(says, "begun\" is") && got.Begun != 1 {
			t.Errorf("%s: an intent that cannot be read is none: %+v", raw, got)
		}
	}
	got := parse(t, dir+`{"begun":3,"begun_until":99,"cause":"c","fault":"lost","final":true,"baseline":"b","disposable":"node","bytes":1,"hooks":[{"session_id":"s","ending":"ran"}],"notes":["n"],"profiles":["p"],"cure":[{"what":"w"}]}}]}`).Targets()[0]
	want := JobTarget{Target: Target{Host: "h", TaskDir: "/srv/k/tasks/a", Enabled: true, Disposable: "node"}, Begun: 3, BegunUntil: 99, Cause: "c", Fault: Lost, Final: true, Baseline: "b", Bytes: 1,
		Hooks: []SessionHook{{SessionID: "s", Ending: HookRan}}, Notes: []string{"n"}, Profiles: []string{"p"}, Cure: []Remedy{{What: "w"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := parse(t, dir+`{"begun":0,"begun_until":0,"bytes":0}}]}`).Targets()[0]; got.Invalid != "" || got.Begun != 0 {
		t.Errorf("%+v", got)
	}
	for _, null := range []string{`null`, `{"begun":null,"begun_until":null,"cause":null,"final":null}`, `{}`} {
		if got := parse(t, dir+null+"}]}").Targets()[0]; got.Invalid != "" || got.Begun != 0 {
			t.Errorf("%s: %+v", null, got)
		}
	}
}

func TestTwoLaunchesIntoOneDirectoryAreMergedToTheMoreCautious(t *testing.T) {
	entry := func(more string) string {
		return `{"host":"H.","port":0,"user":"u","task_dir":"/srv//k/tasks/a/","enabled":true` + more + `}`
	}
	merged := func(a, b string) JobTarget {
		targets := parse(t, `{"ssh_task_dirs":[`+entry(a)+`,`+strings.Replace(strings.Replace(entry(b), `"H."`, `"h"`, 1), `"port":0`, `"port":22`, 1)+`]}`).Targets()
		if len(targets) != 1 {
			t.Fatalf("%+v", targets)
		}
		return targets[0]
	}
	for _, row := range []struct {
		a, b string
		is   func(JobTarget) bool
	}{
		{``, `,"outcome":"odd"`, func(j JobTarget) bool { return strings.Contains(j.Invalid, "odd") }},
		{`,"outcome":"odd"`, ``, func(j JobTarget) bool { return strings.Contains(j.Invalid, "odd") }},
		{`,"reclaim":{"begun":1,"begun_until":9,"bytes":5}`, `,"reclaim":{"begun":2,"begun_until":8,"bytes":6}`, func(j JobTarget) bool { return j.Begun == 2 && j.BegunUntil == 9 && j.Bytes == 6 }},
		{``, `,"reclaim":{"baseline":"b"}`, func(j JobTarget) bool { return j.Baseline == "b" }},
		{`,"reclaim":{"baseline":"b"}`, ``, func(j JobTarget) bool { return j.Baseline == "b" }},
		{`,"reclaim":{"baseline":"b"}`, `,"reclaim":{"baseline":"b"}`, func(j JobTarget) bool { return j.Baseline == "b" }},
		{`,"reclaim":{"baseline":"b"}`, `,"reclaim":{"baseline":"c"}`, func(j JobTarget) bool { return j.Baseline == "" }},
		{`,"outcome":"removed"`, `,"outcome":"failed","detail":"d","reclaim":{"fault":"lost","cure":[{"what":"w"}]}`, func(j JobTarget) bool {
			return j.Outcome == OutcomeFailed && j.Fault == Lost && j.Detail == "d" && len(j.Cure) == 1
		}},
		{``, `,"outcome":"removed"`, func(j JobTarget) bool { return j.Outcome == "" }},
		{`,"outcome":"failed"`, `,"outcome":"removed"`, func(j JobTarget) bool { return j.Outcome == OutcomeFailed }},
		{`,"outcome":"removed"`, `,"outcome":"removed"`, func(j JobTarget) bool { return j.Outcome == OutcomeRemoved }},
		{`,"outcome":"skipped","skip_reason":"shared"`, `,"outcome":"removed"`, func(j JobTarget) bool { return j.Outcome == OutcomeSkipped && j.Reason == Shared }},
		{`,"outcome":"removed"`, `,"outcome":"skipped","skip_reason":"shared"`, func(j JobTarget) bool { return j.Outcome == OutcomeSkipped && j.Reason == Shared }},
		{`,"outcome":"skipped","skip_reason":"shared"`, `,"outcome":"failed"`, func(j JobTarget) bool { return j.Outcome == OutcomeFailed && j.Reason == "" }},
		{`,"outcome":"failed"`, `,"outcome":"skipped"`, func(j JobTarget) bool { return j.Outcome == OutcomeFailed }},
		{`,"reclaim":{"hooks":[{"session_id":"s","ending":"ran"}]}`, `,"reclaim":{"hooks":[{"session_id":"s","ending":"failed"},{"session_id":"r","ending":"ran"}]}`, func(j JobTarget) bool {
			return cmp.Equal(j.Hooks, []SessionHook{{SessionID: "s", Ending: HookRan}, {SessionID: "r", Ending: HookRan}})
		}},
		{`,"reclaim":{"profiles":["p"],"notes":["m"]}`, `,"reclaim":{"profiles":["q"],"notes":["n"]}`, func(j JobTarget) bool {
			return cmp.Equal(j.Profiles, []string{"p", "q"}) && cmp.Equal(j.Notes, []string{"m", "n"})
		}},
		{`,"workdir_root":"/a","shell":"sh","host_fingerprint":"f"`, `,"workdir_root":"/b","shell":"bash","host_fingerprint":"g"`, func(j JobTarget) bool {
			return len(j.Notes) == 3 && strings.Contains(j.Notes[0], `workdir root: "/a", the most recent, is used, not "/b"`) && j.Target.WorkdirRoot == "/a" && j.Target.Shell == "sh" && j.Target.Fingerprint == "f"
		}},
		{``, `,"enabled":false`, func(j JobTarget) bool { return j.Invalid != "" || !j.Target.Enabled }},
	} {
		if got := merged(row.a, row.b); !row.is(got) {
			t.Errorf("%s and %s: %+v", row.a, row.b, got)
		}
	}
	// One launch without the opt-in holds whatever the user, and by an equal pin whatever the name.
	for _, row := range []struct {
		other string
		on    bool
	}{
		{`{"host":"h","user":"v","task_dir":"/srv/k/tasks/a"}`, false}, {`{"host":"elsewhere","user":"v","host_fingerprint":"f","task_dir":"/srv/k//tasks/a"}`, false},
		{`{"host":"elsewhere","user":"v","host_fingerprint":"g","task_dir":"/srv/k/tasks/a"}`, true}, {`{"host":"h","user":"v","task_dir":"/srv/k/tasks/b"}`, true},
		{`{"host":"elsewhere","task_dir":"/srv/k/tasks/a"}`, true}, {`{"host":"H..","task_dir":"/SRV/k/tasks/A"}`, false},
		{`{"host":"elsewhere","host_fingerprint":"f=","task_dir":"/srv/k/tasks/a"}`, false}, {`{"host":"h","port":2222,"host_fingerprint":"g","task_dir":"/srv/k/tasks/a"}`, false},
	} {
		s := parse(t, `{"ssh_task_dirs":[{"host":"h","user":"u","host_fingerprint":"f","task_dir":"/srv/k/tasks/a","enabled":true},`+strings.Replace(row.other, `"task_dir"`, `"reclaim":{"profiles":["q"]},"task_dir"`, 1)+`]}`)
		if got := slices.Contains(s.Profiles(s.Targets()[0].Target), "q"); got == row.on {
			t.Errorf("beside %s its profile counts: %v", row.other, got)
		}
		if got := s.Targets()[0].Target.Enabled; got != row.on {
			t.Errorf("beside %s it is %v", row.other, got)
		}
	}
	for port, want := range map[int]int{0: 22, 22: 22, 2222: 2222} {
		if orSSH(port) != want {
			t.Errorf("port %d is %d", port, orSSH(port))
		}
	}
	for path, want := range map[string]string{"/": "/", "//": "/", "/a///b//": "/a/b", "": "", "a/": "a", "/a/": "/a"} {
		if squeezeSlashes(path) != want {
			t.Errorf("%q: %q", path, squeezeSlashes(path))
		}
	}
}

func TestWhatIsNotInASnapshotIsNotWrittenIntoIt(t *testing.T) {
	s := parse(t, `{"ssh_task_dirs":[{"host":"h","task_dir":"/srv/k/tasks/a"},7]}`)
	target := s.Targets()[0].Target
	if got, err := s.WithOutcome(target, nil); err == nil || string(got.Bytes()) != string(s.Bytes()) {
		t.Errorf("%s %v", got.Bytes(), err)
	}
	for name, write := range map[string]func(Target) (JobSnapshot, error){
		"a begin": func(at Target) (JobSnapshot, error) { return s.WithBegun(Begin{Target: at, Attempt: 1}) },
		"a script": func(at Target) (JobSnapshot, error) {
			return s.WithHook(at, SessionHook{SessionID: "s", Ending: HookRan})
		},
		"an outcome": func(at Target) (JobSnapshot, error) { return s.WithOutcome(at, Removed{}) },
		"a size":     func(at Target) (JobSnapshot, error) { return s.WithSize(at, 7) },
	} {
		other := target
		other.TaskDir += "b"
		if got, err := write(other); err == nil || string(got.Bytes()) != string(s.Bytes()) {
			t.Errorf("%s: %s %v", name, got.Bytes(), err)
		}
		if got, err := write(target); err != nil || string(got.Bytes()) == string(s.Bytes()) || !strings.HasSuffix(string(got.Bytes()), ",7]}") {
			t.Errorf("%s: %s %v", name, got.Bytes(), err)
		}
	}
	// A begin that would not be read back as this attempt's is none.
	if got, err := s.WithBegun(Begin{Target: target, Attempt: -1}); err == nil || !strings.Contains(err.Error(), "does not hold the intent") || string(got.Bytes()) != string(s.Bytes()) {
		t.Errorf("%s %v", got.Bytes(), err)
	}
	// An entry that is no object is a target nobody can act on, and stays as it is.
	odd := s.Targets()[1]
	if !strings.Contains(odd.Invalid, "not a JSON object") {
		t.Errorf("%+v", odd)
	}
	if got, err := s.WithOutcome(odd.Target, Removed{}); err != nil || string(got.Bytes()) != string(s.Bytes()) {
		t.Errorf("%s %v", got.Bytes(), err)
	}
	// A script's ending takes the place of an earlier one.
	one, err := s.WithHook(target, SessionHook{SessionID: "s", Ending: HookFailed, Detail: strings.Repeat("x", 5000), Script: "old"})
	if err == nil {
		one, err = one.WithHook(target, SessionHook{SessionID: "r", Ending: HookRan})
	}
	if err == nil {
		one, err = one.WithHook(target, SessionHook{SessionID: "s", Ending: HookRan, Detail: strings.Repeat("x", 5000)})
	}
	if hooks := one.Targets()[0].Hooks; err != nil || len(hooks) != 2 || hooks[1].Ending != HookRan || hooks[1].Script != "" || len(hooks[1].Detail) > maxDetail {
		t.Errorf("%v %+v", err, hooks)
	}
}

func TestWhatIsToldIsBoundedAndNeverHalfACommand(t *testing.T) {
	if clipped("abc", 3) != "abc" || clipped("abcdefgh", 7) != "a [...]" || clipped("aéééé", 8) != "a [...]" || clipped("éééé", 7) != " [...]" {
		t.Errorf("%q %q %q %q", clipped("abc", 3), clipped("abcdefgh", 7), clipped("aéééé", 8), clipped("éééé", 7))
	}
	var many []Remedy
	for range 9 {
		many = append(many, Remedy{What: "w", Run: "r"})
	}
	many[0].Run, many[1].Run = strings.Repeat("r", maxDetail+1), strings.Repeat("r", maxDetail)
	var back []Remedy
	if err := json.Unmarshal(jsonCure(many), &back); err != nil || len(back) != 8 || back[0].Run != "" || back[1].Run != many[1].Run {
		t.Errorf("%v %d", err, len(back))
	}
	if jsonCure(nil) != nil || jsonText("") != nil {
		t.Error("nothing is written as something")
	}
}

func TestAnExchangeThatIsNotWholeIsNoExchange(t *testing.T) {
	for name, e := range map[string]any{"no question": Exchange{Answer: Begun{}}, "no answer": Exchange{Query: Begin{}}, "no reply": Exchange{Query: Greet{}, Answer: Heard{}}, "no reply alone": Heard{}} {
		if raw, err := json.Marshal(e); err == nil || !strings.Contains(err.Error(), "needs a question and an answer") && !strings.Contains(err.Error(), "cannot be recorded") {
			t.Errorf("%s: %s %v", name, raw, err)
		}
	}
	for _, e := range (Transcript{{Owner{JobID: "j"}, Ownership{TaskTerminal: true, OptInNow: On}}, {Rule{}, Ruling{Allow: true}}, {Greet{Root: "r"}, Heard{Reply: Said{Exit: 3, Body: "a\nb\n"}, Script: "s"}},
		{Settle{Root: "r"}, Heard{Reply: Unclear{Doubt: Flooded, Detail: "d"}}}, {Inventory{Root: "r"}, Heard{Reply: NeverRan{Fault: NoPin, Detail: "d"}}}, {Begin{JobID: "j"}, Begun{Ending: BeginHalted}}, {Remove{Root: "r"}, Heard{Reply: Said{}}}}) {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Exchange
		if err := json.Unmarshal(raw, &back); err != nil || !cmp.Equal(e, back) {
			t.Errorf("%s: %v %s", raw, err, cmp.Diff(e, back))
		}
		if !sameQuery(e.Query, back.Query) || sameQuery(e.Query, nil) {
			t.Errorf("%s is another question", raw)
		}
	}
	if QueryName(nil) != "nothing" || sameQuery(Greet{Root: "a"}, Greet{Root: "b"}) || sameQuery(Greet{}, Settle{}) {
		t.Error("questions that differ are the same")
	}
	for raw, says := range map[string]string{`{`: "", `{"ask":"moon","query":{},"answer":{}}`: `"moon"`, `{"ask":"greet","query":{"x":1},"answer":{}}`: `exchange "greet"`, `{"ask":"begin","query":{},"answer":{"x":1}}`: `exchange "begin"`,
		`{"ask":"greet","query":{},"answer":{}}`: "0 replies", `{"ask":"greet","query":{},"answer":{"said":{"exit":0,"body":[]},"unclear":{"doubt":"lost","detail":""}}}`: "2 replies", `{"ask":"greet","query":{},"answer":7}`: "exchange", `{"kind":1}`: "unknown field"} {
		var e Exchange
		if err := json.Unmarshal([]byte(raw), &e); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	var one struct{}
	if err := strictly([]byte(`{} {}`), &one); err == nil || !strings.Contains(err.Error(), "more than one") {
		t.Error(err)
	}
	for raw, says := range map[string]string{`[`: "not a record", `{}`: "names no version", `{"version":0}`: "names no version", `{"version":2}`: "use a newer one", `{"version":1,"x":{}}`: "unknown field"} {
		if _, err := ParseRecord([]byte(raw)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if r, err := ParseRecord([]byte(`{"version":1,"snapshot":{"labels":{"A":"x"}}}`)); err != nil || r.Snapshot.Labels["A"] != "x" {
		t.Errorf("%v", err)
	}
}

func TestADecisionThatCannotBeTakenSaysWhy(t *testing.T) {
	owner := Exchange{Owner{Look: FirstLook, JobID: "job-7", TaskID: "t-1", Environment: "env-1", Target: fit().Target}, mine()}
	var incomplete *Incomplete
	if _, err := Replay(fit(), nil); !errors.As(err, &incomplete) || QueryName(incomplete.Pending) != "owner" || !strings.Contains(err.Error(), `"owner"`) {
		t.Errorf("%v", err)
	}
	gone := owner
	gone.Answer = Ownership{OptInNow: On}
	var withdrawn *Withdrawn
	if _, err := Replay(fit(), Transcript{gone}); !errors.As(err, &withdrawn) || !strings.Contains(err.Error(), "cancelled: "+withdrawn.Detail) || withdrawn.Detail == "" {
		t.Errorf("%v", err)
	}
	for name, row := range map[string]struct {
		t    Transcript
		at   int
		says string
	}{
		"another question":          {Transcript{{Greet{}, Heard{}}}, 0, `exchange 1: the record asks "greet", today's procedure another "owner"`},
		"an answer of another kind": {Transcript{{owner.Query, Ruling{}}}, 0, `the answer to "owner" is of another kind`},
		"a second look":             {Transcript{gone, owner}, 1, `exchange 2: the procedure had ended, but the record goes on with "owner"`},
	} {
		var diverged *Diverged
		if _, err := Replay(fit(), row.t); !errors.As(err, &diverged) || diverged.At != row.at || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
		if got := word(Next(fit(), row.t)); got != "skipped probe_failed probe_error" {
			t.Errorf("%s: %s", name, got)
		}
		if r := Conclude(fit(), row.t); r.Outcome != OutcomeSkipped || r.Reason != ProbeFailed || r.Cure == nil || r.Checkouts == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if s := skip(Finding{Reason: UnpushedCommits}, Finding{Reason: Shared, Cause: Claimed}, Finding{Reason: Shared, Cause: Borrowed}, Finding{Reason: Disabled}); s.Reason != Disabled || len(s.Others) != 3 ||
		s.Others[0].Cause != Claimed || s.Others[1].Cause != Borrowed || s.Others[2].Reason != UnpushedCommits {
		t.Errorf("%+v", s)
	}
	if s := skip(Finding{Reason: Shared}); s.Others != nil {
		t.Errorf("%+v", s)
	}
	if s := skip(); s.Reason != ProbeFailed || s.Cause != ProbeError || s.Detail == "" || s.Others != nil {
		t.Errorf("%+v", s)
	}
	if Reason("moon").rank() != ProbeFailed.rank() || Reason("").rank() != ProbeFailed.rank() {
		t.Error("a reason nobody knows outranks")
	}
	off := fit()
	off.Target.Enabled = false
	if r := NewRecord(off, nil); r.Result.Outcome != OutcomeSkipped || r.Policy != "" || r.Core != Digest() {
		t.Errorf("%+v", r)
	}
}

// What was no try is counted in every target, beside whatever else stands there.
func TestAttemptsThatAreNoTriesAreCountedInTheSnapshotAndNothingElseChanges(t *testing.T) {
	const raw = `{ "x":1e2, "ssh_task_dirs":[{"host":"a","task_dir":"/a","reclaim":{"later":[1], "bytes":7}} , {"host":"b","task_dir":"/b","n":9007199254740993}, 3],"y":null}`
	s, err := ParseJobSnapshot([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if s.Uncounted() != n || s.Tries(n+1) != 1 || s.Tries(n+9) != 9 {
			t.Errorf("%d are no tries, want %d; of %d attempts %d are tries", s.Uncounted(), n, n+9, s.Tries(n+9))
		}
		if s, err = s.WithUncounted(); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.NewReplacer(`"bytes":7}`, `"bytes":7,"uncounted":3}`, `993}`, `993,"reclaim":{"uncounted":3}}`).Replace(raw)
	if string(s.Bytes()) != want {
		t.Errorf("%s\nwant\n%s", s.Bytes(), want)
	}
	if s.Tries(2) != 1 {
		t.Errorf("more attempts uncounted than there were make it try %d", s.Tries(2))
	}
	again, err := s.Again()
	if err != nil || string(again.Bytes()) != raw {
		t.Errorf("%s %v", again.Bytes(), err)
	}
	for odd, uncounted := range map[string]int{`-1`: 0, `"3"`: 0, `1.5`: 0, `null`: 0, `4`: 4} {
		s, err := ParseJobSnapshot([]byte(`{"ssh_task_dirs":[{"host":"a","task_dir":"/a","reclaim":{"uncounted":` + odd + `}}]}`))
		if err != nil || s.Uncounted() != uncounted || s.Targets()[0].Invalid != "" {
			t.Errorf("%s is %d, %v, %q", odd, s.Uncounted(), err, s.Targets()[0].Invalid)
		}
	}
}

func TestASnapshotIsHeldWhereAHoldIsAllThatKeepsItOpen(t *testing.T) {
	a, b := Target{Host: "a", TaskDir: "/a"}, Target{Host: "b", TaskDir: "/b"}
	held, failed, kept := Failed{Fault: PolicyHeld}, Failed{Fault: Unreachable}, Skipped{Finding: Finding{Reason: Shared, Cause: Claimed}}
	for _, c := range []struct {
		a, b Outcome
		want bool
	}{{held, held, true}, {held, Removed{}, true}, {kept, held, true}, {held, failed, false}, {held, nil, false}, {kept, Removed{}, false}, {nil, nil, false}} {
		s, err := ParseJobSnapshot([]byte(`{"ssh_task_dirs":[{"host":"a","task_dir":"/a"},{"host":"b","task_dir":"/b"}]}`))
		for target, o := range map[Target]Outcome{a: c.a, b: c.b} {
			if o != nil && err == nil {
				s, err = s.WithOutcome(target, o)
			}
		}
		if err != nil || s.Held() != c.want {
			t.Errorf("%T %T: held %v, %v", c.a, c.b, s.Held(), err)
		}
	}
}
