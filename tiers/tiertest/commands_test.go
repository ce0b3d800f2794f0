package tiertest_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/likes"
	"likectl/tiers/tiertest"
)

// The rows of the table that are about commands, with the real binary.

// TestImportedEdgesAreCountedAtOnce imports into a folder that is then served.
func TestImportedEdgesAreCountedAtOnce(t *testing.T) {
	tiertest.Case(t, 79)
	bin, data := tiertest.Build(t), t.TempDir()
	var csv strings.Builder
	csv.WriteString("user_id,item_type,item_id,action,liked_at\n")
	for user := range 1500 {
		fmt.Fprintf(&csv, "%d,post,7,like,2024-05-06T07:08:09Z\n", user+1)
	}
	csv.WriteString("1,post,7,unlike,2024-06-01T00:00:00Z\n1,post,7,like,2024-05-31T00:00:00Z\n2,post,8,,\n")
	file := filepath.Join(t.TempDir(), "likes.csv")
	require.NoError(t, os.WriteFile(file, []byte(csv.String()), 0o600))
	tiertest.Likectl(t, bin, nil, "import", "--data", data, "--create", file)
	tiertest.Likectl(t, bin, nil, "import", "--data", data, file) // again: nothing changes

	s := tiertest.StartServer(t, bin, nil, "--data", data)
	for item, want := range map[int]string{7: `{"likes":1499}`, 8: `{"likes":1}`, 9: `{"likes":0}`} {
		resp, err := http.Get(fmt.Sprintf("%s/v1/count?item_id=%d&item_type=post", s.URL, item))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, string(body), `"counts":`+want)
	}
}

// TestLimitsOfNothingAreRefused starts the server with every number of the
// configuration at 0 and below: each time it must refuse with the exit code of
// wrong usage and name the key, before it opens anything.
func TestLimitsOfNothingAreRefused(t *testing.T) {
	tiertest.Case(t, 80)
	bin := tiertest.Build(t)
	keys := numbers(reflect.TypeFor[config.Config](), "")
	require.Contains(t, keys, "write.max_queue")
	require.Contains(t, keys, "http.max_body")
	for _, key := range keys {
		for _, value := range []string{"0", "-1"} {
			if key == "auth.leeway" && value == "0" {
				continue // no tolerance at all is a choice
			}
			data := filepath.Join(t.TempDir(), "data")
			cmd := exec.CommandContext(t.Context(), bin, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
			cmd.Env = append(os.Environ(), "LIKECTL_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s = %s: %s", key, value, out)
			require.Equal(t, 2, exit.ExitCode(), "%s = %s: %s", key, value, out)
			require.Contains(t, string(out), key)
			require.NoDirExists(t, data, "%s = %s was refused only after the folder was made", key, value)
		}
	}
}

// numbers returns the keys of all numbers and times in the configuration.
func numbers(s reflect.Type, prefix string) []string {
	var keys []string
	for i := range s.NumField() {
		f := s.Field(i)
		key := prefix + f.Tag.Get("mapstructure")
		switch kind := f.Type.Kind(); {
		case kind == reflect.Struct:
			keys = append(keys, numbers(f.Type, key+".")...)
		case f.Type.ConvertibleTo(reflect.TypeFor[int64]()) && kind != reflect.String:
			keys = append(keys, key)
		}
	}
	return keys
}

// TestHTTPEmbedded runs the suite of the API against the real server.
func TestHTTPEmbedded(t *testing.T) {
	data := t.TempDir()
	dir, err := datadir.Open(data)
	require.NoError(t, err)
	authority, err := auth.New(auth.Default(dir.Secret()))
	require.NoError(t, err)
	require.NoError(t, dir.Close())
	mint := func(u likes.UserID, scope auth.Scope) string {
		token, err := authority.Mint(u, scope, time.Hour)
		require.NoError(t, err)
		return token
	}
	s := tiertest.StartServer(t, tiertest.Build(t), nil, "--data", data)
	tiertest.HTTP(t, tiertest.HTTPTarget{
		BaseURLs:     []string{s.URL},
		UserToken:    func(u likes.UserID) string { return mint(u, auth.User) },
		ServiceToken: mint(1, auth.Service),
	})
}
