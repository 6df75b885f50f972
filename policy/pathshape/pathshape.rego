# METADATA
# title: Path shape
# description: >-
#   A directory may be removed only where its path is the workdir root, then tasks,
#   then one name, written without dots and control characters; slashes may be
#   doubled. The root is what a person typed: blank means ~/.kandev, and a leading ~
#   is the home directory on the host. Neither the root nor its tasks directory may
#   be the home directory, and the home directory may not lie in what would be
#   removed. Before the host was greeted its home is not known: then a root that
#   needs it is not judged, and only the end of the path is.
# custom:
#   reason: path_refused
package policy.pathshape

default passed := false

# The three paths are looked at as one text, a line each: home, root, directory.
# Each line ends in a slash of ours.
passed if {
	home
	paths := concat("/\n", [input.path.home, root, input.path.dir, ""])
	short(paths)

	# Each is absolute, without control characters and without a component . or ..:
	# a component begins with up to two dots and something else, or with three dots.
	# The home directory may be / itself or unknown; the other two name something.
	regex.match(`^(/+(\.{0,2}[^/.\x00-\x1f\x7f]|\.{3})[^/\x00-\x1f\x7f]*)*/+\n(/+(\.{0,2}[^/.\x00-\x1f\x7f]|\.{3})[^/\x00-\x1f\x7f]*)+/+\n(/+(\.{0,2}[^/.\x00-\x1f\x7f]|\.{3})[^/\x00-\x1f\x7f]*)+/+\n$`, paths)
	[home_dir, root_dir, dir, _] := split(squeezed(paths), "\n")

	# The directory is one name below tasks, at most 255 bytes long and none that
	# removals use.
	inside := trim_prefix(dir, root_dir)
	regex.match(`^tasks/[^/]+/$`, inside)
	count(hex.encode(inside)) <= 524
	not startswith(inside, "tasks/.reclaim-")

	# The home directory does not hold it, and does not lie in it.
	home_dir != root_dir
	trim_suffix(home_dir, "tasks/") != root_dir
	not startswith(home_dir, dir)
}

# Before the host was greeted a root may need a home directory that nobody knows.
# Then only the end of the path is judged; the rest is, once the home is known.
passed if {
	input.moment == "connect"
	input.path.home == ""
	tilde
	count(hex.encode(input.path.dir)) <= 8000
	regex.match(`^(/+(\.{0,2}[^/.\x00-\x1f\x7f]|\.{3})[^/\x00-\x1f\x7f]*)*/+tasks/+(\.{0,2}[^/.\x00-\x1f\x7f]|\.{3})[^/\x00-\x1f\x7f]*/*$`, input.path.dir)
	name := regex.replace(input.path.dir, `^.*/([^/]+)/*$`, "$1")
	count(hex.encode(name)) <= 510
	not startswith(name, ".reclaim-")
}

# Only before the host was greeted may the home directory be unknown.
home if input.path.home != ""

home if input.moment == "connect"

# Blank means the default root; ~ is the home directory at the start, and only
# alone or before a slash.
root := concat("", [input.path.home, trim_prefix(input.path.root, "~")]) if {
	regex.match(`^~(/|$)`, input.path.root)
} else := concat("", [input.path.home, "/.kandev"]) if {
	trim_space(input.path.root) == ""
} else := input.path.root

tilde if regex.match(`^~(/|$)`, input.path.root)

tilde if trim_space(input.path.root) == ""

# Doubled slashes are one. Nothing else is cleaned.
squeezed(paths) := paths if {
	not contains(paths, "//")
} else := regex.replace(paths, `/+`, "/")

# Each path has at most 4000 bytes, which 1000 characters in all cannot exceed.
short(paths) if count(paths) <= 1000

short(_) if {
	count(hex.encode(input.path.home)) <= 8000
	count(hex.encode(root)) <= 8000
	count(hex.encode(input.path.dir)) <= 8000
}

# Why it did not pass. Nothing is decided from here.

refusals contains {
	"barrier": "pathshape",
	"rule": "shape",
	"says": "the task directory is not exactly one plain name below <workdir_root>/tasks/, clear of the home directory",
} if {
	not passed
}
