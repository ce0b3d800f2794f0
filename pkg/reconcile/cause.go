package reconcile

// What is known of a drift's cause from the drift alone. No store of edges and
// counters in one transaction drifts by itself, so all three are the work of
// something else than the service: statements by hand, a restore of one table, a
// damaged page.
const (
	// Missing: the counter's row is gone.
	Missing = "missing"
	// Excess: the counter is above its edges; it was raised, or edges were
	// removed.
	Excess = "excess"
	// Deficit: the counter is below its edges; it was lowered, or edges were
	// added.
	Deficit = "deficit"
)

// Causes are all causes.
func Causes() []string { return []string{Missing, Excess, Deficit} }

// Cause returns what is known of the drift's cause.
func (f Found) Cause() string {
	switch {
	case f.Missing:
		return Missing
	case f.Difference() < 0:
		return Excess
	default:
		return Deficit
	}
}
