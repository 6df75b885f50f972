package operator.max_disposable_test

import data.operator.max_disposable

test_build_output[name] if {
	some name, row in {
		"none": {"facts": {"moment": "remove", "bytes": 99999999999}, "denied": 0},
		"little": {"facts": {"moment": "remove", "excused": {"bytes": 10, "entries": 10, "kinds": [{"kind": "node", "bytes": 10, "entries": 10, "trees": 1}]}}, "denied": 0},
		"at the limit": {"facts": {"moment": "remove", "excused": {"bytes": 21474836480, "entries": 500000, "kinds": []}}, "denied": 0},
		"too large": {"facts": {"moment": "remove", "excused": {"bytes": 21474836481, "entries": 1, "kinds": []}}, "denied": 1},
		"too many": {"facts": {"moment": "remove", "excused": {"bytes": 1, "entries": 500001, "kinds": []}}, "denied": 1},
		"too much of a kind": {"facts": {"moment": "remove", "excused": {"bytes": 5368709121, "entries": 1, "kinds": [{"kind": "python", "bytes": 5368709121, "entries": 1, "trees": 1}]}}, "denied": 1},
		"as much of another kind": {"facts": {"moment": "remove", "excused": {"bytes": 5368709121, "entries": 1, "kinds": [{"kind": "node", "bytes": 5368709121, "entries": 1, "trees": 1}]}}, "denied": 0},
		"not known yet": {"facts": {"moment": "connect", "excused": {"bytes": 21474836481, "entries": 500001, "kinds": []}}, "denied": 0},
	}
	count(max_disposable.deny) == row.denied with input as row.facts
}
