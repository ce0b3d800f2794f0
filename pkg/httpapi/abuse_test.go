package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/abuse"
	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
	"likectl/pkg/outside"
)

func perMinute(n int) []limit.Limit { return []limit.Limit{{Max: n, Window: time.Minute}} }

// guarded returns the API with a guard; list is what the reputation list holds.
func guarded(t *testing.T, list string, cfg abuse.Config, change ...func(*Config)) (f *fixture, refused map[string]int) {
	t.Helper()
	refused = map[string]int{}
	if list != "" {
		cfg.List = filepath.Join(t.TempDir(), "list")
		require.NoError(t, os.WriteFile(cfg.List, []byte(list), 0o600))
	}
	cfg.Refresh, cfg.Velocity.MaxKeys, cfg.Types = time.Hour, 1000, likes.DefaultItemTypes()
	cfg.SlowFactor, cfg.Log = max(cfg.SlowFactor, 2), slog.New(slog.DiscardHandler)
	cfg.Hooks = abuse.Hooks{Refused: func(reason string) { refused[reason]++ }}
	g, err := abuse.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close(context.Background())) })
	f = newFixture(t, append([]func(*Config){func(c *Config) { c.Abuse, c.DeviceHeader = g, "Like-Device" }}, change...)...)
	return f, refused
}

// isRefused requires a 403 refused, which says no more than any other.
func isRefused(t *testing.T, a answer) {
	t.Helper()
	require.Equal(t, 403, a.status, a.raw)
	require.Equal(t, "refused", a.body["error"])
	require.Empty(t, a.header.Get("Retry-After"))
}

// isTooFast requires a 429 of a velocity limit.
func isTooFast(t *testing.T, a answer, name string) int64 {
	t.Helper()
	require.Equal(t, 429, a.status, a.raw)
	require.Equal(t, "rate_limited", a.body["error"])
	require.Contains(t, a.body["detail"], "the velocity limit "+name+" is used up; nothing was applied")
	retry := number(t, a.body["retry_after"])
	require.Equal(t, strconv.FormatInt(retry, 10), a.header.Get("Retry-After"))
	require.NotContains(t, a.header.Get("RateLimit"), name, "it tells what others do")
	return retry
}

func ownerIs(owner likes.UserID) abuse.OwnerFunc {
	return func(_ context.Context, items []likes.Item) ([]likes.UserID, error) {
		owners := make([]likes.UserID, len(items))
		for i := range owners {
			owners[i] = owner
		}
		return owners, nil
	}
}

