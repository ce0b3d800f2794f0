package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"likectl/pkg/auth"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
)

// spec is the document as a validator reads it, and stricter: an answer must not
// have a member that the document does not name.
var spec = sync.OnceValue(func() *openapi3.T {
	var raw map[string]any
	must(json.Unmarshal([]byte(openAPI), &raw))
	for _, schema := range raw["components"].(map[string]any)["schemas"].(map[string]any) { //nolint:forcetypeassert // a panic fails the test
		s := schema.(map[string]any) //nolint:forcetypeassert // a panic fails the test
		if _, open := s["additionalProperties"]; !open && s["properties"] != nil {
			s["additionalProperties"] = false
		}
	}
	strict, err := json.Marshal(raw)
	must(err)
	doc, err := openapi3.NewLoader().LoadFromData(strict)
	must(err)
	return doc
})

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// operations are those of the document, by method and path.
func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	all := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all[method+" "+path] = op
		}
	}
	return all
}

// documented returns what the document says of a request's answers. Of paths and
// methods that it does not have, it says that they are refused.
func documented(req *http.Request) (*routers.Route, *openapi3.Operation) {
	doc := spec()
	path := templated(doc, req.URL.Path)
	item := doc.Paths.Value(path)
	op := operations(doc)[req.Method+" "+path]
	if op == nil {
		all := doc.Components.Responses
		op = &openapi3.Operation{Responses: openapi3.NewResponses(
			openapi3.WithStatus(http.StatusNotFound, all["NotFound"]),
			openapi3.WithStatus(http.StatusMethodNotAllowed, all["MethodNotAllowed"]),
			openapi3.WithStatus(http.StatusTooManyRequests, all["RateLimited"]),
			openapi3.WithStatus(http.StatusInternalServerError, all["Internal"]))}
	}
	return &routers.Route{Spec: doc, Path: path, PathItem: item, Method: req.Method, Operation: op}, op
}

// templated returns the document's path that a request's path is one of, or the
// latter if there is none.
func templated(doc *openapi3.T, path string) string {
	for known := range doc.Paths.Map() {
		if regexp.MustCompile("^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(known, "[^/]+") + "$").MatchString(path) {
			return known
		}
	}
	return path
}

// filled returns a path of the document with the examples of its parameters.
func filled(path string, op *openapi3.Operation) string {
	for _, p := range op.Parameters {
		if p.Value.In == "path" {
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", fmt.Sprint(p.Value.Example))
		}
	}
	return path
}

