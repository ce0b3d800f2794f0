package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/store/sqlite"
)

const (
	// others are the permissions that nobody else should have.
	others fs.FileMode = 0o077

	// With the embedded database a full disk refuses likes: below lowSpace there
	// is some time left to act, below noSpace hardly any, since the WAL alone
	// keeps 64 MiB.
	lowSpace = 2 << 30
	noSpace  = 256 << 20
	// A folder that holds only the secret needs next to nothing.
	secretSpace = 1 << 20

	// otherFiles are those that a server opens beside its connections: the admin
	// listener's 64, the database's few, the runtime's.
	otherFiles = 128
)

// folder checks the data folder and the secret. It returns nil if they cannot be
// looked at.
func (r *Report) folder(cfg config.Config) *datadir.Info {
	const check = "data folder"
	info, err := datadir.Inspect(cfg.Data)
	switch {
	case err != nil:
		r.bad(Fail, check, err.Error(), "the service cannot start", "name a folder that this user may use with --data")
		return nil
	case !info.Exists:
		r.ok(check, info.Path+" is not there yet", "likectl serve makes it")
	case info.Mode.Perm()&others != 0:
		r.bad(Warn, check, fmt.Sprintf("%s has the mode %04o", info.Path, info.Mode.Perm()),
			"other users of this machine may list it, or put files into it", "chmod 700 "+info.Path)
	default:
		r.ok(check, info.Path, "only its owner may enter it")
	}
	r.secret(info)
	r.space(cfg, info)
	return &info
}

func (r *Report) secret(info datadir.Info) {
	const check = "secret"
	switch {
	case info.Secret == nil:
		r.ok(check, "32 bytes, readable by its owner only", "tokens can be made and verified; instances behind one load balancer need the same")
	case errors.Is(info.Secret, fs.ErrNotExist):
		r.ok(check, "not there yet", "it is made at the first start; instances behind one load balancer need the same, so copy it to the others")
	default:
		r.bad(Fail, check, info.Secret.Error(), "the service refuses to start, because tokens could be forged",
			"mend it as the message says; no like depends on it")
	}
}

func (r *Report) space(cfg config.Config, info datadir.Info) {
	const check = "disk"
	warn, fail := uint64(lowSpace), uint64(noSpace)
	means := "a full disk refuses likes; what was answered stays"
	if cfg.Postgres.DSN != "" {
		warn, fail = secretSpace, secretSpace
		means = "only the secret is kept here; the disk of the database cannot be seen from here"
	}
	found := fmt.Sprintf("%s of %s free", size(info.Free), size(info.Size))
	switch {
	case info.Free < fail:
		r.bad(Fail, check, found, means, "free some space, or move the folder to a larger disk")
	case info.Free < warn:
		r.bad(Warn, check, found, means, "free some space soon; an alarm on the free space would have told before")
	default:
		r.ok(check, found, means)
	}
}

// openFiles checks whether every allowed connection gets a file descriptor. The
// Go runtime raises the soft limit to the hard one by itself.
func (r *Report) openFiles(cfg config.Config) {
	const check = "open files"
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		r.bad(Warn, check, err.Error(), "the limit is not known", "see ulimit -Hn")
		return
	}
	need := uint64(max(0, cfg.HTTP.MaxConnections)) + uint64(max(0, cfg.Postgres.MaxConns)) + otherFiles
	found := fmt.Sprintf("%d allowed, %d needed for http.max_connections = %d", limit.Max, need, cfg.HTTP.MaxConnections)
	if limit.Max < need {
		r.bad(Warn, check, found, "clients and the database's files may find none left: likes are refused under load, none is lost",
			fmt.Sprintf("raise the limit (ulimit -Hn, LimitNOFILE=%d in systemd), or lower http.max_connections", need))
		return
	}
	r.ok(check, found, "enough for every connection that is let in")
}

// sqlite checks the embedded database unless a server has it open.
func (r *Report) sqlite(ctx context.Context, info *datadir.Info) {
	const check = "sqlite"
	if info.File == nil {
		r.ok(check, "no database yet", "likectl serve makes it in the data folder")
		return
	}
	if mode := info.File.Mode().Perm(); mode&others != 0 {
		r.bad(Warn, check+" file", fmt.Sprintf("%s has the mode %04o", info.Database, mode),
			"other users may read who likes what, or change it", "chmod 600 "+info.Database+"*")
	}
	lock, err := datadir.Lock(info.Path)
	var locked *datadir.LockedError
	switch {
	case errors.As(err, &locked):
		r.ok(check, fmt.Sprintf("open in process %d, so not looked into", locked.PID), "the server's /readyz says whether it answers")
		return
	case err != nil:
		r.bad(Fail, check, err.Error(), "the service cannot start", "run this as the user that runs the service")
		return
	}
	defer func() { _ = lock.Close() }()
	found, err := sqlite.Inspect(ctx, info.Database)
	if err != nil {
		r.bad(Fail, check, err.Error(), "the service does not start on it", "stop anything that uses the file, and put back a backup if it is damaged")
		return
	}
	r.ok(check, fmt.Sprintf("SQLite %s, %s, %s of it unused", found.Version, size(found.Bytes), size(found.Unused)),
		"every commit is flushed to this disk before it is answered; the loss of the disk loses all since the last backup")
	text := fmt.Sprintf("version %d, this program knows %d", found.Schema, found.Known)
	switch {
	case found.Schema > found.Known:
		r.bad(Fail, check+" schema", text, "a newer likectl has written it, and this one refuses to open it; the data is safe", "use that version or a later one")
	case found.Schema < found.Known:
		r.ok(check+" schema", text, "likectl serve brings it up to date")
	default:
		r.ok(check+" schema", text, "as this program needs it")
	}
}
