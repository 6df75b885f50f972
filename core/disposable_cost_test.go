package core

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkBuildOutput is what the evidence about a node_modules of 50,000 entries
// costs beside the inventory without it, interleaved on the same directory.
func BenchmarkBuildOutput(b *testing.B) {
	const bound = 1.3
	root := openTemp(b, "")
	build := fmt.Sprintf(`set -e; cd %s; mkdir tasks home; export HOME=%[1]s/home GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q --bare r.git; git init -q s; cd s; echo node_modules/ >.gitignore; echo '{}' >package.json; for i in 1 2 3 4 5 6 7 8 9; do echo $i >f$i; done
git add -A; git commit -qm x; git push -q ../r.git HEAD:main; cd ..; rm -rf s; git clone -q -b main r.git tasks/task-7; cd tasks/task-7
awk 'BEGIN { for (i = 0; i < 1000; i++) { print "node_modules/p" i "/lib/a"; print "node_modules/p" i "/dist" } }' | xargs mkdir -p
awk 'BEGIN { for (i = 0; i < 1000; i++) { print "{}" > ("node_modules/p" i "/package.json"); close("node_modules/p" i "/package.json")
	for (k = 0; k < 45; k++) { f = "node_modules/p" i "/" (k %% 3 ? "lib/a" : "dist") "/f" k ".js"; print i, k > f; close(f) } } }'
echo '{}' >node_modules/.package-lock.json`, quote(root))
	if out, err := asPerson(exec.Command("sh", "-c", build)).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	run := func(q Inventory) (time.Duration, Evidence) {
		cmd := asPerson(exec.Command("/bin/sh", "-c", q.Script().Body))
		cmd.Env = []string{"PATH=" + hostPath, "HOME=" + root + "/home"}
		cmd.Dir = "/"
		start := time.Now()
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(start), q.Judge(Said{Body: string(out)})
	}
	plain := Inventory{Root: root, Segment: "task-7"}
	asking := plain
	asking.Disposable = "node"
	var with, without []time.Duration
	for range max(b.N, 9) {
		took, e := run(plain)
		without = append(without, took)
		if e.Safe() {
			b.Fatal("an ignored node_modules is safe without the setting")
		}
		took, e = run(asking)
		with = append(with, took)
		if !e.Safe() || len(e.Excused) != 1 || e.Excused[0].Entries < 48_000 {
			b.Fatalf("%+v", e)
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	ratio := float64(with[len(with)/2]) / float64(without[len(without)/2])
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(float64(with[0])/float64(without[0]), "best-ratio")
	b.ReportMetric(float64(with[len(with)/2].Milliseconds()), "with-ms")
	b.ReportMetric(float64(without[len(without)/2].Milliseconds()), "without-ms")
	b.ReportMetric(bound, "wanted")
}
