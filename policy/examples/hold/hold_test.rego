package operator.hold_test

import data.operator.hold

test_labels[name] if {
	some name, row in {
		"named": {"labels": {"hold": "alice"}, "says": {"held by alice"}},
		"nobody": {"labels": {"hold": " "}, "says": {"held, and nobody is named"}},
		"another label": {"labels": {"team": "payments"}, "says": set()},
		"none": {"labels": {}, "says": set()},
	}
	{d.message | some d in hold.deny} == row.says with input as {"labels": row.labels}
	every denial in hold.deny {
		denial.retry == true
	}
		with input as {"labels": row.labels}
}

test_a_task_without_labels if hold.deny == set() with input as {}
