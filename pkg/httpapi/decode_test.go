package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

var types = likes.DefaultItemTypes()

// decodeAs reads a body as one of the shapes.
func decodeAs(shape string, body []byte) error {
	d := decoder{b: body, types: &types}
	var err error
	switch shape {
	case "like":
		_, err = d.like()
	case "counts":
		_, err = d.counts()
	case "has":
		_, err = d.has()
	case "batch":
		_, err = d.batch(0)
	}
	return err
}

var shapes = []string{"like", "counts", "has", "batch"}

var goodBodies = map[string][]string{
	"like": {
		`{"item_id":"1","item_type":"post"}`,
		" \t\r\n{ \"item_type\" : \"reel\" , \"item_id\" : 9223372036854775807 } \n",
		`{"item_id":9007199254740993,"item_type":"comment","user_id":"42"}`,
	},
	"counts": {
		`{"items":[{"item_id":"1","item_type":"post"}]}`,
		`{"counter_types":["likes","saves","likes"],"items":[ {"item_id":1,"item_type":"post"} , {"item_type":"reel","item_id":"2"} ]}`,
	},
	"has": {
		`{"item_ids":["1"],"item_type":"post"}`,
		`{"item_type":"post","item_ids":[ 1 , "2",3],"user_id":7,"counter":"saves"}`,
	},
	"batch": {
		`{"ops":[{"user_id":"1","item_id":"2","item_type":"post","action":"like"}]}`,
		`{"ops":[{"user_id":1,"item_id":2,"item_type":"reel","action":"unlike","counter":"saves"},{"user_id":1,"item_id":2,"item_type":"reel","action":"like"}]}`,
	},
}

func TestDecode_AcceptsWhatTheAPIPromises(t *testing.T) {
	for shape, bodies := range goodBodies {
		for _, body := range bodies {
			require.NoError(t, decodeAs(shape, []byte(body)), "%s %s", shape, body)
		}
	}
	d := decoder{b: []byte(goodBodies["like"][2]), types: &types}
	e, err := d.like()
	require.NoError(t, err)
	require.Equal(t, entry{user: 42, item: likes.Item{Type: 3, ID: 9007199254740993}}, e)

	d = decoder{b: []byte(goodBodies["batch"][1]), types: &types}
	ms, err := d.batch(5)
	require.NoError(t, err)
	edge := likes.Edge{Counter: likes.Saves, Item: likes.Item{Type: 2, ID: 2}, User: 1}
	other := edge
	other.Counter = likes.Likes
	require.Equal(t, []likes.Mutation{{Op: likes.Clear, Edge: edge, After: 5}, {Op: likes.Set, Edge: other, After: 5}}, ms)

	d = decoder{b: []byte(goodBodies["has"][1]), types: &types}
	has, err := d.has()
	require.NoError(t, err)
	require.Equal(t, hasBody{items: []likes.Item{{Type: 1, ID: 1}, {Type: 1, ID: 2}, {Type: 1, ID: 3}}, user: 7, counter: likes.Saves}, has)
}

