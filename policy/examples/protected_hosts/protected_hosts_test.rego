package operator.protected_hosts_test

import data.operator.protected_hosts

test_hosts[host] if {
	some host, protected in {
		"build-1.example.com": true,
		"BUILD-1.example.com.": true,
		"db.prod.example.com": true,
		"build-2.example.com": false,
		"prod.example.com": false,
		"notprod.example.com": false,
		"build-1.example.com.evil.org": false,
	}
	count(protected_hosts.deny) == count({true | protected}) with input as {"target": {"host": host}}
}

test_a_known_key if {
	pin := "SHA256:REPLACE-WITH-THE-FINGERPRINT-OF-A-PROTECTED-HOST"
	count(protected_hosts.deny) == 1 with input as {"target": {"host": "10.0.0.9", "host_fingerprint": pin}}
}
