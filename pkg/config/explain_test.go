package config

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/likes"
)

func setting(t *testing.T, e *Explained, key string) Setting {
	t.Helper()
	for _, s := range e.Settings {
		if s.Key == key {
			return s
		}
	}
	t.Fatalf("no setting %s", key)
	return Setting{}
}

func TestEveryValueHasItsOrigin(t *testing.T) {
	t.Setenv("LIKECTL_WRITE_LANES", "4")
	t.Setenv("LIKECTL_POSTGRES_DSN", "postgres://u:hunter2@h/d")
	t.Setenv("LIKECTL_LISTEN", "") // as good as not set
	file := write(t, "listen: file:1\nwrite:\n  lanes: 3\n  max_batch: 512\nitems:\n  types: {video: 9, post: 2}\n")
	e, err := Explain(file, map[string]any{"data": "d"})
	require.NoError(t, err)
	require.NoError(t, e.Err())
	for key, want := range map[string][2]string{
		"data":            {"d", "flag"},
		"write.lanes":     {"4", "environment LIKECTL_WRITE_LANES"},
		"postgres.dsn":    {"[redacted]", "environment LIKECTL_POSTGRES_DSN"},
		"write.max_batch": {"512", "file"}, // although it is the default
		"write.max_queue": {"8192", "default"},
		"write.timeout":   {"5s", "default"},
		"listen":          {"file:1", "file"},
		"items.types":     {"post=2 video=9", "file"},
	} {
		s := setting(t, e, key)
		require.Equal(t, want, [2]string{s.Text(), s.Origin}, key)
		require.NotEmpty(t, s.Doc, key)
	}
	text, err := json.Marshal(e.Settings)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	require.Contains(t, string(text), `"value":"5s"`)
	got, err := Load(file, map[string]any{"data": "d"})
	require.NoError(t, err)
	require.Equal(t, got, e.Config)
}

func TestAllProblemsAreNamedAtOnce(t *testing.T) {
	t.Setenv("LIKECTL_HTTP_MAX_BODY", "plenty")
	t.Setenv("LIKECTL_WRITE_LANE", "5")
	e, err := Explain(write(t, `
wirte:
  lanes: 2
write:
  lanse: 2
  lanes: many
  max_batch: 0
  timeout: soon
tier: 6
log: loud
postgres:
  dsn: [a]
items:
  types: {post: 70000}
`), nil)
	require.NoError(t, err)
	var keys []string
	for _, p := range e.Problems {
		keys = append(keys, p.Key)
		require.NotEmpty(t, p.Text)
	}
	t.Log(e.Err())
	require.ElementsMatch(t, []string{
		"wirte.lanes", "write.lanse", "write.lanes", "write.max_batch", "write.timeout", "tier", "log", "postgres.dsn", "items.types",
		"http.max_body", "LIKECTL_WRITE_LANE",
	}, keys)
	require.ErrorIs(t, e.Err(), likes.ErrInvalid)
}
