package watermilllock_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) {
	// The Deduplicator of the baseline has no way to end this.
	const cleaner = "github.com/ThreeDotsLabs/watermill/message/router/middleware.(*mapExpiringKeyRepository).cleanOutLoop"
	testkit.VerifyWaitingMain(m, goleak.IgnoreTopFunction(cleaner))
}
