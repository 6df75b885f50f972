# The manifest: every entry of a directory, told by what changes when the entry
# does, in lines that do not depend on where the directory lies. A listing's
# lines are
#
#	TYPE INODE SIZE MODE OWNER LINKS MTIME CTIME PATH
#
# TYPE's first letter is f or - (file), d, l, p, s, b, c; PATH starts with "./".
# The directory itself is "top TYPE INODE MODE MTIME": a rename changes its ctime.
# An entry whose path holds a newline is "newline ..." and goes without its
# path, whose change shows in inode, ctime and parent; "newline-repository"
# stands before one that looks like a repository's. The last line is
# "walked RC". Times and types are spelled as the host spells them: a host is
# compared only with itself.
#
# A file of a repository's object store is told without its links and its ctime:
# git clone of a path shares these files, so that what another directory does to
# its own names of them shows here. One that is named by a digest and writable by
# nobody goes without its mtime, too, which git renews when it wants to write the
# same once more: its content is what its name says. Inode, size, mode, owner and
# name stay, so that nothing comes, goes or is replaced unseen.
#
# speak [DIR [ABOVE]]: what this host's find and stat say, in $dialect; the identity
# of DIR; and the device of ABOVE, in $above. The find of printf knows -lname, too.
speak() {
	set -- "${1:-/}" "${2:-/}"
	identity=$(find "$@" -maxdepth 0 ! -lname / -printf '%y %i %s %m %U %n %T@ %C@ %D\n' 2>/dev/null)
	case $identity in
	'd '[0-9]*"$newline"'d '[0-9]*)
		dialect='printf' above=${identity##* } identity=${identity%%"$newline"*}
		device=${identity##* } inode=${identity#d }
		inode=${inode%% *} identity=$device' '${inode%% *}
		return
		;;
	*)
		case $(stat -c '%A %i %s %a %u %h %y %z %d' / 2>/dev/null) in
		d*' '[0-9]*) dialect=stat-c ;;
		*)
			case $(stat -f '%Sp %i %z %Mp%Lp %u %l %Fm %Fc %d' / 2>/dev/null) in
			d*' '[0-9]*) dialect=stat-f ;;
			*) dialect=none ;;
			esac
			;;
		esac
		;;
	esac
	identity "$2"
	# shellcheck disable=SC2034 # the removal compares it
	above=$device
	identity "$1"
}

# identity DIR: leaves its device and inode in $device and $inode.
identity() {
	case $dialect in
	printf) identity=$(find "$1" -maxdepth 0 -printf '%D %i\n' 2>/dev/null) ;;
	stat-c) identity=$(stat -c '%d %i' "$1" 2>/dev/null) ;;
	stat-f) identity=$(stat -f '%d %i' "$1" 2>/dev/null) ;;
	*) identity='' ;;
	esac
	device=${identity%% *} inode=${identity#* }
}

# listing DIR: prints the lines. DIR is absolute; nothing below it is followed. It
# stands in DIR afterwards, and so belongs into a pipe.
listing() {
	walked=0
	cd -P "$1" 2>/dev/null || { printf 'walked 1\n' && return; }
	case $dialect in
	printf)
		find . -path . -printf 'top %y %i %m %T@\n' -o \
			! -path "*$newline*" -printf '%y %i %s %m %U %n %T@ %C@ %p\n' -o \
			\( -name .git -o -name objects -type d \) -printf 'newline-repository %i %C@\n' -o \
			-printf 'newline %y %i %s %m %U %n %T@ %C@\n' 2>/dev/null </dev/null || walked=1
		;;
	stat-c)
		stat -c 'top %A %i %a %y' . 2>/dev/null || walked=1
		find . -path "*$newline*" \( -name .git -o -name objects -type d \) -exec stat -c 'newline-repository %i %z' {} + 2>/dev/null || walked=1
		find . -path "*$newline*" -exec stat -c 'newline %A %i %s %a %u %h %y %z' {} + 2>/dev/null || walked=1
		find . ! -path . ! -path "*$newline*" -exec stat -c '%A %i %s %a %u %h %y %z %n' {} + 2>/dev/null || walked=1
		;;
	stat-f)
		stat -f 'top %Sp %i %Mp%Lp %Fm' . 2>/dev/null || walked=1
		find . -path "*$newline*" \( -name .git -o -name objects -type d \) -exec stat -f 'newline-repository %i %Fc' {} + 2>/dev/null || walked=1
		find . -path "*$newline*" -exec stat -f 'newline %Sp %i %z %Mp%Lp %u %l %Fm %Fc' {} + 2>/dev/null || walked=1
		find . ! -path . ! -path "*$newline*" -exec stat -f '%Sp %i %z %Mp%Lp %u %l %Fm %Fc %N' {} + 2>/dev/null || walked=1
		;;
	*) walked=1 ;;
	esac
	printf 'walked %s\n' "$walked"
}

# lasting: awk's function for what of a line is compared.
# shellcheck disable=SC2016 # it is awk's
lasting='function lasting(  at, w, n, k, kept) {
	if (!index($0, "/objects/") || $1 !~ /^[-f]/) return $0
	at = index($0, " ./")
	kept = $1 " " $2 " " $3 " " $4 " " $5
	if ($4 ~ /^0?[0145][0145][0145]$/ && $0 ~ /\/objects\/([0-9a-f][0-9a-f]|pack)\/(pack-)?[0-9a-f]+(\.[a-z]+)?$/) return kept substr($0, at)
	if ($0 !~ /\/objects\/(info\/(packs|commit-graph|commit-graphs\/[^\/]*)|pack\/multi-pack-index[^\/]*)$/) return $0
	n = split(substr($0, 1, at), w, " ")
	for (k = 7; k <= 6 + (n - 6) / 2; k++) kept = kept " " w[k]
	return kept substr($0, at)
}'

# tree DIR: leaves the digest of DIR's listing, the number of its entries (itself
# included), the bytes of its files that have no other name, and whether all of it
# was walked in $digest, $count, $bytes and $walked (0 is yes).
tree() {
	set -- "$(listing "$1" | awk "$lasting"'
		BEGIN { hash = "exec git -C / hash-object --stdin" }
		{ print (index($0, "/objects/") ? lasting() : $0) | hash }
		/^[-f]/ { if ($6 == 1) bytes += $3 }
		/^newline [-f]/ { if ($7 == 1) bytes += $4 }
		END { rc = close(hash); printf "%d %.0f %s\n", NR - 1, bytes, (rc == 0 && $1 == "walked") ? $2 : 1 }')"
	digest=${1%%"$newline"*} count=${1#*"$newline"}
	bytes=${count#* } count=${count%% *}
	walked=${bytes#* } bytes=${bytes%% *}
}

# manifest DIR [OUTSIDE...]: the same for DIR and for directories elsewhere
# whose state belongs to it. The digest is DIR's own, or over all of them; the
# entries and bytes of DIR alone are in $entries and $bytes.
manifest() {
	tree "$1"
	# shellcheck disable=SC2034 # the removal tells it
	entries=$count own=$bytes
	shift
	[ $# -eq 0 ] && return
	digests=$digest total=$count all=$walked
	for outside; do
		tree "$outside"
		digests=$digests$newline$digest total=$((total + count))
		[ "$walked" = 0 ] || all=1
	done
	digest=$(printf '%s\n' "$digests" | git -C / hash-object --stdin) count=$total walked=$all bytes=$own
}
