package httpapi

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
)

func zipping(tb testing.TB) *fixture {
	return newFixture(tb, func(c *Config) { c.Gzip = true })
}

// countsOf is a request for the counts of n items.
func countsOf(f *fixture, n int, header ...string) *http.Request {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(90_000_000 + i*7919)
	}
	return f.request("GET", "/v1/counts?item_type=post&item_ids="+strings.Join(ids, ","), "", "", header...)
}

func answered(f *fixture, req *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	f.api.ServeHTTP(rec, req)
	return rec
}

func unzipped(tb testing.TB, b []byte) string {
	tb.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(tb, err)
	plain, err := io.ReadAll(r)
	require.NoError(tb, err)
	return string(plain)
}

func TestGzip_LongAnswersAreCompressedForThoseWhoTakeIt(t *testing.T) {
	f := zipping(t)
	for _, c := range []struct {
		accept string
		want   bool
	}{
		{"", false},
		{"gzip", true},
		{"GZIP", true},
		{"x-gzip", true},
		{"br, gzip;q=0.1", true},
		{"deflate, gzip ; q=1.0 , *;q=0", true},
		{"*", true},
		{"*;q=0", false},
		{"gzip;q=0, *", false},
		{"gzip;q=0.000", false},
		{"gzip;q=many", false},
		{"gzip;level=9", false},
		{"identity", false},
		{"br", false},
		{"gzipped", false},
	} {
		req := countsOf(f, 500)
		if c.accept != "" {
			req.Header.Set("Accept-Encoding", c.accept)
		}
		rec := answered(f, req)
		require.Equal(t, 200, rec.Code)
		require.Equal(t, "Accept-Encoding", rec.Header().Get("Vary"), c.accept)
		require.Equal(t, strconv.Itoa(rec.Body.Len()), rec.Header().Get("Content-Length"), c.accept)
		require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
		if !c.want {
			require.Empty(t, rec.Header().Get("Content-Encoding"), c.accept)
			require.Contains(t, rec.Body.String(), `"post:90000000":{"likes":0}`, c.accept)
			continue
		}
		require.Equal(t, "gzip", rec.Header().Get("Content-Encoding"), c.accept)
		plain := unzipped(t, rec.Body.Bytes())
		require.Contains(t, plain, `"post:90000000":{"likes":0}`)
		require.Less(t, rec.Body.Len(), len(plain)/3)
	}
}

func TestGzip_ShortAnswersAndErrorsAreLeftAlone(t *testing.T) {
	f := zipping(t)
	user := f.token(1, auth.User)
	for _, req := range []*http.Request{
		f.request("POST", "/v1/like", goodLike, user),
		f.request("GET", "/v1/count?item_id=1&item_type=post&counter_types=likes,saves,views,shares", "", ""),
		f.request("GET", "/v1/likers?item_id=1&item_type=post", "", user),
		f.request("GET", "/nowhere", "", ""),
		countsOf(f, 30),
	} {
		req.Header.Set("Accept-Encoding", "gzip")
		a := f.do(req)
		require.Empty(t, a.header.Get("Content-Encoding"))
		require.NotContains(t, a.header.Get("Vary"), "Accept-Encoding")
	}
	off := newFixture(t)
	rec := answered(off, countsOf(off, 500, "Accept-Encoding", "gzip"))
	require.Empty(t, rec.Header().Get("Content-Encoding"))
	require.Empty(t, rec.Header().Get("Vary"))
}

// A cache has one entry per Accept-Encoding, all with the same weak tag.
func TestGzip_TheTagIsThatOfThePlainAnswer(t *testing.T) {
	f := zipping(t)
	plain := answered(f, f.request("GET", "/openapi.json", "", ""))
	packed := answered(f, f.request("GET", "/openapi.json", "", "", "Accept-Encoding", "gzip"))
	tag := packed.Header().Get("Etag")
	require.True(t, strings.HasPrefix(tag, `W/"`), tag)
	require.Equal(t, plain.Header().Get("Etag"), tag)
	require.Equal(t, plain.Body.String(), unzipped(t, packed.Body.Bytes()))
	same := answered(f, f.request("GET", "/openapi.json", "", "", "Accept-Encoding", "gzip", "If-None-Match", tag))
	require.Equal(t, http.StatusNotModified, same.Code)
	require.Zero(t, same.Body.Len())
	require.Empty(t, same.Header().Get("Content-Encoding"))
	for _, rec := range []*httptest.ResponseRecorder{plain, packed, same} {
		require.Equal(t, "Accept-Encoding", rec.Header().Get("Vary"))
	}
}

func TestGzip_AnswersOfManyCallersAreNotMixedUp(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Service, c.Gzip = memory.New(), true })
	var wg sync.WaitGroup
	bad := make(chan string, 64)
	for user := likes.UserID(1); user <= 8; user++ {
		token := f.token(user, auth.User)
		wg.Go(func() {
			for n := range 40 {
				ids := make([]string, 200)
				for i := range ids {
					ids[i] = fmt.Sprintf(`"%d"`, int(user)*1_000_000+n*1000+i)
				}
				rec := httptest.NewRecorder()
				f.api.ServeHTTP(rec, f.request("POST", "/v1/has_liked", `{"item_type":"post","item_ids":[`+strings.Join(ids, ",")+`]}`, token, "Accept-Encoding", "gzip"))
				r, err := gzip.NewReader(rec.Body)
				if err != nil {
					bad <- err.Error()
					return
				}
				got, err := io.ReadAll(r)
				if want := `{"liked":{` + strings.Join(ids, ":false,") + `:false}}`; err != nil || string(got) != want {
					bad <- fmt.Sprint(err, string(got))
				}
			}
		})
	}
	wg.Wait()
	close(bad)
	require.Empty(t, <-bad)
}

func BenchmarkGzip(b *testing.B) {
	for _, n := range []int{50, 500} {
		for _, on := range []bool{false, true} {
			f := newFixture(b, func(c *Config) {
				c.Gzip = on
				counts := make([]likes.Count, n)
				for i := range counts {
					counts[i] = likes.Count{N: int64(i * i % 1009), Source: likes.FromStore}
				}
				c.Service = &still{Service: c.Service, counts: counts}
			})
			req := countsOf(f, n, "Accept-Encoding", "gzip")
			size := answered(f, req).Body.Len()
			send := repeated(b, f, req, "")
			b.Run(fmt.Sprintf("%d items, gzip %t", n, on), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					send()
				}
				b.ReportMetric(float64(size), "bytes")
			})
		}
	}
}

// late is a writer to whom something happens before it takes what is written.
type late struct {
	*httptest.ResponseRecorder
	before func()
}

func (l late) Write(b []byte) (int, error) {
	l.before()
	return l.ResponseRecorder.Write(b)
}

// A compressor is free for the next answer only once this one has been written.
func TestGzip_AnAnswerIsWholeAlthoughTheNextOneIsMadeMeanwhile(t *testing.T) {
	f := zipping(t)
	rec := httptest.NewRecorder()
	f.api.ServeHTTP(late{rec, func() { answered(f, countsOf(f, 300, "Accept-Encoding", "gzip")) }}, countsOf(f, 200, "Accept-Encoding", "gzip"))
	require.Equal(t, 199, strings.Count(unzipped(t, rec.Body.Bytes()), `},"post:`))
}
