# METADATA
# title: Maximum size
# description: >-
#   What is larger than a person would want to see vanish by itself is left to a
#   person. The size is known once the directory was looked through, at the second
#   ruling.
package operator.max_size

# Edit these: 50 GiB, a million entries.
max_bytes := (50 * 1024) * 1048576

max_entries := 1000000

deny contains $"{input.bytes} bytes are more than the {max_bytes} removed automatically" if {
	input.moment == "remove"
	input.bytes > max_bytes
}

deny contains $"{input.entries} entries are more than the {max_entries} removed automatically" if {
	input.moment == "remove"
	input.entries > max_entries
}
