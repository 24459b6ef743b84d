package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestValidityCountsFromSending: neither a grant nor Extend is trusted for longer because the reply was late.
func TestValidityCountsFromSending(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks := newClient(t, relay.Client())
	warm := mustLock(t, locks.Mutex("warm"))
	if err := warm.Extend(context.Background(), long); err != nil {
		t.Fatal(err)
	}
	const late = time.Second
	var sent time.Time
	slowly := func(call func() error) {
		nth(relay, "lock:name", 1, func() {
			sent = time.Now()
			relay.Hold(testkit.ToClient)
			time.AfterFunc(late, relay.Deliver)
		})
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	var lease *core.Lease
	slowly(func() (err error) {
		lease, err = locks.Mutex("name").Lock(context.Background(), core.WithFixedTTL(time.Minute))
		return err
	})
	if until := lease.ValidUntil(); until.After(sent.Add(time.Minute + late/2)) {
		t.Errorf("granted until %v after the end", until.Sub(sent.Add(time.Minute)))
	}
	slowly(func() error { return lease.Extend(context.Background(), long) })
	if until := lease.ValidUntil(); until.After(sent.Add(long + late/2)) {
		t.Errorf("extended until %v after the end", until.Sub(sent.Add(long)))
	}
}
