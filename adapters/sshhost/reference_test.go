package sshhost_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kandev/reclaim/adapters/sshhost"
	"github.com/kandev/reclaim/adapters/sshhost/sshdtest"
	"github.com/kandev/reclaim/adapters/sshhost/sshtest"
	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

// yard is an account with task directories of n pushed checkouts, each of
// twenty files, reached through a relay.
type yard struct {
	server  *sshdtest.Server
	account sshdtest.Account
	relay   *sshtest.Relay
	target  core.Target
	local   ports.Session // without the relay, to make directories
	root    string
	made    int
}

func newYard(t testing.TB) *yard {
	server := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519"}, Config: "LogLevel INFO"}) // its log is kept in memory
	account := sshdtest.NewAccount(t, "/bin/bash", nil)
	y := &yard{server: server, account: account, relay: relayTo(t, server.Port), target: server.TargetOf(account.Name), root: account.Home + "/.kandev"}
	y.local = dial(t, sshhost.New(sshhost.Options{}), y.target)
	y.target.Port = y.relay.Port
	return y
}

// direct is the target without the relay.
func (y *yard) direct() core.Target {
	target := y.target
	target.Port = y.server.Port
	return target
}

func (y *yard) sh(t testing.TB, body string) string {
	t.Helper()
	said, is := y.local.Run(t.Context(), core.Script{Name: "setup", Body: "set -e\n" + body, Limit: time.Minute}).(core.Said)
	if !is || said.Exit != 0 {
		t.Fatalf("%s: %+v", body, said)
	}
	return said.Body
}

// template makes the directory that task directories of n checkouts are copies
// of: a checkout and, directly below it, the others.
func (y *yard) template(t testing.TB, n int) {
	y.sh(t, fmt.Sprintf(`
cd; mkdir -p origins .kandev/tasks; rm -rf template
git config --global user.email a@b; git config --global user.name a; git config --global init.defaultBranch main
i=0; while [ $i -lt %d ]; do
	test -d origins/$i.git || {
		git init -q work; cd work
		j=0; while [ $j -lt 20 ]; do echo "line $j of $i" >file$j; j=$((j+1)); done
		git add .; git commit -qm first; cd ..
		git clone -q --bare work origins/$i.git; rm -rf work
	}
	case $i in
	0) git clone -q origins/0.git template; mkdir template/.kandev; echo /.kandev/ >>template/.git/info/exclude ;;
	*) git clone -q "$HOME/origins/$i.git" template/repo$i ;;
	esac
	i=$((i+1))
done`, n))
}

// task makes one more task directory.
func (y *yard) task(t testing.TB) string {
	y.made++
	segment := fmt.Sprint("task-", y.made)
	y.sh(t, "cp -a template .kandev/tasks/"+segment)
	return segment
}

// reference is what is compared with: separate commands under a login shell,
// each in a session of its own on one connection.
type reference struct{ client *ssh.Client }

