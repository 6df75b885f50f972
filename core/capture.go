package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Launch is one session's launch as its executors_running row keeps it.
type Launch struct {
	SessionID     string
	ExecutionID   string
	Ended         bool   // the session's state says that nothing of it runs any more
	Profile       string // executor profile, where known
	Target        Target // Enabled is the opt-in frozen at launch; Host or TaskDir empty: no directory on a host
	CleanupScript string
	Baseline      string // digest of what came with the launch; empty: none is recorded
}

var launchKeys = []string{"ssh_host", "ssh_port", "ssh_user", "ssh_host_fingerprint", "ssh_identity_source", "ssh_identity_file", "ssh_proxy_jump",
	"ssh_workdir_root", "ssh_shell", "ssh_reclaim_task_dir", disposableKey, "ssh_remote_task_dir", baselineKey, "cleanup_script", "executor_profile_id"}

// baselineKey is ours: no task, profile or executor can write it (see reserved).
const baselineKey = "ssh_baseline"

// ParseLaunch reads the metadata of an executors_running row. Empty, null and
// {} are a launch without a directory; what is no JSON object, or holds a known
// key twice or in another case, is an error, and the row may then belong to any
// directory. Numbers are strings there; a port that is none counts as 0.
func ParseLaunch(metadata []byte) (Launch, error) {
	trimmed := strings.TrimSpace(string(metadata))
	if trimmed == "" || trimmed == "null" {
		return Launch{}, nil
	}
	if !json.Valid(metadata) {
		return Launch{}, errors.New("the metadata is no JSON")
	}
	all, err := members(metadata)
	if err != nil {
		return Launch{}, fmt.Errorf("the metadata: %w", err)
	}
	if why := ambiguous(all, launchKeys); why != "" {
		return Launch{}, errors.New("the metadata: " + why)
	}
	var wrong error
	read := func(name string) string {
		s, err := textOf(all, metadata, name)
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("the metadata: %w", err)
		}
		return s
	}
	l := Launch{Profile: strings.TrimSpace(read("executor_profile_id")), CleanupScript: read("cleanup_script"), Baseline: strings.TrimSpace(read(baselineKey)), Target: Target{
		Host: strings.TrimSpace(read("ssh_host")), User: strings.TrimSpace(read("ssh_user")),
		Fingerprint:    strings.TrimSpace(read("ssh_host_fingerprint")),
		IdentitySource: strings.TrimSpace(read("ssh_identity_source")), IdentityFile: strings.TrimSpace(read("ssh_identity_file")),
		ProxyJump: strings.TrimSpace(read("ssh_proxy_jump")), Shell: strings.TrimSpace(read("ssh_shell")),
		WorkdirRoot: strings.TrimSpace(read("ssh_workdir_root")), TaskDir: read("ssh_remote_task_dir"),
	}}
	if m, ok := find(all, "ssh_reclaim_task_dir"); ok {
		var s string
		l.Target.Enabled = m.value(metadata)[0] == '"' && json.Unmarshal(m.value(metadata), &s) == nil && s == "true"
	}
	if m, ok := find(all, disposableKey); ok {
		l.Target.Disposable = ReadDisposable(rawText(m.value(metadata)))
	}
	if m, ok := find(all, "ssh_port"); ok {
		l.Target.Port = portOrNone(m.value(metadata))
	}
	if strings.TrimSpace(l.Target.TaskDir) == "" {
		l.Target.TaskDir = ""
	}
	return l, wrong
}

