package core

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A profile may let kinds of build output go with a directory that is otherwise
// safe. Names prove nothing: each kind is a few rows of shape and evidence, and a
// tree is excused only where git ignores it by a rule of a tracked .gitignore,
// nothing in it is tracked or untracked, and no entry of it speaks for a person's
// work. Everything else about it counts as ignored files always did.

// DisposableKind is one word of the setting.
type DisposableKind struct {
	Word  string // as it stands in the setting
	Means string // what goes, and what brings it back, for the person who sets it
}

// DisposableKinds lists the kinds there are, in the order a setting is written in.
func DisposableKinds() []DisposableKind {
	return []DisposableKind{
		{"node", "node_modules beside a tracked package.json, as npm, yarn or pnpm left it; installing again brings it back"},
		{"rust", "target beside a tracked Cargo.toml, with cargo's tag file; cargo build brings it back"},
		{"jvm", "target of Maven or sbt, build and .gradle of Gradle, beside their tracked build file; building again brings them back"},
		{"go", "a vendor directory with modules.txt beside a tracked go.mod, a module cache and a build cache inside the checkout; go mod vendor, go mod download and go build bring them back"},
		{"python", "a virtual environment with pyvenv.cfg, __pycache__ whose sources are there, .egg-info, and the caches of mypy, pytest and ruff; installing and running again brings them back"},
		{"web", "the caches and output that next, nuxt, svelte-kit, parcel, turbo, angular and vite keep for themselves beside a tracked package.json; building again brings them back"},
		{"cpp", "a CMake or Meson build tree, with its generator's cache file, of sources in the same checkout; configuring and building again brings it back"},
		{"cachedir", "any directory with a signed CACHEDIR.TAG in which nothing is newer than the tag, and the caches of mypy, pytest and ruff; the tool that made it makes it again"},
	}
}

const disposableKey = "ssh_reclaim_disposable"

// ReadDisposable is the setting as it counts where it is read: the kinds in it
// that are known, in their order, each once. A word that is not exactly a kind
// counts as absent.
func ReadDisposable(setting string) string {
	words := strings.Split(setting, ",")
	var known []string
	for _, kind := range DisposableKinds() {
		if slices.Contains(words, kind.Word) {
			known = append(known, kind.Word)
		}
	}
	return strings.Join(known, ",")
}

// WriteDisposable is the setting as it is to be stored. White space around words
// is dropped; a word that is no kind refuses the whole setting.
func WriteDisposable(setting string) (string, error) {
	var words, kinds []string
	for _, kind := range DisposableKinds() {
		kinds = append(kinds, kind.Word)
	}
	if strings.TrimSpace(setting) == "" {
		return "", nil
	}
	for word := range strings.SplitSeq(setting, ",") {
		if word = strings.TrimSpace(word); !slices.Contains(kinds, word) {
			return "", fmt.Errorf("%.80q is no kind of build output; the kinds are %s", word, strings.Join(kinds, ", "))
		}
		words = append(words, word)
	}
	return ReadDisposable(strings.Join(words, ",")), nil
}

// DisposableIn reads an executor profile's config: empty unless the one
// well-formed key says otherwise.
func DisposableIn(config []byte) string { return ReadDisposable(ConfigText(config, disposableKey)) }

// WithDisposable sets the kinds in an executor profile's config and leaves every
// other byte where it is. It refuses what is no kind.
func WithDisposable(config []byte, setting string) ([]byte, error) {
	setting, err := WriteDisposable(setting)
	if err != nil {
		return nil, err
	}
	return withText(config, disposableKey, setting)
}

// BothDisposable is what two settings have in common.
func BothDisposable(a, b string) string {
	var both []string
	for word := range strings.SplitSeq(ReadDisposable(a), ",") {
		if word != "" && slices.Contains(strings.Split(b, ","), word) {
			both = append(both, word)
		}
	}
	return strings.Join(both, ",")
}

// Excused is what goes of one kind.
type Excused struct {
	Kind    string `json:"kind"`
	Trees   int64  `json:"trees"`
	Bytes   int64  `json:"bytes"`
	Entries int64  `json:"entries"`
}

