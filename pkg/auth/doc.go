// Package auth mints and verifies the bearer tokens that say who calls.
//
// A token is a JWT (RFC 7519) signed with HMAC-SHA-256. Its claims:
//
//	iss, aud  the configured issuer and audience, "likectl" by default
//	sub       the caller's user id, in the one form that likes.ParseID reads
//	scope     user, service or admin, exactly one
//	exp       required; nbf and iat are honoured where present
//
// The algorithm belongs to the key and not to the token: the header's alg only
// has to agree with it, so a token can choose neither "none" nor an algorithm
// that would read the key as something else (RFC 8725, 3.1). Keys live in a
// [keyring] by key id; public keys from files or a JWKS become further entries
// of it, and a table of scopes replaces the fixed three in [ParseScope].
//
// Verified tokens are remembered (see [cache]), so that a client that calls a
// thousand times pays for one signature.
package auth
