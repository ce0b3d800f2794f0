package app

import (
	"log/slog"
	"syscall"
)

// reservedFiles are the file descriptors that connections must leave: stores,
// logs, the admin listener.
const reservedFiles = 256

// connections returns how many connections the API may hold open: what is
// configured, or less where the process has not as many file descriptors.
// Beyond that, accepting would fail for everybody instead of for the newcomer.
func connections(configured int, log *slog.Logger) int {
	var files syscall.Rlimit // Go has raised the soft limit to the hard one
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		log.Warn("file descriptor limit not read", "error", err)
		return configured
	}
	room := max(int(min(files.Cur, 1<<30))-reservedFiles, 1)
	if configured <= room {
		return configured
	}
	log.Warn("http.max_connections lowered to what the file descriptor limit allows; raise it with ulimit -n or LimitNOFILE",
		"configured", configured, "allowed", room)
	return room
}
