package main

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/examples/internal/example"
)

func TestMain(m *testing.M) {
	if !serving() {
		os.Exit(m.Run())
	}
}

// TestRun: whenever the server is killed, the order is charged once.
func TestRun(t *testing.T) {
	t.Parallel()
	example.Expect(t, func(ctx context.Context, out io.Writer, rdb *redis.Client) error { return run(ctx, out, rdb, true) },
		"killed before the charge: charged 1 times; the client got: receipt for before",
		"killed after the charge: charged 1 times; the client got: holdfast: a call with this key has taken effect before",
	)
}

// TestBaseline: without the guard, a retry charges a second time.
func TestBaseline(t *testing.T) {
	t.Parallel()
	example.Expect(t, func(ctx context.Context, out io.Writer, rdb *redis.Client) error { return run(ctx, out, rdb, false) },
		"killed before the charge: charged 1 times; the client got: receipt for before",
		"killed after the charge: charged 2 times; the client got: receipt for after",
	)
}
