package version

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"likectl/pkg/likes"
)

var secret = bytes.Repeat([]byte{3}, secretSize)

func codec(tb testing.TB) *Codec {
	tb.Helper()
	c, err := New(secret)
	require.NoError(tb, err)
	return c
}

func sample() likes.Version {
	return likes.Version{
		Edge:  likes.Edge{Counter: likes.Likes, Item: likes.Item{Type: 1, ID: 123456789}, User: 42},
		Epoch: 7, Clock: 1 << 55,
	}
}

func encode(tb testing.TB, c *Codec, v likes.Version) string {
	tb.Helper()
	b, err := c.Append(nil, v)
	require.NoError(tb, err)
	return string(b)
}

func TestDecode_ReturnsWhatAppendEncoded(t *testing.T) {
	c := codec(t)
	rapid.Check(t, func(t *rapid.T) {
		v := likes.Version{
			Edge: likes.Edge{
				Counter: rapid.SampledFrom([]likes.Counter{likes.Likes, likes.Saves}).Draw(t, "counter"),
				Item: likes.Item{
					Type: likes.ItemType(rapid.Int16Range(1, 1<<15-1).Draw(t, "type")),
					ID:   likes.ItemID(rapid.Int64Range(1, 1<<63-1).Draw(t, "item")),
				},
				User: likes.UserID(rapid.Int64Range(1, 1<<63-1).Draw(t, "user")),
			},
			Epoch: likes.Epoch(rapid.Int64Range(0, 1<<63-1).Draw(t, "epoch")),
			Clock: likes.Clock(rapid.Int64Range(0, 1<<63-1).Draw(t, "clock")),
			Mark:  likes.Mark(rapid.StringN(-1, -1, MaxMark).Draw(t, "mark")),
		}
		b, err := c.Append([]byte("x"), v)
		if err != nil || b[0] != 'x' || len(b)-1 > MaxToken {
			t.Fatalf("token %q: %v", b, err)
		}
		if got, err := c.Decode(string(b[1:])); err != nil || got != v {
			t.Fatalf("decoded %+v (%v), want %+v", got, err, v)
		}
	})
}

func TestAppend_RefusesWhatDecodeWould(t *testing.T) {
	c := codec(t)
	for name, change := range map[string]func(*likes.Version){
		"no edge":        func(v *likes.Version) { v.Edge = likes.Edge{} },
		"negative clock": func(v *likes.Version) { v.Clock = -1 },
		"negative epoch": func(v *likes.Version) { v.Epoch = -1 },
		"long mark":      func(v *likes.Version) { v.Mark = likes.Mark(strings.Repeat("m", MaxMark+1)) },
	} {
		v := sample()
		change(&v)
		b, err := c.Append([]byte("kept"), v)
		require.ErrorIs(t, err, likes.ErrInvalid, name)
		require.Equal(t, "kept", string(b), name)
	}
}

func TestDecode_RefusesEveryChange(t *testing.T) {
	c := codec(t)
	v := sample()
	v.Mark = "3/1024"
	token := encode(t, c, v)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)
	refused := func(token, what string, args ...any) {
		t.Helper()
		_, err := c.Decode(token)
		require.ErrorIs(t, err, likes.ErrInvalid, append([]any{what}, args...)...)
	}
	for bit := range len(raw) * 8 {
		flipped := bytes.Clone(raw)
		flipped[bit/8] ^= 1 << (bit % 8)
		refused(base64.RawURLEncoding.EncodeToString(flipped), "bit %d", bit)
	}
	for n := range len(token) {
		refused(token[:n], "cut to %d", n)
		refused(token[:n]+"\n"+token[n:], "line break at %d", n)
	}
	for name, other := range map[string]string{
		"padding": token + "=", "lengthened": token + "AAAA", "twice": token + token, "blank": " " + token,
		"not base64": strings.Repeat("*", len(token)), "huge": strings.Repeat("A", 1<<20),
		"spare bits of base64": token[:len(token)-1] + string(token[len(token)-1]+1),
		"standard alphabet":    strings.NewReplacer("-", "+", "_", "/").Replace(token) + "+",
	} {
		refused(other, name)
	}
	another, err := New(bytes.Repeat([]byte{4}, secretSize))
	require.NoError(t, err)
	refused(encode(t, another, v), "another key")
}

// The key is derived, so a tag made with the secret itself, as other tokens of
// the same secret are, is good for nothing here.
func TestNew_DoesNotUseTheSecretAsKey(t *testing.T) {
	s, ok := codec(t).scratch.Get().(*scratch)
	require.True(t, ok)
	plain := hmac.New(sha256.New, secret)
	plain.Write([]byte("body"))
	require.NotEqual(t, plain.Sum(nil)[:tagLen], s.tag([]byte("body")))
	_, err := New(secret[1:])
	require.ErrorIs(t, err, likes.ErrInvalid)
}

func FuzzDecode(f *testing.F) {
	c := codec(f)
	f.Add(encode(f, c, sample()))
	f.Add("")
	f.Add(strings.Repeat("A", MaxToken))
	f.Fuzz(func(t *testing.T, token string) {
		v, err := c.Decode(token)
		if err != nil {
			require.ErrorIs(t, err, likes.ErrInvalid)
			return
		}
		require.Equal(t, token, encode(t, c, v), "of one version there is one spelling")
	})
}

func BenchmarkCodec(b *testing.B) {
	c, v, buf := codec(b), sample(), make([]byte, 0, MaxToken)
	token := encode(b, c, v)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Append(buf, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Decode(token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
