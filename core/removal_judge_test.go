package core

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

var recordedRemove = Remove{Root: "/home/dev/.kandev", Segment: "fix-login_ab12", JobID: "j", Attempt: 2, NotAfter: 9,
	Manifest: Manifest{Device: "65024", Inode: "77", Digest: "0a1b", Count: 12}}

func recordedAnswer() string {
	return "reclaim 1 remove\nabout " + about(recordedRemove) + "\nrm 0\nfreed 4096 12\ntarget absent\nholder absent\nended gone ~\nend 6\n"
}

func TestOnlyTheWholeAnswerToTheVeryQuestionIsARemoval(t *testing.T) {
	whole := recordedAnswer()
	if out, ok := recordedRemove.Judge(Said{Body: whole}).(Removed); !ok || out.Bytes != 4096 || out.Entries != 12 {
		t.Fatalf("%#v", recordedRemove.Judge(Said{Body: whole}))
	}
	never := func(q Remove, said Said) {
		t.Helper()
		if out, ok := q.Judge(said).(Failed); !ok {
			t.Errorf("%q: %#v", said.Body, out)
		}
	}
	for at := range whole {
		never(recordedRemove, Said{Body: whole[:at]})
		for b := range 256 {
			broken := []byte(whole)
			if broken[at] == byte(b) {
				continue
			}
			broken[at] = byte(b)
			if out, ok := recordedRemove.Judge(Said{Body: string(broken)}).(Removed); ok && out.Bytes == 4096 && out.Entries == 12 {
				t.Errorf("%q is a removal", broken)
			}
		}
	}
	lines := slices.Collect(strings.Lines(whole))
	rapid.Check(t, func(t *rapid.T) {
		mixed := rapid.SliceOfN(rapid.SampledFrom(lines), 0, 12).Draw(t, "lines")
		body := strings.Join(mixed, "")
		if out := recordedRemove.Judge(Said{Body: body}); body != whole {
			if _, ok := out.(Failed); !ok {
				t.Fatalf("%q: %#v", body, out)
			}
		}
	})
	for n := range lines {
		never(recordedRemove, Said{Body: strings.Join(slices.Delete(slices.Clone(lines), n, n+1), "")})
		never(recordedRemove, Said{Body: strings.Join(slices.Insert(slices.Clone(lines), n, lines[n]), "")})
	}
	never(recordedRemove, Said{Body: whole, Exit: 1})
	other := recordedRemove
	other.Attempt++
	never(other, Said{Body: whole})
	for old, new := range map[string]string{"rm 0": "rm 1", "target absent": "target directory", "holder absent": "holder unreadable", "gone": "done"} {
		never(recordedRemove, Said{Body: strings.Replace(whole, old, new, 1)})
	}
}

func TestNoMixOfRecordsMakesASettlementOfAnotherQuestion(t *testing.T) {
	q := Settle{Root: "/r", Segment: "s", Holder: HolderCommitted}
	whole := "reclaim 1 settle\nabout " + about(q) + "\ntarget absent\nsettled committed ~ 1024 3\nend 3\n"
	if s, failed := q.Judge(Said{Body: whole}); failed != nil || !s.Finished || s.Bytes != 1024 {
		t.Fatalf("%+v %v", s, failed)
	}
	for at := range whole {
		if _, failed := q.Judge(Said{Body: whole[:at]}); failed == nil {
			t.Errorf("%q is a settlement", whole[:at])
		}
	}
	lines := append(strings.SplitAfter(whole, "\n"), "settled quarantined ~ 0 0\n", "settled empty ~ 0 0\n", "target unreadable\n")
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 9).Draw(t, "lines"), "")
		if s, failed := q.Judge(Said{Body: body}); failed == nil && body != whole {
			t.Fatalf("%q: %+v", body, s)
		}
	})
}

func TestAGreetingThatContradictsItselfIsNone(t *testing.T) {
	q := Greet{Root: "~", TaskDir: "/h/tasks/s", Segment: "s"}
	const whole = "reclaim 1 greet\nhome =/h\nroot =/h\nplatform =Linux\ngit =2.39.5\nclock 1700000000\ntasks directory\ntarget absent\nholder none ~ ~\nend 8\n"
	if g, err := q.Judge(Said{Body: whole}); err != nil || g.Holder != NoHolder {
		t.Fatalf("%+v %v", g, err)
	}
	for at := range whole {
		if _, err := q.Judge(Said{Body: whole[:at]}); err == nil {
			t.Errorf("%q is a greeting", whole[:at])
		}
	}
	for _, edit := range [][2]string{
		{"home =/h", "home ~"}, {"root =/h", "root ~"}, {"root =/h", "root =h"}, {"platform =Linux", "platform ~"}, {"clock 1700000000", "clock 0"},
		{"tasks directory", "tasks absent"}, {"tasks directory", "tasks unseen"}, {"target absent", "target unseen"}, {"target absent", "target gone"},
		{"holder none ~ ~", "holder unseen ~ ~"}, {"holder none ~ ~", "holder contradictory ~ ~"}, {"holder none ~ ~", "holder none ~ =both"},
		{"target absent\nholder none", "target directory\nholder quarantined"}, {"holder none ~ ~", "holder none"}, {"holder none", "holder "},
	} {
		body := strings.Replace(whole, edit[0], edit[1], 1)
		if g, err := q.Judge(Said{Body: body}); err == nil {
			t.Errorf("%q: %+v", edit[1], g)
		}
	}
	if _, err := q.Judge(Said{Body: whole, Exit: 1}); err == nil {
		t.Error("a status that is not zero")
	}
}

