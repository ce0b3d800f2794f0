package tier1_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	containers "likectl/testcontainers"
	"likectl/tiers/tiertest"
)

// A server whose store answers reads and takes no writes says so, and says when it
// does again, whether or not anybody writes meanwhile.

func TestReadyz_EmbeddedOnADiskThatIsFull(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	tokens := authority(t, data)
	server := tiertest.StartServer(t, tiertest.Build(t), nil, "--data", data)
	knowsWrites(t, "sqlite", server, tokens.mint(t, 1, auth.User), func(full bool) {
		limit := syscall.Rlimit{Cur: ^uint64(0), Max: ^uint64(0)}
		if full { // no file grows any more
			wal, err := os.Stat(filepath.Join(data, "likes.db-wal"))
			require.NoError(t, err)
			limit.Cur = uint64(wal.Size())
		}
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(server.PID()), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		require.Zero(t, errno)
	})
}

func TestReadyz_PostgresThatIsReadOnly(t *testing.T) {
	t.Parallel()
	dsn := containers.SharedPostgres(t).Database(t)
	data, bin := t.TempDir(), tiertest.Build(t)
	tokens := authority(t, data)
	env := []string{"LIKECTL_POSTGRES_DSN=" + dsn}
	tiertest.Likectl(t, bin, env, "schema", "up", "--data", data)
	server := tiertest.StartServer(t, bin, env, "--tier", "1", "--data", data)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	knowsWrites(t, "postgres", server, tokens.mint(t, 1, auth.User), func(readOnly bool) {
		value := "off"
		if readOnly {
			value = "on"
		}
		for _, statement := range []string{
			"set default_transaction_read_only = off", // for this session
			"do $$ begin execute format('alter database %I set default_transaction_read_only = " + value + "', current_database()); end $$",
			"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
		} {
			_, err := conn.Exec(t.Context(), statement)
			require.NoError(t, err)
		}
	})
}

// knowsWrites runs a server through a time in which its store takes no writes.
func knowsWrites(t *testing.T, store string, server *tiertest.Server, token string, refuse func(bool)) {
	client := newClient(t)
	ask := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, string(text)
	}
	like := func() int {
		code, _ := ask(http.MethodPost, "/v1/like", `{"item_id":"1","item_type":"post"}`)
		return code
	}
	states := func(path string) (code int, ok map[string]bool) {
		code, text := ask(http.MethodGet, path, "")
		var got struct {
			Dependencies map[string]struct{ OK bool }
		}
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		ok = map[string]bool{}
		for name, d := range got.Dependencies {
			ok[name] = d.OK
		}
		return code, ok
	}
	away := func() bool {
		code, ok := states("/readyz")
		return code == http.StatusServiceUnavailable && ok[store] && !ok["writes"]
	}
	require.Equal(t, http.StatusOK, like())
	code, ok := states("/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, map[string]bool{store: true, "writes": true}, ok)

	refuse(true)
	require.Equal(t, http.StatusServiceUnavailable, like())
	require.Eventually(t, away, 5*time.Second, 50*time.Millisecond)
	require.Never(t, func() bool { return !away() }, 4*time.Second, 250*time.Millisecond, "nor does it forget while nobody writes")
	code, ok = states("/readyz?exclude=writes")
	require.Equal(t, http.StatusOK, code, "who only reads may go on")
	require.False(t, ok["writes"])
	code, _ = ask(http.MethodGet, "/v1/count?item_id=1&item_type=post", "")
	require.Equal(t, http.StatusOK, code)

	refuse(false)
	require.Eventually(t, func() bool { code, _ := states("/readyz"); return code == http.StatusOK }, 10*time.Second, 50*time.Millisecond)
	require.Equal(t, http.StatusOK, like())

	if store == "sqlite" {
		return // the rest is the same
	}
	refuse(true) // with nobody who writes
	require.Eventually(t, away, 20*time.Second, 250*time.Millisecond)
	refuse(false)
}