// conforms holds an answer against the document: its status, its headers, all of
// them documented, and its body.
func conforms(tb testing.TB, req *http.Request, rec *httptest.ResponseRecorder) {
	tb.Helper()
	if req.Method == http.MethodHead {
		get := req.Clone(req.Context())
		get.Method = http.MethodGet
		req = get
	}
	route, op := documented(req)
	name := fmt.Sprintf("%s %s answers %d", req.Method, req.URL.Path, rec.Code)
	response := op.Responses.Status(rec.Code)
	require.NotNil(tb, response, "%s, which the document does not know: %s", name, rec.Body)
	for header := range rec.Header() {
		switch header {
		case "Content-Type", "Content-Length", "Content-Encoding", "Connection", "Vary": // HTTP's own
			continue
		case "Access-Control-Allow-Origin", "Access-Control-Expose-Headers": // a browser's own
			continue
		}
		require.True(tb, slices.ContainsFunc(slices.Collect(maps.Keys(response.Value.Headers)), func(known string) bool {
			return strings.EqualFold(known, header)
		}), "%s with the header %s, which the document does not know", name, header)
	}
	err := openapi3filter.ValidateResponse(req.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route},
		Status:                 rec.Code, Header: rec.Header(), Body: io.NopCloser(bytes.NewReader(rec.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	require.NoError(tb, err, "%s: %s", name, rec.Body)
}

func TestOpenAPI_IsValidAndServed(t *testing.T) {
	types, err := likes.NewItemTypes(map[string]likes.ItemType{"track": 2, "album": 1})
	require.NoError(t, err)
	for _, names := range []likes.ItemTypes{likes.DefaultItemTypes(), types} {
		f := newFixture(t, func(c *Config) { c.Types = names })
		rec := httptest.NewRecorder()
		f.api.ServeHTTP(rec, f.request("GET", "/openapi.json", "", ""))
		require.Equal(t, 200, rec.Code)
		require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
		require.Equal(t, "public, max-age=60", rec.Header().Get("Cache-Control"))
		conforms(t, f.request("GET", "/openapi.json", "", ""), rec)
		doc, err := openapi3.NewLoader().LoadFromData(rec.Body.Bytes())
		require.NoError(t, err)
		require.NoError(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()))
		require.Len(t, operations(doc), 24)
		var listed []string
		for _, name := range doc.Components.Schemas["ItemType"].Value.Enum {
			listed = append(listed, as[string](t, name))
		}
		require.Equal(t, names.Names(), listed)

		again := httptest.NewRecorder()
		f.api.ServeHTTP(again, f.request("GET", "/openapi.json", "", "", "If-None-Match", rec.Header().Get("Etag")))
		require.Equal(t, 304, again.Code)
		require.Empty(t, again.Body.String())
		conforms(t, f.request("GET", "/openapi.json", "", ""), again)
	}
	_, err = newDocument(likes.ItemTypes{}, likes.Contract{})
	require.ErrorIs(t, err, likes.ErrInvalid)
}

// What the document says of the server is what the service says of itself, every
// field of it: a field that the text loses would come back as its zero value.
func TestOpenAPI_HasTheContractAndTheNumbersOfTheItemTypes(t *testing.T) {
	types, err := likes.NewItemTypes(map[string]likes.ItemType{"track": 7, "album": 1})
	require.NoError(t, err)
	want := promises{memory.New(), likes.Contract{
		Tier: 3, Name: `a <log> & "more"`, Ack: likes.AckLogged, CountStaleness: 250 * time.Millisecond, EdgeStaleness: time.Second,
		ReadYourWrites: true, ExactChanged: true, CountEqualsEdges: true, Losses: []likes.Loss{{Backend: "Kafka", Away: "waits", Lost: "nothing"}},
	}}
	value := reflect.ValueOf(want.contract)
	for i := range value.NumField() {
		require.False(t, value.Field(i).IsZero(), "%s is to be set above", value.Type().Field(i).Name)
	}
	f := newFixture(t, func(c *Config) { c.Types, c.Service = types, want })
	rec := httptest.NewRecorder()
	f.api.ServeHTTP(rec, f.request("GET", "/openapi.json", "", ""))
	var got extensions
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &got))
	require.Equal(t, want.contract, got.Contract)
	require.Equal(t, map[string]likes.ItemType{"track": 7, "album": 1}, got.ItemTypes)
}

// promises is a service that promises something else.
type promises struct {
	likes.Service
	contract likes.Contract
}

func (s promises) Contract() likes.Contract { return s.contract }

func TestOpenAPI_HasTheRoutesOfTheAPIAndNoOthers(t *testing.T) {
	want := append(routesInTheSource(t), "GET /healthz", "GET /readyz")
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(operations(spec()))))
	ids := map[string]bool{}
	for name, op := range operations(spec()) {
		require.False(t, ids[op.OperationID], "%s has the id of another", name)
		ids[op.OperationID] = true
	}
}

// Who may call is in the source as an access; the document must say the same.
func TestOpenAPI_HasTheAccessOfTheAPI(t *testing.T) {
	want := map[string]string{
		"public": `[]`, "anyone": `[{},{"bearer":["user"]},{"bearer":["service"]}]`,
		"caller": `[{"bearer":["user"]},{"bearer":["service"]}]`, "service": `[{"bearer":["service"]}]`,
	}
	source, err := os.ReadFile("api.go")
	require.NoError(t, err)
	rows := regexp.MustCompile(`\{"([A-Z]+)", "(/[^"]+)", (\w+), (true|false),`).FindAllStringSubmatch(string(source), -1)
	require.GreaterOrEqual(t, len(rows), 15)
	for _, m := range rows {
		op := operations(spec())[m[1]+" "+m[2]]
		require.NotNil(t, op, m[0])
		got, err := json.Marshal(op.Security)
		require.NoError(t, err)
		require.JSONEq(t, want[m[3]], string(got), m[0])
		require.Equal(t, m[4] == "true", op.RequestBody != nil, m[0])
		edge := m[2] == "/v1/like" || m[2] == "/v1/save" // what an erased user is refused
		statuses := map[string]bool{"401": m[3] != "public", "403": m[3] == "service" || edge, "413": m[4] == "true", "415": m[4] == "true"}
		for status, has := range statuses {
			require.Equal(t, has, op.Responses.Value(status) != nil, "%s: %s", m[0], status)
		}
	}
}

