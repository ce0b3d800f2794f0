// Command likectl is a like counter: "user U likes item X, once" and "X has N
// likes", as one binary. See `likectl help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"likectl/cmd/cli"
	"likectl/cmd/root"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := root.NewCmd().ExecuteContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && cli.CodeOf(err) == cli.Failure {
		// Where a command was does not matter: while it opened its store, too, it
		// was stopped and has not failed.
		err = cli.WithCode(cli.Interrupted, err)
	}
	stop()
	if err != nil && !cli.IsReported(err) {
		fmt.Fprintln(os.Stderr, "likectl:", err)
	}
	os.Exit(cli.CodeOf(err))
}
