package asynq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// brief makes leases that end, and are missed, while a test waits.
var brief = asynqlock.WithTTL(3 * time.Second)

// TestLeaseLost: only the handler's context ends, with the cause, and the task comes again.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	for name, test := range map[string]struct {
		guard asynq.MiddlewareFunc
		take  func(ctx context.Context) error
	}{
		"once": {
			asynqlock.Once(d.locks, key, brief),
			func(context.Context) error { return forgetRunning(t.Context(), d.locks, key, info) },
		},
		"exclusive": {asynqlock.Exclusive(d.locks.Mutex, key, brief), func(ctx context.Context) error {
			_, err := d.locks.ForceUnlock(t.Context(), "asynq:"+asynqlock.KeyHash(ctx))
			return err
		}},
	} {
		var asynqs context.Context
		around := func(next asynq.Handler) asynq.Handler {
			return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
				asynqs = ctx
				return next.ProcessTask(ctx, t)
			})
		}
		err := d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			wantNil(t, test.take(ctx))
			<-ctx.Done()
			wantErrors(t, context.Cause(ctx), core.ErrLeaseLost)
			wantNil(t, asynqs.Err())
			return errOwn
		}, around, test.guard)
		wantDeferred(t, err, core.ErrLeaseLost)
		if asynqlock.IsFailure(err) || errors.Is(err, asynq.SkipRetry) {
			t.Errorf("%s: a failure: %v", name, err)
		}
	}
}

// TestLeaseLostOfStrategies: whatever the strategy, the handler hears of it.
func TestLeaseLostOfStrategies(t *testing.T) {
	t.Parallel()
	locks, redlock := newDesk(t).locks, redlockOf(t)
	for name, test := range map[string]struct {
		strategy core.Strategy
		force    func(ctx context.Context, name string) (bool, error)
	}{
		"Fair":    {locks.Fair, locks.ForceUnlock},
		"Write":   {locks.Write, locks.ForceUnlock},
		"Redlock": {redlock.Mutex, redlock.ForceUnlock},
		"Multi": {func(name string, opts ...core.LockOption) core.Locker {
			return core.Multi(locks.Mutex("stock", opts...), locks.Mutex(name, opts...))
		}, locks.ForceUnlock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy := occupy(t, t.Context(), delivery("1"), receipt(name), asynqlock.Exclusive(test.strategy, asynqlock.ByPayload("order"), brief))
			forced, err := test.force(t.Context(), "asynq:"+asynqlock.KeyHash(busy.ctx))
			if !forced || err != nil {
				t.Errorf("forced %v, %v", forced, err)
			}
			<-busy.ctx.Done()
			wantErrors(t, context.Cause(busy.ctx), core.ErrLeaseLost)
			wantNil(t, busy.release()) // it has succeeded all the same
		})
	}
}

// TestSuccessWithoutLease: the task has taken effect, whatever became of the lease.
func TestSuccessWithoutLease(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var hooks told
	hook, key, info := asynqlock.WithHooks(hooks.hooks()), asynqlock.ByTaskID(), delivery("1", ofKind)
	once, exclusive := asynqlock.Once(d.locks, key, brief, hook), asynqlock.Exclusive(d.locks.Mutex, key, brief, hook)
	wantNil(t, d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		wantNil(t, forgetRunning(t.Context(), d.locks, key, info))
		<-ctx.Done()
		return nil
	}, once))
	if r, err := asynqlock.Peek(t.Context(), d.locks, key, info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
	wantNil(t, d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		_, err := d.locks.ForceUnlock(t.Context(), "asynq:"+asynqlock.KeyHash(ctx))
		wantNil(t, err)
		<-ctx.Done()
		return nil
	}, exclusive))
	hooks.want(t, `asynqlock\.Failure .*Operation:run Err:holdfast: lease lost`, 1)
}

// TestOvertaken: one that has lost its lease to another does not overwrite what that one does, but asks again later.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	guard := asynqlock.Once(d.locks, key)
	first := d.occupy(info, receipt("7"), guard)
	wantNil(t, forgetRunning(t.Context(), d.locks, key, info))
	second := d.occupy(info, receipt("7"), guard)
	wantDeferred(t, first.release(), core.ErrStale)
	wantDeferred(t, d.deliver(info, receipt("7"), nothing, guard), core.ErrInProgress)
	wantNil(t, second.release())
	if r, err := asynqlock.Peek(t.Context(), d.locks, key, info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCommitMargin: handlers get a little less time than asynq gives the task.
func TestCommitMargin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, test := range []struct {
		given       time.Duration
		opts        []asynqlock.Option
		least, most time.Duration
	}{
		{time.Hour, nil, 2 * time.Second, 2 * time.Second},
		{time.Hour, []asynqlock.Option{asynqlock.WithCommitMargin(time.Minute)}, time.Minute, time.Minute},
		{time.Hour, []asynqlock.Option{asynqlock.WithCommitMargin(50 * time.Minute)}, 3 * time.Minute, 6 * time.Minute},
		{10 * time.Second, nil, 1, time.Second},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), test.given)
		asynqs, _ := ctx.Deadline()
		for name, guard := range map[string]asynq.MiddlewareFunc{
			"once":      asynqlock.Once(d.locks, asynqlock.ByTaskID(), test.opts...),
			"exclusive": asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), test.opts...),
		} {
			wantNil(t, deliver(ctx, delivery(test.given.String()+name), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
				deadline, ok := ctx.Deadline()
				if margin := asynqs.Sub(deadline); !ok || margin < test.least || margin > test.most {
					t.Errorf("%s of %v: margin %v, want %v to %v", name, test.given, margin, test.least, test.most)
				}
				return nil
			}, guard))
			_ = forgetRunning(ctx, d.locks, asynqlock.ByTaskID(), delivery(test.given.String()+name, ofKind))
		}
		cancel()
	}
	wantNil(t, d.deliver(delivery("1"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		if deadline, ok := ctx.Deadline(); ok {
			t.Errorf("outside asynq: %v", deadline)
		}
		return nil
	}, asynqlock.Once(d.locks, asynqlock.ByTaskID())))
}

// due is a context with a deadline at which nothing happens: asynq is late.
type due struct {
	context.Context
	at time.Time
}

func (d due) Deadline() (time.Time, bool) { return d.at, true }

// TestTimeIsUp: a handler that heeds its context is told before asynq's ends, so that its error is heard.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, guard := range d.guardsOf() {
		ctx := due{t.Context(), time.Now().Add(time.Second)}
		err := deliver(ctx, delivery(name), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, guard)
		wantErrors(t, err, context.DeadlineExceeded)
		if !asynqlock.IsFailure(err) {
			t.Errorf("%s: no failure: %v", name, err)
		}
	}
}
