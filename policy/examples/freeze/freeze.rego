# METADATA
# title: Freeze
# description: >-
#   Nothing is removed on weekends, and from the 20th of December to the 2nd of
#   January. The job waits and tries again. The time is the attempt's start, a
#   fact like the others: the policy has no clock.
package operator.freeze

deny contains {"message": "no removals on weekends", "retry": true} if {
	time.weekday([input.time * 1000000000, "UTC"]) in {"Saturday", "Sunday"}
}

deny contains {"message": "no removals between the years", "retry": true} if frozen

frozen if {
	[_, month, day] := time.date([input.time * 1000000000, "UTC"])
	month == 12
	day >= 20
}

frozen if {
	[_, month, day] := time.date([input.time * 1000000000, "UTC"])
	month == 1
	day <= 2
}
