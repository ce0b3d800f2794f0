package abuse

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"likectl/pkg/likes"
)

// Device stands for what a client calls its device: the SHA-256 of it, so that
// names of any length are keys of one, and no list or log need hold them.
type Device [sha256.Size]byte

// MaxDevice is the longest name of a device in bytes.
const MaxDevice = 128

// devicePrefix begins the written form of a Device.
const devicePrefix = "sha256:"

// ParseDevice hashes the name of a device: 1 to MaxDevice visible ASCII
// characters, else ErrInvalid.
func ParseDevice(name string) (Device, error) {
	if len(name) < 1 || len(name) > MaxDevice {
		return Device{}, likes.Errorf(likes.ErrInvalid, "%d characters, want 1 to %d", len(name), MaxDevice)
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return Device{}, likes.Errorf(likes.ErrInvalid, "the byte %#x at %d: want visible ASCII characters", name[i], i)
		}
	}
	return sha256.Sum256([]byte(name)), nil
}

// String returns the hash as it stands in lists and questions to a scorer:
// "sha256:" and 64 hexadecimal digits. No device is "".
func (d Device) String() string {
	if d == (Device{}) {
		return ""
	}
	return devicePrefix + hex.EncodeToString(d[:])
}

// listedDevice reads a device in a list: its hash, or else its name.
func listedDevice(text string) (d Device, err error) {
	digits, hashed := strings.CutPrefix(text, devicePrefix)
	if !hashed {
		return ParseDevice(text)
	}
	if len(digits) != hex.EncodedLen(len(d)) {
		return d, likes.Errorf(likes.ErrInvalid, "%d digits behind %s, want %d", len(digits), devicePrefix, hex.EncodedLen(len(d)))
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return Device{}, likes.Errorf(likes.ErrInvalid, "want hexadecimal digits behind %s", devicePrefix)
	}
	return d, nil
}
