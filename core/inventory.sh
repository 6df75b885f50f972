# The inventory of one target: what it holds and what would be lost with it.
# root and segment are set before this; every function called probe_NAME answers
# the row NAME of the table in inventory.go. Nothing here writes.

# at TREE GITDIR ARGUMENT...: git there and nowhere else, with everything off that
# would run a program, write, or bend an answer.
at() {
	at_tree=$1 at_gitdir=$2
	shift 2
	command git --no-pager --no-replace-objects --no-optional-locks -C "$at_tree" --git-dir="$at_gitdir" --work-tree="$at_tree" \
		-c core.fsmonitor= -c core.untrackedCache=false -c core.ignoreCase=false -c core.fileMode=true -c core.trustctime=true \
		-c core.checkStat=default -c core.warnAmbiguousRefs=false -c core.commitGraph=false -c core.splitIndex=false -c core.hooksPath=/dev/null -c core.sshCommand=false \
		-c status.renames=false -c diff.renames=false -c status.branch=false -c status.submoduleSummary=false -c submodule.recurse=false \
		-c log.showSignature=false -c gpg.program=false -c color.ui=false -c gc.auto=0 -c maintenance.auto=false -c protocol.allow=never "$@"
}
gs() { at "$W" "$D" "$@"; }
g() { at "$W" "$D" "$@" </dev/null; }

# gf ARGUMENT...: gs with every filter off that the settings name.
gf() {
	rest_name=$settings
	while :; do
		case $rest_name in *"${newline}filter "*) rest_name=${rest_name#*"${newline}filter "} ;; *) break ;; esac
		name=${rest_name%%"$newline"*}
		set -- -c "filter.$name.clean=" -c "filter.$name.smudge=" -c "filter.$name.process=" -c "filter.$name.required=false" "$@"
	done
	gs "$@"
}

# physical DIR: leaves the directory DIR leads to in $physical, or fails. Nobody
# here stands anywhere but at the root meanwhile, least of all in the target.
physical() {
	physical=''
	cd -P "$1" 2>/dev/null || return 1
	physical=$PWD
	cd / && case $physical in /*) ;; *) false ;; esac
}

# inside PATH DIR: PATH is DIR or lies below it.
inside() {
	case $1 in "$2" | "$2"/*) return 0 ;; esac
	return 1
}

# line FILE: leaves the first line of FILE in $line.
line() {
	line=''
	[ -f "$1" ] && [ -r "$1" ] || return 1
	IFS= read -r line <"$1" || [ -n "$line" ]
}

# label PATH: leaves PATH as people name it in $label: below the target, or whole.
label() {
	case $1 in
	"$T") label=. ;;
	"$T"/*) label=${1#"$T"/} ;;
	*) label=$1 ;;
	esac
	field "$label"
	label=$field
}

probe_host() {
	system
	node
	ourselves
	field "$system" && system=$field
	said=$(command git version 2>/dev/null </dev/null)
	case $said in 'git version '*) ;; *) said=$({ command git version; } 2>&1 </dev/null) ;; esac
	field "$said"
	record host "$system" "${uid:-x}" "$dialect" "$field"
}

# Leaves the physical root in $P, the target in $T, and how it stands in $shape.
probe_shape() {
	shape=directory
	if ! physical "$root"; then
		shape=root_missing
	elif P=${physical%/} && T=$P/tasks/$segment && [ -L "$P/tasks" ]; then
		shape=tasks_symlink
	elif [ ! -d "$P/tasks" ]; then
		shape=tasks_missing
	elif [ -L "$T" ]; then
		shape=symlink
	elif [ ! -e "$T" ]; then
		shape=absent
		[ -r "$P/tasks" ] && [ -x "$P/tasks" ] || shape=unreadable
	elif [ ! -d "$T" ]; then
		shape=other
	elif ! physical "$T"; then
		shape=unreadable
	elif [ "$physical" != "$T" ]; then
		shape=elsewhere
	elif [ ! -e "$T/.git" ] && [ ! -L "$T/.git" ]; then
		shape=no_repository
		up=$P/tasks
		while :; do
			[ -e "$up/.git" ] && shape=enclosed && break
			[ -z "$up" ] && break
			up=${up%/*}
		done
	fi
	case $shape in directory) speak "$T" ;; *) speak ;; esac
	probe_host
	record shape "$shape"
}

# survey DIR MODE: one pass over DIR's listing. The digest is of exactly the lines
# the rest is drawn from. Lines for the shell: KIND REST, REST an absolute path. In
# the target's survey, what the host says of processes and mounts follows.
survey() {
	{
		listing "$1"
		cd /
		[ "$2" != target ] || processes
	} | top=$1 uid=$uid mode=$2 awk "$lasting"'
		BEGIN {
			hash = "exec git -C / hash-object --stdin"; top = ENVIRON["top"]; uid = ENVIRON["uid"]; mode = ENVIRON["mode"]
			# How a name ends that is worth a closer look.
			n = split("HEAD .git lock .pid /pid ects pack info", w, " ")
			for (k = 1; k <= n; k++) telling[w[k]] = 1
			# disposable: telling
			n = 0
		}
		function within(p) { return p == top || substr(p, 1, length(top) + 1) == top "/" }
		sane {
			if (substr($0, 1, 1) == "n") { all++; if (within(substr($0, 2))) alive++; next }
			i = index($0, " -> ")
			if (!i) next
			all++
			to = substr($0, i + 4)
			sub(/ \(deleted\)$/, "", to)
			if (within(to)) { p = substr($0, index($0, "/proc/") + 6); sub(/\/.*/, "", p); if (!(p in was)) { was[p] = 1; alive++ } }
			next
		}
		{
			print (index($0, "/objects/") ? lasting() : $0) | hash
			lines++
			type = substr($0, 1, 1)
		}
		index("twn", type) {
			if (type == "w") { walked = $2; sane = 1 }
			else if ($1 == "newline-repository") newlines++
			else if (type == "n") { n++; if ($6 != uid) { foreign++; foreigner = "" } if ($2 ~ /^[-f]/ && $7 == 1) bytes += $4 }
			next
		}
		{
			n++
			m = length($4)
			owner = m < 3 ? 0 : substr($4, m - 2, 1)
			end = substr($0, length($0) - 3)
			file = type == "f" || type == "-"
			if (file) {
				if ($6 == 1) bytes += $3
				if (owner >= 4 && $5 == uid && !(end in telling)) next
			}
			p = substr($0, index($0, " ./") + 2)
			if ($5 != uid && !foreign++) foreigner = p
			if (file) {
				if (owner < 4 && !dark++) darkest = p
			} else if (type == "d") {
				if (owner != 5 && owner != 7 && !dark++) darkest = p
				if (end in telling) {
					if (p ~ /\/objects$/) store[substr(p, 1, length(p) - 8)] = 1
					else if (p ~ /\/objects\/(pack|info)$/) kept[substr(p, 1, length(p) - 13)]++
				}
				if (index(p, "/worktrees/") && p ~ /\/worktrees\/[^\/]*$/ && p !~ /\/objects(\/(pack|info))?$/) admin[++admins] = p
			} else if (type == "l") {
				if (end == "ects" && p ~ /\/objects$/) store[substr(p, 1, length(p) - 8)] = 1
				if (p ~ /^\/\.kandev\//) link[++links] = p
			}
			# disposable: entry
			if (end in telling) {
				if (p ~ /\/HEAD$/ && type != "d") head[substr(p, 1, length(p) - 5)] = 1
				else if (p ~ /\/\.git$/) { print "checkout " top substr(p, 1, length(p) - 5); gitdir[p] = 1 }
				else if (p ~ /\.lock$/ && type != "d") lock[++locks] = p
				else if (p ~ /^\/\.kandev\/sessions\/.*[.\/]pid$/) print "session " top p
				if (p ~ /\001/ && p ~ /(\/\.git|\/objects)$/) newlines++
			}
		}
		END {
			for (d in store) if (d in head || kept[d] == 2) { print "store " top d; gitdir[d] = 1 }
			for (i = 1; i <= admins; i++) {
				d = admin[i]
				sub(/\/worktrees\/[^\/]*$/, "", d)
				if (d in gitdir) print "admin " top admin[i]
			}
			for (i = 1; i <= locks; i++) {
				d = lock[i]
				while (sub(/\/[^\/]*$/, "", d) && d != "") if (d in gitdir || mode == "gitdir") { if (!locked++) lockfile = lock[i]; break }
			}
			if (mode == "gitdir" && !locked) for (i = 1; i <= locks; i++) if (!locked++) lockfile = lock[i]
			# A link in a repository is told by that repository.
			for (i = 1; i <= links; i++) {
				d = link[i]
				while (sub(/\/[^\/]*$/, "", d) && d != "") if (d in gitdir || (d "/.git") in gitdir) break
				if (d == "" && !strays++) stray = link[i]
			}
			printf "counts %d %d %.0f %d %d %d %d %d %d\n", lines - 1, n + 0, bytes + 0, sane ? walked : 1, foreign + 0, dark + 0, newlines + 0, strays + 0, locked + 0
			if (foreign) print "foreigner " top foreigner
			if (dark) print "darkest " top darkest
			if (strays) print "link " top stray
			if (locked) print "lockfile " top lockfile
			# disposable: entries
			if (mode == "target") {
				print "live " (all ? alive + 0 : "unknown")
				all = 0
				while ((getline < "/proc/self/mountinfo") > 0) {
					all++
					m = $5
					gsub(/\\040/, " ", m); gsub(/\\011/, "\t", m); gsub(/\\012/, "\n", m); gsub(/\\043/, "#", m); gsub(/\\134/, "\\", m)
					if (within(m)) mounted++
				}
				if (all) print "mounts " mounted + 0
				while ((getline < "/etc/hosts") > 0) if ($1 ~ /^127\./ || $1 == "::1") for (k = 2; k <= NF && $k !~ /^#/; k++) print "loopback " tolower($k)
			}
			fflush()
			rc = close(hash)
			if (rc) print "nohash " rc
		}'
}

# processes: where those that can be seen work, a line each: as ls tells a link,
# or n and the path.
processes() {
	if [ -e /proc/self/cwd ]; then
		# shellcheck disable=SC2012 # a link's end is wanted, which find prints on GNU only
		ls -ld /proc/[0-9]*/cwd /proc/[0-9]*/root 2>/dev/null
	elif command -v lsof >/dev/null 2>&1; then
		lsof -w -n -P -a -d cwd -u "$uid" -Fn 2>/dev/null </dev/null
	fi
}

# The manifest comes before anything is judged. Reads survey lines into lists.
take() {
	found=$(survey "$1" "$2")
	digest='' counts='0 0 0 1 0 0 0 0 0'
	rest_entry=$found$newline
	while [ -n "$rest_entry" ]; do
		entry=${rest_entry%%"$newline"*} rest_entry=${rest_entry#*"$newline"}
		rest=${entry#* }
		case $entry in
		checkout\ *) [ "$2" = survivor ] || checkouts=$checkouts$rest$newline ;;
		store\ *) [ "$2" = survivor ] || stores=$stores$rest$newline ;;
		admin\ *) [ "$2" = survivor ] || admins=$admins$rest$newline ;;
		session\ *) sessions=$sessions$rest$newline ;;
		live\ *) live=$rest ;;
		mounts\ *) inner=$rest ;;
		loopback\ *) loopbacks=$loopbacks$rest$newline ;;
		# disposable: take
		counts\ *) counts=$rest ;;
		foreigner\ *) sample foreign "$rest" ;;
		darkest\ *) sample unreadable "$rest" ;;
		link\ *) sample kandev_link "$rest" ;;
		lockfile\ *) sample lock "$rest" ;;
		*[!0-9a-f]*) ;;
		*) digest=$entry ;;
		esac
	done
	label "$1"
	digests=$digests${digests:+$newline}$digest
	lines=$((lines + ${counts%% *}))
	# shellcheck disable=SC2086 # counts is nine numbers
	record tree "$label" "${digest:-none}" $counts
}

