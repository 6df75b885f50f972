# What the four scripts of a removal share. holder.go holds the state table.
# What is asked for before it is set is not taken from the account's environment.
status='' bytes='' entries='' node=''
there() { [ -e "$1" ] || [ -L "$1" ]; }

# look DIR NAME: what stands at DIR/NAME, in $seen. Absent is said only of a
# directory that can be read and searched and does not list the name: what is
# there may be out of sight (a dead FUSE mount, a bad disk).
look() {
	if [ -L "$1/$2" ]; then
		seen=symlink
	elif [ -d "$1/$2" ]; then
		seen=directory
	elif [ -e "$1/$2" ]; then
		seen=other
	elif [ -d "$1" ] && [ -r "$1" ] && [ -x "$1" ]; then
		seen=absent
		for listed in "$1/${2%?}"?*; do [ "$listed" != "$1/$2" ] || seen=unreadable; done
	else
		seen=unreadable
	fi
}

# enter ROOT: stand in ROOT/tasks, its physical path in $tasks. Otherwise why
# not, in $seen.
enter() {
	look "$1" tasks
	[ "$seen" = directory ] || return 1
	seen=unreadable
	cd -P "$1" 2>/dev/null && tasks=${PWD%/}/tasks || return 1
	cd -P "$1/tasks" 2>/dev/null && [ -r . ] && [ -x . ] && [ "$PWD" = "$tasks" ] && seen=directory
}

# born PID: when a process began, in $born; empty when there is none or it is a
# zombie, ? when it is there and does not say.
born() {
	born=
	if [ -r /proc/self/stat ]; then
		if [ -r "/proc/$1/stat" ]; then
			# A program's name, in its brackets, may hold anything.
			stat=''
			while IFS= read -r word || [ -n "$word" ]; do stat="$stat $word"; done 2>/dev/null <"/proc/$1/stat" || return 0
			stat=${stat##*') '}
			case $stat in '' | [ZX]*) return 0 ;; esac
			set -f
			# shellcheck disable=SC2086 # its words are wanted
			set -- $stat
			set +f
			born=${20-?}
			return 0
		fi
	else
		born=$(ps -o lstart= -p "$1" 2>/dev/null | tr -s ' ,' __)
		[ -z "$born" ] || return 0
	fi
	! runs "$1" || born='?'
}

# here: which machine this is, and since when it runs, in $node and $boot.
here() {
	node
	case $node in '' | *[!A-Za-z0-9._-]*) node='?' ;; esac
	boot='?'
	if [ -r /proc/sys/kernel/random/boot_id ]; then
		read -r boot </proc/sys/kernel/random/boot_id
	else
		boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null)
	fi
	case $boot in '' | *[!A-Za-z0-9-]*) boot='?' ;; esac
	boot=${boot%%-*}
	born 1
	boot=$boot.${born:-?}
}

# content LINK: what a note says; notes are dangling links, whole or absent,
# made without taking a block of the disk, never over one that is there.
content() { c=$(readlink "$1" && echo .) && c=${c%??} && c=${c#=}; }
note() { ln -s "=$2" "$1" 2>/dev/null; }

# claimed: the newest claim in this holder, in $last; 0 when there is none.
claimed() {
	last=0
	for g in g[0-9]*; do
		g=${g#g}
		case $g in '' | *[!0-9]* | ??????????*) continue ;; esac
		[ ! -L "g$g" ] || [ "$g" -le "$last" ] || last=$g
	done
}

# alive CLAIM: the process that made the claim may still be at work. A claim
# is KIND,PID,BORN,NODE,BOOT,TIME,ATTEMPT,JOB.
alive() {
	content "$1" || return 0
	claim=$c
	set -f
	IFS=,
	# shellcheck disable=SC2086 # its words are wanted
	set -- $c
	unset IFS
	set +f
	[ $# -ge 8 ] || return 0
	case $2$6 in '' | *[!0-9]*) return 0 ;; esac
	[ -n "${node-}" ] || here
	if [ "$4" != "$node" ]; then
		now=$(date +%s)
		case $now in '' | *[!0-9]*) return 0 ;; esac
		[ "$now" -lt $(($6 + 21600)) ]
		return
	fi
	case $5$boot in *'?'*) ;; *) [ "$5" = "$boot" ] || return 1 ;; esac
	born "$2"
	case $born in
	'') return 1 ;;
	'?') return 0 ;;
	esac
	[ "$3" = '?' ] || [ "$3" = "$born" ]
}

