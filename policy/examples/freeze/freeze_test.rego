package operator.freeze_test

import data.operator.freeze

test_days[day] if {
	some day, held in {
		"2026-12-18T23:59:59Z": set(),
		"2026-12-19T00:00:00Z": {"no removals on weekends"},
		"2026-12-20T23:59:59Z": {"no removals on weekends", "no removals between the years"},
		"2026-12-21T00:00:00Z": {"no removals between the years"},
		"2027-01-01T12:00:00Z": {"no removals between the years"},
		"2027-01-03T00:00:00Z": {"no removals on weekends"},
		"2027-01-04T00:00:00Z": set(),
		"2026-11-30T04:00:00Z": set(),
		"2027-03-01T04:00:00Z": set(),
	}
	seconds := time.parse_rfc3339_ns(day) / 1000000000
	{d.message | some d in freeze.deny} == held with input as {"time": seconds}
}

test_the_job_waits if {
	every denial in freeze.deny {
		denial.retry == true
	}
		with input as {"time": 1797768000}
	count(freeze.deny) > 0 with input as {"time": 1797768000}
}
