package core_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// awaitListeners returns once that many clients listen for releases of the name.
func awaitListeners(t testing.TB, locks *core.Client, name string, n int) {
	t.Helper()
	testkit.Eventually(t, within, "waiters to listen", func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && info.Waiters >= n
	})
}

func clientList(t testing.TB, server *testkit.Server) string {
	t.Helper()
	list, err := server.Client().ClientList(context.Background()).Result()
	if err != nil {
		t.Fatalf("CLIENT LIST: %v", err)
	}
	return list
}

// leftFor asks as a stranger and returns what the holder has left.
func leftFor(t testing.TB, rdb *redis.Client, name string) time.Duration {
	t.Helper()
	_, err := newClient(t, rdb).Mutex(name).TryLock(context.Background())
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v is no NotAcquiredError", err)
	}
	return refused.RetryAfter
}

// gone returns once the key is no longer there.
func gone(t testing.TB, rdb *redis.Client, key string) {
	t.Helper()
	testkit.Eventually(t, within, key+" to be gone", func() bool {
		return rdb.Exists(context.Background(), key).Val() == 0
	})
}

// nth calls do when the n-th request about key is on its way, before it reaches the server.
func nth(relay *testkit.Relay, key string, n int32, do func()) {
	var seen atomic.Int32
	relay.OnRequest(func(chunk []byte) {
		if bytes.Contains(chunk, []byte(key)) && seen.Add(1) == n {
			do()
		}
	})
}

// field returns the one that begins so.
func field(t testing.TB, fields []string, prefix string) string {
	t.Helper()
	for _, f := range fields {
		if strings.HasPrefix(f, prefix) {
			return f
		}
	}
	t.Fatalf("no field %s… in %q", prefix, fields)
	return ""
}

// fillUp makes a server behave as if its memory were used up.
func fillUp(rdb *redis.Client) {
	ctx := context.Background()
	rdb.ConfigSet(ctx, "maxmemory-policy", "noeviction")
	rdb.ConfigSet(ctx, "maxmemory", "1")
}

// awaitTidy returns once nothing is left of any lock but what expires by itself: tokens, the ends of holds, and instances of
// clients.
func awaitTidy(t testing.TB, rdb *redis.Client) {
	t.Helper()
	ctx := context.Background()
	testkit.Eventually(t, within, "the keys to be gone", func() bool {
		for _, key := range rdb.Keys(ctx, "*").Val() {
			left := rdb.PTTL(ctx, key).Val()
			if left == -1 {
				t.Errorf("%s stays for ever", key)
			}
			memory := strings.HasPrefix(key, "holdfast:token") || strings.HasPrefix(key, "holdfast:released") ||
				strings.HasPrefix(key, "holdfast:forced") || strings.HasPrefix(key, "holdfast:client")
			if left != -2 && !memory {
				return false
			}
		}
		return true
	})
}

// redisTime returns the time by Redis's clock.
func redisTime(t testing.TB, rdb *redis.Client) time.Time {
	t.Helper()
	now, err := rdb.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// grantedAt returns when a lease was granted by Redis's clock, of which its token is made.
func grantedAt(lease *core.Lease) time.Time { return time.UnixMicro(lease.Token()) }

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

// hashTag is the part of a key that decides its slot in a Cluster.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}

// luaScript reads a script as the library composes it.
func luaScript(t testing.TB, parts ...string) *redis.Script {
	t.Helper()
	return luasource.Script(parts...)
}

// warmPool opens several connections, by as many requests at once that take a moment.
func warmPool(t *testing.T, rdb *redis.Client) {
	t.Helper()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			rdb.XRead(context.Background(), &redis.XReadArgs{
				Streams: []string{"nothing", "$"}, Block: 20 * time.Millisecond,
			})
		})
	}
	all.Wait()
	if n := rdb.PoolStats().IdleConns; n < 2 {
		t.Errorf("%d idle connections", n)
	}
}

// counters are the server's own: scripts it ran, and reads from its sockets, each of which may bring many
// commands.
type counters struct {
	at           time.Time
	calls, reads int64
}

func readCounters(t *testing.T, server *testkit.Server) counters {
	t.Helper()
	reads, err := strconv.ParseInt(server.Info("stats", "total_reads_processed"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	stats := server.CommandStats()
	return counters{at: time.Now(), calls: stats["evalsha"].Calls + stats["eval"].Calls, reads: reads}
}

// beforeRepetition calls do before the second request about key reaches the server. Further requests wait until do has
// ended. Why: on a slow machine, the client may give up the second request meanwhile, and send a third one that overtakes
// it. The test would then go on beside do.
func beforeRepetition(relay *testkit.Relay, key string, do func()) {
	var seen atomic.Int32
	var once sync.Once
	relay.OnRequest(func(chunk []byte) {
		if bytes.Contains(chunk, []byte(key)) && seen.Add(1) > 1 {
			once.Do(do)
		}
	})
}
