// Package sshdtest starts a real OpenSSH server for a test: a child process on
// a loopback port, with keys and configuration of its own, that ends with the
// test.
//
//	server := sshdtest.Start(t, sshdtest.Options{})
//	session, refusal := dialer.Dial(ctx, server.Target())
//
// Nothing is skipped: what is missing on the machine fails the test and names
// the Debian package. Accounts can be made where the test runs as root on a
// machine that may have them.
package sshdtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/core"
)

// Options say how the server differs from the plain one, which has host keys of
// the three usual types and lets the test's key log in as any user.
type Options struct {
	HostKeys    []string // ed25519, ecdsa, rsa, in this order of configuration
	Certificate string   // the type of host key that has a certificate besides; empty: none
	Config      string   // more lines of sshd_config, before the others (the first one counts)
	Home        string   // of everyone who logs in; empty: the account's own, whatever its profiles do there
}

// Server is a running sshd.
type Server struct {
	Port         int
	Identity     string            // the private key that may log in as any user
	Fingerprints map[string]string // of each host key, by type; "certificate" is the certificate's own
	Dir          string            // readable by everyone, removed after the test

	t       testing.TB
	log     *lines
	config  string // its file
	process *os.Process
	exited  chan error
}

// Start starts a server that ends with the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("a real sshd is needed: apt-get install openssh-server (%v)", err)
	}
	if options.HostKeys == nil {
		options.HostKeys = []string{"ed25519", "ecdsa", "rsa"}
	}
	if os.Getuid() == 0 {
		// Where sshd is not a running service nobody else makes it.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := OpenDir(t)
	server := &Server{t: t, Dir: dir, Fingerprints: map[string]string{}, Identity: filepath.Join(dir, "id"), log: &lines{}}
	identity := WriteKey(t, server.Identity, "ed25519")
	write(t, filepath.Join(dir, "authorized_keys"), ssh.MarshalAuthorizedKey(identity.PublicKey()), 0o644)

	config := options.Config + "\n" + strings.Join([]string{
		"ListenAddress 127.0.0.1",
		"PidFile none",
		"UsePAM no",
		"StrictModes no",
		"PermitRootLogin yes",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"PubkeyAuthentication yes",
		"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys"),
		"LogLevel DEBUG1",
		"PrintMotd no",
	}, "\n") + "\n"
	if !strings.Contains(options.Config, "MaxStartups") { // the last one counts, unlike elsewhere
		config += "MaxStartups 100:30:200\n"
	}
	if options.Home != "" {
		config += "SetEnv HOME=" + options.Home + "\n"
	}
	for _, kind := range options.HostKeys {
		path := filepath.Join(dir, "host_"+kind)
		signer := WriteKey(t, path, kind)
		server.Fingerprints[kind] = ssh.FingerprintSHA256(signer.PublicKey())
		config += "HostKey " + path + "\n"
		if kind == options.Certificate {
			certificate := certify(t, signer.PublicKey())
			server.Fingerprints["certificate"] = ssh.FingerprintSHA256(certificate)
			write(t, path+"-cert.pub", ssh.MarshalAuthorizedKey(certificate), 0o644)
			config += "HostCertificate " + path + "-cert.pub\n"
		}
	}
	file := filepath.Join(dir, "sshd_config")
	// A port that is free now may be taken a moment later: try again with
	// another one.
	for attempt := 1; ; attempt++ {
		server.Port = freePort(t)
		write(t, file, []byte(config+"Port "+strconv.Itoa(server.Port)+"\n"), 0o644)
		server.config = file
		if err := server.run(); err == nil {
			t.Cleanup(server.end)
			return server
		} else if attempt == 5 {
			t.Fatalf("sshd does not start: %v\n%s", err, server.Log())
		}
	}
}

const program = "/usr/sbin/sshd"

// run starts the process and returns once it listens. It does not connect: tests
// count connections.
func (s *Server) run() error {
	command := exec.Command(program, "-D", "-e", "-f", s.config)
	command.Stderr = s.log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	listening := fmt.Sprintf("Server listening on 127.0.0.1 port %d.", s.Port)
	before := strings.Count(s.Log(), listening)
	if err := command.Start(); err != nil {
		return err
	}
	s.process, s.exited = command.Process, make(chan error, 1)
	go func(exited chan error) { exited <- command.Wait() }(s.exited)
	deadline := time.Now().Add(20 * time.Second)
	for {
		if strings.Count(s.Log(), listening) > before {
			return nil
		}
		select {
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("it ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.end()
			return fmt.Errorf("it does not listen")
		}
	}
}

// end ends the process that listens. What it serves goes on.
func (s *Server) end() {
	_ = s.process.Kill()
	err := <-s.exited
	s.exited <- err
}

// Crash ends the server and, by their ids, every process it has started and all
// that those have, at once, as a power cut does.
func (s *Server) Crash() {
	// What is stopped starts no more: nothing escapes by having a child meanwhile.
	var all []int
	for {
		born := descendants(s.t, s.process.Pid)
		fresh := false
		for _, pid := range born {
			if !slices.Contains(all, pid) {
				fresh = true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
				all = append(all, pid)
			}
		}
		if !fresh {
			break
		}
	}
	_ = s.process.Kill()
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.end() // only now: it shares its log with those
	for _, pid := range all {
		for deadline := time.Now().Add(time.Minute); running(pid); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(deadline) {
				s.t.Fatalf("process %d does not end", pid)
			}
		}
	}
}

// Restart starts a crashed server again, at the same port and with the same keys.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.run(); err != nil {
		s.t.Fatalf("sshd does not start again: %v\n%s", err, s.Log())
	}
}

