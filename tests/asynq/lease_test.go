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
var brief = core.WithTTL(3 * time.Second)

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
			_, err := d.locks.ForceUnlock(t.Context(), "asynq:"+hashOf(t, key, info, receipt("7")))
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
		if isFailure(err) || errors.Is(err, asynq.SkipRetry) {
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
		"Multi": {func(name string, opts ...core.LockOption) *core.Lock {
			return core.Multi(locks.Mutex("stock", opts...), locks.Mutex(name, opts...))
		}, locks.ForceUnlock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy := occupy(t, t.Context(), delivery("1"), receipt(name), asynqlock.Exclusive(test.strategy, asynqlock.ByPayload("order"), brief))
			forced, err := test.force(t.Context(), "asynq:"+hashOf(t, asynqlock.ByPayload("order"), delivery("1"), receipt(name)))
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
	d, hooks := listening(t)
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	once, exclusive := newOnce(t, d.locks, key, brief), asynqlock.Exclusive(d.locks.Mutex, key, brief)
	wantNil(t, d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		wantNil(t, forgetRunning(t.Context(), d.locks, key, info))
		<-ctx.Done()
		return nil
	}, once.Wrap))
	if r, err := once.Peek(t.Context(), info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
	wantNil(t, d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		_, err := d.locks.ForceUnlock(t.Context(), "asynq:"+hashOf(t, key, info, receipt("7")))
		wantNil(t, err)
		<-ctx.Done()
		return nil
	}, exclusive))
	hooks.want(t, `core\.Incident .*Kind:lost Err:holdfast: lease lost`, 2)
}

// TestOvertaken: one that has lost its lease to another does not overwrite what that one does, but asks again later.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	guard := newOnce(t, d.locks, key)
	first := d.occupy(info, receipt("7"), guard.Wrap)
	wantNil(t, forgetRunning(t.Context(), d.locks, key, info))
	second := d.occupy(info, receipt("7"), guard.Wrap)
	wantDeferred(t, first.release(), core.ErrStale)
	wantDeferred(t, d.deliver(info, receipt("7"), nothing, guard.Wrap), core.ErrInProgress)
	wantNil(t, second.release())
	if r, err := guard.Peek(t.Context(), info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCommitMargin: handlers get a little less time than asynq gives the task.
func TestCommitMargin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, test := range []struct {
		given, least, most time.Duration
	}{
		{time.Hour, 2 * time.Second, 2 * time.Second},
		{10 * time.Second, 1, time.Second},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), test.given)
		asynqs, _ := ctx.Deadline()
		for name, guard := range map[string]asynq.MiddlewareFunc{
			"once":      asynqlock.Once(d.locks, asynqlock.ByTaskID()),
			"exclusive": asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID()),
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
		if !isFailure(err) {
			t.Errorf("%s: no failure: %v", name, err)
		}
	}
}

// TestWait: a task that waits runs, or is replayed, as soon as the other one has ended.
func TestWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order, wait := asynqlock.ByPayload("order"), core.WithWait(within)
	asked := make(chan struct{}, 100)
	waiting := clientOf(t, d.redis.Client(), core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { asked <- struct{}{} },
	}))
	for name, test := range map[string]struct {
		first, second asynq.MiddlewareFunc
		runs          bool
	}{
		"once":      {asynqlock.Once(d.locks, order), asynqlock.Once(waiting, order, wait), false},
		"exclusive": {asynqlock.Exclusive(d.locks.Fair, order), asynqlock.Exclusive(waiting.Fair, order, wait), true},
	} {
		busy := d.occupy(delivery("1"), receipt("7"), test.first)
		ran, waited := false, make(chan error, 1)
		go func() {
			waited <- d.deliver(delivery("2"), receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, test.second)
		}()
		select {
		case <-asked:
		case err := <-waited:
			t.Fatalf("%s: it did not wait: %v", name, err)
		}
		wantNil(t, busy.release())
		wantNil(t, <-waited)
		if ran != test.runs {
			t.Errorf("%s: ran: %v", name, ran)
		}
	}
}

