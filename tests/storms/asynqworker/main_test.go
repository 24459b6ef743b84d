package asynqworker_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/tests/storms/asynqworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMain makes the test binary a server if it is told to be one.
func TestMain(m *testing.M) {
	if order := os.Getenv(asynqworker.Env); order != "" {
		if err := asynqworker.Work(order, os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	logging.Disable() // it would tell of every dial while Redis is down
	testkit.VerifyTestMain(m)
}
