package tier1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	containers "likectl/testcontainers"
	"likectl/tiers/tiertest"
)

// Erasing people, with the real binary over real stores.

// erased is an id that nothing else in a log looks like.
const erased = 7_431_765_002

// product is a served store, seen from outside.
type product struct {
	t       *testing.T
	bin     string
	env     []string
	store   []string // flags by which commands find it
	servers []*tiertest.Server
	client  *http.Client
	token   string
}

// onPostgresServers starts processes over a new Postgres database.
func onPostgresServers(t *testing.T, n int) (*product, string) {
	t.Helper()
	dsn, data := containers.SharedPostgres(t).Database(t), t.TempDir()
	p := &product{t: t, bin: tiertest.Build(t), client: newClient(t), store: []string{"--data", data}}
	p.token = authority(t, data).mint(t, 1, auth.Service)
	p.env = []string{"LIKECTL_POSTGRES_DSN=" + dsn, "LIKECTL_LOG_LEVEL=debug"}
	p.likectl("schema", "up")
	for range n {
		p.servers = append(p.servers, tiertest.StartServer(t, p.bin, p.env, "--tier", "1", "--data", data))
	}
	return p, dsn
}

// onEmbeddedServer starts the process over a new data folder.
func onEmbeddedServer(t *testing.T) *product {
	t.Helper()
	data := t.TempDir()
	p := &product{t: t, bin: tiertest.Build(t), client: newClient(t), env: []string{"LIKECTL_LOG_LEVEL=debug"}}
	p.token = authority(t, data).mint(t, 1, auth.Service)
	s := tiertest.StartServer(t, p.bin, p.env, "--data", data)
	p.servers, p.store = []*tiertest.Server{s}, []string{"--data", data, "--admin", s.AdminURL}
	return p
}

func (p *product) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), p.bin, append(args, p.store...)...)
	cmd.Env = append(os.Environ(), p.env...)
	return cmd
}

// likectl runs a command that succeeds.
func (p *product) likectl(args ...string) string {
	p.t.Helper()
	return tiertest.Likectl(p.t, p.bin, p.env, append(args, p.store...)...)
}

