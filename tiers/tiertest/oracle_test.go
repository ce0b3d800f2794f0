package tiertest_test

import (
	"testing"

	"likectl/pkg/memory"
	"likectl/tiers/tiertest"
)

// The oracle passes every suite that tiers pass.

// oracle pretends instances: all of them are the one service, whose state is
// as shared as state can be.
func oracle() tiertest.Harness {
	return tiertest.Harness{Open: func(_ testing.TB, instances int) *tiertest.Cluster {
		s := memory.New()
		c := &tiertest.Cluster{}
		for range instances {
			c.Services = append(c.Services, s)
		}
		return c
	}}
}

func TestOracleConformance(t *testing.T) { tiertest.Run(t, oracle()) }

func TestOracleMetamorphic(t *testing.T) { tiertest.Metamorphic(t, oracle()) }

func TestOracleConcurrent(t *testing.T) { tiertest.Concurrent(t, oracle()) }

func TestOracleFirstLikes(t *testing.T) {
	s := memory.New()
	tiertest.FirstLikes(t, s, s, 500, nil)
}
