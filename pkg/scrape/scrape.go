// Package scrape reads the metrics of a running server, those of package
// telemetry, and turns two readings into rates and latencies between them.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"likectl/pkg/likes"
)

const (
	// maxAnswer bounds an answer: a server's metrics have some 100 KB.
	maxAnswer = 16 << 20
	// timeout bounds a scrape; a healthy one takes milliseconds.
	timeout = 10 * time.Second
)

// Reading is what a server's instruments showed at an instant.
type Reading struct {
	at       time.Time
	families map[string]*dto.MetricFamily
}

// Client reads one server's metrics. It is safe for concurrent use.
type Client struct {
	url  string
	http *http.Client
}

// NewClient returns a client of the admin listener with this base URL, without a
// slash at its end. Close it when done.
func NewClient(base string) *Client {
	return &Client{url: base + "/metrics", http: &http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: timeout}}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Read reads the metrics once. Its errors are ErrUnavailable.
func (c *Client) Read(ctx context.Context) (*Reading, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, likes.Errorf(likes.ErrUnavailable, "no answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, likes.Errorf(likes.ErrUnavailable, "%s: %s; want the admin listener of a likectl", c.url, response.Status)
	}
	families, err := parse(io.LimitReader(response.Body, maxAnswer), expfmt.ResponseFormat(response.Header))
	if err == nil && families[requests] == nil && families[operations] == nil && families[queued] == nil {
		err = errors.New("these are no metrics of likectl")
	}
	if err != nil {
		return nil, likes.Errorf(likes.ErrUnavailable, "%s: %w", c.url, err)
	}
	return &Reading{at: time.Now(), families: families}, nil
}

func parse(r io.Reader, format expfmt.Format) (map[string]*dto.MetricFamily, error) {
	if format.FormatType() == expfmt.TypeUnknown {
		return nil, errors.New("the answer is not in a format of Prometheus")
	}
	decoder := expfmt.NewDecoder(r, format)
	families := make(map[string]*dto.MetricFamily)
	for {
		f := &dto.MetricFamily{}
		err := decoder.Decode(f)
		if errors.Is(err, io.EOF) {
			return families, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the metrics: %w", err)
		}
		families[f.GetName()] = f
	}
}
