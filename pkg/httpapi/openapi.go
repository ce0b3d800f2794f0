package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the document
	"encoding/json"
	"fmt"
	"strings"

	"likectl/pkg/likes"
)

// openAPI is the API in OpenAPI 3.1, written by hand. Tests hold every answer
// they get against it, and its routes, limits and error codes against the code.
//
//go:embed openapi.json
var openAPI string

// document is what GET /openapi.json answers.
type document struct {
	body []byte
	etag string
}

// newDocument returns the document of an API with these item types. The embedded
// one has the default types; a client made from it must know the real ones.
func newDocument(types likes.ItemTypes) (document, error) {
	names := types.Names()
	if len(names) == 0 {
		return document{}, likes.Errorf(likes.ErrInvalid, "no item types, want at least one")
	}
	// A name needs no escapes (likes.NewItemTypes). The colon tells the examples
	// from the method post.
	own := strings.NewReplacer(
		`["post", "reel", "comment"]`, `["`+strings.Join(names, `","`)+`"]`,
		`: "post"`, `: "`+names[0]+`"`,
		`"post:`, `"`+names[0]+`:`,
	).Replace(openAPI)
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(own)); err != nil {
		return document{}, fmt.Errorf("openapi.json: %w", err)
	}
	sum := sha256.Sum256(b.Bytes())
	return document{body: b.Bytes(), etag: fmt.Sprintf(`W/"%x"`, sum[:8])}, nil
}

// forAMinute is the Cache-Control of the document: it changes with a restart only.
var forAMinute = []string{"public, max-age=60"}

// openAPI answers GET /openapi.json.
func (a *API) openAPI(_ context.Context, c *call) error {
	c.cache, c.etag = forAMinute, a.document.etag
	switch {
	case !c.unchanged():
		c.out = append(c.out, a.document.body...)
	case a.cfg.Gzip:
		c.vary = varyEncoding // as the 200 that it stands for
	}
	return nil
}
