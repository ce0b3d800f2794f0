package datadir

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// SecretSize is the length of the secret in bytes: the key size of the
// HMAC-SHA-256 that it signs tokens with.
const SecretSize = 32

// Secret loads the secret of a data folder, and creates folder and secret the
// first time. It takes no lock, so that a token can be made while a server runs
// and before the first one starts; all that race to create it get the same one.
func Secret(path string) ([]byte, error) {
	path, err := create(path)
	if err != nil {
		return nil, err
	}
	return loadOrCreate(path)
}

// LoadSecret is [Secret] for those who only use what a server has made: it
// creates nothing. The error of a missing secret is [fs.ErrNotExist].
func LoadSecret(path string) ([]byte, error) {
	secret, err := loadSecret(filepath.Join(path, secretName))
	if errors.Is(err, fs.ErrNotExist) {
		if abs, e := filepath.Abs(path); e == nil {
			path = abs
		}
		err = &noSecretError{path}
	}
	return secret, err
}

type noSecretError struct{ path string }

func (e *noSecretError) Error() string {
	return fmt.Sprintf("no secret in %s; name the server's data folder with --data, or start `likectl serve --data %s` first", e.path, e.path)
}

func (e *noSecretError) Unwrap() error { return fs.ErrNotExist }

// Fingerprint tells secrets apart without giving one away: 16 hex digits.
func Fingerprint(secret []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("likectl fingerprint"))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func loadOrCreate(dir string) ([]byte, error) {
	path := filepath.Join(dir, secretName)
	secret, err := loadSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := createSecret(path); err != nil {
		return nil, fmt.Errorf("create secret %s: %w", path, err)
	}
	return loadSecret(path)
}

// loadSecret refuses a secret that others can read or that is not whole: tokens
// signed with a known or an empty key can be made by anybody.
func loadSecret(path string) ([]byte, error) {
	// Opening a FIFO would wait for its writer; what it is, is checked below.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("load secret: %w", err)
	}
	secret, err := readSecret(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("load secret %s: %w", path, err)
	}
	return secret, nil
}

func readSecret(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); !mode.IsRegular() {
		return nil, fmt.Errorf("it is not a regular file (%s); move it away and a new secret is made", mode)
	} else if mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("its mode is %04o, so other users may have read it and can sign tokens; "+
			"delete it to get a new one (tokens made so far stop working, receipts of erasures can be checked no more), or chmod 600 it if nobody else has been on this machine",
			mode.Perm())
	}
	secret, err := io.ReadAll(io.LimitReader(f, SecretSize+1))
	if err != nil {
		return nil, err
	}
	if len(secret) != SecretSize {
		return nil, fmt.Errorf("it does not have %d bytes but %d; put it back from a backup, "+
			"or delete it to get a new one (tokens made so far stop working, receipts of erasures can be checked no more)", SecretSize, info.Size())
	}
	return secret, nil
}

// createSecret writes a whole new secret beside the path and links it there:
// unlike a rename, a link never replaces the secret that another process made
// meanwhile, and unlike O_EXCL it never shows half a file.
func createSecret(path string) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, secretName+".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	secret := make([]byte, SecretSize)
	if _, err := rand.Read(secret); err != nil {
		return errors.Join(err, tmp.Close())
	}
	_, err = tmp.Write(secret)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !exists(err) {
		return err
	}
	return syncDir(dir)
}
