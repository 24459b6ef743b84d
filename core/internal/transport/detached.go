package transport

import (
	"context"
	"time"
)

// FirstAnswerTimeout is how long the first try of a command waits for its answer. Each further try waits twice as long as the
// one before. It is shorter than the read timeout of go-redis, so that the next try can use another connection in time.
const FirstAnswerTimeout = time.Second

// ReleaseGrace is how long a detached command waits for its answer after the caller's context has ended. It is long enough
// for an answer that is on its way, and too short to delay the caller noticeably if the server is frozen.
const ReleaseGrace = 25 * time.Millisecond

// DetachedContext is the context of a command that must be sent even after the caller's context has ended. The executor
// waits for the answer until the timeout. If the caller's context ends meanwhile, it waits for ReleaseGrace more.
//
// Why the executor of a single server has to know the type: a context with a timer of its own would cost a release more
// than the release itself.
type DetachedContext struct {
	context.Context               // the caller's; without its end if it had ended before Reset
	timeout         time.Duration // for the answer
}

// Reset prepares d for one command and returns it. The caller must not use d for another command before that one returns.
func (d *DetachedContext) Reset(ctx context.Context, timeout time.Duration) context.Context {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	d.Context, d.timeout = ctx, timeout
	return d
}
