package httpapi

import "context"

// Ready says whether every dependency answers, as /readyz does. It waits for them
// a second at most.
func (h *Health) Ready(ctx context.Context) bool {
	ready, _ := h.check(context.WithoutCancel(ctx), nil)
	return ready
}
