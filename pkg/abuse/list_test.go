package abuse

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func TestTheListSaysWhoIsDeniedAndSlowed(t *testing.T) {
	named, err := ParseDevice("phone-1")
	require.NoError(t, err)
	hashed, err := ParseDevice("phone-2")
	require.NoError(t, err)
	l, err := parseList([]byte("\n\r\nuser 42 deny\r\n" + `# fakes
	user  43	slow
ip 192.0.2.0/24 slow
ip 192.0.2.7 deny
ip 10.0.0.0/8 deny
ip 10.1.0.0/16 slow
ip 2001:db8::/32 deny
  # and devices
device phone-1 deny
device ` + hashed.String() + ` slow`))
	require.NoError(t, err)
	require.Equal(t, 9, l.size())
	for _, c := range []struct {
		user   likes.UserID
		addr   string
		device Device
		want   standing
	}{
		{1, "", Device{}, good},
		{42, "", Device{}, denied},
		{43, "", Device{}, slowed},
		{1, "192.0.2.1", Device{}, slowed},
		{1, "192.0.2.7", Device{}, denied},
		{1, "192.0.3.1", Device{}, good},
		{1, "10.2.0.1", Device{}, denied},
		{1, "10.1.0.1", Device{}, slowed}, // the smallest network counts
		{1, "2001:db8:1::1", Device{}, denied},
		{1, "2001:db9::1", Device{}, good},
		{1, "", named, denied},
		{1, "", hashed, slowed},
		{43, "10.2.0.1", hashed, denied}, // the worst of all
		{43, "192.0.2.7", Device{}, denied},
		{42, "192.0.2.1", hashed, denied},
	} {
		a := like(c.user, 1, c.addr)
		a.Device = c.device
		require.Equal(t, c.want, l.of(a), "%v", c)
	}
	require.Equal(t, good, (&list{}).of(like(1, 1, "192.0.2.1")))
}

func TestABadLineIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"user 42":                       "2 words, want 3",
		"user 42 deny now":              "4 words, want 3",
		"user 42 deny # why":            "want 3",
		"user 42 allow":                 `"allow", want deny or slow`,
		"user 42 Deny":                  "want deny or slow",
		"User 42 deny":                  `"User", want user, ip or device`,
		"users 42 deny":                 "want user, ip or device",
		"user 0 deny":                   "is not an id",
		"user -1 deny":                  "is not an id",
		"user 042 deny":                 "is not an id",
		"user 9223372036854775808 deny": "is not an id",
		"user bob deny":                 "is not an id",
		"user 7 slow":                   "stands in an earlier line too",
		"ip 192.0.2.0/24 deny":          "stands in an earlier line too",
		"device x deny":                 "stands in an earlier line too",
		"ip 192.0.2.1/24 deny":          "has bits outside its mask, want 192.0.2.0/24",
		"ip 192.0.2 deny":               "is no address",
		"ip 192.0.2.0/33 deny":          "is no address",
		"ip 0.0.0.0/0 deny":             "is everybody",
		"ip ::/0 deny":                  "is everybody",
		"ip ::ffff:192.0.2.1 deny":      "write it as IPv4",
		"ip ::ffff:192.0.2.0/120 deny":  "write it as IPv4",
		"ip fe80::1%eth0 deny":          "is no address",
		"ip example.com deny":           "is no address",
		"device sha256:ab deny":         "2 digits behind sha256:, want 64",
		"device sha256:" + strings.Repeat("x", 64) + " deny": "want hexadecimal digits",
		"device " + strings.Repeat("x", 129) + " deny":       "129 characters, want 1 to 128",
		"device größe deny":                                  "visible ASCII",
		"\x00":                                               "1 words",
	} {
		l, err := parseList([]byte("user 7 deny\n# good\nip 192.0.2.0/24 slow\ndevice x slow\n" + text + "\nuser 0 deny\n"))
		require.ErrorIs(t, err, likes.ErrInvalid, text)
		require.ErrorContains(t, err, "line 5: ", text)
		require.ErrorContains(t, err, want, text)
		require.Nil(t, l)
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte(cast + "device x deny\nip 2001:db8::/32 deny\n"))
	f.Add([]byte("user 1 deny\nuser 1 deny"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		l, err := parseList(doc)
		if err != nil {
			require.ErrorIs(t, err, likes.ErrInvalid)
			return
		}
		lines := 0
		for line := range strings.Lines(string(doc)) {
			if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
				lines++
			}
		}
		require.Equal(t, lines, l.size(), "a line was lost")
	})
}

