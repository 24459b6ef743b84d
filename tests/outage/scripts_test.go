package outage_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestNoRetriesBehindOurBack: go-redis sends each request once, whatever its MaxRetries.
func TestNoRetriesBehindOurBack(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	var end core.AcquireEnd
	locks := coretest.NewClient(t, relay.Client(), core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, e core.AcquireEnd) { end = e },
	}))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	relay.LoseReplies("lock:name", 2, testkit.Closed)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	if relay.LostReplies() != 2 || end.Asked != 3 {
		t.Errorf("%d requests counted, %d replies lost", end.Asked, relay.LostReplies())
	}
}

// TestScriptsForgottenInAPipeline: commands that share a round trip find that the server has forgotten them.
func TestScriptsForgottenInAPipeline(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithHooks(core.Hooks{AcquireEnd: func(_ context.Context, e core.AcquireEnd) {
		if e.Asked != 1 {
			t.Errorf("%q: asked %d times", e.Name, e.Asked)
		}
	}}))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	var flushed atomic.Int32
	relay.OnRequest(func(chunk []byte) {
		if bytes.Count(chunk, []byte("evalsha")) > 1 {
			flushed.Add(1)
			rdb.ScriptFlush(context.Background())
		}
	})
	relay.Hold(testkit.ToClient)
	time.AfterFunc(200*time.Millisecond, relay.Deliver)
	var done []<-chan error
	for i := range 20 { // more than fly alone
		done = append(done, coretest.LockLater(locks.Mutex(string(rune('a'+i)))))
	}
	for _, d := range done {
		if err := coretest.Receive(t, d); err != nil {
			t.Error(err)
		}
	}
	if flushed.Load() == 0 {
		t.Error("nothing travelled together: the test has tested nothing")
	}
}
