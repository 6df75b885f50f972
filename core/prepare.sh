umask 022
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE
GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=file:git:http:https:ssh
export GIT_TERMINAL_PROMPT GIT_ALLOW_PROTOCOL
said='' count=0
say() {
	said="$said$1
"
	count=$((count + 1))
}
hex() { printf '~'; printf %s "$1" | od -An -v -tx1 | tr -d ' \n\t'; }
closing() {
	printf 'reclaim 1 prepare\n%send %d\n' "$said" "$count"
	exit 0
}
cannot() {
	said='' count=0
	say "cannot $(hex "$1")"
	closing
}

case $root in
'~') root=$HOME ;;
'~/'*) root=$HOME/${root#'~/'} ;;
esac
case $root in /*) ;; *) cannot "the workdir root $root is not absolute" ;; esac
command -v git >/dev/null 2>&1 || cannot "git is not on this host"
target=$root/tasks/$segment
say "home $(hex "$HOME")"
say "dir $(hex "$target")"
mkdir -p -- "$root/tasks" 2>/dev/null || cannot "$root/tasks cannot be made"
if test -L "$target"; then cannot "$target is a symbolic link"; fi
mkdir -- "$target" 2>/dev/null || test -d "$target" || cannot "$target cannot be made"
cd -P -- "$target" 2>/dev/null || cannot "$target cannot be entered"
here=$PWD
came='' untouched=yes

# nameless: takes whoever logs in, and the password, out of the URLs in a text.
nameless() { sed 's,://[^/ ]*@,://,g'; }

# checkout URL BASE PLACE: the current directory becomes a checkout, or is found as
# one. While every checkout was made here and now, what the remotes have is put
# down: asked of them, because refs that lie here could be somebody's own.
checkout() {
	found=fresh
	if test -e .git || test -L .git; then
		test "$(git rev-parse --show-toplevel 2>/dev/null)" = "$PWD" || cannot "$PWD holds something that is no checkout of its own"
		test "$(git config --get remote.origin.url)" = "$1" || cannot "$PWD is a checkout of something else"
		if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
			found=reused untouched=no
			return 0
		fi
		found=mended untouched=no
	else
		others=$(find . ! -name . -prune ! -name .kandev -print 2>/dev/null | head -n 1)
		test -z "$others" || cannot "$PWD is no checkout and holds other things, such as $others"
		git init -q . >/dev/null 2>&1 && git remote add origin "$1" 2>/dev/null || cannot "$PWD cannot be made a repository"
	fi
	why=$(git fetch -q --no-tags origin '+refs/heads/*:refs/remotes/origin/*' 2>&1) || cannot "$(printf '%s cannot be fetched: %s' "$1" "$(printf '%s\n' "$why" | tr -d '\r' | grep -vi '^warning' | head -n 1 | cut -c 1-300)" | nameless)"
	base=$2
	if test -z "$base"; then
		git remote set-head origin -a >/dev/null 2>&1
		base=$(git symbolic-ref -q refs/remotes/origin/HEAD 2>/dev/null)
		base=${base#refs/remotes/origin/}
	fi
	test -n "$base" || cannot "$(printf %s "$1" | nameless) names no branch to start from"
	git checkout -q --track -b "$base" "refs/remotes/origin/$base" >/dev/null 2>&1 || cannot "the branch $base of $(printf %s "$1" | nameless) cannot be checked out"
	test "$untouched" = yes || return 0
	has=$(git ls-remote "$1" 2>/dev/null) && url=$(git ls-remote --get-url "$1" 2>/dev/null) && test -n "$has" || { untouched=no && return 0; }
	came=$came$(
		printf 'remote\t%s\t%s\n' "$url" "$3"
		printf '%s\n' "$has" | place=$3 awk -F '\t' '$1 ~ /^[0-9a-f]+$/ && $2 ~ /^refs\// && $2 !~ /\^\{\}$/ && n++ < 50000 { print $1 "\t" $2 "\t" ENVIRON["place"] }'
		echo .
	)
	came=${came%.}
}
exclude() {
	file=$(git rev-parse --git-path info/exclude) && mkdir -p -- "${file%/*}" || cannot "the checkout's exclude file cannot be found"
	grep -qxF -- "$1" "$file" 2>/dev/null && return 0
	if test -s "$file" && test -n "$(tail -c 1 "$file")"; then echo >>"$file"; fi
	printf '%s\n' "$1" >>"$file" || cannot "the checkout's exclude file cannot be written"
}
primary() {
	checkout "$1" "$2" .
	say "checkout $found"
	exclude /.kandev/
}
additional() {
	cd -P -- "$here" || cannot "$here cannot be entered"
	exclude "/$(printf %s "$1" | sed 's/[][\\*?! ]/\\&/g')/"
	if test -L "./$1"; then cannot "$here/$1 is a symbolic link"; fi
	mkdir -- "./$1" 2>/dev/null || test -d "./$1" || cannot "$here/$1 cannot be made"
	cd -P -- "./$1" || cannot "$here/$1 cannot be entered"
	checkout "$2" "$3" "$1"
}
# baseline: written for an untouched directory only; its digest is of what is
# written here, not of a file that may be changed by then.
baseline() {
	cd -P -- "$here" || cannot "$here cannot be entered"
	if test -L .kandev; then cannot "$here/.kandev is a symbolic link"; fi
	mkdir -p .kandev/sessions 2>/dev/null || cannot "$here/.kandev cannot be made"
	test "$untouched" = yes || return 0
	rm -f .kandev/baseline.new
	printf %s "$came" >.kandev/baseline.new 2>/dev/null && mv -f .kandev/baseline.new .kandev/baseline || return 0
	say "baseline $(printf %s "$came" | git -C / hash-object --stdin)"
}
agent() {
	folder=$here/.kandev/sessions/$session
	if test -L "$folder"; then cannot "$folder is a symbolic link"; fi
	mkdir -p -- "$folder" || cannot "$folder cannot be made"
	pid=
	if test -f "$folder/agentctl.pid"; then read -r pid <"$folder/agentctl.pid"; fi
	case $pid in *[!0-9]* | '' | 0 | 1) pid= ;; esac
	if test -n "$pid" && kill -0 "$pid" 2>/dev/null; then
		case $(tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null || ps -ww -o args= -p "$pid" 2>/dev/null) in
		*"$folder/"*)
			say "agent resumed"
			say "pid $pid"
			return 0
			;;
		esac
	fi
	printf 'while test -e "$0"; do sleep 1; done\n' >"$folder/agent" || cannot "$folder cannot be written"
	nohup /bin/sh "$folder/agent" </dev/null >>"$folder/agentctl.log" 2>&1 &
	pid=$!
	echo "$pid" >"$folder/agentctl.pid" || cannot "$folder cannot be written"
	say "agent started"
	say "pid $pid"
}
