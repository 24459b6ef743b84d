package core_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(workerEnv); order != "" {
		if err := work(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.VerifyTestMain(m)
}
