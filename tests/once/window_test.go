package once_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	now := rdb.Time(ctx).Val()
	in := func(from, to time.Duration) *core.Once {
		return locks.Once("name", core.WithWindow(now.Add(from), now.Add(to)), core.WithRetention(time.Hour))
	}
	for _, test := range []struct {
		from, to time.Duration
		early    bool
	}{{time.Minute, time.Hour, true}, {-time.Hour, -time.Second, false}} {
		_, err := in(test.from, test.to).Begin(ctx)
		coretest.WantErr(t, err, core.ErrOutsideWindow)
		var outside *core.OutsideWindowError
		if !errors.As(err, &outside) || outside.Early != test.early || outside.ServerTime.Sub(now).Abs() > coretest.Within {
			t.Errorf("%v to %v: %+v", test.from, test.to, err)
		}
	}
	if r := coretest.MustPeek(t, in(0, 0)); r.Attempt != 0 {
		t.Errorf("what was refused has left %+v", r)
	}
	a := coretest.MustBegin(t, in(-time.Second, time.Minute))
	if seal.AttemptOf(a).Began().Sub(now).Abs() > coretest.Within {
		t.Errorf("began at %v, the server's clock said %v", seal.AttemptOf(a).Began(), now)
	}
	_, err := in(-time.Hour, -time.Second).Begin(ctx) // what is recorded says more
	coretest.WantErr(t, err, core.ErrInProgress)
	if err := a.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	_, err = in(-time.Hour, -time.Second).Begin(ctx)
	coretest.WantErr(t, err, core.ErrCompleted)
	_, err = in(time.Hour, time.Minute).Begin(ctx)
	coretest.WantErr(t, err, core.ErrInvalidOption)
	coretest.MustBegin(t, locks.Once("open", core.WithWindow(time.Time{}, time.Time{})))
}

// TestWindowOfAnUnsetTimestamp: 1970 and before are bounds. Only the zero time is none.
func TestWindowOfAnUnsetTimestamp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
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
			coretest.WantErr(t, err, core.ErrOutsideWindow)
			coretest.MustBegin(t, locks.Once(key, core.WithWindow(past, none)))
		}
	}
	coretest.MustBegin(t, locks.Once("open", core.WithWindow(none, far)))
	_, err := locks.Once("shut", core.WithWindow(far, none)).Begin(ctx)
	coretest.WantErr(t, err, core.ErrOutsideWindow)
}
