package policy.pathshape_test

import data.policy.pathshape

facts(moment, home, root, dir) := {"moment": moment, "path": {"home": home, "root": root, "dir": dir}}

# n times an x, up to 4096.
long(n) := substring(replace(replace(x16, "x", x16), "x", x16), 0, n)

x16 := "xxxxxxxxxxxxxxxx"

judged(given, good) if {
	pathshape.passed == good with input as given
	{[refusal.barrier, refusal.rule] | some refusal in pathshape.refusals} == {r | not good; r := ["pathshape", "shape"]} with input as given
}

test_directories[dir] if {
	some dir, good in {
		"/srv/k/tasks/fix-login": true,
		"//srv/k//tasks///fix-login//": true,
		"/srv/k/tasks/a..b": true,
		"/srv/k/tasks/...": true,
		"/srv/k/tasks/.hidden": true,
		"/srv/k/tasks/..x": true,
		"/srv/k/tasks/ ": true,
		"/srv/k/tasks/日本": true,
		"/srv/k/tasks/.reclaim": true,
		"/srv/k/tasks/.Reclaim-x": true,
		"/srv/k/tasks/.reclaim-x": false,
		"/srv/k/tasks/.": false,
		"/srv/k/tasks/..": false,
		"/srv/k/tasks/./a": false,
		"/srv/k/tasks/../a": false,
		"/srv/k/./tasks/a": false,
		"/srv/k/tasks/a\nb": false,
		"/srv/k/tasks/a\u007f": false,
		"/srv/k/tasks/\u0000": false,
		"/srv/k/tasks/a\u001f": false,
		"/srv/k/tasks/a/b": false,
		"/srv/k/tasks": false,
		"/srv/k/tasks/": false,
		"/srv/k/Tasks/a": false,
		"/srv/k/a": false,
		"/srv/kk/tasks/a": false,
		"/srv/tasks/a": false,
		"srv/k/tasks/a": false,
		"/tasks/a": false,
		"tasks/a": false,
		"/": false,
		"": false,
	}
	judged(facts("remove", "/home/dev", "/srv/k", dir), good)
}

test_roots[root] if {
	some root, row in {
		"": {"dir": "/home/dev/.kandev/tasks/a", "good": true},
		" \t": {"dir": "/home/dev/.kandev/tasks/a", "good": true},
		"~/.kandev": {"dir": "/home/dev/.kandev/tasks/a", "good": true},
		"~//k/": {"dir": "/home/dev/k/tasks/a", "good": true},
		"/srv//k/": {"dir": "/srv/k/tasks/a", "good": true},
		"/home": {"dir": "/home/tasks/a", "good": true},
		"~": {"dir": "/home/dev/tasks/a", "good": false},
		"~/": {"dir": "/home/dev/tasks/a", "good": false},
		"/home/dev/": {"dir": "/home/dev/tasks/a", "good": false},
		"~dev/k": {"dir": "~dev/k/tasks/a", "good": false},
		"$HOME/k": {"dir": "$HOME/k/tasks/a", "good": false},
		"~/../k": {"dir": "/home/dev/../k/tasks/a", "good": false},
		"/srv/k\u0007": {"dir": "/srv/k\u0007/tasks/a", "good": false},
		"/": {"dir": "/tasks/a", "good": false},
		"k": {"dir": "k/tasks/a", "good": false},
	}
	judged(facts("remove", "/home/dev", root, row.dir), row.good)
}

test_homes[home] if {
	some home, good in {
		"/home/dev": true,
		"/": true,
		"/srv": true,
		"/srv/k/other": true,
		"/srv/k/tasks/ab": true,
		"/srv/k": false,
		"//srv/k/": false,
		"/srv/k/tasks": false,
		"/srv/k/tasks/a": false,
		"/srv/k/tasks/a/home": false,
		"home/dev": false,
		"/home/./dev": false,
		"/home/../dev": false,
		"/home/d\nev": false,
		"": false,
	}
	judged(facts("remove", home, "/srv/k", "/srv/k/tasks/a"), good)
}

