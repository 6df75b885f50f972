package riverqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// hosts are machines in memory, behind a socket, so that many worker processes
// reach the same ones and what they do is seen where it happens. A probe ends
// with its connection; a removal runs to its end whoever dies.
type hosts struct {
	testing.TB
	socket string
	took   time.Duration // of one script

	// Scripts named here, as "host script" or as "script", do not end before
	// their channel is closed. Set before anything dials.
	held map[string]chan struct{}

	clean, dirty []string // what inventories say

	mu       sync.Mutex
	dirs     map[string]*directory
	sessions map[string]map[string]int // host: worker: open connections
	scripts  map[string]int            // host: scripts that run
	most     map[string]int            // host: most scripts at once
	crowd    map[string]int            // host: most connections at once, and scripts whose connection is gone
	orphans  map[string]int
	removals int
	wrong    []string
}

type directory struct {
	there, dirty, leaving bool
	removed               int
}

func memory(t testing.TB, took time.Duration) *hosts {
	folder, err := os.MkdirTemp("", "hosts")
	if err != nil {
		t.Fatal(err)
	}
	h := &hosts{TB: t, socket: folder + "/s", took: took, dirs: map[string]*directory{}, sessions: map[string]map[string]int{},
		scripts: map[string]int{}, most: map[string]int{}, crowd: map[string]int{}, orphans: map[string]int{},
		clean: recorded(t, "clean-pushed"), dirty: recorded(t, "ignored-file")}
	listener, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		os.RemoveAll(folder)
	})
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go h.serve(connection)
		}
	}()
	return h
}

// recorded is what a real host said about a scenario.
func recorded(t testing.TB, scenario string) []string {
	raw, err := os.ReadFile("../../fixtures/transcripts/" + scenario + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Body []string }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Body
}

// hello opens a connection; line asks for a script on it, line answers.
type hello struct{ Worker, Host, Dir string }
type line struct{ Script, Body string }

func (h *hosts) serve(connection net.Conn) {
	defer connection.Close()
	in, out := json.NewDecoder(connection), json.NewEncoder(connection)
	var who hello
	if in.Decode(&who) != nil {
		return
	}
	h.at(func() {
		if h.sessions[who.Host] == nil {
			h.sessions[who.Host] = map[string]int{}
		}
		h.sessions[who.Host][who.Worker]++
		h.count(who.Host)
	})
	asked := make(chan line)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			var l line
			if in.Decode(&l) != nil {
				return
			}
			asked <- l
		}
	}()
	open := true
	left := func() {
		if open {
			open = false
			h.sessions[who.Host][who.Worker]--
		}
	}
	defer h.at(left)
	for {
		select {
		case <-gone:
			return
		case l := <-asked:
			var body string
			h.at(func() {
				h.scripts[who.Host]++
				h.count(who.Host)
				if l.Script == "remove" {
					h.leave(who)
				}
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				time.Sleep(h.took) // the host's work
				for _, name := range []string{l.Script, who.Host + " " + l.Script} {
					if held := h.held[name]; held != nil {
						<-held
					}
				}
			}()
			select {
			case <-done:
			case <-gone:
				if l.Script == "remove" {
					h.at(func() { left(); h.orphans[who.Host]++; h.count(who.Host) })
					<-done
					h.at(func() { h.orphans[who.Host]-- })
				}
			}
			h.at(func() {
				h.scripts[who.Host]--
				body = h.answer(who, l)
			})
			if out.Encode(line{l.Script, body}) != nil {
				<-gone
			}
		}
	}
}

func (h *hosts) at(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

func (h *hosts) count(host string) {
	n := h.orphans[host]
	for _, open := range h.sessions[host] {
		n += open
	}
	h.crowd[host] = max(h.crowd[host], n)
	h.most[host] = max(h.most[host], h.scripts[host])
}

// leave is the rename with which a removal starts.
func (h *hosts) leave(who hello) {
	d := h.dirs[who.Host+who.Dir]
	switch {
	case d == nil:
		h.wrong = append(h.wrong, who.Dir+" is nobody's")
	case d.dirty:
		h.wrong = append(h.wrong, who.Dir+" holds work, and a removal came")
	case d.there && !d.leaving:
		d.leaving = true
	}
}

var aboutWhat = regexp.MustCompile(`(?m)^about='?([0-9a-f]{16})'?$`)

func (h *hosts) answer(who hello, l line) string {
	d := h.dirs[who.Host+who.Dir]
	presence, holder := "directory", "none"
	if d == nil || !d.there || d.leaving {
		presence = "absent"
	}
	if d != nil && d.leaving {
		holder = "alive"
	}
	switch l.Script {
	case "greet":
		return records("greet", "home =/home/dev", "root =/srv/k", "platform =Linux", "git =2.39.5",
			fmt.Sprint("clock ", time.Now().Unix()), "tasks directory", "target "+presence, "holder "+holder+" ~ ~")
	case "inventory":
		if d != nil && d.dirty {
			return strings.Join(h.dirty, "\n")
		}
		return strings.Join(h.clean, "\n")
	case "remove":
		about := "none"
		if m := aboutWhat.FindStringSubmatch(l.Body); m != nil {
			about = m[1]
		}
		if d == nil || !d.leaving {
			return records("remove", "about "+about, "ended target_absent ~")
		}
		d.there, d.leaving = false, false
		d.removed++
		h.removals++
		return records("remove", "about "+about, "rm 0", "freed 26214 79", "target absent", "holder absent", "ended gone ~")
	}
	h.wrong = append(h.wrong, "nobody should send "+l.Script)
	return ""
}

func records(name string, lines ...string) string {
	return fmt.Sprintf("reclaim 1 %s\n%s\nend %d\n", name, strings.Join(lines, "\n"), len(lines))
}

// dialer reaches the hosts from any process.
type dialer struct{ socket, worker string }

func (d dialer) Dial(ctx context.Context, target core.Target) (ports.Session, core.NeverRan) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	if err == nil {
		err = json.NewEncoder(connection).Encode(hello{d.worker, target.Host, target.TaskDir})
	}
	if err != nil {
		return nil, core.NeverRan{Fault: core.Unreachable, Detail: err.Error()}
	}
	return &session{connection: connection, in: json.NewDecoder(connection), out: json.NewEncoder(connection)}, core.NeverRan{}
}

type session struct {
	connection net.Conn
	in         *json.Decoder
	out        *json.Encoder
	trips      atomic.Int64
	mu         sync.Mutex
}

func (s *session) Trips() int   { return int(s.trips.Load()) }
func (s *session) Close() error { return s.connection.Close() }

func (s *session) Run(ctx context.Context, script core.Script) core.Reply {
	if ctx.Err() != nil {
		return core.Unclear{Doubt: core.ConnectionLost, Detail: ctx.Err().Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trips.Add(1)
	stop := context.AfterFunc(ctx, func() { s.connection.Close() })
	defer stop()
	err := s.out.Encode(line{script.Name, script.Body})
	var got line
	if err == nil {
		err = s.in.Decode(&got)
	}
	if err == nil && got.Script != script.Name {
		err = errors.New("it answers another script")
	}
	if err != nil {
		return core.Unclear{Doubt: core.ConnectionLost, Detail: err.Error()}
	}
	return core.Said{Body: got.Body}
}
