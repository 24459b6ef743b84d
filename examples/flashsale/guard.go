package main

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// guards are what keeps the shop right: three around handlers, and a lock within one.
type guards struct {
	checkout func(http.Handler) http.Handler
	order    func(http.Handler) http.Handler
	payment  func(http.Handler) http.Handler
	// stock runs work under the lock of that name, waiting for it for a bounded time. The context that work gets
	// carries the fencing token, and ends if the lock is lost.
	stock func(ctx context.Context, name string, work func(context.Context) error) error
}

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
			httplock.WithWait(cfg.patience),
		),

		// An order must not be repeated, not even after the first one is through. One that was refused, sold out for
		// instance, does not count. A second order does not wait, but Redis may take its time, on a busy laptop.
		order: httplock.Once(
			locks, httplock.Keys(httplock.ByRoute(), user),
			httplock.WithRetention(remembered),
			httplock.WithAskTimeout(cfg.patience),
		),

		// A payment is repeated by clients that have not heard of it, and they need its receipt. So the second request waits
		// for the answer to the first; a client that hangs up does not stop a charge half-way; and what has failed is not
		// charged again before somebody has found out whether the money has moved.
		payment: httplock.Idempotent(
			locks, user,
			httplock.WithWait(cfg.patience),
			httplock.WithDetachedContext(),
			httplock.WithFailurePolicy(httplock.HoldFailures),
			httplock.WithRetention(remembered),
		),

		stock: func(ctx context.Context, name string, work func(context.Context) error) error {
			return core.Do(ctx, locks.Mutex(name), work, core.WithWait(cfg.patience))
		},
	}
}

// unlocked are the guards of the control.
func unlocked(*core.Client, config) guards {
	open := func(next http.Handler) http.Handler { return next }
	return guards{
		checkout: open, order: open, payment: open,
		stock: func(ctx context.Context, _ string, work func(context.Context) error) error {
			return work(ctx)
		},
	}
}
