# METADATA
# title: Protected hosts
# description: On these hosts nothing is ever removed automatically.
package operator.protected_hosts

# Edit this list. A name that starts with a dot stands for every host below it.
protected := {"build-1.example.com", ".prod.example.com"}

deny contains $"{input.target.host} is a protected host" if {
	some name in protected
	matches(lower(trim_right(input.target.host, ".")), name)
}

# A machine that is reached under another name is recognised by its pinned key.
pinned := {"SHA256:REPLACE-WITH-THE-FINGERPRINT-OF-A-PROTECTED-HOST"}

deny contains "a protected host, known by its key, under another name" if {
	input.target.host_fingerprint in pinned
}

matches(host, name) if host == name

matches(host, name) if {
	startswith(name, ".")
	endswith(host, name)
}
