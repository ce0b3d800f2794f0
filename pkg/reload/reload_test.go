package reload_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"likectl/pkg/likes"
	"likectl/pkg/reload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write puts a version of a file in its place, as editors do.
func write(t *testing.T, name, text string) {
	t.Helper()
	next := name + ".next"
	require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
	require.NoError(t, os.Rename(next, name))
}

// told is what a file has told.
type told struct {
	mu   sync.Mutex
	used []string
	read []error
	log  bytes.Buffer
}

func (s *told) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *told) use(doc []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(string(doc), "bad") {
		return errors.New("it is bad")
	}
	s.used = append(s.used, string(doc))
	return nil
}

func (s *told) hook(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, err)
}

// take returns what was told since the last call.
func (s *told) take() (used []string, read []error, log string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used, read, log = s.used, s.read, s.log.String()
	s.used, s.read = nil, nil
	s.log.Reset()
	return used, read, log
}

func TestFile_TheLastGoodVersionIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "file")
		write(t, name, "first")
		s := &told{}
		file, err := reload.Open(t.Context(), reload.Config{
			Name: "list", Path: name, MaxBytes: 9, Every: time.Second, Use: s.use, Read: s.hook, Log: slog.New(slog.NewTextHandler(s, nil)),
		})
		require.NoError(t, err)
		used, read, log := s.take()
		require.Equal(t, []string{"first"}, used)
		require.Empty(t, read)
		require.Empty(t, log)
		// twice returns what is told while the file is read twice.
		twice := func() ([]string, []error, string) {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			return s.take()
		}
		used, read, log = twice()
		require.Empty(t, used, "what has not changed is put in force")
		require.Equal(t, []error{nil, nil}, read)
		require.Empty(t, log)

		write(t, name, "")
		used, _, log = twice()
		require.Equal(t, []string{""}, used)
		require.Equal(t, 1, strings.Count(log, "level=INFO"), log)

		for _, broken := range []func(){
			func() { write(t, name, "bad 1") },
			func() { write(t, name, strings.Repeat("x", 10)) },
			func() { require.NoError(t, os.Remove(name)) },
			func() { require.NoError(t, os.Mkdir(name, 0o700)) },
		} {
			broken()
			used, read, log = twice()
			require.Empty(t, used)
			require.Len(t, read, 2)
			for _, err := range read {
				require.ErrorContains(t, err, "list "+name+": ")
			}
			require.Equal(t, 1, strings.Count(log, "level=ERROR"), "once for each: %s", log)
		}
		require.NoError(t, os.Remove(name))
		write(t, name, "") // as the version in force
		used, _, log = twice()
		require.Empty(t, used)
		require.Contains(t, log, "read again", "nothing says that it is good again")

		file.Close()
		write(t, name, "last")
		used, read, _ = twice()
		require.Empty(t, used, "read after Close")
		require.Empty(t, read)
	})
}

func TestOpen_ABadFileIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	write(t, name, "text")
	good := reload.Config{Name: "list", Path: name, MaxBytes: 4, Every: time.Second, Use: func([]byte) error { return nil }, Log: slog.New(slog.DiscardHandler)}
	for want, change := range map[string]func(*reload.Config){
		"no such file":      func(c *reload.Config) { c.Path += ".none" },
		"more than 3 bytes": func(c *reload.Config) { c.MaxBytes = 3 },
		"broken":            func(c *reload.Config) { c.Use = func([]byte) error { return errors.New("broken") } },
		"want more than 0":  func(c *reload.Config) { c.Every = 0 },
	} {
		c := good
		change(&c)
		_, err := reload.Open(t.Context(), c)
		require.ErrorIs(t, err, likes.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "list ")
	}
	var none *reload.File
	none.Close()
}
