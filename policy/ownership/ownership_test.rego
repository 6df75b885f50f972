package policy.ownership_test

import data.policy.ownership

# Facts of a task that owns its directory and nobody else does.
owned := {
	"moment": "remove",
	"job": {"task_id": "t-1", "trigger": "archive", "begun": false, "environment": {"id": "env-1", "task_id": "t-1"}},
	"target": {
		"host": "build.example",
		"port": 22,
		"host_fingerprint": "SHA256:aaa",
		"task_dir": "/home/dev/.kandev/tasks/fix-login",
	},
	"ownership": {"task_terminal": true, "environment": {"id": "env-1", "task_id": "t-1"}},
}

holds(facts, rules) if {
	{refusal.rule | some refusal in ownership.refusals} == rules with input as facts
	{true | ownership.passed} == {true | count(rules) == 0} with input as facts
}

test_task_and_environment[name] if {
	env := {"id": "env-1", "task_id": "t-1"}
	gone := object.union(owned, {"ownership": {"environment": null}})
	some name, row in {
		"owned": {"facts": owned, "refused": set()},
		"nothing is known": {"facts": {}, "refused": {"terminal", "trigger", "environment"}},
		"storage failed": {"facts": object.union(owned, {"ownership": {"error": "disk I/O error"}}), "refused": {"answered"}},
		"not terminal": {"facts": object.union(owned, {"ownership": {"task_terminal": false}}), "refused": {"terminal"}},
		"terminal in words": {"facts": object.union(owned, {"ownership": {"task_terminal": "true"}}), "refused": {"terminal"}},
		"storage was not asked": {"facts": object.union(owned, {"ownership": null}), "refused": {"terminal", "environment"}},
		"delete": {"facts": object.union(owned, {"job": {"trigger": "delete"}}), "refused": set()},
		"cascade_archive": {"facts": object.union(owned, {"job": {"trigger": "cascade_archive"}}), "refused": set()},
		"cascade_delete": {"facts": object.union(owned, {"job": {"trigger": "cascade_delete"}}), "refused": set()},
		"cascade_archive, storage failed": {
			"facts": object.union(owned, {"job": {"trigger": "cascade_archive"}, "ownership": {"error": "disk I/O error"}}),
			"refused": {"answered"},
		},
		"cascade_delete, storage failed": {
			"facts": object.union(owned, {"job": {"trigger": "cascade_delete"}, "ownership": {"error": "disk I/O error"}}),
			"refused": {"answered"},
		},
		"delete, storage failed": {
			"facts": object.union(owned, {"job": {"trigger": "delete"}, "ownership": {"error": "disk I/O error"}}),
			"refused": {"answered"},
		},
		"another trigger": {"facts": object.union(owned, {"job": {"trigger": "workspace_delete"}}), "refused": {"trigger"}},
		"no copy": {"facts": object.union(owned, {"job": {"environment": null}}), "refused": set()},
		"the row is another task's": {
			"facts": object.union(owned, {"job": {"environment": null}, "ownership": {"environment": {"task_id": "t-2"}}}),
			"refused": {"environment"},
		},
		"row and copy are another task's": {
			"facts": object.union(owned, {
				"job": {"environment": {"task_id": "t-2"}},
				"ownership": {"environment": {"task_id": "t-2"}},
			}),
			"refused": {"environment"},
		},
		"the copy is another task's": {"facts": object.union(owned, {"job": {"environment": {"task_id": "t-2"}}}), "refused": {"environment"}},
		"the copy is another environment": {"facts": object.union(owned, {"job": {"environment": {"id": "env-2"}}}), "refused": {"environment"}},
		"no id": {
			"facts": object.union(owned, {"job": {"environment": {"id": " "}}, "ownership": {"environment": {"id": " "}}}),
			"refused": {"environment"},
		},
		"no task anywhere": {
			"facts": object.union(owned, {
				"job": {"task_id": "", "environment": {"task_id": ""}},
				"ownership": {"environment": {"task_id": ""}},
			}),
			"refused": {"environment"},
		},
		"archived, and the row is gone": {"facts": gone, "refused": {"environment"}},
		"deleted, and the row is gone": {"facts": object.union(gone, {"job": {"trigger": "delete"}}), "refused": set()},
		"cascade-deleted, and the row is gone": {"facts": object.union(gone, {"job": {"trigger": "cascade_delete"}}), "refused": set()},
		"deleted, and the copy is another task's": {
			"facts": object.union(gone, {"job": {"trigger": "delete", "environment": {"task_id": "t-2"}}}),
			"refused": {"environment"},
		},
		"deleted, and the copy has no id": {
			"facts": object.union(gone, {"job": {"trigger": "delete", "environment": {"id": ""}}}),
			"refused": {"environment"},
		},
		"deleted, and no task anywhere": {
			"facts": object.union(gone, {"job": {"trigger": "delete", "task_id": "", "environment": {"task_id": ""}}}),
			"refused": {"environment"},
		},
		"deleted, and no copy": {
			"facts": object.union(gone, {"job": {"trigger": "delete", "environment": null}}),
			"refused": {"environment"},
		},
		"deleted, and the row is another task's": {
			"facts": object.union(owned, {"job": {"trigger": "delete"}, "ownership": {"environment": object.union(env, {"task_id": "t-2"})}}),
			"refused": {"environment"},
		},
	}
	holds(row.facts, row.refused)
}

