package memory_test

import (
	"testing"

	"likectl/pkg/memory"
	"likectl/tiers/tiertest"
)

// harness pretends instances: all of them are the one service, whose state is
// as shared as state can be.
func harness() tiertest.Harness {
	return tiertest.Harness{Open: func(_ testing.TB, instances int) *tiertest.Cluster {
		s := memory.New()
		c := &tiertest.Cluster{}
		for range instances {
			c.Services = append(c.Services, s)
		}
		return c
	}}
}

func TestContract(t *testing.T) { tiertest.Run(t, harness()) }

func TestMetamorphic(t *testing.T) { tiertest.Metamorphic(t, harness()) }

func TestConcurrent(t *testing.T) { tiertest.Concurrent(t, harness()) }

func TestFirstLikes(t *testing.T) {
	s := memory.New()
	tiertest.FirstLikes(t, s, s, 500, nil)
}
