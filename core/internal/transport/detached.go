package transport

import (
	"context"
	"time"
)

// FirstAnswer is how long the first try of a command is waited for, and each further one twice as long as the one before
// it. Shorter than go-redis waits on a connection without an answer, so that another connection has its chance in time.
const FirstAnswerTimeout = time.Second

// ReleaseGrace is how much longer a detached command is waited for when the caller's context ends meanwhile: enough for an
// answer that is on its way, too little for a frozen server to be felt.
const ReleaseGrace = 25 * time.Millisecond

// DetachedContext is the context of a command that must be sent even after the caller's context has ended. The executor
// waits for the answer until the timeout. If the caller's context ends meanwhile, it waits for ReleaseGrace more.
//
// Why the executor of a single server has to know the type: a context with a timer of its own would cost a release more
// than the release itself.
type DetachedContext struct {
	context.Context               // the caller's; without its end if that came before
	timeout         time.Duration // for the answer
}

// Reset prepares the context for one command and returns it.
func (d *DetachedContext) Reset(ctx context.Context, timeout time.Duration) context.Context {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	d.Context, d.timeout = ctx, timeout
	return d
}
