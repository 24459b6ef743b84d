package watermilllock_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patient gives Redis time to reply: on a busy machine it may not do so within the default of 1 s.
var patient = msglock.WithAskTimeout(10 * time.Second)

func TestMain(m *testing.M) {
	// The Deduplicator of the baseline has no way to end this.
	const cleaner = "github.com/ThreeDotsLabs/watermill/message/router/middleware.(*mapExpiringKeyRepository).cleanOutLoop"
	testkit.VerifyWaitingMain(m, goleak.IgnoreTopFunction(cleaner))
}
