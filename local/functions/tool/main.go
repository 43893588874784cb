// Command tool prints the path of a program that local/tools pins, after
// building it if this machine has none yet: "$(go run ./local/functions/tool
// golangci-lint)" run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/elbridge/elbridge/local/functions/toolcache"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tool:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the name of one tool, got %d arguments", len(args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cache, err := toolcache.Default(func(m string) { fmt.Fprintln(os.Stderr, m) })
	if err != nil {
		return err
	}
	path, err := cache.Ensure(ctx, args[0])
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