sample() {
	label "$2"
	record sample - "$1" "$label"
}

# probe_manifest: the target's own tree, then every repository directory outside
# it that belongs to it.
probe_manifest() {
	checkouts='' stores='' admins='' sessions='' outside='' dying=$T digests='' lines=0 live='' inner='' loopbacks=$newline
	record identity "${device:-x}" "${inode:-x}"
	take "$T" target
	pending=$checkouts
	while [ -n "$pending" ]; do
		w=${pending%%"$newline"*}
		pending=${pending#*"$newline"}
		attach "$w"
		[ -n "$attached" ] || continue
		inside "$attached" "$T" && continue
		case $newline$outside in *"$newline$attached$newline"*) continue ;; esac
		outside=$outside$attached$newline
		field "$attached"
		record outside "$field" "$linked"
		if [ "$linked" = yes ]; then
			dying=$dying$newline$attached
			before=$checkouts
			take "$attached" gitdir
			pending=$pending${checkouts#"$before"}
		else
			take "$attached" survivor
		fi
	done
	case $digests in *"$newline"*) digests=$(printf '%s\n' "$digests" | command git -C / hash-object --stdin) ;; esac
	record manifest "${digests:-none}" "$lines"
}

# attach W: leaves the git directory of the checkout W in $attached (empty where
# there is none to follow), its common directory in $common, and yes or no in $linked.
attach() {
	attached='' common='' linked=no
	if [ -d "$1/.git" ]; then
		physical "$1/.git" && attached=$physical
	elif line "$1/.git"; then
		case $line in
		'gitdir: /'*) physical "${line#gitdir: }" && attached=$physical ;;
		'gitdir: '*) physical "$1/${line#gitdir: }" && attached=$physical ;;
		esac
	fi
	[ -n "$attached" ] || return 0
	common=$attached
	[ -e "$attached/commondir" ] || return 0
	linked=yes common=''
	line "$attached/commondir" || return 0
	case $line in
	/*) physical "$line" ;;
	*) physical "$attached/$line" ;;
	esac && common=$physical
}

probe_live() {
	pids=0 alive=0 odd=0
	rest_file=$sessions$newline
	while [ -n "$rest_file" ]; do
		file=${rest_file%%"$newline"*} rest_file=${rest_file#*"$newline"}
		[ -n "$file" ] || continue
		pids=$((pids + 1))
		line "$file" || line=''
		case $line in
		'' | 0* | *[!0-9]*) odd=$((odd + 1)) && sample pidfile "$file" ;;
		*) if runs "$line"; then
			alive=$((alive + 1)) && sample session "$file"
		fi ;;
		esac
	done
	record live "${live:-unknown}" "$pids" "$alive" "$odd"
}

probe_mounts() {
	[ -n "$inner" ] || inner=$(mount 2>/dev/null | T=$T awk '
		BEGIN { t = ENVIRON["T"] }
		{ all++; if (index($0, " on " t " ") || index($0, " on " t "/")) n++ }
		END { print all ? n + 0 : "unknown" }')
	record mounts "${inner:-unknown}"
}

# leads_into_target PATH DIR: PATH, in DIR's terms, leads from elsewhere into the target.
leads_into_target() {
	physical "$2" && ! inside "$physical" "$T" || return 1
	case $1 in
	/*) physical "$1" ;;
	*) physical "$2/$1" ;;
	esac && inside "$physical" "$T"
}

probe_borrowers() {
	lent=0 hosted=0 asked=$newline next=0 as='' t=$P/tasks
	# "$P"/*/* is also what lies in tasks.
	for file in "$t"/*/*/.git "$t"/*/*/*/.git "$t"/*/*.git "$P"/* "$P"/*/.git "$P"/*/* "$P"/*/*/.git "$P"/.[!.]* "$P"/.[!.]*/.git "$P"/.[!.]*/* \
		"$t"/.[!.]* "$t"/.[!.]*/.git "$t"/*/.[!.]*/.git "$t"/*/.[!.]*/*.git "$t"/*/.[!.]*/*/.git "$t"/*/.[!.]*/worktrees/*/.git "$t"/*/.kandev/* "$t"/*/*/.[!.]*/.git; do
		[ ! -e "$file" ] && [ ! -L "$file" ] || inside "$file" "$T" || dependant "$file"
	done
	record borrowers "$lent" "$hosted"
	# Those that ours speak of, wherever they lie: told where nothing else keeps.
	as=named_
	while [ "$next" -lt "$repositories" ]; do
		next=$((next + 1))
		about "$next"
		[ -z "$common" ] || named "$common"
		[ ! -f "$common/config" ] || while read -r line; do
			case $line in *url*=*/*) url=/${line#*/} && url=${url#//} && named "$url" "$url/.git" "$url.git" ;; esac
		done <"$common/config"
	done
}
named() {
	for file; do
		if ! physical "$file" || inside "$physical" "$T"; then continue; fi
		case $asked in *"$newline$physical$newline"*) ;; *) asked=$asked$physical$newline && dependant "$physical" ;; esac
	done
}

