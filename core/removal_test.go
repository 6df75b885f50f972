package core

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plot is a workdir root in a directory of its own, with a target, a sibling
// and a directory outside.
type plot struct {
	t       *testing.T
	root    string
	segment string
	shell   []string
	env     []string
	edit    func(string) string // the host's last change to a script
	uid     int
}

const plotted = "fix-login_ab12"

func newPlot(t *testing.T) *plot {
	t.Helper()
	top, err := os.MkdirTemp("", "plot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwx", top).Run()
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	p := &plot{t: t, root: filepath.Join(top, "root"), segment: plotted, shell: []string{"dash"}}
	p.make(p.tasks(), "sibling/kept", "sibling/hard")
	p.make(top, "outside/shared", "home/x")
	p.target()
	return p
}

func (p *plot) top() string   { return filepath.Dir(p.root) }
func (p *plot) tasks() string { return filepath.Join(p.root, "tasks") }
func (p *plot) at(name ...string) string {
	return filepath.Join(append([]string{p.tasks(), p.segment}, name...)...)
}
func (p *plot) holder(name ...string) string {
	return filepath.Join(append([]string{p.tasks(), holderName(p.segment)}, name...)...)
}

func (p *plot) make(dir string, names ...string) {
	p.t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name+"\n"), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

// target fills the target: odd names, a link to a directory outside, hard links
// to files outside, closed directories.
func (p *plot) target() {
	p.t.Helper()
	p.make(p.at(), "a", "d/e/f", "-rf", "d/new\nline", "d/\xff\x01*?[", "closed/in/file", "d/hard")
	for link, to := range map[string]string{"d/link": filepath.Join(p.top(), "outside"), "d/dangling": "nowhere"} {
		if err := os.Symlink(to, p.at(link)); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, name := range []string{"linked", "closed/in/linked"} { // the second where a chmod of files would be wanted
		if err := os.Link(filepath.Join(p.tasks(), "sibling/hard"), p.at(name)); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := os.Chmod(p.at("closed/in"), 0o555); err != nil {
		p.t.Fatal(err)
	}
}

// run runs a script as a host does and returns what it said.
func (p *plot) run(s Script, more ...string) Said {
	p.t.Helper()
	said, err := p.start(s, more...)()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", s.Name, err, said.Body)
	}
	return said
}

func (p *plot) start(s Script, more ...string) func() (Said, error) {
	cmd, out, errs := p.command(s, more...)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return func() (Said, error) {
		err := cmd.Wait()
		if errs.Len() > 0 {
			p.t.Logf("%s: %s", s.Name, errs)
		}
		return Said{Body: out.String(), Exit: cmd.ProcessState.ExitCode()}, err
	}
}

func (p *plot) command(s Script, more ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	body := s.Body
	if p.edit != nil {
		body = p.edit(body)
	}
	cmd := exec.Command(p.shell[0], append(append([]string{}, p.shell[1:]...), "-c", body, "reclaim")...)
	cmd.Dir = "/"
	cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(p.top(), "home")}, p.env...), more...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid)}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return cmd, &out, &errs
}

// give makes everything in the plot the property of an ordinary user, as whom
// the scripts then run.
func (p *plot) give(uid int) {
	p.t.Helper()
	if err := filepath.WalkDir(p.top(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid == uint32(uid) {
			return err // a change of owner would change ctime
		}
		return os.Lchown(path, uid, uid)
	}); err != nil {
		p.t.Fatal(err)
	}
	p.uid = uid
}

func (p *plot) inspect(outside ...string) Manifest {
	p.t.Helper()
	body := preludeShell + manifestShell + "speak\nidentity " + quote(p.at()) + "\nset -- $identity\nopening m\nmanifest " + quote(p.at())
	for _, o := range outside {
		body += " " + quote(o)
	}
	body += "\nrecord m \"$1\" \"$2\" \"$digest\" \"$count\" \"$walked\"\nclosing\n"
	said := p.run(Script{Name: "m", Body: body})
	records, err := parseRecords("m", said.Body)
	if err != nil || len(records) != 1 || records[0].fields[4] != "0" {
		p.t.Fatalf("%v %q", err, said.Body)
	}
	f := records[0].fields
	count, _ := number(f[3])
	return Manifest{Device: f[0], Inode: f[1], Digest: f[2], Count: count, Outside: outside}
}

