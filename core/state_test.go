package core_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The tests in this file look at what is in Redis.

// TestRedissonState: what a Redisson client sees of a held Mutex is an RLock, and its read-write scripts, which
// take a hash without mode for a free lock, see that it is neither free nor theirs.
func TestRedissonState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb, core.WithPrefix(""))
	outer := mustLock(t, locks.Mutex("name"))
	inner := mustLockWith(t, outer.Context(), locks.Mutex("name"))

	state := rdb.HGetAll(ctx, "name").Val()
	if state[outer.Owner()] != "2" {
		t.Errorf("hold count %q, want 2, in %v", state[outer.Owner()], state)
	}
	if state["mode"] == "" || state["mode"] == "read" || state["mode"] == "write" {
		t.Errorf("mode %q", state["mode"])
	}
	released := subscribe(t, rdb, "redisson_lock__channel:{name}")
	unlock(t, inner)
	unlock(t, outer)
	if got := released(); got != "0" {
		t.Errorf("message %q, want 0", got)
	}
	if n := rdb.Exists(ctx, "name").Val(); n != 0 {
		t.Error("the hash is still there")
	}
}

// TestRedissonHolder: a lock that a Redisson client holds is respected and waited for, and its owner's name can
// be adopted.
func TestRedissonHolder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb, core.WithPrefix(""))
	java := "8b0f7e2d-0000-4000-8000-000000000001:42"
	rdb.HSet(ctx, "{a}:name", java, 2)
	rdb.PExpire(ctx, "{a}:name", long)

	if _, err := locks.Mutex("{a}:name").TryLock(ctx); err == nil {
		t.Error("entered a lock that Redisson holds")
	}
	info, err := locks.Inspect(ctx, "{a}:name")
	if err != nil || info.Mode != core.ModeMutex || len(info.Holders) != 1 ||
		info.Holders[0].Owner != java || info.Holders[0].Holds != 2 || !info.Holders[0].Granted.IsZero() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	adopted := mustLock(t, locks.Mutex("{a}:name"), core.WithOwner(java))
	if adopted.Token() <= 0 {
		t.Errorf("token %d", adopted.Token())
	}
	if count := rdb.HGet(ctx, "{a}:name", java).Val(); count != "3" {
		t.Errorf("hold count %s, want 3", count)
	}
	unlock(t, adopted)
	if count := rdb.HGet(ctx, "{a}:name", java).Val(); count != "2" {
		t.Errorf("hold count %s, want 2", count)
	}

	waiting := lockLater(locks.Mutex("{a}:name"))
	awaitListeners(t, locks, "{a}:name", 1)
	rdb.Del(ctx, "{a}:name")
	rdb.Publish(ctx, "redisson_lock__channel:{a}:name", "0")
	if err := receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

func subscribe(t *testing.T, rdb *redis.Client, channel string) (next func() string) {
	t.Helper()
	ctx := context.Background()
	sub := rdb.Subscribe(ctx, channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	return func() string {
		message, err := sub.ReceiveTimeout(ctx, within)
		if m, ok := message.(*redis.Message); ok {
			return m.Payload
		}
		t.Errorf("received %v, %v", message, err)
		return ""
	}
}

// TestHalfAScript takes one command after another from the user: whatever the script could still do, no lock may
// be left that nobody holds.
func TestHalfAScript(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client()
	ctx := context.Background()
	for _, command := range []string{"time", "exists", "set", "hset", "pexpire"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, restricted(t, server, "+@all", "-"+command), core.WithTTL(long))
			name := "without " + command
			_, err := locks.Mutex(name).TryLock(ctx)
			if err == nil || !regexp.MustCompile("run this command|no permissions").MatchString(err.Error()) {
				t.Errorf("error %v does not tell of the missing permission", err)
			}
			redistest.Eventually(t, within, "the lock to be gone", func() bool {
				return rdb.Exists(ctx, "lock:"+name).Val() == 0
			})
			unlock(t, mustLock(t, newClient(t, rdb).Mutex(name)))
		})
	}
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

