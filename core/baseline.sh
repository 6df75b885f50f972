# The baseline of the launch: what the remotes themselves said they have, before
# any agent ran. Its digest is in $baseline, from the backend: a file that was
# written by anybody else, or changed, proves nothing. $came is exactly what was
# digested.
probe_baseline() {
	standing=absent
	if [ -f "$T/.kandev/baseline" ]; then
		standing=changed
		came=$(dd if="$T/.kandev/baseline" bs=65536 count=256 2>/dev/null)
		[ "$(printf '%s\n' "$came" | command git -C / hash-object --stdin 2>/dev/null)" = "$baseline" ] && standing=whole
	fi
	[ "$standing" = whole ] || came=''
	record baseline "$standing"
}

# upheld: what of the baseline still stands for this repository. Adds to $cloned
# the local refs that hold exactly such an object, and to $negatives the objects.
# A branch stands only where nothing here says that the remote has moved on or
# dropped it; where a tracking ref knows better, that alone decides.
upheld() {
	case $W in "$T") place=. ;; "$T"/*) place=${W#"$T"/} ;; *) return ;; esac
	from=$(printf '%s\n' "$came" | place=$place awk -F '\t' '$1 == "remote" && $3 == ENVIRON["place"] { print $2; exit }')
	[ -n "$from" ] || return 0
	leads "$from"
	held=''
	case $where in
	network) ;;
	local) held=$(at "$there" "$there" for-each-ref --format='%(objectname)' 2>/dev/null </dev/null) ;;
	*) return ;;
	esac
	stands=$({
		printf '%s\n' "$came"
		printf 'held\t\n%s\nlisting\t\n%s\n' "$held" "$listed"
	} | place=$place where=$where remotes=$configured awk -F '\t' '
		$1 == "held" || $1 == "listing" { part = $1; next }
		!part { if ($3 == ENVIRON["place"] && $1 ~ /^[0-9a-f]+$/) { n++; object[n] = $1; name[n] = $2 } next }
		part == "held" { there[$0] = 1; next }
		{ k = split($0, w, " "); if (w[1] !~ /^[0-9a-f]+$/ || w[k] !~ /^refs\//) next; here[w[k]] = w[1]; if (w[k] ~ /^refs\/remotes\//) tracking++ }
		END {
			for (i = 1; i <= n; i++) {
				o = object[i]; r = name[i]
				if (ENVIRON["where"] == "local" && !(o in there)) continue
				if (r ~ /^refs\/heads\//) good = here["refs/remotes/origin/" substr(r, 12)] == o || (ENVIRON["remotes"] == 0 && !tracking)
				else good = here[r] == o || r ~ /^refs\/(pull|changes|merge-requests)\//
				if (good) stands[o] = 1
			}
			for (r in here) if (here[r] in stands && r !~ /^refs\/remotes\// && r != "refs/stash") print "cloned " here[r] " " r
			for (o in stands) print "object " o
		}')
	cloned=$cloned$newline$(printf '%s\n' "$stands" | sed -n '/^cloned /p')
	proven_here=$(printf '%s\n' "$stands" | sed -n 's/^object //p' | gs cat-file --batch-check='%(objectname) %(objecttype)' 2>/dev/null | awk '$2 == "commit" || $2 == "tag" { print $1 }')
}
