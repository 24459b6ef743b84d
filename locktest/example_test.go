package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

// In a test, locktest.Start(t) does without Close.
func Example() {
	server := locktest.NewServer()
	defer server.Close()
	ctx := context.Background()
	here, elsewhere := server.NewClient(), server.NewClient() // two processes

	_ = here.Mutex("order:42").Do(ctx, func(context.Context) error {
		_, err := elsewhere.Mutex("order:42").TryLock(ctx)
		fmt.Println("refused:", errors.Is(err, core.ErrNotAcquired))
		return nil
	})
	// Output: refused: true
}

// The lock of a crashed process is free once its TTL has passed.
func ExampleServer_Disconnect() {
	server := locktest.NewServer()
	defer server.Close()
	ctx := context.Background()
	crashed, other := server.NewClient(), server.NewClient()

	_, _ = crashed.Mutex("order:42", core.WithTTL(time.Minute)).Lock(ctx)
	server.Disconnect(crashed)

	server.Advance(30 * time.Second)
	_, err := other.Mutex("order:42").TryLock(ctx)
	fmt.Println("within the TTL:", errors.Is(err, core.ErrNotAcquired))
	server.Advance(30 * time.Second)
	_, err = other.Mutex("order:42").TryLock(ctx)
	fmt.Println("after the TTL:", err)
	// Output:
	// within the TTL: true
	// after the TTL: <nil>
}

// A record of Once is forgotten after its retention.
func ExampleServer_Advance() {
	server := locktest.NewServer()
	defer server.Close()
	order := server.NewClient().Once("order:user:7", core.WithRetention(24*time.Hour))
	place := func() {
		placed, err := order.Do(context.Background(), func(context.Context) ([]byte, error) { return nil, nil })
		fmt.Println("placed now:", !placed.Replayed, "error:", err)
	}

	place()
	server.Advance(23 * time.Hour)
	place()
	server.Advance(time.Hour)
	place()
	// Output:
	// placed now: true error: <nil>
	// placed now: false error: <nil>
	// placed now: true error: <nil>
}

// What the code does while Redis is down, and afterwards.
func ExampleServer_Stop() {
	server := locktest.NewServer()
	defer server.Close()
	ctx := context.Background()
	order := server.NewClient().Mutex("order:42")

	server.Stop()
	_, err := order.TryLock(ctx)
	fmt.Println("unavailable:", errors.Is(err, core.ErrUnavailable))
	server.Start()
	_, err = order.TryLock(ctx)
	fmt.Println("afterwards:", err)
	// Output:
	// unavailable: true
	// afterwards: <nil>
}

// When the lock is lost, the context of the work is cancelled.
func ExampleServer_Flush() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient(core.WithTTL(300 * time.Millisecond)) // renewed every 100 ms

	err := locks.Mutex("report").Do(context.Background(), func(ctx context.Context) error {
		server.Flush()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println("lost:", errors.Is(err, core.ErrLeaseLost))
	// Output: lost: true
}