// TestWaitEnds: the time is over, and the task is deferred.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const wait = 3 * time.Second
	impatient := d.guardsOf()
	for name, guard := range d.guardsOf(core.WithWait(wait)) {
		busy := d.occupy(delivery(name), receipt("7"), impatient[name])
		since := time.Now()
		wantDeferred(t, d.deliver(delivery(name), receipt("7"), nothing, guard), busyReason[name])
		if waited := time.Since(since); waited < wait {
			t.Errorf("%s: waited %v", name, waited)
		}
		wantNil(t, busy.release())
	}
}

// TestWaitIsCancelled: asynq has done with the task while it waited; it does not run, and leaves nothing.
func TestWaitIsCancelled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, guard := range d.guardsOf(core.WithWait(within)) {
		busy := d.occupy(delivery(name), receipt("7"), guard)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			waited <- deliver(ctx, delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard)
		}()
		cancel()
		wantErrors(t, <-waited, context.Canceled)
		wantNil(t, busy.release())
		wantNil(t, d.deliver(delivery(name), receipt("7"), nothing, guard))
	}
}

// TestCancelledWhenGranted: its turn has come just when asynq has done with it; it does not run, and nobody is held up.
func TestCancelledWhenGranted(t *testing.T) {
	t.Parallel()
	var cancel context.CancelFunc
	d := newDesk(t, core.WithHooks(core.Hooks{
		BeginEnd:   func(context.Context, core.BeginEnd) { cancel() },
		AcquireEnd: func(context.Context, core.AcquireEnd) { cancel() },
	}))
	other := &desk{t: t, locks: clientOf(t, d.redis.Client())}
	free := other.guardsOf()
	for name, guard := range d.guardsOf() {
		ctx, end := context.WithCancel(t.Context())
		cancel = end
		err := deliver(ctx, delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard)
		wantErrors(t, err, context.Canceled)
		ran := false
		wantNil(t, other.deliver(delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, free[name]))
		if !ran {
			t.Errorf("%s: it did not run", name)
		}
	}
}

// TestInnerGuardRefuses: the inner guard does not call the handler, so the task has done nothing, and may run when it
// comes again, also where what may have happened is held.
func TestInnerGuardRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := context.Background()
	user := asynqlock.ByPayload("user")
	outer := newOnce(t, d.locks, asynqlock.ByTaskID(), core.WithFailurePolicy(core.HoldFailures))
	task := asynq.NewTask(kind, []byte(`{"user":"ada"}`))
	count := 0
	handler := func(context.Context, *asynq.Task) error { count++; return nil }

	for name, inner := range map[string]asynq.MiddlewareFunc{
		"exclusive": asynqlock.Exclusive(d.locks.Mutex, user), "once": asynqlock.Once(d.locks, user),
	} {
		count = 0
		err := d.deliver(delivery("other"), task, func(context.Context, *asynq.Task) error {
			info := delivery("id-" + name)
			wantErrors(t, d.deliver(info, task, handler, outer.Wrap, inner), errBusy(name))
			record, err := outer.Peek(ctx, withPayload(info, task))
			if err != nil || record.State != core.StateNone || record.Attempt != 1 {
				t.Errorf("%s: record %+v, %v after it was turned away", name, record, err)
			}
			return nil
		}, inner)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.deliver(delivery("id-"+name), task, handler, outer.Wrap, inner); err != nil {
			t.Errorf("%s: when it comes again: %v", name, err)
		}
		if want := map[string]int{"exclusive": 1, "once": 0}[name]; count != want {
			t.Errorf("%s: %d runs, want %d", name, count, want)
		}
	}
	keyless := asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByHeader("absent"))
	for range 2 {
		wantErrors(t, d.deliver(delivery("keyless"), task, handler, outer.Wrap, keyless), asynqlock.ErrNoKey)
	}
}

