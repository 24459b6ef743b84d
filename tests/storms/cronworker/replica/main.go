package main

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
)

func main() {
	if err := cronworker.Work(os.Getenv(cronworker.Env), os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