func (p *plot) question() Remove {
	p.t.Helper()
	return Remove{Root: p.root, Segment: p.segment, Manifest: p.inspect(), JobID: "job-1", Attempt: 1, NotAfter: time.Now().Unix() + 900}
}

func (p *plot) remove(q Remove) Outcome { p.t.Helper(); return q.Judge(p.run(q.Script())) }

func (p *plot) greet() Greeting {
	p.t.Helper()
	q := Greet{Root: p.root, TaskDir: p.at(), Segment: p.segment}
	said := p.run(q.Script())
	g, err := q.Judge(said)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, said.Body)
	}
	return g
}

func (p *plot) settle(h Holder) (Settlement, *Failed) {
	p.t.Helper()
	q := Settle{Root: p.root, Segment: p.segment, Holder: h}
	return q.Judge(p.run(q.Script()))
}

// elsewhere tells everything under the plot but the target and its holder:
// path, inode, mode, owner, links, size, times, content.
func (p *plot) elsewhere() string { return p.told(p.at(), p.holder()) }

func (p *plot) told(but ...string) string {
	p.t.Helper()
	var lines []string
	err := filepath.WalkDir(p.top(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, b := range but {
			if path == b {
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		content := ""
		if d.Type() == 0 {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		times := fmt.Sprint(st.Mtim, st.Ctim)
		if path == p.tasks() {
			times = "" // names come and go in it
		}
		links := st.Nlink
		if d.IsDir() {
			links = 0
		}
		if strings.HasSuffix(path, "/sibling/hard") {
			// Its other name goes; that alone changes links and ctime.
			links, times = 0, fmt.Sprint(st.Mtim)
		}
		lines = append(lines, fmt.Sprintf("%q %d %v %d %d %d %s %q", path, st.Ino, info.Mode(), st.Uid, links, info.Size(), times, content))
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// bytes is what removing the target frees: its files that have no other name.
func (p *plot) bytes() (sum int64) {
	p.t.Helper()
	err := filepath.WalkDir(p.at(), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Nlink == 1 {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return sum
}

// differ is what changed between two tellings.
func differ(before, after string) string {
	return cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n"))
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

var shells = [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"mksh"}, {"zsh", "--emulate", "sh"}}

func TestAC_001_1_EveryShellRemovesTheTargetAndNothingElse(t *testing.T) {
	boxes := toolboxes(t)
	for n, shell := range shells {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			p := newPlot(t)
			p.give(1000)
			p.shell = shell
			p.env = append(p.env, "PATH="+boxes[awks[n%len(awks)]]+os.Getenv("PATH"))
			before := p.elsewhere()
			if g := p.greet(); g.Target != IsDirectory || g.Holder != NoHolder || g.Tasks != IsDirectory || g.Root != p.root || g.Platform != "Linux" || g.Git == "" {
				t.Fatalf("%+v", g)
			}
			q, bytes := p.question(), p.bytes()
			out, ok := p.remove(q).(Removed)
			if !ok || out.Entries != q.Manifest.Count || out.Bytes != bytes {
				t.Fatalf("%#v, %d entries, %d bytes", out, q.Manifest.Count, bytes)
			}
			if there(p.at()) || there(p.holder()) {
				t.Error("a name is left")
			}
			if after := p.elsewhere(); after != before {
				t.Errorf("elsewhere:\n%s", differ(before, after))
			}
			if g := p.greet(); g.Target != Absent || g.Holder != NoHolder {
				t.Errorf("%+v", g)
			}
		})
	}
}