// call asks the API of one of the processes for the service: METHOD /path.
func (p *product) call(ctx context.Context, server int, route, body string) (int, string, error) {
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(ctx, method, p.servers[server%len(p.servers)].URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func (p *product) must(route, body string) string {
	p.t.Helper()
	status, text, err := p.call(p.t.Context(), rand.Int(), route, body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, status, "%s %s: %s", route, body, text)
	return text
}

func edgeBody(user, item int) string {
	return fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"post"}`, user, item)
}

// counts returns the likes of items from 1 on.
func (p *product) counts(items int) []int {
	p.t.Helper()
	out := make([]int, 0, items)
	for from := 0; from < items; from += 100 {
		var asked []string
		for i := from; i < min(from+100, items); i++ {
			asked = append(asked, fmt.Sprintf(`{"item_id":"%d","item_type":"post"}`, i+1))
		}
		var got struct {
			Counts map[string]map[string]int `json:"counts"`
		}
		text := p.must("POST /v1/counts", `{"items":[`+strings.Join(asked, ",")+`]}`)
		require.NoError(p.t, json.Unmarshal([]byte(text), &got))
		for i := from; i < min(from+100, items); i++ {
			out = append(out, got.Counts["post:"+strconv.Itoa(i+1)]["likes"])
		}
	}
	return out
}

// importLines imports likes; line writes those of a number.
func (p *product) importLines(n int, line func(w io.Writer, i int)) string {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "likes.csv")
	f, err := os.Create(file)
	require.NoError(p.t, err)
	_, err = io.WriteString(f, "user_id,item_type,item_id,action,liked_at\n")
	require.NoError(p.t, err)
	for i := range n {
		line(f, i)
	}
	require.NoError(p.t, f.Close())
	return p.likectl("import", "--output", "json", file)
}

// consistent requires that all counts equal the likes and that the erased user is gone.
func (p *product) consistent() {
	p.t.Helper()
	user := strconv.Itoa(erased)
	p.likectl("reconcile", "--dry-run")
	p.likectl("erase", "verify", "--user", user)
	require.Equal(p.t, "user_id,item_type,item_id,liked_at,counter", p.likectl("export", "--user", user))
	require.Contains(p.t, p.must("POST /v1/has_liked", fmt.Sprintf(`{"user_id":"%s","item_type":"post","item_ids":["1"]}`, user)), `"1":false`)
	for _, s := range p.servers {
		log, err := s.Log()
		require.NoError(p.t, err)
		require.NotEmpty(p.t, log)
		require.NotContains(p.t, log, user)
	}
}

// TestEraseAUserWithManyLikesUnderTraffic erases a user whose likes are as many as
// those of all others, while others like and unlike the same items and the user
// does not stop; the command is killed half-way and run again. LIKECTL_TEST_ERASE says
// how many likes (100,000; the table's million in the nightly run).
func TestEraseAUserWithManyLikesUnderTraffic(t *testing.T) {
	likes := 100_000
	if n, err := strconv.Atoi(os.Getenv("LIKECTL_TEST_ERASE")); err == nil && n > 0 {
		likes = n
	}
	p, dsn := onPostgresServers(t, 1)
	tiertest.Case(t, 55)
	const others, back = 100, 50 // back: likes that were taken back
	p.importLines(likes, func(w io.Writer, i int) {
		_, _ = fmt.Fprintf(w, "%d,post,%d,like,2024-05-06T07:08:09Z\n%d,post,%d,like,2024-05-06T07:08:09Z\n", erased, i+1, 1000+i%others, i+1)
		if i < back {
			_, _ = fmt.Fprintf(w, "%d,post,%d,unlike,2024-05-07T07:08:09Z\n", erased, likes+i+1)
		}
	})
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	left := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from edges where user_id = $1", erased).Scan(&n))
		return n
	}
	require.Equal(t, likes+back, left())

	traffic := startTraffic(p, likes)
	defer traffic.stop()
	traffic.measure(t, "without an erasure", 10_000)
	var there struct{ Edges, Tombstones int }
	require.NoError(t, json.Unmarshal([]byte(p.likectl("erase", "--user", strconv.Itoa(erased), "--dry-run", "--output", "json")), &there))
	require.GreaterOrEqual(t, there.Edges, likes, "and those of meanwhile")
	require.Equal(t, back, there.Tombstones)

	receipt := filepath.Join(t.TempDir(), "receipt.json")
	command := []string{"erase", "--user", strconv.Itoa(erased), "--receipt", receipt, "--output", "json"}
	cmd := p.command(command...)
	began := time.Now()
	require.NoError(t, cmd.Start())
	traffic.begin()
	require.Eventually(t, func() bool {
		var gone int
		require.NoError(t, conn.QueryRow(t.Context(), "select coalesce(sum(edges), 0) from erasures").Scan(&gone))
		return gone > likes/2
	}, 10*time.Minute, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "it was killed")
	half := left()
	require.Positive(t, half)
	require.NoFileExists(t, receipt)
	require.Contains(t, p.likectl("erase", "status"), strconv.Itoa(erased))

	first := p.likectl(command...)
	traffic.report(t, "with it")
	t.Logf("%d likes erased in %v, %d of them after the kill", likes, time.Since(began).Round(time.Millisecond), half)
	require.Zero(t, left())
	require.Equal(t, first, p.likectl(command...), "run again")
	require.Contains(t, p.likectl("erase", "verify", "--user", strconv.Itoa(erased), "--receipt", receipt), "the receipt is good")
	traffic.stop()
	require.Zero(t, traffic.failed.Load(), "others' calls were refused: %v", traffic.first.Load())
	require.Positive(t, traffic.refused.Load(), "the user's calls got 403 erased")
	require.Zero(t, traffic.late.Load(), "a like of the user was taken after one had been refused")
	p.consistent()
	var wrong int
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from (select item_type, item_id, counter, count(*) filter (where liked) as n from edges group by 1, 2, 3) e
		full join counters c using (item_type, item_id, counter) where coalesce(e.n, 0) <> coalesce(c.count, 0)`).Scan(&wrong))
	require.Zero(t, wrong)

	// From a file, too, nothing of the user comes back.
	out := p.importLines(1, func(w io.Writer, _ int) { _, _ = fmt.Fprintf(w, "%d,post,1,like,2030-05-06T07:08:09Z\n", erased) })
	require.Contains(t, out, `"changed":0,"unchanged":0,"superseded":1`)
	p.consistent()
}

// traffic are others who like and unlike, and the user who is erased.
type traffic struct {
	p      *product
	items  int
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	took   []time.Duration
	failed atomic.Int64
	first  atomic.Value // what the first one that failed was told

	refused, late atomic.Int64
}

func startTraffic(p *product, items int) *traffic {
	ctx, cancel := context.WithCancel(p.t.Context())
	tr := &traffic{p: p, items: items, cancel: cancel}
	const clients = 8
	for range clients {
		tr.done.Go(func() { tr.others(ctx) })
	}
	tr.done.Go(func() { tr.user(ctx) })
	return tr
}

func (tr *traffic) stop() { tr.cancel(); tr.done.Wait() }

