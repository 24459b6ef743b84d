package messages

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/examples/messages/redisstreams"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestStreams: a parked entry has the reason and where it was. What is handled when the consumer stops is finished and acknowledged,
// and nothing behind it begins.
func TestStreams(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ctx, end := context.WithCancel(t.Context())
	c := &redisstreams.Consumer{Redis: rdb, Stream: topic, Group: "tests", Name: "one", Idle: time.Minute, Parked: dead}
	byText := func(_ context.Context, m redis.XMessage) (string, error) { return textOf(m), nil }
	var handled atomic.Int64
	c.Handle = msglock.Once(coretest.NewClient(t, rdb), "tests", byText, func(ctx context.Context, _ redis.XMessage) error {
		handled.Add(1)
		end()
		time.Sleep(100 * time.Millisecond) // a context that ends has done so by then
		return ctx.Err()
	})
	for _, text := range []string{"", "slow", "behind"} {
		if err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: topic, Values: []string{"text", text}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Run(ctx)
	pending, err := rdb.XPending(t.Context(), topic, "tests").Result()
	if err != nil || pending.Count != 1 || handled.Load() != 1 {
		t.Errorf("%d handled, pending %+v, %v", handled.Load(), pending, err)
	}
	parked, err := rdb.XRange(t.Context(), dead, "-", "+").Result()
	if err != nil || len(parked) != 1 {
		t.Fatalf("parked %v, %v", parked, err)
	}
	values := parked[0].Values
	if !strings.Contains(fmt.Sprint(values["parked.reason"]), "no key") || values["parked.stream"] != topic || values["parked.id"] == "" {
		t.Errorf("parked %v", values)
	}
}
