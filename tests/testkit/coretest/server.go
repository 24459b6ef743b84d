package coretest

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

// AwaitListeners returns once that many clients listen for releases of the name.
func AwaitListeners(t testing.TB, locks *core.Client, name string, n int) {
	t.Helper()
	testkit.Eventually(t, Within, "waiters to listen", func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && info.Waiters >= n
	})
}

func ClientList(t testing.TB, server *testkit.Server) string {
	t.Helper()
	list, err := server.Client().ClientList(context.Background()).Result()
	if err != nil {
		t.Fatalf("CLIENT LIST: %v", err)
	}
	return list
}

// LeftFor asks as a stranger and returns what the holder has left.
func LeftFor(t testing.TB, rdb *redis.Client, name string) time.Duration {
	t.Helper()
	_, err := NewClient(t, rdb).Mutex(name).TryLock(context.Background())
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v is no NotAcquiredError", err)
	}
	return refused.RetryAfter
}

// Gone returns once the key is no longer there.
func Gone(t testing.TB, rdb *redis.Client, key string) {
	t.Helper()
	testkit.Eventually(t, Within, key+" to be gone", func() bool {
		return rdb.Exists(context.Background(), key).Val() == 0
	})
}

// Nth calls do when the n-th request about key is on its way, before it reaches the server.
func Nth(relay *testkit.Relay, key string, n int32, do func()) {
	var seen atomic.Int32
	relay.OnRequest(func(chunk []byte) {
		if bytes.Contains(chunk, []byte(key)) && seen.Add(1) == n {
			do()
		}
	})
}

// FillUp makes a server behave as if its memory were used up.
func FillUp(rdb *redis.Client) {
	ctx := context.Background()
	rdb.ConfigSet(ctx, "maxmemory-policy", "noeviction")
	rdb.ConfigSet(ctx, "maxmemory", "1")
}

// AwaitTidy returns once nothing is left of any lock but what expires by itself: tokens, the ends of holds, and instances of
// clients.
func AwaitTidy(t testing.TB, rdb *redis.Client) {
	t.Helper()
	ctx := context.Background()
	testkit.Eventually(t, Within, "the keys to be gone", func() bool {
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

// RedisTime returns the time by Redis's clock.
func RedisTime(t testing.TB, rdb *redis.Client) time.Time {
	t.Helper()
	now, err := rdb.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// GrantedAt returns when a lease was granted by Redis's clock, of which its token is made.
func GrantedAt(lease *core.Lease) time.Time { return time.UnixMicro(lease.Token()) }

func Subscribe(t *testing.T, rdb *redis.Client, channel string) (next func() string) {
	t.Helper()
	ctx := context.Background()
	sub := rdb.Subscribe(ctx, channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	return func() string {
		message, err := sub.ReceiveTimeout(ctx, Within)
		if m, ok := message.(*redis.Message); ok {
			return m.Payload
		}
		t.Errorf("received %v, %v", message, err)
		return ""
	}
}

// HashTag is the part of a key that decides its slot in a Cluster.
func HashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}

// LuaScript reads a script as the library composes it.
func LuaScript(t testing.TB, parts ...string) *redis.Script {
	t.Helper()
	return luasource.Script(parts...)
}

// WarmPool opens several connections, by as many requests at once that take a moment.
func WarmPool(t *testing.T, rdb *redis.Client) {
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

// Counters are the server's own: scripts it ran, and reads from its sockets, each of which may bring many
// commands.
type Counters struct {
	At           time.Time
	Calls, Reads int64
}

func ReadCounters(t *testing.T, server *testkit.Server) Counters {
	t.Helper()
	reads, err := strconv.ParseInt(server.Info("stats", "total_reads_processed"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	stats := server.CommandStats()
	return Counters{At: time.Now(), Calls: stats["evalsha"].Calls + stats["eval"].Calls, Reads: reads}
}

// BeforeRepetition calls do before the second request about key reaches the server. Further requests wait until do has
// ended. On a slow machine, the client may give up the second request meanwhile, and send a third one that overtakes
// it. The test would then continue beside do.
func BeforeRepetition(relay *testkit.Relay, key string, do func()) {
	var seen atomic.Int32
	var once sync.Once
	relay.OnRequest(func(chunk []byte) {
		if bytes.Contains(chunk, []byte(key)) && seen.Add(1) > 1 {
			once.Do(do)
		}
	})
}
