package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// digestLength is how many hex digits a digest has.
const digestLength = 8

// digest stands for a lock in logs, where names do not belong: they may carry a user's data.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:digestLength/2])
}

// nameless is what an error that begins with the name of a lock says after it.
func nameless(err error) error {
	if errors.Is(err, ErrWrongType) {
		return ErrWrongType // that tells the key
	}
	return cmp.Or(errors.Unwrap(err), err)
}

// report tells the operator of a lost lease, if it is the first of a burst, and the hook of each.
func (e *engine) report(l *Lease, cause error) {
	lock := func() string { return digest(l.hold.Keys.Lock) }
	if e.losses.Note(cause, lock) {
		held := e.now().Sub(l.entry.Granted)
		e.logger.Warn("holdfast: lease lost",
			"lock", lock(), "token", l.token, "held", held, "cause", cause)
	}
	e.loses(l, cause)
}

// reportFurther tells the operator how many leases were lost since the line about one of them.
func (e *engine) reportFurther(f keepalive.Further) {
	e.logger.Warn("holdfast: further leases lost", "count", f.Count, "cause", f.Cause, "locks", f.Locks)
}

// renewed takes note of a renewal.
func (e *engine) renewed(l *Lease, answer keepalive.Answer) {
	answer.Err = publicAck(answer.Err)
	now := e.now()
	e.announcer.Touch(now, l.hold.TTL)
	e.logRenewal(now, answer.Err)
	e.renewEnds(l, answer)
}

// logRenewal warns of the first renewal that fails, then now and then with a count, and says once that they succeed again.
func (e *engine) logRenewal(now keepalive.Instant, err error) {
	switch failures, again := e.renewals.Note(now, err); {
	case failures > 0:
		e.logger.Warn("holdfast: renewal failed, retrying while the leases are valid",
			"failures", failures, "error", err)
	case again:
		e.logger.Info("holdfast: renewals succeed again")
	}
}

// recovered calls a hook on a goroutine of the client, and logs its panic. Why: the panic would end the process, and the
// renewal of all leases with it.
func (e *engine) recovered(hook func()) {
	defer func() {
		if p := recover(); p != nil {
			e.logger.Error("holdfast: panic in a hook", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	hook()
}

// warnNotReleased warns of a hold that no caller got and that is left in Redis.
func (e *engine) warnNotReleased(h *script.Hold, err error) {
	e.logger.Warn("holdfast: a hold that no caller got could not be removed from Redis",
		"lock", digest(h.Keys.Lock), "error", err)
}

// warnPending warns, once, that holds are left to expire.
func (e *engine) warnPending() {
	e.warnOnce(&e.overdue, "too many releases are pending: further holds are left to expire", "waiting", transport.MaxPending)
}

func (e *engine) warnOnce(once *sync.Once, message string, args ...any) {
	once.Do(func() { e.logger.Warn("holdfast: "+message, args...) })
}
