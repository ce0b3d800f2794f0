package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/visibility"
)

// tell sends a change as a backend.
func (f *fixture) tell(method, path, body string) answer {
	f.tb.Helper()
	return f.do(f.request(method, path, body, f.token(backend, auth.Service)))
}

func TestItems_WhatIsAbsentStaysAsItIs(t *testing.T) {
	f := newFixture(t)
	const item = `"item_id":"1","item_type":"post"`
	for _, step := range []struct{ method, members, want string }{
		{"PUT", "", `"visibility":"public","state":"live","counts":"shown","changed":true}`},
		{"PUT", "", `"visibility":"public","state":"live","counts":"shown","changed":false}`},
		{"PUT", `,"owner_id":"7","visibility":"followers"`, `"owner_id":"7","visibility":"followers","state":"live","counts":"shown","changed":true}`},
		{"PUT", `,"counts":"hidden"`, `"owner_id":"7","visibility":"followers","state":"live","counts":"hidden","changed":true}`},
		{"PUT", `,"state":"hidden"`, `"owner_id":"7","visibility":"followers","state":"hidden","counts":"hidden","changed":true}`},
		{"DELETE", "", `"owner_id":"7","visibility":"followers","state":"deleted","counts":"hidden","changed":true}`},
		{"DELETE", "", `"owner_id":"7","visibility":"followers","state":"deleted","counts":"hidden","changed":false}`},
		{"PUT", `,"state":"live","counts":"shown","owner_id":9,"visibility":"private"`, `"owner_id":"9","visibility":"private","state":"live","counts":"shown","changed":true}`},
	} {
		a := f.tell(step.method, "/v1/items", "{"+item+step.members+"}")
		require.Equal(t, 200, a.status, a.raw)
		require.Equal(t, "{"+item+","+step.want, a.raw)
	}
}

func TestCatalog_MalformedBodiesChangeNothing(t *testing.T) {
	f := newFixture(t)
	const item = `"item_id":"1","item_type":"post"`
	for _, c := range []struct{ method, path, body, says string }{
		{"PUT", "/v1/items", `{"item_id":"1"}`, "item_type: missing"},
		{"PUT", "/v1/items", "{" + item + `,"visibility":"friends"}`, "visibility"},
		{"PUT", "/v1/items", "{" + item + `,"visibility":1}`, "visibility"},
		{"PUT", "/v1/items", "{" + item + `,"state":"gone"}`, "state"},
		{"PUT", "/v1/items", "{" + item + `,"counts":"some"}`, "counts"},
		{"PUT", "/v1/items", "{" + item + `,"owner_id":"0"}`, "owner_id"},
		{"PUT", "/v1/items", "{" + item + `,"owner_id":null}`, "owner_id"},
		{"PUT", "/v1/items", "{" + item + `,"counts":"hidden","counts":"shown"}`, "twice"},
		{"PUT", "/v1/items", "{" + item + `} x`, "something follows"},
		{"DELETE", "/v1/items", "{" + item + `,"owner_id":"7"}`, "owner_id"},
		{"DELETE", "/v1/items", "{" + item + `} x`, "something follows"},
		{"PUT", "/v1/blocks", `{"blocked_id":"2"}`, "blocker_id: missing"},
		{"PUT", "/v1/blocks", `{"blocker_id":"1"}`, "blocked_id: missing"},
		{"PUT", "/v1/blocks", `{"blocker_id":"1","blocked_id":"1"}`, ""},
		{"PUT", "/v1/blocks", `{"blocker_id":"1","blocked_id":"2",` + item + "}", "want either"},
		{"PUT", "/v1/blocks", `{"blocker_id":"1","blocked_id":"2","item_id":"3"}`, "want either"},
		{"PUT", "/v1/blocks", `{"blocked_id":"2","item_id":"3"}`, "item_type: missing"},
		{"DELETE", "/v1/blocks", `{"blocked_id":"2","item_type":"post"}`, "item_id: missing"},
		{"PUT", "/v1/follows", `{"follower_id":"1"}`, "followee_id: missing"},
		{"PUT", "/v1/follows", `{"follower_id":"1","followee_id":"1"}`, ""},
		{"DELETE", "/v1/follows", `{"follower_id":"1","followee_id":"2","since":"3"}`, "since"},
		{"GET", "/v1/users/0/totals", "", "id: "},
		{"GET", "/v1/users/01/totals", "", "id: "},
		{"GET", "/v1/users/me/totals", "", "id: "},
		{"GET", "/v1/users/7/totals?counter=likes", "", "query"},
	} {
		a := f.tell(c.method, c.path, c.body)
		require.Equal(t, 400, a.status, "%s %s %s: %s", c.method, c.path, c.body, a.raw)
		require.Contains(t, as[string](t, a.body["detail"]), c.says, c.body)
	}
	restricts, err := f.catalog.Restricts(t.Context())
	require.NoError(t, err)
	require.False(t, restricts, "a refused change was made")
}

