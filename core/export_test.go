package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// WaitingCalls counts the callers of a client that wait for what lies at a key.
func WaitingCalls(c *Client, key string) int {
	return c.acquiring.Waits.Count(key)
}

// PollNever keeps the waiters of a client from polling for an hour while they are subscribed, but not those with a queue in Redis. It
// must be called before the client is used.
func PollNever(c *Client) { c.acquiring.Lists.PollInterval = time.Hour }

// OnceKey is where the record of a key lies.
func OnceKey(c *Client, key string) string { return script.NewKeys(c.prefix, key).Once().Lock }

// MaxWaiters is how many may wait for one name.
func MaxWaiters(c *Client) int { return c.acquiring.Waits.Most }

// SendProclamation sends a leader's proclamation with a given number, like one that arrives late.
func SendProclamation(ctx context.Context, l *Leadership, number int64, value string) (bool, error) {
	return l.send(ctx, number, value)
}

// AtLoss calls notify when leadership is lost, before the contexts end that were made before this call.
func AtLoss(l *Leadership, notify func(error)) { l.lease.end.Bind(notify) }

// Counted is how many bytes a record with so much content counts in its group.
func Counted(content int) int64 { return script.Counted(content) }

// UnconfirmedEnds counts the completions of a client that Redis has not confirmed.
func UnconfirmedEnds(c *Client) int { return c.server.once.Unconfirmed.Len() }

// Suspendable returns a function that lets the clock of a client's leases continue without its timers, as a suspend of the host
// does. It must be called before the client is used.
func Suspendable(c *Client) (suspend func(d time.Duration)) {
	var offset atomic.Int64
	e, system := c.engine, c.now
	e.now = func() keepalive.Instant { return system() + keepalive.Instant(offset.Load()) }
	e.renewer = keepalive.NewRenewer[script.Hold](e.now, drift)
	return func(d time.Duration) { offset.Add(int64(d)) }
}

// RunUnder runs a function under a lease and unlocks, as Do of a lock does.
func RunUnder(ctx context.Context, l *Lease, fn func(context.Context) error) error {
	return l.run(ctx, fn)
}