// errBusy is what a guard of that kind says while another task has the key.
func errBusy(guard string) error {
	if guard == "once" {
		return core.ErrInProgress
	}
	return core.ErrNotAcquired
}

// withPayload is what an inspector tells of a task.
func withPayload(info *asynq.TaskInfo, t *asynq.Task) *asynq.TaskInfo {
	info.Type, info.Payload = t.Type(), t.Payload()
	return info
}

// guardsOf makes one of each with the same options.
func (d *desk) guardsOf(opts ...asynqlock.Option) map[string]asynq.MiddlewareFunc {
	return map[string]asynq.MiddlewareFunc{
		"once":      asynqlock.Once(d.locks, asynqlock.ByTaskID(), opts...),
		"exclusive": asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), opts...),
	}
}

// busyReason is why they defer.
var busyReason = map[string]error{"once": core.ErrInProgress, "exclusive": core.ErrNotAcquired}

// TestZombieKeepsItsLease: asynq has done with the task, but its handler has not.
func TestZombieKeepsItsLease(t *testing.T) {
	t.Parallel()
	renewed := make(chan error, 100)
	d := newDesk(t, core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) { renewed <- r.Err }}))
	for name, guard := range d.guardsOf(core.WithTTL(6 * time.Second)) {
		ctx, cancel := context.WithCancel(t.Context())
		zombie := occupy(t, ctx, delivery(name), receipt("7"), guard)
		cancel()
		for range len(renewed) + 2 { // those that were before, and two since
			wantNil(t, <-renewed)
		}
		wantDeferred(t, d.deliver(delivery(name), receipt("7"), nothing, guard), busyReason[name])
		wantNil(t, zombie.release())
	}
}

// TestZombieIsRecorded: what it returns, asynq ignores; the next delivery finds it.
func TestZombieIsRecorded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID())
	ctx, cancel := context.WithCancel(t.Context())
	zombie := occupy(t, ctx, delivery("1"), receipt("7"), guard)
	cancel()
	wantNil(t, zombie.release())
	wantNil(t, d.deliver(delivery("1"), receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard))
}

// TestZombieGrace: one that does not end is notified of, and its lease runs out.
func TestZombieGrace(t *testing.T) {
	t.Parallel()
	zombies := make(chan core.Incident, 100)
	d := newDesk(t, core.WithHooks(core.Hooks{Incident: func(_ context.Context, z core.Incident) {
		if z.Kind == core.IncidentOverrun {
			zombies <- z
		}
	}}))
	for name, guard := range d.guardsOf(brief, asynqlock.WithZombieGrace(time.Millisecond), core.WithWait(within)) {
		ctx, cancel := context.WithCancel(t.Context())
		zombie := occupy(t, ctx, delivery(name), receipt("7"), guard)
		cancel()
		z := <-zombies
		hash := core.KeyHash(zombie.ctx)
		if name == "exclusive" {
			hash = hashOf(t, asynqlock.ByTaskID(), delivery(name), receipt("7"))
		}
		if z.Work != work(hash) || !errors.Is(z.Err, context.Canceled) {
			t.Errorf("%s: %+v", name, z)
		}
		ran := false
		wantNil(t, d.deliver(delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, guard))
		if !ran {
			t.Errorf("%s: nobody else ran", name)
		}
		_ = zombie.release()
	}
}

// TestNoZombie: a handler that ends with its context is none.
func TestNoZombie(t *testing.T) {
	t.Parallel()
	zombies := make(chan core.Incident, 100)
	d := newDesk(t, core.WithHooks(core.Hooks{Incident: func(_ context.Context, z core.Incident) { zombies <- z }}))
	grace := 4 * time.Second // what the end of a run may take
	guards := d.guardsOf(asynqlock.WithZombieGrace(grace))
	for name, guard := range guards {
		ctx, cancel := context.WithCancel(t.Context())
		_ = deliver(ctx, delivery(name), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, guard)
	}
	select {
	case z := <-zombies:
		t.Errorf("%+v", z)
	case <-time.After(grace + time.Second):
	}
}