// portOrNone reads an integer, a float or a numeric string; anything else is 0.
func portOrNone(raw []byte) int {
	number := string(raw)
	if raw[0] == '"' {
		number = ""
		_ = json.Unmarshal(raw, &number)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if n := int(f); err == nil && f == float64(n) && n > 0 && n <= 65535 {
		return n
	}
	return 0
}

// OptedIn reads an executor profile's config: true only for the exact string
// "true" under the one well-formed key.
func OptedIn(config []byte) bool {
	if !json.Valid(config) {
		return false
	}
	all, err := members(config)
	if err != nil || ambiguous(all, []string{optInKey}) != "" {
		return false
	}
	value, err := textOf(all, config, optInKey)
	return err == nil && value == "true"
}

const optInKey = "ssh_reclaim_task_dir"

// WithOptIn sets the switch in an executor profile's config, as "true" or
// "false", and leaves every other byte where it is.
func WithOptIn(config []byte, on bool) ([]byte, error) {
	return withText(config, optInKey, strconv.FormatBool(on))
}

// withText sets one plain word of an executor profile's config.
func withText(config []byte, key, value string) ([]byte, error) {
	if strings.TrimSpace(string(config)) == "" || strings.TrimSpace(string(config)) == "null" {
		config = []byte("{}")
	}
	if !json.Valid(config) {
		return nil, errors.New("the profile's config is no JSON")
	}
	all, err := members(config)
	if err != nil {
		return nil, fmt.Errorf("the profile's config: %w", err)
	}
	if why := ambiguous(all, []string{key}); why != "" {
		return nil, errors.New("the profile's config: " + why)
	}
	return edit(config, change{key, strconv.AppendQuote(nil, value)})
}

// CapturedEnvironment is the environment row as the host writes it into a job
// snapshot; times are RFC 3339.
type CapturedEnvironment struct {
	ID                string `json:"id"`
	TaskID            string `json:"task_id"`
	ExecutorType      string `json:"executor_type"`
	ExecutorID        string `json:"executor_id"`
	ExecutorProfileID string `json:"executor_profile_id"`
	ControlPort       int    `json:"control_port"`
	Status            string `json:"status"`
	WorkspacePath     string `json:"workspace_path,omitempty"`
	TaskDirName       string `json:"task_dir_name,omitempty"`
	CreatedAt         string `json:"created_at"`
	UpdatedAt         string `json:"updated_at"`
}

// Captured is everything a job snapshot is made from when a task ends.
type Captured struct {
	Launches    []Launch // most recently updated first
	Unreadable  int      // launches of the task that could not be read
	Environment *CapturedEnvironment
	Fallback    Target // where the environment's executor would reach; used when no launch names a directory
	Deletes     bool   // the trigger deletes the task
}

type wireTarget struct {
	Target
	Reclaim *wireNotes `json:"reclaim,omitempty"`
}

type wireNotes struct {
	Baseline   string   `json:"baseline,omitempty"`
	Disposable string   `json:"disposable,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	Profiles   []string `json:"profiles,omitempty"`
}

type wireStop struct {
	SessionID   string `json:"session_id"`
	ExecutionID string `json:"execution_id,omitempty"`
	Terminal    bool   `json:"terminal,omitempty"`
}

// Capture is the job snapshot of a task that ends: one target per distinct
// directory, opted in only where every launch into it was. Where no launch is
// left the environment's own path is told, without an opt-in, because nobody
// knows any more what it was launched with.
func Capture(c Captured) ([]byte, error) {
	var out struct {
		StopTargets          []wireStop           `json:"stop_targets,omitempty"`
		Environment          *CapturedEnvironment `json:"task_environment,omitempty"`
		DeleteEnvironmentRow bool                 `json:"delete_environment_row,omitempty"`
		Targets              []wireTarget         `json:"ssh_task_dirs,omitempty"`
	}
	out.Environment, out.DeleteEnvironmentRow = c.Environment, c.Deletes && c.Environment != nil
	var merged JobSnapshot
	var unnamed []Launch // into a directory of a host that is not named: it may be any of them
	for _, l := range c.Launches {
		out.StopTargets = append(out.StopTargets, wireStop{l.SessionID, l.ExecutionID, l.Ended})
		if l.Target.Host == "" || l.Target.TaskDir == "" {
			if l.Target.TaskDir != "" && !l.Target.Enabled {
				unnamed = append(unnamed, l)
			}
			continue
		}
		e := entry{JobTarget: JobTarget{Target: l.Target, Baseline: l.Baseline}}
		if l.Profile != "" {
			e.Profiles = []string{l.Profile}
		}
		merged.entries = append(merged.entries, e)
	}
	if len(merged.entries) == 0 && c.Unreadable == 0 && c.Environment != nil && c.Environment.ExecutorType == "ssh" && strings.TrimSpace(c.Environment.WorkspacePath) != "" {
		t := c.Fallback
		t.TaskDir, t.Enabled, t.Disposable = c.Environment.WorkspacePath, false, ""
		merged.entries = append(merged.entries, entry{JobTarget: JobTarget{Target: t, Notes: []string{"no launch of this task is recorded any more, so nobody knows whether it had opted in"}}})
	}
	for _, t := range merged.Targets() {
		if c.Unreadable > 0 {
			t.Target.Enabled = false
			t.Notes = append(t.Notes, "a launch of this task cannot be read, so nobody knows whether it had opted in")
		}
		if slices.ContainsFunc(unnamed, func(l Launch) bool { return slices.Equal(namesOf(l.Target.TaskDir), namesOf(t.Target.TaskDir)) }) {
			t.Target.Enabled = false
			t.Notes = append(t.Notes, "a launch into a directory of this path names no host and had not opted in")
		}
		w := wireTarget{Target: t.Target}
		w.Target.Disposable = "" // a key of ours sits in our object
		slices.Sort(t.Profiles)
		if t.Profiles = slices.Compact(t.Profiles); len(t.Notes)+len(t.Profiles)+len(t.Baseline)+len(t.Target.Disposable) > 0 {
			w.Reclaim = &wireNotes{t.Baseline, t.Target.Disposable, t.Notes, t.Profiles}
		}
		out.Targets = append(out.Targets, w)
	}
	return json.Marshal(out)
}

// Matches reports whether the claim can be one to t's directory, so that
// storage need not hand over claims that cannot.
func (c Claim) Matches(t Target) bool { return c.matches(t) }

// ExecutorTarget is where an executor's and a profile's config lead, without a
// directory and without an opt-in. What cannot be read stays empty.
func ExecutorTarget(executor, profile []byte) Target {
	read := func(config []byte, name string) string { return strings.TrimSpace(ConfigText(config, name)) }
	t := Target{Host: read(executor, "ssh_host"), User: read(executor, "ssh_user"), Fingerprint: read(executor, "ssh_host_fingerprint"),
		IdentitySource: read(executor, "ssh_identity_source"), IdentityFile: read(executor, "ssh_identity_file"),
		ProxyJump: read(executor, "ssh_proxy_jump"), Shell: read(profile, "ssh_shell"), WorkdirRoot: read(profile, "ssh_workdir_root"),
		Port: portOrNone(strconv.AppendQuote(nil, read(executor, "ssh_port")))}
	if t.Host == "" {
		t.Host = read(executor, "ssh_host_alias")
	}
	return t
}

// EnvironmentClaim is what the environment of a task that goes on claims: the
// directory its row names, where the executor's config leads. The row outlives
// that of a launch, which a host drops when a session is stopped. An executor that
// does not say its host itself may lead to any.
func EnvironmentClaim(taskID, workspacePath string, executor []byte) Claim {
	t := ExecutorTarget(executor, nil)
	return Claim{TaskID: taskID, Host: strings.TrimSpace(ConfigText(executor, "ssh_host")), Port: t.Port, User: t.User, Fingerprint: t.Fingerprint, TaskDir: workspacePath}
}

// ConfigText is one string of an executor's or profile's config as it is
// stored, untrimmed; empty when it cannot be read.
func ConfigText(config []byte, name string) string {
	if !json.Valid(config) {
		return ""
	}
	all, err := members(config)
	if err != nil || ambiguous(all, []string{name}) != "" {
		return ""
	}
	s, _ := textOf(all, config, name)
	return s
}

// Removing reports whether a removal of one of the snapshot's directories has
// begun and was not seen to end.
func (s JobSnapshot) Removing() bool {
	return slices.ContainsFunc(s.Targets(), func(t JobTarget) bool { return t.Begun > 0 && t.Outcome != OutcomeRemoved })
}

// Again is the snapshot for judging its kept directories once more: recorded
// outcomes are taken away, except for what was removed; a recorded begin stays,
// because what it left on the host may still be there.
func (s JobSnapshot) Again() (JobSnapshot, error) {
	for _, t := range s.Targets() {
		if t.Outcome == OutcomeRemoved {
			continue
		}
		again, err := s.edited(t.Target, func(e entry, raw []byte) ([]byte, error) {
			raw, err := edit(raw, change{"outcome", nil}, change{"skip_reason", nil}, change{"detail", nil})
			if err != nil {
				return nil, err
			}
			return editReclaim(raw, change{"cause", nil}, change{"fault", nil}, change{"final", nil}, change{"cure", nil})
		})
		if err != nil {
			return s, err
		}
		s = again
	}
	return s.counted(nil)
}

// DirectoryNames are the names of a directory's path, letters folded as claims
// are compared, so that storage can index directories: two directories with
// names can match only if one's names begin with the other's or their last names
// are equal. False says that the directory can be compared with others only by
// Matches.
func DirectoryNames(dir string) ([]string, bool) {
	names := namesOf(dir)
	if !strings.HasPrefix(strings.TrimSpace(dir), "/") || len(names) == 0 || slices.Contains(names, ".") || slices.Contains(names, "..") {
		return nil, false
	}
	return names, true
}