func TestDevice(t *testing.T) {
	for _, name := range []string{"a", "!~", strings.Repeat("x", MaxDevice)} {
		d, err := ParseDevice(name)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))), d.String())
	}
	for _, name := range []string{"", " ", "a b", "a\t", "\x7f", "é", "a\n", strings.Repeat("x", MaxDevice+1)} {
		_, err := ParseDevice(name)
		require.ErrorIs(t, err, likes.ErrInvalid, "%q", name)
	}
	require.Empty(t, Device{}.String())
}

// replace puts another version of a file in its place, as editors do.
func replace(t *testing.T, name, text string) {
	t.Helper()
	next := name + ".next"
	require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
	require.NoError(t, os.Rename(next, name))
}

// within waits for a condition.
func within(t *testing.T, cond func() bool, what string) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, time.Millisecond, what)
}

func TestTheListIsReadAgainAndABrokenOneIsNotInForce(t *testing.T) {
	name := file(t, "user 1 deny\n")
	g, seen := guard(t, Config{List: name, Refresh: 2 * time.Millisecond})
	denied := func(user likes.UserID) bool {
		return errors.Is(g.Check(t.Context(), like(user, 1, ""), nil), ErrRefused)
	}
	// again waits until the file as it is now has been read, and that is logged.
	again := func() {
		var from int
		seen.see(func(s *told) { from = s.read })
		within(t, func() (done bool) {
			seen.see(func(s *told) { done = s.read >= from+3 })
			return done
		}, "the file is not read")
	}
	require.True(t, denied(1))
	require.False(t, denied(2))
	again()
	require.NotContains(t, seen.logged(), "changed", "nothing has")

	replace(t, name, "user 2 deny\n")
	within(t, func() bool { return denied(2) && !denied(1) }, "the new version is not in force")
	again()
	require.Contains(t, seen.logged(), "entries=1")

	for i, broken := range []func(){
		func() { replace(t, name, "user 1 deny\nuser 2\n") },
		func() { replace(t, name, strings.Repeat("#", maxList+1)) },
		func() { require.NoError(t, os.Remove(name)) },
		func() { require.NoError(t, os.Mkdir(name, 0o700)) },
	} {
		broken()
		again()
		require.True(t, denied(2), "the last good version stays")
		require.False(t, denied(1))
		errs, ok := strings.Count(seen.logged(), "level=ERROR"), 0
		require.Greater(t, errs, i)
		seen.see(func(s *told) { ok = s.ok })
		again()
		require.Equal(t, errs, strings.Count(seen.logged(), "level=ERROR"), "at every reading: %s", seen.logged())
		seen.see(func(s *told) { require.Equal(t, ok, s.ok, "a broken file was read well") })
	}
	require.Contains(t, seen.logged(), "line 2: 2 words")
	require.Contains(t, seen.logged(), "more than 16777216 bytes")
	require.NoError(t, os.Remove(name))
	replace(t, name, "user 2 deny\n") // as it was
	within(t, func() bool {
		return strings.Contains(seen.logged(), "changed=false") || strings.Count(seen.logged(), "entries=1") > 1
	}, "nothing says that it is good again")
	require.True(t, denied(2))
	replace(t, name, "")
	within(t, func() bool { return !denied(2) }, "an empty list denies nobody")
}

func TestABadFileKeepsTheGuardFromOpening(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		file(t, "user 1 deny\nrubbish\n"): "line 2",
		dir:                               "no regular file",
		filepath.Join(dir, "none"):        "no such file",
	} {
		_, err := Open(t.Context(), Config{List: name, SlowFactor: 2, Refresh: time.Second})
		require.ErrorIs(t, err, likes.ErrInvalid)
		require.ErrorContains(t, err, "list file "+name)
		require.ErrorContains(t, err, want)
	}
}
