package core

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const projectedExecutor = `{"ssh_host":"dev.example","ssh_port":"2222","ssh_user":"dev","ssh_host_fingerprint":"SHA256:abc"}`

func project(t interface{ Fatal(...any) }, p Projected) map[string]any {
	raw, err := Project(p)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// hostile is task metadata that tries everything.
const hostile = `{"ssh_reclaim_task_dir":"true","SSH_RECLAIM_TASK_DIR":"true","Ssh_Reclaim_Task_Dir":"true"," ssh_reclaim_task_dir":"true",
	"ssh-reclaim-task-dir":"true","sshReclaimTaskDir":"true","\u017fsh_reclaim_task_dir":"true","ssh_reclaim_tas\u212a_dir":"true","ｓsh_reclaim_task_dir":"true",
	"ssh_workdir_root":"/","SSH_WORKDIR_ROOT":"/etc","ssh_shell":"evil","ssh_host":"evil","ssh_port":"1","ssh_user":"root","ssh_host_fingerprint":"SHA256:evil",
	"ssh_proxy_jump":"evil","ssh_identity_file":"/evil","ssh_task_dir_name":"../../etc","task_dir_name":"another-task","Task_Dir_Name":"x",
	"ssh_remote_task_dir":"/home/dev/.kandev/tasks/another","cleanup_script":"evil","CLEANUP_SCRIPT":"evil","executor_profile_id":"another","executor_id":"evil",
	"is_remote":false,"env_secret_id_X":"evil","workspace":{"mode":"inherit_parent"},"git_user_name":"of the task","title":"kept"}`

func TestAC_006_3_AHostileTaskChangesNothingThatTheProfileOrTheExecutorDecides(t *testing.T) {
	for name, profile := range map[string]*Profile{
		"off by being silent":   {ID: "p", Config: []byte(`{}`)},
		"off":                   {ID: "p", Config: []byte(`{"ssh_reclaim_task_dir":"false","ssh_workdir_root":"/srv/k","ssh_shell":"bash"}`), CleanupScript: "mine"},
		"on":                    {ID: "p", Config: []byte(`{"ssh_reclaim_task_dir":"true","ssh_workdir_root":"/srv/k"}`)},
		"the profile is gone":   nil,
		"it cannot be read":     {ID: "p", Config: []byte(`{"ssh_reclaim_task_dir":"tr`)},
		"its config is no text": {ID: "p", Config: []byte(`{"ssh_reclaim_task_dir":true}`)},
	} {
		t.Run(name, func(t *testing.T) {
			p := Projected{TaskID: "t1", ExecutorID: "e", Executor: []byte(projectedExecutor), Profile: profile}
			calm := project(t, p)
			p.Task = []byte(hostile)
			got := project(t, p)
			for key, value := range got {
				switch key {
				case "workspace", "title", "git_user_name":
				default:
					if calm[key] != value {
						t.Errorf("the task made %s %q, without it %q", key, value, calm[key])
					}
				}
			}
			if got["title"] != "kept" || got["git_user_name"] != "of the task" {
				t.Errorf("what is the task's own is lost: %v", got)
			}
			raw, _ := Project(p)
			launch, err := ParseLaunch(raw)
			if err != nil {
				t.Fatal(err)
			}
			if launch.Target.Enabled != (name == "on") {
				t.Errorf("opted in: %v", launch.Target.Enabled)
			}
			if launch.Target.Host != "dev.example" || launch.Target.Fingerprint != "SHA256:abc" || launch.Target.TaskDir != "" {
				t.Errorf("%+v", launch.Target)
			}
		})
	}
}

func TestAC_006_1_OnlyTheExactWordTrueOptsIn(t *testing.T) {
	for _, value := range []string{`"true"`, `"TRUE"`, `"True"`, `" true"`, `"true "`, `"1"`, `"yes"`, `"on"`, `""`, `true`, `1`, `null`, `["true"]`} {
		got := project(t, Projected{TaskID: "t", Executor: []byte(projectedExecutor), Profile: &Profile{Config: []byte(`{"ssh_reclaim_task_dir":` + value + `}`)}})
		if want := map[bool]string{true: "true"}[value == `"true"`]; got["ssh_reclaim_task_dir"] != want {
			t.Errorf("%s is projected as %q", value, got["ssh_reclaim_task_dir"])
		}
	}
}

func TestAC_006_3_NoSpellingOfAKeyGetsThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := append(append(append([]string{}, trustedKeys...), authoritativeKeys...), ownKeys...)
		key := rapid.SampledFrom(all).Draw(t, "key")
		var spelled strings.Builder
		for _, r := range key {
			s := string(r)
			switch rapid.IntRange(0, 5).Draw(t, "how") {
			case 0:
				s = strings.ToUpper(s)
			case 1:
				s = " " + s
			case 2:
				s += "-"
			case 3:
				if r == '_' {
					s = ""
				}
			}
			spelled.WriteString(s)
		}
		task, _ := json.Marshal(map[string]string{spelled.String(): "evil"})
		p := Projected{TaskID: "t", Executor: []byte(projectedExecutor)}
		calm, _ := Project(p)
		p.Task = task
		got, err := Project(p)
		if err != nil || string(got) != string(calm) {
			t.Fatalf("%q: %s", spelled.String(), got)
		}
	})
}

