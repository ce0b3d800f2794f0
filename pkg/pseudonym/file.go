package pseudonym

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"likectl/pkg/likes"
)

// The bounds of a salt's life: a shorter one would end within an export's own
// retry, a longer one is none.
const (
	MinRotation = time.Hour
	MaxRotation = 10 * 365 * 24 * time.Hour
)

// CheckRotation returns ErrInvalid unless a salt may live that long.
func CheckRotation(after time.Duration) error {
	if after < MinRotation || after > MaxRotation {
		return likes.Errorf(likes.ErrInvalid, "a salt is replaced after %v, want 1h to 3650d", after)
	}
	return nil
}

// saltFile is a salt on disk.
type saltFile struct {
	Salt string    `json:"salt"`
	Made time.Time `json:"made_at"`
}

// maxFile bounds what is read of a salt file.
const maxFile = 1 << 10

// Open returns the salt in a file. Where there is no file it is made, with mode
// 0600, and a salt that has reached the age is replaced by a new one; made says
// whether the returned salt is new. Those who open one file at once get the same
// salt.
//
// A new salt is written over the old one, in place and not by a rename: the old
// one is to be gone. (What copies a file system, a snapshot or the disk itself
// keeps is beyond any program.) Processes take turns by flock.
func Open(path string, after time.Duration, now time.Time) (salt Salt, made bool, err error) {
	if err := CheckRotation(after); err != nil {
		return Salt{}, false, err
	}
	// Opening a FIFO would wait for its other end; what it is, is checked below.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return Salt{}, false, fmt.Errorf("open salt file: %w", err)
	}
	salt, made, err = load(f, after, now)
	if err := errors.Join(err, f.Close()); err != nil {
		return Salt{}, false, fmt.Errorf("salt file %s: %w", path, err)
	}
	return salt, made, nil
}

func load(f *os.File, after time.Duration, now time.Time) (Salt, bool, error) {
	if err := check(f); err != nil {
		return Salt{}, false, err
	}
	if err := flock(f); err != nil {
		return Salt{}, false, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Salt{}, false, err
	}
	if len(text) > 0 {
		salt, err := parse(text)
		if err != nil {
			return Salt{}, false, fmt.Errorf("%w; nothing was changed: put it back from a copy, or remove it to get a new "+
				"salt, under which everybody has another pseudonym", err)
		}
		age := now.Sub(salt.Made)
		if age < 0 {
			return Salt{}, false, fmt.Errorf("its salt was made at %s, which is not yet; set this machine's clock, "+
				"or remove the file to get a new salt", salt.Made.Format(time.RFC3339))
		}
		if age < after {
			return salt, false, nil
		}
	}
	salt := NewSalt(now)
	return salt, true, write(f, salt)
}

// check refuses what others may have read: the salt turns pseudonyms into ids.
func check(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode(); !mode.IsRegular() {
		return fmt.Errorf("it is not a regular file (%s)", mode)
	} else if mode.Perm()&0o077 != 0 {
		return fmt.Errorf("its mode is %04o, so other users may have read the salt, which turns pseudonyms back into ids; "+
			"remove it to get a new one, or chmod 600 it if nobody else has been on this machine", mode.Perm())
	}
	return nil
}

func parse(text []byte) (Salt, error) {
	var file saltFile
	if err := json.Unmarshal(text, &file); err != nil {
		return Salt{}, fmt.Errorf("it is not a salt file: %w", err)
	}
	key, err := hex.DecodeString(file.Salt)
	if err != nil || len(key) != SaltSize || file.Made.IsZero() {
		return Salt{}, errors.New("it is damaged: want a salt of 64 hex digits and made_at")
	}
	s := Salt{Made: file.Made.UTC()}
	copy(s.key[:], key)
	return s, nil
}

func write(f *os.File, s Salt) error {
	text, err := json.Marshal(saltFile{hex.EncodeToString(s.key[:]), s.Made})
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		return err
	}
	return f.Sync()
}

// flock waits for the exclusive lock, which ends with the file's last close.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock: %w", err)
		}
	}
}
