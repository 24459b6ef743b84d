// Package grace lets a consumer finish what it handles when its process gets SIGTERM.
package grace

import (
	"context"
	"time"
)

// Period is shorter than the 30 s that Kubernetes gives a process before it kills it.
const Period = 20 * time.Second

// Context returns the context of what is being handled: it ends a while after ctx. The caller must call cancel.
func Context(ctx context.Context, period time.Duration) (work context.Context, cancel context.CancelFunc) {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(period, end) })
	return work, func() {
		stop()
		end()
	}
}
