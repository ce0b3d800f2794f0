package client_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/client"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

func TestAUserWritesAndReads(t *testing.T) {
	f := newFixture(t)
	c, ctx, item := f.as(42), t.Context(), likes.Item{Type: 2, ID: 1<<63 - 1}
	require.Equal(t, f.service.Contract(), c.Contract())
	require.Equal(t, likes.DefaultItemTypes(), c.ItemTypes())

	r := one(t, c, like(42, item))
	require.NoError(t, r.Err)
	require.Equal(t, likes.Changed, r.Outcome)
	require.Equal(t, int64(1), r.Count.N)
	require.Equal(t, likes.Edge{Counter: likes.Likes, Item: item, User: 42}, r.Version.Edge)
	require.NotEmpty(t, r.Version.Mark)
	require.Zero(t, r.Version.Clock, "tokens stay unopened")
	require.Equal(t, likes.Unchanged, one(t, c, like(42, item)).Outcome)

	save := like(42, item)
	save.Edge.Counter = likes.Saves
	require.Equal(t, likes.Changed, one(t, c, save).Outcome)
	v, share := view(item), view(item)
	share.Edge.Counter, share.Edge.User = likes.Shares, 42
	for i, want := range []likes.Outcome{likes.Changed, likes.Unchanged} {
		require.Equal(t, want, one(t, c, v).Outcome, "%d", i)
		require.Equal(t, want, one(t, c, share).Outcome, "%d", i)
	}
	for _, counter := range []likes.Counter{likes.Likes, likes.Saves, likes.Views, likes.Shares} {
		n := c.Counts(ctx, counter, []likes.Item{item}, nil)[0]
		require.NoError(t, n.Err)
		require.Equal(t, int64(1), n.N, "%v", counter)
		require.Equal(t, likes.FromStore, n.Source)
		require.WithinDuration(t, time.Now(), n.AsOf, time.Minute)
	}
	require.True(t, c.Has(ctx, likes.Saves, 42, []likes.Item{item}, nil)[0].Liked)
	page, next, err := c.LikedBy(ctx, likes.Saves, 42, "", 10)
	require.NoError(t, err)
	require.Empty(t, next)
	require.Len(t, page, 1)
	require.Equal(t, save.Edge, page[0].Edge)
	require.WithinDuration(t, time.Now(), page[0].LikedAt, time.Minute)
	page, _, err = c.Likers(ctx, likes.Likes, item, "", 10)
	require.NoError(t, err)
	require.Equal(t, r.Version.Edge, page[0].Edge)
}

// What the API would refuse, or cannot carry, is refused before anything is sent.
func TestRefusedHere(t *testing.T) {
	f := newFixture(t)
	c, ctx, item := f.as(42), t.Context(), post(1)
	for name, change := range map[string]func(*likes.Mutation){
		"replay":   func(m *likes.Mutation) { m.Fixed = 1 },
		"liked_at": func(m *likes.Mutation) { m.LikedAt = time.Now() },
		"after":    func(m *likes.Mutation) { m.After = 1 },
		"user 7":   func(m *likes.Mutation) { m.Edge.User = 7 },
		"type 9":   func(m *likes.Mutation) { m.Edge.Item.Type = 9 },
		"item_id":  func(m *likes.Mutation) { m.Edge.Item.ID = 0 },
	} {
		m := like(42, item)
		change(&m)
		r := one(t, c, m)
		require.ErrorIs(t, r.Err, likes.ErrInvalid, name)
		require.ErrorContains(t, r.Err, name)
	}
	require.ErrorIs(t, c.Has(ctx, likes.Likes, 7, []likes.Item{item}, nil)[0].Err, likes.ErrInvalid)
	require.ErrorIs(t, c.Has(ctx, likes.Likes, 42, []likes.Item{{Type: 9, ID: 1}}, nil)[0].Err, likes.ErrInvalid)
	require.ErrorIs(t, c.Counts(ctx, likes.Likes, []likes.Item{{Type: 9, ID: 1}}, nil)[0].Err, likes.ErrInvalid)
	_, _, err := c.LikedBy(ctx, likes.Likes, 7, "", 10)
	require.ErrorIs(t, err, likes.ErrInvalid)
	_, _, err = c.Likers(ctx, likes.Likes, likes.Item{Type: 9, ID: 1}, "", 10)
	require.ErrorIs(t, err, likes.ErrInvalid)
	_, err = c.As(-1, nil)
	require.ErrorIs(t, err, likes.ErrInvalid)
	require.Empty(t, f.asked())
}