test_before_the_greeting[name] if {
	some name, row in {
		"a root that needs no home": {"root": "/srv/k", "dir": "/srv/k/tasks/a", "good": true},
		"a root that needs none, elsewhere": {"root": "/srv/k", "dir": "/srv/j/tasks/a", "good": false},
		"a root that needs it": {"root": "~/.kandev", "dir": "/home/dev/.kandev/tasks/a", "good": true},
		"the bare home": {"root": "~", "dir": "/home/dev/tasks/a/", "good": true},
		"blank": {"root": " ", "dir": "//home/dev/.kandev//tasks//a", "good": true},
		"another user's home": {"root": "~dev", "dir": "/home/dev/tasks/a", "good": false},
		"not below tasks": {"root": "~", "dir": "/home/dev/a", "good": false},
		"two names below tasks": {"root": "~", "dir": "/home/dev/tasks/a/b", "good": false},
		"dots": {"root": "~", "dir": "/home/../tasks/a", "good": false},
		"dots at the end": {"root": "~", "dir": "/home/dev/tasks/..", "good": false},
		"a control character": {"root": "~", "dir": "/home/dev/tasks/a\u0001", "good": false},
		"not absolute": {"root": "~", "dir": "dev/tasks/a", "good": false},
		"a name that removals use": {"root": "~", "dir": "/home/dev/tasks/.reclaim-a/", "good": false},
		"255 bytes": {"root": "~", "dir": concat("", ["/home/dev/tasks/", long(255)]), "good": true},
		"256 bytes": {"root": "~", "dir": concat("", ["/home/dev/tasks/", long(256)]), "good": false},
		"4000 bytes": {"root": "~", "dir": concat("", ["/", long(3991), "/tasks/a"]), "good": true},
		"4001 bytes": {"root": "~", "dir": concat("", ["/", long(3992), "/tasks/a"]), "good": false},
	}
	judged(facts("connect", "", row.root, row.dir), row.good)
}

test_only_before_the_greeting[moment] if {
	some moment in {"remove", "", "Connect"}
	judged(facts(moment, "", "~/.kandev", "/home/dev/.kandev/tasks/a"), false)
	judged(facts(moment, "", "/srv/k", "/srv/k/tasks/a"), false)
}

test_a_home_directory_named_tasks if {
	judged(facts("remove", "/srv/tasks", "/srv/tasks", "/srv/tasks/tasks/a"), false)
	judged(facts("remove", "/srv/tasks", "/srv/k", "/srv/k/tasks/a"), true)
}

test_a_home_that_is_known_is_used if {
	judged(facts("connect", "/home/dev", "~/.kandev", "/home/dev/.kandev/tasks/a"), true)
	judged(facts("connect", "/home/dev", "~/.kandev", "/home/eve/.kandev/tasks/a"), false)
}

test_lengths[name] if {
	some name, row in {
		"a name of 255 bytes": {"home": "/h", "root": "/r", "name": long(255), "good": true},
		"a name of 256 bytes": {"home": "/h", "root": "/r", "name": long(256), "good": false},
		"256 bytes in 128 characters": {"home": "/h", "root": "/r", "name": replace(long(128), "x", "é"), "good": false},
		"a home of 4000 bytes": {"home": concat("", ["/", long(3999)]), "root": "/r", "name": "a", "good": true},
		"a home of 4001 bytes": {"home": concat("", ["/", long(4000)]), "root": "/r", "name": "a", "good": false},
		"a directory of 4000 bytes": {"home": "/h", "root": concat("", ["/", long(3991)]), "name": "a", "good": true},
		"a directory of 4001 bytes": {"home": "/h", "root": concat("", ["/", long(3992)]), "name": "a", "good": false},
	}
	judged(facts("remove", row.home, row.root, concat("/", [row.root, "tasks", row.name])), row.good)
}

test_a_root_of_many_slashes[name] if {
	some name, row in {"4000 bytes": {"slashes": 3998, "good": true}, "4001 bytes": {"slashes": 3999, "good": false}}
	root := concat("", ["/r", replace(long(row.slashes), "x", "/")])
	judged(facts("remove", "/h", root, "/r/tasks/a"), row.good)
}

test_nothing_is_known if judged({}, false)
