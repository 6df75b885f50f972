# Runs a cleanup script and answers how it ended. What it prints goes to a file
# of its own: a job it leaves behind must not keep the answer waiting.
umask 077
hex() { od -An -v -tx1 | tr -d ' \n\t'; }
answer() {
	printf 'reclaim 1 hook\n'
	n=0
	for record do
		printf '%s\n' "$record"
		n=$((n + 1))
	done
	printf 'end %d\n' "$n"
	exit 0
}
cannot() { answer "cannot ~$(printf %s "$1" | hex)"; }

case $shell in '') shell=${SHELL:-/bin/sh} ;; esac
command -v "$shell" >/dev/null 2>&1 || cannot "the login shell $shell is not on this host"
cd -P -- "$dir" 2>/dev/null || cannot "the task directory cannot be entered"
work=$(mktemp -d "${TMPDIR:-/tmp}/reclaim-hook.XXXXXX" 2>/dev/null) && test -d "$work" || cannot "no temporary directory can be made"
trap 'rm -f -- "$work/started" "$work/output"; rmdir -- "$work"' EXIT

# A profile may change the directory or end the shell: the first line proves
# that the script was reached, the second that it starts where it must.
RECLAIM_TASK_DIR=$dir
RECLAIM_STARTED=$work/started
export RECLAIM_TASK_DIR RECLAIM_STARTED
program='cd "$RECLAIM_TASK_DIR" || exit 1
echo started >"$RECLAIM_STARTED"
'$program
option=-lc
case ${shell##*/} in
*csh) option=-c program='if ( -r ~/.login ) source ~/.login
'$program ;;
esac
"$shell" "$option" "$program" </dev/null >"$work/output" 2>&1
status=$?

output=$(tail -c 1000 "$work/output" 2>/dev/null | hex)
if test -s "$work/started"; then
	answer started "status $status" "output ~$output"
fi
answer "status $status" "output ~$output"