// Every refusal says where: by the field and entry, or by the byte.
var badBodies = []struct{ shape, body, says string }{
	{"like", ``, "body: the JSON ends"},
	{"like", ` `, "body: the JSON ends"},
	{"like", `null`, "body: want a JSON object"},
	{"like", `[]`, "body: want a JSON object"},
	{"like", `"post"`, "body: want a JSON object"},
	{"like", `{}`, "item_id: missing"},
	{"like", `{"item_id":"1"}`, "item_type: missing"},
	{"like", `{"item_type":"post"}`, "item_id: missing"},
	{"like", `{"item_id":"1","item_type":"post"`, "the JSON ends"},
	{"like", `{"item_id":"1","item_type":"post"}}`, "body: something follows"},
	{"like", `{"item_id":"1","item_type":"post"}{"item_id":"2","item_type":"post"}`, "body: something follows"},
	{"like", "{\"item_id\":\"1\",\"item_type\":\"post\"}\x00", "body: something follows"},
	{"like", "\xef\xbb\xbf" + `{"item_id":"1","item_type":"post"}`, "body: want a JSON object"},
	{"like", `{"item_id":"1","item_type":"post",}`, "member's name"},
	{"like", `{,"item_id":"1","item_type":"post"}`, "member's name"},
	{"like", `{"item_id":"1""item_type":"post"}`, "a comma"},
	{"like", `{"item_id" "1","item_type":"post"}`, "a colon"},
	{"like", `{item_id:"1","item_type":"post"}`, "member's name"},
	{"like", `{'item_id':"1","item_type":"post"}`, "member's name"},
	{"like", `{"item_id":"1","item_id":"1","item_type":"post"}`, `member "item_id" is given twice`},
	{"like", `{"item_id":"1","item_type":"post","item_type":"post"}`, `member "item_type" is given twice`},
	{"like", `{"item_id":"1","item_type":"post","note":"x"}`, `member "note" is unknown`},
	{"like", `{"Item_ID":"1","item_type":"post"}`, `member "Item_ID" is unknown`},
	{"like", `{"item\u005fid":"1","item_type":"post"}`, "escape sequence"},
	{"like", `{"item_id":"1","item_type":"post","action":"like"}`, `member "action" is unknown`},
	{"like", `{"item_id":"01","item_type":"post"}`, `item_id: "01"`},
	{"like", `{"item_id":01,"item_type":"post"}`, `item_id: "01"`},
	{"like", `{"item_id":0,"item_type":"post"}`, `item_id: "0"`},
	{"like", `{"item_id":-1,"item_type":"post"}`, "item_id: want an id"},
	{"like", `{"item_id":+1,"item_type":"post"}`, "item_id: want an id"},
	{"like", `{"item_id":"+1","item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":" 1","item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":1.0,"item_type":"post"}`, "item_id: want an integer"},
	{"like", `{"item_id":1e3,"item_type":"post"}`, "item_id: want an integer"},
	{"like", `{"item_id":1E3,"item_type":"post"}`, "item_id: want an integer"},
	{"like", `{"item_id":"1.0","item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":"１","item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":"٣","item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":9223372036854775808,"item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":"9223372036854775808","item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":"","item_type":"post"}`, "item_id: "},
	{"like", `{"item_id":null,"item_type":"post"}`, "item_id: want an id"},
	{"like", `{"item_id":true,"item_type":"post"}`, "item_id: want an id"},
	{"like", `{"item_id":["1"],"item_type":"post"}`, "item_id: want an id"},
	{"like", `{"item_id":{"item_id":"1"},"item_type":"post"}`, "item_id: want an id"},
	{"like", `{"item_id":"1","item_type":"planet"}`, `item_type: "planet" is unknown, want one of x-likectl-item-types in GET /openapi.json`},
	{"like", `{"item_id":"1","item_type":"Post"}`, "item_type: "},
	{"like", `{"item_id":"1","item_type":""}`, "item_type: "},
	{"like", `{"item_id":"1","item_type":1}`, "item_type: want an item type"},
	{"like", `{"item_id":"1","item_type":null}`, "item_type: want an item type"},
	{"like", `{"item_id":"1","item_type":"po` + "\n" + `st"}`, "item_type: a string has the byte"},
	{"like", `{"item_id":"1","item_type":"post","user_id":"0"}`, "user_id: "},
	{"like", strings.Repeat(`{"item_id":`, 100_000), "item_id: want an id"},
	{"like", strings.Repeat(`[`, 100_000), "body: want a JSON object"},

	{"counts", `{}`, "items: missing"},
	{"counts", `{"counter_types":["likes"]}`, "items: missing"},
	{"counts", `{"items":[]}`, "items: empty"},
	{"counts", `{"items":{}}`, "items: want a list"},
	{"counts", `{"items":null}`, "items: want a list"},
	{"counts", `{"items":[1]}`, "items[0]: want a JSON object"},
	{"counts", `{"items":[null]}`, "items[0]: want a JSON object"},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"},]}`, "items[1]: want a JSON object"},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"}{"item_id":"1","item_type":"post"}]}`, "items: want a comma"},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"},{"item_id":"x","item_type":"post"}]}`, "items[1].item_id: "},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"},{"item_id":"2"}]}`, "items[1].item_type: missing"},
	{"counts", `{"items":[{"item_id":"1","item_type":"post","user_id":"1"}]}`, `items[0]: member "user_id" is unknown`},
	{"counts", `{"items":[{"item_id":"1","item_id":"1","item_type":"post"}]}`, `items[0]: member "item_id" is given twice`},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"}],"items":[{"item_id":"1","item_type":"post"}]}`, `member "items" is given twice`},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"}],"counter_types":[]}`, "counter_types: empty"},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"}],"counter_types":["likes","stars"]}`, `counter_types[1]: counter "stars" is unknown`},
	{"counts", `{"items":[{"item_id":"1","item_type":"post"}],"counter_types":"likes"}`, "counter_types: want a list"},
	{"counts", `{"items":[` + strings.Repeat(`{"item_id":"1","item_type":"post"},`, 500) + `{"item_id":"1","item_type":"post"}]}`, "items: more than 500"},

	{"has", `{"item_ids":["1"]}`, "item_type: missing"},
	{"has", `{"item_type":"post"}`, "item_ids: missing"},
	{"has", `{"item_ids":[],"item_type":"post"}`, "item_ids: empty"},
	{"has", `{"item_ids":"1","item_type":"post"}`, "item_ids: want a list"},
	{"has", `{"item_ids":["1",["2"]],"item_type":"post"}`, "item_ids[1]: want an id"},
	{"has", `{"item_ids":[1,02],"item_type":"post"}`, "item_ids[1]: "},
	{"has", `{"item_ids":["1"],"item_type":"post","counter":"views"}`, "counter: "},
	{"has", `{"item_ids":[` + strings.Repeat(`1,`, 500) + `1],"item_type":"post"}`, "item_ids: more than 500"},

	{"batch", `{"ops":[]}`, "ops: empty"},
	{"batch", `{}`, "ops: missing"},
	{"batch", `{"ops":[{"item_id":"2","item_type":"post","action":"like"}]}`, "ops[0].user_id: missing"},
	{"batch", `{"ops":[{"user_id":"1","item_id":"2","item_type":"post"}]}`, "ops[0].action: missing"},
	{"batch", `{"ops":[{"user_id":"1","item_id":"2","item_type":"post","action":"love"}]}`, `ops[0].action: "love" is unknown`},
	{"batch", `{"ops":[{"user_id":"1","item_id":"2","item_type":"post","action":"like","counter":"views"}]}`, "ops[0].counter: "},
	{"batch", `{"ops":[{"user_id":"1","item_id":"2","item_type":"post","action":"like"}],"atomic":true}`, `member "atomic" is unknown`},
	{"batch", `{"ops":[` + strings.Repeat(`{"user_id":"1","item_id":"2","item_type":"post","action":"like"},`, 1000) +
		`{"user_id":"1","item_id":"2","item_type":"post","action":"like"}]}`, "ops: more than 1000"},
}