// others like and unlike items that the erased user likes, one call at a time.
func (tr *traffic) others(ctx context.Context) {
	for ctx.Err() == nil {
		route := "POST /v1/like"
		if rand.IntN(2) == 0 {
			route = "DELETE /v1/like"
		}
		began := time.Now()
		status, text, err := tr.p.call(ctx, 0, route, edgeBody(2000+rand.IntN(500), 1+rand.IntN(tr.items)))
		took := time.Since(began)
		if ctx.Err() != nil {
			return
		}
		if err != nil || status != http.StatusOK {
			tr.failed.Add(1)
			tr.first.CompareAndSwap(nil, fmt.Sprint(status, text, err))
		}
		tr.mu.Lock()
		tr.took = append(tr.took, took)
		tr.mu.Unlock()
	}
}

// user likes new items until told that there is no such user, and then goes on.
func (tr *traffic) user(ctx context.Context) {
	for item := 10_000_000; ctx.Err() == nil; item++ {
		switch status, text, _ := tr.p.call(ctx, 0, "POST /v1/like", edgeBody(erased, item)); {
		case status == http.StatusOK && tr.refused.Load() > 0:
			tr.late.Add(1)
		case status == http.StatusForbidden && strings.Contains(text, `"error":"erased"`):
			tr.refused.Add(1)
		}
	}
}

func (tr *traffic) begin() {
	tr.mu.Lock()
	tr.took = tr.took[:0]
	tr.mu.Unlock()
}

// measure reports so many calls.
func (tr *traffic) measure(t *testing.T, what string, calls int) {
	t.Helper()
	tr.begin()
	require.Eventually(t, func() bool { tr.mu.Lock(); defer tr.mu.Unlock(); return len(tr.took) >= calls }, time.Minute, time.Millisecond)
	tr.report(t, what)
}

func (tr *traffic) report(t *testing.T, what string) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	slices.Sort(tr.took)
	at := func(q float64) time.Duration {
		return tr.took[int(q*float64(len(tr.took)-1))].Round(10 * time.Microsecond)
	}
	t.Logf("others %s: %d calls, p50 %v, p99 %v, p99.9 %v, longest %v", what, len(tr.took), at(0.5), at(0.99), at(0.999), at(1))
}

// TestEraseLowersEveryCountByOne erases a user of a thousand likes; in no view is
// the user seen again.
func TestEraseLowersEveryCountByOne(t *testing.T) {
	tiertest.Case(t, 88)
	p := onEmbeddedServer(t)
	const items = 1000
	p.importLines(items, func(w io.Writer, i int) {
		for _, user := range []int{erased, 11, 12} {
			_, _ = fmt.Fprintf(w, "%d,post,%d,like,2024-05-06T07:08:09Z\n", user, i+1)
		}
	})
	require.Equal(t, slices.Repeat([]int{3}, items), p.counts(items))
	first := p.likectl("erase", "--user", strconv.Itoa(erased), "--output", "json")
	require.Contains(t, first, `"edges": 1000`)
	for range 2 {
		require.Equal(t, slices.Repeat([]int{2}, items), p.counts(items))
		p.consistent()
		require.NotContains(t, p.likectl("export"), strconv.Itoa(erased))
		text := p.must("GET /v1/likers?item_id=1&item_type=post", "")
		require.Contains(t, text, `"12"`)
		require.NotContains(t, text, strconv.Itoa(erased))
		require.Equal(t, first, p.likectl("erase", "--user", strconv.Itoa(erased), "--output", "json"), "run again")
	}
	status, text, err := p.call(t.Context(), 0, "POST /v1/like", edgeBody(erased, 1))
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, `"erased"`)
}

// TestPurgeOfMostLikersOfAnItem purges a list; the item stays as good as new.
func TestPurgeOfMostLikersOfAnItem(t *testing.T) {
	tiertest.Case(t, 29)
	p := onEmbeddedServer(t)
	const all, fakes = 2500, 2000
	p.importLines(all, func(w io.Writer, i int) { _, _ = fmt.Fprintf(w, "%d,post,1,like,2024-05-06T07:08:09Z\n", erased+i) })
	require.Equal(t, []int{all}, p.counts(1))
	var list strings.Builder
	for i := range fakes {
		_, _ = fmt.Fprintf(&list, "%d\n", erased+i)
	}
	file := filepath.Join(t.TempDir(), "fakes.txt")
	require.NoError(t, os.WriteFile(file, []byte(list.String()), 0o600))
	for _, want := range []string{`"erased":2000,"already_erased":0,"edges":2000`, `"erased":0,"already_erased":2000,"edges":0`} {
		require.Contains(t, p.likectl("purge", "--users", file, "--output", "json"), want)
		require.Equal(t, []int{all - fakes}, p.counts(1))
	}
	require.Contains(t, p.must("POST /v1/like", edgeBody(3, 1)), `"count":501`)
	p.consistent()
}

