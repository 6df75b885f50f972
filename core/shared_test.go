package core

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// git clone of a path shares the object files by hard links. What another
// directory does to its own names of them is no change here; anything that
// could be work is one.
func TestObjectsSharedByHardLinksDoNotMakeADirectoryChanged(t *testing.T) {
	object := filepath.Join("src/objects/ab", "0123456789abcdef0123456789abcdef012345")
	for _, c := range []struct{ meanwhile, do, ends string }{
		{"another clone goes", `rm -rf "$TOP/other"`, "removed"},
		{"another clone comes", `git clone -q "$TOP/remote.git" "$TOP/third"`, "removed"},
		{"another clone uses an object again", `find "$TOP/other/.git/objects" -type f ! -path '*/info/*' ! -name multi-pack-index -exec touch -d '2 days ago' {} +`, "removed"},
		{"the remote is packed and pruned", `git -C "$TOP/remote.git" repack -q -a -d`, "removed"},
		{"an object is added", `printf new | git -C "$AT" hash-object -w --stdin`, "skipped probe_failed changed"},
		{"an object goes", `rm -f "$(find "$AT/.git/objects" -type f | sed 1q)"`, "skipped probe_failed changed"},
		{"an object is replaced by another file", `f=$(find "$AT/.git/objects" -type f | sed 1q); cp -p "$f" "$f.new"; mv -f "$f.new" "$f"`, "skipped probe_failed changed"},
		{"a file that is named like an object is written to", `printf B >"$AT/` + object + `"`, "skipped probe_failed changed"},
		{"what git derives from the objects is written to", `f=$AT/.git/objects/info/packs; tr P p <"$f" >"$f.new"; cat "$f.new" >"$f"; rm "$f.new"`, "skipped probe_failed changed"},
		{"the permission of one is changed", `chmod u+w "$(find "$AT/.git/objects" -type f | sed 1q)"`, "skipped probe_failed changed"},
	} {
		t.Run(c.meanwhile, func(t *testing.T) {
			t.Parallel()
			for _, bsd := range []bool{false, true} {
				p := newPlot(t)
				p.clear()
				p.give(1000)
				if bsd {
					p.bsd()
					p.give(1000)
				}
				p.env = append(p.env, "GIT_CONFIG_NOSYSTEM=1", "TOP="+p.top(), "AT="+p.at())
				p.run(Script{Name: "build", Body: `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
					git init -q --bare -b main "$TOP/remote.git"; git init -q -b main "$TOP/seed"; cd "$TOP/seed"; mkdir -p src/objects/ab; echo 1 >f
					printf A >` + object + `; git add .; git commit -qm 1; git push -q "$TOP/remote.git" main
					git -C "$TOP/remote.git" repack -q -d; git -C "$TOP/remote.git" commit-graph write --reachable; git -C "$TOP/remote.git" multi-pack-index write; echo 2 >f; git commit -qam 2; git push -q "$TOP/remote.git" main
					git clone -q "$TOP/remote.git" "$AT"; git clone -q "$TOP/remote.git" "$TOP/other"`})
				q := Inventory{Root: p.root, Segment: p.segment}
				evidence := q.Judge(p.run(q.Script()))
				if !evidence.Safe() {
					t.Fatalf("%+v", evidence.Findings)
				}
				p.run(Script{Name: "meanwhile", Body: c.do})
				out := p.remove(Remove{Root: p.root, Segment: p.segment, Manifest: evidence.Manifest, JobID: "j", Attempt: 1, NotAfter: time.Now().Unix() + 900})
				if got := verdict(out); got != c.ends {
					t.Errorf("without GNU's tools %v: %s, not %s: %+v", bsd, got, c.ends, out)
				}
				if there(p.at()) != (c.ends != "removed") || there(p.holder()) {
					t.Errorf("without GNU's tools %v: the directory is there: %v", bsd, there(p.at()))
				}
			}
		})
	}
}

// A removal that was interrupted is finished although somebody else used an
// object again meanwhile, and is not where there is a new one.
func TestAnInterruptedRemovalOfSharedObjectsIsFinished(t *testing.T) {
	object := ".git/objects/ab/0123456789abcdef0123456789abcdef012345"
	for _, shared := range []bool{true, false} {
		p := newPlot(t)
		p.make(p.at(), object)
		must(0, os.Chmod(p.at(object), 0o444))
		if shared {
			must(0, os.Link(p.at(object), filepath.Join(p.top(), "outside/object")))
		}
		p.give(1000)
		p.abandoned("plan", "x")
		time.Sleep(20 * time.Millisecond) // the grain of file times
		p.touch(p.holder("mark"))
		p.give(1000)
		time.Sleep(20 * time.Millisecond)
		later := time.Now().Add(time.Hour)
		must(0, os.Chtimes(p.holder("x", object), later, later))
		_, failed := p.settle(HolderCommitted)
		if (failed == nil) != shared {
			t.Errorf("shared %v: %+v", shared, failed)
		}
	}
}