// Excusal is all that goes as build output, for policies and people.
type Excusal struct {
	Bytes   int64     `json:"bytes"`
	Entries int64     `json:"entries"`
	Kinds   []Excused `json:"kinds"`
}

func excusal(all []Excused) *Excusal {
	if len(all) == 0 {
		return nil
	}
	sum := &Excusal{Kinds: all}
	for _, e := range all {
		sum.Bytes += e.Bytes
		sum.Entries += e.Entries
	}
	return sum
}

// ExcusedText says what was excused, in one line; "" for nothing.
func ExcusedText(all []Excused) string {
	var parts []string
	for _, e := range all {
		parts = append(parts, fmt.Sprintf("%s: %d bytes in %d entries (%d trees)", e.Kind, e.Bytes, e.Entries, e.Trees))
	}
	return strings.Join(parts, ", ")
}

// A heap row is one shape of build output with its evidence. Patterns are POSIX
// extended regular expressions without backslashes or quotes; those on entries are
// matched with the entry's path below the tree.
type heapRow struct {
	name     string   // as records name it
	kinds    []string // any of these lets it go
	title    string   // in a sentence
	dirs     string   // pattern on a directory's name that makes it a candidate; or
	holds    string   // pattern on what a directory holds, a path below it
	is       string   // shell pattern on the directory's name
	test     string   // shell, "$1" is the directory: does it hold what the tool leaves?
	beside   []string // one of these is tracked, unchanged, beside the tree; none: not needed
	home     bool     // the tree says where its sources are; that must not be elsewhere
	marker   string   // entries the tool writes: nothing else may be newer than the newest of them
	own      string   // entries that may be newer: the tool's own, by shape
	sealed   bool     // files without any write bit may be newer: the tool makes them so
	every    string   // every file is of this shape, so that none needs to be older than another
	loose    string   // files that may lie directly in the tree; empty: any
	top      string   // entries that may; empty: any
	packages bool     // its directories are packages
	wordy    bool     // prose comes with what is installed
	except   string   // prose that comes with the tool all the same
	record   bool     // a file that an installed package's RECORD lists is not a person's, whatever its name
	magic    bool     // what a linker made may be newer
	nested   bool     // it has a place of its own inside another tree
	rebuild  string   // what brings it back
}

var (
	jsBuild     = []string{"package.json"}
	cacheOf     = []string{"python", "cachedir"}
	gradleBuild = []string{"build.gradle", "build.gradle.kts", "../build.gradle", "../build.gradle.kts", "settings.gradle", "settings.gradle.kts"}
)

