package ingest

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func TestUsersAreReadInAllFormsOfAList(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, "7\n8\n")
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for text, want := range map[string][]likes.UserID{
		"":                               nil,
		"7\n8":                           {7, 8},
		"8\r\n\r\n # fakes\n7\n8\n":      {8, 7},
		"user_id\n7\n8\n":                {7, 8},
		"user_id,why\n7,bot\n8,\"a, b\"": {7, 8},
		"\"7\",bot\n\"8\",\"x\"\n":       {7, 8},
		"# why\n\nuser_id\n7\n8":         {7, 8},
		"\xef\xbb\xbfuser_id\n7\n8\n":    {7, 8},
		zipped.String():                  {7, 8},
		"9223372036854775807\n":          {1<<63 - 1},
	} {
		got, err := ReadUsers(strings.NewReader(text), 3, false)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got.IDs, "%q", text)
	}
	got, err := ReadUsers(strings.NewReader("1\n1\n2\n1\n"), 2, false)
	require.NoError(t, err)
	require.EqualValues(t, 2, got.Repeated)
}

func TestBadLinesOfAListAreNamedOrSkipped(t *testing.T) {
	for text, line := range map[string]int64{
		"7\n0\n": 2, "7\n-1\n": 2, "\n01\n": 2, "x\n": 1, "7\nuser_id\n": 2, "7\n8;9\n": 2, "1e3\n": 1,
		"9223372036854775808\n": 1, "#\n\"7\n": 2, "7\n" + strings.Repeat("9", MaxLine+1) + "\n8": 2, ",7\n": 1,
	} {
		_, err := ReadUsers(strings.NewReader(text), 10, false)
		var bad *LineError
		require.ErrorAs(t, err, &bad, "%q", text)
		require.Equal(t, line, bad.Line, "%q", text)
		got, err := ReadUsers(strings.NewReader("5\n"+text+"\n9\n"), 10, true)
		require.NoError(t, err)
		require.EqualValues(t, 1, got.Skipped, "%q", text)
		require.Equal(t, likes.UserID(9), got.IDs[len(got.IDs)-1])
	}
	// A first line that is no id may be the header of a list of something else.
	for _, text := range []string{"score,user_id\n5,7\n", "# names\nname\n7\n"} {
		_, err := ReadUsers(strings.NewReader(text), 10, true)
		var bad *LineError
		require.ErrorAs(t, err, &bad, "%q", text)
	}
	_, err := ReadUsers(strings.NewReader("1\n2\n3\n"), 2, true)
	require.ErrorIs(t, err, likes.ErrInvalid)
	require.ErrorContains(t, err, "line 3")
}
