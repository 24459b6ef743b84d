package core

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

const (
	waitWarningInterval = 10 * time.Second
	holdWarningInterval = 10 * time.Minute
)

// WithWaitWarning sets how long a call waits for a lock, or in a [Once] with [WithWait], before the client logs a warning.
// The warning tells the digest of the lock, its holder with its instance, and how many callers of this client wait. It is
// repeated at doubling intervals. All callers that wait for one name share the warnings. Candidates of an [Election] wait
// without. A warning may be some seconds late. 1 ms to a year. 0 switches it off. Defaults to 10 seconds.
func WithWaitWarning(after time.Duration) Option {
	return clientOption(func(c *clientConfig) {
		c.checkWarning("WithWaitWarning", after)
		c.waitWarning = after
	})
}

// WithHoldWarning sets how long a lease is held before the client logs a warning: a holder that never unlocks is renewed
// for ever, unless [WithMaxHold] bounds it. The warning tells the digest of the lock and the token, and is repeated at
// doubling intervals. Attempts of a [Once] count too, and leaders of an [Election] do not. A warning is late by a sixtieth
// of the time at most, or by a second. Of the leases that are due together it tells the first, and the number of the
// others. 1 ms to a year. 0 switches it off. Defaults to 10 minutes.
func WithHoldWarning(after time.Duration) Option {
	return clientOption(func(c *clientConfig) {
		c.checkWarning("WithHoldWarning", after)
		c.holdWarning = after
	})
}

func (c *clientConfig) checkWarning(option string, after time.Duration) {
	c.lock.checkUnit(option, after)
	if after < 0 || after > maxTTL {
		c.lock.refuse(invalidOption("%s(%v): 0 to %v is allowed", option, after, maxTTL))
	}
}

// StillWaiting implements acquire.Caller: it warns of a wait that lasts.
func (a *acquisition) StillWaiting(since keepalive.Instant) {
	e, lock := a.engine, a.Hold.Keys.Lock
	now := e.now()
	e.announcer.Touch(now, a.Hold.TTL)
	waited, instance := now.Sub(since), e.directory.Instance(a.Holder)
	if a.config.leavesLosses || !e.acquiring.Waits.Due(lock, waited, now) {
		return
	}
	e.logger.Warn("holdfast: a call has waited for long",
		"lock", digest(lock), "strategy", a.Strategy.Name(), "since", time.Now().Add(-waited), "waited", waited,
		"waiting", e.acquiring.Waits.Count(lock), "holder", ownerForLog(a.Holder), "instance", instance)
}

// HeldLong implements keepalive.Lease: it warns of a lease that lasts.
func (l keptLease) HeldLong(others int) {
	e := l.engine
	held := e.now().Sub(l.entry.Granted)
	e.logger.Warn("holdfast: a lease has been held for long",
		"lock", digest(l.hold.Keys.Lock), "strategy", l.strategy.Name(), "token", l.token, "since", time.Now().Add(-held),
		"held", held, "others", others)
}
