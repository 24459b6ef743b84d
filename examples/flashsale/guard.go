package main

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// guards are the two locks of the shop.
type guards struct {
	// user lets one order of a user through at a time, on whichever replica, and refuses the others at once.
	user func(http.Handler) http.Handler
	// stock runs work under the lock of that name, waiting for it for a bounded time. The context that work gets
	// carries the fencing token, and ends if the lock is lost.
	stock func(ctx context.Context, name string, work func(context.Context) error) error
}

// locked are the guards that keep the shop right.
func locked(locks *core.Client, cfg config) guards {
	return guards{
		// Without a wait, since the answers of this shop are small: net/http keeps them until the handler returns,
		// which is after the release. A user who has the answer can order again.
		user: httplock.Exclusive(locks.Mutex, byUser, httplock.WithWait(0), httplock.WithConflictHandler(conflict)),
		stock: func(ctx context.Context, name string, work func(context.Context) error) error {
			return core.Do(ctx, locks.Mutex(name), work, core.WithWait(cfg.patience))
		},
	}
}

// unlocked are the guards of the control.
func unlocked(*core.Client, config) guards {
	return guards{
		user: func(next http.Handler) http.Handler { return next },
		stock: func(ctx context.Context, _ string, work func(context.Context) error) error {
			return work(ctx)
		},
	}
}

// userOf returns who orders. Here is the place of real authentication: as it stands, everybody can order, and
// hold the lock, in anybody's name.
func userOf(r *http.Request) string { return r.Header.Get("X-User") }

// byUser tells orders apart by who sends them.
func byUser(r *http.Request) (httplock.Key, error) {
	user := userOf(r)
	if user == "" {
		return httplock.Key{}, httplock.ErrScopeRequired
	}
	return httplock.NewKey("user", user)
}

// conflict answers an order that was not let through in the words of the shop.
func conflict(w http.ResponseWriter, _ *http.Request, c *httplock.Conflict) {
	if c.Code == middleware.CodeLockConflict {
		refuse(w, errInProgress)
		return
	}
	refuse(w, c.Cause)
}