func holderScripts() []Script {
	q := recordedRemove
	q.Manifest.Outside = []string{"/cache/it's.git"}
	q.Manifest.Registrations = []Registration{{"/cache/it's.git", "w", "/home/dev/.kandev/tasks/fix/.git"}}
	return []Script{
		Greet{Root: "~/it's", TaskDir: "/x", Segment: "s"}.Script(), Settle{Root: "/x", Segment: "it's", Holder: HolderCommitted}.Script(),
		q.Script(), recordedRemove.Script(), Progress{Root: "/x", Segment: "s"}.Script(),
	}
}

func TestTheScriptsOfARemovalArePOSIX(t *testing.T) {
	for _, s := range holderScripts() {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(s.Body), s.Name); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if len(s.Body) > 24<<10 || s.Limit == 0 {
			t.Errorf("%s: %d bytes, limit %v", s.Name, len(s.Body), s.Limit)
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(s.Body), 0o600); err != nil {
			t.Fatal(err)
		}
		// SC2015: A && B || C is meant. SC2034, SC2154, SC2317: shared by several scripts.
		// SC2086, SC2046: words are wanted. SC2088: a literal ~. SC2100: no arithmetic is meant.
		// SC3045: ulimit -c is everywhere, and optional. SC2016: it is awk's.
		if out, err := exec.Command("shellcheck", "-s", "sh", "-e", "SC2015,SC2034,SC2154,SC2317,SC2086,SC2046,SC2088,SC2100,SC3045,SC2012,SC2009,SC2329,SC2016", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", s.Name, out)
		}
	}
}

func TestAGreetingExpandsTheRootAndSeesWhatCanBeSeen(t *testing.T) {
	for _, c := range []struct {
		what   string
		q      func(p *plot) Greet
		tasks  Presence
		target Presence
		holder Holder
	}{
		{"slashes", func(p *plot) Greet {
			return Greet{Root: p.root + "//", TaskDir: p.root + "///tasks//" + p.segment + "/", Segment: p.segment}
		}, IsDirectory, IsDirectory, NoHolder},
		{"home", func(p *plot) Greet {
			must(0, os.Symlink(p.root, filepath.Join(p.top(), "home/k")))
			return Greet{Root: "~/k", TaskDir: filepath.Join(p.top(), "home/k/tasks", p.segment), Segment: p.segment}
		}, IsDirectory, IsDirectory, NoHolder},
		{"a path of another root", func(p *plot) Greet {
			return Greet{Root: p.root, TaskDir: "/elsewhere/tasks/" + p.segment, Segment: p.segment}
		}, IsDirectory, CannotSee, ""},
		{"a segment that is none", func(p *plot) Greet { return Greet{Root: p.root, TaskDir: p.tasks() + "/..", Segment: ".."} }, IsDirectory, CannotSee, ""},
		{"no root", func(p *plot) Greet {
			return Greet{Root: "/nowhere/at/all", TaskDir: "/nowhere/at/all/tasks/s", Segment: "s"}
		}, Absent, CannotSee, ""},
		{"no tasks", func(p *plot) Greet {
			r := filepath.Join(p.top(), "outside")
			return Greet{Root: r, TaskDir: r + "/tasks/s", Segment: "s"}
		}, Absent, CannotSee, ""},
		{"tasks is a link", func(p *plot) Greet {
			p.rename(p.tasks(), p.tasks()+"2")
			must(0, os.Symlink("tasks2", p.tasks()))
			return Greet{Root: p.root, TaskDir: p.at(), Segment: p.segment}
		}, IsSymlink, CannotSee, ""},
		{"a root nobody may search", func(p *plot) Greet {
			must(0, os.Chmod(p.root, 0))
			return Greet{Root: p.root, TaskDir: p.at(), Segment: p.segment}
		}, CannotSee, CannotSee, ""},
		{"a target that is a link to nothing", func(p *plot) Greet {
			p.rename(p.at(), p.at()+"2")
			must(0, os.Symlink("nothing", p.at()))
			return Greet{Root: p.root, TaskDir: p.at(), Segment: p.segment}
		}, IsDirectory, IsSymlink, NoHolder},
		{"a holder nobody may search", func(p *plot) Greet {
			p.mkdir(p.holder())
			must(0, os.Chmod(p.holder(), 0))
			return Greet{Root: p.root, TaskDir: p.at(), Segment: p.segment}
		}, IsDirectory, IsDirectory, HolderContradictory},
		{"tasks that may be searched and not read", func(p *plot) Greet {
			must(0, os.Chmod(p.tasks(), 0o311))
			return Greet{Root: p.root, TaskDir: p.at(), Segment: p.segment}
		}, CannotSee, CannotSee, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, shell := range shells {
				p := newPlot(t)
				p.shell = shell
				p.give(1000)
				q := c.q(p)
				p.give(1000)
				said := p.run(q.Script())
				g, err := q.Judge(said)
				if err != nil {
					t.Fatalf("%v: %v\n%s", shell, err, said.Body)
				}
				if g.Tasks != c.tasks || g.Target != c.target || g.Holder != c.holder {
					t.Errorf("%v: %+v", shell, g)
				}
			}
		})
	}
}
