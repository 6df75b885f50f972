# METADATA
# title: Opt-in
# description: >-
#   A directory may be removed only where the executor profile had opted in when
#   the directory was made, and is not switched off now. The opt-in frozen at
#   launch must be the boolean true; the switch as storage answers it now must be
#   on, or unknown where the host cannot tell. Where an earlier removal had begun,
#   the first ruling comes before storage is asked again, because leftovers are put
#   right whatever it will say: the frozen opt-in suffices for that one.
# custom:
#   reason: disabled
package policy.optin

default passed := false

passed if {
	input.target.enabled == true
	input.opt_in_now == "on"
}

# A host that cannot tell: the opt-in frozen at launch decides.
passed if {
	input.target.enabled == true
	input.opt_in_now == "unknown"
}

# Storage is asked again once the leftovers of a removal that had begun are settled.
passed if {
	input.target.enabled == true
	put_off
}

put_off if {
	input.moment == "connect"
	input.job.begun == true
	input.ownership == null
}

# Why it did not pass. Nothing is decided from here.

refusals contains {
	"barrier": "optin",
	"rule": "at_launch",
	"says": "the executor profile had not opted in when the directory was made",
} if {
	not input.target.enabled == true
}

refusals contains {
	"barrier": "optin",
	"rule": "now",
	"says": "the executor profile is not opted in now",
} if {
	not put_off
	not object.get(input, "opt_in_now", "") in {"on", "unknown"}
}
