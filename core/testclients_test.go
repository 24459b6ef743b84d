package core_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

const (
	// within is how long anything may take on a busy machine.
	within = time.Minute
	// long is a TTL that outlasts every test.
	long = 5 * time.Minute
)

// newClient returns a lock client that is closed with the test. It writes no instance, unless an option says so. Why: many
// tests count commands and keys.
func newClient(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithInstance("")}, opts...)...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}
