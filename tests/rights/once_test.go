package rights_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// countEveryWay uses all there is of a bounded group, with two clients.
func countEveryWay(t testing.TB, locks, other *core.Client) {
	t.Helper()
	ctx := context.Background()
	options := []core.OnceOption{
		core.WithTTL(3 * time.Second), core.WithQuota(2), core.WithMaxValue(1000),
	}
	of := func(c *core.Client, name string) *core.Once { return c.Once("{bounded}:"+name, options...) }
	if err := coretest.MustBegin(t, of(locks, "released")).Release(ctx); err != nil {
		t.Error(err)
	}
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("{bounded}:fixed"))) // its token is heeded
	late := coretest.MustBegin(t, locks.Once("{bounded}:fixed", append(options, core.WithFixedTTL(500*time.Millisecond))...))
	a := coretest.MustBegin(t, of(locks, "held"))
	until := a.ValidUntil()
	testkit.Eventually(t, coretest.Within, "a renewal", func() bool { return a.ValidUntil().After(until.Add(500 * time.Millisecond)) })
	next, err := other.Once("{bounded}:fixed", append(options, core.WithWait(coretest.Within))...).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := late.Complete(ctx, nil); err != nil { // the other one has taken no effect
		t.Error(err)
	}
	_, err = of(other, "more").Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	if err := a.Hold(ctx, "reason"); err != nil {
		t.Error(err)
	}
	if err := coretest.ResolveNow(ctx, other.Once("{bounded}:held"), nil); err != nil {
		t.Error(err)
	}
	if records, err := other.GroupRecords(ctx, "{bounded}"); err != nil || len(records) != 2 {
		t.Errorf("%+v, %v", records, err)
	}
	coretest.Forget(t, other.Once("{bounded}:held"))
	coretest.Forget(t, other.Once("{bounded}:fixed"))
	coretest.MustBegin(t, of(other, "more"))
}