func TestItemTypesAreTheServers(t *testing.T) {
	types, err := likes.NewItemTypes(map[string]likes.ItemType{"album": 1, "track": 7})
	require.NoError(t, err)
	f := newFixture(t, func(c *httpapi.Config) { c.Types = types })
	c, ctx := f.open(), t.Context()
	track, album := likes.Item{Type: 7, ID: 5}, likes.Item{Type: 1, ID: 5}
	require.NoError(t, one(t, c, like(3, track)).Err)
	asked := []likes.Item{album, track, album}
	members, counts := c.Has(ctx, likes.Likes, 3, asked, nil), c.Counts(ctx, likes.Likes, asked, nil)
	for i := range asked {
		require.NoError(t, members[i].Err)
		require.Equal(t, i == 1, members[i].Liked)
		require.Equal(t, i == 1, counts[i].N == 1)
	}
	page, _, err := c.LikedBy(ctx, likes.Likes, 3, "", 10)
	require.NoError(t, err)
	require.Equal(t, track, page[0].Edge.Item)

	f.answer(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"likes":[{"item_id":"1","item_type":"new","liked_at":"2026-01-01T00:00:00Z"}],"next_cursor":""}`)
	})
	_, _, err = c.LikedBy(ctx, likes.Likes, 3, "", 10)
	require.ErrorContains(t, err, "open it again")
}

// A service's operations go as one request and their answers to their places,
// events beside them.
func TestACallOfMany(t *testing.T) {
	f := newFixture(t)
	c := f.open()
	f.service.err = func(item likes.Item) error {
		if item.ID == 3 {
			return likes.Errorf(likes.ErrUnavailable, "the store of item 3 is away")
		}
		return nil
	}
	save := like(9, post(1))
	save.Edge.Counter = likes.Saves
	rs := c.Apply(t.Context(), []likes.Mutation{like(9, post(1)), {}, view(post(1)), like(8, post(1)), like(9, post(3)), save, unlike(9, post(1)), unlike(7, post(1))})
	require.ElementsMatch(t, []string{"POST /v1/likes:batch", "POST /v1/view"}, f.asked())
	for i, want := range []struct {
		outcome likes.Outcome
		n       int64
		err     error
	}{
		{likes.Changed, 1, nil},
		{0, 0, likes.ErrInvalid},
		{likes.Changed, 1, nil},
		{likes.Changed, 2, nil},
		{0, 0, likes.ErrUnavailable},
		{likes.Changed, 1, nil},
		{likes.Changed, 1, nil},
		{likes.Unchanged, 1, nil},
	} {
		require.ErrorIs(t, rs[i].Err, want.err, "%d", i)
		require.Equal(t, want.outcome, rs[i].Outcome, "%d", i)
		require.Equal(t, want.n, rs[i].Count.N, "%d", i)
	}
	e, ok := errors.AsType[*client.Error](rs[4].Err)
	require.True(t, ok)
	require.Equal(t, "unavailable", e.Code)
	require.Equal(t, time.Second, e.RetryAfter)
}

func TestVersionsAreSentToTheReadsAndWritesThatTheyAreFor(t *testing.T) {
	f := newFixture(t)
	c, ctx := f.open(), t.Context()
	var items []likes.Item
	var seen []likes.Version
	for i := range 40 {
		item := post(likes.ItemID(i + 1))
		r := one(t, c, like(likes.UserID(i+1), item))
		require.NoError(t, r.Err)
		items, seen = append(items, item), append(seen, r.Version)
	}
	f.asked()
	for i, n := range c.Counts(ctx, likes.Likes, append(items, items[0]), append(seen, likes.Version{Edge: seen[0].Edge})) {
		require.NoError(t, n.Err, "%d", i)
		require.Equal(t, int64(1), n.N)
	}
	require.Len(t, f.asked(), 3, "16 tokens fit into a request")
	require.Len(t, f.service.seen, 40)
	for _, v := range f.service.seen {
		require.Positive(t, v.Clock, "the server opens it")
	}
	f.service.seen = nil
	require.True(t, c.Has(ctx, likes.Likes, 2, items[1:2], seen)[0].Liked)
	require.Len(t, f.service.seen, 1, "those of other items stay here")
	require.Equal(t, seen[1].Edge, f.service.seen[0].Edge)
	others := []likes.Version{{Edge: seen[2].Edge, Clock: 5}, {Edge: seen[2].Edge, Mark: "a,b"}}
	require.True(t, c.Has(ctx, likes.Likes, 2, items[1:2], others)[0].Liked, "nor are they looked at")

	later, err := c.After(seen[:16]...)
	require.NoError(t, err)
	require.NoError(t, one(t, later, like(1, post(100))).Err)
	require.Positive(t, f.service.after)
	after := f.service.after
	for _, r := range later.Apply(ctx, []likes.Mutation{like(1, post(101)), like(2, post(101))}) {
		require.NoError(t, r.Err)
	}
	require.Equal(t, after, f.service.after)
	require.NoError(t, one(t, c, like(1, post(102))).Err)
	require.Zero(t, f.service.after, "c is as it was")

	f.asked()
	_, err = c.After(seen[:17]...)
	require.ErrorIs(t, err, likes.ErrInvalid)
	for _, foreign := range []likes.Version{{Edge: seen[0].Edge, Clock: 5}, {Edge: seen[0].Edge, Mark: "a,b"}, {Edge: seen[0].Edge, Mark: "a", Clock: 1}} {
		require.ErrorIs(t, c.Counts(ctx, likes.Likes, items[:1], []likes.Version{foreign})[0].Err, likes.ErrInvalid)
		_, err = c.After(foreign)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
	many := make([]likes.Version, 17)
	for i := range many {
		many[i] = seen[0]
	}
	require.ErrorIs(t, c.Has(ctx, likes.Likes, 1, items[:1], many)[0].Err, likes.ErrInvalid)
	require.Empty(t, f.asked())
	forged := []likes.Version{{Edge: seen[0].Edge, Mark: "AAAA"}}
	require.ErrorIs(t, c.Counts(ctx, likes.Likes, items[:1], forged)[0].Err, likes.ErrInvalid, "by the server")
}

// Every kind of error of a service arrives as the same kind, of whole answers and
// of entries; only a read has nothing to be uncertain of.
func TestKindsOfErrorsCrossTheWire(t *testing.T) {
	f := newFixture(t)
	c, ctx := f.open(), t.Context()
	bad, good := post(1), post(2)
	for _, kind := range []error{
		likes.ErrInvalid, likes.ErrNotFound, likes.ErrErased, likes.ErrOverloaded, likes.ErrUnavailable,
		likes.ErrUncertain, likes.ErrFenced, likes.ErrNotYet,
	} {
		f.service.err = func(item likes.Item) error {
			if item == bad {
				return likes.Errorf(kind, "planted")
			}
			return nil
		}
		read := kind
		if kind == likes.ErrUncertain { //nolint:errorlint // it is the very value
			read = likes.ErrUnavailable
		}
		require.ErrorIs(t, one(t, c, like(1, bad)).Err, kind)
		rs := c.Apply(ctx, []likes.Mutation{like(1, bad), like(1, good)})
		require.ErrorIs(t, rs[0].Err, kind)
		require.NoError(t, rs[1].Err)
		for _, items := range [][]likes.Item{{bad}, {good, bad}} {
			at := len(items) - 1
			require.ErrorIs(t, c.Counts(ctx, likes.Likes, items, nil)[at].Err, read)
			require.ErrorIs(t, c.Has(ctx, likes.Likes, 1, items, nil)[at].Err, read)
			if at == 1 {
				require.NoError(t, c.Counts(ctx, likes.Likes, items, nil)[0].Err)
				require.True(t, c.Has(ctx, likes.Likes, 1, items, nil)[0].Liked)
			}
		}
		_, _, err := c.Likers(ctx, likes.Likes, bad, "", 10)
		require.ErrorIs(t, err, read)
	}
}

// Every code that the API documents has a kind here, chosen and not guessed.
func TestEveryDocumentedCodeHasItsKind(t *testing.T) {
	want := map[string]error{
		"invalid": likes.ErrInvalid, "not_found": likes.ErrNotFound, "erased": likes.ErrErased,
		"overloaded": likes.ErrOverloaded, "rate_limited": likes.ErrOverloaded, "fenced": likes.ErrFenced,
		"version_not_reached": likes.ErrNotYet, "unavailable": likes.ErrUnavailable, "body_timeout": likes.ErrUnavailable,
		"uncertain": likes.ErrUncertain, "timeout": likes.ErrUncertain, "internal": likes.ErrUncertain,
		"unauthorized": likes.ErrInvalid, "token_expired": likes.ErrInvalid, "token_invalid": likes.ErrInvalid, "forbidden": likes.ErrInvalid, "refused": likes.ErrInvalid,
		"no_such_route": likes.ErrInvalid, "method_not_allowed": likes.ErrInvalid, "body_too_large": likes.ErrInvalid, "unsupported_media_type": likes.ErrInvalid,
	}
	f := newFixture(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL+"/openapi.json", http.NoBody)
	require.NoError(t, err)
	response, err := f.server.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var doc struct {
		Components struct {
			Responses map[string]struct {
				Content map[string]struct {
					Schema struct {
						AllOf []struct {
							Properties struct {
								Status struct{ Const int }
								Error  struct{ Enum []string }
							}
						}
					}
				}
			}
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&doc))
	c, found := f.open(), map[string]bool{}
	for _, documented := range doc.Components.Responses {
		for _, part := range documented.Content["application/problem+json"].Schema.AllOf {
			for _, code := range part.Properties.Error.Enum {
				f.answer(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(part.Properties.Status.Const)
					_, _ = io.WriteString(w, `{"type":"urn:likectl:error:`+code+`","error":"`+code+`","detail":"so","request_id":"r1","retry_after":2}`)
				})
				found[code] = true
				err := one(t, c, like(1, post(1))).Err
				require.Contains(t, want, code, "a new code")
				require.ErrorIs(t, err, want[code], code)
				e, ok := errors.AsType[*client.Error](err)
				require.True(t, ok)
				require.Equal(t, part.Properties.Status.Const, e.Status)
				require.Equal(t, []any{code, "so", "r1", 2 * time.Second}, []any{e.Code, e.Detail, e.RequestID, e.RetryAfter})
			}
		}
	}
	require.Len(t, found, len(want))
}

// An entry has no status to judge by: what was refused must not look as if it might
// have been applied.
func TestEveryCodeOfAnEntryHasItsKind(t *testing.T) {
	f := newFixture(t)
	c := f.open()
	for code, want := range map[string]error{
		"invalid": likes.ErrInvalid, "not_found": likes.ErrNotFound, "erased": likes.ErrErased, "refused": likes.ErrInvalid,
		"rate_limited": likes.ErrOverloaded, "unavailable": likes.ErrUnavailable, "uncertain": likes.ErrUncertain,
	} {
		f.answer(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"results":[{"error":"`+code+`","detail":"so"},{"status":"liked","count":1,"user_liked":true,"changed":true}]}`)
		})
		rs := c.Apply(t.Context(), []likes.Mutation{like(1, post(1)), like(1, post(2))})
		require.ErrorIs(t, rs[0].Err, want, code)
		require.NoError(t, rs[1].Err)
	}
}

