package once_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestEndBehindABegin: the completion of an attempt without a lease is not confirmed when another begin of the same
// client is granted, whose answer is late. The begin is taken back.
func TestEndBehindABegin(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(context.Context, *core.Attempt) error{
		"complete": func(ctx context.Context, a *core.Attempt) error { return a.Complete(ctx, []byte("done")) },
		"hold":     func(ctx context.Context, a *core.Attempt) error { return a.Hold(ctx, "reason") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			relay := server.Relay()
			coretest.LoadOnce(t, server.Client())
			past, rdb := coretest.NewClient(t, server.Client()).Once("name"), relay.Client()
			once := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Once("name")
			a := coretest.MustBegin(t, once)
			coretest.Abandon(t, server.Client(), "name")
			connect(rdb, 6)
			relay.Hold(testkit.ToClient)
			begun := make(chan error, 1)
			go func() { _, err := once.Begin(ctx); begun <- err }()
			testkit.Eventually(t, coretest.Within, "the grant", func() bool { return coretest.MustPeek(t, past).Attempt == 2 })
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			coretest.WantErr(t, end(short, a), core.ErrUnavailable)
			relay.Deliver()
			err := coretest.Receive(t, begun)
			if r := coretest.WantRecorded(t, past, a); r.State == core.StateCompleted {
				coretest.WantErr(t, err, core.ErrCompleted)
			} else {
				coretest.WantErr(t, err, core.ErrOutcomeUnknown)
			}
		})
	}
}

// connect leaves so many connections in a pool. A new one would wait for the answers to its first commands.
func connect(rdb *redis.Client, connections int) {
	var all sync.WaitGroup
	for range connections {
		all.Go(func() { rdb.Do(context.Background(), "BLPOP", "nothing", "0.2") })
	}
	all.Wait()
}