// descendants are the processes that the process has started, and theirs.
func descendants(t testing.TB, of int) (all []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	parent := map[int]int{}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if _, ppid, ok := stat(pid); ok {
				parent[pid] = ppid
			}
		}
	}
	for pid := range parent {
		for up, deep := parent[pid], 0; up > 1 && deep < 100; up, deep = parent[up], deep+1 {
			if up == of {
				all = append(all, pid)
				break
			}
		}
	}
	return all
}

// running is whether the process has not ended; one that nobody waited for has.
func running(pid int) bool {
	state, _, ok := stat(pid)
	return ok && state != "Z" && state != "X"
}

func stat(pid int) (state string, parent int, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}

// Target names the server as a launch would have recorded it, for the user that
// runs the test: its ed25519 key pinned (or the first it has), the test's
// identity file.
func (s *Server) Target() core.Target {
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.TargetOf(me.Username)
}

// TargetOf is Target for another account.
func (s *Server) TargetOf(account string) core.Target {
	pin := s.Fingerprints["ed25519"]
	for _, kind := range []string{"ecdsa", "rsa"} {
		if pin == "" {
			pin = s.Fingerprints[kind]
		}
	}
	return core.Target{Host: "127.0.0.1", Port: s.Port, User: account, Fingerprint: pin,
		IdentitySource: "file", IdentityFile: s.Identity, Enabled: true}
}

// Authorize lets another key log in.
func (s *Server) Authorize(key ssh.PublicKey) { s.AuthorizeLine(string(ssh.MarshalAuthorizedKey(key))) }

// AuthorizeLine adds a line to the authorized_keys of every account.
func (s *Server) AuthorizeLine(line string) {
	file, err := os.OpenFile(filepath.Join(s.Dir, "authorized_keys"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(line); err != nil {
		s.t.Fatal(err)
	}
}

// KnownHosts writes a known_hosts file with the server's keys of the given types
// and returns its path.
func (s *Server) KnownHosts(types ...string) string {
	var text bytes.Buffer
	for _, kind := range types {
		raw, err := os.ReadFile(filepath.Join(s.Dir, "host_"+kind+".pub"))
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&text, "[127.0.0.1]:%d %s", s.Port, raw)
	}
	path := filepath.Join(s.t.TempDir(), "known_hosts")
	write(s.t, path, text.Bytes(), 0o644)
	return path
}

// Log is what the server has logged so far, at DEBUG1.
func (s *Server) Log() string { return s.log.String() }

// Account is an account of this machine, made for one test.
type Account struct {
	Name, Home string
	uid, gid   int
}

// NewAccount makes an account with the given login shell and files in its home
// directory, and removes both after the test. It needs root on a machine where
// accounts may be made.
func NewAccount(t testing.TB, shell string, files map[string]string) Account {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("an account with a login shell of its own is needed: run this test as root on a throw-away machine")
	}
	if _, err := os.Stat(shell); err != nil {
		t.Fatalf("the login shell %s is needed: apt-get install %s (%v)", shell, packageOf(shell), err)
	}
	home := OpenDir(t)
	name := "reclaim-test-" + strings.ToLower(rand.Text()[:10])
	accounts(t, "useradd", "--no-create-home", "--home-dir", home, "--shell", shell, "--password", "*", name)
	t.Cleanup(func() {
		endProcesses(t, name)
		accounts(t, "userdel", "--force", name)
	})
	made, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(made.Uid)
	gid, _ := strconv.Atoi(made.Gid)
	account := Account{Name: name, Home: home, uid: uid, gid: gid}
	account.Write(t, files)
	return account
}

// Write writes files of the account into its home directory; HOME in a text
// stands for that directory.
func (a Account) Write(t testing.TB, files map[string]string) {
	t.Helper()
	for path, text := range files {
		full := filepath.Join(a.Home, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, full, []byte(strings.ReplaceAll(text, "HOME/", a.Home+"/")+"\n"), 0o644)
	}
	err := filepath.WalkDir(a.Home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, a.uid, a.gid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// accounts runs one account tool at a time on this machine: they refuse to work
// while another holds the password file.
func accounts(t testing.TB, program string, args ...string) {
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "reclaim-test-accounts.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", program, err, out)
	}
}

// endProcesses ends, by their ids, the processes that run as the account: what a
// login shell left behind.
func endProcesses(t testing.TB, account string) {
	owner, err := user.Lookup(account)
	if err != nil {
		t.Error(err)
		return
	}
	uid, _ := strconv.ParseUint(owner.Uid, 10, 32)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if info, err := entry.Info(); err == nil && uint64(info.Sys().(*syscall.Stat_t).Uid) == uid {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func packageOf(shell string) string {
	switch base := filepath.Base(shell); base {
	case "ksh", "ksh93":
		return "ksh93u+m"
	case "csh":
		return "tcsh"
	default:
		return base
	}
}

// OpenDir makes a directory that every account can enter, and removes it after
// the test.
func OpenDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reclaim-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// WriteKey makes a key of the given type (ed25519, ecdsa, rsa) and writes it to
// path, and its public half to path.pub.
func WriteKey(t testing.TB, path, kind string) ssh.Signer {
	t.Helper()
	var key any
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		t.Fatalf("%q is no type of key", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "reclaim test")
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, pem.EncodeToMemory(block), 0o600)
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o644)
	return signer
}

// certify makes a host certificate for the key, by an authority of its own.
func certify(t testing.TB, key ssh.PublicKey) *ssh.Certificate {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: key, CertType: ssh.HostCert, KeyId: "reclaim test", ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	return certificate
}

func freePort(t testing.TB) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func write(t testing.TB, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