# claim KIND: become the holder's one owner, or fail. The link's name makes it
# one, its content says who, both in one step.
claim() {
	[ -n "${node-}" ] || here
	born $$
	claimed
	mine=$((last + 1))
	note "g$mine" "$1,$$,${born:-?},$node,$boot,$now,$who" || return 1
	claimed
	[ "$last" = "$mine" ] && return 0
	rm -f "g$mine"
	return 1
}

# same PATH IDENTITY: PATH is what has that device and inode.
same() {
	identity "$1"
	[ -n "$identity" ] && [ "$identity" = "$2" ]
}

# survey: what the holder we stand in is, in $state, and what is wrong with
# it, in $why. The state table in holder.go is the same in words.
survey() {
	state=contradictory why='' plan=''
	for f in * .[!.]* ..?*; do
		case $f in
		q | x | mark) there "$f" || why=unseen ;;
		plan | g[0-9]* | r[0-9]*) [ -L "$f" ] || ! there "$f" || why=unknown_name ;;
		*) ! there "$f" || why=unknown_name ;;
		esac
	done
	[ -z "$why" ] || return 0
	if [ -L plan ] && content plan; then plan=$c; fi
	if [ -L mark ] || { [ -e mark ] && [ ! -f mark ]; }; then
		why=mark
	elif there q && there x; then
		why=both
	elif there q; then
		look .. "$segment"
		if [ -L q ] || [ ! -d q ]; then
			why=tombstone
		elif [ "$seen" != absent ]; then
			why=target_beside
		elif [ -z "$plan" ] || ! same q "${plan% *}"; then
			why=plan
		else
			state=quarantined
		fi
	elif there x; then
		if [ -L x ] || [ ! -d x ]; then
			why=tombstone
		elif [ ! -f mark ] || [ -z "$plan" ] || ! same x "${plan% *}"; then
			why=plan
		else
			state=committed
		fi
	elif [ -f mark ]; then
		[ -n "$plan" ] && state=committed || why=plan
	else
		state=empty
	fi
}

# unclaimed: take away the holder we stand in, which holds nothing; otherwise fail.
unclaimed() { cd -P .. 2>/dev/null && rmdir "./$holder" 2>/dev/null; }

# drop: leave a holder without tombstones, and take it away. Our own claim
# goes last.
drop() {
	set -- r[0-9]* mark plan
	claimed
	for g in g[0-9]*; do
		[ "$g" = "g$mine" ] || set -- "$@" "$g"
	done
	rm -f -- "$@" "g$mine" 2>/dev/null
	cd -P .. && rmdir "./$holder" 2>/dev/null
}

# back: the quarantined directory gets its name again. Fails where the name is
# taken or what lies there then is not what was taken away.
back() {
	look .. "$segment"
	[ "$seen" = absent ] || return 1
	rm -f mark 2>/dev/null
	case $plan in *' closed') chmod u+w q ;; esac
	mv -nT -- q "../$segment" 2>/dev/null
	if there q; then
		look .. "$segment"
		[ "$seen" = absent ] && mv -f -- q "../$segment" 2>/dev/null
		# A name taken in that moment turns the rename into a move below it.
		! there "../$segment/q" || ! same "../$segment/q" "${plan% *}" || mv -f -- "../$segment/q" q
	fi
	same "../$segment" "${plan% *}" && ! there q || return 1
	closed
}

# closed: take again the permission that the plan says the target's owner did
# not have.
closed() {
	case $plan in
	*' closed')
		[ -L "../$segment" ] || ! same "../$segment" "${plan% *}" || chmod u-w "../$segment"
		;;
	esac
}

