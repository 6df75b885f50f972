# ended HOW [WHAT]: the answer's end.
ended() {
	say ended "$1" "$(field "${2-}")"
	answer remove
	exit 0
}

# withdraw HOW [WHAT]: nothing was moved, or it has its name again; so the
# holder goes, too.
withdraw() {
	drop
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
		mv -f -- "../$segment" q
	) >/dev/null 2>&1
	case $plan in *' closed') [ -L q ] || chmod u-w q 2>/dev/null ;; esac
	look .. "$segment"
	[ "$seen" = absent ] && [ "$(identity q)" = "${plan% *}" ] && return 0
	closed
	there q || withdraw immovable
	if [ "$seen" = absent ]; then
		# What was taken is not what was inspected.
		plan="$(identity q) open"
		back || ended held "$tasks/$holder/q"
		withdraw copied
	fi
	# The target is where it was, so q is what mv copied before it was stopped.
	[ "$(identity "../$segment")" = "${plan% *}" ] && [ ! -L q ] && rm -rf -- q 2>/dev/null
	there q && ended held "$tasks/$holder/q"
	withdraw immovable
}

main() {
	tasks=$root/tasks
	now=$(date +%s)
	case $now in '' | *[!0-9]*) ended no_clock ;; esac
	[ "$now" -le "$not_after" ] || ended late "$now"
	enter "$root" || ended "tasks_$seen"
	look . "$segment"
	[ "$seen" = directory ] || ended "target_$seen"
	there "./$holder" && occupied
	is=$(identity "./$segment")
	[ "$is" = "$device $inode" ] || ended replaced
	is=$(identity .)
	[ "${is% *}" = "$device" ] || ended mount "$tasks/$segment"
	mounted "$tasks/$segment" || ended no_mounts
	[ -z "$mount" ] || ended mount "$mount"
	uid=$(id -u)
	foreign=$(find "./$segment" ! -user "$uid" -print 2>/dev/null | sed 1q)
	[ -z "$foreign" ] || ended foreign "$foreign"
	busy "./$segment" "$tasks/$segment"
	[ -z "$lives" ] || ended live "$lives"

	mkdir "./$holder" 2>/dev/null || {
		there "./$holder" && occupied
		ended no_holder
	}
	cd -P "./$holder" 2>/dev/null && [ "$(pwd -P)" = "$tasks/$holder" ] || ended no_holder
	claim remove || ended busy
	[ "$mine" = 1 ] || occupied
	plan="$device $inode open"
	[ -w "../$segment" ] || plan="$device $inode closed"
	note plan "$plan" && register || withdraw no_note

	quarantine
	busy q "$tasks/$holder/q"
	[ -z "$lives" ] || restore live "$lives"
	: >mark || restore no_note
	manifested q
	[ "$manifest" = "$digest $count" ] || restore changed "$manifest"
	mounted "$tasks/$holder/q" || restore no_mounts
	[ -z "$mount" ] || restore mount "$mount"

	mv -f -- q x 2>/dev/null
	there x && ! there q && [ "$(identity x)" = "$device $inode" ] || ended held "$tasks/$holder"
	weigh
	erase
	say rm "$status"
	say freed "$bytes" "$entries"
	! there x || ended left "$(rm -rf -- x 2>&1 | sed 1q)"
	unregister
	[ -z "$stuck" ] || ended stuck "$stuck"
	drop
	look "$tasks" "$segment" && say target "$seen"
	look "$tasks" "$holder" && say holder "$seen"
	ended gone
}