// Each velocity limit alone: what uses it up, what it does not concern, that
// nothing reaches the service, and that everything can be taken back.
func TestAbuse_EveryVelocityLimit(t *testing.T) {
	const n = 3
	for name, c := range map[string]struct {
		limits abuse.Velocity
		// each returns the i-th like that counts, other one that does not
		each, other func(f *fixture, method string, i int) *http.Request
	}{
		"user_owner": {
			abuse.Velocity{UserOwner: perMinute(n)},
			func(f *fixture, method string, i int) *http.Request {
				return f.request(method, "/v1/like", item(i), f.token(1, auth.User))
			},
			func(f *fixture, method string, i int) *http.Request {
				return f.request(method, "/v1/like", item(i), f.token(2, auth.User))
			},
		},
		"item": {
			abuse.Velocity{Item: perMinute(n)},
			func(f *fixture, method string, i int) *http.Request {
				return f.request(method, "/v1/like", item(1), f.token(likes.UserID(i), auth.User))
			},
			func(f *fixture, method string, i int) *http.Request {
				return f.request(method, "/v1/like", item(2), f.token(likes.UserID(i), auth.User))
			},
		},
		"ip": {
			abuse.Velocity{IP: perMinute(n)},
			func(f *fixture, method string, i int) *http.Request {
				return f.request(method, "/v1/like", item(i), f.token(likes.UserID(i), auth.User))
			},
			func(f *fixture, method string, i int) *http.Request {
				r := f.request(method, "/v1/like", item(i), f.token(likes.UserID(i), auth.User))
				r.RemoteAddr = "203.0.113.5:1"
				return r
			},
		},
		"device": {
			abuse.Velocity{Device: perMinute(n)},
			func(f *fixture, method string, i int) *http.Request {
				return f.request(method, "/v1/like", item(i), f.token(likes.UserID(i), auth.User), "Like-Device", "phone")
			},
			func(f *fixture, method string, i int) *http.Request {
				return f.request(method, "/v1/like", item(i), f.token(likes.UserID(i), auth.User), "Like-Device", "other")
			},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, refused := guarded(t, "", abuse.Config{Velocity: c.limits}, func(c *Config) { c.OwnerOf = ownerIs(8) })
			for i := range n {
				require.Equal(t, 200, f.do(c.each(f, "POST", i+1)).status, name)
			}
			counted := f.counted()
			asked := f.service.calls
			for i := range 5 {
				require.EqualValues(t, 60/n, isTooFast(t, f.do(c.each(f, "POST", 10+i)), name))
			}
			require.Equal(t, asked, f.service.calls, "a refused like reached the service")
			require.Equal(t, counted, f.counted())
			require.Equal(t, map[string]int{name: 5}, refused)
			require.Equal(t, 200, f.do(c.other(f, "POST", 20)).status, "%s: another one is not concerned", name)
			save := c.each(f, "POST", 1)
			save.URL.Path = "/v1/save"
			require.Equal(t, 200, f.do(save).status, "saves are counted apart")
			for i := range 5 {
				require.Equal(t, 200, f.do(c.each(f, "DELETE", i+1)).status, "%s: a like cannot be taken back", name)
			}
			isTooFast(t, f.do(c.each(f, "POST", 30)), name)
			time.Sleep(60/n*time.Second - 1)
			isTooFast(t, f.do(c.each(f, "POST", 31)), name)
			time.Sleep(time.Nanosecond)
			require.Equal(t, 200, f.do(c.each(f, "POST", 32)).status, "Retry-After is not true")
			isTooFast(t, f.do(c.each(f, "POST", 33)), name)
		})
	}
}

func TestAbuse_WhoIsDeniedCanOnlyTakeBack(t *testing.T) {
	f, refused := guarded(t, "user 1 deny\nip 203.0.113.0/24 deny\ndevice phone deny\n", abuse.Config{})
	good, bad := f.token(2, auth.User), f.token(1, auth.User)
	send := func(method, path, token, addr, device string) answer {
		r := f.request(method, path, goodLike, token, "X-Forwarded-For", "203.0.113.1") // nobody's trusted proxy
		if r.RemoteAddr = addr; device != "" {
			r.Header.Set("Like-Device", device)
		}
		return f.do(r)
	}
	const here = "192.0.2.1:1"
	for _, path := range []string{"/v1/like", "/v1/save"} {
		for _, c := range []struct{ token, addr, device string }{
			{bad, here, ""}, {good, "203.0.113.9:1", ""}, {good, here, "phone"}, {bad, here, "other"},
		} {
			isRefused(t, send("POST", path, c.token, c.addr, c.device))
			require.Zero(t, f.service.calls, "a refused call reached the service")
			require.Equal(t, 200, send("DELETE", path, c.token, c.addr, c.device).status)
			f.service.calls = 0
		}
		require.Equal(t, 200, send("POST", path, good, here, "other").status)
		f.service.calls = 0
	}
	require.Equal(t, map[string]int{"list": 8}, refused)
	require.Equal(t, 200, send("POST", "/v1/view", bad, here, "").status, "views and shares are counted by their event")
	require.Equal(t, 200, send("POST", "/v1/share", bad, here, "").status)
	require.Equal(t, 200, f.do(f.request("GET", "/v1/me/likes", "", bad)).status, "reading is not refused")
}

