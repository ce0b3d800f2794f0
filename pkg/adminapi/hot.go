package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"likectl/pkg/hot"
	"likectl/pkg/likes"
)

// MaxHot is how many hot items can be asked for at once.
const MaxHot = 100

// HotItem is a counter that is written often, as it is shown.
type HotItem struct {
	Counter  string `json:"counter"`
	ItemType string `json:"item_type"`
	ItemID   string `json:"item_id"`
	// PerSecond is the greatest possible rate of writes, over the last minute;
	// the true one is at most Error less.
	PerSecond float64 `json:"per_second"`
	Error     float64 `json:"error"`
}

type hotAnswer struct {
	WindowSeconds int       `json:"window_seconds"`
	Items         []HotItem `json:"items"`
}

// hot answers the most written counters, hidden ones too: who asks is an
// administrator.
func (h *Handler) hot(w http.ResponseWriter, r *http.Request) {
	n := 10
	for name, values := range r.URL.Query() {
		var err error
		if n, err = strconv.Atoi(values[0]); name != "n" || err != nil || n < 1 || n > MaxHot {
			h.refuse(w, http.StatusBadRequest, "query: %.40s=%.40s: want n=1 to %d", name, values[0], MaxHot)
			return
		}
	}
	names := make(map[likes.ItemType]string, len(h.config.Types))
	for name, number := range h.config.Types {
		names[likes.ItemType(number)] = name
	}
	answer := hotAnswer{WindowSeconds: int(hot.Minute.Seconds()), Items: []HotItem{}}
	for _, rate := range h.config.Hot.Top(n, hot.Minute) {
		name, ok := names[rate.Item.Type]
		if !ok {
			name = strconv.Itoa(int(rate.Item.Type))
		}
		answer.Items = append(answer.Items, HotItem{
			Counter: rate.Counter.String(), ItemType: name, ItemID: strconv.FormatInt(int64(rate.Item.ID), 10),
			PerSecond: rate.PerSecond, Error: rate.Error,
		})
	}
	h.answer(w, http.StatusOK, "application/json", answer)
}

// Hot returns the n counters that are written most often, 1 to MaxHot.
func (c *Client) Hot(ctx context.Context, n int) ([]HotItem, error) {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	var answer hotAnswer
	query := url.Values{"n": {strconv.Itoa(n)}}
	err := c.call(ctx, http.MethodGet, pathHot+"?"+query.Encode(), nil, &answer)
	return answer.Items, err
}
