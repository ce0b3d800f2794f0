package export_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"likectl/pkg/export"
	"likectl/pkg/ingest"
	"likectl/pkg/likes"
	"likectl/pkg/pseudonym"
	"likectl/pkg/store"
	"likectl/pkg/store/sqlite"
)

// namedLine is a line of an export with pseudonyms, whatever its format.
type namedLine struct {
	Pseudonym string `json:"pseudonym" parquet:"pseudonym"`
	ItemType  string `json:"item_type" parquet:"item_type"`
	ItemID    int64  `json:"item_id,string" parquet:"item_id"`
	Counter   string `json:"counter" parquet:"counter"`

	LikedAt time.Time `json:"liked_at" parquet:"liked_at,timestamp(microsecond)"`
}

func salt() pseudonym.Salt { return pseudonym.NewSalt(time.Now()) }

// named exports with pseudonyms and reads it back.
func named(t *testing.T, s *sqlite.Store, f export.Format, p export.Pseudonyms) (lines []namedLine, text string) {
	t.Helper()
	text = run(t, s, export.Config{Format: f, Pseudonyms: &p})
	switch f {
	case export.CSV:
		records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err)
		require.Equal(t, []string{"pseudonym", "item_type", "item_id", "liked_at", "counter"}, records[0])
		for _, r := range records[1:] {
			id, err := strconv.ParseInt(r[2], 10, 64)
			require.NoError(t, err)
			at, err := time.Parse(time.RFC3339, r[3])
			require.NoError(t, err)
			lines = append(lines, namedLine{r[0], r[1], id, r[4], at})
		}
	case export.JSONL:
		for line := range strings.Lines(text) {
			var l namedLine
			d := json.NewDecoder(strings.NewReader(line))
			d.DisallowUnknownFields()
			require.NoError(t, d.Decode(&l))
			lines = append(lines, l)
		}
	case export.Parquet:
		var err error
		lines, err = parquet.Read[namedLine](strings.NewReader(text), int64(len(text)))
		require.NoError(t, err)
		for i := range lines {
			lines[i].LikedAt = lines[i].LikedAt.UTC()
		}
	}
	return lines, text
}

func TestPseudonymsInPlaceOfIds(t *testing.T) {
	s := open(t)
	all := fill(t, s)
	p := export.Pseudonyms{Salt: salt()}
	namer := p.Salt.Namer()
	for _, f := range []export.Format{export.CSV, export.JSONL, export.Parquet} {
		for _, exact := range []bool{false, true} {
			var want []namedLine
			for _, m := range all {
				name := namer.Name(m.Edge.User)
				at := m.LikedAt
				if !exact {
					at = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
				}
				want = append(want, namedLine{
					string(name[:]), likes.DefaultItemTypes().Name(m.Edge.Item.Type), int64(m.Edge.Item.ID), m.Edge.Counter.String(), at,
				})
			}
			p.ExactTime = exact
			got, text := named(t, s, f, p)
			order := func(a, b namedLine) int {
				return cmp.Or(strings.Compare(a.Counter, b.Counter), cmp.Compare(a.ItemID, b.ItemID), strings.Compare(a.Pseudonym, b.Pseudonym))
			}
			slices.SortFunc(want, order)
			slices.SortFunc(got, order)
			require.Equal(t, want, got)
			require.NotContains(t, text, "user_id")
		}
	}
}

// TestNoIdIsInTheOutput looks for the ids themselves, which no item shares, in
// every form in which they could be there.
func TestNoIdIsInTheOutput(t *testing.T) {
	s := open(t)
	const user = 7_305_813_266_402_598_147
	like(t, s, 3, user)
	for _, f := range []export.Format{export.CSV, export.JSONL, export.Parquet} {
		require.True(t, holds(t, run(t, s, export.Config{Format: f}), f, user), "%s: the check finds nothing", f)
		_, text := named(t, s, f, export.Pseudonyms{Salt: salt(), ExactTime: true})
		require.False(t, holds(t, text, f, user), f)
	}
}

