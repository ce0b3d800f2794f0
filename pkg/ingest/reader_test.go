package ingest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

// testFilterBits keeps the filter of a test small.
const testFilterBits = 1 << 16

func config() ReaderConfig { return ReaderConfig{Types: likes.DefaultItemTypes()} }

func open(t *testing.T, text string) *Reader {
	t.Helper()
	r, err := openReader(strings.NewReader(text), config(), testFilterBits)
	require.NoError(t, err)
	return r
}

func all(t *testing.T, r *Reader) []likes.Mutation {
	t.Helper()
	var ms []likes.Mutation
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return ms
		}
		require.NoError(t, err)
		ms = append(ms, m)
	}
}

func at(rfc string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, rfc)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func edge(user likes.UserID, kind likes.ItemType, item likes.ItemID) likes.Edge {
	return likes.Edge{Counter: likes.Likes, User: user, Item: likes.Item{Type: kind, ID: item}}
}

// lineClock is the clock of a line without a time.
func lineClock(line int64) likes.Clock { return likes.Clock(line << 12) }

func TestReaderReadsEveryFormOfALine(t *testing.T) {
	when := at("2024-05-06T07:08:09.123456Z")
	saved := edge(3, 3, 9007199254740993)
	saved.Counter = likes.Saves
	want := []likes.Mutation{
		{Op: likes.Set, Edge: edge(1, 1, 7), Fixed: likes.ClockAt(when, 0), LikedAt: when},
		{Op: likes.Clear, Edge: edge(2, 2, 9223372036854775807), Fixed: likes.ClockAt(at("2024-05-06T05:08:09Z"), 0)},
		{Op: likes.Set, Edge: saved, Fixed: likes.ClockAt(time.Unix(1700000000, 0), 0), LikedAt: time.Unix(1700000000, 0).UTC()},
	}
	for name, text := range map[string]string{
		"csv": "user_id,item_type,item_id,action,liked_at,counter\n" +
			"1,post,7,like,2024-05-06T07:08:09.123456Z,likes\n" +
			"2,reel,9223372036854775807,unlike,2024-05-06T07:08:09+02:00,\n" +
			"3,comment,9007199254740993,,1700000000,saves\n",
		"csv in another order, quoted, with a byte order mark, CRLF, a blank line and no last line end": "\xef\xbb\xbf" +
			"counter,\"liked_at\",action,item_id,item_type,user_id\r\n" +
			"\"likes\",\"2024-05-06T07:08:09.123456Z\",like,7,post,1\r\n\r\n" +
			",2024-05-06T07:08:09+02:00,unlike,\"9223372036854775807\",reel,2\r\n" +
			"saves,1700000000,,9007199254740993,comment,3",
		"jsonl": `{"user_id":"1","item_type":"post","item_id":"7","action":"like","liked_at":"2024-05-06T07:08:09.123456Z","counter":"likes"}
{"user_id":2,"item_type":"reel","item_id":9223372036854775807,"action":"unlike","liked_at":"2024-05-06T07:08:09+02:00"}
{"user_id":3,"item_type":"comment","item_id":9007199254740993,"liked_at":1700000000,"counter":"saves"}
`,
		"jsonl that only a real decoder reads": ` { "liked_at" : "2024-05-06T07:08:09.123456Z", "\u0075ser_id":"1", "item_type":"p\u006fst", "item_id":"7", "action":null}` + "\n\n" +
			`{"user_id":2,"item_type":"reel","item_id":9223372036854775807,"action":"unlike","liked_at":"2024-05-06T07:08:09+02:00","counter":null} ` + "\r\n" +
			"{\t\"user_id\" : 3 ,\"item_type\":\"comment\",\"item_id\":9007199254740993,\"liked_at\":1700000000,\"counter\":\"saves\"}",
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want, all(t, open(t, text)))
			var zipped bytes.Buffer
			z := gzip.NewWriter(&zipped)
			_, err := io.WriteString(z, text)
			require.NoError(t, err)
			require.NoError(t, z.Close())
			require.Equal(t, want, all(t, open(t, zipped.String())))
		})
	}
}

func TestClockIsLikedAtFrom2020OnElseTheLineNumber(t *testing.T) {
	ms := all(t, open(t, "user_id,item_type,item_id,liked_at\n"+
		"1,post,1,2019-12-31T23:59:59.999999Z\n"+ // line 2
		"1,post,2,2020-01-01T00:00:00Z\n"+
		"1,post,3,\n\n"+
		"1,post,4,0\n"+ // line 6
		"1,post,5,0001-01-01T00:00:00Z\n"+
		"1,post,6,-5\n"))
	require.Len(t, ms, 6)
	require.Equal(t, lineClock(2), ms[0].Fixed)
	require.Equal(t, at("2019-12-31T23:59:59.999999Z"), ms[0].LikedAt, "the like began when the file says")
	require.Equal(t, likes.Clock(1), ms[1].Fixed, "a clock of 0 would be an issued operation")
	require.Equal(t, lineClock(4), ms[2].Fixed)
	require.Zero(t, ms[2].LikedAt)
	require.Equal(t, lineClock(6), ms[3].Fixed)
	require.Equal(t, lineClock(7), ms[4].Fixed)
	require.Equal(t, lineClock(8), ms[5].Fixed)
	for _, m := range ms {
		require.NoError(t, m.Validate())
	}
}

