package core

import (
	"context"
	"time"
)

// Hooks are functions for tracing, metrics and audit. Each may be nil. They run on the goroutine that does the work,
// so they must be fast and must not block. A panic reaches the caller, and no lock stays behind; after one in ReleaseStart the
// release is tried in the background. Renewed and Lost mostly run on a goroutine of the client, so a panic in
// them is only logged. A hook must not call [runtime.Goexit], as t.Fatal of a test does: in these two it also ends the work for
// other leases of the client. Hooks of different leases run concurrently. Later versions may add fields to the structs. Hooks
// get names of locks in plain text: take care where you write them.
//
// # Contexts
//
// The context of every hook has the values of the context that AcquireStart returned for that acquisition, or BeginStart
// for that attempt. So a hook finds there what it has put into it. In addition:
//
//   - AcquireStart and BeginStart get the context of the call. What they return is used for the call, and is the parent
//     of the lease's context.
//   - ReleaseStart, ReleaseEnd and AttemptEnd get a context that ends with that of the call. It has the values of that
//     context too, except those with the same key. What ReleaseStart returns is used for the call, and given to
//     ReleaseEnd.
//   - The contexts of Renewed and Lost have neither an end nor a deadline.
//   - RunStart and NotRun get the context of the request, the tick or the task. RunEnd and Incident get that of the run,
//     or a context with its values.
//
// A hook that returns a nil context leaves the call its own.
//
// # Leases now
//
// The number of leases that a client holds can be counted. Add 1 for each AcquireEnd and BeginEnd without an error.
// Subtract 1 for each Lost, for each ReleaseEnd unless its error is [ErrNotHeld], and for each AttemptEnd without
// LeaseLost. A [Multi] counts as its members, and a re-entry as one more lease.
type Hooks struct {
	// AcquireStart is called when Lock or TryLock begins.
	AcquireStart func(ctx context.Context, start AcquireStart) context.Context
	// Wait is called when Lock has found the lock held, or other waiters in the queue, and begins to wait. It is also
	// called for a [Once] with [WithWait].
	Wait func(ctx context.Context, wait Wait)
	// AcquireEnd is called when Lock or TryLock returns.
	AcquireEnd func(ctx context.Context, end AcquireEnd)
	// ReleaseStart is called when Unlock begins.
	ReleaseStart func(ctx context.Context, start ReleaseStart) context.Context
	// ReleaseEnd is called when Unlock returns.
	ReleaseEnd func(ctx context.Context, end ReleaseEnd)
	// BeginStart is called when [Once.Begin] or [Once.Do] begins.
	BeginStart func(ctx context.Context, start BeginStart) context.Context
	// BeginEnd is called when Begin returns, or when Do has claimed the key or failed to.
	BeginEnd func(ctx context.Context, end BeginEnd)
	// AttemptEnd is called when an attempt was completed, released or held, or when that has failed.
	AttemptEnd func(ctx context.Context, end AttemptEnd)
	// Renewed is called when a renewal has been answered, or has failed. It is not called if the answer is that the lease
	// is lost.
	Renewed func(ctx context.Context, renewed Renewed)
	// Lost is called once for every lease that ends without Unlock. The lease of an attempt of a [Once] counts too; its
	// Name is the key. [Client.Close] loses the leases that it ends, with the reason [LossClosed].
	Lost func(ctx context.Context, lost Lost)
	// ProofAsked is called when [WithProof] has asked its proof about a key, and when the transaction of a run has found that an
	// earlier one has committed.
	ProofAsked func(ctx context.Context, asked ProofAsked)
	// RunStart is called when a guard lets a request, a tick or a task run. What it returns is the context of the run.
	RunStart func(ctx context.Context, start RunStart) context.Context
	// RunEnd is called when such a run has ended and its guard has tried to record that.
	RunEnd func(ctx context.Context, end RunEnd)
	// NotRun is called when a guard does not let a request, a tick or a task run.
	NotRun func(ctx context.Context, not NotRun)
	// Incident is called when a run has less than its guard promises.
	Incident func(ctx context.Context, incident Incident)
}

