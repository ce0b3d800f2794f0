package top

import (
	"context"
	"fmt"
	"strings"

	"likectl/cmd/app"
	"likectl/pkg/adminapi"
	"likectl/pkg/scrape"
)

// hotShown is how many hot items a view has.
const hotShown = 10

// view is what is shown of an interval.
type view struct {
	scrape.View
	// Hot is null if it is not known, and HotError says why.
	Hot      []adminapi.HotItem `json:"hot_items"`
	HotError string             `json:"hot_items_error,omitempty"`
}

// hotItems asks the server for its hot items. The metrics need no token, these
// do: without the server's secret there is a view all the same.
type hotItems struct {
	client *adminapi.Client
	err    error
}

func openHot(o Options) hotItems {
	client, err := app.AdminClient(o.Config, o.Admin)
	return hotItems{client, err}
}

func (h hotItems) close() {
	if h.client != nil {
		h.client.Close()
	}
}

func (h hotItems) add(ctx context.Context, v *view) {
	err := h.err
	if err == nil {
		v.Hot, err = h.client.Hot(ctx, hotShown)
	}
	if err != nil {
		v.HotError = err.Error()
	}
}

// hotText lists the hot items for people.
func hotText(v view) string {
	if v.HotError != "" {
		return "\n  hot items: not shown: " + v.HotError + "\n"
	}
	if len(v.Hot) == 0 {
		return "\n  hot items: none, nothing was written in the last minute\n"
	}
	var b strings.Builder
	b.WriteString("\n  hot items of the last minute, writes a second\n")
	for _, i := range v.Hot {
		// Most rates are known to less than what is printed of them.
		less := ""
		if i.Error >= 0.1 {
			less = fmt.Sprintf("  or up to %s less", rate(i.Error))
		}
		fmt.Fprintf(&b, "  %8s  %-5s  %s:%s%s\n", rate(i.PerSecond), i.Counter, i.ItemType, i.ItemID, less)
	}
	return b.String()
}
