# METADATA
# title: Ownership
# description: >-
#   A directory may be removed only where storage answered, the task is archived or
#   deleted, its environment names it, no other task that goes on runs in that
#   environment or in one of a task that has run in the directory, and no other
#   task has a right to the directory. Another task has
#   one while it is not terminal, while it is being cleaned up, and for ever where
#   it had not opted in itself. What cannot be told apart is taken as the same
#   directory. Where an earlier removal had begun, the first ruling comes before
#   storage is asked: leftovers are put right whatever it will say.
# custom:
#   reason: shared
package policy.ownership

default passed := false

passed if {
	object.get(input, ["ownership", "error"], "") == ""
	input.ownership.task_terminal == true
	input.job.trigger in {"archive", "delete", "cascade_archive", "cascade_delete"}
	environment
	borrowers
	claims
}

# Storage is asked again once the leftovers of a removal that had begun are settled.
passed if {
	input.moment == "connect"
	input.job.begun == true
	input.ownership == null
}

# The environment's row as it is now names the task, and so does the copy taken
# when the job was made, if there is one.
environment if {
	trim_space(input.ownership.environment.id) != ""
	trim_space(input.job.task_id) != ""
	input.ownership.environment.task_id == input.job.task_id
	input.job.environment in {null, input.ownership.environment}
}

# Deleting a task deletes its row: then the copy is all there is.
environment if {
	trim_space(input.job.environment.id) != ""
	trim_space(input.job.task_id) != ""
	input.job.environment.task_id == input.job.task_id
	input.job.trigger in {"delete", "cascade_delete"}
	object.get(input, ["ownership", "environment"], null) == null
}

# A session of another task keeps the directory in whatever state it is, as long
# as its task goes on: the task may resume it. Whose environment it runs in, ours
# or another claimant's (then there is a lender), is no difference: both lead there.
borrowers if {
	every borrower in object.get(input, ["ownership", "borrowers"], []) {
		returned(borrower)
	}
}

returned(borrower) if borrower.task_id == input.job.task_id

returned(borrower) if {
	trim_space(borrower.task_id) != ""
	borrower.task_terminal == true
}

claims if {
	every claim in object.get(input, ["ownership", "claims"], []) {
		lapsed(claim)
	}
}

lapsed(claim) if claim.task_id == input.job.task_id

# Its task has ended, was stopped and cleaned up, and would have let the
# directory go itself.
lapsed(claim) if {
	trim_space(claim.task_id) != ""
	claim.task_terminal == true
	claim.stopped == true
	claim.cleanup_open == false
	claim.opted_in == true
}

lapsed(claim) if {
	object.get(claim, "unreadable", false) == false
	elsewhere(claim)
}

elsewhere(claim) if trim_space(claim.task_dir) == ""

elsewhere(claim) if other_machine(claim)

elsewhere(claim) if other_directory(claim)

# Another machine: both hosts are named, the names differ, and the pins do not
# say that it is one machine under two names.
other_machine(claim) if {
	host(claim.host) != ""
	our_host != ""
	host(claim.host) != our_host
	not one_pin(claim)
}

# Or two ports of one name and two pins: two machines behind one address.
other_machine(claim) if {
	host(claim.host) == our_host
	our_host != ""
	port(claim) != port(input.target)
	two_pins(claim)
}

one_pin(claim) if {
	pin(claim) == pin(input.target)
	pin(claim) != ""
}

two_pins(claim) if {
	pin(claim) != pin(input.target)
	pin(claim) != ""
	pin(input.target) != ""
}

pin(place) := trim_right(trim_space(object.get(place, "host_fingerprint", "")), "=")

port(place) := 22 if object.get(place, "port", 0) == 0

port(place) := place.port if place.port != 0

our_host := host(input.target.host)

# One spelling for the spellings of one host: localhost for every loopback address.
# Letters lose their case, addresses their brackets. An IPv6 address is reduced to
# its digits other than zero, so that every spelling of one address is equal; two
# addresses may then be equal too, which can only keep a directory.
host(name) := "localhost" if {
	loopback(digits(bare(name)))
} else := digits(bare(name))

bare(name) := trim_prefix(trim_right(trim(fold(trim_space(name)), "[]"), "."), "::ffff:")

digits(name) := concat("", [":", replace(replace(name, ":", ""), "0", "")]) if {
	contains(name, ":")
} else := name

loopback(":1")

loopback(name) if startswith(name, "127.")

# Letters that differ in case only, in any script, become equal.
fold(text) := lower(upper(text))

# The host trims what it records: with white space around it a path may be the
# one without it.
names(path) := [name | some name in split(fold(trim_space(path)), "/"); name != ""]

our_names := names(input.target.task_dir)

our_segment := our_names[count(our_names) - 1]

# Another directory: a whole path that is neither above nor below ours nor the
# same, and whose last name is another. (A link or a second mount may lead to one
# directory from two places.)
other_directory(claim) if {
	whole(claim.task_dir)
	theirs := names(claim.task_dir)
	shorter := min([count(theirs), count(our_names)])
	array.slice(theirs, 0, shorter) != array.slice(our_names, 0, shorter)
	theirs[count(theirs) - 1] != our_segment
}

# What is not a whole path may lead anywhere: it is another directory only when no
# name in it could be ours, or one above or below ours.
# (A whole path of which that holds is another directory, too.)
other_directory(claim) if {
	theirs := names(claim.task_dir)
	segment := our_segment
	last := theirs[count(theirs) - 1]
	not last in {".", ".."}
	not startswith(last, "~")
	not startswith(last, "$")
	not last in our_names
	not segment in theirs
}

whole(path) if {
	startswith(trim_space(path), "/")
	not dotted(names(path))
}

dotted(names) if "." in names

dotted(names) if ".." in names

# Why it did not pass. Nothing is decided from here.

refusals contains {
	"barrier": "ownership",
	"rule": "answered",
	"says": "storage could not say who owns the directory",
} if {
	not object.get(input, ["ownership", "error"], "") == ""
}

refusals contains {
	"barrier": "ownership",
	"rule": "terminal",
	"says": "the task is not archived or deleted",
} if {
	not passed
	not input.ownership.task_terminal == true
}

refusals contains {
	"barrier": "ownership",
	"rule": "trigger",
	"says": "jobs of this trigger never reclaim directories",
} if {
	not passed
	not object.get(input, ["job", "trigger"], "") in {"archive", "delete", "cascade_archive", "cascade_delete"}
}

refusals contains {
	"barrier": "ownership",
	"rule": "environment",
	"says": "nothing says that the environment is this task's own",
} if {
	not passed
	not environment
}

refusals contains {
	"barrier": "ownership",
	"rule": "borrowers",
	"says": "a session of another task that goes on runs in an environment that leads to the directory",
} if {
	not borrowers
}

refusals contains {
	"barrier": "ownership",
	"rule": "claims",
	"says": "another task has a right to the directory, or its cleanup has not ended",
} if {
	not claims
}