// heapRows is the table. Where several rows fit a directory the first counts.
func heapRows() []heapRow {
	return []heapRow{
		{name: "node_modules", kinds: []string{"node"}, title: "installed node packages", dirs: "node_modules", is: "node_modules", test: `installed "$1"`, beside: jsBuild,
			marker:   `^([.]package-lock[.]json|[.]yarn-integrity|[.]yarn-state[.]yml|[.]modules[.]yaml|[.]pnpm-workspace-state[^/]*[.]json|[.]pnpm/lock[.]yaml)$`,
			loose:    `^([.]package-lock[.]json|[.]yarn-integrity|[.]yarn-state[.]yml|[.]modules[.]yaml|[.]pnpm-workspace-state[^/]*[.]json|[.]package-map[.]json)$`,
			own:      `^[.]tmp/[^/]+[.]tsbuildinfo$|^[.]cache/([.]eslintcache|prettier/[.]prettier-cache[a-z-]*|babel-loader/[0-9a-f]+[.]json([.]gz)?|turbo/[0-9a-f]+(-(meta|manifest)[.]json|[.]tar[.]zst)|terser-webpack-plugin/(content-v2/sha[0-9]+|index-v5)/[0-9a-f/]+)$`,
			packages: true, wordy: true, rebuild: "npm ci, yarn install or pnpm install"},
		{name: "cargo", kinds: []string{"rust"}, title: "a cargo target directory", dirs: "target", is: "target", test: `tagged "$1"`, beside: []string{"Cargo.toml"},
			marker: `^([.]rustc_info[.]json|CACHEDIR[.]TAG|([^/]+/)?[^/]+/([.]cargo-lock|[^/]+[.]d))$|(^|/)[.]fingerprint/`,
			loose:  `^([.]rustc_info[.]json|[.]rustdoc_fingerprint[.]json|CACHEDIR[.]TAG|[.]future-incompat-report[.]json|[.]cargo-lock|[.]cargo-build-lock)$`,
			own:    `^package/[^/]+-[0-9][^/]*[.]crate$|^flycheck[0-9]+/std(out|err)$`,
			except: `^doc/static[.]files/`, rebuild: "cargo build"},
		{name: "maven", kinds: []string{"jvm"}, title: "a Maven target directory", dirs: "target", is: "target", test: `either "$1" maven-status maven-archiver classes test-classes`, beside: []string{"pom.xml"},
			marker: `^(maven-status|maven-archiver|surefire-reports|failsafe-reports)/|[.](class|jar|war|ear)$|^(test-)?classes/`,
			loose:  `[.](jar|war|ear)([.]original)?$|^jacoco[a-z-]*[.]exec$|[.]buildinfo$|^checkstyle-[a-z-]*[.](xml|txt|properties)$`, rebuild: "mvn package"},
		{name: "sbt", kinds: []string{"jvm"}, title: "an sbt target directory", dirs: "target", is: "target", test: `either "$1" streams global-logging task-temp-directory`, beside: []string{"build.sbt", "../build.sbt"},
			marker: `^(streams|global-logging|task-temp-directory|config-classes)/|[.](class|jar)$`, loose: `^[.]history[0-9]*$`, rebuild: "sbt compile"},
		{name: "gradle", kinds: []string{"jvm"}, title: "a Gradle build directory", dirs: "build", is: "build", test: `! plainly "$1/CMakeCache.txt" && either "$1" classes tmp libs kotlin`, beside: gradleBuild,
			marker: `^(tmp|reports|test-results|libs|kotlin)/|[.](class|jar)$`, loose: `^$`, rebuild: "gradle build"},
		{name: "gradle_cache", kinds: []string{"jvm"}, title: "Gradle's cache of a project", dirs: "[.]gradle", is: ".gradle", test: `either "$1" buildOutputCleanup vcs-1 checksums`, beside: gradleBuild,
			every: `(^|/)([^/]+[.](lock|bin|probe)|(gc|cache|config)[.]properties)$`, rebuild: "gradle build"},
		{name: "go_vendor", kinds: []string{"go"}, title: "vendored Go modules", dirs: "vendor", is: "vendor", test: `plainly "$1/modules.txt"`, beside: []string{"go.mod"},
			marker: `^modules[.]txt$`, loose: `^modules[.]txt$`, wordy: true, rebuild: "go mod vendor"},
		{name: "go_modules", kinds: []string{"go"}, title: "a Go module cache", dirs: "mod", is: "mod", test: `case $1 in */pkg/mod) either "$1/cache" download ;; *) false ;; esac`,
			marker: `^cache/(lock|download/(.*/@v/(list|[^/]*[.](info|mod|zip|ziphash|lock))|sumdb/.*))$`, sealed: true, loose: `^$`, wordy: true, rebuild: "go mod download"},
		{name: "go_build", kinds: []string{"go"}, title: "a Go build cache", dirs: "[.]?go-build|[.]?gocache", is: "*go*",
			test:  `opens "$1/README" 'This directory holds cached build artifacts from the Go build system.'`,
			every: `^(README|trim[.]txt|testexpire[.]txt|[0-9a-f][0-9a-f]/[0-9a-f]+-[ad])$`, rebuild: "go build"},
		{name: "venv", kinds: []string{"python"}, title: "a Python virtual environment", holds: "pyvenv[.]cfg", is: "*", test: `plainly "$1/pyvenv.cfg"`,
			marker: `^(pyvenv[.]cfg|bin/(Activate[.]ps1|activate[.]csh))$|[.]dist-info/(RECORD|INSTALLER|REQUESTED|METADATA|WHEEL|direct_url[.]json)$`, own: `(^|/)__pycache__/[^/]+[.]pyc$`,
			top:   `^(bin|Scripts|lib|lib64|Lib|include|Include|share|etc|man|src|pyvenv[.]cfg|[.]gitignore|[.]lock|CACHEDIR[.]TAG)$`,
			wordy: true, record: true, rebuild: "python -m venv and pip install, or uv sync"},
		{name: "pycache", kinds: []string{"python"}, title: "compiled Python files", dirs: "__pycache__", is: "__pycache__", test: `sourced "$1"`,
			every: `^[^/]+[.][a-z]+-?[0-9a-z]+(-pytest-[0-9.]+)?([.]opt-[12])?[.]pyc$`, rebuild: "running the sources"},
		{name: "egg_info", kinds: []string{"python"}, title: "a Python package's build metadata", dirs: ".*[.]egg-info", is: "*.egg-info", test: `plainly "$1/PKG-INFO" "$1/SOURCES.txt"`,
			beside: []string{"pyproject.toml", "setup.py", "setup.cfg", "../pyproject.toml", "../setup.py", "../setup.cfg"},
			every:  `^(PKG-INFO|SOURCES[.]txt|dependency_links[.]txt|requires[.]txt|top_level[.]txt|entry_points[.]txt|namespace_packages[.]txt|(not-)?zip-safe)$`, rebuild: "pip install -e"},
		{name: "mypy", kinds: cacheOf, title: "mypy's cache", dirs: "[.]mypy_cache", is: ".mypy_cache", test: `tagged "$1"`,
			every: `^(CACHEDIR[.]TAG|[.]gitignore|missing_stubs|[0-9.]+/(cache[.]db|.*([.](meta|data)[.](json|ff)|@deps[.]meta[.]json|@root[.]deps[.]json|[.]deps[.]json|@plugins_snapshot[.]json)))$`, rebuild: "running mypy"},
		{name: "pytest", kinds: cacheOf, title: "pytest's cache", dirs: "[.]pytest_cache", is: ".pytest_cache", test: `tagged "$1"`,
			every: `^(CACHEDIR[.]TAG|[.]gitignore|README[.]md|v/cache/(lastfailed|nodeids|stepwise))$`, rebuild: "running pytest"},
		{name: "ruff", kinds: cacheOf, title: "ruff's cache", dirs: "[.]ruff_cache", is: ".ruff_cache", test: `tagged "$1"`,
			every: `^(CACHEDIR[.]TAG|[.]gitignore|[0-9]+[.][0-9.]+/[0-9]+)$`, rebuild: "running ruff"},
		{name: "next", kinds: []string{"web"}, title: "what next builds", dirs: "[.]next", is: ".next", test: `either "$1" BUILD_ID build-manifest.json trace cache`, beside: jsBuild,
			marker:  `^(BUILD_ID|trace[^/]*|package[.]json|[^/]*manifest[^/]*[.]json|cache/.*|(server|static|dev)/.*)$`,
			top:     `^(BUILD_ID|app-[a-z-]*[.]json|build|cache|dev|diagnostics|export-[a-z]*[.]json|fallback-[a-z-]*[.]json|images-manifest[.]json|lock|next-[a-z-]*[.](json|js|js[.]nft[.]json)|package[.]json|postcss[.]js[.]?[a-z]*|[a-z-]*manifest[.](json|js)|required-server-files[.](json|js)|server|standalone|static|trace[a-z-]*|transform[.]js[.]?[a-z]*|turbopack|types)$`,
			rebuild: "next build"},
		{name: "nuxt", kinds: []string{"web"}, title: "what nuxt builds", dirs: "[.]nuxt", is: ".nuxt", test: `either "$1" nuxt.d.ts nuxt.json tsconfig.json`, beside: jsBuild,
			marker: `^(nuxt[.](d[.]ts|json)|tsconfig([.][a-z]+)?[.]json|manifest/.*|types/.*|dist/.*|imports[.]d[.]ts)$`, rebuild: "nuxt prepare"},
		{name: "svelte_kit", kinds: []string{"web"}, title: "what svelte-kit builds", dirs: "[.]svelte-kit", is: ".svelte-kit", test: `either "$1" tsconfig.json generated`, beside: jsBuild,
			marker: `^((non-)?ambient[.]d[.]ts|tsconfig[.]json|generated/.*|types/.*|output/.*|adapter-[a-z]+/.*)$`, rebuild: "svelte-kit sync"},
		{name: "parcel", kinds: []string{"web"}, title: "parcel's cache", dirs: "[.]parcel-cache", is: ".parcel-cache", test: `either "$1" data.mdb lock.mdb`, beside: jsBuild,
			every: `^((data|lock)[.]mdb|snapshot-[0-9a-f]+[.]txt|[0-9a-f]+([.]txt|-[a-zA-Z0-9_-]+)?|[^/]+[.]blob)$`, rebuild: "parcel build"},
		{name: "turbo", kinds: []string{"web"}, title: "turbo's cache", dirs: "[.]turbo", is: ".turbo", test: `either "$1" cache cookies daemon preferences || one "$1"/turbo-*.log`, beside: jsBuild,
			every: `^(turbo-[^/]+[.]log|cache/[0-9a-f]+(-meta[.]json|-manifest[.]json|[.]tar[.]zst)|cookies/[0-9]+[.]cookie|daemon/[^/]+[.]log[^/]*|preferences/tui[.]json)$`, rebuild: "turbo run"},
		{name: "angular", kinds: []string{"web"}, title: "angular's cache", dirs: "[.]angular", is: ".angular", test: `either "$1" cache`, beside: []string{"angular.json"},
			every: `^cache/([0-9.]+/.*([.](pack|mdb|json|js|map|lock)|/[0-9a-f]+)|angular-webpack/.*|babel-webpack/.*|[.]gitignore)$`, rebuild: "ng build"},
		{name: "vite", kinds: []string{"web"}, title: "vite's cache", dirs: "[.]vite", is: ".vite", test: `either "$1" deps deps_ssr vitest`, beside: []string{"../package.json", "package.json"}, nested: true,
			marker: `(^|/)(_metadata[.]json|results[.]json)$`, rebuild: "vite"},
		{name: "cmake", kinds: []string{"cpp"}, title: "a CMake build tree", holds: "CMakeCache[.]txt", is: "*", test: `plainly "$1/CMakeCache.txt"`, home: true, beside: []string{"CMakeLists.txt"},
			marker: `^(CMakeCache[.]txt|build[.]ninja|Makefile|compile_commands[.]json|[.]ninja_(log|deps)|install_manifest[.]txt)$|(^|/)(CMakeFiles/.*|Makefile|cmake_install[.]cmake|CTestTestfile[.]cmake)$|[.](o|obj|a|lib|so|dylib|d|pdb|gch|pch)([.][0-9.]+)?$|^Testing/.*[.](xml|log|txt)$`,
			magic:  true, rebuild: "cmake and the build it was configured for"},
		{name: "meson", kinds: []string{"cpp"}, title: "a Meson build tree", holds: "meson-private/coredata[.]dat", is: "*", test: `plainly "$1/meson-private/coredata.dat" "$1/build.ninja"`, beside: []string{"meson.build"},
			marker: `^(build[.]ninja|compile_commands[.]json|[.]ninja_(log|deps)|meson-(private|info|logs)/.*)$|[.](o|obj|a|lib|so|dylib|d|pdb)([.][0-9.]+)?$`,
			magic:  true, rebuild: "meson setup and ninja"},
		{name: "cachedir", kinds: []string{"cachedir"}, title: "a tagged cache directory", holds: "CACHEDIR[.]TAG", is: "*", test: `tagged "$1"`,
			marker: `^CACHEDIR[.]TAG$`, rebuild: "the tool that made it"},
	}
}

