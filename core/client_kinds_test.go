package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRingIsRefused: its Subscribe panics without channels, and it has no server to fail over to.
func TestRingIsRefused(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { _ = ring.Close() })
	_, err := core.New(ring)
	wantErr(t, err, core.ErrInvalidOption)
	if err != nil && !strings.Contains(err.Error(), "*redis.Ring") {
		t.Errorf("the error does not name it: %v", err)
	}
	_, err = core.NewRedlock([]redis.UniversalClient{ring, ring, ring})
	wantErr(t, err, core.ErrInvalidOption)
}

// otherMake is a client that is not go-redis's own, and does not subscribe.
type otherMake struct{ redis.UniversalClient }

func (otherMake) Subscribe(context.Context, ...string) *redis.PubSub {
	panic("at least one channel is required")
}

// silentMake subscribes to nothing.
type silentMake struct{ redis.UniversalClient }

func (silentMake) Subscribe(context.Context, ...string) *redis.PubSub { return nil }

// TestClientOfAnotherMake: that it panics ends no process; waiters look by themselves.
func TestClientOfAnotherMake(t *testing.T) {
	for name, wrap := range map[string]func(redis.UniversalClient) redis.UniversalClient{
		"Panics": func(rdb redis.UniversalClient) redis.UniversalClient { return otherMake{rdb} },
		"Nil":    func(rdb redis.UniversalClient) redis.UniversalClient { return silentMake{rdb} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, server := &record{}, testkit.Start(t)
			locks := newClient(t, wrap(server.Client()), core.WithLogger(textLogger(log)))
			for strategy, lock := range map[string]core.Strategy{"Mutex": locks.Mutex, "Fair": locks.Fair, "Write": locks.Write} {
				lease := mustLock(t, lock(strategy))
				waiting := lockLater(lock(strategy))
				testkit.Eventually(t, within, "the waiter to subscribe", func() bool {
					return strings.Contains(log.String(), "does not subscribe")
				})
				unlock(t, lease)
				if err := receive(t, waiting); err != nil {
					t.Errorf("%s: %v", strategy, err)
				}
			}
		})
	}
}