# dependant REPOSITORY: counts it, and every submodule's in it, that needs ours:
# by a link, a gitfile, borrowed objects, or objects that one inside promised it.
dependant() {
	for link in "$1" "$1/objects" "$1/refs"; do
		[ -L "$link" ] && leads_into_target "$link" "${1%/.git}" && hosts "$1" && break
	done
	case $1 in */.git) line "$1" && case $line in 'gitdir: '*)
		leads_into_target "${line#gitdir: }" "${1%/.git}" && hosts "$1" ;;
	esac ;; esac
	if [ -f "$1/objects/info/alternates" ]; then
		while IFS= read -r line; do
			case $line in '"'*) line=${line#?} && line=${line%?} ;; esac
			[ -n "$line" ] && leads_into_target "$line" "$1/objects" && lends "$1" && break
		done <"$1/objects/info/alternates"
	fi
	[ ! -f "$1/config" ] || for link in "$1"/objects/pack/*.promisor; do
		[ -e "$link" ] || break
		while read -r line; do
			case $line in url*=*/*) line=/${line#*/} && leads_into_target "${line#//}" "$1" && lends "$1" && break ;; esac
		done <"$1/config"
		break
	done
	if [ -d "$1/modules" ] && [ -e "$1/HEAD" ] && [ -d "$1/objects" ] && [ ! -L "$1" ]; then modules "$1/modules"; fi
}
hosts() { hosted=$((hosted + 1)) && sample ${as}dependant "$1"; }
lends() { lent=$((lent + 1)) && sample ${as}borrower "$1"; }
# modules DIR: a submodule may be called one/two/three.
modules() {
	for link in "$1"/*; do
		if [ ! -d "$link" ] || [ -L "$link" ]; then continue; fi
		if [ -e "$link/HEAD" ]; then dependant "$link"; else modules "$link"; fi
	done
}

# Every worktree registered in a repository of the target.
probe_worktrees() {
	total=0 away=0 locked=0 broken=0
	rest_admin=$admins$newline
	while [ -n "$rest_admin" ]; do
		admin=${rest_admin%%"$newline"*} rest_admin=${rest_admin#*"$newline"}
		[ -n "$admin" ] || continue
		total=$((total + 1))
		if [ -e "$admin/locked" ]; then locked=$((locked + 1)) && sample locked_worktree "$admin"; fi
		if ! line "$admin/gitdir"; then broken=$((broken + 1)) && sample broken_worktree "$admin" && continue; fi
		case $line in /*) ;; *) line=$admin/$line ;; esac
		if [ -e "$line" ] || [ -L "$line" ]; then
			if ! physical "${line%/*}" || ! inside "$physical" "$T"; then away=$((away + 1)) && sample hosted_worktree "${line%/*}"; fi
		fi
	done
	record worktrees "$total" "$away" "$locked" "$broken"
}

# collect: leaves the repositories to be judged in K_i, W_i, D_i, C_i (kind,
# work tree or empty, git directory, common directory), i from 1 to $repositories.
collect() {
	repositories=0 gitdirs=$newline
	rest_w=$checkouts$newline
	while [ -n "$rest_w" ]; do
		w=${rest_w%%"$newline"*} rest_w=${rest_w#*"$newline"}
		[ -n "$w" ] || continue
		attach "$w"
		kind=nested
		case $attached in */.git/modules/* | */worktrees/*/modules/*) kind=submodule ;; *) case $w in "$T") kind=primary ;; "$T"/*/*) ;; "$T"/*) kind=child ;; esac ;; esac
		[ "$linked" = yes ] && kind=linked_worktree
		add
	done
	rest_attached=$stores$newline
	while [ -n "$rest_attached" ]; do
		attached=${rest_attached%%"$newline"*} rest_attached=${rest_attached#*"$newline"}
		[ -n "$attached" ] || continue
		case $gitdirs in *"$newline$attached$newline"*) continue ;; esac
		w='' common=$attached kind=bare linked=no
		case $attached in */modules/*) kind=submodule ;; esac
		add
	done
	# A worktree that no checkout here uses: what it alone held is in its entry.
	rest_attached=$admins$newline
	while [ -n "$rest_attached" ]; do
		attached=${rest_attached%%"$newline"*} rest_attached=${rest_attached#*"$newline"}
		[ -n "$attached" ] || continue
		case $gitdirs in *"$newline$attached$newline"*) continue ;; esac
		w='' common='' kind=vanished_worktree linked=no
		line "$attached/commondir" && case $line in
		/*) physical "$line" ;;
		*) physical "$attached/$line" ;;
		esac && common=$physical
		add
	done
}

add() {
	repositories=$((repositories + 1))
	[ "$repositories" -le 400 ] || return 0
	gitdirs=$gitdirs$attached$newline
	eval "K_$repositories=\$kind W_$repositories=\$w D_$repositories=\$attached C_$repositories=\$common L_$repositories=\$linked"
}

# about I: leaves the repository I in $i, kind, tree, D, common, linked, and in W
# where git is run: the work tree, or for a repository without one its git directory.
about() {
	i=$1
	eval "kind=\$K_$i tree=\$W_$i D=\$D_$i common=\$C_$i linked=\$L_$i"
	W=${tree:-$D} survives=no scope=all
	[ "$linked" = yes ] && ! inside "$common" "$T" && survives=yes
	case $survives$kind in yes* | novanished_worktree) scope=own ;; esac
}

# worked: somebody works, or has worked, in this repository, so that its HEAD has a log.
worked() { [ -n "$tree" ] || [ "$kind" = submodule ]; }

# refs_of END: every ref, a line each, which END ends.
refs_of() { g for-each-ref --format="%(objectname) %(objecttype) %(*objecttype) %(if)%(symref)%(then)%(symref):%(end)%(refname)$1"; }

# covers: awk's function for whether a rule to fetch leads to a ref.
# shellcheck disable=SC2016 # it is awk's
covers='function covers(dst, ref,  star) {
	star = index(dst, "*")
	if (!star) return dst == ref
	return length(ref) >= length(dst) - 1 && substr(ref, 1, star - 1) == substr(dst, 1, star - 1) && substr(ref, length(ref) - (length(dst) - star) + 1) == substr(dst, star + 1)
}'

# lane I...: everything about these repositories. What git prints of their files
# goes through one awk, which prints what is to be recorded and what to look at.
lane() {
	ours=''
	for i; do
		about "$i"
		label "$W"
		record repository "$i" "$kind" "$label"
		if [ -z "$D" ] || [ -z "$common" ]; then
			record checkout "$i" unresolved
			continue
		fi
		probe_checkout
		[ "$identity" = itself ] || continue
		probe_registration
		probe_operations
		ours="$ours $i"
	done
	[ -n "$ours" ] || return 0
	learn
	{
		{
			for one in $ours; do judge "$one"; done
		} 4>&1 >&3 | tr '\000\012' '\012\001' | awk '
			BEGIN {
				for (k = 1; k < 256; k++) hex[sprintf("%c", k)] = sprintf("%02x", k)
				hex["\001"] = "0a"
				part = -3
				first = 1
				# disposable: begin
			}
			function enc(s,  k, o) {
				s = substr(s, 1, 120)
				if (s ~ /^[A-Za-z0-9\/._,:@+-]+$/) return "=" s
				o = "~"; for (k = 1; k <= length(s); k++) o = o ((substr(s, k, 1) in hex) ? hex[substr(s, k, 1)] : "3f"); return o
			}
			function show(what, path) { if (++shown[what] <= 2) print "sample " i " " what " " enc(path) }
			# What git says of a rule it cannot read stands before what it lists, which
			# no path begins like. It leaves the rule out, here as when it checked out: a
			# rule that ignores nothing hides nothing. A line break in a path could end
			# what is said, and so none may follow.
			part > 0 && /\001/ && !/^([ MTADRCU?!][ MTADRCU?!] |[A-Za-z?] [0-7])/ {
				said = 0
				while (match($0, /^(warning: (unable to access \047[^\001]*\047: [^\001\047]*|Negative patterns are ignored in git attributes\001Use [^\001]*|ignoring overly l[^\001]*)|(warning: )?[^\001 ]* is not a valid attribute name: [^\001]*:[0-9]+|\[attr\][^\001]* not allowed: [^\001]*:[0-9]+)\001/)) {
					$0 = substr($0, RLENGTH + 1)
					said++
					if (/^([ MTADRCU?!][ MTADRCU?!] |[A-Za-z?] [0-7])/) break
				}
				if (said && /\001/) { odd++; next }
				if (/^(fatal|error): .*\001@ [0-9]+$/) { odd++; sub(/^.*\001/, "") }
			}
			part == 1 && substr($0, 1, 2) != "@ " {
				if ($0 !~ /^[A-Za-z?] [0-7]* [0-9a-f]* [0-3]\t/) { odd++; next }
				files++
				mode = substr($0, 3, 6); tag = substr($0, 1, 1)
				# disposable: tracked
				if (mode == "160000") { t = index($0, "\t"); p = substr($0, t + 1); link[p] = 1; if (p ~ /\001/) odd++; else { print "L " p; if (tag != "H" && tag != "M") print "F " $0 } }
				else if (mode == "040000") { if ($0 ~ /\001/) odd++; files-- }
				else if (tag != "H" && tag != "M") { if ($0 ~ /\001/) odd++; else print "F " $0 }
				next
			}
			part == -3 {
				if ($0 !~ /^@ [0-9]+ (yes|no)$/) { print "stray"; next }
				i = $2; kandev = $3
				files = changed = pointer = untracked = ignored = odd = excused = 0
				split("", rc); split("", excuse); split("", shown); split("", link)
				# disposable: fresh
				print "R " i
				part = -2
				next
			}
			part == -2 { own = $0; part = -1; next }
			part == -1 { n = split($0, e, "\001"); for (k = 1; k <= n; k++) if (e[k] != "") excuse[e[k]] = 1; part = first; next }
			# disposable: read
			substr($0, 1, 2) == "@ " {
				rc[part++] = $2
				if (part < 3) next
				# disposable: end
				printf "files %s %d %d %d %d %d %d %d %d %d\n", i, rc[1], rc[2], files, changed, pointer, untracked, ignored, odd, excused
				print "E " i
				part = -3
				next
			}
			part == 2 {
				xy = substr($0, 1, 2); p = substr($0, 4)
				if (substr($0, 3, 1) != " " || p == "") { odd++; next }
				if (xy == "??" || xy == "!!") {
					if (p in excuse) { excused++; next }
					if (own != "" && substr(p, 1, length(own)) == own) { excused++; next }
					if (kandev == "yes" && substr(p, 1, 8) == ".kandev/") { excused++; next }
					# disposable: ignored
					if (xy == "??") { untracked++; show("untracked", p) } else { ignored++; show("ignored", p) }
				} else if (xy ~ /^[ MTADRCU][ MTADRCU]$/ && xy != "  ") {
					# disposable: changed
					if (xy == " M" && p in link) { pointer++; show("pointer", p) } else { changed++; show("changed", p) }
				} else odd++
				next
			}
			{ odd++ }' | probe_hidden
	} 3>&1
}

judge() {
	about "$1"
	probe_settings || return 0
	probe_files &
	probe_remotes
	probe_refs
	wait
	record judged "$i"
}

# learn: leaves in $learned what the settings and the refs of the repositories in
# $ours are: for each the lines
#
#	repository I
#	filter NAME | vcs REMOTE | remote REMOTE | fetch REMOTE SRC:DST
#	settings RC ODD
#	url REMOTE<tab>URL      only where git would say just this of each remote
#	refs REFS TRACKED CLONED TAGS PLAIN
#	tracked REMOTE...       who tracks a ref here; a set of remotes, once
#	tips REMOTE             of one that may be local, and the objects themselves
#
# A ref is tracked where a rule to fetch leads to it, cloned where it is a tag that
# packed-refs has as it is. PLAIN is 1 where git listed every ref, no ref is
# a stash, of an unknown form, or needs to be looked at beyond its name, and
# each commit that would be lost - what a ref that is not tracked and not
# cloned holds, HEAD, and what HEAD left behind - is exactly what a
# tracked or cloned ref holds: then nothing needs to be counted. Where one repository
# does not end as it must, nothing is learned of it or of those behind it.
learn() {
	learned=$(
		for one in $ours; do
			about "$one"
			seen=$scope
			[ "$scope" = own ] || [ ! -e "$common/worktrees" ] || seen=$seen,worktrees
			if [ -s "$D/logs/HEAD" ]; then seen=$seen,log; elif [ "$scope" = all ] && worked; then seen=$seen,unlogged; fi
			[ ! -f "$common/packed-refs" ] || seen=$seen,packed
			saved
			[ -z "$saved" ] && [ -f "$D/HEAD" ] && [ -r "$D/HEAD" ] && { [ "$scope" = own ] || { [ ! -s "$common/logs/refs/stash" ] && [ ! -e "$common/annex/objects" ]; }; } || seen=$seen,strange
			printf '@ %s %s\0%s\0%s\0' "$i" "$seen" "$D" "$common"
			g config -z --get-regexp '^(remote\..*\..*|filter\..*\.(clean|process|smudge|required)|url\..*\.(insteadof|pushinsteadof))$' 2>&1
			printf '@ %s\0' $?
			refs_of %00 2>&1
			printf '@ %s\0' $?
		done | tr '\000\012' '\012\001' | awk "$covers$newline$leaves"'
			function fresh(  k) {
				part = 1; rc = odd = plain = refs = tracked = cloned = tags = rules = rewritten = 0
				split("", filters); split("", urls); split("", many); split("", names); split("", rule); split("", dst)
				split("", need); split("", held); split("", sets); split("", tip); split("", packed); split("", oid); split("", moved)
			}
			function left(c) { if (c ~ /^[0-9a-f]+$/ && c !~ /^0*$/) need[c] = 1 }
			function logged(file,  l, t, w, now, n, m, strange) {
				made = strange = 0
				while ((m = (getline l < file)) > 0) {
					if (l !~ '"$entry_of_log"') strange = 1
					t = index(l "\t", "\t")
					split(substr(l, 1, t - 1), w, " ")
					l = substr(l, t + 1)
					sub(/\t.*/, "", l)
					if (n++ && w[1] != now) left(now)
					now = w[2]
					if (leaves(l) && w[1] != w[2]) left(w[1])
				}
				left(now)
				close(file)
				return m == 0 && !strange
			}
			function packs(file,  l, w) {
				while ((getline l < file) > 0) if (split(l, w, " ") >= 2 && w[2] ~ /^refs\/tags\//) packed[w[2]] = w[1]
				close(file)
			}
			function ref_of(line,  w, m, ref, names, colon, k, set, first) {
				m = split(line, w, " ")
				ref = w[m]
				colon = index(ref, ":")
				names = substr(ref, 1, colon ? colon - 1 : 0)
				ref = substr(ref, colon + 1)
				if (m != 3 && m != 4 || w[1] !~ /^[0-9a-f]+$/ || ref !~ /^refs\//) { plain = 0; return }
				refs++
				oid[ref] = w[1]
				if (ref == "refs/stash") { if (own) return; plain = 0; return }
				if (own && ref ~ /^refs\/(bisect|worktree|rewritten)\//) { need[w[1]] = 1; if (w[2] != "commit") plain = 0 }
				if (ref !~ /^refs\/remotes\// && names != "") moved[names] = 1
				if (names == "") names = ref
				if (ref ~ /^refs\/remotes\// && names ~ /^refs\/remotes\// && !(names in moved)) {
					set = first = ""
					for (k = 1; k <= rules; k++) if (dst[k] != "" && covers(dst[k], names)) {
						set = set " " rule[k]; first = rule[k]
						if (local[first] && !((first, w[1]) in tip)) { tip[first, w[1]] = 1; tips[first] = tips[first] w[1] "\n" }
					}
					if (set != "") { tracked++; sets[set] = 1; held[w[1]] = 1; return }
				}
				if (ref ~ /^refs\/tags\//) {
					if (!tags++ && state ~ /,packed/) packs(common "/packed-refs")
					if (packed[ref] == w[1]) { cloned++; held[w[1]] = 1; return }
				}
				if (own) return
				need[w[1]] = 1
				if (w[2] != "commit") plain = 0
			}
			part == 0 && !/^@ [0-9]+ [a-z,]+$/ { exit }
			part == 0 { fresh(); split($0, head, " "); number = head[2]; state = head[3]; own = state ~ /^own/; split("", local); split("", tips); print "repository " number; next }
			part == 1 { dir = $0; part = 2; next }
			part == 2 { common = $0; part = 3; next }
			part == 3 && /^@ / {
				print "settings " $2 " " odd + 0
				for (r in names) if (many[r] != 1) rewritten = 1
				for (r in names) if (rewritten) local[r] = 1; else print "url " r "\t" urls[r]
				part = 4; plain = 1
				next
			}
			part == 3 {
				i = index($0, "\001"); key = i ? substr($0, 1, i - 1) : $0; value = i ? substr($0, i + 1) : ""
				if (key ~ /^url\./) rewritten = 1
				else if (key ~ /^filter\./) { sub(/^filter\./, "", key); sub(/\.[a-z]*$/, "", key)
					if (key ~ /[=\001]/) odd++; else if (!(key in filters)) { filters[key] = 1; print "filter " key } }
				else if (key ~ /^remote\./) { var = key; sub(/^.*\./, "", var); sub(/^remote\./, "", key); sub(/\.[a-z]*$/, "", key)
					if (var !~ /^(fetch|url|pushurl|vcs)$/) { names[key] = 1; next }
					if (key ~ /[ \t\001]/ || value ~ /\001/) { if (var == "fetch" || var ~ /url$/) odd++ }
					else if (var == "fetch") { print "fetch " key " " value; names[key] = 1; rules++; rule[rules] = key; sub(/^\+/, "", value); i = index(value, ":"); dst[rules] = (i && value !~ /^\^/) ? substr(value, i + 1) : "" }
					else if (var == "vcs") { print "vcs " key; rewritten = 1 }
					else { print "remote " key; names[key] = 1; many[key]++; urls[key] = value; if (var == "pushurl" || value == "") rewritten = 1; if (value !~ /^[^\/:]+:/ || value ~ /^file:/) local[key] = 1 } }
				else odd++
				next
			}
			{ sub(/^\001/, "") }
			/^@ / {
				if ($2 != "0" || state ~ /,(worktrees|unlogged|strange)/) plain = 0
				if (state ~ /,log/ && !logged(dir "/logs/HEAD")) plain = 0
				at = ""
				getline at < (dir "/HEAD")
				close(dir "/HEAD")
				if (at ~ /^ref: /) { at = substr(at, 6); if (at in oid && at !~ /^refs\/remotes\//) need[oid[at]] = 1; else plain = 0 }
				else if (at ~ /^[0-9a-f]+$/) need[at] = 1
				else plain = 0
				# What was fetched from a path: whether that is still there is not asked here.
				while ((getline at < (dir "/FETCH_HEAD")) > 0) { split(at, head, "\t"); sub(/^.* of /, "", head[3]); if (head[3] !~ /^[^\/:]+:/ || head[3] ~ /^file:/) left(head[1]) }
				close(dir "/FETCH_HEAD")
				for (c in need) if (!(c in held)) plain = 0
				print "refs " refs " " tracked " " cloned " " tags " " plain
				for (k in sets) print "tracked" k
				for (k in tips) printf "tips %s\n%s", k, tips[k]
				part = 0
				next
			}
			{ n = split($0, piece, "\001"); for (k = 1; k <= n; k++) if (piece[k] != "") ref_of(piece[k]) }'
	)
	learned=$newline$learned$newline
}

# tracked GITDIR: every file of this bare repository is a checkout's own content,
# so that the checkout's status speaks for it (a fixture somebody committed).
tracked() {
	inside_gitdir "$1" && return 1
	holder=''
	rest_other=$checkouts
	while [ -n "$rest_other" ]; do
		other=${rest_other%%"$newline"*} rest_other=${rest_other#*"$newline"}
		inside "$1" "$other" && [ ${#other} -gt ${#holder} ] && holder=$other
	done
	[ -n "$holder" ] || return 1
	command git --no-pager -c core.fsmonitor= -C "$holder" ls-files --error-unmatch -- "${1#"$holder"/}/HEAD" >/dev/null 2>&1 </dev/null
}

# Is the repository the one that lies here, and itself?
probe_checkout() {
	if [ "$W" = "$T" ] && [ -d "$T/.git" ] && [ ! -e "$D/HEAD" ] && [ ! -L "$D/HEAD" ]; then
		said='' identity=begun
	elif [ -n "$tree" ]; then
		said=$(GIT_CEILING_DIRECTORIES=${W%/*} command git --no-pager -C "$W" rev-parse --is-bare-repository --is-inside-work-tree --show-toplevel --absolute-git-dir 2>&1 </dev/null)
		rc=$?
		case $said in
		"false${newline}true$newline$W$newline"*) [ "$rc" = 0 ] && physical "${said##*"$newline"}" && [ "$physical" = "$D" ] && identity=itself || identity=unclear ;;
		"true$newline"* | *"must be run in a work tree${newline}true$newline"*) identity=bare ;;
		"false${newline}true$newline/"*) identity=elsewhere ;;
		"false${newline}false$newline"*) identity=elsewhere ;;
		*"unknown repository extension"* | *"xpected git repo version"*) identity=too_new ;;
		*"dubious ownership"* | *"unsafe repository"*) identity=foreign ;;
		*) identity=unclear ;;
		esac
	else
		said=$(g rev-parse --absolute-git-dir 2>&1)
		rc=$?
		identity=unclear
		case $said in *"unknown repository extension"* | *"xpected git repo version"*) identity=too_new ;; esac
		[ "$rc" = 0 ] && physical "$said" && [ "$physical" = "$D" ] && identity=itself
	fi
	[ -d "$common/reftable" ] && identity=too_new
	[ "$kind" = bare ] && tracked "$D" && identity=tracked
	record checkout "$i" "$identity"
	case $identity in itself | begun | tracked) ;; *) field "$(printf '%.300s' "$said")" && record sample "$i" said "$field" ;; esac
}

# A linked worktree's entry in the repository that owns it.
probe_registration() {
	[ "$linked" = yes ] || return 0
	state=mutual
	held=no
	[ -e "$D/locked" ] && held=yes
	line "$D/gitdir" || line=''
	written=$line
	case $line in '') state=broken ;; /*) ;; *) line=$D/$line ;; esac
	[ "$state" = broken ] || { physical "${line%/*}" && [ "$physical/${line##*/}" = "$W/.git" ] || state=another; }
	[ "${D%/*}" = "$common/worktrees" ] || state=broken
	field "$common" && at=$field
	field "${D##*/}" && name=$field
	field "$written"
	record registration "$i" "$state" "$held" "$survives" "$at" "$name" "$field"
}

probe_operations() {
	stopped=''
	for name in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_START BISECT_LOG sequencer MERGE_AUTOSTASH NOTES_MERGE_PARTIAL; do
		[ -e "$D/$name" ] && stopped="$stopped $name"
	done
	stash=0
	if [ -e "$D/MERGE_AUTOSTASH" ] || [ -e "$D/rebase-merge/autostash" ] || [ -e "$D/rebase-apply/autostash" ]; then stash=1; fi
	locks=0
	for name in "$D"/*.lock "$common/packed-refs.lock" "$common/config.lock" "$common/shallow.lock"; do
		[ -e "$name" ] && ! inside "$name" "$T" && locks=$((locks + 1))
	done
	# shellcheck disable=SC2086 # stopped is words
	record operations "$i" "$stash" "$locks" $stopped
}

inside_gitdir() { case $1 in */.git/* | "$T"/.kandev/*) return 0 ;; esac; return 1; }

# settled: leaves what was learned of this repository in $known, of that in $settings
# the lines that stand before "settings", and in $counted what that says.
settled() {
	known=${newline}settings' 99 0'$newline
	case $learned in *"${newline}repository $i$newline"*)
		known=${learned#*"${newline}repository $i$newline"}
		known=${known%%"${newline}repository "*}
		known=$newline${known%"$newline"}$newline
		;;
	esac
	settings=${known%%"${newline}settings "*}$newline counted='99 0'
	case $known in *"${newline}settings "*) counted=${known#*"${newline}settings "} && counted=${counted%%"$newline"*} ;; esac
}

probe_settings() {
	settled
	# shellcheck disable=SC2086 # two numbers
	record settings "$i" $counted
	case $counted in '0 0' | '1 0') return 0 ;; esac
	return 1
}

# What of the work tree is not committed: status, and what status cannot see.
probe_files() {
	[ -n "$tree" ] || {
		staged=0
		if [ -e "$D/index" ]; then
			if g rev-parse -q --verify HEAD >/dev/null 2>&1; then
				out=$(g diff-index --cached --name-only HEAD 2>&1) || staged=1
			else
				out=$(g ls-files 2>&1) || staged=1
			fi
			[ -z "$out" ] || staged=1
		fi
		record index "$i" "$staged"
		return
	}
	kandev=no
	[ "$W" = "$T" ] && [ -d "$T/.kandev" ] && [ ! -L "$T/.kandev" ] && kandev=yes
	excused=''
	rest_other=$checkouts$newline
	while [ -n "$rest_other" ]; do
		other=${rest_other%%"$newline"*} rest_other=${rest_other#*"$newline"}
		case $other in "$W") ;; "$W"/*) excused=$excused${other#"$W"/}/$newline ;; esac
	done
	# A sparse index names directories. Reading it whole would write their trees.
	sparse='' filled=''
	set --
	if [ -e "$D/info/sparse-checkout" ] && grep -q sdir "$D/index" 2>/dev/null; then
		sparse=--sparse
		set -- -c index.sparse=true -c core.sparseCheckout=true -c core.sparseCheckoutCone=true -c sparse.expectFilesOutsideOfPatterns=true
		rest_path=$(gf "$@" ls-files --sparse -s -z </dev/null | tr '\000\012' '\012\001' | sed -n 's/^040000 [^	]*	//p')$newline
		while [ -n "$rest_path" ] && [ -z "$filled" ]; do
			path=${rest_path%%"$newline"*} rest_path=${rest_path#*"$newline"}
			[ -n "$path" ] && [ -d "$W/$path" ] && [ -n "$(find "$W/$path" ! -type d 2>&1 | sed 1q)" ] && filled=$path
		done
	fi
	own=''
	case $D in "$W"/.git) ;; "$W"/*) own=${D#"$W"/}/ ;; esac
	# disposable: candidates
	{
		printf '@ %s %s\0%s\0%s\0' "$i" "$kandev" "$own" "$excused"
		# disposable: told
		if [ $((lines / repositories)) -lt 20000 ]; then
			indexed "$@"
			changed "$@"
		else # each takes its time: both at once
			changed "$@" 2>&1 | { indexed "$@" && cat; }
		fi
	} >&4 2>&1
}

# indexed, changed: what git lists and how that ended. They look at the index and the
# work tree, which the manifest has told before.
indexed() {
	gf "$@" ls-files $sparse -v -s -z </dev/null
	printf '@ %s\0' $?
}
changed() {
	if [ -z "$filled" ]; then
		gf "$@" status --porcelain -z --untracked-files=all --ignored --ignore-submodules=dirty </dev/null
	else
		printf ' M %s is outside the sparse checkout and holds files\0' "$filled"
	fi
	printf '@ %s\0' $?
}

# What carries an index flag is compared with its blob; a submodule's directory
# that is no checkout must hold no file. Reads what is to be recorded as it is, and
# for each repository "R I", an "F ENTRY" of ls-files for each flag, an "L PATH"
# for each submodule, and "E I".
probe_hidden() {
	while IFS= read -r entry; do
		case $entry in
		'R '*)
			about "${entry#R }"
			settled
			flags=0 hidden=0 links=0 loose=0 paths='' wants=''
			;;
		'F '*) flagged "${entry#F }" </dev/null ;;
		'L '*) gitlink "${entry#L }" </dev/null ;;
		'E '*)
			compare
			record hidden "$i" "$flags" "$hidden" "$links" "$loose"
			;;
		*) printf '%s\n' "$entry" ;;
		esac
	done
}

# flagged ENTRY: it is as ls-files says, or will be compared.
flagged() {
	flags=$((flags + 1))
	path=${1#*"$tab"}
	[ -e "$W/$path" ] || [ -L "$W/$path" ] || {
		# Only sparse checkouts may lack a file; elsewhere a missing one is a hidden deletion.
		case $1 in S*) ;; *) hidden=$((hidden + 1)) && sample_of hidden "$path" ;; esac
		return 0
	}
	bits=${1#? } && want=${bits#* }
	bits=${bits%% *} want=${want%% *}
	if [ "$bits" = 160000 ] && [ -d "$W/$path" ] && [ ! -L "$W/$path" ]; then
		[ ! -e "$W/$path/.git" ] || [ "$(GIT_CEILING_DIRECTORIES=$W command git --no-pager -C "$W/$path" rev-parse -q --verify HEAD 2>/dev/null)" = "$want" ] ||
			{ hidden=$((hidden + 1)) && sample_of hidden "$path"; }
		return 0
	fi
	if [ -L "$W/$path" ] || [ "$bits" = 120000 ]; then
		[ -L "$W/$path" ] && [ "$bits" = 120000 ] &&
			have=$(cd "$W" && readlink -n "./$path" | command git -C / hash-object --stdin 2>/dev/null) && [ "$have" = "$want" ] && return 0
		hidden=$((hidden + 1)) && sample_of hidden "$path"
		return 0
	fi
	if [ -f "$W/$path" ] && { { [ -x "$W/$path" ] && [ "$bits" = 100755 ]; } || { [ ! -x "$W/$path" ] && [ "$bits" = 100644 ]; }; }; then
		case $path in '"'*) hidden=$((hidden + 1)) && sample_of hidden "$path" && return 0 ;; esac
		paths=$paths$path$newline wants=$wants$want$newline
	else
		hidden=$((hidden + 1)) && sample_of hidden "$path"
	fi
}

compare() {
	[ -n "$paths" ] || return 0
	have=$(cd "$W" && printf %s "$paths" | command git --git-dir="$D" hash-object --no-filters --stdin-paths 2>/dev/null)
	[ "$have$newline" = "$wants" ] ||
		have=$(cd "$W" && printf %s "$paths" | gf hash-object --stdin-paths 2>/dev/null)
	[ "$have$newline" = "$wants" ] || { hidden=$((hidden + 1)) && sample_of hidden "${paths%%"$newline"*}"; }
}

gitlink() {
	links=$((links + 1))
	[ ! -e "$W/$1/.git" ] && [ -d "$W/$1" ] || return 0
	out=$(find "$W/$1" ! -type d 2>&1 | awk 'NR == 1 { print substr($0, 1, 1) }')
	[ -z "$out" ] || { loose=$((loose + 1)) && sample_of gitlink "$1"; }
}

sample_of() {
	field "$(printf '%.200s' "$2")"
	record sample "$i" "$1" "$field"
}

# leads URL: leaves in $where whether URL leads away from here: network, local (and
# the repository in $there), or why it proves nothing.
leads() {
	where=unknown there=''
	case ${1%%::*} in
	"$1" | *[!A-Za-z0-9+.-]* | '') ;;
	codecommit) where=network && return ;;
	*) where=helper && return ;;
	esac
	case $1 in
	'') return ;;
	file://*)
		path=${1#file://}
		case $path in *%*) path=$(said=$path awk 'BEGIN { s = ENVIRON["said"]; while (match(s, /%[0-9A-Fa-f][0-9A-Fa-f]/)) {
			n = 16 * (index("0123456789abcdef", tolower(substr(s, RSTART + 1, 1))) - 1) + index("0123456789abcdef", tolower(substr(s, RSTART + 2, 1))) - 1
			if (!n) exit; printf "%s%c", substr(s, 1, RSTART - 1), n; s = substr(s, RSTART + 3) } printf "%s", s }') ;; esac
		case $path in /*) at_path "$path" ;; ?*) at_path "//$path" ;; esac
		return
		;;
	*://*)
		case ${1%%://*} in http | https | ssh | git | git+ssh | ssh+git | ftp | ftps | codecommit) ;; *) where=helper && return ;; esac
		host=${1#*://}
		tail=/${host#*/}
		host=${host%%/*}
		;;
	*)
		case ${1%%:*} in
		"$1" | */*) 
			at_path "$1"
			return
			;;
		esac
		case $1 in
		*\[*\]:*) host=${1%%\]:*}\] tail=/${1#*\]:} ;;
		*) host=${1%%:*} tail=/${1#*:} ;;
		esac
		case $host in \[*:*\] | *@\[*:*\]) ;; \[*\]) host=${host#\[} && host=${host%\]} ;; esac
		;;
	esac
	host=${host##*@}
	case $host in
	\[*\]*) host=${host#\[} && host=${host%%\]*} ;;
	*) host=${host%%:*} ;;
	esac
	host=${host%.} self=$node
	case $host$self in *[A-Z]*)
		self=$(printf '%s\n' "$host" "$self" | tr '[:upper:]' '[:lower:]')
		host=${self%%"$newline"*} self=${self#*"$newline"}
		;;
	esac
	where=loopback
	case $host in
	'' | *%*) where=unknown && return ;;
	localhost | *.localhost | localhost.* | ip6-* | 127.* | 0.* | *:127.* | *:ffff:7f*) return ;;
	"$self" | "${self%%.*}" | "${self%%.*}.local") return ;;
	esac
	case $host in *[!0-9]*) ;; *) return ;; esac
	case $host in *[!0-9a-fx.]*) ;; 0[0-9x]*) return ;; esac
	case ${host%1} in *[!0:]*) ;; *) return ;; esac
	case $newline$loopbacks in *"$newline$host$newline"*) return ;; esac
	case $tail in *"$P/tasks/"* | *"$root/tasks/"* | */.kandev/tasks/*) where=inside && return ;; esac
	where=network
}

at_path() {
	path=$1
	# shellcheck disable=SC2088 # a tilde in the text, which git expands
	case $path in
	'~/'*) path=${HOME:-/nowhere}/${path#'~/'} ;;
	'~'*) where=unknown && return ;;
	/*) ;;
	*) path=$W/$path ;;
	esac
	where=gone
	for suffix in /.git '' .git/.git .git; do
		there=$path$suffix
		if [ -f "$there" ]; then
			[ "${there##*/}" = .git ] || continue
			line "$there" || continue
			case $line in 'gitdir: /'*) there=${line#gitdir: } ;; 'gitdir: '*) there=${there%/*}/${line#gitdir: } ;; *) continue ;; esac
		fi
		[ -e "$there/HEAD" ] && physical "$there" && there=$physical && break
		there=''
	done
	if [ -z "$there" ]; then
		[ -f "$path" ] && where=unknown
		return
	fi
	where=inside
	mortal "$there" && return
	if [ -e "$there/commondir" ]; then
		where=unknown
		line "$there/commondir" || return
		case $line in /*) ;; *) line=$there/$line ;; esac
		physical "$line" || return
		there=$physical
		where=inside
		mortal "$there" && return
	fi
	where=unknown
	for part in "$there"/objects "$there"/refs "$there"/packed-refs "$there"/refs/* "$there"/refs/*/* "$there"/refs/*/*/* "$there"/objects/* "$there"/objects/*/*; do
		[ -L "$part" ] || continue
		physical "$part" || return
		if mortal "$physical"; then where=inside && return; fi
	done
	borrow "$there/objects" 5 || return
	[ ! -e "$there/shallow" ] || shorter "$there/shallow" || return
	where=local
}

