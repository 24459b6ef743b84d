package release_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// lostRelease is a lease whose release is executed, and loses its answer. The client repeats the release.
type lostRelease struct {
	t     *testing.T
	rdb   *redis.Client // past the relay
	other *core.Client
	lock  string                 // strategy
	taken map[string]*core.Lease // by other clients meanwhile
}

// take locks the name as another client.
func (l *lostRelease) take() {
	lease, err := coretest.Strategies(l.other)[l.lock]("name").TryLock(context.Background())
	if err != nil {
		l.t.Errorf("another client: %v", err)
		return
	}
	l.taken[lease.Owner()] = lease
}

// force takes the lock from its holders.
func (l *lostRelease) force() {
	if forced, err := l.other.ForceUnlock(context.Background(), "name"); !forced || err != nil {
		l.t.Errorf("ForceUnlock: %v, %v", forced, err)
	}
	clear(l.taken)
}

// TestReleaseWithoutAnswer plays the rows of the table in internal/script/strategy.go: the first release of a lease loses its
// answer, and Unlock says the truth. before happens before the first release is executed, between after that, and both before the
// second is. Redis remembers nothing of a release if the lease is valid for long enough.
func TestReleaseWithoutAnswer(t *testing.T) {
	type events func(*lostRelease)
	for name, row := range map[string]struct {
		before, between events
		opts            []core.LockOption
		want            error
		remembered      bool
	}{
		"nothing between":         {},
		"taken between":           {between: (*lostRelease).take},
		"taken and forced":        {between: func(l *lostRelease) { l.take(); l.force() }},
		"forced and taken":        {before: (*lostRelease).force, between: (*lostRelease).take, want: core.ErrNotHeld},
		"forced":                  {before: (*lostRelease).force, want: core.ErrNotHeld},
		"soon expired":            {opts: []core.LockOption{core.WithFixedTTL(4 * time.Second)}, remembered: true},
		"soon expired and forced": {before: (*lostRelease).force, opts: []core.LockOption{core.WithFixedTTL(4 * time.Second)}, want: core.ErrNotHeld, remembered: true},
	} {
		for strategy := range coretest.Strategies(nil) {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				t.Parallel()
				how := testkit.Silent
				if len(strategy)%2 == 0 {
					how = testkit.Closed
				}
				server := testkit.Start(t)
				relay := server.Relay()
				l := &lostRelease{t: t, rdb: server.Client(), lock: strategy, taken: make(map[string]*core.Lease)}
				l.other = coretest.NewClient(t, l.rdb, core.WithTTL(coretest.Long))
				coretest.Unlock(t, coretest.MustLock(t, coretest.Strategies(l.other)[strategy]("warm"))) // so that Redis has the scripts
				locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
				var seen atomic.Int32
				coretest.Nth(relay, "lock:name", 2, func() { seen.Store(1) })
				lease := coretest.MustLock(t, coretest.Strategies(locks)[strategy]("name"), row.opts...)
				askedTwice := seen.Swap(0) > 0 // on a busy machine; Redis remembers the release of such a lease
				relay.LoseReplies("lock:name", 1, how)
				relay.OnRequest(func(chunk []byte) {
					if !strings.Contains(string(chunk), "lock:name") {
						return
					}
					switch n := seen.Add(1); {
					case n == 1 && row.before != nil:
						row.before(l)
					case n == 2 && row.between != nil:
						row.between(l)
					}
				})
				if err := lease.Unlock(context.Background()); !errors.Is(err, row.want) {
					t.Errorf("Unlock returns %v, want %v", err, row.want)
				}
				if seen.Load() < 2 {
					t.Error("the release was not repeated")
				}
				l.check(row.remembered || askedTwice)
			})
		}
	}
}

// check releases what other clients have, and looks at what is left in Redis.
func (l *lostRelease) check(remembered bool) {
	l.t.Helper()
	for _, lease := range l.taken {
		coretest.Unlock(l.t, lease)
	}
	found := false
	for _, key := range l.rdb.Keys(context.Background(), "*").Val() {
		switch {
		case strings.HasPrefix(key, "holdfast:released") && !strings.Contains(key, ":forced:"):
			found = true
		case strings.HasPrefix(key, "lock:"):
			l.t.Errorf("left in Redis: %s", key)
		}
	}
	if found != remembered {
		l.t.Errorf("Redis remembers the release: %v, want %v", found, remembered)
	}
}
