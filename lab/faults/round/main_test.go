package round_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/lab/faults/worker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMain makes the test binary a worker if it is told to be one.
func TestMain(m *testing.M) {
	if order := os.Getenv(worker.Env); order != "" {
		if err := worker.Work(order, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.VerifyTestMain(m)
}
