package likes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func TestEventIDsAreUUIDs(t *testing.T) {
	const text = "0192f6a1-7c3e-7def-8123-456789abcdef"
	e, err := likes.ParseEventID(text)
	require.NoError(t, err)
	require.Equal(t, text, e.String())
	upper, err := likes.ParseEventID([]byte(strings.ToUpper(text)))
	require.NoError(t, err)
	require.Equal(t, e, upper, "two spellings of one id are one event")
	for _, s := range []string{
		"", "1", strings.ReplaceAll(text, "-", ""), "{" + text + "}", "urn:uuid:" + text, text + "0", text[:35],
		"0192f6a1-7c3e-7def-8123-456789abcdeg", "0192f6a17-c3e-7def-8123-456789abcdef", "00000000-0000-0000-0000-000000000000",
		strings.Repeat("-", 36),
	} {
		_, err := likes.ParseEventID(s)
		require.ErrorIs(t, err, likes.ErrInvalid, "%q", s)
	}
}

func TestNewEventIDsDifferAndFollowTime(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	seen := map[likes.EventID]bool{}
	for range 1000 {
		e := likes.NewEventID(now)
		require.False(t, seen[e])
		seen[e] = true
		require.Equal(t, byte('7'), e.String()[14], "version")
		require.Contains(t, "89ab", string(e.String()[19]), "variant")
		require.Less(t, e.String(), likes.NewEventID(now.Add(time.Millisecond)).String())
	}
}

func FuzzParseEventID(f *testing.F) {
	f.Add("0192f6a1-7c3e-7def-8123-456789abcdef")
	f.Fuzz(func(t *testing.T, s string) {
		if e, err := likes.ParseEventID(s); err == nil {
			require.Equal(t, strings.ToLower(s), e.String())
		} else {
			require.ErrorIs(t, err, likes.ErrInvalid)
		}
	})
}

func TestMalformedAddsAreInvalid(t *testing.T) {
	good := likes.Mutation{Op: likes.Add, Edge: likes.Edge{Counter: likes.Views, Item: likes.Item{Type: 1, ID: 1}}, Event: likes.EventID{1}}
	require.NoError(t, good.Validate(), "nobody may have caused it")
	known := good
	known.Edge.User, known.Fixed = 7, 1
	require.NoError(t, known.Validate())
	for name, spoil := range map[string]func(*likes.Mutation){
		"counter":   func(m *likes.Mutation) { m.Edge.Counter = likes.Likes },
		"event id":  func(m *likes.Mutation) { m.Event = likes.EventID{} },
		"user_id":   func(m *likes.Mutation) { m.Edge.User = -1 },
		"item_id":   func(m *likes.Mutation) { m.Edge.Item.ID = 0 },
		"item_type": func(m *likes.Mutation) { m.Edge.Item.Type = 0 },
		"replay":    func(m *likes.Mutation) { m.Fixed = -1 },
		"tally":     func(m *likes.Mutation) { m.Op = likes.Clear; m.Event = likes.EventID{} },
	} {
		m := good
		spoil(&m)
		err := m.Validate()
		require.ErrorIs(t, err, likes.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
}
