package example_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/examples/internal/example"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRunOnServer: with REDIS_URL a program runs on that server.
func TestRunOnServer(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.TCP())
	mark := func(ctx context.Context, _ io.Writer, rdb *redis.Client) error {
		return rdb.Set(ctx, "mark", "1", 0).Err()
	}
	if err := example.Run(t.Context(), io.Discard, "redis://"+server.Addr(), mark); err != nil {
		t.Fatal(err)
	}
	if got := server.Client().Get(t.Context(), "mark").Val(); got != "1" {
		t.Errorf("the server has %q", got)
	}
}

// TestRunOnNoServer: a URL that is none is an error that names the variable.
func TestRunOnNoServer(t *testing.T) {
	t.Parallel()
	err := example.Run(t.Context(), io.Discard, "localhost:6379", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "REDIS_URL: ") {
		t.Errorf("got %v", err)
	}
}
