package httpapi

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/abuse"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
)

// The whole mapping, written down a second time.
var wantTable = []struct {
	kind   error
	status int
	code   string
	retry  bool
}{
	{likes.ErrInvalid, 400, "invalid", false},
	{likes.ErrNotFound, 404, "not_found", false},
	{likes.ErrErased, 403, "erased", false},
	{likes.ErrOverloaded, 503, "overloaded", true},
	{likes.ErrUnavailable, 503, "unavailable", true},
	{likes.ErrUncertain, 503, "uncertain", true},
	{likes.ErrFenced, 503, "fenced", true},
	{likes.ErrNotYet, 503, "version_not_reached", true},
	{auth.ErrNoToken, 401, "unauthorized", false},
	{auth.ErrExpired, 401, "token_expired", false},
	{auth.ErrToken, 401, "token_invalid", false},
	{errScope, 403, "forbidden", false},
	{abuse.ErrRefused, 403, "refused", false},
	{errRoute, 404, "no_such_route", false},
	{errMethod, 405, "method_not_allowed", false},
	{errSlow, 408, "body_timeout", false},
	{errTooLarge, 413, "body_too_large", false},
	{errMedia, 415, "unsupported_media_type", false},
	{errRate, 429, "rate_limited", true},
	{errPanic, 500, "internal", false},
	{io.ErrUnexpectedEOF, 500, "internal", false}, // an error that nobody knows
	{context.DeadlineExceeded, 503, "timeout", true},
	{context.Canceled, 503, "timeout", true},
}

func TestTable_SaysOfEveryKindWhatIsWrittenHere(t *testing.T) {
	seen := map[error]bool{}
	for _, w := range wantTable {
		for _, err := range []error{w.kind, fmt.Errorf("wrapped: %w", w.kind), likes.Errorf(w.kind, "secret cause")} {
			r := find(err)
			require.Equal(t, w.status, r.status, "%v", err)
			require.Equal(t, w.code, r.code, "%v", err)
			require.Equal(t, w.retry, r.retry > 0, "%v", err)
			require.NotEmpty(t, r.title)
			if r.own {
				require.Less(t, r.status, 500, "%s would show a client our own troubles", r.code)
			} else {
				require.NotContains(t, r.detailOf(err), "secret cause")
				require.NotEmpty(t, r.detailOf(err))
			}
		}
		seen[w.kind] = true
	}
	for _, r := range table {
		require.True(t, seen[r.kind], "the kind %v of the table has no line in this test", r.kind)
	}
}

// A kind added to the domain without a row here would become a 500.
func TestTable_KnowsEveryKindOfTheDomain(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../likes/errors.go", nil, 0)
	require.NoError(t, err)
	known := map[string]error{
		"ErrInvalid": likes.ErrInvalid, "ErrNotFound": likes.ErrNotFound, "ErrErased": likes.ErrErased, "ErrOverloaded": likes.ErrOverloaded,
		"ErrUnavailable": likes.ErrUnavailable, "ErrUncertain": likes.ErrUncertain, "ErrFenced": likes.ErrFenced, "ErrNotYet": likes.ErrNotYet,
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, name := range spec.Names {
			if strings.HasPrefix(name.Name, "Err") {
				require.Contains(t, known, name.Name, "a new kind of error needs a row in the table")
				require.NotSame(t, &internal, find(known[name.Name]), name.Name)
				found++
			}
		}
		return true
	})
	require.Equal(t, len(known), found)
}

// "Nothing was applied" is a promise; an error that is uncertain as well must
// not make it.
func TestTable_UncertainWinsOverEverythingElse(t *testing.T) {
	for _, w := range wantTable {
		require.Equal(t, "uncertain", find(errors.Join(w.kind, likes.ErrUncertain)).code, "%v", w.kind)
	}
}

func TestProblem_IsWhatTheTableSays(t *testing.T) {
	for _, w := range wantTable {
		f := newFixture(t)
		f.undocumented = true
		f.service.fault = func(int) error { return fmt.Errorf("dial 10.0.0.7 password=hunter2: %w", w.kind) }
		a := f.do(f.request("DELETE", "/v1/like", `{"item_id":"1","item_type":"post"}`, f.token(1, auth.User)))
		require.Equal(t, w.status, a.status)
		require.Equal(t, w.code, a.body["error"])
		require.Equal(t, "urn:likectl:error:"+w.code, a.body["type"])
		require.Empty(t, a.header.Get("Like-Version"))
		_, inBody := a.body["retry_after"]
		require.Equal(t, w.retry, inBody)
		require.Equal(t, w.retry, a.header.Get("Retry-After") != "")
		require.Equal(t, w.status == http.StatusUnauthorized, a.header.Get("Www-Authenticate") != "")
		if w.status >= 500 {
			require.NotContains(t, a.raw, "hunter2")
			require.Contains(t, f.log.String(), "hunter2")
			require.Contains(t, f.log.String(), a.header.Get("X-Request-Id"))
		}
	}
}
