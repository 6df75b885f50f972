package taskpath_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/kandev/reclaim/core/taskpath"
	"pgregory.net/rapid"
)

type row struct{ Name, Root, Home, Dir, Want string }

func rows(t testing.TB) []row {
	raw, err := os.ReadFile("../../fixtures/paths/paths.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 40 {
		t.Fatalf("only %d rows were read", len(rows))
	}
	return rows
}

func parse(root, home, dir string) (taskpath.Dir, error) {
	r, err := taskpath.ParseRoot(root, home)
	if err != nil {
		return taskpath.Dir{}, err
	}
	return taskpath.Parse(r, dir)
}

func TestAC_003_4_AC_D16_AC_D30_TheTableOfPaths(t *testing.T) {
	for _, row := range rows(t) {
		t.Run(row.Name, func(t *testing.T) {
			dir, err := parse(row.Root, row.Home, row.Dir)
			switch row.Want {
			case "refused":
				if !errors.Is(err, taskpath.ErrRefused) || errors.Is(err, taskpath.ErrNeedsHome) {
					t.Errorf("got %q, %v; want it refused", dir, err)
				}
			case "needs home":
				if !errors.Is(err, taskpath.ErrNeedsHome) {
					t.Errorf("got %q, %v; want it to need the home directory", dir, err)
				}
			default:
				if err != nil || dir.String() != row.Want {
					t.Errorf("got %q, %v; want %q", dir, err, row.Want)
				}
			}
		})
	}
}

func TestARefusalSaysWhichPartOfThePathIsWrong(t *testing.T) {
	for _, c := range []struct {
		root, home, dir string
		part            error
		says            string
	}{
		{"", "", "", nil, "path refused: the root starts with ~"},
		{"relative", "/home/u", "/x/tasks/a", taskpath.ErrRoot, `path refused: the workdir root "relative" is not absolute`},
		{"/", "/home/u", "/tasks/a", taskpath.ErrRoot, "path refused: the workdir root is / itself"},
		{"/srv/k", "/home/u", "/srv/other/tasks/a", taskpath.ErrPlace, `path refused: the task directory "/srv/other/tasks/a" is not below "/srv/k/tasks/"`},
		{"/srv/k", "/home/u", "/srv/k/tasks/.reclaim-x", taskpath.ErrName, `path refused: the segment ".reclaim-x" is a name removals use`},
	} {
		_, err := parse(c.root, c.home, c.dir)
		if err == nil || !strings.HasPrefix(err.Error(), c.says) || !errors.Is(err, taskpath.ErrRefused) {
			t.Errorf("%q %q: %v", c.root, c.dir, err)
		}
		for _, part := range []error{taskpath.ErrRoot, taskpath.ErrPlace, taskpath.ErrName} {
			if errors.Is(err, part) != (part == c.part) {
				t.Errorf("%q %q: %v is %v", c.root, c.dir, err, part)
			}
		}
	}
}

func TestADirectorysPartsAreWhatWasParsed(t *testing.T) {
	root, err := taskpath.ParseRoot("~//k/", "/home//dev/")
	if err != nil || root.String() != "/home/dev/k" {
		t.Fatalf("%q %v", root, err)
	}
	dir, err := taskpath.Parse(root, "/home/dev//k/tasks/x/")
	if err != nil || dir.Root() != "/home/dev/k" || dir.Segment() != "x" || dir.String() != "/home/dev/k/tasks/x" {
		t.Errorf("%q %v", dir, err)
	}
	for path, want := range map[string]string{"/a/tasks/x": "x", "/tasks/x/": "x", "tasks/x": "", "": "", "/x": "", "/a/b": "", "/tasks/.reclaim-1": "", "/tasks/" + strings.Repeat("x", 255): strings.Repeat("x", 255),
		"/tasks/" + strings.Repeat("x", 256): "", strings.Repeat("/a", 1997) + "/tasks/x": "", strings.Repeat("/", 3992) + "/tasks/x": "x", strings.Repeat("/", 3993) + "/tasks/x": "", "/tasks/a\x7fb": ""} {
		got, err := taskpath.LastSegment(path)
		if (err == nil) != (want != "") || err == nil && got != want || err != nil && !errors.Is(err, taskpath.ErrRefused) {
			t.Errorf("%.40q: %q %v", path, got, err)
		}
	}
}

