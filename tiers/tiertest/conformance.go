package tiertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// instances is how many processes the suites pretend: enough that two of them
// disagree if anything is kept where only one of them sees it.
const instances = 3

// check holds a tier to one sentence of the contract.
type check struct {
	// name quotes the sentence.
	name string
	run  func(*env)
	// needs says whether the cluster can run it; nil: always.
	needs func(*env) bool
	// local: it is about what a remote service does not have.
	local bool
}

func checks() []check {
	var all []check
	for _, of := range [][]check{callChecks(), applyChecks(), replayChecks(), readChecks(), listingChecks(), tallyChecks(), faultChecks()} {
		all = append(all, of...)
	}
	return all
}

// Run holds a tier to its contract, sentence by sentence, and to the cases of
// the table that can be had at the service interface.
func Run(t *testing.T, h Harness) {
	c := h.Open(t, instances)
	contract := c.Services[0].Contract()
	require.True(t, contract.Tier == 0 || c.Auditor != nil && c.Drift != nil,
		"tier %d stores counters: its harness needs Auditor and Drift", contract.Tier)
	for _, k := range checks() {
		if k.needs != nil && !k.needs(newEnv(t, c)) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			if k.local && c.Remote {
				t.Skip("a remote service has no replays, clocks or versions of counts")
			}
			k.run(newEnv(t, c))
		})
	}
	for _, k := range serviceCases() {
		if k.needs != nil && !k.needs(newEnv(t, c)) || k.local && c.Remote {
			continue
		}
		t.Run(fmt.Sprintf("case %d", k.number), func(t *testing.T) {
			Case(t, k.number)
			k.run(newEnv(t, c))
		})
	}
	if c.Auditor != nil {
		t.Run("a full audit afterwards finds no drift", func(t *testing.T) { requireNoDrift(newEnv(t, c)) })
	}
}

func needsAuditor(e *env) bool { return e.Auditor != nil }
