package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kandev/reclaim/core/taskpath"
)

// Projected is what a launch's metadata is made from.
type Projected struct {
	TaskID     string
	Task       []byte // the task's own metadata, a JSON object; never trusted
	ExecutorID string
	Executor   []byte   // the executor record's config, a JSON object of strings
	Profile    *Profile // nil when the profile could not be read: the launch is then not opted in
}

// Profile is an executor profile as a launch reads it.
type Profile struct {
	ID            string
	Config        []byte // a JSON object of strings
	CleanupScript string
}

// Keys of launch metadata by who may say what they hold, as the host has it: the
// executor record's and the profile's stand over whatever the task says.
var (
	// trustedKeys are the executor record's: they overwrite, also with nothing.
	trustedKeys = []string{"ssh_host", "ssh_host_alias", "ssh_port", "ssh_user", "ssh_host_fingerprint", "ssh_identity_source", "ssh_identity_file", "ssh_proxy_jump"}
	// authoritativeKeys are the profile's: they overwrite, also with nothing.
	authoritativeKeys = []string{"ssh_workdir_root", "ssh_shell", "ssh_reclaim_task_dir", disposableKey, "ssh_materialization_mode", "ssh_source_path_template"}
	// ownKeys are written by the launch itself or would name the segment: nobody
	// else's to say.
	ownKeys = []string{"ssh_remote_task_dir", "ssh_remote_session_dir", "ssh_remote_agentctl_port", "ssh_remote_agentctl_pid", "ssh_local_forward_port",
		"ssh_remote_agentctl_url", "ssh_materialization", "ssh_materialized_worktrees", "ssh_task_dir_name", "task_dir_name",
		"cleanup_script", "executor_profile_id", "executor_id", "is_remote"}
	// renamedKeys of a profile's config are written under another name.
	renamedKeys = map[string]string{"remote_git_user_name": "git_user_name", "remote_git_user_email": "git_user_email"}
)

// Project makes a launch's metadata: a JSON object, keys in order. A key that
// the executor record or the profile decides, or that the launch writes, is
// never the task's, in whatever case or spelling the task writes it, also when
// the profile is silent or could not be read. Every other key of the profile is
// copied where it is not empty, and what is left is the task's.
func Project(p Projected) ([]byte, error) {
	task, err := objectOf("the task's metadata", p.Task)
	if err != nil {
		task = nil // a task that cannot be read says nothing
	}
	executor, err := textsOf("the executor's config", p.Executor)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for key, value := range task {
		if !reserved(key) {
			out[key] = value
		}
	}
	set := func(key, value string) { out[key], _ = json.Marshal(value) }
	for _, key := range trustedKeys {
		set(key, strings.TrimSpace(executor[key]))
	}
	set("executor_id", p.ExecutorID)
	for _, key := range authoritativeKeys {
		set(key, "")
	}
	set("cleanup_script", "")
	set("executor_profile_id", "")
	if p.Profile != nil {
		config, err := textsOf("the profile's config", p.Profile.Config)
		if err == nil { // one that cannot be read is as silent as one that is gone
			for _, key := range slices.Sorted(maps.Keys(config)) { // of a key and its other name, the other name's
				value := config[key]
				if name, renamed := renamedKeys[key]; renamed {
					key = name
				}
				if value != "" && !reserved(key) {
					set(key, value)
				}
			}
			for _, key := range authoritativeKeys {
				set(key, config[key])
			}
		}
		set("ssh_reclaim_task_dir", "")
		set(disposableKey, DisposableIn(p.Profile.Config))
		if err == nil && OptedIn(p.Profile.Config) {
			set("ssh_reclaim_task_dir", "true")
		}
		set("cleanup_script", p.Profile.CleanupScript)
		set("executor_profile_id", p.Profile.ID)
	}
	if strings.TrimSpace(rawText(out["ssh_workdir_root"])) == "" {
		set("ssh_workdir_root", "~/.kandev")
	}
	out["is_remote"] = []byte("true")
	return json.Marshal(out) // of a map: keys in order
}

