package sshhost_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/core"
)

// agentWith serves an SSH agent that holds the given private keys.
func agentWith(t *testing.T, keys ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, key := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = agent.ServeAgent(ring, connection)
				connection.Close()
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return path
}

func privateKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keyIn(t *testing.T, path string) any {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTheKeyComesFromWhereTheTargetSays(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	right := server.Identity
	var wrong []any
	for range 7 {
		wrong = append(wrong, privateKey(t))
	}
	locked := filepath.Join(t.TempDir(), "locked")
	block, err := ssh.MarshalPrivateKeyWithPassphrase(keyIn(t, right), "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(locked, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, pem.EncodeToMemory(block), 0o644); err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(t.TempDir(), "stranger")
	sshdtest.WriteKey(t, stranger, "ed25519")
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(right)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "id_ed25519"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	holds := agentWith(t, keyIn(t, right))
	crowd := agentWith(t, append(append([]any{}, wrong...), keyIn(t, right))...)
	strangers := agentWith(t, wrong...)
	empty := agentWith(t)

	for name, row := range map[string]struct {
		source, file, agent string
		want                core.Fault // empty: logged in
		says                string
	}{
		"file":                                 {source: "file", file: right},
		"file below home":                      {source: "file", file: "~/.ssh/id_ed25519"},
		"agent":                                {source: "agent", agent: holds},
		"no source, an agent":                  {agent: holds},
		"no source, no agent":                  {},
		"no source, a file":                    {file: right, agent: strangers},
		"file, seven other keys in the agent":  {source: "file", file: right, agent: strangers},
		"agent, named key among seven others":  {source: "agent", file: right, agent: crowd},
		"file refused, the agent has it":       {source: "file", file: stranger, agent: holds},
		"file with passphrase, the agent's":    {source: "file", file: locked, agent: crowd},
		"file with passphrase":                 {source: "file", file: locked, agent: strangers, want: core.AuthFailed, says: "ssh-add"},
		"file missing":                         {source: "file", file: "/nonexistent/key", want: core.AuthFailed, says: "does not exist"},
		"file is a directory":                  {source: "file", file: home, want: core.AuthFailed, says: "is no file"},
		"file is no key":                       {source: "file", file: right + ".pub", want: core.AuthFailed, says: "chmod 600"},
		"file readable by others":              {source: "file", file: open, want: core.AuthFailed, says: "chmod 600"},
		"file without a name":                  {source: "file", want: core.AuthFailed, says: "no identity file"},
		"agent without a socket":               {source: "agent", want: core.AuthFailed, says: "SSH_AUTH_SOCK is not set"},
		"agent that is gone":                   {source: "agent", agent: "/nonexistent/agent", want: core.AuthFailed, says: "does not answer"},
		"agent without keys":                   {source: "agent", agent: empty, want: core.AuthFailed, says: "ssh-add"},
		"agent with seven wrong keys":          {source: "agent", agent: strangers, want: core.AuthFailed, says: "2 more keys of the agent were not tried"},
		"file that the server does not accept": {source: "file", file: stranger, want: core.AuthFailed, says: "identity file " + stranger},
		"another source":                       {source: "vault", file: right, want: core.AuthFailed, says: `"vault"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SSH_AUTH_SOCK", row.agent)
			target := server.Target()
			target.IdentitySource, target.IdentityFile = row.source, row.file
			session, refusal := sshhost.New(sshhost.Options{Home: home}).Dial(t.Context(), target)
			if session != nil {
				session.Close()
			}
			if (session != nil) != (row.want == "") || refusal.Fault != row.want || !strings.Contains(refusal.Detail, row.says) {
				t.Errorf("%v %+v", session, refusal)
			}
		})
	}
}

func TestTheUserIsTheBackendsWhereNoneIsRecorded(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	target := server.Target()
	me := target.User
	target.User = ""
	t.Setenv("USER", me)
	dial(t, sshhost.New(sshhost.Options{}), target)
	t.Setenv("USER", "")
	if session, refusal := sshhost.New(sshhost.Options{}).Dial(t.Context(), target); session != nil || refusal.Fault != core.AuthFailed || !strings.Contains(refusal.Detail, "USER") {
		t.Errorf("%v %+v", session, refusal)
	}
}

func TestAKeyWithACertificateBesideItLogsInByIt(t *testing.T) {
	dir := sshdtest.OpenDir(t)
	authority := sshdtest.WriteKey(t, filepath.Join(dir, "ca"), "ed25519")
	server := sshdtest.Start(t, sshdtest.Options{Config: "TrustedUserCAKeys " + filepath.Join(dir, "ca.pub")})
	path := filepath.Join(t.TempDir(), "id")
	signer := sshdtest.WriteKey(t, path, "ed25519")
	target := server.Target()
	certificate := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{target.User}, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-cert.pub", ssh.MarshalAuthorizedKey(certificate), 0o644); err != nil {
		t.Fatal(err)
	}
	target.IdentityFile = path
	dial(t, sshhost.New(quick), target)
}
