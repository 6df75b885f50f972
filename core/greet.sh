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
		up=${p%/*}
		look "${up:-/}" "${p##*/}"
		[ "$seen" = unreadable ] && [ -n "$up" ] && ! there "$up" || break
		p=$up
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
		*) cd -P "$root" 2>/dev/null && physical=$PWD ;;
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
			if cd -P "./$holder" 2>/dev/null && [ -r . ] && [ "$PWD" = "$tasks/$holder" ]; then
				speak
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
	opening greet
	field "$home" && record home "$field"
	field "$physical" && record root "$field"
	system
	field "$system" && record platform "$field"
	field "${git#git version }" && record git "$field"
	record clock "$now"
	record tasks "$at"
	record target "$target"
	field "$claim" && set -- "$field" && field "$why" && record holder "$held" "$1" "$field"
	closing
}
main
