# What the inventory asks besides where a profile lets kinds of build output go.
# Each part stands where inventory.sh names it; the lines "table: NAME" are written
# from the table in disposable.go. A heap is a directory that has the shape of
# build output. Which heaps go is decided in core: here is only told what they are.

# disposable: telling
# table: telling

# disposable: entry
if (type == "d") {
	# table: directories
} else if (type != "l") {
	# table: files
}

# disposable: entries
if (ENVIRON["mode"] == "target") {
	for (p in shaped) if (p != "" && p !~ /\/\.git(\/|$)/ && p !~ /^\/\.kandev(\/|$)/ && heaps++ < 4000) print "heap " top p
}

# disposable: take
heap\ *) heaps=$heaps${rest}$newline ;;

# disposable: functions
heaps=''

# heaped: the heaps there are, as "ROW PLACE DIR": what lies in one that is proved
# is part of it, but for the kinds that have a place of their own there (PLACE -).
heaped() {
	heaps=$(printf '%s' "$heaps" | while IFS= read -r tree; do
		row_of "$tree"
		printf '%s %s\n' "$row" "$tree"
	done | awk '
		BEGIN {
			# table: nested
		}
		{ of[NR] = $1; dir[NR] = substr($0, length($1) + 2); if ($1 != 0) proved[dir[NR]] = 1 }
		END {
			for (k = 1; k <= NR; k++) {
				up = dir[k]
				place = "+"
				while (place == "+" && sub(/\/[^\/]*$/, "", up) && up != "") if (up in proved) place = (of[k] in nested) ? "-" : ""
				if (place != "" && n++ < 1000) print of[k], place, dir[k]
			}
		}')
	[ -z "$heaps" ] || heaps=$heaps$newline
}

# owned W: the heaps whose own checkout W is, as "NUMBER PATH", the path below W.
owned() {
	printf '%s' "$heaps" | checkouts=$checkouts w=$1 awk '
		BEGIN { n = split(ENVIRON["checkouts"], c, "\n"); for (k = 1; k <= n; k++) if (c[k] != "") checkout[c[k]] = 1; w = ENVIRON["w"] }
		{
			p = up = substr($0, length($1) + 4)
			while (sub(/\/[^\/]*$/, "", up) && up != "" && !(up in checkout)) ;
			if (up == w && !(p in checkout)) print NR, substr(p, length(w) + 2)
		}'
}

# excluded: reads "NUMBER PATH"; prints which rule of which file excludes each
# path, as "c +SOURCE\001PATH", or "c !..." for a rule that takes it in again.
# What lies in a heap of bytecode is asked about one by one: often only it is named.
excluded() {
	while IFS= read -r entry; do
		entry=${entry#* }
		printf './%s\0' "$entry"
		case /$entry in
		*/__pycache__) for file in "$W/$entry"/*; do [ -f "$file" ] && printf './%s\0' "${file#"$W"/}"; done ;;
		esac
	done | (unset GIT_LITERAL_PATHSPECS && gs -c core.excludesFile=/dev/null check-ignore -v -z --stdin 2>/dev/null) | tr '\000\012' '\012\001' | awk '
		NR % 4 == 1 { from = $0; next }
		NR % 4 == 3 { sign = substr($0, 1, 1) == "!" ? "!" : "+"; next }
		NR % 4 == 0 { print "c " sign from "\001" substr($0, 3) }'
}

# homes: reads "NUMBER PATH"; prints where a C or C++ build tree says that its
# sources lie, as "w NUMBER PATH".
homes() {
	while IFS= read -r entry; do
		file=$W/${entry#* }/CMakeCache.txt
		plainly "$file" || continue
		home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$file" 2>/dev/null)
		case $home in
		'') ;;
		"$W") printf 'w %s CMakeLists.txt\n' "${entry%% *}" ;;
		"$W"/*"$newline"*) printf 'w %s ?\n' "${entry%% *}" ;;
		"$W"/*) printf 'w %s %s/CMakeLists.txt\n' "${entry%% *}" "${home#"$W"/}" ;;
		*) printf 'w %s ?\n' "${entry%% *}" ;;
		esac
	done
}

# plainly FILE...: each is a regular file, by its own name.
plainly() {
	for file; do [ -f "$file" ] && [ ! -L "$file" ] || return 1; done
}

# either DIR NAME...: one of the names is a regular file or a directory there.
either() {
	either=$1
	shift
	for name; do
		[ ! -L "$either/$name" ] && { [ -f "$either/$name" ] || [ -d "$either/$name" ]; } && return 0
	done
	return 1
}

# tagged DIR: it carries the tag of cache directories, with its signature.
tagged() {
	plainly "$1/CACHEDIR.TAG" && line "$1/CACHEDIR.TAG" && case $line in 'Signature: 8a477f597d28d172789f06886806bc55'*) ;; *) false ;; esac
}

# one FILE...: the first is there; for patterns.
one() { [ -e "$1" ]; }

# opens FILE TEXT: the first line of FILE begins with TEXT.
opens() {
	plainly "$1" && line "$1" && case $line in "$2"*) ;; *) false ;; esac
}

# installed DIR: a package manager noted its end there, or, for a package of a
# workspace, in a directory of the same name further up.
installed() {
	up=${1%/*}
	while :; do
		either "$up/node_modules" .package-lock.json .yarn-integrity .yarn-state.yml .modules.yaml && return 0
		case $up in "$T" | '') return 1 ;; esac
		[ -e "$up/.git" ] && return 1
		up=${up%/*}
	done
}

# sourced DIR: every compiled file of it has its source beside it.
sourced() {
	for file in "$1"/*.pyc; do
		[ -e "$file" ] || continue
		name=${file##*/}
		name=${name%.pyc}
		name=${name%.opt-[12]}
		name=${name%-pytest-*}
		plainly "${1%/*}/${name%.*}.py" || return 1
	done
}