func newReference(t testing.TB, y *yard) *reference {
	raw, err := os.ReadFile(y.target.IdentityFile)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(y.target.Host, strconv.Itoa(y.target.Port)), &ssh.ClientConfig{
		User: y.target.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return &reference{client}
}

func (r *reference) run(t testing.TB, command string) string {
	session, err := r.client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.Output("bash -lc " + quote(command))
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// reclaim is the whole sequence; the verdict is not the point here.
func (r *reference) reclaim(t testing.TB, dir string) {
	r.run(t, `printf %s "$HOME"`)
	found := r.run(t, "find "+dir+" -maxdepth 2 -name .git")
	for _, git := range strings.Fields(found) {
		checkout := filepath.Dir(git)
		r.run(t, "git -C "+checkout+" rev-parse --is-inside-work-tree")
		r.run(t, "git -C "+checkout+" status --porcelain --untracked-files=all --ignored")
		r.run(t, "git -C "+checkout+" stash list")
		r.run(t, "git -C "+checkout+" rev-list --count HEAD --branches --not --remotes")
	}
	r.run(t, "rm -rf "+dir)
	r.run(t, "test -e "+dir+" || echo gone")
}

// reclaim is ours: the inventory and the removal, on a greeted connection.
func (y *yard) reclaim(t testing.TB, session ports.Session, segment string) (inventory, removal time.Duration) {
	begin := time.Now()
	question := core.Inventory{Root: y.root, Segment: segment}
	said, is := session.Run(t.Context(), question.Script()).(core.Said)
	inventory = time.Since(begin)
	if !is {
		t.Fatalf("%+v", said)
	}
	evidence := question.Judge(said)
	if !evidence.Safe() {
		t.Fatalf("%+v", evidence.Findings)
	}
	begin = time.Now()
	remove := core.Remove{Root: y.root, Segment: segment, Manifest: evidence.Manifest, JobID: "job-1", Attempt: 1, NotAfter: time.Now().Unix() + 900}
	reply := session.Run(t.Context(), remove.Script())
	removal = time.Since(begin)
	said, is = reply.(core.Said)
	if !is {
		t.Fatalf("%+v", reply)
	}
	if removed, is := remove.Judge(said).(core.Removed); !is {
		t.Fatalf("%+v: %+v", removed, remove.Judge(said))
	}
	return inventory, removal
}

func (y *yard) greet(t testing.TB, session ports.Session, segment string) {
	question := core.Greet{Root: "~/.kandev", TaskDir: y.root + "/tasks/" + segment, Segment: segment}
	reply := session.Run(t.Context(), question.Script())
	said, is := reply.(core.Said)
	if !is {
		t.Fatalf("%+v", reply)
	}
	if greeting, err := question.Judge(said); err != nil || greeting.Target != core.IsDirectory {
		t.Fatalf("%+v %v", greeting, err)
	}
}

// Seven round trips connect, one of them TCP's own, two greet, four are a
// target's, whatever it holds: a target is two scripts, and a script costs one
// round trip, or two where its channel was not open yet. A busy machine takes one
// round trip for two and never two for one: the fewest of some connections count.
func TestRoundTripsAreFewAndDoNotGrowWithTheCheckouts(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for _, n := range []int{1, 6} {
		y.template(t, n)
		connects, greets, reclaims := 99, 99, 99
		for tries := 0; tries < 8 && (connects > 7-1 || greets > 2 || reclaims > 4); tries++ {
			segment := y.task(t)
			y.relay.SetRoundTrip(200 * time.Millisecond)
			before := y.relay.Trips()
			since := func() (trips int) {
				trips, before = y.relay.Trips()-before, y.relay.Trips()
				return trips
			}
			session := dial(t, sshhost.New(sshhost.Options{}), y.target)
			connects = min(connects, since())
			y.greet(t, session, segment)
			greets = min(greets, since())
			scripts := session.Trips()
			y.reclaim(t, session, segment)
			reclaims = min(reclaims, since())
			if scripts = session.Trips() - scripts; scripts != 2 {
				t.Errorf("%d checkouts: %d scripts", n, scripts)
			}
			session.Close()
		}
		t.Logf("%d checkouts: %d round trips connect, %d greet, %d are the target's", n, connects, greets, reclaims)
		if connects > 7-1 || greets > 2 || reclaims > 4 || connects < 1 || greets < 1 || reclaims < 1 {
			t.Errorf("%d checkouts: %d round trips connect, %d greet, %d are the target's; at most 6, 2 and 4", n, connects, greets, reclaims)
		}
	}
}

// BenchmarkAgainstReference compares the reference sequence with ours, side by
// side: a reused, greeted connection each, through a relay that delays. One
// operation is one directory reclaimed by either.
//
// On two idle cores we were 4.6, 9.7 and 19 times as fast at 100 ms for 1, 4 and 16
// checkouts, and 0.67 to 0.70, 1.2 and 1.8 to 2.1 times at none. What keeps one checkout
// from 0.77 at none are the programs of the two scripts: 18 look (64 to 87 ms), 19
// remove (83 to 96 ms), two of which look at every process of the host (13 ms of
// processor time each).
func BenchmarkAgainstReference(b *testing.B) {
	y := newYard(b)
	for _, n := range []int{1, 4, 16} {
		y.relay.SetRoundTrip(0)
		y.template(b, n)
		for _, trip := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
			b.Run(fmt.Sprintf("checkouts=%d/rtt=%s", n, trip), func(b *testing.B) {
				y.relay.SetRoundTrip(trip)
				theirs := newReference(b, y)
				ours := dial(b, sshhost.New(sshhost.Options{}), y.target)
				y.greet(b, ours, y.task(b))
				var reference, inventory, removal time.Duration
				for b.Loop() {
					b.StopTimer()
					one, other := y.task(b), y.task(b)
					b.StartTimer()
					begin := time.Now()
					theirs.reclaim(b, y.root+"/tasks/"+one)
					reference += time.Since(begin)
					i, r := y.reclaim(b, ours, other)
					inventory += i
					removal += r
				}
				each := func(d time.Duration) float64 { return float64(d.Milliseconds()) / float64(b.N) }
				b.ReportMetric(each(reference), "ref-ms")
				b.ReportMetric(each(inventory), "inventory-ms")
				b.ReportMetric(each(removal), "removal-ms")
				b.ReportMetric(float64(reference)/float64(inventory+removal), "x")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
