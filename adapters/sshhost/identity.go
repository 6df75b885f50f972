package sshhost

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/kandev/reclaim/core"
)

// maxKeys is how many keys are tried: servers hang up after six.
const maxKeys = 5

// identity is what we may log in with, the configured key first.
type identity struct {
	signers []ssh.Signer
	names   []string // one for each signer, for people
	left    int      // keys of the agent that were not tried
	agent   net.Conn // nil without one
}

func (i *identity) close() {
	if i.agent != nil {
		i.agent.Close()
	}
}

// tried says for a person what was offered.
func (i *identity) tried() string {
	text := strings.Join(i.names, ", ")
	if i.left > 0 {
		text += fmt.Sprintf(" (and %d more keys of the agent were not tried)", i.left)
	}
	return text
}

// identityOf gathers the keys for a target. Its source is "agent", "file", or
// empty: then a named identity file, else the agent where SSH_AUTH_SOCK is set,
// else ~/.ssh/id_ed25519. The configured key comes first and what the agent
// holds besides follows it; at most maxKeys are tried. The caller closes the
// identity once it has logged in. Nothing here touches the network.
func (o Options) identityOf(target core.Target, deadline time.Time) (*identity, error) {
	source, file := target.IdentitySource, target.IdentityFile
	switch source {
	case "agent":
		if o.AgentSocket == "" {
			return nil, errors.New("the key is to come from an SSH agent, and SSH_AUTH_SOCK is not set: start the backend with an agent, or name an identity file")
		}
	case "file":
		if file == "" {
			return nil, errors.New("the key is to come from a file, and no identity file is recorded")
		}
	case "":
		switch {
		case file != "":
			source = "file"
		case o.AgentSocket != "":
			source = "agent"
		default:
			source, file = "file", "~/.ssh/id_ed25519"
		}
	default:
		return nil, fmt.Errorf("the identity source %q is none of agent, file", source)
	}

	held, connection, err := o.agentKeys(deadline)
	if err != nil && source == "agent" {
		return nil, err
	}
	found := &identity{agent: connection}
	if file != "" {
		named, err := readKey(o.expand(file), held)
		switch {
		case err == nil:
			found.signers, found.names = named, slices.Repeat([]string{"identity file " + file}, len(named))
		case source == "file":
			found.close()
			return nil, err
		}
	}
	for _, signer := range held {
		if slices.ContainsFunc(found.signers, func(s ssh.Signer) bool { return sameKey(s.PublicKey(), signer.PublicKey()) }) {
			continue
		}
		if len(found.signers) >= maxKeys {
			found.left++
			continue
		}
		found.signers = append(found.signers, signer)
		found.names = append(found.names, "agent key "+ssh.FingerprintSHA256(signer.PublicKey()))
	}
	if len(found.signers) == 0 {
		found.close()
		return nil, fmt.Errorf("the SSH agent at %s holds no key: add one with ssh-add", o.AgentSocket)
	}
	return found, nil
}

func (o Options) agentKeys(deadline time.Time) ([]ssh.Signer, net.Conn, error) {
	if o.AgentSocket == "" {
		return nil, nil, nil
	}
	connection, err := net.DialTimeout("unix", o.AgentSocket, time.Until(deadline))
	if err != nil {
		return nil, nil, fmt.Errorf("the SSH agent at %s does not answer: %w", o.AgentSocket, err)
	}
	_ = connection.SetDeadline(deadline)
	held, err := agent.NewClient(connection).Signers()
	if err != nil {
		connection.Close()
		return nil, nil, fmt.Errorf("the SSH agent at %s does not list its keys: %w", o.AgentSocket, err)
	}
	return held, connection, nil
}

// readKey reads an identity file, and the certificate beside it where there is
// one. A key under a passphrase is taken from the agent where that holds it.
func readKey(path string, held []ssh.Signer) ([]ssh.Signer, error) {
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the identity file %s does not exist", path)
		}
		return nil, fmt.Errorf("the identity file cannot be read: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the identity file %s is no file", path)
	}
	if stat, is := info.Sys().(*syscall.Stat_t); is && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the identity file %s can be read by others (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the identity file cannot be read: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(raw)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		public := locked.PublicKey
		if public == nil {
			public = publicBeside(path + ".pub")
		}
		if public != nil {
			for _, candidate := range held {
				if sameKey(candidate.PublicKey(), public) {
					return []ssh.Signer{candidate}, nil
				}
			}
			return nil, fmt.Errorf("the identity file %s (%s) is protected by a passphrase: load it into an SSH agent with ssh-add and use the agent", path, ssh.FingerprintSHA256(public))
		}
		return nil, fmt.Errorf("the identity file %s is protected by a passphrase: load it into an SSH agent with ssh-add and use the agent", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the identity file %s holds no private key: %w", path, err)
	}
	if certificate, is := publicBeside(path + "-cert.pub").(*ssh.Certificate); is {
		if certified, err := ssh.NewCertSigner(certificate, signer); err == nil {
			return []ssh.Signer{certified, signer}, nil
		}
	}
	return []ssh.Signer{signer}, nil
}

func publicBeside(path string) ssh.PublicKey {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(raw)
	if err != nil {
		return nil
	}
	return public
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
