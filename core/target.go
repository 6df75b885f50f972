package core

// Target is one directory on one host, as recorded when the task was launched.
// It is comparable, holds no secret, and carries exactly the keys of the host's
// snapshot target that decide where and what.
type Target struct {
	Host           string `json:"host"`
	Port           int    `json:"port,omitempty"` // 0 means 22
	User           string `json:"user,omitempty"`
	Fingerprint    string `json:"host_fingerprint,omitempty"` // SHA256:<base64, no padding>
	IdentitySource string `json:"identity_source,omitempty"`  // agent, file, or empty
	IdentityFile   string `json:"identity_file,omitempty"`    // on the backend's machine; may start with ~/
	ProxyJump      string `json:"proxy_jump,omitempty"`
	Shell          string `json:"shell,omitempty"`
	WorkdirRoot    string `json:"workdir_root"` // as typed; blank means ~/.kandev
	TaskDir        string `json:"task_dir"`     // absolute, expanded at launch
	Enabled        bool   `json:"enabled,omitempty"`
	Disposable     string `json:"disposable,omitempty"` // the kinds of build output that may go with it, as ReadDisposable gives them
}
