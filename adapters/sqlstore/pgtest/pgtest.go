// Package pgtest starts a real PostgreSQL server for a test, in a folder of its
// own, reachable by a Unix socket only, and ends it with the test:
//
//	server := pgtest.Start(t)
//	db := server.Database(t)
package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Server is one running PostgreSQL.
type Server struct {
	folder     string // owned by the account the server runs as
	bin        string
	credential *syscall.Credential
	process    *exec.Cmd
	databases  atomic.Int64
	settings   []string
}

// Start makes a cluster and starts a server on it. A machine without PostgreSQL
// fails the test and says what to install: nothing is skipped. Settings such as
// "fsync=off" are the server's. t may be nil in TestMain; then Stop must be
// called.
func Start(t testing.TB, settings ...string) *Server {
	if t != nil {
		t.Helper()
	}
	s, err := start(settings)
	if err != nil {
		if t == nil {
			panic(err)
		}
		t.Fatal(err)
	}
	if t != nil {
		t.Cleanup(s.Stop)
	}
	return s
}

func start(settings []string) (*Server, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		if path, err := exec.LookPath("initdb"); err == nil {
			found = []string{path}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("PostgreSQL's initdb is not on this machine: install the Debian package postgresql")
	}
	s := &Server{bin: filepath.Dir(found[len(found)-1]), settings: settings}
	var err error
	if s.folder, err = os.MkdirTemp("", "pg"); err != nil { // short: a socket's path has little room
		return nil, err
	}
	if os.Getuid() == 0 { // the server refuses to run as root
		if s.credential, err = unprivileged(); err == nil {
			err = os.Chown(s.folder, int(s.credential.Uid), int(s.credential.Gid))
		}
		if err != nil {
			os.RemoveAll(s.folder)
			return nil, err
		}
	}
	if output, err := s.command("initdb", "-D", s.data(), "-U", "reclaim", "-A", "trust", "-E", "UTF8", "--locale=C", "-N").CombinedOutput(); err != nil {
		os.RemoveAll(s.folder)
		return nil, fmt.Errorf("initdb: %v\n%s", err, output)
	}
	if err := s.run(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(account.Uid, 10, 32)
		gid, errG := strconv.ParseUint(account.Gid, 10, 32)
		if errU == nil && errG == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and this machine has neither the account postgres nor nobody")
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.folder
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential, Pdeathsig: syscall.SIGQUIT}
	return c
}

func (s *Server) run() error {
	log, err := os.Create(filepath.Join(s.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", s.data(), "-k", s.folder}
	for _, setting := range append([]string{"listen_addresses=", "max_connections=100", "shared_buffers=32MB"}, s.settings...) {
		args = append(args, "-c", setting)
	}
	s.process = s.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	db, err := sql.Open("pgx", s.DSN("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	limit, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	for {
		if err = db.PingContext(limit); err == nil {
			return nil
		}
		select {
		case <-limit.Done():
			told, _ := os.ReadFile(log.Name())
			return fmt.Errorf("PostgreSQL did not start: %v\n%s", err, told)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DSN names a database of the server.
func (s *Server) DSN(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("reclaim"), Path: "/" + database, RawQuery: url.Values{"host": {s.folder}, "sslmode": {"disable"}}.Encode()}
	return u.String()
}

// NewDSN makes an empty database and names it.
func (s *Server) NewDSN(t testing.TB) string {
	t.Helper()
	admin, err := sql.Open("pgx", s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	if _, err := admin.Exec(`CREATE DATABASE ` + name); err != nil {
		t.Fatal(err)
	}
	return s.DSN(name)
}

// Database makes an empty database and opens it for the test.
func (s *Server) Database(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.NewDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Restart kills the server as a power cut would and starts it again on the same
// files.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Away(t)
	s.Back(t)
}

// Away kills the server as a power cut would. Its files stay.
func (s *Server) Away(t testing.TB) {
	t.Helper()
	s.end(syscall.SIGQUIT)
}

// Back starts a server that is away on the same files.
func (s *Server) Back(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	s.end(syscall.SIGINT)
	if strings.HasPrefix(filepath.Base(s.folder), "pg") {
		os.RemoveAll(s.folder)
	}
}

func (s *Server) end(signal syscall.Signal) {
	if s.process == nil || s.process.Process == nil {
		return
	}
	s.process.Process.Signal(signal)
	s.process.Wait()
	s.process = nil
}