func TestAbuse_WhoIsSlowedHasAPartOfTheLimit(t *testing.T) {
	f, refused := guarded(t, "user 1 slow\n", abuse.Config{SlowFactor: 4, Velocity: abuse.Velocity{Device: perMinute(8), Item: perMinute(100)}})
	passed := func(user likes.UserID, device string) (n int) {
		for i := 1; ; i++ {
			a := f.do(f.request("POST", "/v1/like", item(i), f.token(user, auth.User), "Like-Device", device))
			if a.status != 200 {
				isTooFast(t, a, "device")
				return n
			}
			n++
		}
	}
	require.Equal(t, 2, passed(1, "a"))
	require.Equal(t, 8, passed(2, "b"))
	require.Equal(t, map[string]int{"device": 2}, refused)
}

// A like that an earlier check refuses counts for no velocity limit, and one that
// a velocity limit refuses has cost its user one: the limits stand before it.
func TestAbuse_ComesAfterTheOtherChecks(t *testing.T) {
	f, refused := guarded(t, "user 9 deny", abuse.Config{Velocity: abuse.Velocity{Item: perMinute(2)}}, func(c *Config) {
		c.Rates.Like = limiter(t, "like", 2)
	})
	mine := f.token(1, auth.User)
	post := func(body, token string) answer { return f.do(f.request("POST", "/v1/like", body, token)) }
	for _, body := range []string{"{", `{"item_id":"1"}`, `{"item_id":"1","item_type":"post","user_id":"2"}`} {
		require.Equal(t, 400, post(body, mine).status)
	}
	require.Equal(t, 401, post(goodLike, "bad").status)
	require.Equal(t, 200, post(goodLike, mine).status)
	require.Equal(t, 200, post(item(2), mine).status)
	for range 5 {
		refusedBy(t, post(goodLike, mine), "like")
	}
	require.Equal(t, 200, post(goodLike, f.token(2, auth.User)).status, "refused likes have used up the item")
	require.Empty(t, refused)
	isTooFast(t, post(goodLike, f.token(3, auth.User)), "item")
	a := post(item(2), f.token(3, auth.User))
	require.Contains(t, a.header.Get("RateLimit"), `"like-60";r=0`, "the refused one has cost one")
	require.Equal(t, 400, post("{", f.token(9, auth.User)).status, "a malformed call is one for everybody")
}

func TestAbuse_ABadDeviceIsABadRequest(t *testing.T) {
	f, _ := guarded(t, "user 9 deny", abuse.Config{}, func(c *Config) {
		c.DeviceHeader = "x-device-id"
		c.Rates.Like = limiter(t, "like", 1)
	})
	mine := f.token(1, auth.User)
	send := func(method string, header ...string) answer {
		return f.do(f.request(method, "/v1/like", goodLike, mine, header...))
	}
	for _, value := range []string{"", " ", "a b", "é", "a\x7f", strings.Repeat("x", 129)} {
		a := send("POST", "X-Device-Id", value)
		require.Equal(t, 400, a.status, "%q", value)
		require.Contains(t, a.body["detail"], "header X-Device-Id: ")
	}
	require.Equal(t, 400, send("POST", "X-Device-Id", "a", "X-Device-Id", "b").status)
	require.Zero(t, f.service.calls)
	require.Equal(t, 200, send("DELETE", "X-Device-Id", "a b").status, "nothing keeps a like from being taken back")
	require.Equal(t, 200, send("POST", "X-Device-Id", strings.Repeat("~", 128), "Like-Device", "a b").status, "bad ones have cost a like")
	require.Equal(t, 200, newFixture(t).do(f.request("POST", "/v1/like", goodLike, mine, "Like-Device", "a b")).status, "without a guard nobody reads it")
}

func TestAbuse_PagesOfOtherOriginsMayNameTheDevice(t *testing.T) {
	const sent = "authorization,content-type,x-device-id"
	f, _ := guarded(t, "user 9 deny", abuse.Config{}, withOrigins(page), func(c *Config) { c.DeviceHeader = "x-device-id" })
	require.Equal(t, sent, preflight(f, page, "POST", "/v1/like", sent).Header().Get("Access-Control-Allow-Headers"))
	require.Empty(t, accessControl(preflight(newFixture(t, withOrigins(page)), page, "POST", "/v1/like", sent).Header()))
}