func TestBadLinesSayWhatIsWrong(t *testing.T) {
	const header = "user_id,item_type,item_id,action,liked_at,counter\n"
	long := strings.Repeat("9", MaxLine)
	for _, c := range []struct{ text, want string }{
		{"user_id,item_type,item_id,colour\n", `line 1: the header has a column "colour"`},
		{"user_id,item_type\n", "line 1: the header lacks the column item_id"},
		{"user_id,item_type,item_id,user_id\n", "line 1: the header has the column user_id twice"},
		{"\n\n1,post,2\n", `line 3: the header has a column "1"`},
		{long, "line 1: it is longer than 65536 bytes"},
		{"", "the input is empty"},
		{header + "01,post,1,,,\n", `line 2: user_id "01" is not an id`},
		{header + "+1,post,1,,,\n", `user_id "+1" is not an id`},
		{header + " 1,post,1,,,\n", `user_id " 1" is not an id`},
		{header + "1,post,1.0,,,\n", `item_id "1.0" is not an id`},
		{header + "1,post,1e3,,,\n", `item_id "1e3" is not an id`},
		{header + "1,post,9223372036854775808,,,\n", `item_id "9223372036854775808" is not an id`},
		{header + "1,post,٣,,,\n", `item_id "٣" is not an id`},
		{header + "0,post,1,,,\n", `user_id "0" is not an id`},
		{header + ",post,1,,,\n", "user_id is missing"},
		{header + "1,Post,1,,,\n", `item_type "Post" is not a configured name`},
		{header + "1,post,1,love,,\n", `action "love" is unknown`},
		{header + "1,post,1,,,views\n", "counter views is a tally"},
		{header + "1,post,1,,,shares\n", "counter shares is a tally"},
		{header + "1,post,1,,,stars\n", `counter "stars" is unknown`},
		{header + "1,post,1,,yesterday,\n", `liked_at "yesterday" is neither`},
		{header + "1,post,1,,2024-02-30T00:00:00Z,\n", `liked_at "2024-02-30T00:00:00Z" is neither`},
		{header + "1,post,1,,1700000000000,\n", `liked_at "1700000000000" is after 2091; a number is seconds`},
		{header + "1,post,1,,99999999999999999999999999,\n", "is after 2091"},
		{header + "1,post,1,,-,\n", `liked_at "-" is neither`},
		{header + "1,post,1,,2024-01-15 10:30:00,\n", `liked_at "2024-01-15 10:30:00" is neither`},
		{header + "1,post,1,,1700000000.1234567,\n", `is neither`},
		{header + "1,post,1,,1700000000.,\n", `is neither`},
		{header + "1,post,1,,.5,\n", `is neither`},
		{header + "1,post,1,,1700000000.-5,\n", `is neither`},
		{header + "1,post,1,,0000-01-01T00:00:00Z,\n", `line 2: liked_at "0000-01-01T00:00:00Z" is before the year 1`},
		{header + "1,post,1,,0001-01-01T00:00:00+05:00,\n", `liked_at "0001-01-01T00:00:00+05:00" is before the year 1`},
		{header + "1,post\n", "line 2: it has 2 columns, the header has 6"},
		{header + "1,post,1,,,,,\n", "it has 8 columns, the header has 6"},
		{header + "\"1\",post\n", "it has 2 columns, the header has 6"},
		{header + "\"1,post,1,,,\n", `extraneous or missing " in quoted-field`},
		{header + "\n\r\n" + long + "\n", "line 4: it is longer than"},
		{`{"user_id":1.0,"item_type":"post","item_id":1}`, `line 1: user_id "1.0" is not an id`},
		{`{"user_id":1e3,"item_type":"post","item_id":1}`, `user_id "1e3" is not an id`},
		{`{"user_id":01,"item_type":"post","item_id":1}`, "it is not valid JSON"},
		{`{"user_id":-1,"item_type":"post","item_id":1}`, `user_id "-1" is not an id`},
		{`{"user_id":1,"item_type":1,"item_id":1}`, "item_type is not a string"},
		{`{"user_id":1,"item_type":"post","item_id":true}`, "item_id is not a string"},
		{`{"user_id":1,"item_type":"post","item_id":[1]}`, "item_id is not a string"},
		{`{"user_id":1,"item_type":"post"}`, "item_id is missing"},
		{`{"user_id":1,"item_type":"post","item_id":null}`, "item_id is missing"},
		{`{"user_id":1,"item_type":"post","item_id":1,"item_id":2}`, "it has the field item_id twice"},
		{`{"user_id":1,"item_type":"post","item_id":1,"Action":"unlike"}`, `it has a field "Action"; known are user_id`},
		{`{"user_id":1,"item_type":"post","item_id":1`, "it is not valid JSON: it ends too early"},
		{`{"user_id":1,"item_type":"post","item_id":1}{}`, "more than one JSON value"},
		{`{"user_id":1,"item_type":"post","item_id":1,}`, "it is not valid JSON"},
		{"{}\n[]", "line 1: user_id is missing"},
	} {
		t.Run(c.want, func(t *testing.T) {
			r, err := openReader(strings.NewReader(c.text), config(), testFilterBits)
			if err == nil {
				_, err = r.Next()
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestReadingGoesOnBehindABadLine(t *testing.T) {
	r := open(t, "user_id,item_type,item_id\nx,post,1\n"+strings.Repeat("9", 3*MaxLine)+"\n1,post,1\n")
	for _, line := range []int64{2, 3} {
		_, err := r.Next()
		var bad *LineError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, line, bad.Line)
	}
	m, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, lineClock(4), m.Fixed)
	require.EqualValues(t, 4, r.Line())
}

func TestABrokenStreamIsNotItsEnd(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, "user_id,item_type,item_id\n1,post,1\n")
	require.NoError(t, err)
	require.NoError(t, z.Close())
	whole := zipped.String()
	r := open(t, whole[:len(whole)-4])
	_, err = r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	var bad *LineError
	require.NotErrorAs(t, err, &bad, "skipping bad lines must not skip this")
}

func FuzzBothJSONParsersAgree(f *testing.F) {
	f.Add(`{"user_id":"1","item_type":"post","item_id":7,"liked_at":1}`)
	f.Add(`{"user_id":01,"item_type":"po\"st","item_id": 7 ,"counter":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var plain, tokens record
		if parsePlain([]byte(text), &plain) {
			require.NoError(t, parseTokens([]byte(text), &tokens))
			for n := range plain {
				require.Equal(t, plain[n] == nil, tokens[n] == nil)
				require.Equal(t, string(plain[n]), string(tokens[n]))
			}
		}
	})
}

// TestTheFormsOfLikedAt: what databases and spreadsheets print for one instant.
func TestTheFormsOfLikedAt(t *testing.T) {
	at := time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2024-01-15T10:30:00Z":             at,
		"2024-01-15 10:30:00+00":           at,
		"2024-01-15 10:30:00.123456+00:00": at.Add(123456 * time.Microsecond),
		"2024-01-15 16:00:00.5+05:30":      at.Add(500 * time.Millisecond),
		"2024-01-15 02:30:00-08":           at,
		"1705314600":                       at,
		"1705314600.5":                     at.Add(500 * time.Millisecond),
		"1705314600.000001":                at.Add(time.Microsecond),
		"-1.25":                            time.Unix(-2, 750_000_000),
	} {
		ms := all(t, open(t, "user_id,item_type,item_id,liked_at\n1,post,1,"+text+"\n"))
		require.True(t, want.Equal(ms[0].LikedAt), "%s is %v", text, ms[0].LikedAt)
	}
}

func FuzzReaderNeverGivesAnInvalidReplay(f *testing.F) {
	f.Add("user_id,item_type,item_id,liked_at\n1,post,2,2020-01-01T00:00:00Z\n")
	f.Add(`{"user_id":"1","item_type":"post","item_id":7,"liked_at":1700000000}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := openReader(strings.NewReader(text), config(), testFilterBits)
		if err != nil {
			return
		}
		for {
			m, err := r.Next()
			var bad *LineError
			if errors.As(err, &bad) {
				continue
			}
			if err != nil {
				return
			}
			require.NoError(t, m.Validate())
			require.NotZero(t, m.Fixed)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	csvLines := "user_id,item_type,item_id,action,liked_at\n" +
		strings.Repeat("1234567,post,987654321,like,2024-05-06T07:08:09.123456Z\n", 1000)
	jsonLines := strings.Repeat(`{"user_id":"1234567","item_type":"post","item_id":"987654321","action":"like","liked_at":"2024-05-06T07:08:09Z"}`+"\n", 1000)
	for name, text := range map[string]string{"csv": csvLines, "jsonl": jsonLines} {
		b.Run(name, func(b *testing.B) {
			r, err := OpenReader(&repeat{text: text}, config())
			require.NoError(b, err)
			b.ReportAllocs()
			for n := int64(1); b.Loop(); n++ {
				m, err := r.Next()
				for err != nil { // the header comes again
					m, err = r.Next()
				}
				m.Edge.User = likes.UserID(n)
				m.Fixed = lineClock(n)
				if err := r.ranks.rank(&m); err != nil { // a second one, of a new edge
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// repeat is an endless file.
type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
