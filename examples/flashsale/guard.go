package main

import (
	"context"
	"net/http"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// guards are what keeps the shop right: three around handlers, two locks within them, one around a job of the schedule,
// and one around a task.
type guards struct {
	checkout func(http.Handler) http.Handler
	order    func(http.Handler) http.Handler
	payment  func(http.Handler) http.Handler
	// stock runs work under the lock of that name, waiting for it for a bounded time. The context that work gets
	// carries the fencing token, and ends if the lock is lost.
	stock func(ctx context.Context, name string, work func(context.Context) error) error
	// gateway calls the payment gateway, which allows a bounded number of calls at a time, once there is room for one
	// more. It waits for a bounded time.
	gateway func(ctx context.Context, call func(context.Context) error) error
	// settlement adds the job that all replicas have in their schedules.
	settlement func(c *cron.Cron, settle settling) error
	// receipt makes the guard of the task that sends receipts.
	receipt func(opts ...asynqlock.Option) asynq.MiddlewareFunc
}

// settling does the work of a tick of the schedule.
type settling func(ctx context.Context, tick time.Time) error

// settlementSpec is "0 3 * * *" in a shop that has more time.
const settlementSpec = "@every 1s"

// remembered is how long orders and payments are remembered, here longer than any sale lasts: "one order per user"
// means one per user in this time.
const remembered = time.Hour

// locked are the guards of the shop.
func locked(locks *core.Client, cfg config) guards {
	user := httplock.ByContext(userKey{})
	return guards{
		// A checkout can be repeated, but two at once would spoil each other's work. The second one waits for its turn.
		checkout: httplock.Exclusive(
			locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")),
			core.WithWait(cfg.patience),
		),

		// An order must not be repeated, not even after the first one is through. One that was refused, sold out for
		// instance, does not count. A second order does not wait, but Redis may take its time, on a busy laptop.
		order: httplock.Once(
			locks, httplock.Keys(httplock.ByRoute(), user),
			core.WithRetention(remembered),
			httplock.WithAskTimeout(cfg.patience),
		),

		// A payment is repeated by clients that have not heard of it, and they need its receipt. So the second request waits
		// for the answer to the first; a client that hangs up does not stop a charge half-way; and what has failed is not
		// charged again before somebody has found out whether the money has moved.
		payment: httplock.Idempotent(
			locks, user,
			core.WithWait(cfg.patience),
			core.WithFailurePolicy(core.HoldFailures),
			core.WithRetention(remembered),
		),

		stock: func(ctx context.Context, name string, work func(context.Context) error) error {
			return locks.Mutex(name).Do(ctx, work, core.WithWait(cfg.patience))
		},

		// The contract with the gateway counts the calls of all replicas together. A replica that crashes gives its permits
		// back when their leases expire.
		gateway: func(ctx context.Context, call func(context.Context) error) error {
			return locks.Semaphore("gateway", cfg.gateway).Do(ctx, call, core.WithWait(cfg.patience))
		},

		// All replicas have the same schedule, and each tick is for one of them, whichever comes first.
		settlement: func(c *cron.Cron, settle settling) error {
			_, err := cronlock.AddFunc(c, locks, settlementSpec, "settlement", func(ctx context.Context) error {
				run, _ := cronlock.RunFrom(ctx)
				return settle(ctx, run.Tick)
			})
			return err
		},

		// A receipt is for an order, however often it is enqueued. Sending takes milliseconds, so the second task waits in its
		// worker for the first, and then is acknowledged; where it takes longer, tasks better come again later.
		receipt: func(opts ...asynqlock.Option) asynq.MiddlewareFunc {
			opts = append(opts, core.WithRetention(remembered), core.WithWait(cfg.patience))
			return asynqlock.Once(locks, asynqlock.ByPayload("order"), opts...)
		},
	}
}

// unlocked are the guards of the baseline.
func unlocked(*core.Client, config) guards {
	open := func(next http.Handler) http.Handler { return next }
	return guards{
		checkout: open, order: open, payment: open,
		stock: func(ctx context.Context, _ string, work func(context.Context) error) error {
			return work(ctx)
		},
		gateway: func(ctx context.Context, call func(context.Context) error) error { return call(ctx) },
		settlement: func(c *cron.Cron, settle settling) error {
			_, err := c.AddFunc(settlementSpec, func() {
				_ = settle(context.Background(), time.Now().Truncate(time.Second))
			})
			return err
		},
		receipt: func(...asynqlock.Option) asynq.MiddlewareFunc {
			return func(next asynq.Handler) asynq.Handler { return next }
		},
	}
}
