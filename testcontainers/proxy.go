package containers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// Proxy stands between a client and a server, in this process, and spoils their connection (toxiproxy).
type Proxy struct{ proxy *toxiproxy.Proxy }

// NewProxy forwards a loopback port to the upstream address until the test ends.
func NewProxy(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "proxy", "127.0.0.1:0", upstream)
	require.NoError(tb, server.Collection.Add(p, true))
	tb.Cleanup(p.Stop)
	return &Proxy{p}
}

// Addr is where clients connect, "127.0.0.1:port". It stays the same over Down and Up.
func (p *Proxy) Addr() string { return p.proxy.Listen }

// Latency delays every answer by d.
func (p *Proxy) Latency(tb testing.TB, d time.Duration) {
	tb.Helper()
	p.spoil(tb, "latency", "downstream", fmt.Sprintf(`{"latency":%d}`, d.Milliseconds()))
}

// DelayRequests holds back everything on its way to the server for d, also when the client has gone meanwhile.
func (p *Proxy) DelayRequests(tb testing.TB, d time.Duration) {
	tb.Helper()
	p.spoil(tb, "latency", "upstream", fmt.Sprintf(`{"latency":%d}`, d.Milliseconds()))
}

// Reset ends every connection, open or new, with a TCP reset when data next flows: towards the server the request is lost
// or not, as in life.
func (p *Proxy) Reset(tb testing.TB) {
	tb.Helper()
	p.spoil(tb, "reset_peer", "downstream", `{"timeout":0}`)
}

// LoseAnswers lets requests reach the server and swallows its answers: the client cannot know whether they took effect.
// Clear closes the connections that lived under it.
func (p *Proxy) LoseAnswers(tb testing.TB) {
	tb.Helper()
	p.spoil(tb, "timeout", "downstream", `{"timeout":0}`)
}

// BlackHole swallows both directions; connections stay open. Clear closes the connections that lived under it.
func (p *Proxy) BlackHole(tb testing.TB) {
	tb.Helper()
	p.spoil(tb, "timeout", "downstream", `{"timeout":0}`)
	p.spoil(tb, "timeout", "upstream", `{"timeout":0}`)
}

// Clear takes all of it away.
func (p *Proxy) Clear(tb testing.TB) {
	tb.Helper()
	p.proxy.Toxics.ResetToxics(context.Background())
}

// Down closes the port and all connections: clients are refused.
func (p *Proxy) Down(tb testing.TB) {
	tb.Helper()
	p.proxy.Stop()
}

// Up opens the same port again.
func (p *Proxy) Up(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, p.proxy.Start())
}

func (p *Proxy) spoil(tb testing.TB, kind, stream, attributes string) {
	tb.Helper()
	_, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(
		`{"name":%q,"type":%q,"stream":%q,"toxicity":1,"attributes":%s}`, kind+"-"+stream, kind, stream, attributes,
	)))
	require.NoError(tb, err)
}
