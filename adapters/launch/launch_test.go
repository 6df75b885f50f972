package launch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kandev/reclaim/adapters/localhost"
	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
)

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"}, args...)...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// remote is a bare repository with two branches and a tag.
func remote(t *testing.T, base, name string) string {
	t.Helper()
	work, bare := filepath.Join(base, name), filepath.Join(base, name+".git")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, work, "init", "-q")
	if err := os.WriteFile(filepath.Join(work, "file"), []byte(name), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, work, "add", ".")
	git(t, work, "commit", "-qm", name)
	git(t, work, "branch", "other")
	git(t, work, "tag", "v1")
	git(t, base, "clone", "-q", "--bare", work, bare)
	return bare
}

type bench struct {
	order Order
	dir   string
}

func on(t *testing.T, target core.Target) (*bench, string) {
	t.Helper()
	base := sshdtest.OpenDir(t)
	executor, _ := json.Marshal(map[string]string{"ssh_host": target.Host, "ssh_port": strconv.Itoa(max(target.Port, 22)), "ssh_user": target.User,
		"ssh_host_fingerprint": target.Fingerprint, "ssh_identity_source": target.IdentitySource, "ssh_identity_file": target.IdentityFile})
	profile, _ := json.Marshal(map[string]string{"ssh_workdir_root": base + "/k root", "ssh_reclaim_task_dir": "true"})
	return &bench{dir: base + "/k root/tasks/task-t1", order: Order{SessionID: "s1",
		Inputs:       core.Projected{TaskID: "t1", ExecutorID: "e", Executor: executor, Profile: &core.Profile{ID: "p", Config: profile}},
		Repositories: []core.Repository{{URL: remote(t, base, "main")}, {Name: "lib [x]", URL: remote(t, base, "lib"), Base: "other"}}}}, base
}

