package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/limit"
)

// call is one request on its way through the API. Calls are pooled for the sake
// of their two buffers; whatever is handed to the service is allocated anew,
// since a batcher may hold it for longer than the call lasts.
type call struct {
	api    *API
	w      http.ResponseWriter
	r      *http.Request
	route  string
	id     string
	caller auth.Identity
	user   likes.UserID // that it acts for, once known

	in  []byte // the body
	out []byte // the answer

	taken []limit.Decision // of the limits on how often

	status int
	cache  []string // Cache-Control
	vary   []string
	like   string // Like-Version
	etag   string
	stale  bool
}

// maxPooled is the largest buffer that is kept for the next call, so that a few
// large bodies do not become the process's resting size.
const maxPooled = 64 << 10

// Header values that never change; net/http only reads them.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	noSniff     = []string{"nosniff"}
	closing     = []string{"close"}
	staleData   = []string{"true"}
	noStore     = []string{"no-store"}
	private     = []string{"private, no-store"}
	// Shared caches may answer for a second, for one more while they fetch, and
	// for a minute while the service is away.
	shared = []string{"public, s-maxage=1, stale-while-revalidate=1, stale-if-error=60"}
	// A cache must not answer a client that asks for a version it has not seen, nor
	// one who may see more or less than anybody.
	varyCount = []string{"Authorization, Like-Min-Version"}
)

func (c *call) begin(w http.ResponseWriter, r *http.Request, route string) {
	*c = call{api: c.api, w: w, r: r, route: route, in: c.in[:0], out: c.out[:0], taken: c.taken[:0], status: http.StatusOK, cache: private}
	c.id = c.api.ids.of(r)
}

func (c *call) release() {
	if cap(c.in) > maxPooled {
		c.in = nil
	}
	if cap(c.out) > maxPooled {
		c.out = nil
	}
	*c = call{api: c.api, in: c.in, out: c.out, taken: c.taken}
	c.api.calls.Put(c)
}

// authorise finds out who calls, where the route asks for it.
func (c *call) authorise(a access) error {
	if a == public || a == anyone && len(c.r.Header["Authorization"]) == 0 {
		return nil
	}
	token, err := auth.Bearer(c.r.Header["Authorization"])
	if err != nil {
		return err
	}
	caller, err := c.api.cfg.Auth.Verify(token)
	if err != nil {
		return err
	}
	c.caller = caller
	if caller.Scope < auth.Service {
		c.user = caller.User
	}
	if a == service && c.caller.Scope < auth.Service {
		return errScope
	}
	return nil
}

// actor returns the user that the call acts for: the token's own, or the one
// that a service names.
func (c *call) actor(named likes.UserID) (likes.UserID, error) {
	switch {
	case c.caller.Scope >= auth.Service && named == 0:
		return 0, likes.Errorf(likes.ErrInvalid, "user_id: missing: a %s token acts for the user it names", c.caller.Scope)
	case c.caller.Scope >= auth.Service:
		c.user = named
		return named, nil
	case named != 0:
		return 0, likes.Errorf(likes.ErrInvalid, "user_id: not allowed here: the user is the token's own")
	default:
		return c.caller.User, nil
	}
}

// readBody reads the body into c.in.
func (c *call) readBody(limit int64) error {
	if err := checkMedia(c.r.Header); err != nil {
		return err
	}
	if c.r.ContentLength > limit {
		return c.tooLarge(limit)
	}
	if want := int(c.r.ContentLength) + 1; want > cap(c.in) { // one more, to see the end
		c.in = make([]byte, 0, min(max(want, 512), maxPooled))
	}
	for {
		if len(c.in) == cap(c.in) {
			c.in = append(c.in, 0)[:len(c.in)]
		}
		n, err := c.r.Body.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		switch {
		case int64(len(c.in)) > limit:
			return c.tooLarge(limit)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.w.Header()["Connection"] = closing
			return errSlow
		case err != nil:
			c.w.Header()["Connection"] = closing
			return likes.Errorf(likes.ErrInvalid, "body: it broke off after %d bytes", len(c.in))
		}
	}
}

// tooLarge refuses the body and the rest of it with its connection.
func (c *call) tooLarge(limit int64) error {
	c.w.Header()["Connection"] = closing
	return &problemError{kind: errTooLarge, detail: fmt.Sprintf("the body has more than %d bytes", limit)}
}

