package cronworker_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMain makes the test binary a replica if it is told to be one.
func TestMain(m *testing.M) {
	if order := os.Getenv(cronworker.Env); order != "" {
		if err := cronworker.Work(order, os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.VerifyTestMain(m)
}