// allowed reports whether a setting lets the row's trees go, and as which kind.
func (h heapRow) allowed(setting string) (string, bool) {
	for word := range strings.SplitSeq(setting, ",") {
		if word != "" && slices.Contains(h.kinds, word) {
			return word, true
		}
	}
	return "", false
}

// Names that count as a person's, in lower case.
const (
	secretNames = ".netrc _netrc .npmrc .pypirc .pgpass .my.cnf .htpasswd .git-credentials .dockercfg .dockerconfigjson .envrc .vault-token .secrets " +
		"credentials credentials.json credentials.csv credentials.yml credentials.yaml credentials.toml credentials.ini " +
		"secret secrets secret.txt secrets.txt secret.json secrets.json secret.yml secrets.yml secret.yaml secrets.yaml secret.toml secrets.toml secret.ini secrets.ini " +
		"service-account.json serviceaccount.json service_account.json kubeconfig terraform.tfstate passwords.txt password.txt master.key identity"
	secretDirectories = ".ssh .aws .gnupg .kube .azure .gcloud .docker"
	keyExtensions     = "pem key p8 p12 pfx pkcs12 jks bks keystore kdb kdbx ppk ovpn gpg pgp age asc tfvars tfstate env"
	dataExtensions    = "db db3 db-wal db-shm db-journal sqlite sqlite2 sqlite3 sqlitedb sqlite-wal sqlite-shm sqlite-journal s3db sl3 mdb accdb dbf realm duckdb rdb aof sql dump pgdump bson myd ibd frm fdb"
	noteNames         = "note notes todo todos journal diary ideas scratch scratchpad memo"
	noteExtensions    = "note notes org odt doc docx rtf pages numbers xls xlsx ods ppt pptx odp one enex ipynb drawio psd sketch fig xcf kra blend swp swo bak backup rej"
	proseExtensions   = "md markdown txt rst adoc"
)

