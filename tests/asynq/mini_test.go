package asynq_test

import (
	"context"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// TestMiniredis: all that guards ask of Redis works there too, for the tests of those who use them.
func TestMiniredis(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	d := &desk{t: t, rdb: rdb, locks: clientOf(t, rdb, core.WithLogger(nil))}
	order, info := asynqlock.ByPayload("order"), delivery("1", ofKind)
	var runs asynqlock.Runs
	opts := []asynqlock.Option{asynqlock.WithRuns(&runs)}
	once := newOnce(t, d.locks, order, append(opts, core.WithWait(within))...)
	for name, strategy := range map[string]core.Strategy{
		"Mutex": d.locks.Mutex, "Fair": d.locks.Fair, "Read": d.locks.Read, "Write": d.locks.Write,
		"FairRead": d.locks.FairRead, "FairWrite": d.locks.FairWrite,
	} {
		guard := asynqlock.Exclusive(strategy, order, opts...)
		busy := d.occupy(info, receipt(name), guard)
		other := asynqlock.Exclusive(d.locks.Write, order, append(opts, core.WithWait(within))...)
		waited := make(chan error, 1)
		go func() { waited <- d.deliver(delivery("2"), receipt(name), nothing, other) }()
		wantDeferred(t, d.deliver(delivery("3"), receipt(name), nothing, asynqlock.Exclusive(d.locks.Write, order, opts...)), core.ErrNotAcquired)
		wantNil(t, busy.release())
		wantNil(t, <-waited)
	}
	busy := d.occupy(info, receipt("7"), once.Wrap)
	wantDeferred(t, d.deliver(delivery("2"), receipt("7"), nothing, asynqlock.Once(d.locks, order, opts...)), core.ErrInProgress)
	wantNil(t, asynqlock.SetResult(busy.ctx, []byte("x")))
	waited := make(chan error, 1)
	go func() { waited <- d.deliver(delivery("3"), receipt("7"), nothing, once.Wrap) }()
	wantNil(t, core.Hold(busy.ctx, "the handler says so"))
	for _, word := range []func(context.Context) error{core.Release, core.Complete} {
		wantNil(t, word(busy.ctx))
	}
	wantNil(t, busy.release())
	wantNil(t, <-waited)
	if r, err := once.Peek(t.Context(), info); err != nil || string(r.Value) != "x" {
		t.Errorf("%+v, %v", r, err)
	}
	seen, _ := once.Peek(t.Context(), info)
	wantErrors(t, once.Resolve(t.Context(), seen, nil), core.ErrCompleted)
	wantNil(t, once.Forget(t.Context(), seen))

	held := newOnce(t, d.locks, order, append(opts, core.WithFailurePolicy(core.HoldFailures))...)
	wantErrors(t, d.deliver(info, receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, held.Wrap), core.ErrOutcomeUnknown)
	wantErrors(t, d.deliver(info, receipt("7"), nothing, held.Wrap), core.ErrOutcomeUnknown)
	seen, _ = held.Peek(t.Context(), info)
	wantNil(t, held.Resolve(t.Context(), seen, nil))
	wantNil(t, d.deliver(info, receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, held.Wrap))
	wantNil(t, runs.Drain(t.Context()))
}
