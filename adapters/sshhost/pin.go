package sshhost

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/core"
)

// checkPin accepts SHA256: and the unpadded base64 of 32 bytes, exactly.
// CheckPin says what is wrong with a host key fingerprint, or nil: empty, or not
// SHA256: and the 43 characters of a digest in base64.
func CheckPin(pin string) error {
	if refusal := checkPin(pin); refusal != nil {
		return errors.New(refusal.Detail)
	}
	return nil
}

func checkPin(pin string) *core.NeverRan {
	if strings.TrimSpace(pin) == "" {
		return &core.NeverRan{Fault: core.NoPin, Detail: "no host key fingerprint was recorded for this host, so it cannot be told from another; nothing was dialled"}
	}
	encoded, is := strings.CutPrefix(pin, "SHA256:")
	raw, err := base64.RawStdEncoding.Strict().DecodeString(encoded)
	if !is || err != nil || len(raw) != 32 || strings.ContainsAny(encoded, "\r\n") {
		return &core.NeverRan{Fault: core.HostKeyMismatch, Detail: fmt.Sprintf("the recorded fingerprint %.80q is not SHA256: and 43 characters of base64, so no key can match it; nothing was dialled", pin)}
	}
	return nil
}

// maxSearch bounds the connections made to find the pinned key: servers hold
// connections that never log in against their source.
const maxSearch = 4

// keySearch looks for the pinned key of one host. A server has keys of several
// types and shows only the one that the two sides negotiate, so that the pinned
// one may have to be asked for: each connection offers the types not yet seen.
type keySearch struct {
	pin string

	mu       sync.Mutex
	offer    []string // algorithms still to ask for, most wanted first
	seen     []string // "ssh-ed25519 SHA256:..." in the order they were shown
	shown    bool     // in this connection
	accepted string   // the type of the key that is the pinned one
}

// newKeySearch starts a search. Plain keys come first, because a pin is usually
// of a plain key and a server that has certificates would otherwise show one;
// first is the type that was found under this pin before, or empty.
func newKeySearch(pin, first string) *keySearch {
	var plain, certificates []string
	for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
		if strings.Contains(algorithm, "-cert-") {
			certificates = append(certificates, algorithm)
		} else {
			plain = append(plain, algorithm)
		}
	}
	// OpenSSH's client, where people copy pins from, prefers ed25519.
	offer := slices.Concat(plain, certificates)
	slices.SortStableFunc(offer, func(a, b string) int { return preference(a, first) - preference(b, first) })
	return &keySearch{pin: pin, offer: offer}
}

func preference(algorithm, first string) int {
	switch {
	case first != "" && keyType(algorithm) == first:
		return 0
	case algorithm == ssh.KeyAlgoED25519:
		return 1
	case !strings.Contains(algorithm, "-cert-"):
		return 2
	}
	return 3
}

// keyType is the type of key an algorithm signs with: RSA has several
// algorithms and one key.
func keyType(algorithm string) string {
	switch algorithm {
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512:
		return ssh.KeyAlgoRSA
	case ssh.CertAlgoRSASHA256v01, ssh.CertAlgoRSASHA512v01:
		return ssh.CertAlgoRSAv01
	}
	return algorithm
}

var errNotPinned = fmt.Errorf("not the pinned key")

// check is the callback that sees the host's key, before anything of ours but
// the offer of algorithms has been sent.
func (k *keySearch) check(key ssh.PublicKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shown = true
	prints := []string{ssh.FingerprintSHA256(key)}
	described := key.Type() + " " + prints[0]
	if certificate, is := key.(*ssh.Certificate); is {
		prints = append(prints, ssh.FingerprintSHA256(certificate.Key))
		described += " (certificate of the key " + prints[1] + ")"
	}
	if slices.Contains(prints, k.pin) {
		k.accepted = key.Type()
		return nil
	}
	if !slices.Contains(k.seen, described) {
		k.seen = append(k.seen, described)
	}
	k.offer = slices.DeleteFunc(k.offer, func(algorithm string) bool { return keyType(algorithm) == key.Type() })
	return errNotPinned
}

// next is what to offer in another connection; empty when there is nothing left.
func (k *keySearch) next() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shown = false
	return slices.Clone(k.offer)
}

func (k *keySearch) state() (accepted string, shown bool, seen []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.accepted, k.shown, slices.Clone(k.seen)
}