// TestFullServer: a server without memory refuses grants, leaves nothing, and renews and releases what is held.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client()
	ctx := context.Background()
	locks := newClient(t, rdb, core.WithTTL(3*time.Second))
	lease := mustLock(t, locks.Mutex("held"))
	fillUp(rdb)

	if _, err := locks.Mutex("name").TryLock(ctx); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("TryLock on a full server: %v", err)
	}
	awaitRenewed(t, []*core.Lease{lease}, 5*time.Second)
	if err := lease.Extend(ctx, long); err != nil {
		t.Errorf("extend: %v", err)
	}
	unlock(t, lease)
	if keys := rdb.Keys(ctx, "lock:*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

// TestClockSetBack: after the server's clock was set back, a lock's expiry lies far in the future, as it does
// here. Neither a living nor a crashed holder may block the name for that long.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	for name, crashed := range map[string]bool{"renewed": false, "crashed": true} {
		option := core.WithTTL(time.Second)
		if crashed {
			option = core.WithFixedTTL(time.Second)
		}
		lease := mustLock(t, locks.Mutex(name), option)
		rdb.PExpire(ctx, "lock:"+name, time.Hour)
		if crashed {
			_, _ = newClient(t, rdb).Mutex(name).TryLock(ctx)
		}
		redistest.Eventually(t, within, "the expiry to be cut back", func() bool {
			return rdb.PTTL(ctx, "lock:"+name).Val() <= time.Second
		})
		_ = lease
	}
}

// TestTokenOutlivesAClockStep: a grant after the clock was set back gets a greater token all the same. The step
// is made by writing the token that a clock an hour ahead would have left.
func TestTokenOutlivesAClockStep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	rdb.Set(ctx, "holdfast:token:{lock:name}", ahead, time.Hour)
	last := ahead
	for range 3 {
		lease := mustLock(t, locks.Mutex("name"))
		if lease.Token() != last+1 {
			t.Errorf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		unlock(t, lease)
	}
	if ttl := rdb.PTTL(ctx, "holdfast:token:{lock:name}").Val(); ttl < time.Hour {
		t.Errorf("the token is remembered for %v", ttl)
	}
}

// TestInspectAndForce: what operators see and do.
func TestInspectAndForce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	if info, err := locks.Inspect(ctx, "name"); err != nil || info.Mode != "" || len(info.Holders) != 0 {
		t.Errorf("free lock: %+v, %v", info, err)
	}
	if forced, err := locks.ForceUnlock(ctx, "name"); forced || err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v", forced, err)
	}
	lease := mustLock(t, newClient(t, rdb).Mutex("name"), core.WithTTL(time.Second))
	waiting := lockLater(locks.Mutex("name"))
	awaitListeners(t, locks, "name", 1)
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Mode != core.ModeMutex || len(info.Holders) != 1 || info.Waiters != 1 ||
		info.TTL <= 0 || info.TTL > time.Second {
		t.Fatalf("held lock: %+v, %v", info, err)
	}
	if h := info.Holders[0]; h.Owner != lease.Owner() || h.Token != lease.Token() || h.Holds != 1 ||
		h.Granted.IsZero() {
		t.Errorf("holder %+v", h)
	}
	if forced, err := locks.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	if err := receive(t, waiting); err != nil {
		t.Errorf("the waiter did not get the forced lock: %v", err)
	}
	waitFor(t, lease.Done(), "the holder to hear of it")
	wantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	wantErr(t, lease.Unlock(ctx), core.ErrNotHeld)

	rdb.Set(ctx, "lock:text", "foreign", 0)
	_, err = locks.Inspect(ctx, "text")
	wantErr(t, err, core.ErrWrongType)
	_, err = locks.ForceUnlock(ctx, "text")
	wantErr(t, err, core.ErrWrongType)
	_, err = locks.Inspect(ctx, "")
	wantErr(t, err, core.ErrInvalidName)
	_, err = locks.ForceUnlock(ctx, "a{")
	wantErr(t, err, core.ErrInvalidName)
}

// TestKeysOfALock: everything about a lock has the same hash tag, hence slot, in a Cluster.
func TestKeysOfALock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, tag := range map[string]string{"plain": "lock:plain", "{tag}:x": "tag", "a{tag}b{c}": "tag"} {
		rdb := redistest.Start(t).Client()
		locks := newClient(t, rdb)
		unlock(t, mustLock(t, locks.Mutex(name)))
		mustLock(t, locks.Mutex(name))
		keys := rdb.Keys(ctx, "*").Val()
		if len(keys) != 3 {
			t.Errorf("%q: keys %q, want the lock, the token, and a released hold", name, keys)
		}
		for _, key := range keys {
			if got := hashTag(key); got != tag {
				t.Errorf("%q: key %q hashes by %q, not %q", name, key, got, tag)
			}
		}
	}
}

// hashTag is the part of a key that decides its slot in a Cluster.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}
