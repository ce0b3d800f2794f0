package tiertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"likectl/pkg/likes"
)

// HTTPTarget is a running API, seen from outside.
type HTTPTarget struct {
	// BaseURLs are one or more processes over one shared state.
	BaseURLs []string
	// UserToken returns a token of a user, ServiceToken is one with the scope
	// service.
	UserToken    func(likes.UserID) string
	ServiceToken string
	// Items are posts from this id on that nothing has touched; 0: 1,000,000.
	Items likes.ItemID
}

// client calls the API of one process for one caller.
type client struct {
	http *http.Client
	base string
	// token of the caller; empty: none.
	token string
}

// newHTTPClient returns a client with a pool of connections of its own.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
}

// answer is what came back, whatever it was.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// reply are the members of all answers that the suites look at.
type reply struct {
	// of likes
	Status    string `json:"-"` // set by answer.reply
	Count     int64  `json:"count"`
	Formatted string `json:"count_formatted"`
	UserLiked bool   `json:"user_liked"`
	Changed   *bool  `json:"changed"`
	// of reads
	ItemID string          `json:"item_id"`
	Counts json.RawMessage `json:"counts"`
	Liked  map[string]bool `json:"liked"`
	Likers []struct {
		UserID string `json:"user_id"`
	} `json:"likers"`
	NextCursor string `json:"next_cursor"`
	// of errors
	Error  string          `json:"error"`
	Detail string          `json:"detail"`
	Errors json.RawMessage `json:"errors"`
}

func (a answer) reply() (reply, error) {
	var r reply
	if err := json.Unmarshal(a.body, &r); err != nil {
		return r, fmt.Errorf("answer %d %.200q: %w", a.status, a.body, err)
	}
	var s struct { // a string in answers to likes, the number in errors
		Status any `json:"status"`
	}
	if err := json.Unmarshal(a.body, &s); err != nil {
		return r, err
	}
	r.Status, _ = s.Status.(string)
	return r, nil
}

// do sends a request; body is JSON text, or empty for none. The error is of the
// connection only: the request may have been carried out.
func (c client) do(ctx context.Context, method, path, body string, headers ...string) (answer, error) {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return answer{}, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, out}, err
}

// typeName is how the default configuration calls item type 1.
const typeName = "post"

func likeBody(item likes.ItemID) string {
	return fmt.Sprintf(`{"item_id":"%d","item_type":"%s"}`, item, typeName)
}

// counts reads many counts in one call.
func (c client) counts(ctx context.Context, items []likes.ItemID) (map[likes.ItemID]int64, error) {
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(likeBody(item))
	}
	b.WriteString("]}")
	a, err := c.do(ctx, http.MethodPost, "/v1/counts", b.String())
	if err != nil {
		return nil, err
	}
	r, err := a.ok()
	if err != nil {
		return nil, err
	}
	var counts map[string]map[string]int64
	if err := json.Unmarshal(r.Counts, &counts); err != nil {
		return nil, fmt.Errorf("counts %.200q: %w", r.Counts, err)
	}
	out := make(map[likes.ItemID]int64, len(items))
	for _, item := range items {
		n, ok := counts[typeName+":"+strconv.FormatInt(int64(item), 10)]["likes"]
		if !ok {
			return nil, fmt.Errorf("no count of item %d in %.200q", item, a.body)
		}
		out[item] = n
	}
	return out, nil
}

// ok returns the reply to a call that must have succeeded.
func (a answer) ok() (reply, error) {
	if a.status != http.StatusOK {
		return reply{}, fmt.Errorf("status %d: %.300s", a.status, a.body)
	}
	return a.reply()
}

// has returns which of the items the caller likes.
func (c client) has(ctx context.Context, items ...likes.ItemID) (map[likes.ItemID]bool, error) {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = fmt.Sprintf(`"%d"`, item)
	}
	a, err := c.do(ctx, http.MethodPost, "/v1/has_liked", fmt.Sprintf(`{"item_type":"%s","item_ids":[%s]}`, typeName, strings.Join(ids, ",")))
	if err != nil {
		return nil, err
	}
	r, err := a.ok()
	if err != nil {
		return nil, err
	}
	out := make(map[likes.ItemID]bool, len(items))
	for _, item := range items {
		liked, ok := r.Liked[strconv.FormatInt(int64(item), 10)]
		if !ok {
			return nil, fmt.Errorf("no answer for item %d in %.200q", item, a.body)
		}
		out[item] = liked
	}
	return out, nil
}

// likers walks all pages of an item's likers.
func (c client) likers(ctx context.Context, item likes.ItemID, limit int) ([]likes.UserID, error) {
	var all []likes.UserID
	cursor := ""
	for range maxPages {
		path := fmt.Sprintf("/v1/likers?item_id=%d&item_type=%s&limit=%d", item, typeName, limit)
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		a, err := c.do(ctx, http.MethodGet, path, "")
		if err != nil {
			return nil, err
		}
		r, err := a.ok()
		if err != nil {
			return nil, err
		}
		for _, l := range r.Likers {
			id, err := likes.ParseID(l.UserID)
			if err != nil {
				return nil, err
			}
			all = append(all, likes.UserID(id))
		}
		if cursor = r.NextCursor; cursor == "" {
			return all, nil
		}
	}
	return all, fmt.Errorf("no end after %d pages", maxPages)
}

// tokens remembers the tokens of users: making one may start a process.
type tokens struct {
	make func(likes.UserID) string
	mu   sync.Mutex
	by   map[likes.UserID]string
}

func (t *tokens) of(u likes.UserID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[likes.UserID]string{}
	}
	if t.by[u] == "" {
		t.by[u] = t.make(u)
	}
	return t.by[u]
}
