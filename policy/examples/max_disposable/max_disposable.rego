# METADATA
# title: Maximum of build output
# description: >-
#   A profile may let kinds of build output go with a directory. So much of it that
#   building again would take a day is left to a person, and a kind can be held to a
#   cap of its own. What goes is known once the directory was looked through, at the
#   second ruling; where nothing of the kind goes the facts say nothing of it.
package operator.max_disposable

# Edit these: 20 GiB and 500,000 entries in all, and by kind.
max_bytes := (20 * 1024) * 1048576

max_entries := 500000

max_bytes_of := {"python": 5368709120, "cachedir": 1073741824}

deny contains $"{input.excused.bytes} bytes of build output are more than the {max_bytes} removed automatically" if {
	input.moment == "remove"
	input.excused.bytes > max_bytes
}

deny contains $"{input.excused.entries} entries of build output are more than the {max_entries} removed automatically" if {
	input.moment == "remove"
	input.excused.entries > max_entries
}

deny contains $"{one.bytes} bytes of {one.kind} build output are more than the {max_bytes_of[one.kind]} removed automatically" if {
	input.moment == "remove"
	some one in input.excused.kinds
	one.bytes > max_bytes_of[one.kind]
}
