package policy.optin_test

import data.policy.optin

# Facts of a removal that may go on, and of one whose beginning is recorded.
now := {
	"moment": "remove",
	"job": {"begun": false},
	"target": {"enabled": true},
	"opt_in_now": "on",
	"ownership": {"task_terminal": true},
}

begun := {
	"moment": "connect",
	"job": {"begun": true},
	"target": {"enabled": true},
	"opt_in_now": "",
	"ownership": null,
}

test_refusals[name] if {
	some name, row in {
		"on": {"facts": now, "refused": set()},
		"a host that cannot tell": {"facts": object.union(now, {"opt_in_now": "unknown"}), "refused": set()},
		"off": {"facts": object.union(now, {"opt_in_now": "off"}), "refused": {"now"}},
		"no answer": {"facts": object.union(now, {"opt_in_now": ""}), "refused": {"now"}},
		"another spelling": {"facts": object.union(now, {"opt_in_now": "ON"}), "refused": {"now"}},
		"not opted in at launch": {"facts": object.union(now, {"target": {"enabled": false}}), "refused": {"at_launch"}},
		"not opted in at launch, cannot tell now": {
			"facts": object.union(now, {"target": {"enabled": false}, "opt_in_now": "unknown"}),
			"refused": {"at_launch"},
		},
		"a text is not true": {"facts": object.union(now, {"target": {"enabled": "true"}}), "refused": {"at_launch"}},
		"a number is not true": {"facts": object.union(now, {"target": {"enabled": 1}}), "refused": {"at_launch"}},
		"nothing is known": {"facts": {}, "refused": {"at_launch", "now"}},
		"begun, before storage is asked": {"facts": begun, "refused": set()},
		"begun, not opted in at launch": {"facts": object.union(begun, {"target": {"enabled": false}}), "refused": {"at_launch"}},
		"not begun, and storage was not asked": {"facts": object.union(begun, {"job": {"begun": false}}), "refused": {"now"}},
		"begun, but about to remove": {"facts": object.union(begun, {"moment": "remove"}), "refused": {"now"}},
		"begun, and storage was asked": {"facts": object.union(begun, {"ownership": {"task_terminal": true}}), "refused": {"now"}},
	}
	{refusal.rule | some refusal in optin.refusals} == row.refused with input as row.facts
	{true | optin.passed} == {true | count(row.refused) == 0} with input as row.facts
}

test_a_refusal_names_the_barrier_and_says_why if {
	every refusal in optin.refusals {
		refusal.barrier == "optin"
		count(refusal.says) > 20
	}
		with input as {}
	count(optin.refusals) == 2 with input as {}
}