//go:embed disposable.sh
var disposableSource string

// disposableParts are the parts of disposable.sh by name, for the kinds of a
// setting.
func disposableParts(setting string) map[string]string {
	rows, kept := heapRows(), []heapRow{}
	for _, row := range rows {
		if _, ok := row.allowed(setting); ok {
			kept = append(kept, row)
		}
	}
	tables := heapTables(kept)
	parts := map[string]string{}
	name := ""
	for line := range strings.Lines(disposableSource) {
		bare := strings.TrimSpace(line)
		if part, ok := strings.CutPrefix(bare, "# disposable: "); ok {
			name = part
			continue
		}
		if name == "" {
			continue // what it says of itself, before the first part
		}
		if table, ok := strings.CutPrefix(bare, "# table: "); ok {
			line = tables[table]
		}
		parts[name] += line
	}
	return parts
}

// woven is the inventory with the parts at their places.
func woven(source string, parts map[string]string) string {
	var out strings.Builder
	for line := range strings.Lines(source) {
		if part, ok := strings.CutPrefix(strings.TrimSpace(line), "# disposable: "); ok {
			line = parts[part]
		}
		out.WriteString(line)
	}
	return out.String()
}

// ere is a pattern of the table as awk's between slashes.
func ere(pattern string) string { return "/" + strings.ReplaceAll(pattern, "/", `\/`) + "/" }