// The parameters of the GET routes are those that the handlers read.
func TestOpenAPI_HasTheParametersOfTheAPI(t *testing.T) {
	f := newFixture(t)
	for name, op := range operations(spec()) {
		token := f.token(1, auth.User)
		method, path, _ := strings.Cut(name, " ")
		if method != "GET" || !strings.HasPrefix(path, "/v1/") {
			continue
		}
		if len(*op.Security) == 1 {
			token = f.token(backend, auth.Service)
		}
		a := f.do(f.request(method, filled(path, op)+"?unknown=1", "", token))
		require.Equal(t, 400, a.status, a.raw)
		if strings.Contains(path, "{") {
			continue // and no others
		}
		_, list, found := strings.Cut(as[string](t, a.body["detail"]), "want ")
		require.True(t, found, a.raw)
		var got []string
		for _, p := range op.Parameters {
			if p.Value.In == "query" {
				got = append(got, p.Value.Name)
			}
		}
		require.ElementsMatch(t, strings.Split(list, ", "), got, name)
	}
}

func TestOpenAPI_HasTheErrorsOfTheTable(t *testing.T) {
	type answer struct {
		status int
		code   string
		retry  bool
	}
	// The limits of callers stand in front of the service.
	want := map[answer]bool{{429, "rate_limited", true}: true}
	for _, r := range append(table[:], internal) {
		want[answer{r.status, r.code, r.retry > 0}] = true
	}
	got := map[answer]bool{}
	var codes []string
	for name, ref := range spec().Components.Responses {
		parts := ref.Value.Content["application/problem+json"].Schema.Value.AllOf
		require.Len(t, parts, 2, name)
		own := parts[1].Value
		status, err := strconv.Atoi(fmt.Sprint(own.Properties["status"].Value.Const))
		require.NoError(t, err)
		for _, code := range own.Properties["error"].Value.Enum {
			got[answer{status, as[string](t, code), slices.Contains(own.Required, "retry_after")}] = true
			codes = append(codes, as[string](t, code))
		}
		require.Equal(t, slices.Contains(own.Required, "retry_after"), ref.Value.Headers["Retry-After"] != nil, name)
	}
	require.Equal(t, want, got)
	var enum []string
	for _, code := range spec().Components.Schemas["ErrorCode"].Value.Enum {
		enum = append(enum, as[string](t, code))
	}
	require.ElementsMatch(t, codes, enum)
	// And every operation has them under their own status.
	for name, op := range operations(spec()) {
		for status, ref := range op.Responses.Map() {
			media := ref.Value.Content["application/problem+json"]
			if media == nil {
				continue
			}
			own := media.Schema.Value.AllOf[1].Value.Properties["status"].Value.Const
			require.Equal(t, status, fmt.Sprint(own), name)
		}
	}
}

func TestOpenAPI_HasTheLimitsOfTheAPI(t *testing.T) {
	doc := spec()
	property := func(schema, name string) *openapi3.Schema {
		return doc.Components.Schemas[schema].Value.Properties[name].Value
	}
	for name, c := range map[string]struct {
		limit int
		got   *uint64
	}{
		"GET item_ids":       {likes.MaxRead, doc.Components.Parameters["item_ids"].Value.Schema.Value.MaxItems},
		"GET counter_types":  {maxCounterTypes, doc.Components.Parameters["counter_types"].Value.Schema.Value.MaxItems},
		"cursor":             {maxCursor, doc.Components.Parameters["cursor"].Value.Schema.Value.MaxLength},
		"POST items":         {likes.MaxRead, property("CountsQuery", "items").MaxItems},
		"POST counter_types": {maxCounterTypes, property("CountsQuery", "counter_types").MaxItems},
		"POST item_ids":      {likes.MaxRead, property("HasLikedQuery", "item_ids").MaxItems},
		"ops":                {likes.MaxApply, property("Batch", "ops").MaxItems},
		"results":            {likes.MaxApply, property("BatchResult", "results").MaxItems},
		"likers":             {likes.MaxPage, property("LikersResult", "likers").MaxItems},
		"likes":              {likes.MaxPage, property("MyLikesResult", "likes").MaxItems},
	} {
		require.NotNil(t, c.got, name)
		require.EqualValues(t, c.limit, *c.got, name)
	}
	limit := doc.Components.Parameters["limit"].Value.Schema.Value
	require.InDelta(t, likes.MaxPage, *limit.Max, 0)
	require.EqualValues(t, defaultPage, limit.Default)
	for _, id := range []string{"Id", "InputId"} {
		require.Equal(t, `^[1-9][0-9]{0,18}$`, doc.Components.Schemas[id].Value.Pattern)
	}
}

