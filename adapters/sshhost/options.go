package sshhost

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options are the dialer's limits and where it finds the backend's own SSH
// files. The zero value means the defaults named with each field.
type Options struct {
	TCP       time.Duration // to connect to one hop; 10 s
	Handshake time.Duration // to prove one hop and log in, host key search included; 15 s
	Keepalive time.Duration // between two signs of life asked for; 10 s
	Misses    int           // unanswered in a row, after which the connection is lost; 2
	Sessions  int           // scripts at once on one connection; 4

	Home        string   // of the backend's user, for ~/ in identity_file; os.UserHomeDir
	User        string   // where a target names none; $USER
	AgentSocket string   // $SSH_AUTH_SOCK
	KnownHosts  []string // for the hops of a ProxyJump; ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
	Config      string   // for hops and aliases; ~/.ssh/config
}

func (o Options) filled() Options {
	o.TCP = cmp.Or(o.TCP, 10*time.Second)
	o.Handshake = cmp.Or(o.Handshake, 15*time.Second)
	o.Keepalive = cmp.Or(o.Keepalive, 10*time.Second)
	o.Misses = cmp.Or(o.Misses, 2)
	o.Sessions = cmp.Or(o.Sessions, 4)
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir()
	}
	o.User = cmp.Or(o.User, os.Getenv("USER"))
	o.AgentSocket = cmp.Or(o.AgentSocket, os.Getenv("SSH_AUTH_SOCK"))
	if o.KnownHosts == nil {
		o.KnownHosts = []string{filepath.Join(o.Home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"}
	}
	o.Config = cmp.Or(o.Config, filepath.Join(o.Home, ".ssh", "config"))
	return o
}

// expand replaces a leading ~ by the home of the backend's user.
func (o Options) expand(path string) string {
	if path == "~" {
		return o.Home
	}
	if rest, is := strings.CutPrefix(path, "~/"); is {
		return filepath.Join(o.Home, rest)
	}
	return path
}
