# ended HOW WHAT: the answer's end.
ended() {
	look "$tasks" "$segment"
	opening settle
	record about "$about"
	record target "$seen"
	field "${2-}"
	record settled "$1" "$field" "${bytes:-0}" "${entries:-0}"
	closing
	exit 0
}

# finish: what remains of a committed removal.
finish() {
	status=0
	if there x; then
		live "$tasks/$holder/x"
		[ -z "$lives" ] || ended live "$lives"
		mounted "$tasks/$holder/x" || ended unseen mounts
		[ -z "$mount" ] || ended mount "$mount"
		newer
		[ -z "$new" ] || ended newer "$new"
		tree x
		entries=$count
		erase
		gone || ended left "$tasks/$holder/x"
	fi
	unregister
	[ -z "$stuck" ] || ended stuck "$stuck"
	[ "$status" = 0 ] || how=complained
}

# newer: something in x that was written after the mark, in $new. Directories
# do not count: taking entries out of one makes it newer. Where find can ask,
# a date in the future that was there before does not count either, and what
# was born after the mark does. Nor does a file of an object store that has
# another name elsewhere: whoever has that name may have used it again.
newer() {
	set -- -newer mark
	! find mark -cnewer mark >/dev/null 2>&1 || set -- -newer mark -cnewer mark
	! find mark -newerBm mark >/dev/null 2>&1 || set -- \( "$@" \) -o -newerBm mark
	new=$(find x ! -type d \( "$@" \) ! \( -path '*/objects/*' ! -links 1 \) -print 2>/dev/null | sed 1q)
}

main() {
	speak
	tasks=$root/tasks
	now=$(date +%s)
	case $now in '' | *[!0-9]*) ended unseen clock ;; esac
	enter "$root" || ended unseen tasks
	look . "$holder"
	case $seen in
	directory) ;;
	absent) ended other none ;;
	*) ended contradictory no_directory ;;
	esac
	cd -P "./$holder" 2>/dev/null && [ -r . ] && [ "$PWD" = "$tasks/$holder" ] || ended contradictory unreadable
	claimed
	if [ "$last" -gt 0 ] && alive "g$last"; then ended alive "$claim"; fi
	survey
	[ "$state" = contradictory ] && ended contradictory "$why"
	[ "$state" = "$expected_state" ] || ended other "$state"
	claim settle || {
		[ "$state" = empty ] && unclaimed && ended empty
		ended other claimed
	}
	# The claim makes us the only one here; what stood before it may be gone.
	survey
	[ "$state" = "$expected_state" ] || ended other "$state"
	how=$state
	case $state in
	empty) closed ;;
	quarantined) back || ended held "$tasks/$holder/q" ;;
	committed) finish ;;
	esac
	drop
	look "$tasks" "$holder"
	[ "$seen" = absent ] || ended left "$tasks/$holder"
	ended "$how"
}
main
