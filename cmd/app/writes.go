package app

import (
	"time"

	"likectl/pkg/httpapi"
	"likectl/pkg/probe"
	"likectl/pkg/store"
)

// watchWrites adds the dependency "writes": a store that answers reads may take no
// writes. It learns from the outcome of every transaction, which it returns the hook
// for; next, unless nil, is told as well.
func (t *Tier) watchWrites(db store.WriteProber, next flushed) flushed {
	writes := probe.NewWrites(db.ProbeWrite)
	t.Probes = append(t.Probes, httpapi.Probe{Name: "writes", Check: writes.Check})
	return func(kind string, n int, took time.Duration, err error) {
		writes.Done(err)
		if next != nil {
			next(kind, n, took, err)
		}
	}
}

// flushed is told of a transaction of n mutations of a kind.
type flushed = func(kind string, n int, took time.Duration, err error)