// heapTables writes the table as shell and awk.
func heapTables(rows []heapRow) map[string]string {
	var dirs, holds, siblings []string
	var tests, nested, names, telling strings.Builder
	functions := map[string]*strings.Builder{}
	matched := func(function string, i int, pattern string) {
		if functions[function] == nil {
			functions[function] = &strings.Builder{}
		}
		if pattern != "" {
			fmt.Fprintf(functions[function], "if (r == %d) return f ~ %s\n", i, ere(pattern))
		}
	}
	flag := func(name string, i int, on bool) {
		if on {
			fmt.Fprintf(&names, "%s[%d] = 1\n", name, i)
		}
	}
	for i, row := range rows {
		i++
		if row.dirs != "" {
			dirs = append(dirs, row.dirs)
		}
		if row.holds != "" {
			holds = append(holds, row.holds)
			name := strings.NewReplacer("[", "", "]", "").Replace(row.holds)
			fmt.Fprintf(&telling, "telling[\"%s\"] = 1\n", name[len(name)-4:])
		}
		fmt.Fprintf(&tests, "case ${1##*/} in %s) if %s; then row=%d && return; fi ;; esac\n", row.is, row.test, i)
		if row.nested {
			fmt.Fprintf(&nested, "nested[%d] = 1\n", i)
		}
		fmt.Fprintf(&names, "title[%d] = \"%s\"\n", i, row.name)
		for function, pattern := range map[string]string{"marker": row.marker, "every": row.every, "loose": row.loose, "top": row.top, "excepted": row.except} {
			matched(function, i, pattern)
		}
		own := functions["own"]
		if own == nil {
			own = &strings.Builder{}
			functions["own"] = own
		}
		if row.own != "" {
			fmt.Fprintf(own, "if (r == %d && f ~ %s) return 1\n", i, ere(row.own))
		}
		if row.sealed {
			fmt.Fprintf(own, "if (r == %d && mode !~ /[2367]/) return 1\n", i)
		}
		flag("whole", i, row.every != "")
		flag("loosed", i, row.loose != "")
		flag("topped", i, row.top != "")
		flag("packaged", i, row.packages)
		flag("wordy", i, row.wordy)
		flag("recorded", i, row.record)
		flag("asks", i, row.magic)
		for _, name := range row.beside {
			if !slices.Contains(siblings, name) {
				siblings = append(siblings, name)
			}
		}
	}
	for _, list := range [][2]string{{"secret", secretNames}, {"hidden", secretDirectories}, {"key", keyExtensions}, {"data", dataExtensions}, {"note", noteNames}, {"doc", noteExtensions}, {"prose", proseExtensions}} {
		fmt.Fprintf(&names, "n = split(\"%s\", w, \" \"); for (k = 1; k <= n; k++) %s[w[k]] = 1\n", list[1], list[0])
	}
	var marks strings.Builder
	for _, function := range []string{"marker", "every", "loose", "top", "excepted"} {
		fmt.Fprintf(&marks, "function %s(r, f) {\n%sreturn 0\n}\n", function, functions[function])
	}
	fmt.Fprintf(&marks, "function own(r, f, mode) {\n%sreturn 0\n}\n", functions["own"])
	tables := map[string]string{"rows": tests.String(), "nested": nested.String(), "names": names.String(), "marks": marks.String(), "telling": telling.String(), "directories": "", "files": ""}
	if len(dirs) > 0 {
		tables["directories"] = "if (p ~ " + ere("/("+strings.Join(dirs, "|")+")$") + ") shaped[p] = 1\n"
	}
	if len(holds) > 0 {
		pattern := ere("/(" + strings.Join(holds, "|") + ")$")
		tables["files"] = "if (p ~ " + pattern + ") { up = p; sub(" + pattern + ", \"\", up); shaped[up] = 1 }\n"
	}
	var beside strings.Builder
	fmt.Fprintf(&beside, "siblings = split(\"%s\", sibling, \" \")\n", strings.Join(siblings, " "))
	tables["siblings"] = beside.String()
	return tables
}