test_put_off[name] if {
	begun := object.union(owned, {"moment": "connect", "job": {"begun": true}, "ownership": null})
	some name, row in {
		"begun, before storage is asked": {"facts": begun, "refused": set()},
		"begun, whatever the trigger": {"facts": object.union(begun, {"job": {"trigger": ""}}), "refused": set()},
		"not begun": {"facts": object.union(begun, {"job": {"begun": false}}), "refused": {"terminal", "environment"}},
		"about to remove": {"facts": object.union(begun, {"moment": "remove"}), "refused": {"terminal", "environment"}},
		"storage was asked": {"facts": object.union(begun, {"ownership": {}}), "refused": {"terminal", "environment"}},
	}
	holds(row.facts, row.refused)
}

test_borrowers[name] if {
	some name, row in {
		"of a live task": {"borrower": {"task_id": "t-2", "task_terminal": false}, "refused": {"borrowers"}},
		"of an ended task": {"borrower": {"task_id": "t-2", "task_terminal": true}, "refused": set()},
		"of our own": {"borrower": {"task_id": "t-1", "task_terminal": false}, "refused": set()},
		"of no task": {"borrower": {"task_id": " ", "task_terminal": true}, "refused": {"borrowers"}},
		"of a live task in a claimant's environment": {"borrower": {"task_id": "t-3", "task_terminal": false, "lender": "t-2"}, "refused": {"borrowers"}},
		"of an ended task in a claimant's environment": {"borrower": {"task_id": "t-3", "task_terminal": true, "lender": "t-2"}, "refused": set()},
		"of a live task that lends to itself": {"borrower": {"task_id": "t-2", "task_terminal": false, "lender": "t-2"}, "refused": {"borrowers"}},
		"of an unknown state": {"borrower": {"task_id": "t-2"}, "refused": {"borrowers"}},
	}
	ended := {"task_id": "t-9", "task_terminal": true}
	holds(object.union(owned, {"ownership": {"borrowers": [ended, row.borrower]}}), row.refused)
}

# A claim to our directory by a task that has ended and given it up.
claim := {
	"task_id": "t-2",
	"host": "build.example",
	"port": 22,
	"user": "dev",
	"host_fingerprint": "SHA256:aaa",
	"task_dir": "/home/dev/.kandev/tasks/fix-login",
	"task_terminal": true,
	"stopped": true,
	"opted_in": true,
	"cleanup_open": false,
}

live := object.union(claim, {"task_terminal": false})

bars(one) if holds(object.union(owned, {"ownership": {"claims": [claim, one]}}), {"claims"})

test_what_a_claim_still_is[name] if {
	some name, row in {
		"live": {"change": {"task_terminal": false}, "bars": true},
		"not stopped": {"change": {"stopped": false}, "bars": true},
		"being cleaned up": {"change": {"cleanup_open": true}, "bars": true},
		"not opted in": {"change": {"opted_in": false}, "bars": true},
		"of no task": {"change": {"task_id": " "}, "bars": true},
		"given up": {"change": {}, "bars": false},
		"our own": {"change": {"task_id": "t-1", "task_terminal": false}, "bars": false},
		"our own, unreadable": {"change": {"task_id": "t-1", "task_terminal": false, "unreadable": true}, "bars": false},
		"unreadable": {
			"change": {"task_terminal": false, "unreadable": true, "host": "other.example", "host_fingerprint": ""},
			"bars": true,
		},
		"of a row that says nothing else": {"change": {"task_terminal": null}, "bars": true},
	}
	barred := {true | bars(object.union(claim, row.change))}
	barred == {true | row.bars}
}

test_which_machine[name] if {
	some name, row in {
		"the same name": {"change": {}, "bars": true},
		"another name, another pin": {"change": {"host": "other.example", "host_fingerprint": "SHA256:bbb"}, "bars": false},
		"another name, no pin": {"change": {"host": "other.example", "host_fingerprint": ""}, "bars": false},
		"another name, one pin": {"change": {"host": "other.example"}, "bars": true},
		"one pin with padding": {"change": {"host": "other.example", "host_fingerprint": " SHA256:aaa="}, "bars": true},
		"no name": {"change": {"host": " ", "host_fingerprint": "SHA256:bbb"}, "bars": true},
		"case and a trailing dot": {"change": {"host": "BUILD.example.", "host_fingerprint": "", "port": 0}, "bars": true},
		"the same name, another pin": {"change": {"host_fingerprint": "SHA256:bbb"}, "bars": true},
		"the default port, another pin": {"change": {"host_fingerprint": "SHA256:bbb", "port": 0}, "bars": true},
		"another port": {"change": {"port": 2222}, "bars": true},
		"another port, no pin": {"change": {"port": 2222, "host_fingerprint": ""}, "bars": true},
		"another port, another pin": {"change": {"port": 2222, "host_fingerprint": "SHA256:bbb"}, "bars": false},
	}
	barred := {true | bars(object.union(live, row.change))}
	barred == {true | row.bars}
}

