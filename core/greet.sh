squeeze() {
	p=$1
	while :; do
		case $p in
		*//*) p=${p%%//*}/${p#*//} ;;
		?*/) p=${p%/} ;;
		*) break ;;
		esac
	done
}

# root_seen: what stands at the root; absent also where a parent is missing.
root_seen() {
	p=$root
	while :; do
		look "${p%/*}" "${p##*/}"
		[ "$seen" = unreadable ] && ! there "${p%/*}" || break
		p=${p%/*}
		[ -n "$p" ] || break
	done
	[ "$p" = "$root" ] || [ "$seen" = absent ] || seen=unreadable
}

main() {
	home=${HOME-} physical='' target=unseen held=unseen claim='' why=''
	squeeze "$home" && home=$p
	case $root in
	'~') root=$home ;;
	'~/'*) root=$home/${root#'~/'} ;;
	esac
	squeeze "$root" && root=$p
	squeeze "$dir" && dir=$p
	now=$(date +%s)
	git=$(git version 2>/dev/null)
	case $root in
	/?*) root_seen ;;
	*) seen=unreadable ;;
	esac
	at=$seen
	case $at in
	absent) ;;
	directory | symlink)
		enter "$root" && inside=yes || inside=no
		at=$seen
		[ "$inside" = yes ] || [ "$at" != directory ] || at=unreadable
		case $at in
		directory) physical=${tasks%/tasks} ;;
		*) physical=$(cd -P "$root" 2>/dev/null && pwd -P) ;;
		esac
		[ -n "$physical" ] || [ "$at" = unreadable ] || physical=/
		;;
	*) at=unreadable ;;
	esac
	if [ "$at" = directory ] && [ -n "$segment" ] && [ "$dir" = "$root/tasks/$segment" ]; then
		look . "$segment" && target=$seen
		look . "$holder"
		case $seen in
		absent) held=none ;;
		directory)
			held=contradictory why=unreadable
			if cd -P "./$holder" 2>/dev/null && [ -r . ] && [ "$(pwd -P)" = "$tasks/$holder" ]; then
				claimed
				survey
				held=$state
				if [ "$last" -gt 0 ] && alive "g$last"; then held=alive why=''; fi
			fi
			;;
		unreadable) held=contradictory why=unreadable ;;
		*) held=contradictory why=no_directory ;;
		esac
	fi
	say home "$(field "$home")"
	say root "$(field "$physical")"
	say platform "$(field "$(uname -s)")"
	say git "$(field "${git#git version }")"
	say clock "$now"
	say tasks "$at"
	say target "$target"
	say holder "$held" "$(field "$claim")" "$(field "$why")"
	answer greet
}
main