// heap is a tree that looks like build output, as the answer tells it: what it
// is, and what git says of it.
type heap struct {
	row            string
	kind           string // the setting's word that lets it go; empty where none does
	why            string // fit, or why it counts as work
	entries, bytes int64
	path, sample   string
	held           bool // its checkout told about it
	ignored        int64
}

// keepHeaps reads what the trees are. It comes before any repository is judged.
func keepHeaps(r *reading, v cells) {
	r.heaps = map[int64]*heap{}
	for _, got := range r.many["heap"] {
		h := &heap{row: got.w(1), why: got.w(2), entries: got.n(3), bytes: got.n(4), path: got.t(5), sample: got.t(6)}
		if r.heaps[got.n(0)] != nil || got.n(0) < 1 || got.n(0) > v.n(0) {
			r.odd("a tree of build output numbered %d of %d", got.n(0), v.n(0))
			return
		}
		r.heaps[got.n(0)] = h
		if i := slices.IndexFunc(heapRows(), func(row heapRow) bool { return row.name == h.row }); i >= 0 {
			h.kind, _ = heapRows()[i].allowed(r.q.Disposable)
		}
		if h.row != "none" && h.kind == "" {
			r.odd("a tree of the kind %q, which was not asked about", h.row)
		}
	}
	if int64(len(r.heaps)) != v.n(0) {
		r.odd("%d of %d trees of build output", len(r.heaps), v.n(0))
	}
}

