package policy.ruling_test

import data.policy.optin
import data.policy.ownership
import data.policy.pathshape
import data.policy.ruling

no(barrier) := {{"barrier": barrier, "rule": "r", "says": "no"}}

test_all_passed[moment] if {
	some moment in {"connect", "remove"}
	ruling == {"allow": true, "passed": ["optin", "ownership", "pathshape"], "refusals": set()} with input as {"moment": moment}
		with optin.passed as true
		with ownership.passed as true
		with pathshape.passed as true
}

test_another_moment[moment] if {
	some moment in {"", "Remove", "begin"}
	not ruling.allow with input as {"moment": moment}
		with optin.passed as true
		with ownership.passed as true
		with pathshape.passed as true
	{r.rule | some r in ruling.refusals} == {"moment"} with input as {"moment": moment}
		with optin.refusals as set()
		with ownership.refusals as set()
		with pathshape.refusals as set()
}

test_each_refuses_by_itself if {
	ruling == {"allow": false, "passed": ["ownership", "pathshape"], "refusals": no("optin")} with input as {"moment": "remove"}
		with optin.passed as false
		with optin.refusals as no("optin")
		with ownership.passed as true
		with ownership.refusals as set()
		with pathshape.passed as true
		with pathshape.refusals as set()
	ruling == {"allow": false, "passed": ["optin", "pathshape"], "refusals": no("ownership")} with input as {"moment": "remove"}
		with optin.passed as true
		with optin.refusals as set()
		with ownership.passed as false
		with ownership.refusals as no("ownership")
		with pathshape.passed as true
		with pathshape.refusals as set()
	ruling == {"allow": false, "passed": ["optin", "ownership"], "refusals": no("pathshape")} with input as {"moment": "remove"}
		with optin.passed as true
		with optin.refusals as set()
		with ownership.passed as true
		with ownership.refusals as set()
		with pathshape.passed as false
		with pathshape.refusals as no("pathshape")
}

test_a_known_moment_is_no_reason[moment] if {
	some moment in {"connect", "remove"}
	ruling.refusals == no("optin") with input as {"moment": moment}
		with optin.passed as false
		with optin.refusals as no("optin")
		with ownership.refusals as set()
		with pathshape.refusals as set()
}

test_what_is_not_true_has_not_passed[name] if {
	some name, odd in {"a text": "true", "a number": 1, "a list": [true]}
	not ruling.allow with input as {"moment": "remove"}
		with optin.passed as odd
		with ownership.passed as true
		with pathshape.passed as true
	not ruling.allow with input as {"moment": "remove"}
		with optin.passed as true
		with ownership.passed as odd
		with pathshape.passed as true
	ruling.passed == ["optin", "ownership"] with input as {"moment": "remove"}
		with optin.passed as true
		with ownership.passed as true
		with pathshape.passed as odd
}

test_nothing_is_known if {
	not ruling.allow with input as {}
	ruling.passed == [] with input as {}
	{r.barrier | some r in ruling.refusals} == {"optin", "ownership", "pathshape", "ruling"} with input as {}
	every refusal in ruling.refusals {
		count(refusal.says) > 10
	}
		with input as {}
}
