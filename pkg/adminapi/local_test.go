package adminapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/adminapi"
)

func TestOnlyNamesOfThisMachineReachTheAdminListener(t *testing.T) {
	reached := 0
	h := adminapi.LocalOnly(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	for host, status := range map[string]int{
		"127.0.0.1:9090": 200, "localhost:9090": 200, "localhost": 200, "[::1]:9090": 200,
		"evil.example": 403, "evil.example:9090": 403, "localhost.evil.example": 403, "10.0.0.1:9090": 403, "": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		require.Equal(t, status, rec.Code, "%q", host)
	}
	require.Equal(t, 4, reached)
}
