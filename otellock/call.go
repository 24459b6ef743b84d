package otellock

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// call is one acquisition and the lease that it got. It is the context of both, and so reaches each of their hooks. Being a
// context, it costs one allocation. Metrics are recorded with it, too: it has the values of the contexts of hooks, and
// looking them up does not allocate. That it may have ended does not matter to a metric.
type call struct {
	context.Context // of the caller
	*telemetry

	mode   core.Mode
	name   string
	family string
	try    bool

	permits int // of a semaphore with metrics of its own, else 0; written before the lease is counted

	// Each count is added once and taken back once, whichever hooks are called. So waiters and leases stay exact.
	waiting atomic.Bool
	lease   atomic.Int32

	span    trace.Span      // of the acquisition; nil without spans
	spanCtx context.Context // has the span
	ended   atomic.Bool     // the span
}

// Value returns the call itself for its key. While the acquisition continues, other values come from the context with its
// span, and afterwards from the caller's. The context of the lease descends from this one, and spans of the work must not be
// children of a span that has ended.
func (c *call) Value(key any) any {
	if key == any(c.telemetry) {
		return c
	}
	if c.spanCtx != nil && !c.ended.Load() {
		return c.spanCtx.Value(key)
	}
	return c.Context.Value(key)
}

// callOf returns the call whose context ctx is or descends from; nil if there is none.
func (t *telemetry) callOf(ctx context.Context) *call {
	c, _ := ctx.Value(t).(*call)
	return c
}

// starts makes the call of an acquisition.
func (t *telemetry) starts(ctx context.Context, mode core.Mode, name string, try bool) *call {
	c := &call{Context: ctx, telemetry: t, mode: mode, name: name, try: try}
	if t.config.family != nil {
		c.family = valid(t.config.family(name))
	}
	if t.config.spans {
		c.startSpan()
	}
	return c
}

// waits counts a call that begins to wait.
func (c *call) waits(position int, retryAfter time.Duration) {
	if c.waiting.CompareAndSwap(false, true) {
		c.waiters.Add(c, 1, c.perStrategy.of(labels{mode: c.mode, family: c.family}).add...)
		c.waitEvent(position, retryAfter)
	}
}

// The states of a lease. It may be lost before the hook of its acquisition is called: then it is never counted.
const (
	noLease int32 = iota
	leaseCounted
	leaseEnded
)

// ends records the result of the acquisition. granted says that there is a lease.
func (c *call) ends(outcome string, contended bool, waited time.Duration, granted bool) {
	per := labels{mode: c.mode, family: c.family}
	if c.waiting.CompareAndSwap(true, false) {
		c.waiters.Add(c, -1, c.perStrategy.of(per).add...)
	}
	if granted && c.lease.CompareAndSwap(noLease, leaseCounted) {
		c.count(1)
	}
	per.value, per.contended = outcome, contended
	c.acquireDuration.Record(c, waited.Seconds(), c.perAcquire.of(per).record...)
}

// leaseEnds records the end of the lease. It returns false if the lease has ended before.
func (c *call) leaseEnds(end string, held time.Duration) bool {
	switch c.lease.Swap(leaseEnded) {
	case leaseEnded:
		return false
	case leaseCounted:
		c.count(-1)
	}
	per := labels{mode: c.mode, family: c.family, value: end}
	c.holdDuration.Record(c, held.Seconds(), c.perEnd.of(per).record...)
	return true
}

// count adds the lease to what this process holds, or takes it off with -1.
func (c *call) count(n int64) {
	c.leases.Add(c, n, c.perStrategy.of(labels{mode: c.mode, family: c.family}).add...)
	switch {
	case c.permits > 0:
		c.permitsUsage.Add(c, n*int64(c.permits), c.named[c.name].add...)
	case c.mode == core.ModeElection && c.config.elections[c.name]:
		c.leader.Add(c, n, c.named[c.name].add...)
	}
}
