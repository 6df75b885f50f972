package operator.max_size_test

import data.operator.max_size

test_sizes[name] if {
	some name, row in {
		"small": {"facts": {"moment": "remove", "bytes": 10, "entries": 10}, "denied": 0},
		"at the limit": {"facts": {"moment": "remove", "bytes": 53687091200, "entries": 1000000}, "denied": 0},
		"too large": {"facts": {"moment": "remove", "bytes": 53687091201, "entries": 10}, "denied": 1},
		"too many": {"facts": {"moment": "remove", "bytes": 10, "entries": 1000001}, "denied": 1},
		"both": {"facts": {"moment": "remove", "bytes": 53687091201, "entries": 1000001}, "denied": 2},
		"not known yet": {"facts": {"moment": "connect", "bytes": 53687091201, "entries": 1000001}, "denied": 0},
	}
	count(max_size.deny) == row.denied with input as row.facts
}
