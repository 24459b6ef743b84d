package core_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestHalfAScript takes one command after another from the user: whatever the script could still do, no lock may
// be left that no owner holds. Each command has a server of its own: a token that follows another one within 10 ms needs
// no TIME and no SET.
func TestHalfAScript(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, command := range []string{"time", "exists", "set", "hset", "pexpire"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			locks := newClient(t, restricted(t, server, "+@all", "-"+command), core.WithTTL(long))
			name := "without " + command
			_, err := locks.Mutex(name).TryLock(ctx)
			if err == nil || !regexp.MustCompile("run this command|no permissions").MatchString(err.Error()) {
				t.Errorf("error %v does not tell of the missing permission", err)
			}
			testkit.Eventually(t, within, "the lock to be gone", func() bool {
				return rdb.Exists(ctx, "lock:"+name).Val() == 0
			})
			unlock(t, mustLock(t, newClient(t, rdb).Mutex(name)))
		})
	}
	server := testkit.Start(t)
	rdb := server.Client()
	for _, command := range []string{"hmget", "del", "hdel", "hincrby", "get", "publish"} {
		t.Run("release without "+command, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, restricted(t, server, "+@all", "-"+command), core.WithTTL(time.Second))
			name := "release without " + command
			outer := mustLock(t, locks.Mutex(name))
			if inner, err := locks.Mutex(name).TryLock(outer.Context()); err == nil {
				_ = inner.Unlock(ctx)
			}
			_ = outer.Unlock(ctx)
			unlock(t, mustLock(t, newClient(t, rdb).Mutex(name))) // after the TTL, if not before
		})
	}
}

// TestHalfAnAcquire is TestHalfAScript for a user whose compensating release cannot tidy up either.
func TestHalfAnAcquire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, command := range []string{"set", "pexpire"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			locks := newClient(t, restricted(t, server, "+@all", "-del", "-"+command), core.WithTTL(long))
			if _, err := locks.Mutex(command).TryLock(ctx); err == nil {
				t.Error("locked")
			}
			testkit.Eventually(t, within, "the lock to be gone", func() bool {
				return rdb.Exists(ctx, "lock:"+command).Val() == 0
			})
		})
	}
}

// TestHalfALine takes one command after another from the user, and lets it lock, enter again, wait, give up and
// unlock as far as it can. Whatever the scripts could still do, nothing may be left that has no expiry, and the lock
// must become free.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	for _, command := range []string{
		"time", "exists", "pttl", "hmget", "hget", "hset", "hdel", "hexists", "hincrby", "incr", "get", "set", "unlink",
		"zadd", "zrem", "zrange", "zrevrange", "zrangebyscore", "zscore", "zcount", "pexpire", "publish",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			half := newClient(t, restricted(t, server, "+@all", "-"+command),
				core.WithTTL(time.Second), core.WithLogger(nil))
			whole := newClient(t, rdb, core.WithTTL(long))
			for kind, strategy := range onlyQueued(half) {
				name := kind + " without " + command
				lockByHalves(strategy(name))
				lease := mustLock(t, onlyQueued(whole)[kind](name)) // after the TTL, if not before
				lockByHalves(strategy(name))
				unlock(t, lease)
			}
			for _, key := range rdb.Keys(context.Background(), "*without "+command+"*").Val() {
				if ttl := rdb.PTTL(context.Background(), key).Val(); ttl == -1 {
					t.Errorf("key %q has no expiry", key)
				}
			}
		})
	}
}

// lockByHalves does what the user may.
func lockByHalves(l core.Locker) {
	ctx := context.Background()
	outer, err := l.Lock(ctx, core.WithWait(10*time.Millisecond))
	if err != nil {
		return
	}
	if inner, err := l.TryLock(outer.Context()); err == nil {
		_ = inner.Unlock(ctx)
	}
	_ = outer.Unlock(ctx)
}

// TestRefusedReentryKeepsTheOuterHold: whatever a script could still do of a re-entry, its holder keeps the lock, and frees
// it with the outer hold.
func TestRefusedReentryKeepsTheOuterHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, command := range []string{"hincrby", "hset", "hget", "hmget", "pexpire", "zadd", "zscore", "time"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			whole := newClient(t, rdb, core.WithTTL(long))
			user := restricted(t, server, "+@all")
			rights := func(rule string) { setRight(t, server, rule) }
			for kind, strategy := range strategies(newClient(t, user, core.WithTTL(long), core.WithLogger(nil))) {
				outer := mustLock(t, strategy(kind))
				rights("-" + command)
				inner, refused := strategy(kind).TryLock(outer.Context())
				rights("+" + command)
				if refused == nil {
					unlock(t, inner)
				}
				if lease, err := whole.Mutex(kind).TryLock(ctx); !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("%s: another owner has got %v, %v", kind, lease, err)
				}
				unlock(t, outer)
				testkit.Eventually(t, within, kind+" to be free", func() bool {
					lease, err := whole.Mutex(kind).TryLock(ctx)
					return err == nil && lease.Unlock(ctx) == nil
				})
			}
		})
	}
}
