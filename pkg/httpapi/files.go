package httpapi

import (
	"fmt"
	"syscall"
)

// spareFiles is how many file descriptors are left for everything that is not a
// client: the store's connections, database files, the listeners.
const spareFiles = 256

// connsWithin returns how many connections a process may hold with this limit of
// open files. Beyond the limit accept fails, and then net/http pauses for all
// clients alike; our own cap must come first.
func connsWithin(want int, files uint64) int {
	spare := min(uint64(spareFiles), files/2)
	return int(min(uint64(want), files-spare))
}

// openFiles returns how many files the process may have open. The Go runtime has
// raised it to the hard limit already.
func openFiles() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return l.Cur, nil
}
