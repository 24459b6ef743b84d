package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
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
