// Package httpapi is the service over HTTP.
//
//	POST   /v1/like         like an item            token
//	DELETE /v1/like         take the like back      token
//	POST   /v1/save         save an item            token
//	DELETE /v1/save         take the save back      token
//	POST   /v1/view         count a view            token or none
//	POST   /v1/share        count a share           token
//	GET    /v1/count        counts of one item      public
//	GET    /v1/counts       counts of many items    public
//	POST   /v1/counts       the same                public
//	GET    /v1/has_liked    what the user likes     token
//	POST   /v1/has_liked    the same                token
//	GET    /v1/likers       who likes an item       token
//	GET    /v1/me/likes     what the caller likes   token
//	POST   /v1/likes:batch  up to 1000 operations   service token
//	GET    /openapi.json    this in OpenAPI 3.1     public
//	GET    /healthz         the process is alive
//	GET    /readyz          every dependency answers
//
// What holds for all of them:
//
// A request is refused as a whole, with the field or entry that is wrong, before
// any store is asked: there is no half-read input. JSON is read by a tokenizer of
// our own (see [decoder]) that is stricter than encoding/json: no unknown, no
// repeated member, nothing behind the value, no nesting beyond what a body has.
//
// The user is who the token says. A service token names the user of each call
// instead, in user_id.
//
// Reads of edges take counter=saves to ask for saves instead of likes, and counts
// take counter_types, a list of likes, saves, views and shares.
//
// Views and shares are events, each counted once by its event_id, a UUID. Without
// one the API makes one, and then only an error that says which one can be
// repeated safely: a client that means to repeat sends its own. A view needs no
// token, since most of those who look are not logged in; a share does. Who caused
// an event is not stored.
//
// Counts are public, and a token sent along is ignored, so that shared caches may
// keep them; their entity tags let a cache ask whether they changed. Everything personal is "private, no-store". A GET changes nothing.
//
// A failure of a store is a 503 that says whether something may have been
// applied, or an entry's own error beside the entries that succeeded: never a 0
// or a "no". The one table of errors is in errors.go.
//
// How often somebody may call is bounded (see [Rates]), in this process alone: a
// refused call is a 429, and no store hears of it.
//
// Fake likes and saves are kept out, where that is configured (see pkg/abuse),
// after every other check and before the service. Taking one back never is.
//
// An absent Content-Type is taken as JSON; any other than application/json in
// UTF-8 is refused.
package httpapi
