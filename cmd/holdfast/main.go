package main

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
)

func main() {
	if !supervise.IsKeeper() {
		os.Exit(cli.Main(os.Args[1:], nil))
	}
	keeper, err := supervise.Attach()
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		os.Exit(cli.StatusUsage)
	}
	keeper.Exit(cli.Main(os.Args[1:], keeper))
}
