// Package auth mints and verifies the bearer tokens that say who calls.
//
// A token is a JWT (RFC 7519). Ours are signed with the secret (HMAC-SHA-256);
// those of other issuers with a private key of theirs, whose public one comes
// from a file or a JWKS URL ([Source]): EdDSA, ES256 or RS256. The claims:
//
//	iss, aud  what the key's source says; of ours, the configured ones
//	sub       the caller's user id, in the one form that likes.ParseID reads;
//	          a source may name another claim
//	scope     user, service or admin, exactly one, and one that the key may
//	          give; a source may name another claim and other words, or fix it
//	exp       required, at most ten years ahead; nbf and iat are honoured where
//	          present
//
// The algorithm belongs to the key and not to the token: the header's alg only
// has to agree with it, so a token can choose neither "none" nor an algorithm
// that would read the key as something else (RFC 8725, 3.1). A key is found by
// the token's iss and kid together, compared as texts: no issuer can displace
// another one's key, and nothing in a token is ever opened, fetched or used as a
// key. Header and claims are read strictly: no member twice, names in one case.
//
// An [Authority] that was opened reads its sources again and again. A key that is
// gone takes the remembered tokens with it; a source that cannot be read keeps
// its last good keys. A token with an unknown kid has its issuer's URLs read at
// once, but no more often than every ten seconds.
//
// Verified tokens are remembered (see [cache]), so that a client that calls a
// thousand times pays for one signature.
package auth