func TestATaskCannotNameItsSegment(t *testing.T) {
	if got, err := LaunchSegment("0b5c"); got != "task-0b5c" || err != nil {
		t.Error(got, err)
	}
	for _, id := range []string{"", "/../x", "a/b", "a\nb", strings.Repeat("x", 300)} {
		if got, err := LaunchSegment(id); err == nil {
			t.Errorf("%q leads to %q", id, got)
		}
	}
}

func TestALaunchRefusesWhatCouldNotBeProvedLater(t *testing.T) {
	for config, want := range map[string]string{
		`{"ssh_host":"h","ssh_host_fingerprint":"SHA256:a","ssh_port":"70000"}`: "ssh_port",
		`{"ssh_host":"h","ssh_host_fingerprint":"SHA256:a","ssh_port":"x"}`:     "ssh_port",
		`{"ssh_host_fingerprint":"SHA256:a"}`:                                   "neither a host nor an alias",
		`{"ssh_host":"h"}`:                                                      "fingerprint",
	} {
		raw, err := Project(Projected{TaskID: "t", Executor: []byte(config)})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := LaunchTarget(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestWhatALaunchCameToIsWrittenOverTheProjection(t *testing.T) {
	raw, err := Project(Projected{TaskID: "t", Executor: []byte(`{"ssh_host_alias":"box","ssh_host_fingerprint":"SHA256:a"}`),
		Profile: &Profile{ID: "p", Config: []byte(`{"ssh_reclaim_task_dir":"true"}`), CleanupScript: "bye"}})
	if err != nil {
		t.Fatal(err)
	}
	target, alias, err := LaunchTarget(raw)
	if err != nil || alias != "box" {
		t.Fatal(alias, err)
	}
	target.Host, target.User, target.ProxyJump, target.TaskDir = "10.0.0.9", "dev", "gate:22", "/home/dev/.kandev/tasks/task-t"
	raw, err = WithLaunched(raw, target, map[string]string{"ssh_remote_session_dir": "/x"})
	if err != nil {
		t.Fatal(err)
	}
	launch, err := ParseLaunch(raw)
	target.Port = 22
	if err != nil || launch.Target != target || launch.CleanupScript != "bye" || launch.Profile != "p" || strings.Contains(string(raw), "alias") {
		t.Errorf("%v %s", err, raw)
	}
}

// What an open task's environment claims is where its row and its executor lead;
// what they leave open may be ours.
func TestAnEnvironmentClaimsTheDirectoryThatItsRowNames(t *testing.T) {
	ours := Target{Host: "build1", Port: 22, Fingerprint: "SHA256:abc", WorkdirRoot: "~/.kandev", TaskDir: "/home/dev/.kandev/tasks/fix-login"}
	for _, row := range []struct {
		path, executor string
		ours           bool
	}{
		{"/home/dev/.kandev/tasks/fix-login", `{"ssh_host":"build1"}`, true},
		{"/home/dev/.kandev/tasks/fix-login", `{"ssh_host":" BUILD1. ","ssh_port":"22"}`, true},
		{"/home/dev/.kandev/tasks/fix-login", `{"ssh_host":"build2"}`, false},
		{"/home/dev/.kandev/tasks/fix-login", `{"ssh_host":"build2","ssh_host_fingerprint":"SHA256:abc"}`, true},
		{"/home/dev/.kandev/tasks/fix-login", `{"ssh_host_alias":"build2"}`, true}, // an alias may lead anywhere
		{"/home/dev/.kandev/tasks/fix-login", `{`, true},
		{"/home/dev/.kandev/tasks/fix-login", ``, true},
		{"/home/dev/.kandev/tasks/other", `{"ssh_host":"build1"}`, false},
		{"", `{"ssh_host":"build1"}`, false},
	} {
		c := EnvironmentClaim("t-2", row.path, []byte(row.executor))
		if c.TaskID != "t-2" || c.TaskTerminal || c.Stopped || c.OptedIn {
			t.Errorf("%+v: %+v lets something go", row, c)
		}
		if c.Matches(ours) != row.ours {
			t.Errorf("%+v: ours is %v", row, !row.ours)
		}
	}
}
