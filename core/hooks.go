package core

import (
	"cmp"
	"context"
	"time"
)

// Hooks are functions for tracing, metrics and audit. Each may be nil. They run on the goroutine that does the work,
// so they must be fast and must not block. Renewed and Lost mostly run on a goroutine of the client, so a panic in
// them is only logged. A hook that returns a nil context leaves the call its own. Later versions may add fields to the
// structs. Hooks get names of locks in plain text: take care where you write them.
type Hooks struct {
	// AcquireStart is called when Lock or TryLock begins. The context that it returns is used for the call and given
	// to AcquireEnd.
	AcquireStart func(ctx context.Context, start AcquireStart) context.Context
	// Wait is called when Lock has found the lock held, or other waiters in the queue, and begins to wait.
	Wait func(ctx context.Context, wait Wait)
	// AcquireEnd is called when Lock or TryLock returns.
	AcquireEnd func(ctx context.Context, end AcquireEnd)
	// ReleaseStart is called when Unlock begins.
	ReleaseStart func(ctx context.Context, start ReleaseStart) context.Context
	// ReleaseEnd is called when Unlock returns.
	ReleaseEnd func(ctx context.Context, end ReleaseEnd)
	// BeginStart is called when [Once.Begin] or [Once.Do] begins. The context that it returns is used for the call and
	// given to BeginEnd.
	BeginStart func(ctx context.Context, start BeginStart) context.Context
	// BeginEnd is called when Begin returns, or when Do has claimed the key or failed to.
	BeginEnd func(ctx context.Context, end BeginEnd)
	// AttemptEnd is called when an attempt was completed, released or held, or when that has failed.
	AttemptEnd func(ctx context.Context, end AttemptEnd)
	// Renewed is called when a renewal has been answered, or has failed.
	Renewed func(renewed Renewed)
	// Lost is called once for every lease that ends without unlock, except by [Client.Close]. The lease of an attempt
	// of a [Once] counts too; its Name is the key.
	Lost func(lost Lost)
}

// AcquireStart describes a call of Lock or TryLock.
type AcquireStart struct {
	Name  string
	Owner string
	// Try is true for TryLock.
	Try bool
}

// Wait describes a call of Lock that begins to wait.
type Wait struct {
	Name  string
	Owner string
	// Position is the place in the queue, from 1 for the next waiter. It is 0 if it is unknown. It always is for
	// [Client.Mutex], whose waiters have no order between processes.
	Position int
	// RetryAfter is the rest of the present holder's lease; zero if unknown.
	RetryAfter time.Duration
}

// AcquireEnd describes the result of a call of Lock or TryLock.
type AcquireEnd struct {
	Name  string
	Owner string
	// Token is 0 unless the lock was granted.
	Token int64
	// Waited is the time from the call to its return.
	Waited time.Duration
	// Asked counts the requests sent to Redis; 1 means that the first answer decided.
	Asked int
	// Err is what the call returned.
	Err error
}

// ReleaseStart describes a call of Unlock.
type ReleaseStart struct {
	Name  string
	Owner string
	Token int64
}

// ReleaseEnd describes the result of a call of Unlock.
type ReleaseEnd struct {
	Name  string
	Owner string
	Token int64
	// Held is the time since the grant.
	Held time.Duration
	// Err is what the call returned.
	Err error
}

// Renewed describes one renewal.
type Renewed struct {
	Name  string
	Owner string
	Token int64
	// Err is nil if the lease was extended. The client retries a failed renewal while the lease is valid.
	Err error
}

// Lost describes a lease that was lost.
type Lost struct {
	Name  string
	Owner string
	Token int64
	// Held is the time since the grant.
	Held time.Duration
	// Cause is the cause of the lease's context.
	Cause error
}

// BeginStart describes a call of [Once.Begin].
type BeginStart struct {
	Key string
}

// BeginEnd describes the result of a call of [Once.Begin].
type BeginEnd struct {
	Key string
	// Attempt is the number of the attempt, and Token its fencing token; 0 unless it may run.
	Attempt int
	Token   int64
	// Waited is the time from the call to its return.
	Waited time.Duration
	// Asked counts the requests sent to Redis.
	Asked int
	// Err is what the call returned.
	Err error
}

// AttemptEnd describes how an attempt ended.
type AttemptEnd struct {
	Key     string
	Attempt int
	Token   int64
	// State is what was to be recorded: [StateCompleted], [StateUnknown], or [StateNone] after a release.
	State State
	// Recreated says that Redis had lost the record before the attempt was recorded, by an eviction or [Once.Forget].
	// The attempt may have overlapped another one.
	Recreated bool
	// Held is the time since the key was claimed.
	Held time.Duration
	// Err is what the call returned.
	Err error
}

func (h *Hooks) acquireStart(ctx context.Context, start AcquireStart) context.Context {
	if h.AcquireStart == nil {
		return ctx
	}
	return cmp.Or(h.AcquireStart(ctx, start), ctx)
}

func (h *Hooks) wait(ctx context.Context, wait Wait) {
	if h.Wait != nil {
		h.Wait(ctx, wait)
	}
}

func (h *Hooks) acquireEnd(ctx context.Context, end AcquireEnd) {
	if h.AcquireEnd != nil {
		h.AcquireEnd(ctx, end)
	}
}

func (h *Hooks) releaseStart(ctx context.Context, start ReleaseStart) context.Context {
	if h.ReleaseStart == nil {
		return ctx
	}
	return cmp.Or(h.ReleaseStart(ctx, start), ctx)
}

func (h *Hooks) releaseEnd(ctx context.Context, end ReleaseEnd) {
	if h.ReleaseEnd != nil {
		h.ReleaseEnd(ctx, end)
	}
}

func (h *Hooks) beginStart(ctx context.Context, start BeginStart) context.Context {
	if h.BeginStart == nil {
		return ctx
	}
	return cmp.Or(h.BeginStart(ctx, start), ctx)
}

func (h *Hooks) beginEnd(ctx context.Context, end BeginEnd) {
	if h.BeginEnd != nil {
		h.BeginEnd(ctx, end)
	}
}

func (h *Hooks) attemptEnd(ctx context.Context, end AttemptEnd) {
	if h.AttemptEnd != nil {
		h.AttemptEnd(ctx, end)
	}
}

func (h *Hooks) renewed(renewed Renewed) {
	if h.Renewed != nil {
		h.Renewed(renewed)
	}
}

func (h *Hooks) lost(lost Lost) {
	if h.Lost != nil {
		h.Lost(lost)
	}
}
