package client

import (
	"likectl/pkg/likes"
)

// maxTokens is how many version tokens the API takes in one request.
const maxTokens = 16

// tokenOf returns the token in a version, "" if it names no state.
func tokenOf(v likes.Version) (string, error) {
	if v.Mark == "" && v.Clock == 0 {
		return "", nil
	}
	if v.Mark == "" || v.Clock != 0 {
		return "", errVersion(v)
	}
	for _, c := range []byte(v.Mark) { // a comma would make two of it
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return "", errVersion(v)
		}
	}
	return string(v.Mark), nil
}

func errVersion(v likes.Version) error {
	return likes.Errorf(likes.ErrInvalid, "version of %v: it is of another service: only the versions in this client's results can be sent", v.Edge)
}

// tokensOf returns the tokens of the items. Versions of other items are not sent:
// the service would ignore them.
func tokensOf(items []likes.Item, seen []likes.Version) (map[likes.Item][]string, error) {
	if len(seen) == 0 {
		return nil, nil
	}
	tokens := make(map[likes.Item][]string, len(items))
	for _, item := range items {
		tokens[item] = nil
	}
	for _, v := range seen {
		known, asked := tokens[v.Edge.Item]
		if !asked {
			continue
		}
		token, err := tokenOf(v)
		if err != nil {
			return nil, err
		}
		if token == "" {
			continue
		}
		if len(known) == maxTokens {
			return nil, likes.Errorf(likes.ErrInvalid, "more than %d versions of item %d:%d", maxTokens, v.Edge.Item.Type, v.Edge.Item.ID)
		}
		tokens[v.Edge.Item] = append(known, token)
	}
	return tokens, nil
}

// part is what one request asks for: positions in the items of a call, and the
// tokens that belong to them.
type part struct {
	at     []int
	tokens []string
}

// split divides the items of a call into parts that a request can carry: of one
// item type where byType says so, and with few enough tokens. All positions of
// one item are in the same part.
func split(items []likes.Item, tokens map[likes.Item][]string, byType bool) []*part {
	var all []*part
	open := map[likes.ItemType]*part{}
	placed := make(map[likes.Item]*part, len(items))
	for i, item := range items {
		p := placed[item]
		if p == nil {
			var key likes.ItemType
			if byType {
				key = item.Type
			}
			p = open[key]
			if p == nil || len(p.tokens)+len(tokens[item]) > maxTokens {
				p = &part{}
				open[key] = p
				all = append(all, p)
			}
			p.tokens = append(p.tokens, tokens[item]...)
			placed[item] = p
		}
		p.at = append(p.at, i)
	}
	return all
}
