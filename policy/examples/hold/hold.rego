# METADATA
# title: Hold
# description: >-
#   A task that carries the label "hold" keeps its directory until the label is
#   gone. The label's value names who holds it.
package operator.hold

deny contains {"message": $"held by {who}", "retry": true} if {
	who := trim_space(input.labels.hold)
	who != ""
}

deny contains {"message": "held, and nobody is named", "retry": true} if {
	trim_space(input.labels.hold) == ""
}