func TestARefusedCallerIsToldWhenToTryAgain(t *testing.T) {
	limiter, err := limit.New("like", 10, limit.Limit{Max: 1, Window: time.Hour})
	require.NoError(t, err)
	f := newFixture(t, func(c *httpapi.Config) { c.Rates.Like = limiter })
	c := f.as(6)
	require.NoError(t, one(t, c, like(6, post(1))).Err)
	err = one(t, c, like(6, post(2))).Err
	require.ErrorIs(t, err, likes.ErrOverloaded)
	e, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Equal(t, 429, e.Status)
	require.InDelta(t, time.Hour, e.RetryAfter, float64(5*time.Minute))
	require.False(t, c.Has(t.Context(), likes.Likes, 6, []likes.Item{post(2)}, nil)[0].Liked)
}

func TestCallersOverTheSameConnections(t *testing.T) {
	f := newFixture(t)
	c := f.open()
	user, err := c.As(4, f.token(4, auth.User))
	require.NoError(t, err)
	require.Equal(t, likes.Changed, one(t, user, like(4, post(1))).Outcome)
	require.ErrorIs(t, one(t, user, like(5, post(1))).Err, likes.ErrInvalid)
	require.Equal(t, likes.Changed, one(t, c, like(5, post(1))).Outcome)
	nobody, err := c.As(0, nil)
	require.NoError(t, err)
	require.Equal(t, int64(2), nobody.Counts(t.Context(), likes.Likes, []likes.Item{post(1)}, nil)[0].N)
	require.NoError(t, one(t, nobody, view(post(1))).Err)
	e, ok := errors.AsType[*client.Error](one(t, nobody, like(5, post(1))).Err)
	require.True(t, ok)
	require.Equal(t, 401, e.Status)
	stranger, err := c.As(4, client.Static("nonsense"))
	require.NoError(t, err)
	require.ErrorIs(t, one(t, stranger, like(4, post(1))).Err, likes.ErrInvalid)
}

