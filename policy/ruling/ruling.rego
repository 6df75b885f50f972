# METADATA
# title: Ruling
# description: >-
#   The one document the policy answers with. It is asked for twice in an attempt:
#   before a connection is made (connect) and right before a removal begins
#   (remove). All three barriers must have passed; each refuses by itself.
# entrypoint: true
# custom:
#   reason: policy_failed
package policy.ruling

import data.policy.optin
import data.policy.ownership
import data.policy.pathshape

default allow := false

allow if {
	input.moment in {"connect", "remove"}
	optin.passed == true
	ownership.passed == true
	pathshape.passed == true
}

# The barriers that passed.
passed := ["optin", "ownership", "pathshape"] if {
	allow
} else := [name |
	some name, holds in {"optin": optin.passed, "ownership": ownership.passed, "pathshape": pathshape.passed}
	holds == true
]

# Why it is not allowed. Nothing is decided from here.
refusals := set() if {
	allow
} else := optin.refusals | ((ownership.refusals | pathshape.refusals) | {refusal |
	not object.get(input, "moment", "") in {"connect", "remove"}
	refusal := {"barrier": "ruling", "rule": "moment", "says": "nobody asks at this moment"}
})