// holds says whether an export has a number somewhere: as text, or in a column.
func holds(t *testing.T, text string, f export.Format, n int64) bool {
	t.Helper()
	if f != export.Parquet {
		return strings.Contains(text, strconv.FormatInt(n, 10))
	}
	file, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	found := false
	for _, g := range file.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 10)
		for {
			got, err := rows.ReadRows(buf)
			for _, r := range buf[:got] {
				for _, v := range r {
					found = found || v.Kind() == parquet.Int64 && v.Int64() == n || strings.Contains(v.String(), strconv.FormatInt(n, 10))
				}
			}
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
		require.NoError(t, rows.Close())
	}
	return found
}

func like(t *testing.T, s *sqlite.Store, item likes.ItemID, users ...likes.UserID) {
	t.Helper()
	ws := make([]store.Write, len(users))
	for i, u := range users {
		e := likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: item}, User: u}
		ws[i] = store.Write{Edge: e, Liked: true, Clock: 1, LikedAt: time.Unix(1_700_000_000, 123456000)}
	}
	for part := range slices.Chunk(ws, likes.MaxApply) {
		require.NoError(t, s.Commit(t.Context(), store.Commit{Writes: part}, make([]store.Written, len(part))))
	}
}

func TestPseudonymsOfOneSaltAgreeAndOfTwoDoNot(t *testing.T) {
	s := open(t)
	fill(t, s)
	names := func(p export.Pseudonyms) map[string]bool {
		lines, _ := named(t, s, export.CSV, p)
		all := map[string]bool{}
		for _, l := range lines {
			all[l.Pseudonym] = true
		}
		return all
	}
	one := export.Pseudonyms{Salt: salt()}
	first, again, other := names(one), names(one), names(export.Pseudonyms{Salt: salt()})
	require.Len(t, first, 3, "users")
	require.Equal(t, first, again)
	for name := range other {
		require.NotContains(t, first, name)
	}
}

// TestTheOrderOfLinesTellsNothing: likers are stored in the order of their ids.
func TestTheOrderOfLinesTellsNothing(t *testing.T) {
	s := open(t)
	var users []likes.UserID
	for n := range 7000 { // more than a step of the walk
		users = append(users, likes.UserID(1+n))
	}
	like(t, s, 3, users...)
	like(t, s, 4, users[:100]...)
	lines, _ := named(t, s, export.CSV, export.Pseudonyms{Salt: salt()})
	require.Len(t, lines, 7100)
	require.True(t, slices.IsSortedFunc(lines, func(a, b namedLine) int {
		if a.ItemID != b.ItemID {
			return int(a.ItemID - b.ItemID)
		}
		return strings.Compare(a.Pseudonym, b.Pseudonym)
	}))
}

func TestImportRefusesPseudonyms(t *testing.T) {
	s := open(t)
	like(t, s, 3, 1, 2)
	for _, f := range []export.Format{export.CSV, export.JSONL} {
		_, text := named(t, s, f, export.Pseudonyms{Salt: salt()})
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, err := io.WriteString(z, text)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		for _, in := range []io.Reader{strings.NewReader(text), &zipped} {
			r, err := ingest.OpenReader(in, ingest.ReaderConfig{Types: likes.DefaultItemTypes()})
			if err == nil {
				_, err = r.Next()
			}
			require.ErrorContains(t, err, "--pseudonymise")
			require.ErrorContains(t, err, "line 1")
		}
	}
}

func TestOneUserHasNoPseudonym(t *testing.T) {
	_, err := export.New(open(t), io.Discard, export.Config{Format: export.CSV, User: 1, Pseudonyms: &export.Pseudonyms{Salt: salt()}})
	require.ErrorIs(t, err, likes.ErrInvalid)
}