# shorter SHALLOW: what that says is cut off is cut off here, too.
shorter() {
	[ -r "$1" ] || return 1
	while IFS= read -r cut; do
		grep -qxF -e "$cut" "$common/shallow" 2>/dev/null || return 1
	done <"$1"
}

# unused REMOTE: the tracking refs of the remote log what became of them, no log was
# emptied, HEAD's did not lose its first entries, and none tells of a push.
unused() {
	logs=$common/logs/refs/remotes/$1
	[ -d "$logs" ] && line "$common/logs/HEAD" && case $line in 00000000*) ;; *) false ;; esac || return 1
	case $(g config --type=bool core.logAllRefUpdates 2>/dev/null) in false) return 1 ;; esac
	# A name that lies loose was written since the clone.
	[ -z "$(find "$common/refs/remotes/$1" -type f 2>&1 | while IFS= read -r file; do [ -s "$common/logs/${file#"$common"/}" ] || echo unlogged; done)" ] || return 1
	said=$(find "$logs" -type f -exec awk '
		FNR == 1 { logs++ }
		/update by push/ { pushed++ }
		END { print (pushed || logs + 1 != ARGC ? "lost" : "whole") }' {} + 2>/dev/null)
	case $said in "" | *lost*) return 1 ;; esac
}

# mortal PATH: it goes with this target or may go with another task's.
mortal() {
	case $1 in */tasks/*) return 0 ;; esac
	up=$1
	while [ -n "$up" ]; do
		case $newline$dying$newline in *"$newline$up$newline"*) return 0 ;; esac
		# shellcheck disable=SC3013 # every shell we meet has -ef; one without it finds no second name
		[ "$up" -ef "$T" ] 2>/dev/null && return 0
		up=${up%/*}
	done
	return 1
}

# borrow OBJECTS DEPTH: the object directory needs nothing mortal, and has no pack
# whose rest is promised by yet another repository.
borrow() {
	for part in "$1"/pack/*.promisor; do
		[ ! -e "$part" ] || return 1
	done
	[ -e "$1/info/alternates" ] || return 0
	[ "$2" -gt 0 ] || return 1
	while IFS= read -r alternate; do
		case $alternate in '' | '#'*) continue ;; '"'*) return 1 ;; /*) ;; *) alternate=$1/$alternate ;; esac
		physical "$alternate" || continue
		alternate=$physical
		if mortal "$alternate"; then where=inside && return 1; fi
		borrow "$alternate" $(($2 - 1)) || return 1
	done <"$1/info/alternates"
	return 0
}

# Which remotes prove anything. Leaves $trusted and $distrusted: lines of
# "REMOTE", and $locals: "REMOTE GITDIR".
probe_remotes() {
	configured=0 good=0 inner=0 other=0 rc=0 trusted=$newline locals='' distrusted=$newline
	case $settings in
	*"${newline}remote "*)
		case $known in
		*"${newline}url "*) rest_entry=${known#*"${newline}settings "} learnt=yes ;;
		*)
			learnt=no
			rest_entry=$(
				g remote -v 2>&1
				printf '@ %s' $?
			)$newline
			;;
		esac
		while [ -n "$rest_entry" ]; do
			entry=${rest_entry%%"$newline"*} rest_entry=${rest_entry#*"$newline"}
			case $learnt$entry in
			'no@ '*) rc=${entry#@ } && continue ;;
			'yesrefs '*) break ;;
			'yesurl '*) entry=${entry#url }' (fetch)' ;;
			yes*) continue ;;
			esac
			remote=${entry%%"$tab"*}
			[ "$remote" != "$entry" ] || { rc=98 && continue; }
			url=${entry#*"$tab"}
			case $url in *' (fetch)' | *' (push)') ;; *' (fetch) ['*) url=${url% \[*} ;; *) rc=97 && continue ;; esac
			url=${url% (*)}
			leads "$url"
			case $settings in *"${newline}vcs $remote$newline"*) where=helper ;; esac
			# An address that no push can reach, as people set it where nothing is to be pushed.
			case $where$entry in gone*' (push)' | helper*' (push)' | unknown*"$tab (push)")
				case $distrusted@$trusted in *"$newline$remote$newline"*@*) ;; *@*"$newline$remote$newline"*) unused "$remote" && continue ;; esac
				;;
			esac
			case $trusted$distrusted in *"$newline$remote$newline"*) ;; *) configured=$((configured + 1)) ;; esac
			[ ! -L "$common/refs/remotes" ] && [ ! -L "$common/refs/remotes/$remote" ] || where=unknown
			case $where in
			network | local)
				case $trusted in *"$newline$remote$newline"*) ;; *) trusted=$trusted$remote$newline ;; esac
				[ "$where" = local ] && case $locals in *"$newline$remote $there$newline"* | "$remote $there$newline"*) ;; *) locals=$locals$remote' '$there$newline ;; esac
				;;
			*)
				distrusted=$distrusted$remote$newline
				sample_of "remote_$where" "$remote"
				case $where in inside) inner=$((inner + 1)) ;; *) other=$((other + 1)) ;; esac
				;;
			esac
		done
		;;
	esac
	rest_remote=$trusted
	while [ -n "$rest_remote" ]; do
		remote=${rest_remote%%"$newline"*} rest_remote=${rest_remote#*"$newline"}
		[ -n "$remote" ] || continue
		case $distrusted in *"$newline$remote$newline"*) ;; *) good=$((good + 1)) ;; esac
	done
	record remotes "$i" "$rc" "$configured" "$good" "$inner" "$other"
}

# written FILE: when, in seconds.
written() {
	case $dialect in
	printf) find "$1" -maxdepth 0 -printf '%T@\n' ;;
	stat-c) stat -c %Y "$1" ;;
	stat-f) stat -f %Fm "$1" ;;
	esac 2>/dev/null </dev/null
}

# packed: packed-refs is there and not newer than $mark. Only GNU's find is sure to
# look at parts of a second; elsewhere both times must show them.
packed() {
	[ -f "$common/packed-refs" ] && [ -z "$(find "$common/packed-refs" -newer "$mark" 2>&1)" ] || return 1
	case $dialect in
	printf) return 0 ;;
	stat-c) times=$(stat -c %y "$common/packed-refs" "$mark" 2>/dev/null) ;;
	*) times=$(stat -f %Fm "$common/packed-refs" "$mark" 2>/dev/null) ;;
	esac
	case $times in *.*[1-9]*"$newline"*.*[1-9]*) ;; *) return 1 ;; esac
	[ "$(printf '%s\n' "$times" | sort)" = "$times" ]
}

# cloned: the tags in packed-refs came with the clone: nothing was packed since a
# trusted remote's HEAD was written, of which git gc dates only the log anew; or,
# as a clone of one tag makes no such name, since the clone wrote HEAD, which did
# not move since, and where no remote is distrusted. Leaves that file in $mark.
cloned() {
	rest_remote=$trusted mark=''
	while [ -n "$rest_remote" ]; do
		remote=${rest_remote%%"$newline"*} rest_remote=${rest_remote#*"$newline"}
		[ -n "$remote" ] || continue
		case $distrusted in *"$newline$remote$newline"*) continue ;; esac
		marks "$common/logs/refs/remotes/$remote/HEAD" "$common/refs/remotes/$remote/HEAD" && packed && return 0
	done
	case $trusted in "$newline") return 1 ;; esac
	case $distrusted in "$newline") ;; *) return 1 ;; esac
	[ -z "$mark" ] && marks "$common/logs/HEAD" "$common/HEAD" && packed
}

# marks LOG FILE: the one entry of LOG says that it was cloned, and when, and FILE
# is as old as it says, and so in no copy that did not keep the dates. Leaves FILE in $mark.
marks() {
	line "$1" || return 1
	case $line in *"$tab"'clone: from '*) ;; *) return 1 ;; esac
	said=${line%%"$tab"*}
	{ IFS= read -r line && ! IFS= read -r line && [ -z "$line" ]; } <"$1" || return 1
	if [ ! -f "$2" ] || [ -L "$2" ]; then return 1; fi
	said=${said% *} when=$(written "$2")
	when=${when%%.*} said=${said##* }
	case $when$said in '' | *[!0-9]*) return 1 ;; esac
	said=$((when - said + 1))
	[ "${#said}" = 1 ] || return 1
	mark=$2
}

# brought: the tags whose objects lie in what is no newer than $mark. A pack's index
# keeps its date when git renews the pack's. An object by itself may be made in the
# second of the clone, which only GNU's find tells apart.
brought() {
	{
		find "$common/objects/pack" -name 'pack-*.idx' ! -newer "$mark" -size -131072 2>/dev/null | while IFS= read -r index; do
			gs show-index <"$index" 2>/dev/null
		done
		[ "$dialect" != 'printf' ] || find "$common"/objects/[0-9a-f][0-9a-f] -type f ! -newer "$mark" 2>/dev/null | sed 's|.*/\(..\)/\([0-9a-f]*\)$|- \1\2|'
		printf 'listing\n%s\n' "$listed"
	} | awk '
		!listing && $1 == "listing" { listing = 1; next }
		!listing { came[$2] = 1; next }
		$NF ~ /^refs\/tags\// && $1 in came { print "cloned " $1 " " $NF }'
}

