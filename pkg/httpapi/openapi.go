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

// extensions are the members of the document that are not OpenAPI's: what a
// program has to know of this server and a schema cannot say.
type extensions struct {
	Contract  likes.Contract            `json:"x-likectl-contract"`
	ItemTypes map[string]likes.ItemType `json:"x-likectl-item-types"`
}

// newDocument returns the document of an API with these item types and this
// contract. The embedded one has the default types and no contract; a client made
// from it must know the real ones.
func newDocument(types likes.ItemTypes, contract likes.Contract) (document, error) {
	names := types.Names()
	if len(names) == 0 {
		return document{}, likes.Errorf(likes.ErrInvalid, "no item types, want at least one")
	}
	// A name needs no escapes (likes.NewItemTypes). The colon tells the examples
	// from the method post.
	text := strings.NewReplacer(
		`["post", "reel", "comment"]`, `["`+strings.Join(names, `","`)+`"]`,
		`: "post"`, `: "`+names[0]+`"`,
		`"post:`, `"`+names[0]+`:`,
	).Replace(openAPI)
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return document{}, fmt.Errorf("openapi.json: %w", err)
	}
	own := extensions{Contract: contract, ItemTypes: make(map[string]likes.ItemType, len(names))}
	for _, name := range names {
		own.ItemTypes[name], _ = types.Type(name)
	}
	more, err := json.Marshal(own)
	if err != nil {
		return document{}, fmt.Errorf("openapi.json: contract: %w", err)
	}
	b.Truncate(b.Len() - len("}"))
	b.WriteByte(',')
	b.Write(more[len("{"):])
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
