package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"likectl/pkg/likes"
)

// Config is how a server is reached, and for whom.
type Config struct {
	// URL is where the API is, such as http://127.0.0.1:8080. A path is kept, for
	// gateways that have one in front of /v1.
	URL string
	// Token returns the bearer token of a request; it is asked before each one, so
	// that tokens may be short-lived. Nil: none is sent, which leaves counts and
	// views.
	Token func(context.Context) (string, error)
	// User is whose token that is: calls for other users are ErrInvalid. 0: a
	// service's, which may act for every user.
	User likes.UserID
	// HTTP sends the requests, without following redirects; nil: a client of its
	// own with MaxConns connections.
	HTTP *http.Client
	// MaxConns is how many connections there are at most. Calls beyond wait.
	MaxConns int
	// Timeout bounds each request, in addition to the context's deadline. It is
	// longer than a server takes to give up (http.request_timeout).
	Timeout time.Duration
}

// Default returns the configuration of a client unless something else is wanted:
// a service's token, 64 connections, 10 s for a request.
func Default(baseURL string, token func(context.Context) (string, error)) Config {
	return Config{URL: baseURL, Token: token, MaxConns: 64, Timeout: 10 * time.Second}
}

// Static returns the Token function of a token that does not change.
func Static(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Client is the service of one server, for one user or a service. It is safe for
// concurrent use.
type Client struct {
	cfg      Config
	base     string
	http     *http.Client
	contract likes.Contract
	types    likes.ItemTypes
	// after are the tokens of the versions that writes are later than.
	after []string
}

var _ likes.Service = (*Client)(nil)

// description is what the client needs of /openapi.json.
type description struct {
	Contract  *likes.Contract           `json:"x-likectl-contract"`
	ItemTypes map[string]likes.ItemType `json:"x-likectl-item-types"`
}

// Open returns a client of the server at cfg.URL after it has asked it for its
// contract and item types. A configuration that is wrong is ErrInvalid; a server
// that is not reached, or is no likectl that this client knows, is ErrUnavailable.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	base, err := baseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.User < 0:
		return nil, errCaller(cfg.User)
	case cfg.MaxConns < 1:
		return nil, likes.Errorf(likes.ErrInvalid, "max connections %d, want at least 1", cfg.MaxConns)
	case cfg.Timeout <= 0:
		return nil, likes.Errorf(likes.ErrInvalid, "timeout %v, want more than 0", cfg.Timeout)
	}
	c := &Client{cfg: cfg, base: base, http: newHTTP(cfg)}
	var d description
	if _, err := c.call(ctx, request{method: http.MethodGet, path: "/openapi.json", public: true}, &d); err != nil {
		c.Close()
		return nil, err
	}
	if c.types, err = likes.NewItemTypes(d.ItemTypes); err != nil || len(d.ItemTypes) == 0 || d.Contract == nil || d.Contract.Ack == 0 {
		c.Close()
		return nil, likes.Errorf(likes.ErrUnavailable, "%s/openapi.json does not describe a likectl that this client knows: it needs x-likectl-contract and x-likectl-item-types", base)
	}
	c.contract = *d.Contract
	return c, nil
}

// baseURL returns the URL that paths are appended to.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", likes.Errorf(likes.ErrInvalid, "%q is not the address of an API: want one like http://127.0.0.1:8080", text)
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), nil
}

func newHTTP(cfg Config) *http.Client {
	client := http.Client{}
	if cfg.HTTP != nil {
		client = *cfg.HTTP
	} else {
		client.Transport = &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			MaxConnsPerHost: cfg.MaxConns, MaxIdleConns: cfg.MaxConns, MaxIdleConnsPerHost: cfg.MaxConns,
			// Less than a server keeps them (http.idle_timeout), so that seldom a
			// request meets a connection that is just being closed.
			IdleConnTimeout:   30 * time.Second,
			ForceAttemptHTTP2: true,
		}
	}
	// The API has no redirects: what has some is not the API, and a token must not
	// follow where it points.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// Close closes the idle connections. Calls after it open new ones.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Contract implements [likes.Service]: what the server said at [Open].
func (c *Client) Contract() likes.Contract { return c.contract }

// ItemTypes returns the item types that the server had at [Open].
func (c *Client) ItemTypes() likes.ItemTypes { return c.types }

// After returns a client over the same connections whose writes are later than
// the versions, which must be of this service and name at most 16 states: for who
// writes on after having read elsewhere, such as in another region.
func (c *Client) After(seen ...likes.Version) (*Client, error) {
	later := *c
	later.after = nil
	for _, v := range seen {
		token, err := tokenOf(v)
		if err != nil {
			return nil, err
		}
		if token != "" {
			later.after = append(later.after, token)
		}
	}
	if n := len(later.after); n > maxTokens {
		return nil, likes.Errorf(likes.ErrInvalid, "%d versions to write after, want at most %d", n, maxTokens)
	}
	return &later, nil
}

// As returns a client over the same connections for another caller: a user with
// the user's own token, or 0 with a service's. A gateway makes one per request.
func (c *Client) As(user likes.UserID, token func(context.Context) (string, error)) (*Client, error) {
	if user < 0 {
		return nil, errCaller(user)
	}
	other := *c
	other.cfg.User, other.cfg.Token, other.after = user, token, nil
	return &other, nil
}

func errCaller(user likes.UserID) error {
	return likes.Errorf(likes.ErrInvalid, "user %d, want 0 for a service's token or the id of the token's user", user)
}