// TestEveryPathThatTakesALikeBackCountsTheSame: a call, a file, an erasure, a purge
// and a merge into somebody who likes it already.
func TestEveryPathThatTakesALikeBackCountsTheSame(t *testing.T) {
	tiertest.Case(t, 34)
	p := onEmbeddedServer(t)
	const items, others = 5, 4
	p.importLines(items, func(w io.Writer, i int) {
		for user := range others {
			_, _ = fmt.Fprintf(w, "%d,post,%d,like,2024-05-06T07:08:09Z\n", 10+user, i+1)
		}
		_, _ = fmt.Fprintf(w, "%d,post,%d,like,2024-05-06T07:08:09Z\n", erased+i, i+1)
	})
	require.Equal(t, slices.Repeat([]int{others + 1}, items), p.counts(items))
	p.must("DELETE /v1/like", edgeBody(erased, 1))
	p.importLines(1, func(w io.Writer, _ int) { _, _ = fmt.Fprintf(w, "%d,post,2,unlike,2024-05-07T07:08:09Z\n", erased+1) })
	p.likectl("erase", "--user", strconv.Itoa(erased+2))
	file := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(file, []byte(strconv.Itoa(erased+3)), 0o600))
	p.likectl("purge", "--users", file)
	p.likectl("merge-users", "--from", strconv.Itoa(erased+4), "--into", "10")
	require.Equal(t, slices.Repeat([]int{others}, items), p.counts(items))
	p.likectl("reconcile", "--dry-run")
}

// TestLikesInOppositeOrdersWhileUsersAreErased: rows are locked in one order by
// everybody, so that nobody is told of a deadlock and no like is lost.
func TestLikesInOppositeOrdersWhileUsersAreErased(t *testing.T) {
	p, dsn := onPostgresServers(t, 2)
	tiertest.Case(t, 52)
	const users, items, gone = 26, 150, 60
	p.importLines(items, func(w io.Writer, i int) {
		for user := range gone {
			_, _ = fmt.Fprintf(w, "%d,post,%d,like,2024-05-06T07:08:09Z\n", erased+user, i+1)
		}
	})
	var list strings.Builder
	for i := range gone {
		_, _ = fmt.Fprintf(&list, "%d\n", erased+i)
	}
	file := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(file, []byte(list.String()), 0o600))

	var likers sync.WaitGroup
	var failed atomic.Value
	for user := range users {
		likers.Go(func() {
			order := rand.Perm(items)
			if user%2 == 0 {
				slices.Sort(order)
			}
			if user%4 == 0 {
				slices.Reverse(order)
			}
			for _, item := range order {
				status, text, err := p.call(t.Context(), user, "POST /v1/like", edgeBody(100+user, item+1))
				if err != nil || status != http.StatusOK {
					failed.CompareAndSwap(nil, fmt.Sprint(status, text, err))
				}
			}
		})
	}
	// Two at once, in opposite orders of the users.
	backwards := p.command("erase", "--user", strconv.Itoa(erased+gone-1))
	require.NoError(t, backwards.Start())
	p.likectl("purge", "--users", file, "--max-rate", "10000000")
	require.NoError(t, backwards.Wait())
	likers.Wait()
	require.Nil(t, failed.Load())
	require.Equal(t, slices.Repeat([]int{users}, items), p.counts(items))
	p.consistent()

	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var deadlocks int
	require.NoError(t, conn.QueryRow(t.Context(), "select deadlocks from pg_stat_database where datname = current_database()").Scan(&deadlocks))
	t.Logf("%d deadlocks were seen by Postgres", deadlocks)
}

// TestErasingOnADatabaseNeedsTheSecretOfItsInstances: a receipt that another
// secret signed would never be found good.
func TestErasingOnADatabaseNeedsTheSecretOfItsInstances(t *testing.T) {
	p, _ := onPostgresServers(t, 1)
	p.must("POST /v1/like", edgeBody(erased, 1))
	none, other := filepath.Join(t.TempDir(), "none"), t.TempDir()
	authority(t, other)
	for data, want := range map[string]string{none: "no secret in " + none, other: "name the data folder of an instance with --data"} {
		p.store = []string{"--data", data}
		for _, args := range [][]string{{"erase", "--user", strconv.Itoa(erased)}, {"purge", "--users", os.DevNull}} {
			out, err := p.command(args...).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 2, exit.ExitCode(), "%s", out)
			require.Contains(t, string(out), want)
			require.Contains(t, string(out), "nothing was changed")
		}
	}
	require.NoDirExists(t, none)
	require.Equal(t, []int{1}, p.counts(1))
}