# row_of DIR: leaves the number of the row that DIR proves to be in $row, or 0.
row_of() {
	row=0
	# table: rows
}

# walk DIR...: the listing of the heaps, as the manifest's listing of a tree is.
walk() {
	case $dialect in
	printf) find "$@" -path "*$newline*" -printf 'newline\n' -o -printf '%y %i %s %m %U %n %T@ %C@ %p\n' ;;
	stat-c)
		find "$@" -path "*$newline*" -exec echo newline \; && find "$@" ! -path "*$newline*" -exec stat -c '%A %i %s %a %u %h %y %z %n' {} +
		;;
	stat-f)
		find "$@" -path "*$newline*" -exec echo newline \; && find "$@" ! -path "*$newline*" -exec stat -f '%Sp %i %z %Mp%Lp %u %l %Fm %Fc %N' {} +
		;;
	*) false ;;
	esac 2>/dev/null </dev/null || echo unwalked
}

# asked HOW PATH: what a name alone does not settle. record: a package installed
# there lists the file as its own; magic: what a linker makes opens so.
asked() {
	case $1 in
	record)
		case $2 in */site-packages/*) ;; *) return 1 ;; esac
		wanted=${2#*/site-packages/}
		[ "$(cat "${2%%/site-packages/*}"/site-packages/*.dist-info/RECORD 2>/dev/null </dev/null | wanted=$wanted awk '
			BEGIN { w = ENVIRON["wanted"] ",sha256=" }
			substr($0, 1, length(w)) == w { n++ }
			END { print n + 0 }')" = 1 ]
		;;
	magic)
		case $(od -An -v -tx1 -N4 "$2" 2>/dev/null | tr -d ' \t\n') in 7f454c46 | cffaedfe | cefaedfe | cafebabe | 213c6172) ;; *) false ;; esac
		;;
	esac
}

# probe_heaps: a record for each heap: its number, the row it proves to be in,
# fit or why it counts as work, how much it is, where it lies, and the entry that
# speaks against it.
probe_heaps() {
	(
		cd -P "$T" 2>/dev/null || exit 0
		{
			printf '%s' "$heaps" | T=$T awk '{ print $1, $2, "." substr($0, length($1) + 4 + length(ENVIRON["T"])) }'
			echo '@'
			printf '%s' "$heaps" | {
				set --
				while read -r row place tree; do
					case $row$place in 0* | *-) continue ;; esac
					set -- "$@" ".${tree#"$T"}"
					[ $# -lt 200 ] || { walk "$@" && set --; }
				done
				[ $# = 0 ] || walk "$@"
			}
		} | dialect=$dialect awk '
			function later(a, b) {
				if (b == "") return a != ""
				if (a == "") return 0
				if (length(a) == length(b) || dated) return a "" > b ""
				return a + 0 > b + 0 || (int(a) == int(b) && a "" > b "")
			}
			function heap(d,  up) {
				if (d in at) return at[d]
				if (!match(d, /\/[^\/]*$/)) return at[d] = 0
				up = substr(d, 1, RSTART - 1)
				return at[d] = heap(up)
			}
			function against(why, p) {
				if (!((t, why) in seen)) seen[t, why] = p
			}
			# table: marks
			BEGIN {
				dated = ENVIRON["dialect"] == "stat-c"
				# table: names
			}
			!listing && $0 == "@" { listing = 1; next }
			!listing {
				heaps++
				row[heaps] = $1
				tree[heaps] = substr($0, length($1) + 4)
				at[tree[heaps]] = heaps
				next
			}
			$0 == "newline" { newlines++; next }
			$0 == "unwalked" { unwalked++; next }
			{
				i = index($0, " ./")
				p = substr($0, i + 1)
				base = part[split(p, part, "/")]
				d = substr(p, 1, length(p) - length(base) - 1)
				type = substr($1, 1, 1)
				if (type == "d" && (p in at)) { t = at[p]; if (tree[t] == p) { size[t]++; last = ""; next } }
				if (d == last) t = now
				else { t = heap(d); last = d; now = t }
				if (!t) next
				r = row[t]
				size[t]++
				low = tolower(base)
				if (base == ".git") against("repository", p)
				f = substr(p, length(tree[t]) + 2)
				if (type == "d") {
					if (base in hidden) against("secret", p)
					if (packaged[r] && f !~ /^\./ && (f !~ /\// ? f !~ /^@/ : f ~ /^@[^\/]*\/[^\/]*$/)) package[t, f] = p
					if (base == "objects") bare[t, d]++
					if (topped[r] && f !~ /\// && !top(r, f)) against("loose", p)
					next
				}
				if (base == "HEAD") bare[t, d] += 1000
				if (type != "f" && type != "-") {
					if (type != "l") { against("special", p); next }
				} else if ($6 == 1) bytes[t] += $3
				else {
					if (!((t, $2) in names)) { bytes[t] += $3; inode[++inodes] = t SUBSEP $2; links[t, $2] = $6; first[t, $2] = p }
					names[t, $2]++
				}
				if (packaged[r] && base == "package.json" && match(f, /\/[^\/]*$/)) json[t, substr(f, 1, RSTART - 1)] = 1
				if (topped[r] ? f !~ /\// && !top(r, f) : (loosed[r] && type != "l" && f !~ /\// && !loose(r, f))) against("loose", p)
				if (whole[r]) {
					if (type == "l" || !every(r, f)) against("shape", p)
				}
				if (low in secret || substr(low, 1, 4) == ".env" || substr(low, 1, 3) == "id_" && low !~ /\.(pub|[cm]?[jt]sx?|map|py|pyc|rs|go|java|class|h|c|o|d)$/) named(p)
				else {
					if ((k = split(low, ext, ".")) > 1) {
						x = ext[k]
						if (x in key || x in data) { if (!(whole[r] && every(r, f))) named(p) }
						else if (x in doc || (x in prose && (!wordy[r] && x == "md" && !whole[r] && !excepted(r, f) || low ~ /(^|[^a-z]|my)(notes?|todos?|journal|diary|ideas|scratch|scratchpad|memo)([^a-z].*)?\.[a-z]*$/ && low !~ /release/))) against("notes", p)
					} else if (low in note) against("notes", p)
					if (substr(base, length(base)) == "~") against("notes", p)
				}
				if (whole[r]) next
				if (!dated) { m = $7; c = $8 }
				else {
					n = (split(substr($0, 1, i - 1), w, " ") - 6) / 2
					m = w[7] " " w[8]; c = w[7 + n] " " w[8 + n]
				}
				if (marker(r, f)) {
					if (later(m, made[t])) made[t] = m
					if (later(c, kept[t])) kept[t] = c
				} else if (!own(r, f, $4)) {
					if (asks[r]) { held[t]++; if (held[t] <= 4000) { of[t, held[t]] = p; mt[t, held[t]] = m; ct[t, held[t]] = c } next }
					if (m != newest[t] && later(m, newest[t])) { newest[t] = m; young[t] = p }
					if (c != changed[t] && later(c, changed[t])) { changed[t] = c; moved[t] = p }
				}
			}
			function named(p) {
				if (recorded[r] && type != "l") { if (suspects[t]++ < 20) { suspect[t, suspects[t]] = p; return } }
				against("secret", p)
			}
			function lawful(t,  d) {
				# A package of a workspace was installed with the workspace.
				if (made[t] != "" || !packaged[row[t]]) return t
				d = tree[t]
				sub(/\/node_modules$/, "", d)
				while (sub(/\/[^\/]*$/, "", d)) if ((d "/node_modules") in at && made[at[d "/node_modules"]] != "" && tree[at[d "/node_modules"]] == d "/node_modules") return at[d "/node_modules"]
				return t
			}
			END {
				for (k = 1; k <= inodes; k++) if (names[inode[k]] < links[inode[k]]) { split(inode[k], w, SUBSEP); t = w[1]; against("linked", first[inode[k]]) }
				for (key_ in bare) if (bare[key_] > 1000) { split(key_, w, SUBSEP); t = w[1]; against("repository", w[2]) }
				for (key_ in package) if (!(key_ in json)) { split(key_, w, SUBSEP); t = w[1]; against("loose", package[key_]) }
				order = split("special repository linked secret notes loose shape", why, " ")
				for (t = 1; t <= heaps; t++) {
					r = row[t]
					said = "fit"; sample = ""
					if (!r) said = "unproven"
					else if (newlines) said = "newline"
					else if (unwalked || !listing) said = "unwalked"
					for (k = 1; k <= order && said == "fit"; k++) if ((t, why[k]) in seen) { said = why[k]; sample = seen[t, why[k]] }
					if (said == "fit" && !whole[r]) {
						l = lawful(t)
						if (made[l] == "") said = "unmarked"
						else if (asks[r]) {
							if (held[t] > 4000) said = "newer"
							for (k = 1; k <= held[t] && said == "fit"; k++) if (later(mt[t, k], made[l]) || later(ct[t, k], kept[l])) {
								if (++doubts[t] > 20) { said = "newer"; sample = of[t, k] } else print "A magic " of[t, k]
							}
						} else if (later(newest[t], made[l])) { said = "newer"; sample = young[t] }
						else if (later(changed[t], kept[l])) { said = "newer"; sample = moved[t] }
					}
					if (said == "fit") for (k = 1; k <= suspects[t]; k++) print "A record " suspect[t, k]
					printf "H %d %s %s %d %.0f %s\n", t, r ? title[r] : "none", said, size[t], bytes[t], tree[t]
					if (sample != "") print "S " sample
					else print "S"
				}
				print "E " heaps + 0
			}' | {
			refused='' head=''
			while IFS= read -r entry; do
				case $entry in
				'A magic '*) [ -n "$refused" ] || asked magic "${entry#A magic }" || refused="newer ${entry#A magic }" ;;
				'A record '*) [ -n "$refused" ] || asked record "${entry#A record }" || refused="secret ${entry#A record }" ;;
				'H '*) head=${entry#H } ;;
				S*)
					sample=${entry#S}
					sample=${sample# }
					number=${head%% *} head=${head#* }
					title=${head%% *} head=${head#* }
					why=${head%% *} head=${head#* }
					entries=${head%% *} head=${head#* }
					if [ "$why" = fit ] && [ -n "$refused" ]; then why=${refused%% *} sample=${refused#* }; fi
					field "${head#* ./}" && tree=$field
					field "${sample#./}"
					record heap "$number" "$title" "$why" "$entries" "${head%% *}" "$tree" "$field"
					refused=''
					;;
				'E '*) record heaps "${entry#E }" ;;
				esac
			done
		}
	)
}

# disposable: lane
heaped
probe_heaps &

# disposable: candidates
owned=$(owned "$W")

# disposable: told
if [ -n "$owned" ]; then
	printf '%s\n' "$owned" | sed 's/^/t /' | tr '\n' '\000'
	printf '%s\n' "$owned" | homes | tr '\n' '\000'
	printf '%s\n' "$owned" | excluded | tr '\n' '\000'
fi
printf '@ 0\0'

# disposable: begin
first = 0
# table: siblings

# disposable: fresh
heaps = latest = 0; last = ""
split("", number); split("", tree); split("", by); split("", heap); split("", order); split("", beside); split("", want); split("", home)
split("", rule); split("", have); split("", tracked); split("", loose); split("", held); split("", named)

# disposable: read
part == 0 && /^t / {
	h = $2; p = substr($0, length($2) + 4)
	heaps++; number[heaps] = h; tree[heaps] = p; by[h] = heaps; heap[p] = heaps; order[p] = heaps
	up = p
	if (!sub(/\/[^\/]*$/, "", up)) up = ""
	for (k = 1; k <= siblings; k++) {
		s = sibling[k]; d = up
		if (substr(s, 1, 3) == "../") { s = substr(s, 4); if (!sub(/\/[^\/]*$/, "", d)) d = "" }
		beside[heaps, k] = (d == "" ? "" : d "/") s
		want[beside[heaps, k]] = 1
	}
	next
}
part == 0 && /^w / { p = substr($0, length($2) + 4); home[by[$2]] = p; want[p] = 1; next }
part == 0 && /^c / {
	k = index($0, "\001"); p = substr($0, k + 1); s = substr($0, 4, k - 4)
	if (substr($0, 3, 1) == "+" && (s == ".gitignore" || s ~ /\/\.gitignore$/) && s !~ /^\//) { rule[p] = s; want[s] = 1 }
	else rule[p] = ""
	next
}
function heap_of(d,  up) {
	if (d in heap) return heap[d]
	if (!match(d, /\/[^\/]*$/)) return heap[d] = 0
	up = substr(d, 1, RSTART - 1)
	return heap[d] = heap_of(up)
}
# holder: the heap that the path lies in, or is; 0 where there is none.
function holder(p) {
	if (!heaps) return 0
	if (p in order) return order[p]
	if (!match(p, /\/[^\/]*$/)) return 0
	if (RSTART - 1 == length(last) && substr(p, 1, RSTART - 1) == last) return latest
	last = substr(p, 1, RSTART - 1)
	return latest = heap_of(last)
}

# disposable: tracked
t = index($0, "\t"); p = substr($0, t + 1)
if (heaps) {
	if (p in want) have[p] = tag == "H" && (mode ~ /^1006|^1007/) && substr($0, t - 1, 1) == "0"
	if (h = holder(p)) tracked[h]++
}

# disposable: ignored
if (h = holder(p)) {
	if (xy == "??") { loose[h]++; untracked++; show("untracked", p); next }
	held[h]++
	if (!(tree[h] in rule) && p in rule && rule[p] != "" && have[rule[p]]) named[h]++
	next
}

# disposable: changed
if (p in want) have[p] = 0

# disposable: end
sum = 0
for (h = 1; h <= heaps; h++) {
	p = tree[h]
	how = "none"
	if (p in rule) how = rule[p] != "" && have[rule[p]] ? "tracked" : "elsewhere"
	if (how == "none" && held[h] && named[h] == held[h]) how = "tracked"
	words = ""
	for (k = 1; k <= siblings; k++) if (have[beside[h, k]]) words = words " " sibling[k]
	if (h in home) words = words (have[home[h]] ? " home" : " astray")
	print "held " i " " number[h] " " held[h] + 0 " " loose[h] + 0 " " tracked[h] + 0 " " how words
	sum += held[h]
}
print "holding " i " " heaps + 0 " " sum + 0
