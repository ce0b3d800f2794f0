package pseudonym_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
	"likectl/pkg/pseudonym"
)

const month = 30 * 24 * time.Hour

func now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func open(t *testing.T, path string, at time.Time) (pseudonym.Salt, bool) {
	t.Helper()
	s, made, err := pseudonym.Open(path, month, at)
	require.NoError(t, err)
	return s, made
}

func TestTheHashIsHMAC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "salt")
	require.NoError(t, os.WriteFile(path, []byte(`{"salt":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f","made_at":"2026-11-30T00:00:00Z"}`), 0o600))
	s, made := open(t, path, now())
	require.False(t, made)
	// printf '\0\0\0\0\0\0\0\x2a' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0001…1f
	name := s.Namer().Name(42)
	require.Equal(t, "89b92f7b010ef7592024ff647a2b930f", string(name[:]))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", s, s, s), "00010203")
	require.NotContains(t, fmt.Sprintf("%#v", s), "0x1f")
}

func TestOneSaltOneNameEach(t *testing.T) {
	s := pseudonym.NewSalt(now())
	a, b := s.Namer(), s.Namer()
	seen := map[pseudonym.Name]likes.UserID{}
	for user := range likes.UserID(10_000) {
		name := a.Name(user + 1)
		_, twice := seen[name] // require.NotContains would look at all of them
		require.False(t, twice)
		seen[name] = user
		require.Equal(t, name, b.Name(user+1))
	}
	other := pseudonym.NewSalt(now()).Namer()
	for user := range likes.UserID(1000) {
		_, shared := seen[other.Name(user+1)]
		require.False(t, shared)
	}
}

func TestASaltLivesUntilItIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "salt")
	first, made := open(t, path, now())
	require.True(t, made)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again, made := open(t, path, now().Add(month-time.Second))
	require.False(t, made)
	require.Equal(t, first, again)
	second, made := open(t, path, now().Add(month))
	require.True(t, made)
	require.NotEqual(t, first.Namer().Name(1), second.Namer().Name(1))
	require.Equal(t, now().Add(month), second.Made)
	again, _ = open(t, path, now().Add(month+time.Second))
	require.Equal(t, second, again)
}

func TestAllWhoOpenItAtOnceGetOneSalt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "salt")
	for _, at := range []time.Time{now(), now().Add(month)} { // made, then replaced
		salts := make([]pseudonym.Salt, 16)
		errs := make([]error, len(salts))
		var wg sync.WaitGroup
		for i := range salts {
			wg.Go(func() { salts[i], _, errs[i] = pseudonym.Open(path, month, at) })
		}
		wg.Wait()
		for i := range salts {
			require.NoError(t, errs[i])
			require.Equal(t, salts[0], salts[i])
		}
	}
}

func TestWhatIsNoSaltFileIsRefusedAndLeftAlone(t *testing.T) {
	for text, want := range map[string]string{
		"hello": "not a salt file",
		`{"salt":"00","made_at":"2026-11-30T00:00:00Z"}`:                                                               "damaged",
		`{"salt":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}`:                                  "damaged",
		`{"salt":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f","made_at":"2027-01-01T00:00:00Z"}`: "not yet",
	} {
		path := filepath.Join(t.TempDir(), "salt")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, _, err := pseudonym.Open(path, month, now())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(left))
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "salt")
	open(t, path, now())
	require.NoError(t, os.Chmod(path, 0o640))
	_, _, err := pseudonym.Open(path, month, now())
	require.ErrorContains(t, err, "0640")
	_, _, err = pseudonym.Open(dir, month, now())
	require.Error(t, err)
}

func TestRotationHasBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "salt")
	for _, after := range []time.Duration{-1, 0, time.Minute, 4000 * 24 * time.Hour} {
		_, _, err := pseudonym.Open(path, after, now())
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
	require.NoFileExists(t, path)
}

func BenchmarkName(b *testing.B) {
	n := pseudonym.NewSalt(now()).Namer()
	b.ReportAllocs()
	for b.Loop() {
		n.Name(42)
	}
}