func TestASegmentIsOneNameOfATasksOwn(t *testing.T) {
	for name, ok := range map[string]bool{"x": true, "a..b": true, "...": true, ".reclaim": true, strings.Repeat("x", 255): true, "": false, ".": false, "..": false, "a/b": false, "/": false,
		".reclaim-": false, ".reclaim-x": false, strings.Repeat("x", 256): false, "a\nb": false, "a\x1f": false, "\x7f": false, "a b": true, "\x80": true} {
		if err := taskpath.Segment(name); (err == nil) != ok || err != nil && !errors.Is(err, taskpath.ErrRefused) {
			t.Errorf("%.40q: %v", name, err)
		}
	}
}

func TestTheZeroRootHoldsNoDirectory(t *testing.T) {
	if dir, err := taskpath.Parse(taskpath.Root{}, "/tasks/a"); err == nil {
		t.Errorf("got %q", dir)
	}
}

// A second opinion, deliberately dumb: squeeze the slashes with a loop, compare
// whole strings.
func dumb(root, home, dir string) string {
	squeeze := func(s string) string {
		for strings.Contains(s, "//") {
			s = strings.ReplaceAll(s, "//", "/")
		}
		if len(s) > 1 {
			s = strings.TrimSuffix(s, "/")
		}
		return s
	}
	if strings.TrimSpace(root) == "" {
		root = "~/.kandev"
	}
	if root == "~" {
		root = home
	} else if strings.HasPrefix(root, "~/") {
		root = home + root[1:]
	}
	root, home, dir = squeeze(root), squeeze(home), squeeze(dir)
	if root == home || root+"/tasks" == home || root == "/" || !strings.HasPrefix(root, "/") {
		return ""
	}
	segment := strings.TrimPrefix(dir, root+"/tasks/")
	if root+"/tasks/"+segment != dir || segment == "" || len(segment) > 255 || strings.HasPrefix(segment, ".reclaim-") || strings.Contains(segment, "/") {
		return ""
	}
	if home == dir || strings.HasPrefix(home, dir+"/") {
		return ""
	}
	for _, s := range []string{root, dir} {
		for _, name := range strings.Split(s, "/") {
			if name == "." || name == ".." {
				return ""
			}
		}
		for _, b := range []byte(s) {
			if b < 32 || b == 127 {
				return ""
			}
		}
	}
	return dir
}

func TestParseAgreesWithADumbSecondOpinion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "tasks", "tasks", ".", "..", "", "/", "//", "~", ".reclaim-x", "home", "u", "A", "\n", " ", "a.", "x"})
		path := func(label string) string { return strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, label), "/") }
		home := "/home/u"
		root := rapid.SampledFrom([]string{"/srv/k", "~/.kandev", "", "/home/u", "~", "/", "/home"}).Draw(t, "root")
		if rapid.Bool().Draw(t, "odd root") {
			root = "/" + path("root")
		}
		expanded := root
		if strings.HasPrefix(root, "~") {
			expanded = home + root[1:]
		}
		dir := expanded + "/tasks/" + path("dir")
		if rapid.Bool().Draw(t, "odd dir") {
			dir = "/" + path("dir")
		}
		got, err := parse(root, home, dir)
		want := dumb(root, home, dir)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Fatalf("root %q dir %q: got %q, %v; want %q", root, dir, got, err, want)
		}
		if err != nil {
			return
		}
		// Whatever is accepted is exactly three parts, and is accepted again.
		if again, err := parse(got.Root(), home, got.String()); err != nil || again != got {
			t.Fatalf("%q is not accepted again: %v", got, err)
		}
		if last, err := taskpath.LastSegment(dir); err != nil || last != got.Segment() {
			t.Fatalf("last segment %q, %v; want %q", last, err, got.Segment())
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, row := range rows(f) {
		f.Add(row.Root, row.Home, row.Dir)
	}
	f.Fuzz(func(t *testing.T, root, home, dir string) {
		got, err := parse(root, home, dir)
		if err != nil {
			if !errors.Is(err, taskpath.ErrRefused) {
				t.Errorf("an error that is not a refusal: %v", err)
			}
			return
		}
		path := got.String()
		if path != got.Root()+"/tasks/"+got.Segment() || strings.Contains(path, "//") || strings.Contains(got.Segment(), "/") ||
			strings.Contains(path+"/", "/../") || strings.Contains(path+"/", "/./") || got.Root() == "/" {
			t.Errorf("accepted %q", path)
		}
	})
}
