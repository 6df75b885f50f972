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

passed if {
	home
	root
	directory
	segment
	place
	apart
}

# The home directory: known and well written, or not known yet.
home if well_written(input.path.home)

home if {
	input.moment == "connect"
	input.path.home == ""
}

root if unexpanded

root if {
	well_written(expanded)
	count(root_names) > 0
}

directory if well_written(input.path.dir)

# The directory's own name: at most 255 bytes, and none that removals use.
segment if {
	count(hex.encode(own_name)) <= 510
	not startswith(own_name, ".reclaim-")
}

place if {
	unexpanded
	dir_names[count(dir_names) - 2] == "tasks"
}

place if dir_names == array.concat(root_names, ["tasks", own_name])

apart if input.path.home == ""

apart if {
	home_names != root_names
	home_names != array.concat(root_names, ["tasks"])
	array.slice(home_names, 0, count(dir_names)) != dir_names
}

typed := "~/.kandev" if {
	trim_space(input.path.root) == ""
} else := input.path.root

needs_home if typed == "~"

needs_home if startswith(typed, "~/")

unexpanded if {
	input.moment == "connect"
	input.path.home == ""
	needs_home
}

expanded := concat("", [input.path.home, trim_prefix(typed, "~")]) if {
	needs_home
} else := typed

root_names := names(expanded)

home_names := names(input.path.home)

dir_names := names(input.path.dir)

own_name := dir_names[count(dir_names) - 1]

names(path) := [name | some name in split(path, "/"); name != ""]

# Absolute, at most 4000 bytes, no component . or .., no control character.
well_written(path) if {
	startswith(path, "/")
	count(hex.encode(path)) <= 8000
	closed := concat("", [path, "/"])
	not contains(closed, "/./")
	not contains(closed, "/../")
	not regex.match(`[\x00-\x1f\x7f]`, path)
}

# Why it did not pass. Nothing is decided from here.

refusals contains {
	"barrier": "pathshape",
	"rule": "home",
	"says": "the home directory on the host is not known or not a plain absolute path",
} if {
	not home
}

refusals contains {
	"barrier": "pathshape",
	"rule": "root",
	"says": "the workdir root is not a plain absolute path, or is / itself",
} if {
	not root
}

refusals contains {
	"barrier": "pathshape",
	"rule": "directory",
	"says": "the task directory is not a plain absolute path",
} if {
	not directory
}

refusals contains {
	"barrier": "pathshape",
	"rule": "segment",
	"says": "the task directory's own name is missing, too long, or one that removals use",
} if {
	not segment
}

refusals contains {
	"barrier": "pathshape",
	"rule": "place",
	"says": "the task directory is not exactly one name below <workdir_root>/tasks/",
} if {
	not place
}

refusals contains {
	"barrier": "pathshape",
	"rule": "apart",
	"says": "the home directory would hold the task directory itself, or lie in it",
} if {
	not apart
}
