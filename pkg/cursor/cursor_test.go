package cursor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/cursor"
	"likectl/pkg/likes"
)

func TestLikersComesBack(t *testing.T) {
	item := likes.Item{Type: 2, ID: math.MaxInt64}
	after, err := cursor.ParseLikers(cursor.Likers(likes.Saves, item, 9007199254740993), likes.Saves, item)
	require.NoError(t, err)
	require.Equal(t, likes.UserID(9007199254740993), after)
}

func TestLikedByComesBack(t *testing.T) {
	want := likes.Item{Type: math.MaxInt16, ID: math.MaxInt64}
	got, err := cursor.ParseLikedBy(cursor.LikedBy(likes.Likes, 7, want), likes.Likes, 7)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestEmptyCursorStartsAtTheBeginning(t *testing.T) {
	user, err := cursor.ParseLikers("", likes.Likes, likes.Item{Type: 1, ID: 1})
	require.NoError(t, err)
	require.Zero(t, user)
	item, err := cursor.ParseLikedBy("", likes.Likes, 1)
	require.NoError(t, err)
	require.Zero(t, item)
}

func TestCursorOfAnotherListingIsInvalid(t *testing.T) {
	item := likes.Item{Type: 1, ID: 1}
	ofItem, ofUser := cursor.Likers(likes.Likes, item, 5), cursor.LikedBy(likes.Likes, 1, item)
	bad := func(_ any, err error) {
		t.Helper()
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
	bad(cursor.ParseLikers(ofItem, likes.Saves, item))
	bad(cursor.ParseLikers(ofItem, likes.Likes, likes.Item{Type: 1, ID: 2}))
	bad(cursor.ParseLikers(ofItem, likes.Likes, likes.Item{Type: 2, ID: 1}))
	bad(cursor.ParseLikers(ofUser, likes.Likes, item))
	bad(cursor.ParseLikers(ofItem+"A", likes.Likes, item))
	bad(cursor.ParseLikers(ofItem[:len(ofItem)-1]+"\n", likes.Likes, item))
	bad(cursor.ParseLikers(cursor.Likers(likes.Likes, item, 0), likes.Likes, item))
	bad(cursor.ParseLikedBy(ofUser, likes.Likes, 2))
	bad(cursor.ParseLikedBy(ofItem, likes.Likes, 1))
	bad(cursor.ParseLikedBy(cursor.LikedBy(likes.Likes, 1, likes.Item{Type: 1, ID: -1}), likes.Likes, 1))
}

func FuzzParse(f *testing.F) {
	item := likes.Item{Type: 1, ID: 1}
	f.Add(string(cursor.Likers(likes.Likes, item, 5)))
	f.Add(string(cursor.LikedBy(likes.Likes, 1, item)))
	f.Add("____")
	f.Add("AgABAAAAAAAAAAE00000\r0000000") // panicked once: base64 skips line breaks
	f.Fuzz(func(t *testing.T, s string) {
		if user, err := cursor.ParseLikers(likes.Cursor(s), likes.Likes, item); err == nil && s != "" {
			require.Equal(t, s, string(cursor.Likers(likes.Likes, item, user)))
		}
		if after, err := cursor.ParseLikedBy(likes.Cursor(s), likes.Likes, 1); err == nil && s != "" {
			require.Equal(t, s, string(cursor.LikedBy(likes.Likes, 1, after)))
		}
	})
}
