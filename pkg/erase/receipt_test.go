package erase_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"likectl/pkg/erase"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

func TestAReceiptThatWasChangedIsFound(t *testing.T) {
	s, _ := open(t, 1, 3)
	_, err := run(t, s, fast(user))
	require.NoError(t, err)
	l := registry(t, s, 1)
	good, err := l.Receipt(t.Context(), user)
	require.NoError(t, err)
	what := func(r erase.Receipt, l *erase.Local, u likes.UserID) (out []string) {
		found, err := l.Verify(t.Context(), u, &r)
		require.NoError(t, err)
		for _, f := range found {
			out = append(out, f.What)
		}
		return out
	}
	require.Empty(t, what(good, l, user))

	fields := reflect.TypeFor[erase.Receipt]()
	for i := range fields.NumField() {
		bad := good
		switch f := reflect.ValueOf(&bad).Elem().Field(i).Addr().Interface().(type) {
		case *int:
			*f++
		case *int64:
			*f++
		case *bool:
			*f = !*f
		case *string:
			*f = "x" + *f
		case *time.Time:
			*f = f.Add(time.Microsecond)
		default:
			require.Fail(t, "a field of a new kind", "%v", fields.Field(i))
		}
		require.Equal(t, []string{"signature"}, what(bad, l, user), fields.Field(i).Name)
	}
	require.Equal(t, []string{"signature"}, what(good, registry(t, s, 2), user), "another secret")

	// Signed well, but of somebody else, or of another history of the store.
	_, err = run(t, s, fast(8))
	require.NoError(t, err)
	require.Equal(t, []string{"receipt"}, what(good, l, 8))
	found, err := l.Verify(t.Context(), 8, &good)
	require.NoError(t, err)
	require.Contains(t, found[0].Text, "another user")
	other, err := registry(t, more{s}, 1).Receipt(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, []string{"receipt"}, what(other, l, user))
	// Kept for longer than what is configured now: that is what was true then.
	l2, err := erase.NewLocal(s, erase.ReceiptConfig{Secret: bytes.Repeat([]byte{1}, 32), Store: "s", LogRetention: 1, BackupRetention: 1})
	require.NoError(t, err)
	require.Empty(t, what(good, l2, user))
}

// more is a store whose record says that more was erased.
type more struct{ erase.Store }

func (m more) Erasure(ctx context.Context, u likes.UserID) (store.Erasure, bool, error) {
	e, begun, err := m.Store.Erasure(ctx, u)
	e.Edges++
	return e, begun, err
}

func TestReceiptsAreReadStrictly(t *testing.T) {
	s, _ := open(t, 1, 3)
	_, err := run(t, s, fast(user))
	require.NoError(t, err)
	want, err := registry(t, s, 1).Receipt(t.Context(), user)
	require.NoError(t, err)
	text, err := json.MarshalIndent(want, "", "\t")
	require.NoError(t, err)
	got, err := erase.ReadReceipt(bytes.NewReader(append(text, "\n \n"...)))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NotContains(t, string(text), `"7"`)
	for name, bad := range map[string]string{
		"empty": "", "half": string(text[:100]), "two": string(text) + string(text), "list": "[" + string(text) + "]",
		"unknown": strings.Replace(string(text), `"edges"`, `"edgez"`, 1), "much": strings.Repeat(" ", 1<<20) + string(text),
		// Whoever reads the first of two, or knows no case, would be shown another number.
		"twice":   strings.Replace(string(text), `"edges": 3`, `"edges": 900, "edges": 3`, 1),
		"case":    strings.Replace(string(text), `"edges": 3`, `"Edges": 900, "edges": 3`, 1),
		"null":    strings.Replace(string(text), `"edges": 3`, `"edges": 3, "edges": null`, 1),
		"missing": strings.Replace(string(text), `"tombstones": 1,`, "", 1),
	} {
		require.NotEqual(t, string(text), bad)
		_, err := erase.ReadReceipt(strings.NewReader(bad))
		require.ErrorIs(t, err, likes.ErrInvalid, name)
	}
}

// TestNoDigitOfAReceiptCanBeChanged: those behind the microsecond neither.
func TestNoDigitOfAReceiptCanBeChanged(t *testing.T) {
	s, _ := open(t, 1, 3)
	_, err := run(t, s, fast(user))
	require.NoError(t, err)
	l := registry(t, s, 1)
	good, err := l.Receipt(t.Context(), user)
	require.NoError(t, err)
	for name, change := range map[string]func(*erase.Receipt){
		"begun":    func(r *erase.Receipt) { r.BegunAt = r.BegunAt.Add(1) },
		"finished": func(r *erase.Receipt) { r.FinishedAt = r.FinishedAt.Add(999) },
		"logs":     func(r *erase.Receipt) { r.LogExpiresAt = r.LogExpiresAt.Add(1) },
		"backups":  func(r *erase.Receipt) { r.BackupsExpireAt = r.BackupsExpireAt.Add(1) },
	} {
		r := good
		change(&r)
		found, err := l.Verify(t.Context(), user, &r)
		require.NoError(t, err)
		require.Len(t, found, 1, name)
		require.Equal(t, "signature", found[0].What, name)
	}
	elsewhere := good
	elsewhere.BegunAt = good.BegunAt.In(time.FixedZone("", 3600))
	found, err := l.Verify(t.Context(), user, &elsewhere)
	require.NoError(t, err)
	require.Empty(t, found, "the same instant")
}

func TestReceiptsNeedASecretAndRetentions(t *testing.T) {
	good := erase.ReceiptConfig{Secret: make([]byte, 32), LogRetention: 1, BackupRetention: 1}
	for _, spoil := range []func(*erase.ReceiptConfig){
		func(c *erase.ReceiptConfig) { c.Secret = nil },
		func(c *erase.ReceiptConfig) { c.Secret = make([]byte, 31) },
		func(c *erase.ReceiptConfig) { c.LogRetention = 0 },
		func(c *erase.ReceiptConfig) { c.BackupRetention = -1 },
	} {
		c := good
		spoil(&c)
		_, err := erase.NewLocal(nil, c)
		require.ErrorIs(t, err, likes.ErrInvalid)
	}
}
