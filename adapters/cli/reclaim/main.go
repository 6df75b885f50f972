// Command reclaim decides whether a task directory on somebody else's machine
// may be deleted, and proves it from a record. See the README.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kandev/reclaim/adapters/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(cli.Run(ctx, cli.Invocation{Args: os.Args[1:], Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
}
