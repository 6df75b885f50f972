// Package taskpath is the path-shape barrier in Go: the only way to hold the
// name of a directory that may be removed is to have parsed it.
//
//	root, err := taskpath.ParseRoot("~/.kandev", "/home/dev")
//	dir, err := taskpath.Parse(root, "/home/dev/.kandev/tasks/fix-login")
//
// Parse refuses and never cleans: apart from redundant and trailing slashes,
// which are other spellings of the same path, the directory must be written
// exactly as root, "tasks" and one segment.
package taskpath

import (
	"errors"
	"fmt"
	"strings"
)

// DefaultRoot stands for a blank workdir root.
const DefaultRoot = "~/.kandev"

// MaxSegment is the longest segment, in bytes.
const MaxSegment = 255

// maxPath is below Linux's PATH_MAX (4096) less the names a removal appends.
const maxPath = 4000

// ErrRefused is wrapped by every error of this package.
var ErrRefused = errors.New("path refused")

// ErrNeedsHome says that the root starts with ~ and cannot be judged before the
// host has told its home directory. It also wraps ErrRefused.
var ErrNeedsHome = fmt.Errorf("%w: the root starts with ~ and the home directory is not known yet", ErrRefused)

// Root is a workdir root: absolute, expanded, without redundant slashes. The
// zero value is no root.
type Root struct{ path, home string }

// String is the root's path.
func (r Root) String() string { return r.path }

// Dir is the path of a task directory. The zero value is no directory.
type Dir struct{ root, segment string }

// String is the whole path, without redundant slashes.
func (d Dir) String() string { return d.root + "/tasks/" + d.segment }

// Root is the path of the workdir root the directory lies in.
func (d Dir) Root() string { return d.root }

// Segment is the directory's own name.
func (d Dir) Segment() string { return d.segment }

// Which part of a path is wrong: every refusal but ErrNeedsHome wraps one.
var (
	ErrRoot  = errors.New("the workdir root")
	ErrPlace = errors.New("where the directory stands")
	ErrName  = errors.New("the directory's own name")
)

type refusal struct {
	part error
	text string
}

func (r refusal) Error() string        { return ErrRefused.Error() + ": " + r.text }
func (r refusal) Is(target error) bool { return target == ErrRefused || target == r.part }

func refuse(part error, format string, args ...any) error {
	return refusal{part, fmt.Sprintf(format, args...)}
}

// NeedsHome reports whether typed, a workdir root as a person typed it, can be
// expanded only with the host's home directory.
func NeedsHome(typed string) bool {
	typed = orDefault(typed)
	return typed == "~" || strings.HasPrefix(typed, "~/")
}

func orDefault(typed string) string {
	if strings.TrimSpace(typed) == "" {
		return DefaultRoot
	}
	return typed
}

// ParseRoot expands a workdir root. Blank means DefaultRoot; a leading ~ or ~/
// is home, which, when known, must be absolute and free of . and .. components. Only
// these two are expanded: ~user and $HOME stay as they are and are refused as
// not absolute. An absolute root may be judged before home is known (empty);
// with home known, a root that would make the home directory the holder of the
// task is refused (D16).
func ParseRoot(typed, home string) (Root, error) {
	typed = orDefault(typed)
	path := typed
	if home != "" {
		if _, err := parts("home directory", home); err != nil {
			return Root{}, err
		}
	}
	if NeedsHome(typed) {
		if home == "" {
			return Root{}, ErrNeedsHome
		}
		path = home + strings.TrimPrefix(typed, "~")
	}
	names, err := parts("workdir root", path)
	if err != nil {
		return Root{}, err
	}
	if len(names) == 0 {
		return Root{}, refuse(ErrRoot, "the workdir root is / itself")
	}
	root := Root{path: "/" + strings.Join(names, "/"), home: squeeze(home)}
	if root.home != "" && (root.path == root.home || root.path+"/tasks" == root.home) {
		return Root{}, refuse(ErrRoot, "the directory that would hold the task is the home directory itself")
	}
	return root, nil
}

// Parse accepts dir exactly when it is one segment below root/tasks/.
func Parse(root Root, dir string) (Dir, error) {
	if root.path == "" {
		return Dir{}, refuse(ErrRoot, "no workdir root")
	}
	names, err := parts("task directory", dir)
	if err != nil {
		return Dir{}, err
	}
	path := "/" + strings.Join(names, "/")
	inside, ok := strings.CutPrefix(path, root.path+"/tasks/")
	if !ok {
		return Dir{}, refuse(ErrPlace, "the task directory %q is not below %q", dir, root.path+"/tasks/")
	}
	if strings.Contains(inside, "/") {
		return Dir{}, refuse(ErrPlace, "the task directory %q is more than one segment below %q", dir, root.path+"/tasks/")
	}
	if err := Segment(inside); err != nil {
		return Dir{}, err
	}
	if root.home != "" && strings.HasPrefix(root.home+"/", path+"/") {
		return Dir{}, refuse(ErrPlace, "the home directory %q lies in the task directory", root.home)
	}
	return Dir{root: root.path, segment: inside}, nil
}

// LastSegment is the last name of a recorded task directory, which must be
// absolute and end in "tasks" and one segment. It serves where the root cannot
// be expanded yet; it makes no Dir.
func LastSegment(dir string) (string, error) {
	names, err := parts("task directory", dir)
	if err != nil {
		return "", err
	}
	if len(names) < 2 || names[len(names)-2] != "tasks" {
		return "", refuse(ErrPlace, "the task directory %q is not one segment below a directory named tasks", dir)
	}
	last := names[len(names)-1]
	return last, Segment(last)
}

// Segment refuses what cannot be a task's own name (D16).
func Segment(name string) error {
	switch {
	case name == "":
		return refuse(ErrName, "the segment is empty")
	case len(name) > MaxSegment:
		return refuse(ErrName, "the segment is %d bytes long, more than %d", len(name), MaxSegment)
	case name == "." || name == "..":
		return refuse(ErrName, "the segment is %q", name)
	case strings.Contains(name, "/"):
		return refuse(ErrName, "the segment %q holds a slash", name)
	case strings.HasPrefix(name, ".reclaim-"):
		return refuse(ErrName, "the segment %q is a name removals use", name)
	}
	return control("segment", name)
}

// partOf is the part that a thing's word stands for.
func partOf(what string) error {
	switch what {
	case "segment":
		return ErrName
	case "task directory":
		return ErrPlace
	}
	return ErrRoot
}

func control(what, s string) error {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return refuse(partOf(what), "the %s holds the control character %#02x", what, s[i])
		}
	}
	return nil
}

// parts splits an absolute path at its slashes, dropping redundant ones and
// nothing else.
func parts(what, path string) ([]string, error) {
	if path == "" {
		return nil, refuse(partOf(what), "the %s is empty", what)
	}
	if len(path) > maxPath {
		return nil, refuse(partOf(what), "the %s is %d bytes long, more than %d", what, len(path), maxPath)
	}
	if path[0] != '/' {
		return nil, refuse(partOf(what), "the %s %q is not absolute", what, path)
	}
	if err := control(what, path); err != nil {
		return nil, err
	}
	var names []string
	for _, name := range strings.Split(path, "/") {
		switch name {
		case "":
		case ".", "..":
			return nil, refuse(partOf(what), "the %s %q holds the component %q", what, path, name)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

func squeeze(path string) string {
	names, err := parts("path", path)
	if err != nil {
		return path
	}
	return "/" + strings.Join(names, "/")
}