// Behind trusted proxies the client is who they say, as for all limits.
func TestAbuse_TheAddressIsTheClientsOwn(t *testing.T) {
	f, _ := guarded(t, "ip 198.51.100.0/24 deny\nip 2606:4700::/32 deny", abuse.Config{Velocity: abuse.Velocity{IP: perMinute(1)}}, func(c *Config) {
		c.Rates.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	from := func(peer, forwarded string) answer {
		r := f.request("POST", "/v1/like", goodLike, f.token(1, auth.User), "X-Forwarded-For", forwarded)
		r.RemoteAddr = peer
		return f.do(r)
	}
	isRefused(t, from("10.0.0.1:1", "203.0.113.1, 198.51.100.7"))
	isRefused(t, from("10.0.0.1:1", "::ffff:198.51.100.7"))
	isRefused(t, from("[2606:4700::1]:1", ""))
	require.Equal(t, 200, from("203.0.113.1:1", "198.51.100.7").status)
	require.Equal(t, 200, from("[2001:db8::1]:1", "").status)
	isTooFast(t, from("[2001:db8::2]:1", ""), "ip") // the same /64
	require.Equal(t, 200, from("[2001:db8:0:1::1]:1", "").status)
}

// A service is limited for the users and devices that it names, not for its own
// address, which all of them share.
func TestAbuse_AServiceActsForItsUsers(t *testing.T) {
	f, _ := guarded(t, "user 9 deny\nip 192.0.2.1 deny\ndevice phone deny", abuse.Config{
		Velocity: abuse.Velocity{IP: perMinute(1), UserOwner: perMinute(2)},
	}, func(c *Config) { c.OwnerOf = ownerIs(5) })
	send := func(user, device string) answer {
		r := f.request("POST", "/v1/like", `{"user_id":"`+user+`","item_id":"1","item_type":"post"}`, f.token(3, auth.Service))
		if r.RemoteAddr = "192.0.2.1:1"; device != "" {
			r.Header.Set("Like-Device", device)
		}
		return f.do(r)
	}
	require.Equal(t, 200, send("1", "").status)
	require.Equal(t, 200, send("1", "").status)
	isTooFast(t, send("1", ""), "user_owner")
	require.Equal(t, 200, send("2", "").status)
	isRefused(t, send("9", ""))
	isRefused(t, send("2", "phone"))
}

func TestAbuse_EntriesOfABatch(t *testing.T) {
	op := func(user, item int, action string) string {
		return fmt.Sprintf(`{"user_id":"%d","item_id":"%d","item_type":"post","action":"%s"}`, user, item, action)
	}
	cfg := abuse.Config{Velocity: abuse.Velocity{Item: perMinute(2)}, Batch: true}
	list := "user 9 deny\nip 192.0.2.1 deny\ndevice phone deny"
	send := func(f *fixture, header []string, ops ...string) answer {
		r := f.request("POST", "/v1/likes:batch", `{"ops":[`+strings.Join(ops, ",")+`]}`, f.token(3, auth.Service), header...)
		r.RemoteAddr = "192.0.2.1:1"
		return f.do(r)
	}
	f, refused := guarded(t, list, cfg)
	ops := []string{
		op(1, 1, "like"), op(9, 1, "like"), op(2, 1, "like"), op(3, 1, "like"), op(1, 1, "unlike"), op(9, 1, "unlike"), op(4, 2, "like"),
	}
	a := send(f, nil, ops...)
	require.Equal(t, []string{"liked", "refused", "liked", "rate_limited", "unliked", "not_liked", "liked"}, entries(t, a))
	require.Len(t, f.service.after, 5, "a refused entry reached the service")
	require.Equal(t, map[string]int{"list": 1, "item": 1}, refused)
	require.Contains(t, a.raw, `"retry_after":30`)
	require.EqualValues(t, 1, f.counted())
	f.service.calls = 0
	require.Equal(t, []string{"refused", "rate_limited"}, entries(t, send(f, nil, op(9, 2, "like"), op(5, 1, "like"))))
	require.Zero(t, f.service.calls, "nothing was left to apply")
	require.Equal(t, []string{"refused", "not_liked"}, entries(t, send(f, []string{"Like-Device", "phone"}, op(5, 2, "like"), op(5, 2, "unlike"))))
	require.Equal(t, 400, send(f, []string{"Like-Device", "a b"}, op(5, 2, "like")).status)
	// A store's fault in the entries that were applied stays at their places.
	f.service.fault = func(i int) error { return map[int]error{1: likes.ErrUnavailable}[i] }
	require.Equal(t, []string{"refused", "liked", "unavailable", "not_liked"},
		entries(t, send(f, nil, op(9, 3, "like"), op(5, 3, "like"), op(6, 3, "like"), op(7, 3, "unlike"))))

	cfg.Batch = false
	f, refused = guarded(t, list, cfg)
	require.Equal(t, []string{"liked", "liked", "liked", "liked", "unliked", "unliked", "liked"}, entries(t, send(f, nil, ops...)), "a backend's batch is trusted")
	require.Empty(t, refused)
}

// entries returns the codes and statuses of a batch's entries.
func entries(t *testing.T, a answer) (all []string) {
	t.Helper()
	require.Equal(t, 200, a.status, a.raw)
	for _, r := range as[[]any](t, a.body["results"]) {
		entry := as[map[string]any](t, r)
		if code, failed := entry["error"]; failed {
			all = append(all, as[string](t, code))
			require.Equal(t, code != "refused", entry["retry_after"] != nil)
			continue
		}
		all = append(all, as[string](t, entry["status"]))
	}
	return all
}

func TestAbuse_TheScorerDecidesLast(t *testing.T) {
	var decision string
	scorer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(decision)) }))
	defer scorer.Close()
	for _, closed := range []bool{false, true} {
		f, refused := guarded(t, "", abuse.Config{Scorer: abuse.Scorer{
			Endpoint: outside.Endpoint{URL: scorer.URL, Timeout: 5 * time.Second, MaxInFlight: 2}, FailClosed: closed,
		}})
		post := func() answer { return f.do(f.request("POST", "/v1/like", goodLike, f.token(1, auth.User))) }
		decision = `{"decision":"allow"}`
		require.Equal(t, 200, post().status)
		decision = `{"decision":"refuse"}`
		f.service.calls = 0
		isRefused(t, post())
		require.Zero(t, f.service.calls)
		decision = "?"
		switch a := post(); closed {
		case false:
			require.Equal(t, 200, a.status)
			require.Equal(t, map[string]int{"scorer": 1}, refused)
		case true:
			require.Equal(t, 503, a.status)
			require.Equal(t, "unavailable", a.body["error"])
			require.NotContains(t, a.raw, "scorer")
			require.Zero(t, f.service.calls)
			require.Equal(t, map[string]int{"scorer": 1, "scorer_error": 1}, refused)
			require.Contains(t, f.log.String(), "ask the scorer")
		}
		decision = `{"decision":"refuse"}`
		f.like("DELETE", 1, "1")
	}
}

func TestAbuse_AStoreThatDoesNotSayWhoOwnsAnItem(t *testing.T) {
	f, _ := guarded(t, "", abuse.Config{Velocity: abuse.Velocity{UserOwner: perMinute(1)}}, func(c *Config) {
		c.OwnerOf = func(context.Context, []likes.Item) ([]likes.UserID, error) {
			return nil, likes.Errorf(likes.ErrUnavailable, "dial")
		}
	})
	a := f.do(f.request("POST", "/v1/like", goodLike, f.token(1, auth.User)))
	require.Equal(t, 503, a.status)
	require.Zero(t, f.service.calls)
	f.like("DELETE", 1, "1")
}
