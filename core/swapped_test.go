package core

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// While a removal runs, and stands still before one of its commands, somebody
// puts something else in the place of the target, of the directory of the tasks
// or of the holder. Nothing of what was put there goes; what was
// inspected is whole, wherever it was taken, or wholly gone; and removed is said
// only when it is gone.
func TestWhatIsPutInTheWayOfARunningRemovalIsUntouched(t *testing.T) {
	decoy := func(p *plot) string { return filepath.Join(p.top(), "decoy") }
	swaps := map[string]func(p *plot){
		"the target by a link": func(p *plot) {
			p.aside(p.at())
			must(0, os.Symlink(filepath.Join(decoy(p), p.segment), p.at()))
		},
		"the target by a directory": func(p *plot) {
			p.aside(p.at())
			must(0, os.Rename(filepath.Join(decoy(p), p.segment), p.at()))
		},
		"the tasks by a link": func(p *plot) {
			p.aside(p.tasks())
			must(0, os.Symlink(decoy(p), p.tasks()))
		},
		"the tasks by a directory": func(p *plot) {
			p.aside(p.tasks())
			must(0, os.Rename(decoy(p), p.tasks()))
		},
		"the root by a link": func(p *plot) {
			must(0, os.Mkdir(decoy(p)+".root", 0o755))
			must(0, os.Rename(decoy(p), decoy(p)+".root/tasks"))
			p.aside(p.root)
			must(0, os.Symlink(decoy(p)+".root", p.root))
		},
		"the holder by a link": func(p *plot) {
			p.aside(p.holder())
			must(0, os.Symlink(filepath.Join(decoy(p), p.segment), p.holder()))
		},
		"the quarantined directory by a link": func(p *plot) {
			p.aside(p.holder("q"))
			must(0, os.Symlink(filepath.Join(decoy(p), p.segment), p.holder("q")))
		},
		"the quarantined directory by another": func(p *plot) {
			p.aside(p.holder("q"))
			must(0, os.Rename(filepath.Join(decoy(p), p.segment), p.holder("q")))
		},
	}
	for what, swap := range swaps {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ends, swapped := map[string]int{}, 0
			for stop, stride := 1, 1; ; stop += stride {
				p := newPlot(t)
				p.make(decoy(p), p.segment+"/a", p.segment+"/d/e/f", "sibling/kept")
				stops := p.tools(`echo >"$ASK"; read -r go <"$GATE"`, "", strings.Fields(gated)...)
				p.give(1000)
				for _, dir := range []string{p.root, p.top()} {
					must(0, os.Chmod(dir, 0o755))
				}
				original := inode(t, p.at())
				there0 := entries(t, decoy(p))
				q := p.question()
				s := p.step(1, q, q.Script(), stops)
				goes := s.rest()
				for n := 1; goes && n < stop; n++ {
					goes = s.next()
				}
				if !goes {
					break // it had ended before that stop
				}
				func() {
					defer func() { _ = recover() }() // there is nothing yet, or no more, to put aside
					swap(p)
					swapped++
					stride = inLong(1, 7) // until then every stop is tried
				}()
				for goes {
					goes = s.next()
				}
				out := q.Judge(*s.said)
				ends[verdict(out)]++
				found := ""
				all, wanted := map[string]uint64{}, map[string]bool{}
				must(0, filepath.WalkDir(p.top(), func(path string, d os.DirEntry, err error) error {
					if err != nil {
						return err
					}
					ino := inode(t, path)
					all[path] = ino
					if ino == original && d.IsDir() {
						found = path
					}
					return nil
				}))
				for _, ino := range all {
					wanted[fmt.Sprint(ino)] = true
				}
				for name, ino := range there0 {
					if !wanted[fmt.Sprint(ino)] {
						t.Errorf("stop %d: %s: what was put there has lost %s", stop, verdict(out), name)
					}
				}
				_, removed := out.(Removed)
				switch {
				case found != "" && removed:
					t.Errorf("stop %d: said to be removed, and is in %s", stop, found)
				case found != "" && !strings.HasSuffix(found, "/x"):
					for _, name := range []string{"a", "d/e/f", "-rf", "closed/in/file", "d/link"} {
						if !there(filepath.Join(found, name)) {
							t.Errorf("stop %d: %s: %s has lost %s", stop, verdict(out), found, name)
						}
					}
				}
			}
			t.Log(swapped, ends)
			if swapped == 0 {
				t.Error("nothing was put in the way")
			}
		})
	}
}

// aside moves something out of the way.
func (p *plot) aside(path string) {
	if err := os.Rename(path, filepath.Join(p.top(), "aside")); err != nil {
		panic(err)
	}
}

// entries are the inodes of everything below a directory.
func entries(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			all[path] = inode(t, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