// keepHolding reads what the repository being judged says of its trees: which of
// them count as work, and why.
func keepHolding(r *reading, v cells) {
	var trees, files int64
	for _, got := range r.many["held"] {
		if got[0].word != r.at.index {
			continue
		}
		h := r.heaps[got.n(1)]
		if h == nil || h.held {
			r.odd("a record of the tree %d, which is not one of them", got.n(1))
			return
		}
		h.held, h.ignored = true, got.n(2)
		trees++
		files += got.n(2)
		var beside []string
		for _, w := range got[6:] {
			beside = append(beside, w.word)
		}
		h.weigh(got.n(3), got.n(4), got.w(5), beside)
		// What git does not call ignored is not excused and needs no excuse.
		if h.why != "fit" && h.ignored > 0 {
			r.work(h)
		}
	}
	if trees != v.n(0) || files != v.n(1) {
		r.odd("%d trees with %d files, but %d with %d were counted", trees, files, v.n(0), v.n(1))
	}
}

// weigh puts git's view on the scale: untracked and tracked files inside, where
// the rule that excludes it stands, and which of the wanted files stand beside it.
func (h *heap) weigh(untracked, tracked int64, rule string, beside []string) {
	if h.why != "fit" {
		return
	}
	i := slices.IndexFunc(heapRows(), func(row heapRow) bool { return row.name == h.row })
	if i < 0 {
		h.why = "unproven"
		return
	}
	row := heapRows()[i]
	switch {
	case tracked > 0:
		h.why = "tracked"
	case untracked > 0:
		h.why = "untracked"
	case rule != "tracked":
		h.why = "rule"
	case row.home && slices.Contains(beside, "astray"):
		h.why = "astray"
	case row.home && slices.Contains(beside, "home"):
	case len(row.beside) > 0 && !slices.ContainsFunc(row.beside, func(name string) bool { return slices.Contains(beside, name) }):
		h.why = "alone"
	}
}

// heapSays is why a tree counts as work, as people read it.
var heapSays = map[string]string{
	"unproven":   "nothing in it proves that a build made it",
	"special":    "it holds an entry that is no file, directory or link",
	"linked":     "it holds a file that has another name outside of it",
	"repository": "it holds a repository",
	"secret":     "it holds a file whose name is a secret's or a database's",
	"notes":      "it holds a file whose name is a person's notes or documents",
	"loose":      "it holds what the tool does not put there",
	"shape":      "it holds what the tool does not put there",
	"unmarked":   "nothing in it says when it was built",
	"newer":      "it holds a file newer than its build",
	"newline":    "a name in a tree of build output holds a line break",
	"unwalked":   "it could not be walked whole",
	"tracked":    "it holds files that are tracked",
	"untracked":  "it holds files that are not ignored",
	"rule":       "no rule of a tracked, unchanged .gitignore excludes it",
	"astray":     "its sources are not tracked files of this checkout",
	"alone":      "no tracked, unchanged build file stands beside it",
}

// excuse sums up what goes, when every repository was judged.
func (r *reading) excuse() {
	if !r.evidence.Complete {
		return
	}
	sums := map[string]*Excused{}
	for _, number := range slices.Sorted(maps.Keys(r.heaps)) {
		h := r.heaps[number]
		if !h.held || h.ignored == 0 || h.why != "fit" {
			continue
		}
		if sums[h.kind] == nil {
			sums[h.kind] = &Excused{Kind: h.kind}
		}
		sums[h.kind].Trees++
		sums[h.kind].Bytes += h.bytes
		sums[h.kind].Entries += h.entries
	}
	for _, kind := range DisposableKinds() {
		if sums[kind.Word] != nil {
			r.evidence.Excused = append(r.evidence.Excused, *sums[kind.Word])
		}
	}
}

// work keeps the directory for a tree that looked like build output.
func (r *reading) work(h *heap) {
	says, known := heapSays[h.why]
	if !known {
		r.odd("a tree that counts as work for %q", h.why)
		return
	}
	if h.sample != "" {
		says += fmt.Sprintf(" (%q)", h.sample)
	}
	top := strings.TrimRight(r.q.Root, "/") + "/tasks/" + r.q.Segment
	r.keep(DirtyWorktree, Ignored, []Remedy{{What: "keep what is wanted of it elsewhere, then delete it", Run: "ls -la " + quote(top+"/"+h.path)}},
		"%s as work: %s", count(h.ignored, fmt.Sprintf("ignored file in %q counts", h.path), fmt.Sprintf("ignored files in %q count", h.path)), says)
}