# live DIR: a process at work in DIR, in $lives; empty where none can be seen.
live() {
	lives=
	if [ -r /proc/self/stat ]; then
		if [ "$dialect" = 'printf' ]; then
			glob=$1
			case $1 in *[][*?\\]*) glob=$(printf '%s\n' "$1" | sed 's/[][*?\\]/\\&/g') ;; esac
			lives=$(find /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe /proc/[0-9]*/fd -maxdepth 1 \
				\( -lname "$glob" -o -lname "$glob/*" \) 2>/dev/null)
			lives=${lives%%"$newline"*}
		else
			for p in /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe; do
				case $(readlink "$p" 2>/dev/null) in
				"$1" | "$1"/*) lives=$p && break ;;
				esac
			done
		fi
	elif command -v lsof >/dev/null 2>&1; then
		lives=$(lsof -w -n -P -F n 2>/dev/null | while IFS= read -r p; do
			case $p in ("n$1" | "n$1"/*) printf '%s' "${p#n}" && break ;; esac
		done)
	fi
}

# mounted DIR: a mount at or below DIR, in $mount; fails where mounts cannot be
# seen.
mounted() {
	mount=
	seen=
	if [ -r /proc/self/mountinfo ]; then
		while read -r _ _ _ _ at _; do
			seen=yes
			case $at in *\\*) at=$(printf '%b.' "$(printf %s "$at" | sed 's/\\/\\0/g')") && at=${at%.} ;; esac
			case $at in "$1" | "$1"/*) mount=$at ;; esac
		done </proc/self/mountinfo
	else
		table=$(command mount 2>/dev/null)
		while IFS= read -r at; do
			[ -z "$at" ] || seen=yes
			case $at in *" on $1 "* | *" on $1/"*) mount=${at#* on } ;; esac
		done <<END
$table
END
	fi
	[ -n "$seen" ]
}

# gone: nothing is called x here, not even what cannot be looked at.
gone() {
	look . x
	[ "$seen" = absent ]
}

# erase: x and everything below it. Directories are opened to their owner here
# and nowhere else; files are not touched, they may be linked elsewhere. Where
# a tree is too deep for rm, its deep parts are first moved up.
erase() {
	rm -rf -- x 2>/dev/null
	status=$?
	! gone || return 0
	find x -type d ! -perm -700 -exec chmod u+rwx {} \; 2>/dev/null
	rm -rf -- x 2>/dev/null
	status=$?
	! gone || return 0
	dig x
	n=1
	while there "x/up$n"; do
		dig "x/up$n"
		n=$((n + 1))
	done
	rm -rf -- x 2>/dev/null
	status=$?
}

# dig DIR: move what lies forty directories below DIR up into x.
dig() {
	find "$1" -mindepth 40 -maxdepth 40 -type d -exec sh -c '
		n=1
		while [ -e "x/up$n" ] || [ -L "x/up$n" ]; do n=$((n + 1)); done
		mv -f -- "$1" "x/up$n"' sh {} \; 2>/dev/null
}

# unregister: the worktree registrations the plan recorded, each only where it
# still speaks of the directory that is gone. gitdir goes last, so that an
# interrupted run is finished by the next. What could not be done, in $stuck.
unregister() {
	stuck='' r=1
	while [ -L "r$r.name" ]; do
		content "r$r.dir" && common=$c && content "r$r.file" && file=$c && content "r$r.name" || {
			stuck=plan
			return 0
		}
		admin=$common/worktrees/$c
		r=$((r + 1))
		there "$admin" || {
			look "$common" worktrees
			case $seen in absent) continue ;; esac
			look "$common/worktrees" "$c"
			[ "$seen" = absent ] || stuck=$admin
			continue
		}
		if [ -L "$common/worktrees" ] || [ -L "$admin" ] || [ ! -d "$admin" ]; then
			stuck=$admin
			continue
		fi
		if there "$admin/gitdir"; then
			[ ! -L "$admin/gitdir" ] && [ "$(cat "$admin/gitdir" 2>/dev/null)" = "$file" ] || continue
			# A checkout made there meanwhile needs it.
			case $file in /*) ;; *) file=$admin/$file ;; esac
			! there "$file" || continue
			set --
			for f in "$admin"/* "$admin"/.[!.]* "$admin"/..?*; do
				[ "$f" = "$admin/gitdir" ] || ! there "$f" || set -- "$@" "$f"
			done
			[ $# -eq 0 ] || rm -rf -- "$@" 2>/dev/null
			set -- "$admin"/* "$admin"/.[!.]* "$admin"/..?*
			[ "$*" = "$admin/gitdir $admin/.[!.]* $admin/..?*" ] && rm -f -- "$admin/gitdir" 2>/dev/null
		fi
		rmdir "$admin" 2>/dev/null
		! there "$admin" || stuck=$admin
	done
}
