package core_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// restricted returns a connection as a user with all keys and channels and the given command rules.
func restricted(t testing.TB, server *redistest.Server, rules ...string) *redis.Client {
	t.Helper()
	ctx := context.Background()
	args := []any{"ACL", "SETUSER", t.Name(), "reset", "on", "nopass", "~*", "&*"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	if err := server.Client().Do(ctx, args...).Err(); err != nil {
		t.Fatalf("ACL SETUSER: %v", err)
	}
	return server.Client(func(o *redis.Options) { o.Username, o.Password = t.Name(), "any" })
}

// awaitListeners returns once that many clients listen for releases of the name.
func awaitListeners(t testing.TB, locks *core.Client, name string, n int) {
	t.Helper()
	redistest.Eventually(t, within, "waiters to listen", func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && info.Waiters >= n
	})
}

func clientList(t testing.TB, server *redistest.Server) string {
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
	redistest.Eventually(t, within, key+" to be gone", func() bool {
		return rdb.Exists(context.Background(), key).Val() == 0
	})
}

// nth calls do when the n-th request about key is on its way, before it reaches the server.
func nth(relay *redistest.Relay, key string, n int32, do func()) {
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
