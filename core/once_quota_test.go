package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestQuota(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	of := func(user string, i int) *core.Once {
		return locks.Once(fmt.Sprintf("pay:{%s}:%d", user, i), core.WithQuota(3), core.WithRetention(time.Hour))
	}
	running, released, completed := mustBegin(t, of("ada", 1)), mustBegin(t, of("ada", 2)), mustBegin(t, of("ada", 3))
	if err := completed.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	_, err := of("ada", 4).Begin(ctx)
	wantErr(t, err, core.ErrTooManyKeys)
	var full *core.TooManyKeysError
	if !errors.As(err, &full) || full.RetryAfter <= time.Hour-within || full.RetryAfter > time.Hour {
		t.Errorf("error %v", err)
	}
	if r := mustPeek(t, of("ada", 4)); r.State != core.StateNone || r.Attempt != 0 {
		t.Errorf("what was refused has left %+v", r)
	}
	// Those that are there are no new ones, and others have a room of their own.
	_, err = of("ada", 3).Begin(ctx)
	wantErr(t, err, core.ErrCompleted)
	_, err = of("ada", 1).Begin(ctx)
	wantErr(t, err, core.ErrInProgress)
	mustBegin(t, of("bob", 1))

	if err := released.Release(ctx); err != nil {
		t.Fatal(err)
	}
	held := mustBegin(t, of("ada", 4))
	_, err = of("ada", 5).Begin(ctx)
	wantErr(t, err, core.ErrTooManyKeys)
	if err := held.Hold(ctx, ""); err != nil {
		t.Fatal(err)
	}
	_, err = of("ada", 5).Begin(ctx)
	wantErr(t, err, core.ErrTooManyKeys)
	if err := of("ada", 4).Forget(ctx); err != nil {
		t.Fatal(err)
	}
	fifth := mustBegin(t, of("ada", 5))
	if left := rdb.PTTL(ctx, "holdfast:group:{ada}:lock:").Val(); left <= 0 || left > time.Hour {
		t.Errorf("the group is kept for %v", left)
	}
	// Time passes.
	rdb.ZAdd(ctx, "holdfast:group:{ada}:lock:", redis.Z{Score: 1, Member: "holdfast:once=lock:pay:{ada}:3"})
	mustBegin(t, of("ada", 6))
	for _, a := range []*core.Attempt{running, fifth} {
		if err := a.Complete(ctx, nil); err != nil {
			t.Error(err)
		}
	}
	_, err = of("ada", 7).Begin(ctx)
	wantErr(t, err, core.ErrTooManyKeys)
}

func TestQuotaNeedsAGroup(t *testing.T) {
	t.Parallel()
	locks := newClient(t, redistest.Start(t).Client())
	for _, once := range []*core.Once{
		locks.Once("no braces", core.WithQuota(1)), locks.Once("{a}", core.WithQuota(-1)),
	} {
		_, err := once.Begin(context.Background())
		wantErr(t, err, core.ErrInvalidOption)
	}
	mustBegin(t, locks.Once("no braces", core.WithQuota(0)))
}

func TestRecordsOfAGroup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks, other := newClient(t, rdb, core.WithTTL(long)), newClient(t, rdb, core.WithPrefix("other:"))
	of := func(c *core.Client, key string) *core.Once {
		return c.Once("job:{report}:"+key, core.WithGroup(), core.WithNote("by "+key))
	}
	first, second := mustBegin(t, of(locks, "first")), mustBegin(t, of(locks, "second"))
	if err := mustBegin(t, of(locks, "third")).Release(ctx); err != nil {
		t.Fatal(err)
	}
	mustBegin(t, of(other, "fourth"))
	mustBegin(t, locks.Once("job:{report}:fifth"))
	if err := first.Complete(ctx, []byte("done")); err != nil {
		t.Fatal(err)
	}
	records, err := locks.Records(ctx, "job:{report}")
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
	_, err = locks.Records(ctx, "no braces")
	wantErr(t, err, core.ErrInvalidName)
	if none, err := locks.Records(ctx, "{nobody}"); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	now := rdb.Time(ctx).Val()
	in := func(from, to time.Duration) *core.Once {
		return locks.Once("name", core.WithWindow(now.Add(from), now.Add(to)), core.WithRetention(time.Hour))
	}
	for _, test := range []struct {
		from, to time.Duration
		early    bool
	}{{time.Minute, time.Hour, true}, {-time.Hour, -time.Second, false}} {
		_, err := in(test.from, test.to).Begin(ctx)
		wantErr(t, err, core.ErrOutsideWindow)
		var outside *core.OutsideWindowError
		if !errors.As(err, &outside) || outside.Early != test.early || outside.ServerTime.Sub(now).Abs() > within {
			t.Errorf("%v to %v: %+v", test.from, test.to, err)
		}
	}
	if r := mustPeek(t, in(0, 0)); r.Attempt != 0 {
		t.Errorf("what was refused has left %+v", r)
	}
	a := mustBegin(t, in(-time.Second, time.Minute))
	if a.Began().Sub(now).Abs() > within {
		t.Errorf("began at %v, the server's clock said %v", a.Began(), now)
	}
	_, err := in(-time.Hour, -time.Second).Begin(ctx) // what is recorded says more
	wantErr(t, err, core.ErrInProgress)
	if err := a.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	_, err = in(-time.Hour, -time.Second).Begin(ctx)
	wantErr(t, err, core.ErrCompleted)
	_, err = in(time.Hour, time.Minute).Begin(ctx)
	wantErr(t, err, core.ErrInvalidOption)
	mustBegin(t, locks.Once("open", core.WithWindow(time.Time{}, time.Time{})))
}

// TestWindowOfAnUnsetTimestamp: 1970 and before are bounds. Only the zero time is none.
func TestWindowOfAnUnsetTimestamp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := newClient(t, redistest.Start(t).Client(), core.WithTTL(long))
	none, far := time.Time{}, time.Unix(math.MaxInt64, 0)
	for i, past := range []time.Time{
		time.Unix(0, 0), time.UnixMilli(-1), time.Unix(-1, 0), none.Add(1), time.UnixMilli(0).UTC(), time.Unix(math.MinInt64, 0),
	} {
		for name, opts := range map[string][]core.OnceOption{
			"plain":   {core.WithWindow(none, past)},
			"grouped": {core.WithWindow(none, past), core.WithGroup()},
		} {
			key := fmt.Sprintf("{a}:%s%d", name, i)
			_, err := locks.Once(key, opts...).Begin(ctx)
			wantErr(t, err, core.ErrOutsideWindow)
			mustBegin(t, locks.Once(key, core.WithWindow(past, none)))
		}
	}
	mustBegin(t, locks.Once("open", core.WithWindow(none, far)))
	_, err := locks.Once("shut", core.WithWindow(far, none)).Begin(ctx)
	wantErr(t, err, core.ErrOutsideWindow)
}
