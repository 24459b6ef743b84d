package rights_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestPartialScript takes one command after another from the user: whatever the script could still do, no lock may
// be left that no owner holds. Each command has a server of its own: a token that follows another one within 10 ms needs
// no TIME and no SET.
func TestPartialScript(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, command := range []string{"time", "exists", "set", "hset", "pexpire"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-"+command), core.WithTTL(coretest.Long))
			name := "without " + command
			_, err := locks.Mutex(name).TryLock(ctx)
			if err == nil || !regexp.MustCompile("run this command|no permissions").MatchString(err.Error()) {
				t.Errorf("error %v does not tell of the missing permission", err)
			}
			testkit.Eventually(t, coretest.Within, "the lock to be gone", func() bool {
				return rdb.Exists(ctx, "lock:"+name).Val() == 0
			})
			coretest.Unlock(t, coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex(name)))
		})
	}
	server := testkit.Start(t)
	rdb := server.Client()
	for _, command := range []string{"hmget", "del", "hdel", "hincrby", "get", "publish"} {
		t.Run("release without "+command, func(t *testing.T) {
			t.Parallel()
			locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-"+command), core.WithTTL(time.Second))
			name := "release without " + command
			outer := coretest.MustLock(t, locks.Mutex(name))
			if inner, err := locks.Mutex(name).TryLock(outer.Context()); err == nil {
				_ = inner.Unlock(ctx)
			}
			_ = outer.Unlock(ctx)
			coretest.Unlock(t, coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex(name))) // after the TTL, if not before
		})
	}
}

// TestPartialAcquire is TestPartialScript for a user whose compensating release cannot tidy up either.
func TestPartialAcquire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, command := range []string{"set", "pexpire"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-del", "-"+command), core.WithTTL(coretest.Long))
			if _, err := locks.Mutex(command).TryLock(ctx); err == nil {
				t.Error("locked")
			}
			testkit.Eventually(t, coretest.Within, "the lock to be gone", func() bool {
				return rdb.Exists(ctx, "lock:"+command).Val() == 0
			})
		})
	}
}

// TestTruncatedReply takes one command after another from the user, and lets it lock, enter again, wait, give up and
// unlock as far as it can. Whatever the scripts could still do, nothing may be left that has no expiry, and the lock
// must become free.
func TestTruncatedReply(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	for _, command := range []string{
		"time", "exists", "pttl", "hmget", "hget", "hset", "hdel", "hexists", "hincrby", "incr", "get", "set", "unlink",
		"zadd", "zrem", "zrange", "zrevrange", "zrangebyscore", "zscore", "zcount", "pexpire", "publish",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			half := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-"+command),
				core.WithTTL(time.Second), core.WithLogger(nil))
			whole := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			for kind, strategy := range coretest.OnlyQueued(half) {
				name := kind + " without " + command
				lockByHalves(strategy(name))
				lease := coretest.MustLock(t, coretest.OnlyQueued(whole)[kind](name)) // after the TTL, if not before
				lockByHalves(strategy(name))
				coretest.Unlock(t, lease)
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
func lockByHalves(l *core.Lock) {
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
			whole := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			user := coretest.Restricted(t, server, "+@all")
			rights := func(rule string) { coretest.SetRight(t, server, rule) }
			for kind, strategy := range coretest.Strategies(coretest.NewClient(t, user, core.WithTTL(coretest.Long), core.WithLogger(nil))) {
				outer := coretest.MustLock(t, strategy(kind))
				rights("-" + command)
				inner, refused := strategy(kind).TryLock(outer.Context())
				rights("+" + command)
				if refused == nil {
					coretest.Unlock(t, inner)
				}
				if lease, err := whole.Mutex(kind).TryLock(ctx); !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("%s: another owner has got %v, %v", kind, lease, err)
				}
				coretest.Unlock(t, outer)
				testkit.Eventually(t, coretest.Within, kind+" to be free", func() bool {
					lease, err := whole.Mutex(kind).TryLock(ctx)
					return err == nil && lease.Unlock(ctx) == nil
				})
			}
		})
	}
}
