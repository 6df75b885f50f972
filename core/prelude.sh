# What every script of ours opens with: an environment that no login profile,
# no exported function, no shell option (SHELLOPTS, BASHOPTS) and no git variable
# can bend, and the ways to print records (core/records.go).
set -u +a +e +f +C
umask 077
trap '' PIPE HUP
IFS=' 	
'
newline='
'
unset -f command unset export 2>/dev/null || :
unalias -a 2>/dev/null || :
# shellcheck disable=SC3040 # where they are known
{ command set +k; command set +o pipefail; } 2>/dev/null || :
for name in git awk sed tr od find stat ls cat env rm mv mkdir rmdir chmod ps lsof mount uname id date sort head wc \
	readlink dirname basename tail xargs cksum grep ln cut sysctl print cd pwd test "[" printf echo read kill wait true false umask type hash getopts; do
	command unset -f "$name" 2>/dev/null || :
done

# What is judged lends its judge no program: the entries of PATH that lead into
# the tasks' directory are left out, before the first program is run.
case ${root-} in
'') ;;
*)
	case $root in
	\~ | \~/*) tasks=${HOME-}${root#?}/tasks ;;
	*) tasks=$root/tasks ;;
	esac
	cd -P "$tasks" 2>/dev/null && tasks=$PWD
	name=
	set -f
	IFS=:
	for entry in ${PATH-}; do
		case $entry in /*) cd -P "$entry" 2>/dev/null || continue ;; *) continue ;; esac
		case $PWD/ in "$tasks"/*) ;; *) name=$name:$entry ;; esac
	done
	set +f
	IFS=' 	
'
	PATH=${name#:}
	: "${PATH:=/usr/local/bin:/usr/bin:/bin}"
	export PATH
	cd /
	;;
esac
unset CDPATH ENV BASH_ENV GREP_OPTIONS POSIXLY_CORRECT TMOUT LANGUAGE LS_BLOCK_SIZE BLOCK_SIZE BLOCKSIZE QUOTING_STYLE TIME_STYLE FIGNORE GLOBIGNORE 2>/dev/null || :
# Where it is bash.
eval 'shopt -u dotglob failglob nocaseglob nocasematch nullglob' 2>/dev/null || :
LC_ALL=C TZ=UTC0
export LC_ALL TZ
# Whatever looks like a name of git's in what is exported goes; what is no name is
# not there. A shell that does not list what it exports is known by LC_ALL.
exported=$(export -p 2>/dev/null)
case $exported in *LC_ALL*) ;; *) exported=$(command env) ;; esac
while :; do
	case $exported in *GIT_*) exported=${exported#*GIT_} ;; *) break ;; esac
	command unset "GIT_${exported%%[!A-Za-z0-9_]*}" || :
done
export GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=none-allowed GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1
export GIT_GRAFT_FILE=/dev/null/none GIT_ATTR_NOSYSTEM=1 GIT_LITERAL_PATHSPECS=1 GIT_PAGER=cat GIT_EDITOR=false GIT_ASKPASS=false
export GIT_SSH_COMMAND=false GIT_TRACE=0 GIT_TRACE2=0 GIT_TRACE2_EVENT=0 GIT_TRACE2_PERF=0 GIT_TRACE_SETUP=0

# The printf of mksh is a program, and takes no word of more than 128 KiB. A line
# is written at once: several of us write records at the same time.
case ${KSH_VERSION-} in
*MIRBSD* | *LEGACY*)
	printf() {
		printf_form=$1 printf_out=''
		while :; do
			case $printf_form in *'\n'*) printf_form=${printf_form%%'\n'*}$newline${printf_form#*'\n'} ;; *) break ;; esac
		done
		case $printf_form in *%[!s]* | *\\*) command printf "$@"; return ;; esac
		shift
		while :; do
			printf_rest=$printf_form
			while :; do
				case $printf_rest in *%s*) ;; *) break ;; esac
				printf_out=$printf_out${printf_rest%%"%s"*}${1-}
				printf_rest=${printf_rest#*"%s"}
				[ $# -eq 0 ] || shift
			done
			printf_out=$printf_out$printf_rest
			[ $# -gt 0 ] || break
		done
		print -nr -- "$printf_out"
	}
	;;
esac

# field BYTES: leaves the bytes in $field as one word of a record. What od would
# say of a short text is said without it.
ascii=' !"#$%&'\''()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`abcdefghijklmnopqrstuvwxyz{|}~'
field() {
	case $1 in
	'') field='~' ;;
	*[!A-Za-z0-9/._,:@+-]*)
		field='~' field_rest=$1
		while [ -n "$field_rest" ] && [ ${#1} -le 64 ]; do
			field_tail=${field_rest#?}
			field_byte=${field_rest%"$field_tail"}
			field_at=${ascii%%"$field_byte"*}
			[ ${#field_at} -lt ${#ascii} ] || break
			field_at=$((${#field_at} + 32)) field_rest=$field_tail
			field=$field$((field_at / 16))
			case $((field_at % 16)) in
			10) field=${field}a ;; 11) field=${field}b ;; 12) field=${field}c ;; 13) field=${field}d ;; 14) field=${field}e ;; 15) field=${field}f ;;
			*) field=$field$((field_at % 16)) ;;
			esac
		done
		[ -z "$field_rest" ] || field="~$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \t\n')"
		;;
	*) field="=$1" ;;
	esac
}

# system, node, ourselves: what the host is, what it is called and who we are, in
# $system, $node and $uid. Linux tells without a program.
system() { { [ -r /proc/sys/kernel/ostype ] && read -r system </proc/sys/kernel/ostype; } || system=$(uname -s 2>/dev/null); }
node() { { [ -r /proc/sys/kernel/hostname ] && read -r node </proc/sys/kernel/hostname; } || node=$(uname -n 2>/dev/null); }
ourselves() {
	uid=''
	[ ! -r /proc/self/status ] || while read -r key _ uid _; do
		[ "$key" != Uid: ] || break
		uid=''
	done </proc/self/status
	case $uid in '' | *[!0-9]*) uid=$(id -u 2>/dev/null) ;; esac
}

# runs PID: a process of that number is there, be it another user's. One that
# ended and was not waited for runs nothing, unless threads of it still do.
runs() {
	if [ -r "/proc/$1/status" ]; then
		case $(sed -n 's/^State:[ 	]*//p' "/proc/$1/status" 2>/dev/null) in
		[ZX]*)
			set -- /proc/"$1"/task/*
			[ $# -gt 1 ]
			return
			;;
		esac
	else
		case $(ps -o stat= -p "$1" 2>/dev/null) in Z*) return 1 ;; esac
	fi
	command kill -0 "$1" 2>/dev/null || [ -d "/proc/$1" ] || ps -p "$1" >/dev/null 2>&1
}

# opening NAME, record KIND WORD..., closing: a whole answer, counted.
records=0
opening() {
	records=0
	printf 'reclaim 1 %s\n' "$1"
}
record() {
	records=$((records + 1))
	printf '%s\n' "$*"
}
closing() { printf 'end %s\n' "$records"; }