# saved: leaves in $saved a name beside HEAD, or at any depth below, that holds the
# name of an object and that git does not write by itself, and in $saves every such
# object. It is a ref as well: "git update-ref wip" makes one, and so do
# "git update-ref info/my-index" and "git update-ref ORIG_HEAD/wip". Only files that
# are wholly git's are passed over, and what for-each-ref and the stopped
# operations tell of.
saved() {
	saved='' saves=''
	for entry in "$D"/*; do
		name=${entry##*/}
		[ ! -d "$entry" ] || name=$name/
		case $name in
		HEAD | ORIG_HEAD | FETCH_HEAD | REBASE_HEAD | AUTO_MERGE | CHERRY_PICK_HEAD | REVERT_HEAD | MERGE_HEAD | MERGE_AUTOSTASH | BISECT_HEAD | BISECT_EXPECTED_REV | BISECT_START | BISECT_ANCESTORS_OK | NOTES_MERGE_PARTIAL) ;;
		shallow | index | refs/ | rebase-merge/ | rebase-apply/ | sequencer/) ;;
		objects/ | worktrees/ | logs/ | lfs/ | annex/)
			for below in "$entry"/*; do
				case $name${below##*/} in
				objects/[0-9a-f][0-9a-f] | logs/refs | worktrees/* | lfs/objects | annex/objects) ;;
				objects/pack | objects/info) for file in "$below"/*; do saved_in "$file"; done ;;
				*) saved_below "$below" ;;
				esac
			done
			;;
		*) saved_below "$entry" ;;
		esac
	done
}
# saved_below ENTRY: a repository further down is judged by itself.
saved_below() {
	if [ ! -d "$1" ]; then
		saved_in "$1"
	elif [ ! -L "$1" ] && { [ ! -f "$1/HEAD" ] || [ ! -d "$1/objects" ]; }; then
		for entry in "$1"/*; do saved_below "$entry"; done
	fi
}
saved_in() {
	line "$1" && case ${#line}$line in *[!0-9a-f]*) ;; 40* | 64*) saved=${1#"$D"/} saves=$saves$newline$line ;; esac
}

# fetched: what the last fetch brought from a directory that is gone, or from a file
# that is, stands nowhere else unless a ref holds it. Adds it to $saved and $saves.
fetched() {
	line "$D/FETCH_HEAD" || return 0
	from='' where=''
	while IFS= read -r entry; do
		url=${entry##*"$tab"}
		url=${url##* of }
		[ "$url" = "$from" ] || { from=$url && leads "$url"; }
		[ "$where" != gone ] || saved=FETCH_HEAD saves=$saves$newline${entry%%"$tab"*}
	done <"$D/FETCH_HEAD"
}

# plain: what was learned of the refs already says that nothing here would be
# lost: everyone who tracks a ref is trusted, and a local remote has it all.
plain() {
	case $known in *"${newline}refs "*) ;; *) return 1 ;; esac
	rest_entry=${known#*"${newline}refs "}
	sums=${rest_entry%%"$newline"*}
	set -f
	# shellcheck disable=SC2086 # five numbers
	set -- $sums
	case "$# ${5-}" in '5 1') ;; *) set +f && return 1 ;; esac
	refs=$1 tracked=$2 proven=$3 tags=$4
	while :; do
		case $rest_entry in *"${newline}tracked "*) rest_entry=${rest_entry#*"${newline}tracked "} ;; *) break ;; esac
		for remote in ${rest_entry%%"$newline"*}; do
			case $distrusted in *"$newline$remote$newline"*) set +f && return 1 ;; esac
			case $trusted in *"$newline$remote$newline"*) ;; *) set +f && return 1 ;; esac
		done
	done
	set +f
	[ "$tags" = 0 ] || cloned || return 1
	asked=0
	rest_entry=$locals
	while [ -n "$rest_entry" ]; do
		entry=${rest_entry%%"$newline"*} rest_entry=${rest_entry#*"$newline"}
		there=${entry#* }
		case $known in *"${newline}tips ${entry%% *}$newline"*) tips=${known#*"${newline}tips ${entry%% *}$newline"} ;; *) continue ;; esac
		tips=${tips%%"${newline}tips "*}
		tips=${tips%"$newline"}
		asked=$((asked + 1))
		[ "$(printf '%s\n' "$tips" | at "$there" "$there" rev-list --count --stdin --not --all 2>/dev/null)" = 0 ] || return 1
	done
	record refs "$i" 0 "$refs" 0 "$tracked" "$proven" 0 0 0
	record vouched "$i" "$asked" 0
	nothing
}

probe_refs() {
	plain && return 0
	listed=$(
		refs_of '' 2>&1
		printf '@ %s\n' $?
	)
	# Tags that came with the clone, where that can be shown.
	cloned=''
	case $listed in
	*' refs/tags/'*)
		if cloned; then
			cloned=$(awk '$2 ~ /^refs\/tags\// { print "cloned " $1 " " $2 }' "$common/packed-refs" 2>/dev/null)
		elif [ -n "$mark" ]; then
			cloned=$(brought)
		fi
		;;
	esac
	proven_here=''
	[ -z "$came" ] || upheld
	# A stash whose ref is gone stays in its log; annexed content is named by no ref.
	lone=0 annexed='' strays=''
	saved
	fetched
	line "$D/HEAD" || line=''
	headed=$line
	if [ -n "$saves" ]; then
		saves=$(printf '%s\n' "$saves" | gs cat-file --batch-check='%(objecttype) %(objectname)' 2>/dev/null)
		case $saves in tree\ * | *"$newline"tree\ * | *blob\ * | *tag\ *) strays=$saved ;; esac
		saves=$(printf '%s\n' "$saves" | sed -n 's/^commit //p')
		[ -n "$saves$strays" ] || saved=''
	fi
	if [ "$scope" = all ]; then
		case $listed in *' refs/stash'*) ;; *) [ -s "$common/logs/refs/stash" ] && lone=1 ;; esac
		[ -d "$common/annex/objects" ] && annexed=$(find "$common/annex/objects" ! -type d 2>&1 | sed 1q)
	fi
	# No remote that counts has a name with a space in it. What two remotes may have
	# written is proven by the one that can be asked.
	sorted=$newline$(printf 'who trust\n%s\nwho distrust\n%s\nwho near\n%s\nwho else\n%s\n%s\nlisting\n%s\n' "$trusted" "$distrusted" "$locals" "$settings" "$cloned" "$listed" | headed=$headed scope=$scope lone=$lone annexed=${annexed:+1} strays=$strays awk "$covers"'
		BEGIN { scope = ENVIRON["scope"]; moved[substr(ENVIRON["headed"], 6)] = 1 }
		listing && /^@ / { rc = $2; next }
		!listing && $1 == "who" && NF == 2 && $2 !~ /^\// { who_is = $2; next }
		!listing && who_is == "trust" { if (NF == 1) trust[$1] = 1; next }
		!listing && who_is == "near" { near[$1] = 1; next }
		!listing && who_is == "distrust" { if (NF == 1) distrust[$1] = 1; next }
		!listing && $1 == "fetch" { spec = substr($0, length($1 $2) + 3); r++; who[r] = $2; sub(/^\+/, "", spec); c = index(spec, ":"); dst[r] = (c && spec !~ /^\^/) ? substr(spec, c + 1) : ""; next }
		!listing && $1 == "cloned" { cloned[$3] = $2; next }
		!listing && $1 == "listing" { listing = 1; next }
		!listing { next }
		/^warning: ignoring (broken|dangling)/ { print "B " $NF; next }
		{ colon = index($NF, ":"); names = substr($NF, 1, colon ? colon - 1 : 0); $NF = substr($NF, colon + 1) }
		NF != 3 && NF != 4 || $1 !~ /^[0-9a-f]+$/ || $NF !~ /^refs\// { odd++; next }
		{
			refs++; ref = $NF; type = $2; deep = NF == 4 ? $3 : ""
			if (scope == "own") { if (ref ~ /^refs\/(bisect|worktree|rewritten)\//) { print "P " $1; if (type != "commit" && !loose++) first = ref } }
			if (ref == "refs/stash") { if (scope == "all") stash++; next }
			# What is committed to through HEAD or a branch tracks nothing.
			if (ref !~ /^refs\/remotes\// && names != "") moved[names] = 1
			if (names == "") names = ref
			if (ref ~ /^refs\/remotes\// && names ~ /^refs\/remotes\// && !(names in moved)) {
				good = 0
				for (k = 1; k <= r; k++) if (dst[k] != "" && covers(dst[k], names)) {
					if (!(who[k] in trust) || (who[k] in distrust) || (good && who[k] != who[good] && (who[k] in near) && (who[good] in near))) { good = -1; break }
					if (!good || who[k] in near) good = k
				}
				if (good > 0) { tracked++; if (!(($1 " " who[good]) in was)) { was[$1 " " who[good]] = 1; print "N " $1 " " who[good] } next }
			}
			if (ref in cloned && cloned[ref] == $1) { proven++; print "N " $1; next }
			if (scope == "all" && type != "commit") { if (!loose++) first = ref }
		}
		END { stash += ENVIRON["lone"]; if (ENVIRON["strays"] != "") { loose++; first = ENVIRON["strays"] } if (ENVIRON["annexed"] != "") { loose++; first = "annex/objects" }
		  printf "C %d %d %d %d %d %d %d\n", (rc == "" ? 99 : rc), refs, stash, tracked, proven, loose, odd; if (first != "") print "S " first }')
	negatives='' positives='' counted='' dangling=0 first=''
	negatives=$(printf '%s\n' "$sorted" | sed -n 's/^N //p')${proven_here:+$newline}$proven_here
	[ "$scope" = all ] || positives=$(printf '%s\n' "$sorted" | sed -n 's/^P //p')
	positives=$positives${saves:+$newline$saves}
	case $sorted in *"${newline}C "*) counted=${sorted##*"${newline}C "} && counted=${counted%%"$newline"*} ;; esac
	case $sorted in *"${newline}S "*) first=${sorted##*"${newline}S "} && first=${first%%"$newline"*} ;; esac
	rest_ref=$sorted$newline
	while :; do
		case $rest_ref in *"${newline}B "*) rest_ref=${rest_ref#*"${newline}B "} ;; *) break ;; esac
		ref=${rest_ref%%"$newline"*} rest_ref=$newline${rest_ref#*"$newline"}
		[ -n "$ref" ] || continue
		line "$common/$ref" && case $line in 'ref: refs/remotes/'*) continue ;; esac
		dangling=$((dangling + 1))
	done
	# shellcheck disable=SC2086 # seven numbers
	record refs "$i" $counted "$dangling"
	[ -z "$first" ] || sample_of loose "$first"
	probe_vouched
	probe_unpushed
}

# nothing: no commit would be lost.
nothing() {
	record unpushed "$i" 0 0
	record abandoned "$i" 0 0
}

# A local remote is asked: what it no longer holds it no longer proves.
probe_vouched() {
	asked=0 failed=0
	rest_entry=$locals$newline
	while [ -n "$rest_entry" ]; do
		entry=${rest_entry%%"$newline"*} rest_entry=${rest_entry#*"$newline"}
		[ -n "$entry" ] || continue
		remote=${entry%% *} there=${entry#* }
		tips=$(printf '%s\n' "$negatives" | remote=$remote awk '$2 == ENVIRON["remote"] { print $1 } END { print "whole" }')
		case $tips in whole) continue ;; *"$newline"whole) tips=${tips%"$newline"*} ;; *) negatives='' ;; esac
		asked=$((asked + 1))
		if [ "$(printf '%s\n' "$tips" | at "$there" "$there" rev-list --count --stdin --not --all 2>/dev/null)" != 0 ]; then
			present=$(printf '%s\n' "$tips" | at "$there" "$there" cat-file --batch-check='%(objectname) %(objecttype)' 2>/dev/null | awk '$2 == "commit" { print $1 }')
			missing=$(printf '%s\n' "$present" | at "$there" "$there" rev-list --stdin --not --all 2>/dev/null && echo whole)
			failed=$((failed + 1))
			negatives=$(printf '%s\nheld\n%s\nmissing\n%s\n' "$negatives" "$present" "$missing" | remote=$remote awk '
				$1 == "held" || $1 == "missing" { part = $1; next }
				!part { line[++n] = $0; next }
				part == "held" { held[$1] = 1; next }
				$1 == "whole" { whole = 1; next }
				{ delete held[$1] }
				END { for (k = 1; k <= n; k++) { split(line[k], w, " "); if (w[2] != ENVIRON["remote"] || (whole && w[1] in held)) print line[k] } }')
		fi
	done
	record vouched "$i" "$asked" "$failed"
}

# revs PROGRAM-ARGS: rev-list over what would die, without what is proven elsewhere.
unpushed() {
	printf 'not\n%s\nof\n%s\n%s\n' "$negatives" "$positives" "$extra" | awk '
		/^not$/ { sign = "^"; next }
		/^of$/ { sign = ""; next }
		/^[0-9a-f]/ { print sign $1 }' | if [ "$scope" = all ]; then gs rev-list "$@" --stdin --exclude=refs/stash --all; else gs rev-list "$@" --stdin $head; fi 2>/dev/null
}

entry_of_log='/^[0-9a-f]+ [0-9a-f]+ /'

# leaves: awk's function for whether an entry of HEAD's log left the old commit
# behind. Asked of every entry in turn. None does whose new commit has the old one
# for a parent, or was made in its place (amended, rebased, squashed). Every other
# does: checkout, reset, a forced fetch, update-ref, what a tool of its own calls
# it; and the end of a rebase that was given up, with commits made by hand in it.
# shellcheck disable=SC2016 # it is awk's
leaves='function leaves(message) {
	if (message ~ /^commit/) made = 1
	else if (message ~ /\(start\)/) made = 0
	if (message ~ /\(abort\)/ && made || message ~ /: forced-update$/) return 1
	return message !~ /^(commit|rebase|cherry-pick|revert|am|merge|pull|clone|initial)([ :]|$)/ || message ~ /^[^(]*: updating HEAD$/
}'

probe_unpushed() {
	head=HEAD
	case $scope$headed in
	'ownref: '*) g rev-parse -q --verify HEAD >/dev/null 2>&1 || head='' ;;
	esac
	left='' log=''
	if [ -s "$D/logs/HEAD" ]; then
		left=$(awk -F '\t' "$leaves"'
			function tip(c) { if (c ~ /^[0-9a-f]+$/ && c !~ /^0*$/ && !(c in was)) { was[c] = 1; print c } }
			!'"$entry_of_log"' { odd = 1 }
			{ split($1, w, " "); if (NR > 1 && w[1] != now) tip(now); now = w[2] }
			leaves($2) && w[1] != w[2] { tip(w[1]) }
			END { tip(now); if (!odd) print "whole" }' "$D/logs/HEAD" 2>/dev/null)
		case $newline$left in *"$newline"whole) log=$D/logs/HEAD left=${left%whole} && left=${left%"$newline"} ;; esac
	fi
	# Without a log of HEAD, or with one that was emptied or damaged, every commit at
	# hand may be one that it left.
	if [ -z "$log" ] && [ "$scope" = all ] && worked; then
		left=$(g cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' 2>/dev/null | sed -n 's/^commit //p')
	fi
	extra=$left
	if [ "$scope" = own ] && [ -z "$head$positives$extra" ]; then
		nothing
		return
	fi
	number=$(unpushed --count)
	rc=$?
	if [ "$rc" = 0 ] && [ "$number" = 0 ]; then
		nothing
		return
	fi
	extra=''
	number=0 rc=0
	if [ "$scope" = all ] || [ -n "$head$positives" ]; then
		number=$(unpushed --count)
		rc=$?
	fi
	case $number in '' | *[!0-9]*) number=0 && [ "$rc" != 0 ] || rc=96 ;; esac
	record unpushed "$i" "$rc" "$number"
	if [ "$number" != 0 ]; then
		holders=$({
			unpushed --max-count=2000
			printf 'listing\n%s\n' "$listed"
		} | awk '/^listing$/ { l = 1; next } !l { c[$1] = 1; next } $1 in c && n < 3 && $NF !~ /^refs\/stash$/ { n++; sub(/^.*:/, "", $NF); print $NF }')
		rest_ref=$holders$newline
		while [ -n "$rest_ref" ]; do
			ref=${rest_ref%%"$newline"*} rest_ref=${rest_ref#*"$newline"}
			[ -n "$ref" ] && sample_of holder "$ref"
		done
		case $headed in 'ref: '*) [ -n "$holders" ] || [ -z "$saved" ] || sample_of holder "$saved" ;; *) sample_of holder HEAD ;; esac
	fi
	# Tips that HEAD left, that nothing reaches, and whose tree was never committed
	# again: not by a later entry of the log, not at a tip.
	tips=0 rc=0
	if [ -n "$left" ]; then
		lost=$(printf '%s\n' "$left" | gs rev-list --parents --ignore-missing --stdin --not --all 2>/dev/null) || rc=$?
		[ -n "$log" ] || lost=$(printf '%s\n' "$lost" | awk '{ c[NR] = $1; for (k = 2; k <= NF; k++) kept[$k] = 1 } END { for (k = 1; k <= NR; k++) if (!(c[k] in kept)) print c[k] }')
		lost=$(printf '%s\nleft\n%s\n' "$lost" "$left" | awk '/^left$/ { l = 1; next } !l { c[$1] = 1; next } $1 in c')
		proven=$(printf '%s\n' "$negatives" | sed -n 's/^\([0-9a-f][0-9a-f]*\).*/\1/p')
		if [ "$rc" = 0 ] && [ -n "$lost" ]; then
			names=$({
				printf '%s\n%s\n' "$lost" "$proven"
				[ -z "$log" ] || awk '{ print $2 }' "$log"
				printf '%s\n' "$listed" | sed -n 's/^\([0-9a-f][0-9a-f]*\) commit .*/\1/p'
			} | sed '/^$/d;s/$/^{tree}/' | awk '!was[$0]++')
			tips=$({
				printf '%s\n' "$lost" | sed 's/^/lost /'
				printf '%s\n' "$names" | gs cat-file --batch-check='%(objectname) %(objecttype)' 2>/dev/null | sed 's/^/tree /'
				printf '%s\n' "$names" | sed 's/^/name /'
				printf '%s\n' "$listed" | sed -n 's/^\([0-9a-f][0-9a-f]*\) commit .*/tip \1/p'
				printf '%s\n' "$proven" | sed 's/^/tip /'
				[ -z "$log" ] || sed 's/^/log /' "$log"
			} | awk "$leaves"'
				$1 == "lost" { lost[$2] = 1; next }
				$1 == "tree" { id[++t] = $3 == "tree" ? $2 : ""; next }
				$1 == "name" { c = $2; sub(/\^\{tree\}$/, "", c); of[c] = id[++m]; next }
				$1 == "tip" { if ($2 in of && of[$2] != "") again[of[$2]] = 1e9; next }
				$1 == "log" {
					msg = $0; if (!sub(/^[^\t]*\t/, "", msg)) msg = ""
					went = leaves(msg)
					if (n && $2 != now && (now in lost)) gone[now] = n
					n++; now = $3
					if (went && $2 != now) { if ($2 in lost) gone[$2] = n }
					else if (now in of && of[now] != "") again[of[now]] = n
					delete gone[now]
				}
				END {
					if (now in lost) gone[now] = n
					if (!n) for (c in lost) gone[c] = 0
					for (c in lost) if (c in gone) { t = of[c]; if (t == "" || !(t in again) || again[t] <= gone[c]) k++ }
					print k + 0
				}')
		fi
	fi
	case $tips in '' | *[!0-9]*) tips=0 rc=95 ;; esac
	record abandoned "$i" "$rc" "$tips"
	[ "$tips" = 0 ] || sample_of abandoned "${lost%%"$newline"*}"
}

# disposable: functions
inventory() {
	opening inventory
	probe_shape
	[ "$shape" = directory ] || return 0
	probe_manifest
	probe_live
	collect
	came=''
	[ -z "$baseline" ] || probe_baseline
	record repositories "$repositories"
	[ "$repositories" -le 400 ] || return 0
	# disposable: lane
	first=1
	while [ "$first" -le 4 ] && [ "$first" -le "$repositories" ]; do
		set --
		next=$first
		while [ "$next" -le "$repositories" ]; do
			set -- "$@" "$next"
			next=$((next + 4))
		done
		lane "$@" &
		first=$((first + 1))
	done
	probe_mounts
	probe_borrowers
	probe_worktrees
	wait
	record finished
}
tab='	'
# The sum is over every line before it: an answer damaged on its way is no answer.
body=$(inventory)
printf '%s\n' "$body"
# shellcheck disable=SC2046 # two numbers
record sum $(printf '%s\n' "$body" | cksum)
set -f
IFS=$newline
# shellcheck disable=SC2086 # its lines are wanted
set -- $body
records=$#
closing
