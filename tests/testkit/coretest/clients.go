package coretest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	// within is how long anything may take on a busy machine.
	Within = time.Minute
	// long is a TTL that outlasts every test.
	Long = 5 * time.Minute
)

// NewClient returns a lock client that is closed with the test. It writes no instance, unless an option says so, because many
// tests count commands and keys.
func NewClient(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithInstance("")}, opts...)...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// Unused returns a strategy whose locks must not ask Redis.
func Unused(t testing.TB) core.Strategy {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		t.Error("Redis was asked")
		return nil, errors.New("unused")
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	locks, err := core.New(rdb, core.WithInstance(""), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	return locks.Mutex // not closed, which would ask Redis
}

// AwaitInstance waits until a refusal of the lock has the instance of its holder, and returns the error.
func AwaitInstance(t *testing.T, refuse func() error) *core.NotAcquiredError {
	t.Helper()
	var busy *core.NotAcquiredError
	testkit.Eventually(t, Within, "the instance of the holder", func() bool {
		err := refuse()
		if !errors.As(err, &busy) {
			t.Fatalf("error %v", err)
		}
		return busy.Instance != ""
	})
	return busy
}

// Record is a log that may be written and read at once.
type Record = testkit.Log

func TextLogger(r *Record) *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func WantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v is not %v", err, target)
	}
}

func WaitFor(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(Within):
		t.Fatalf("waited %v for %s", Within, what)
	}
}

func Receive(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(Within):
		t.Fatalf("waited %v for Lock to return", Within)
		return nil
	}
}

// WantInvalid checks that an error names what is wrong.
func WantInvalid(t testing.TB, err, kind error, names string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), names) {
		t.Errorf("%v is no %v that names %s", err, kind, names)
	}
}

func Quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}