func end(t *testing.T, pid int64) {
	t.Helper()
	_ = syscall.Kill(int(pid), syscall.SIGKILL)
	for range 6000 {
		state, err := os.ReadFile("/proc/" + strconv.FormatInt(pid, 10) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the agent %d does not end", pid)
}

func TestALaunchOverARealSSHDMakesACheckoutThatALaterInventoryCanJudge(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{Home: sshdtest.OpenDir(t)})
	b, _ := on(t, server.Target())
	got, err := (&Launcher{Dialer: sshhost.New(sshhost.Options{})}).Launch(t.Context(), b.order)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, got.PID) })
	if got.TaskDir != b.dir || got.Reused || got.Resumed || !got.Target.Enabled {
		t.Errorf("%+v", got)
	}
	if status := git(t, b.dir, "status", "--porcelain", "--untracked-files=all"); status != "" {
		t.Errorf("the root is not clean: %s", status)
	}
	if fetch := git(t, b.dir, "config", "remote.origin.fetch"); fetch != "+refs/heads/*:refs/remotes/origin/*" {
		t.Errorf("it fetches %q", fetch)
	}
	if branch := git(t, filepath.Join(b.dir, "lib [x]"), "rev-parse", "--abbrev-ref", "HEAD"); branch != "other" {
		t.Errorf("the additional repository is on %q", branch)
	}
	if n := git(t, b.dir, "rev-list", "--count", "--all", "--not", "--remotes"); n != "0" {
		t.Errorf("%s commits look unpushed", n)
	}
	baseline, err := os.ReadFile(filepath.Join(b.dir, ".kandev/baseline"))
	if err != nil || !strings.Contains(string(baseline), "\trefs/heads/main\t.\n") || !strings.Contains(string(baseline), "\trefs/tags/v1\tlib [x]\n") {
		t.Errorf("%s %v", baseline, err)
	}
	launch, err := core.ParseLaunch(got.Metadata)
	if want := git(t, "/", "hash-object", filepath.Join(b.dir, ".kandev/baseline")); launch.Baseline != want {
		t.Errorf("the row has the baseline %q, the directory %q", launch.Baseline, want)
	}
	if err != nil || launch.Target != got.Target {
		t.Errorf("%v: the row leads to %+v, the launch to %+v", err, launch.Target, got.Target)
	}
	if err := syscall.Kill(int(got.PID), 0); err != nil {
		t.Errorf("the agent: %v", err)
	}

	// A second launch finds the agent and the checkout.
	if err := os.WriteFile(filepath.Join(b.dir, "work"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := (&Launcher{Dialer: sshhost.New(sshhost.Options{})}).Launch(t.Context(), b.order)
	if err != nil || !again.Reused || !again.Resumed || again.PID != got.PID || again.Baseline != "" {
		t.Errorf("%+v %v", again, err)
	}
	if after, _ := os.ReadFile(filepath.Join(b.dir, ".kandev/baseline")); string(after) != string(baseline) {
		t.Error("the baseline changed")
	}
	if _, err := os.Stat(filepath.Join(b.dir, "work")); err != nil {
		t.Error(err)
	}
}

func TestAC_001_4_AfterItsDirectoryIsGoneTheNextLaunchPreparesItAgain(t *testing.T) {
	b, _ := on(t, core.Target{Host: "h", Fingerprint: "SHA256:x"})
	l := &Launcher{Dialer: localhost.Dialer{}}
	first, err := l.Launch(t.Context(), b.order)
	if err != nil {
		t.Fatal(err)
	}
	end(t, first.PID)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	second, err := l.Launch(t.Context(), b.order)
	if err != nil || second.Reused || second.Resumed {
		t.Fatalf("%+v %v", second, err)
	}
	t.Cleanup(func() { end(t, second.PID) })
	if content, err := os.ReadFile(filepath.Join(b.dir, "file")); string(content) != "main" {
		t.Errorf("%q %v", content, err)
	}
}

func TestALaunchThatWasCutOffIsFinishedByTheNext(t *testing.T) {
	b, base := on(t, core.Target{Host: "h", Fingerprint: "SHA256:x"})
	l := &Launcher{Dialer: localhost.Dialer{}}
	away := filepath.Join(base, "away.git")
	if err := os.Rename(filepath.Join(base, "main.git"), away); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Launch(t.Context(), b.order); err == nil || !strings.Contains(err.Error(), "cannot be fetched: fatal: ") || strings.Contains(err.Error(), "and the repository exists") {
		t.Fatalf("%v", err)
	}
	if err := os.Rename(away, filepath.Join(base, "main.git")); err != nil {
		t.Fatal(err)
	}
	got, err := l.Launch(t.Context(), b.order)
	if err != nil {
		t.Fatal(err)
	}
	end(t, got.PID)
	if content, err := os.ReadFile(filepath.Join(b.dir, "file")); string(content) != "main" || got.Baseline != "" {
		t.Errorf("%q %v; what may have been in it since is taken for what came with it: %q", content, err, got.Baseline)
	}
}

func TestADirectoryThatHoldsSomethingElseIsRefusedAndLeftAlone(t *testing.T) {
	for name, make := range map[string]string{
		"other files":            "mkdir -p \"$1\" && echo x >\"$1/precious\"",
		"another checkout":       "mkdir -p \"$1\" && cd \"$1\" && git init -q && git remote add origin /elsewhere",
		"a link":                 "mkdir -p \"$1\" && rmdir \"$1\" && mkdir \"$1.else\" && ln -s \"$1.else\" \"$1\"",
		"a file":                 "mkdir -p \"$1\" && rmdir \"$1\" && echo x >\"$1\"",
		"a hidden file":          "mkdir -p \"$1\" && echo x >\"$1/.precious\"",
		"a checkout around it":   "mkdir -p \"$1\" && cd \"$1/..\" && git init -q && git remote add origin /elsewhere && echo x >\"$1/f\"",
		"a repository inside":    "mkdir -p \"$1/lib [x]\" && echo x >\"$1/lib [x]/precious\"",
		".git that is no gitdir": "mkdir -p \"$1/.git\"",
	} {
		t.Run(name, func(t *testing.T) {
			b, base := on(t, core.Target{Host: "h", Fingerprint: "SHA256:x"})
			if out, err := exec.Command("sh", "-c", make, "sh", b.dir).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			list := func() string {
				out, err := exec.Command("find", base+"/k root", "-printf", "%p %i %y %Ts\n").Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			before := list()
			got, err := (&Launcher{Dialer: localhost.Dialer{}}).Launch(t.Context(), b.order)
			if err == nil {
				end(t, got.PID)
				t.Fatalf("it was launched: %+v", got)
			}
			if after := list(); after != before {
				t.Errorf("%v: was\n%s\nis\n%s", err, before, after)
			}
		})
	}
}

func TestAC_006_3_HostileTaskMetadataLeadsNowhereElseOnARealHost(t *testing.T) {
	b, base := on(t, core.Target{Host: "h", Fingerprint: "SHA256:x"})
	b.order.Inputs.Task = []byte(`{"ssh_workdir_root":"` + base + `/evil","SSH_WORKDIR_ROOT":"` + base + `/evil","ssh_task_dir_name":"../../evil","task_dir_name":"evil",
		"Ssh_Reclaim_Task_Dir":"true","ssh_reclaim_task_dir":"true","cleanup_script":"touch evil"}`)
	b.order.Inputs.Profile.Config = []byte(`{"ssh_workdir_root":"` + base + `/k root"}`)
	got, err := (&Launcher{Dialer: localhost.Dialer{}}).Launch(t.Context(), b.order)
	if err != nil {
		t.Fatal(err)
	}
	end(t, got.PID)
	launch, err := core.ParseLaunch(got.Metadata)
	if err != nil || got.TaskDir != b.dir || launch.Target.TaskDir != b.dir || launch.Target.Enabled || launch.CleanupScript != "" {
		t.Errorf("%+v %v", launch, err)
	}
	if found, _ := filepath.Glob(base + "/*evil*"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestWhatMustNotReachAHostIsRefusedBeforeAnyConnection(t *testing.T) {
	for name, spoil := range map[string]func(*Order){
		"a session that climbs":     func(o *Order) { o.SessionID = "../x" },
		"a task that climbs":        func(o *Order) { o.Inputs.TaskID = "/../../x" },
		"a repository that climbs":  func(o *Order) { o.Repositories[1].Name = ".." },
		"a repository called .git":  func(o *Order) { o.Repositories[1].Name = ".GIT" },
		"a URL that is an option":   func(o *Order) { o.Repositories[0].URL = "--upload-pack=evil" },
		"a base that is an option":  func(o *Order) { o.Repositories[0].Base = "-f" },
		"no repository":             func(o *Order) { o.Repositories = nil },
		"a root that is not a path": func(o *Order) { o.Inputs.Profile.Config = []byte(`{"ssh_workdir_root":"x/y"}`) },
	} {
		b, _ := on(t, core.Target{Host: "h", Fingerprint: "SHA256:x"})
		spoil(&b.order)
		// A launch that reached for the host would crash on the missing dialer.
		if _, err := (&Launcher{}).Launch(t.Context(), b.order); err == nil {
			t.Errorf("%s was not refused", name)
		}
	}
}