test_our_own_machine[name] if {
	elsewhere := object.union(live, {"host": "other.example"})
	some name, row in {
		"no pins": {"target": {"host_fingerprint": ""}, "claim": object.union(elsewhere, {"host_fingerprint": ""}), "bars": false},
		"no pin of ours": {"target": {"host_fingerprint": ""}, "claim": elsewhere, "bars": false},
		"no pin of ours, another port": {"target": {"host_fingerprint": ""}, "claim": object.union(live, {"port": 2222}), "bars": true},
		"no host of ours": {"target": {"host": ""}, "claim": object.union(elsewhere, {"host_fingerprint": ""}), "bars": true},
		"no hosts, two ports, two pins": {
			"target": {"host": ""},
			"claim": object.union(live, {"host": "", "port": 2222, "host_fingerprint": "SHA256:bbb"}),
			"bars": true,
		},
		"no host of theirs, two ports, two pins": {
			"target": {},
			"claim": object.union(live, {"host": "", "port": 2222, "host_fingerprint": "SHA256:bbb"}),
			"bars": true,
		},
		"no port of theirs, another of ours, two pins": {
			"target": {"port": 2222},
			"claim": object.union(live, {"port": 0, "host_fingerprint": "SHA256:bbb"}),
			"bars": false,
		},
		"no port of ours": {
			"target": {"port": 0},
			"claim": object.union(live, {"host_fingerprint": "SHA256:bbb"}),
			"bars": true,
		},
	}
	facts := object.union(owned, {"target": row.target, "ownership": {"claims": [row.claim]}})
	barred := {true | holds(facts, {"claims"})}
	barred == {true | row.bars}
}

test_spellings_of_one_host[name] if {
	some name in {
		"localhost", "LOCALHOST.", "127.0.0.1", "127.9.8.7", "::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1",
		" localhost ",
	}
	facts := object.union(owned, {
		"target": {"host": "localhost", "host_fingerprint": ""},
		"ownership": {"claims": [object.union(live, {"host": name})]},
	})
	holds(facts, {"claims"})
}

test_spellings_of_one_address[name] if {
	some name in {"2001:db8::7", "[2001:DB8:0:0:0:0:0:7]", "2001:0db8::0007"}
	facts := object.union(owned, {
		"target": {"host": "2001:db8::7", "host_fingerprint": ""},
		"ownership": {"claims": [object.union(live, {"host": name})]},
	})
	holds(facts, {"claims"})
}

test_two_hosts[name] if {
	some name, host in {"2001:db8::7": "2001:db8::8", "localhost": "localhost.example", "10.0.0.1": "10.0.0.2", "10.0.0.3": "10.0.3"}
	facts := object.union(owned, {
		"target": {"host": name, "host_fingerprint": ""},
		"ownership": {"claims": [object.union(live, {"host": host})]},
	})
	holds(facts, set())
}

test_which_directory[dir] if {
	some dir, barred in {
		"/home/dev/.kandev/tasks/fix-login": true,
		"//home/dev/.kandev//tasks/fix-login/": true,
		"/home/dev/.kandev/tasks/Fix-Login": true,
		"/home/dev/.kandev/tasks/fix-login/api": true,
		"/home/dev/.kandev/tasks": true,
		"/HOME/dev": true,
		"/": true,
		"/mnt/big/fix-login": true,
		"/mnt/big/ﬁx-login": false,
		"/home/dev/.kandev/tasks/fix-login2": false,
		"/home/dev/.kandev/tasks/fix": false,
		"/home/dev/.kandev/other": false,
		"/home/dev/.kandev/tasks/fix-login \n": true,
		" /home/dev/.kandev/other ": false,
		"/home/dev/.kandev/tasks/.. ": true,
		"/mnt/fix-login/api": false,
		"": false,
		" ": false,
		"~": true,
		"~dev": true,
		"~/.kandev/tasks": true,
		"~/.kandev/tasks/fix-login": true,
		"~/.kandev/tasks/FIX-login/api": true,
		"~/.kandev/tasks/other": false,
		"$HOME": true,
		"work/other": false,
		"fix-login": true,
		"/srv/../work": false,
		"/srv/./work": false,
		"/srv/..": true,
		"/srv/.": true,
		"/srv/../home": true,
		"/srv/../fix-login/api": true,
	}
	facts := object.union(owned, {"ownership": {"claims": [object.union(live, {"task_dir": dir})]}})
	got := {true | holds(facts, {"claims"})}
	got == {true | barred}
}

test_a_directory_of_ours_without_a_name[dir] if {
	some dir in {"/srv/work", "work", "work/.."}
	facts := object.union(owned, {"target": {"task_dir": "/"}, "ownership": {"claims": [object.union(live, {"task_dir": dir})]}})
	holds(facts, {"claims"})
}

test_a_refusal_names_the_barrier_and_says_why if {
	every refusal in ownership.refusals {
		refusal.barrier == "ownership"
		count(refusal.says) > 20
	}
		with input as {}
}
