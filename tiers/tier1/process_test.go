package tier1_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
	containers "likectl/testcontainers"
	"likectl/tiers"
	"likectl/tiers/tiertest"
)

// These tests run the real binary.

func TestPostgresOverHTTP(t *testing.T) {
	urls, tokens := processes(t, containers.SharedPostgres(t).Database(t), 4)
	tiertest.HTTP(t, tiertest.HTTPTarget{BaseURLs: urls, UserToken: tokens.user(t), ServiceToken: tokens.mint(t, 1, auth.Service)})
}

func TestEmbeddedOverHTTP(t *testing.T) {
	data := t.TempDir()
	tokens := authority(t, data)
	server := tiertest.StartServer(t, tiertest.Build(t), nil, "--data", data)
	tiertest.HTTP(t, tiertest.HTTPTarget{BaseURLs: []string{server.URL}, UserToken: tokens.user(t), ServiceToken: tokens.mint(t, 1, auth.Service)})
}

// registered is the environment of a server where only registered items exist.
const registered = "LIKECTL_ITEMS_REGISTERED=true"

func TestPostgresUnseen(t *testing.T) {
	urls, tokens := processes(t, containers.SharedPostgres(t).Database(t), 1, registered)
	tiertest.Unseen(t, tiertest.HTTPTarget{BaseURLs: urls, UserToken: tokens.user(t), ServiceToken: tokens.mint(t, 1, auth.Service)})
}

func TestEmbeddedUnseen(t *testing.T) {
	data := t.TempDir()
	tokens := authority(t, data)
	server := tiertest.StartServer(t, tiertest.Build(t), []string{registered}, "--data", data)
	tiertest.Unseen(t, tiertest.HTTPTarget{BaseURLs: []string{server.URL}, UserToken: tokens.user(t), ServiceToken: tokens.mint(t, 1, auth.Service)})
}

// TestFirstLikesThroughTwoProcesses lets one user like an item through two
// processes at the same moment, 10,000 times.
func TestFirstLikesThroughTwoProcesses(t *testing.T) {
	dsn := containers.SharedPostgres(t).Database(t)
	urls, tokens := processes(t, dsn, 2)
	token := tokens.mint(t, 1, auth.Service)
	waits := watchLocks(t, dsn)
	client := newClient(t)
	tiertest.FirstLikes(t, remote{client: client, url: urls[0], token: token}, remote{client: client, url: urls[1], token: token}, 10_000, waits)
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// processes starts likectl on a Postgres database, with more of an environment if any,
// and returns their base URLs.
func processes(t *testing.T, dsn string, n int, more ...string) ([]string, minter) {
	t.Helper()
	data, bin := t.TempDir(), tiertest.Build(t)
	tokens := authority(t, data)
	env := append([]string{"LIKECTL_POSTGRES_DSN=" + dsn}, more...)
	tiertest.Likectl(t, bin, env, "schema", "up", "--data", data)
	urls := make([]string, n)
	for i := range urls {
		urls[i] = tiertest.StartServer(t, bin, env, "--tier", "1", "--data", data).URL
	}
	return urls, tokens
}

// minter makes tokens that the processes on one data folder accept.
type minter struct{ *auth.Authority }

func authority(t *testing.T, data string) minter {
	t.Helper()
	secret, err := datadir.Secret(data)
	require.NoError(t, err)
	a, err := auth.New(auth.Default(secret))
	require.NoError(t, err)
	return minter{a}
}

func (m minter) mint(t *testing.T, u likes.UserID, scope auth.Scope) string {
	t.Helper()
	token, err := m.Mint(u, scope, time.Hour)
	require.NoError(t, err)
	return token
}

func (m minter) user(t *testing.T) func(likes.UserID) string {
	return func(u likes.UserID) string { return m.mint(t, u, auth.User) }
}

// remote is as much of a service as FirstLikes asks, in another process.
type remote struct {
	likes.Service
	client     *http.Client
	url, token string
}

func (r remote) Contract() likes.Contract { return tiers.Contract(tiers.Postgres) }

func (r remote) Apply(ctx context.Context, ms []likes.Mutation) []likes.Result {
	out := make([]likes.Result, len(ms))
	for i, m := range ms {
		var got struct {
			Changed bool  `json:"changed"`
			Count   int64 `json:"count"`
		}
		body := fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"post"}`, m.Edge.User, m.Edge.Item.ID)
		out[i].Err = r.call(ctx, "/v1/like", body, &got)
		out[i].Count.N, out[i].Outcome = got.Count, likes.Unchanged
		if got.Changed {
			out[i].Outcome = likes.Changed
		}
	}
	return out
}

func (r remote) Counts(ctx context.Context, _ likes.Counter, items []likes.Item, _ []likes.Version) []likes.Count {
	out := make([]likes.Count, len(items))
	for i, item := range items {
		var got struct {
			Counts map[string]map[string]int64 `json:"counts"`
		}
		id := strconv.FormatInt(int64(item.ID), 10)
		out[i].Err = r.call(ctx, "/v1/counts", `{"items":[{"item_id":"`+id+`","item_type":"post"}]}`, &got)
		out[i].N = got.Counts["post:"+id]["likes"]
	}
	return out
}

func (r remote) call(ctx context.Context, path, body string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// watchLocks looks for transactions that wait for a row another one has locked,
// all the time, and returns how many different waits it has seen: fewer than
// there were.
func watchLocks(t *testing.T, dsn string) func(context.Context) (int, error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	var mu sync.Mutex
	seen := map[string]bool{}
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			// The waiter, and the transaction that it waits for.
			rows, err := conn.Query(ctx, "select pid || ' ' || transactionid from pg_locks where not granted and locktype = 'transactionid'")
			if err != nil {
				break
			}
			waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				break
			}
			mu.Lock()
			for _, w := range waiting {
				seen[w] = true
			}
			mu.Unlock()
		}
		done <- conn.Close(context.WithoutCancel(ctx))
	}()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	return func(context.Context) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return len(seen), ctx.Err()
	}
}
