package sshhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kandev/reclaim/core"
)

// hop logs in to one jump host, verified with known_hosts, and makes it the end
// of the chain.
func (r *route) hop(ctx context.Context, address Address, keys *identity) *core.NeverRan {
	where := r.name("jump host", address)
	known, err := r.options.knownHosts()
	if err != nil {
		return refuse(core.HostKeyMismatch, "%s cannot be verified: %v; no credential was sent", where, err)
	}
	stream, err := r.reach(ctx, address)
	if err != nil {
		return refuse(core.Unreachable, "%s is not reached: %s", where, reason(ctx, err, r.options.TCP))
	}
	var mu sync.Mutex
	var verdict error
	verified := false
	config := &ssh.ClientConfig{
		User:              address.User,
		Auth:              credentials(keys),
		HostKeyAlgorithms: known.algorithms(address, stream.RemoteAddr()),
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			mu.Lock()
			defer mu.Unlock()
			if verdict = known.check(host, remote, key); verdict != nil {
				verdict = fmt.Errorf("it showed %s %s: %w", key.Type(), ssh.FingerprintSHA256(key), verdict)
				return verdict
			}
			verified = true
			return nil
		},
	}
	limited, done := context.WithTimeout(ctx, r.options.Handshake)
	defer done()
	client, err := r.handshake(limited, stream, address, config)
	mu.Lock()
	refused, logIn := verdict, verified
	mu.Unlock()
	var none *ssh.AlgorithmNegotiationError
	switch {
	case err == nil:
		r.hops, r.passed = append(r.hops, client), append(r.passed, address)
		return nil
	case refused != nil:
		var unknown *knownhosts.KeyError
		if errors.As(refused, &unknown) && len(unknown.Want) == 0 {
			return refuse(core.HostKeyMismatch, "%s is not in known_hosts (%s); no credential was sent. Log in once by hand to check and store its key: %s",
				where, strings.Join(r.options.KnownHosts, ", "), byHand(address))
		}
		return refuse(core.HostKeyMismatch, "%s is not the host that known_hosts has: %v; no credential was sent", where, refused)
	case errors.As(err, &none) && none.What == "host key":
		return refuse(core.HostKeyMismatch, "%s is not the host that known_hosts has: none of its key types is recorded (it offers %s); no credential was sent",
			where, strings.Join(none.RequestedAlgorithms, ", "))
	case logIn:
		return r.loginRefused(ctx, where, address, err, keys)
	}
	return refuse(core.Unreachable, "%s does not complete an SSH handshake: %s; no credential was sent", where, reason(ctx, err, r.options.Handshake))
}

func byHand(address Address) string {
	command := "ssh"
	if address.port() != 22 {
		command += fmt.Sprintf(" -p %d", address.port())
	}
	return command + " " + address.User + "@" + address.Host + " true"
}

// knownHosts is what the known_hosts files say.
type knownHosts struct{ check ssh.HostKeyCallback }

// knownHosts reads the files that exist. A file that cannot be read or parsed is
// an error: trust that is unusable must not become trust in everybody.
func (o Options) knownHosts() (knownHosts, error) {
	var files []string
	for _, file := range o.KnownHosts {
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		} else if !errors.Is(err, os.ErrNotExist) {
			return knownHosts{}, err
		}
	}
	check, err := knownhosts.New(files...)
	if err != nil {
		return knownHosts{}, fmt.Errorf("known_hosts is unusable: %w", err)
	}
	return knownHosts{check: check}, nil
}

// algorithms are those of the key types recorded for the address. Without this
// the server might show a key of another type than the recorded one, which
// would read as a mismatch. Nil, for an unknown host, means every type.
func (k knownHosts) algorithms(address Address, remote net.Addr) []string {
	var mismatch *knownhosts.KeyError
	if err := k.check(address.dialled(), remote, nobody{}); !errors.As(err, &mismatch) || len(mismatch.Want) == 0 {
		return nil
	}
	var types []string
	for _, want := range mismatch.Want {
		types = append(types, want.Key.Type())
	}
	algorithms := algorithmsOf(types)
	for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
		if strings.Contains(algorithm, "-cert-") {
			algorithms = append(algorithms, algorithm) // a known authority may vouch for it
		}
	}
	return algorithms
}

// nobody is a key that no host has.
type nobody struct{}

func (nobody) Type() string                        { return "nobody" }
func (nobody) Marshal() []byte                     { return []byte("nobody") }
func (nobody) Verify([]byte, *ssh.Signature) error { return errors.New("nobody signs nothing") }
