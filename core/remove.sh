# ended HOW [WHAT]: the answer's end.
ended() {
	opening remove
	record about "$about"
	if [ -n "${status-}" ]; then
		record rm "$status"
		record freed "$bytes" "$entries"
		look "$tasks" "$segment" && record target "$seen"
		look "$tasks" "$holder" && record holder "$seen"
	fi
	field "${2-}"
	record ended "$1" "$field"
	closing
	exit 0
}

# withdraw HOW [WHAT]: nothing was moved, or it has its name again; so the
# holder goes, too. Where it stays, somebody must come back for it.
withdraw() {
	drop || ended occupied "$tasks/$holder"
	ended "$@"
}

# restore HOW [WHAT]: put the directory back and say why.
restore() {
	back || ended held "$tasks/$holder/q"
	withdraw "$@"
}

# quarantine: rename the target to q. The limit lets a rename through and stops
# a mv that would copy.
quarantine() {
	case $plan in *' closed') chmod u+w "../$segment" ;; esac
	(
		ulimit -c 0
		ulimit -f 0
		exec mv -f -- "../$segment" q
	) >/dev/null 2>&1
	case $plan in *' closed') [ -L q ] || chmod u-w q 2>/dev/null ;; esac
	look .. "$segment"
	[ "$seen" = absent ] && same q "${plan% *}" && return 0
	closed
	there q || withdraw immovable
	if [ "$seen" = absent ]; then
		# What was taken is not what was inspected.
		identity q
		plan="$identity open"
		back || ended held "$tasks/$holder/q"
		withdraw copied
	fi
	# The target is where it was, so q is what mv copied before it was stopped.
	same "../$segment" "${plan% *}" && [ ! -L q ] && rm -rf -- q 2>/dev/null
	there q && ended held "$tasks/$holder/q"
	withdraw immovable
}

# refused HOW [WHAT]: no holder was made. Whoever comes too late hears that first.
refused() {
	clock
	[ -z "$late" ] || ended "$late" "$now"
	ended "$@"
}
# clock: the host's, in $now; and in $late why it lets no removal begin, if it does not.
clock() {
	late='' now=$(date +%s)
	case $now in
	'' | *[!0-9]*) late=no_clock now='' ;;
	*) [ "$now" -le "$not_after" ] || late=late ;;
	esac
}

# occupied: another's holder is there.
occupied() {
	look . "$holder"
	[ "$seen" != directory ] || ! cd -P "./$holder" 2>/dev/null || {
		claimed
		if [ "$last" -gt 0 ] && alive "g$last"; then refused busy "$claim"; fi
	}
	refused occupied "$tasks/$holder"
}

# busy DIR PATH: whoever works in DIR, whose path is PATH, in $lives: by the
# process table, or by a pid file a session left there.
busy() {
	live "$2"
	for f in "$1"/.kandev/sessions/*/*.pid; do
		[ -z "$lives" ] && there "$f" || continue
		[ ! -p "$f" ] || continue # it would be waited for
		pid='?'
		read -r pid 2>/dev/null <"$f" || [ -n "$pid" ] || pid='?'
		case $pid in
		'' | *[!0-9]*) [ ! -r "$f" ] && lives=$f ;;
		*) ! runs "$pid" || lives=$f ;;
		esac
	done
}

main() {
	tasks=$root/tasks
	[ -n "$expected" ] && [ -n "$taken" ] || ended unasked
	enter "$root" || refused "tasks_$seen"
	look . "$segment"
	[ "$seen" = directory ] || refused "target_$seen"
	there "./$holder" && occupied
	speak "./$segment" .
	[ "$identity" = "$expected" ] || refused replaced
	[ "$above" = "${expected% *}" ] || refused mount "$tasks/$segment"
	mounted "$tasks/$segment" || refused no_mounts
	[ -z "$mount" ] || refused mount "$mount"
	ourselves
	foreign=$(find "./$segment" ! -user "$uid" -print 2>/dev/null)
	[ -z "$foreign" ] || refused foreign "${foreign%%"$newline"*}"
	busy "./$segment" "$tasks/$segment"
	[ -z "$lives" ] || refused live "$lives"

	mkdir "./$holder" 2>/dev/null || {
		there "./$holder" && occupied
		ended no_holder
	}
	cd -P "./$holder" 2>/dev/null && [ "$PWD" = "$tasks/$holder" ] || ended no_holder
	# Only now: the looks last as long as they like, and whoever saw no holder after
	# the limit counts on it that none is made any more.
	clock
	[ -z "$late" ] || {
		unclaimed
		ended "$late" "$now"
	}
	claim remove || { unclaimed && ended no_note; ended busy; }
	survey
	[ "$mine" = 1 ] && [ "$state" = empty ] && [ -z "$plan" ] || {
		rm -f "g$mine"
		ended occupied "$tasks/$holder"
	}
	plan="$expected open"
	[ -w "../$segment" ] || plan="$expected closed"
	note plan "$plan" && register || withdraw no_note

	quarantine
	busy q "$tasks/$holder/q"
	[ -z "$lives" ] || restore live "$lives"
	# Not ":", which ends a shell where it cannot be redirected.
	true 2>/dev/null >mark || restore no_note
	again "$tasks/$holder/q"
	[ "$walked" = 0 ] && [ "$digest $count" = "$taken" ] || restore changed "$digest $count $walked"
	mounted "$tasks/$holder/q" || restore no_mounts
	[ -z "$mount" ] || restore mount "$mount"

	mv -f -- q x 2>/dev/null
	there x && ! there q && same x "$expected" || ended held "$tasks/$holder"
	erase
	gone || ended left "$(rm -rf -- x 2>&1 | sed 1q)"
	unregister
	[ -z "$stuck" ] || ended stuck "$stuck"
	drop
	ended gone
}
main
