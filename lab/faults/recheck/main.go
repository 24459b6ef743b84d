package main

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/lab/faults/check"
	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
)

func main() {
	failed := len(os.Args) < 2
	for _, path := range os.Args[1:] {
		right, err := recheck(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		failed = failed || !right
	}
	if failed {
		os.Exit(1)
	}
}

// recheck judges the history in a file, by the checkers and by the models. It returns true if neither finds anything wrong.
func recheck(path string) (right bool, err error) {
	events, err := history.ReadFile(path)
	if err != nil {
		return false, err
	}
	report := check.Check(events)
	fmt.Printf("%s: ", path)
	report.Print(os.Stdout)
	models := linear.Check(events)
	models.Print(os.Stdout)
	pictures, err := models.Draw(path)
	for _, picture := range pictures {
		fmt.Println("picture:", picture)
	}
	return len(report.Violations) == 0 && len(models.Illegal) == 0, err
}
