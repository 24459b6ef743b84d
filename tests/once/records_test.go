package once_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRecordsOfALargeGroup: a group that is larger than one script looks at is listed whole, by several.
func TestRecordsOfALargeGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, server.Client())
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
	records, err := locks.GroupRecords(ctx, "{a}")
	if err != nil || len(records) != 2 {
		t.Errorf("Records: %d, %v", len(records), err)
	}
	if n := asked() - before; n < 3 {
		t.Errorf("%d scripts have listed 2,502 records, though 1,000 are the most that one may look at", n)
	}
}

func TestRecordsOfAGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks, other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithPrefix("other:"))
	of := func(c *core.Client, key string) *core.Once {
		return c.Once("job:{report}:"+key, core.WithGroup(), core.WithNote("by "+key))
	}
	first, second := coretest.MustBegin(t, of(locks, "first")), coretest.MustBegin(t, of(locks, "second"))
	if err := coretest.MustBegin(t, of(locks, "third")).Release(ctx); err != nil {
		t.Fatal(err)
	}
	coretest.MustBegin(t, of(other, "fourth"))
	coretest.MustBegin(t, locks.Once("job:{report}:fifth"))
	if err := first.Complete(ctx, []byte("done")); err != nil {
		t.Fatal(err)
	}
	records, err := locks.GroupRecords(ctx, "job:{report}")
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v: %+v", len(records), err, records)
	}
	for i, want := range []struct {
		key, note, value string
		state            core.State
		token            int64
	}{
		{"job:{report}:second", "by second", "", core.StateRunning, second.Token()},
		{"job:{report}:first", "by first", "done", core.StateCompleted, first.Token()},
	} {
		r := records[i]
		if r.Key != want.key || r.State != want.state || r.Note != want.note || string(r.Value) != want.value ||
			r.Token != want.token {
			t.Errorf("record %d is %+v, want %+v", i, r, want)
		}
	}
	_, err = locks.GroupRecords(ctx, "no braces")
	coretest.WantErr(t, err, core.ErrInvalidName)
	if none, err := locks.GroupRecords(ctx, "{nobody}"); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}