// exampleRequests are an operation's documented examples as requests, with the
// scope of the token that each needs.
func exampleRequests(t *testing.T, f *fixture, name string, op *openapi3.Operation) map[string]*http.Request {
	t.Helper()
	method, path, _ := strings.Cut(name, " ")
	path = filled(path, op)
	query := url.Values{}
	for _, p := range op.Parameters {
		if p.Value.Example == nil || p.Value.In != "query" {
			continue
		}
		value := fmt.Sprint(p.Value.Example)
		if list, ok := p.Value.Example.([]any); ok {
			value = strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
		}
		query.Set(p.Value.Name, value)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	bodies := map[string]string{"": ""}
	if op.RequestBody != nil {
		media := op.RequestBody.Value.Content["application/json"]
		bodies = map[string]string{}
		if media.Example != nil {
			bodies[""] = encoded(t, media.Example)
		}
		for who, example := range media.Examples {
			bodies[who] = encoded(t, example.Value.Value)
		}
	}
	requests := map[string]*http.Request{}
	for who, body := range bodies {
		var token string
		switch sec := *op.Security; {
		case len(sec) == 0: // public
		case who == "service" || len(sec) == 1:
			token = f.token(backend, auth.Service)
		default:
			token = f.token(userA, auth.User)
		}
		requests[name+" "+who] = f.request(method, path, body, token)
	}
	return requests
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestOpenAPI_EveryExampleWorks(t *testing.T) {
	n := 0
	for name, op := range operations(spec()) {
		f := newFixture(t)
		for who, req := range exampleRequests(t, f, name, op) {
			route, _ := documented(req)
			require.NoError(t, openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
				Request: req, Route: route, QueryParams: req.URL.Query(), PathParams: map[string]string{"id": "7"},
				Options: &openapi3filter.Options{AuthenticationFunc: bearerIsThere},
			}), who)
			rec := httptest.NewRecorder()
			f.api.ServeHTTP(rec, req)
			require.Equal(t, 200, rec.Code, "%s: %s", who, rec.Body)
			conforms(t, req, rec)
			n++
		}
	}
	require.Equal(t, 24+5, n, "an example for each operation, and five for service tokens")
}

var errNoBearer = errors.New("no bearer token")

func bearerIsThere(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	if in.RequestValidationInput.Request.Header.Get("Authorization") == "" {
		return errNoBearer
	}
	return nil
}

// The members of bodies, and those that are needed, are the decoder's.
func TestOpenAPI_BodiesHaveTheMembersOfTheDecoder(t *testing.T) {
	f := newFixture(t)
	for name, op := range operations(spec()) {
		if op.RequestBody == nil {
			continue
		}
		method, path, _ := strings.Cut(name, " ")
		schema := op.RequestBody.Value.Content["application/json"].Schema.Value
		a := f.do(f.request(method, path, `{"unknown":1}`, f.token(backend, auth.Service)))
		require.Equal(t, 400, a.status)
		_, list, found := strings.Cut(as[string](t, a.body["detail"]), "want ")
		require.True(t, found, a.raw)
		require.ElementsMatch(t, strings.Split(list, ", "), slices.Collect(maps.Keys(schema.Properties)), name)
		media := op.RequestBody.Value.Content["application/json"]
		example, token := media.Example, f.token(userA, auth.User)
		if media.Examples != nil {
			example = media.Examples["user"].Value.Value
		}
		if len(*op.Security) == 1 {
			token = f.token(backend, auth.Service)
		}
		for member := range as[map[string]any](t, example) {
			without := maps.Clone(as[map[string]any](t, example))
			delete(without, member)
			a := f.do(f.request(method, path, encoded(t, without), token))
			needed := slices.Contains(schema.Required, member) || slices.ContainsFunc(schema.OneOf, func(s *openapi3.SchemaRef) bool {
				return slices.Contains(s.Value.Required, member)
			})
			require.Equal(t, needed, a.status == 400, "%s without %s: %s", name, member, a.raw)
		}
	}
}