func TestDecode_RefusalsNameTheFieldAndEntry(t *testing.T) {
	for _, c := range badBodies {
		err := decodeAs(c.shape, []byte(c.body))
		require.ErrorIs(t, err, likes.ErrInvalid, "%s %.80s", c.shape, c.body)
		require.ErrorContains(t, err, c.says, "%s %.80s", c.shape, c.body)
		require.Less(t, len(err.Error()), 250, "an error quotes little of the input")
	}
}

// FuzzDecode holds the tokenizer to encoding/json: what that refuses, what has a
// repeated or unknown member or a number that is no integer, is refused here too.
func FuzzDecode(f *testing.F) {
	for _, bodies := range goodBodies {
		for _, body := range bodies {
			f.Add([]byte(body))
		}
	}
	for _, c := range badBodies {
		if len(c.body) < 1000 {
			f.Add([]byte(c.body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, shape := range shapes {
			err := decodeAs(shape, body)
			if err != nil {
				require.ErrorIs(t, err, likes.ErrInvalid)
				continue
			}
			require.True(t, json.Valid(body), "%s accepts %q, which is no JSON", shape, body)
			sameAsReference(t, shape, body)
		}
	})
}

// sameAsReference compares an accepted body with what encoding/json reads.
func sameAsReference(t *testing.T, shape string, body []byte) {
	t.Helper()
	var ref struct {
		ItemID       any    `json:"item_id"`
		UserID       any    `json:"user_id"`
		ItemType     string `json:"item_type"`
		Counter      string `json:"counter"`
		ItemIDs      []any  `json:"item_ids"`
		CounterTypes []any  `json:"counter_types"`
		Items, Ops   []map[string]any
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&ref), "%s accepts %q", shape, body)
	same := func(want any, got int64) {
		t.Helper()
		var text string
		switch v := want.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		}
		id, err := likes.ParseID(text)
		require.NoError(t, err)
		require.Equal(t, id, got, "%q", body)
	}
	d := decoder{b: body, types: &types}
	switch shape {
	case "like":
		e, err := d.like()
		require.NoError(t, err)
		same(ref.ItemID, int64(e.item.ID))
		require.Equal(t, ref.ItemType, types.Name(e.item.Type))
	case "counts":
		b, err := d.counts()
		require.NoError(t, err)
		require.Len(t, b.items, len(ref.Items))
		for i, item := range b.items {
			same(ref.Items[i]["item_id"], int64(item.ID))
		}
		require.Len(t, b.counters, len(ref.CounterTypes))
	case "has":
		b, err := d.has()
		require.NoError(t, err)
		require.Len(t, b.items, len(ref.ItemIDs))
		for i, item := range b.items {
			same(ref.ItemIDs[i], int64(item.ID))
			require.Equal(t, ref.ItemType, types.Name(item.Type))
		}
	case "batch":
		ms, err := d.batch(0)
		require.NoError(t, err)
		require.Len(t, ms, len(ref.Ops))
		for i, m := range ms {
			same(ref.Ops[i]["item_id"], int64(m.Edge.Item.ID))
			same(ref.Ops[i]["user_id"], int64(m.Edge.User))
			require.Equal(t, ref.Ops[i]["action"], m.Op.String())
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\x7f", `"\`, "é\u2028😀", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got, want string
		require.NoError(t, json.Unmarshal(appendString(nil, s), &got))
		reference, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(reference, &want))
		require.Equal(t, want, got)
	})
}
