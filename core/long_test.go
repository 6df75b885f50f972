package core

import (
	"os"
	"syscall"
)

// long is whether everything is tried with everything. Otherwise what is tried
// is spread, so that all of each kind is met once.
var long = os.Getenv("RECLAIM_TEST_LONG") == "1"

// inLong is many in the long form and otherwise few.
func inLong(many, few int) int {
	if long {
		return many
	}
	return few
}

// quickTemp is where small directories are made in the short form: in memory,
// where there is such a place, it has room and a program in it can be run (a
// trap that cannot spring catches nothing). Empty is the usual place.
func quickTemp() string {
	const dir, tmpfs, noexec, room = "/dev/shm", 0x01021994, 0x8, 1 << 28
	var fs syscall.Statfs_t
	if long || os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &fs) != nil ||
		int64(fs.Type) != tmpfs || int64(fs.Flags)&noexec != 0 || int64(fs.Bavail)*int64(fs.Bsize) < room {
		return ""
	}
	return dir
}
