package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"time"

	"likectl/pkg/auth"
	"likectl/pkg/client"
	"likectl/pkg/httpapi"
	"likectl/pkg/likes"
	"likectl/pkg/memory"
	"likectl/pkg/version"
)

func ExampleOpen() {
	ctx := context.Background()
	server, token := exampleServer(42) // in life: likectl serve, likectl token --user 42
	defer server.Close()

	cfg := client.Default(server.URL, client.Static(token))
	cfg.User = 42
	c, err := client.Open(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	item := likes.Item{Type: 1, ID: 7} // post 7
	edge := likes.Edge{Counter: likes.Likes, Item: item, User: 42}
	r := c.Apply(ctx, []likes.Mutation{{Op: likes.Set, Edge: edge}})[0]
	if e, ok := errors.AsType[*client.Error](r.Err); ok {
		fmt.Println("try again in", e.RetryAfter)
		return
	}
	fmt.Println(r.Outcome, r.Count.N)

	// The version makes the read include the like, whichever instance answers.
	n := c.Counts(ctx, likes.Likes, []likes.Item{item}, []likes.Version{r.Version})[0]
	fmt.Println(n.N, c.Contract().Name)
	// Output:
	// changed 1
	// 1 a map and a mutex
}

// exampleServer is the API over a service in memory, and a token of a user.
func exampleServer(user likes.UserID) (*httptest.Server, string) {
	secret, log := make([]byte, auth.SecretSize), slog.New(slog.DiscardHandler)
	authority, err1 := auth.New(auth.Default(secret))
	versions, err2 := version.New(secret)
	api, err3 := httpapi.New(httpapi.Config{
		Service: memory.New(), Auth: authority, Versions: versions, Types: likes.DefaultItemTypes(),
		Health: httpapi.NewHealth(log), Limits: httpapi.DefaultLimits(), Logger: log,
	})
	token, err4 := authority.Mint(user, auth.User, time.Hour)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		panic(err)
	}
	return httptest.NewServer(api), token
}
