package interop_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/lab/interop"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMain makes the test program a worker if it is told to be one.
func TestMain(m *testing.M) {
	if os.Getenv(interop.Env) != "" {
		logging.Disable()
		if err := interop.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.VerifyTestMain(m)
}
