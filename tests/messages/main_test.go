package messages

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(workerVariable); text != "" {
		runWorker(text)
		return
	}
	testkit.VerifyWaitingMain(m, ignored...)
}
