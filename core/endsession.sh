# Ends a session's helper and removes the session's own folder. It goes nowhere
# through a link and signals nothing that was not started from the folder.
answer() {
	printf 'reclaim 1 endsession\n%s\nend 1\n' "$1"
	exit 0
}
case $session in '' | . | .. | */*) answer refused ;; esac
if test ! -e "$dir" && test ! -L "$dir"; then answer absent; fi
cd -P -- "$dir" 2>/dev/null || answer unreadable
top=$(pwd -P)
for part in .kandev sessions "$session"; do
	if test -L "./$part"; then answer refused; fi
	if test ! -d "./$part"; then
		if test -e "./$part"; then answer refused; fi
		answer absent
	fi
	cd -P -- "./$part" 2>/dev/null || answer unreadable
done
folder=$PWD

# The process's words, as far as this host tells them.
words() {
	if test -r "/proc/$1/cmdline"; then
		tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null
	else
		ps -ww -o args= -p "$1" 2>/dev/null || ps -o args= -p "$1" 2>/dev/null
	fi
}
ours() {
	case $(words "$1") in *"$folder/"*) return 0 ;; esac
	return 1
}
# A process that has ended but was not waited for runs nothing.
runs() {
	kill -0 "$1" 2>/dev/null || return 1
	case $(ps -o stat= -p "$1" 2>/dev/null || sed -n 's/^State:[ 	]*//p' "/proc/$1/status" 2>/dev/null) in Z*) return 1 ;; esac
	return 0
}

pid=
if test -f agentctl.pid && test ! -L agentctl.pid; then
	read -r pid <agentctl.pid || :
fi
case $pid in
*[!0-9]* | '' | 0 | 1) pid= ;;
esac
if test -n "$pid" && runs "$pid"; then
	if ! ours "$pid" && runs "$pid"; then answer foreign; fi
	kill -TERM "$pid" 2>/dev/null
	tries=0
	while runs "$pid" && test "$tries" -lt 5; do
		tries=$((tries + 1))
		sleep 1
	done
	if runs "$pid"; then
		kill -KILL "$pid" 2>/dev/null
		sleep 1
		if runs "$pid"; then answer alive; fi
	fi
fi
cd -P .. 2>/dev/null || answer kept
rm -rf -- "./$session" 2>/dev/null
if test -e "./$session" || test -L "./$session"; then answer kept; fi
# What the helper had started may take a moment to end after it, and until then
# it would count as somebody who works here.
cd / || answer ended
tries=0
while test "$tries" -lt 5; do
	busy=
	for place in /proc/[0-9]*/cwd; do
		case $(readlink "$place" 2>/dev/null) in "$top" | "$top"/*) busy=$place && break ;; esac
	done
	test -n "$busy" || break
	tries=$((tries + 1))
	sleep 1
done
answer ended