func TestTotals_HasEveryCounter(t *testing.T) {
	f := newFixture(t)
	require.Equal(t, 200, f.tell("PUT", "/v1/items", `{"item_id":"1","item_type":"post","owner_id":"7"}`).status)
	f.like("POST", 9, "1")
	require.Equal(t, 200, f.do(f.request("POST", "/v1/view", goodLike, "")).status)
	sums := func(likes, views string) string {
		return `{"likes":` + likes + `,"saves":0,"views":` + views + `,"shares":0}`
	}
	require.Equal(t, `{"user_id":"7","given":{"likes":0,"saves":0},"received":`+sums("1", "1")+`,"received_hidden":`+sums("0", "0")+`}`,
		f.tell("GET", "/v1/users/7/totals", "").raw)
	require.Equal(t, 200, f.tell("PUT", "/v1/items", `{"item_id":"1","item_type":"post","counts":"hidden"}`).status)
	require.Equal(t, `{"user_id":"7","given":{"likes":0,"saves":0},"received":`+sums("0", "0")+`,"received_hidden":`+sums("1", "1")+`}`,
		f.tell("GET", "/v1/users/7/totals", "").raw)
	require.Contains(t, f.tell("GET", "/v1/users/9/totals", "").raw, `"given":{"likes":1,"saves":0}`)
}

// An API without a catalog shows everything and has no routes that say else.
func TestCatalog_None(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Guard, c.Catalog = nil, nil })
	f.undocumented = true
	f.like("POST", 1, "1")
	require.EqualValues(t, 1, f.counted())
	for _, path := range []string{"/v1/items", "/v1/blocks", "/v1/follows", "/v1/users/7/totals"} {
		a := f.tell("PUT", path, "{}")
		require.Equal(t, 404, a.status)
		require.Equal(t, "no_such_route", a.body["error"])
	}
	a := f.do(f.request("GET", "/v1/likers?item_id=1&item_type=post", "", f.token(2, auth.User)))
	require.Contains(t, a.raw, `"user_id":"1"`)
}

func FuzzDecodeCatalog(f *testing.F) {
	for _, body := range []string{
		`{"item_id":"1","item_type":"post","owner_id":7,"visibility":"followers","state":"live","counts":"hidden"}`,
		`{"blocker_id":"1","blocked_id":2}`, `{"item_id":3,"item_type":"reel","blocked_id":"2"}`, `{"follower_id":"1","followee_id":"2"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		item := func() (any, error) { d := decoder{b: body, types: &types}; return d.itemChange() }
		block := func() (any, error) { d := decoder{b: body, types: &types}; return d.block() }
		follow := func() (any, error) { d := decoder{b: body, types: &types}; return d.follow() }
		for _, read := range []func() (any, error){item, block, follow} {
			got, err := read()
			if err != nil {
				require.ErrorIs(t, err, likes.ErrInvalid)
				continue
			}
			var ref map[string]any
			d := json.NewDecoder(strings.NewReader(string(body)))
			d.UseNumber()
			require.NoError(t, d.Decode(&ref), "%q", body)
			require.Equal(t, members(got), reference(t, ref), "%q", body)
		}
	})
}

// members are what was read, by the names on the wire; reference the same of what
// encoding/json reads.
func members(v any) map[string]any {
	out := map[string]any{}
	id := func(name string, n int64) {
		if n != 0 {
			out[name] = n
		}
	}
	item := func(i likes.Item) {
		if (i != likes.Item{}) {
			out["item_id"], out["item_type"] = int64(i.ID), types.Name(i.Type)
		}
	}
	switch v := v.(type) {
	case store.ItemChange:
		item(v.Item)
		if v.Owner != nil {
			id("owner_id", int64(*v.Owner))
		}
		if v.Level != 0 {
			out["visibility"] = v.Level.String()
		}
		if v.State != 0 {
			out["state"] = v.State.String()
		}
		if v.HideCounts != nil {
			out["counts"] = countsName(*v.HideCounts)
		}
	case store.Block:
		item(v.Item)
		id("blocker_id", int64(v.Blocker))
		id("blocked_id", int64(v.Blocked))
	case store.Follow:
		id("follower_id", int64(v.Follower))
		id("followee_id", int64(v.Followee))
	}
	return out
}

func reference(t *testing.T, ref map[string]any) map[string]any {
	t.Helper()
	out := map[string]any{}
	for name, v := range ref {
		out[name] = v
		if !strings.HasSuffix(name, "_id") {
			continue
		}
		text, quoted := v.(string)
		if n, ok := v.(json.Number); ok && !quoted {
			text = n.String()
		}
		id, err := likes.ParseID(text)
		require.NoError(t, err)
		out[name] = id
	}
	return out
}

var _ visibility.Source = store.Catalog(nil)
