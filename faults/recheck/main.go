package main

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/faults/check"
	"github.com/holdfast-go/holdfast/faults/history"
)

func main() {
	failed := len(os.Args) < 2
	for _, path := range os.Args[1:] {
		events, err := history.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		report := check.Check(events)
		fmt.Printf("%s: ", path)
		report.Print(os.Stdout)
		failed = failed || len(report.Violations) > 0
	}
	if failed {
		os.Exit(1)
	}
}
