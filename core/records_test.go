package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestRecordsOfALargeGroup: a group that is larger than one script looks at is listed whole, by several.
func TestRecordsOfALargeGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	rdb := server.Client()
	locks := newClient(t, server.Client())
	begin := func(key string) {
		t.Helper()
		if _, err := locks.Once(key, core.WithGroup()).Begin(ctx); err != nil {
			t.Fatal(err)
		}
	}
	begin("{a}first")
	groups := rdb.Keys(ctx, "holdfast:group*").Val()
	if len(groups) != 1 {
		t.Fatalf("groups: %q", groups)
	}
	score := rdb.ZRangeWithScores(ctx, groups[0], 0, 0).Val()[0].Score
	gone := make([]redis.Z, 2500)
	for i := range gone {
		gone[i] = redis.Z{Score: score, Member: fmt.Sprintf("holdfast:once=lock:{a}gone%d", i)}
	}
	rdb.ZAdd(ctx, groups[0], gone...)
	begin("{a}last")
	asked := func() int { return int(server.CommandStats()["zrange"].Calls) }
	before := asked()
	records, err := locks.Records(ctx, "{a}")
	if err != nil || len(records) != 2 {
		t.Errorf("Records: %d, %v", len(records), err)
	}
	if n := asked() - before; n < 3 {
		t.Errorf("%d scripts have listed 2,502 records, though 1,000 are the most that one may look at", n)
	}
}
