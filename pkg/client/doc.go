// Package client is a client of likectl's HTTP API that is itself a
// [likes.Service]: what is written against the interface runs in the server's
// process or beside it.
//
//	c, err := client.Open(ctx, client.Default("http://127.0.0.1:8080", client.Static(token)))
//
// It sends each call once. A retry is the caller's, who alone knows how long a
// result is worth waiting for; after any error repeating a like, an unlike or an
// event is safe. What an error says of the data is what pkg/likes says:
//
//   - [likes.ErrUnavailable], [likes.ErrOverloaded], [likes.ErrInvalid] and so on:
//     nothing was applied. No connection was to be had, or likectl itself said so.
//   - [likes.ErrUncertain]: it may have been applied. A connection was there and no
//     whole answer of likectl's came back over it: it broke, the time was over, or
//     something between here and there answered instead.
//
// A read changes nothing, so it is never uncertain. errors.AsType[*[Error]] has the
// status, the code and after how long another try makes sense.
//
// What the API does not carry, the client does not have either:
//
//   - Clocks. Version, Membership and Count carry none (0). The version of a write
//     is the Like-Version token, unopened, in [likes.Version].Mark beside the edge
//     that it is of; give it to Counts, Has or [Client.After]. Versions with neither
//     mark nor clock name no state and are ignored; such are those of events, and of
//     the operations of one call that went as one batch.
//   - LikedAt of a membership (a listing has it) and AsOf of a write's count. A
//     count's AsOf is that of the oldest of its call.
//   - Replays, LikedAt and After of a mutation: ErrInvalid. `likectl import` takes
//     what happened elsewhere, [Client.After] takes versions.
//
// The contract and the item types are those of the server's /openapi.json at
// [Open].
package client