// LaunchSegment is the one name of a task's directory below <root>/tasks. A task
// cannot choose it.
func LaunchSegment(taskID string) (string, error) {
	segment := "task-" + taskID
	if taskID == "" {
		return "", errors.New("a task without an id has no directory")
	}
	if err := taskpath.Segment(segment); err != nil {
		return "", err
	}
	return segment, nil
}

// LaunchTarget is where projected metadata leads, and the alias to resolve
// there; TaskDir is left to the launch. It refuses what could not be reached or
// proved later: no host, no pin, an odd port.
func LaunchTarget(metadata []byte) (target Target, alias string, err error) {
	launch, err := ParseLaunch(metadata)
	if err != nil {
		return Target{}, "", err
	}
	texts, _ := objectOf("the launch's metadata", metadata) // it was read as one
	target, alias = launch.Target, strings.TrimSpace(rawText(texts["ssh_host_alias"]))
	port := strings.TrimSpace(rawText(texts["ssh_port"]))
	switch n, bad := strconv.Atoi(port); {
	case port != "" && (bad != nil || n < 1 || n > 65535):
		return Target{}, "", fmt.Errorf("the executor's ssh_port is %q, no number from 1 to 65535", clipped(port, 80))
	case target.Host == "" && alias == "":
		return Target{}, "", errors.New("the executor names neither a host nor an alias")
	case target.Fingerprint == "":
		return Target{}, "", errors.New("the executor pins no host fingerprint")
	}
	return target, alias, nil
}

// WithLaunched writes what a launch came to over projected metadata: the
// concrete way to the host, so that nothing is looked up again at clean-up, and
// the directory.
func WithLaunched(metadata []byte, t Target, session map[string]string) ([]byte, error) {
	changes := []change{}
	set := func(key, value string) { changes = append(changes, change{key, quotedJSON(value)}) }
	port := t.Port
	if port == 0 {
		port = 22
	}
	set("ssh_host", t.Host)
	set("ssh_port", strconv.Itoa(port))
	set("ssh_user", t.User)
	set("ssh_identity_source", t.IdentitySource)
	set("ssh_identity_file", t.IdentityFile)
	set("ssh_proxy_jump", t.ProxyJump)
	set("ssh_remote_task_dir", t.TaskDir)
	for _, key := range slices.Sorted(maps.Keys(session)) {
		set(key, session[key])
	}
	changes = append(changes, change{"ssh_host_alias", nil}) // resolved: not carried on
	return edit(metadata, changes...)
}

// WithBaseline writes the digest of the baseline that the launch made, or that an
// earlier launch into the same checkout made.
func WithBaseline(metadata []byte, digest string) ([]byte, error) {
	if !hexDigest(digest) {
		return metadata, nil
	}
	return edit(metadata, change{baselineKey, quotedJSON(digest)})
}

func quotedJSON(text string) []byte { raw, _ := json.Marshal(text); return raw }

// reserved reports whether a key is not a task's to say, however it is spelled:
// letters and digits alone count, in either case, and every name that begins
// with ssh is ours.
func reserved(key string) bool {
	bare := bareKey(key)
	if strings.HasPrefix(bare, "ssh") || strings.HasPrefix(bare, "envsecretid") {
		return true
	}
	return slices.ContainsFunc(ownKeys, func(own string) bool { return bareKey(own) == bare })
}

// bareKey folds what a lenient reader might: case, white space, separators,
// full-width and other letters that fold to ASCII ones.
func bareKey(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 0xFF01 <= r && r <= 0xFF5E: // full-width forms
			r -= 0xFEE0
		case r == '\u017f': // the long s folds to s
			r = 's'
		case r == '\u212a': // the Kelvin sign folds to k
			r = 'k'
		}
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, key)
}

func objectOf(what string, raw []byte) (map[string]json.RawMessage, error) {
	if text := strings.TrimSpace(string(raw)); text == "" || text == "null" {
		return nil, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("%s is no JSON object", what)
	}
	return object, nil
}

// textsOf reads an object of strings; what is no string counts as absent.
func textsOf(what string, raw []byte) (map[string]string, error) {
	object, err := objectOf(what, raw)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for key, value := range object {
		var text string
		if json.Unmarshal(value, &text) == nil {
			texts[key] = text
		}
	}
	return texts, nil
}

func rawText(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}