// checkMedia accepts JSON in UTF-8, and bodies that do not say what they are.
func checkMedia(h http.Header) error {
	if e := h["Content-Encoding"]; len(e) > 0 && !strings.EqualFold(e[0], "identity") {
		return &problemError{kind: errMedia, detail: "content-encoding is not supported: send the body as it is"}
	}
	values := h["Content-Type"]
	if len(values) == 0 || len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	if len(values) == 1 {
		media, params, err := mime.ParseMediaType(values[0])
		charset := params["charset"]
		if err == nil && media == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	return errMedia
}

// maxVersions is the number of version tokens that a request may carry.
const maxVersions = 16

// versions decodes the version tokens in the named headers. Each may be repeated
// or hold a list.
func (c *call) versions(headers ...string) ([]likes.Version, error) {
	var seen []likes.Version
	for _, name := range headers {
		for _, value := range c.r.Header[name] {
			for token := range strings.SplitSeq(value, ",") {
				v, err := c.api.cfg.Versions.Decode(strings.TrimSpace(token))
				if err != nil {
					return nil, likes.Errorf(likes.ErrInvalid, "header %s: %w", name, err)
				}
				if seen = append(seen, v); len(seen) > maxVersions {
					return nil, likes.Errorf(likes.ErrInvalid, "header %s: more than %d version tokens", name, maxVersions)
				}
			}
		}
	}
	return seen, nil
}

// seen returns the versions that a read must include.
func (c *call) seen() ([]likes.Version, error) { return c.versions("Like-Min-Version") }

// after returns the clock that a write must be later than.
func (c *call) after() (likes.Clock, error) {
	seen, err := c.versions("Like-Version", "Like-Min-Version")
	var clock likes.Clock
	for _, v := range seen {
		clock = max(clock, v.Clock)
	}
	return clock, err
}

// answer writes what is in c.out, or the problem.
func (c *call) answer(ctx context.Context, err error) {
	h := c.w.Header()
	mediaType := jsonType
	if err != nil {
		mediaType = problemType
		c.problem(ctx, h, err)
	}
	values := new([4]string) // one allocation for the headers of this answer alone
	values[0] = c.id
	h["X-Request-Id"] = values[0:1:1]
	if c.vary != nil {
		addVary(h, c.vary)
	}
	body, release := c.compress(h)
	defer release()
	if c.status != http.StatusNotModified { // its body is the one that the client has
		values[1] = strconv.Itoa(len(body))
		h["Content-Type"], h["Content-Length"] = mediaType, values[1:2:2]
	}
	if c.etag != "" {
		values[3] = c.etag
		h["Etag"] = values[3:4:4]
	}
	if c.like != "" {
		values[2] = c.like
		h["Like-Version"] = values[2:3:3]
	}
	h["X-Content-Type-Options"], h["Cache-Control"] = noSniff, c.cache
	c.rateHeaders(h)
	if c.stale {
		h["X-Stale-Data"] = staleData
	}
	c.w.WriteHeader(c.status)
	if c.status == http.StatusNotModified {
		return
	}
	if _, err := c.w.Write(body); err != nil {
		c.api.cfg.Logger.Debug("answer not sent", "request_id", c.id, "route", c.route, "error", err)
	}
}

// recovered answers a request whose handler panicked. Answers are written in one
// piece at the end, so nothing has been sent yet, unless sending itself failed.
func (c *call) recovered(ctx context.Context, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	c.answer(ctx, fmt.Errorf("%w: %v\n%s", errPanic, p, stack()))
}

// stack returns where the caller stands, function by function. debug.Stack would
// add their arguments, and with them ids.
func stack() string {
	const deepest = 64
	var pcs [deepest]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var b strings.Builder
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "%s %s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}

// log tells the operator what the client is not told: of defects every one, of
// each other kind one a second and how many there were besides.
func (c *call) log(ctx context.Context, row *row, err error) {
	level := slog.LevelWarn
	switch {
	case row.status < 500:
		return
	case row.status == http.StatusInternalServerError:
		level = slog.LevelError
	case errors.Is(err, likes.ErrOverloaded), errors.Is(err, likes.ErrNotYet):
		level = slog.LevelDebug // the metrics count them; a line each would add to the load
	}
	var skipped int64
	if level == slog.LevelWarn {
		var ok bool
		if skipped, ok = c.api.sparse[row.index()].allow(time.Now()); !ok {
			return
		}
	}
	attrs := make([]slog.Attr, 0, 9)
	attrs = append(attrs, slog.String("request_id", c.id), slog.String("route", c.route), slog.Int("status", row.status),
		slog.String("code", row.code), slog.Any("error", err), slog.Int64("not_logged_before", skipped))
	if hash := c.api.cfg.UserHash; hash != nil && c.user != 0 {
		attrs = append(attrs, slog.String("user", hash(c.user)))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		attrs = append(attrs, slog.String("trace_id", span.TraceID().String()))
	}
	c.api.cfg.Logger.LogAttrs(context.WithoutCancel(ctx), level, "request failed", attrs...)
}
