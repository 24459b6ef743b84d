package main

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

func main() {
	if err := worker.Work(os.Getenv(worker.Env), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