// A hidden number is an error of its own, never 0.
func TestHiddenNumbersAndAnswersInAdvance(t *testing.T) {
	f := newFixture(t)
	c, ctx := f.open(), t.Context()
	says := func(body string, status int, header ...string) {
		f.answer(func(w http.ResponseWriter, _ *http.Request) {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	says(`{"status":"liked","hidden":true,"user_liked":true}`, 200)
	r := one(t, c, like(1, post(1)))
	require.NoError(t, r.Err)
	require.Equal(t, likes.Changed, r.Outcome)
	require.ErrorIs(t, r.Count.Err, client.ErrHidden)
	says(`{"counts":{"post:1":{"hidden":true}}}`, 200)
	require.ErrorIs(t, c.Counts(ctx, likes.Likes, []likes.Item{post(1)}, nil)[0].Err, client.ErrHidden)
	says(`{"hidden":true,"likers":[],"next_cursor":""}`, 200)
	_, _, err := c.Likers(ctx, likes.Likes, post(1), "", 5)
	require.ErrorIs(t, err, client.ErrHidden)

	says(`{"status":"accepted","user_liked":true}`, 202)
	r = one(t, c, like(1, post(1)))
	require.NoError(t, r.Err)
	require.Equal(t, likes.Accepted, r.Outcome)
	require.Error(t, r.Count.Err, "the count is not known yet")

	says(`{"counts":{"post:1":{"likes":3}},"cached":true,"as_of":"2026-01-02T03:04:05Z"}`, 200)
	n := c.Counts(ctx, likes.Likes, []likes.Item{post(1), post(2)}, nil)
	require.Equal(t, likes.Count{N: 3, AsOf: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Source: likes.FromCache}, n[0])
	require.ErrorIs(t, n[1].Err, likes.ErrUnavailable)
	says(`{"counts":{"post:1":{"likes":3}},"cached":true}`, 200, "X-Stale-Data", "true")
	require.Equal(t, likes.FromStale, c.Counts(ctx, likes.Likes, []likes.Item{post(1)}, nil)[0].Source)
	says(`{"results":[{"status":"liked","count":1}]}`, 200)
	for _, r := range c.Apply(ctx, []likes.Mutation{like(1, post(1)), like(2, post(1))}) {
		require.ErrorIs(t, r.Err, likes.ErrUncertain)
	}
	says(`{"likers":[{"user_id":"07"}],"next_cursor":""}`, 200)
	_, _, err = c.Likers(ctx, likes.Likes, post(1), "", 5)
	require.ErrorIs(t, err, likes.ErrUnavailable)
}
