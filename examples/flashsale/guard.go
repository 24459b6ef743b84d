package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// guard runs work under the lock of that name. The context that work gets carries the fencing token, and ends
// if the lock is lost.
type guard func(ctx context.Context, name string, work func(context.Context) error) error

// guards are the two locks of the shop.
type guards struct {
	user  guard // refuses at once if the lock is held
	stock guard // waits for it, for a bounded time
}

func locked(locks *core.Client, patience time.Duration) guards {
	return guards{
		user: func(ctx context.Context, name string, work func(context.Context) error) error {
			return core.TryDo(ctx, locks.Mutex(name), work)
		},
		stock: func(ctx context.Context, name string, work func(context.Context) error) error {
			return core.Do(ctx, locks.Mutex(name), work, core.WithWait(patience))
		},
	}
}

// unlocked are the guards of the control.
func unlocked() guards {
	open := func(ctx context.Context, _ string, work func(context.Context) error) error { return work(ctx) }
	return guards{user: open, stock: open}
}