// AcquireStart describes a call of Lock or TryLock.
type AcquireStart struct {
	Name  string
	Owner string
	Mode  Mode
	// Permits that are wanted of a [Client.Semaphore], and Limit, its n; 0 for other locks. So they are in all structs.
	Permits, Limit int
	// Try is true for TryLock.
	Try bool
}

// Wait describes a call of Lock that begins to wait.
type Wait struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	// Position is the place in the queue, from 1 for the next waiter. It is 0 if it is unknown. It always is for
	// [Client.Mutex], whose waiters have no order between processes.
	Position int
	// RetryAfter is the rest of the present holder's lease; zero if unknown.
	RetryAfter time.Duration
	// Holder is the owner that holds the lock, or one of several, and HolderInstance its instance, as far as they are
	// known: see [NotAcquiredError].
	Holder, HolderInstance string
}

// AcquireEnd describes the result of a call of Lock or TryLock.
type AcquireEnd struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	// Token is 0 unless the lock was granted.
	Token int64
	// TTL is that of the grant; 0 without one.
	TTL time.Duration
	// Reentered is true if the lock was granted as one more entry of the owner, under the lease of the call's context.
	// It is false for an entry by [WithOwner] alone.
	Reentered bool
	// Contended is true if the lock was held, or other waiters were before the call. It is false if the first answer
	// granted the lock, and if there was no answer.
	Contended bool
	// Position is the place in the queue when the wait began, as in [Wait]; 0 if unknown, or without a wait.
	Position int
	// Waited is the time from the call to its return.
	Waited time.Duration
	// Asked counts the requests sent to Redis; 1 means that the first answer decided.
	Asked int
	// Holder is the owner that held the lock at the last answer, and HolderInstance its instance, as in [Wait]. Both are
	// empty if the lock was granted.
	Holder, HolderInstance string
	// Err is what the call returned.
	Err error
}

// ReleaseStart describes a call of Unlock.
type ReleaseStart struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// Left is for how long the lease would have been valid without a renewal; 0 if it had ended.
	Left time.Duration
}

// ReleaseEnd describes the result of a call of Unlock.
type ReleaseEnd struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// Held is the time since the grant.
	Held time.Duration
	// Left is for how long the lease would have been valid without a renewal when Unlock began; 0 if it had ended.
	Left time.Duration
	// Err is what the call returned.
	Err error
}

// Renewed describes one renewal.
type Renewed struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// TTL is that which was requested.
	TTL time.Duration
	// Left is for how long the lease was still valid when the answer came, without this renewal. It is the margin of the
	// renewal: about two thirds of the TTL, unless renewals fail or are late.
	Left time.Duration
	// Took is the time from the sending to the answer; 0 if the renewal was not sent.
	Took time.Duration
	// Err is nil if the lease was extended. The client retries a failed renewal while the lease is valid.
	Err error
}

// Lost describes a lease that was lost.
type Lost struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// Reason is why, for metrics.
	Reason LossReason
	// Held is the time since the grant.
	Held time.Duration
	// Left is for how long the lease would have been valid without a renewal; 0 if its time was up.
	Left time.Duration
	// Cause is the cause of the lease's context.
	Cause error
}

// LossReason is why a lease was lost.
type LossReason string

// The reasons of losses.
const (
	LossExpired   LossReason = "expired"   // no renewal succeeded in time
	LossFixedTTL  LossReason = "fixed-ttl" // the TTL of [WithFixedTTL] has expired
	LossMaxHold   LossReason = "max-hold"  // [WithMaxHold] has passed
	LossGone      LossReason = "gone"      // not in Redis any more: forced out, deleted, evicted, or expired by its clock
	LossReplaced  LossReason = "replaced"  // another owner has the lock in Redis
	LossTaken     LossReason = "taken"     // one of the last two, and it is not known which
	LossAbandoned LossReason = "abandoned" // [Lease.Abandon]
	LossClosed    LossReason = "closed"    // [Client.Close]
)
