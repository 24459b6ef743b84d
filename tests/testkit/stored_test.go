package testkit_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// onDump calls a function before each DUMP of a key.
type onDump func(ctx context.Context, key string)

func (onDump) DialHook(next redis.DialHook) redis.DialHook { return next }
func (onDump) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f onDump) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "dump" {
			f(ctx, cmd.Args()[1].(string))
		}
		return next(ctx, cmd)
	}
}

// TestStoredLeavesOutWhatHasExpired: a key that expires after Redis has listed it is not stored, and is not a key without a value.
func TestStoredLeavesOutWhatHasExpired(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb, other := server.Client(), server.Client()
	for _, key := range []string{"expires", "stays"} {
		if err := rdb.Set(t.Context(), key, "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rdb.AddHook(onDump(func(ctx context.Context, key string) {
		if key == "expires" {
			other.Del(ctx, key)
		}
	}))
	if keys := slices.Collect(maps.Keys(testkit.Stored(t, rdb, "*"))); !slices.Equal(keys, []string{"stays"}) {
		t.Errorf("stored: %v", keys)
	}
}
