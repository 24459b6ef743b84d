package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// A job is repeated until the load ends. n counts its repetitions.
type job func(ctx context.Context, locks *core.Client, n int) error

// A loop repeats a job in a number of goroutines.
type loop struct {
	workers int
	pause   time.Duration
	do      job
}

// loops are what each replica does.
var loops = []loop{
	{3, time.Millisecond, order},
	{2, 5 * time.Millisecond, till},
	{1, 20 * time.Millisecond, report},
	{3, time.Millisecond, charge},
	{2, 5 * time.Millisecond, config},
	{2, 5 * time.Millisecond, transfer},
	{2, 10 * time.Millisecond, pay},
	{1, 500 * time.Millisecond, disputed},
	{1, 500 * time.Millisecond, proved},
	{1, time.Millisecond, importFile},
	{1, 500 * time.Millisecond, forced},
	{1, 500 * time.Millisecond, tooLong},
	{1, time.Millisecond, schedule},
}

// load lets all replicas do all jobs until ctx ends, and returns the first error that is none of the contest.
func load(ctx context.Context, replicas []*core.Client, hooks core.Hooks) error {
	jobs := append([]loop{{2, 10 * time.Millisecond, mail(hooks)}}, loops...)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, locks := range replicas {
		for _, j := range jobs {
			for range j.workers {
				all.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						if err := j.do(ctx, locks, n); err != nil && !expected(err) {
							cancel(err)
						}
						pause(ctx, j.pause)
					}
				})
			}
		}
	}
	all.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// expected reports whether an error belongs to the load: a lock was held, or lost, or the load has ended.
func expected(err error) bool {
	for _, of := range []error{
		core.ErrNotAcquired, core.ErrNotHeld, core.ErrLeaseLost, core.ErrInProgress, core.ErrFingerprintMismatch,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work returns what a guarded function does: it takes some time.
func work(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		pause(ctx, d)
		return nil
	}
}

func order(ctx context.Context, locks *core.Client, n int) error {
	return locks.Mutex(fmt.Sprintf("order:%d", n%4)).Do(ctx, work(2*time.Millisecond))
}

// till waits only for so long.
func till(ctx context.Context, locks *core.Client, _ int) error {
	return locks.Fair("till:1", core.WithWait(100*time.Millisecond)).Do(ctx, work(40*time.Millisecond))
}

// report is refused while another replica writes one.
func report(ctx context.Context, locks *core.Client, _ int) error {
	return locks.Mutex("report:daily").TryDo(ctx, work(30*time.Millisecond))
}

// charge calls a gateway that allows three calls at a time.
func charge(ctx context.Context, locks *core.Client, _ int) error {
	return locks.Semaphore("gateway", 3).Do(ctx, work(10*time.Millisecond))
}

func config(ctx context.Context, locks *core.Client, n int) error {
	if n%20 == 0 {
		return locks.Write("config:shop").Do(ctx, work(5*time.Millisecond))
	}
	return locks.Read("config:shop").Do(ctx, work(time.Millisecond))
}

func transfer(ctx context.Context, locks *core.Client, n int) error {
	both := core.Multi(locks.Mutex(fmt.Sprintf("account:%d", n%3)), locks.Mutex(fmt.Sprintf("account:%d", 3+n%3)))
	return both.Do(ctx, work(2*time.Millisecond))
}

// payments numbers them, for both replicas.
var payments atomic.Int64

// pay sends each payment several times, sometimes with another amount.
func pay(ctx context.Context, locks *core.Client, n int) error {
	amount := "10"
	if n%10 == 9 {
		amount = "11"
	}
	key := fmt.Sprintf("payment:%d", payments.Add(1)/3)
	_, err := locks.Once(key, core.WithFingerprint([]byte(amount)), core.WithRetention(time.Minute)).Do(ctx, func(ctx context.Context) ([]byte, error) {
		return nil, work(5 * time.Millisecond)(ctx)
	})
	return err
}

// disputes numbers the payments whose outcome is unknown, and the bookings.
var disputes atomic.Int64

// disputed sends a payment to a gateway that does not answer. A retry is refused until an operator has resolved the record.
func disputed(ctx context.Context, locks *core.Client, _ int) error {
	once := locks.Once(fmt.Sprintf("dispute:%d", disputes.Add(1)), core.WithRetention(time.Minute))
	attempt, err := once.Begin(ctx)
	if err != nil {
		return err
	}
	if err := attempt.Hold(ctx, "the gateway did not answer"); err != nil {
		return err
	}
	if _, err := once.Begin(ctx); !errors.Is(err, core.ErrOutcomeUnknown) {
		return fmt.Errorf("a retry of an unknown outcome: %w", err)
	}
	seen, err := once.Peek(ctx)
	if err != nil {
		return err
	}
	return once.Resolve(ctx, seen, nil)
}

// ledger is a proof in which nothing is committed. Programs with a database use the package sqllock.
type ledger struct{}

func (ledger) Committed(context.Context, string) (*core.Committed, error) { return nil, nil }
func (ledger) Resolve(context.Context, string, core.Committed) error      { return nil }
func (ledger) OnlyEffect() bool                                           { return true }

// proved makes two attempts at one booking. The second one asks the proof, because the first has failed.
func proved(ctx context.Context, locks *core.Client, _ int) error {
	once := locks.Once(fmt.Sprintf("booking:%d", disputes.Add(1)), core.WithProof(ledger{}), core.WithRetention(time.Minute))
	for range 2 {
		attempt, err := once.Begin(ctx)
		if err != nil {
			return err
		}
		if err := attempt.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// importFile takes so long that its lease is renewed.
func importFile(ctx context.Context, locks *core.Client, _ int) error {
	return locks.Mutex("import:file").Do(ctx, work(2*time.Second))
}

// forced loses its lease: an operator force-releases it.
func forced(ctx context.Context, locks *core.Client, _ int) error {
	return locks.Mutex("forced:1").Do(ctx, func(ctx context.Context) error {
		if _, err := locks.ForceUnlock(context.WithoutCancel(ctx), "forced:1"); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// tooLong loses its lease: it works for longer than the lock may be held.
func tooLong(ctx context.Context, locks *core.Client, _ int) error {
	return locks.Mutex("report:1").Do(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, core.WithMaxHold(time.Second))
}

// schedule leads for two seconds, then lets another replica lead.
func schedule(ctx context.Context, locks *core.Client, _ int) error {
	leadership, err := locks.Election("scheduler").Campaign(ctx)
	if err != nil {
		return err
	}
	pause(leadership.Context(), 2*time.Second)
	return leadership.Resign(context.WithoutCancel(ctx))
}
