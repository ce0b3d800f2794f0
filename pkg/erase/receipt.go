package erase

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"likectl/pkg/likes"
	"likectl/pkg/store"
)

const (
	// format is the version of receipts. It is signed, so that a field that a
	// later one adds cannot be taken away.
	format = 1
	// label separates the key of receipts from others of the same secret, as
	// RFC 5869 has it.
	label = "likectl erasure receipt v1"
	// secretSize is that of the instances' shared secret.
	secretSize = 32
	// maxReceipt is many times the size of a receipt in JSON.
	maxReceipt = 64 << 10
)

// Receipt says that a user was erased, in a form that can be given away: it names
// the user by a hash that only the store can match with an id.
type Receipt struct {
	Version int `json:"version"`
	// UserHash is [store.UserHash] in hexadecimal.
	UserHash   string    `json:"user_hash"`
	BegunAt    time.Time `json:"begun_at"`
	FinishedAt time.Time `json:"finished_at"`
	// Merged: what the user had went to another user.
	Merged bool `json:"merged"`
	// Edges, Tombstones and Relations are what was removed or moved; see
	// [store.Erasure].
	Edges      int64 `json:"edges"`
	Tombstones int64 `json:"tombstones"`
	Relations  int64 `json:"relations"`
	// LogExpiresAt and BackupsExpireAt are when the last log and the last backup
	// from before the end of the erasure are deleted, as the configuration says.
	LogExpiresAt    time.Time `json:"log_expires_at"`
	BackupsExpireAt time.Time `json:"backups_expire_at"`
	// Store is the kind of store that the user was erased from.
	Store string `json:"store"`
	// Signature is HMAC-SHA-256 over the other fields, in base64url, under a key
	// derived from the secret of the instances on the store.
	Signature string `json:"signature"`
}

// ReadReceipt reads the one receipt that a file holds, or returns ErrInvalid.
func ReadReceipt(r io.Reader) (Receipt, error) {
	var out Receipt
	text, err := io.ReadAll(io.LimitReader(r, maxReceipt))
	if err != nil {
		return out, likes.Errorf(likes.ErrInvalid, "it cannot be read: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return out, likes.Errorf(likes.ErrInvalid, "it is not a receipt: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return out, likes.Errorf(likes.ErrInvalid, "it is not a receipt: more follows after it")
	}
	if err := checkNames(text); err != nil {
		return out, likes.Errorf(likes.ErrInvalid, "it is not a receipt: %w", err)
	}
	return out, nil
}

// checkNames returns an error unless an object has every field of a receipt once, by
// its exact name, with a value. encoding/json takes the last of several, whatever
// their case, and passes by null: a reader that takes the first would be shown
// what nobody has signed.
func checkNames(text []byte) error {
	whole, err := json.Marshal(Receipt{})
	if err != nil {
		return err
	}
	var missing map[string]json.RawMessage
	if err := json.Unmarshal(whole, &missing); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the brace
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if _, ok := missing[name]; !ok || string(value) == "null" {
			return fmt.Errorf("the field %.40q is there twice, misspelt or null", name)
		}
		delete(missing, name)
	}
	for name := range missing {
		return fmt.Errorf("the field %q is missing", name)
	}
	return nil
}

// signed are the bytes that the signature covers: the fields in their order, one
// a line. The texts are quoted, so that none can be two lines.
func (r Receipt) signed() []byte {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) } // every digit that is shown
	return fmt.Appendf(nil, "%d\n%q\n%s\n%s\n%t\n%d\n%d\n%d\n%s\n%s\n%q\n", r.Version, r.UserHash,
		at(r.BegunAt), at(r.FinishedAt), r.Merged, r.Edges, r.Tombstones, r.Relations,
		at(r.LogExpiresAt), at(r.BackupsExpireAt), r.Store)
}

// ReceiptConfig says what receipts are to say besides what was erased.
type ReceiptConfig struct {
	// Secret is the 32 bytes that the instances on the store share.
	Secret []byte
	// Store is the kind of store.
	Store string
	// LogRetention and BackupRetention are how long logs and backups are kept,
	// more than 0.
	LogRetention, BackupRetention time.Duration
}

// signer makes and checks receipts.
type signer struct {
	config ReceiptConfig
	key    []byte
}

func newSigner(c ReceiptConfig) (*signer, error) {
	switch {
	case len(c.Secret) != secretSize:
		return nil, likes.Errorf(likes.ErrInvalid, "secret has %d bytes, want %d", len(c.Secret), secretSize)
	case c.LogRetention <= 0 || c.BackupRetention <= 0:
		return nil, likes.Errorf(likes.ErrInvalid, "logs kept for %v and backups for %v, want more than 0", c.LogRetention, c.BackupRetention)
	}
	key, err := hkdf.Key(sha256.New, c.Secret, nil, label, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive receipt key: %w", err)
	}
	return &signer{c, key}, nil
}

// receipt returns that of an erasure that is finished. It is the same every time.
func (s *signer) receipt(e store.Erasure) Receipt {
	begun, finished := e.Begun.UTC().Truncate(time.Microsecond), e.Finished.UTC().Truncate(time.Microsecond)
	r := Receipt{
		Version: format, UserHash: e.User.String(), BegunAt: begun, FinishedAt: finished, Merged: e.Merged,
		Edges: e.Edges, Tombstones: e.Tombstones, Relations: e.Relations,
		LogExpiresAt: finished.Add(s.config.LogRetention), BackupsExpireAt: finished.Add(s.config.BackupRetention),
		Store: s.config.Store,
	}
	r.Signature = s.sign(r)
	return r
}

func (s *signer) sign(r Receipt) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(r.signed())
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s *signer) good(r Receipt) bool {
	return r.Version == format && hmac.Equal([]byte(r.Signature), []byte(s.sign(r)))
}
