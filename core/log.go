package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// digest stands for a lock in logs, where names do not belong: they may carry a user's data.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:4])
}

// nameless is what an error that begins with the name of a lock says after it.
func nameless(err error) error {
	if errors.Is(err, ErrWrongType) {
		return ErrWrongType // that tells the key
	}
	return cmp.Or(errors.Unwrap(err), err)
}

// report tells the operator of a lost lease.
func (k *keeper) report(l *Lease, cause error) {
	held := k.now().Sub(l.entry.Granted)
	k.logger.Warn("holdfast: lease lost",
		"lock", digest(l.hold.Keys.Lock), "token", l.token, "held", held, "cause", cause)
	k.recovered(func() {
		k.hooks.lost(Lost{
			Name: l.hold.Name, Owner: l.hold.Owner, Token: l.token, Held: held, Cause: cause,
		})
	})
}

// renewed takes note of a renewal.
func (k *keeper) renewed(l *Lease, err error) {
	err = publicAck(err)
	k.logRenewal(err)
	k.recovered(func() {
		k.hooks.renewed(Renewed{Name: l.hold.Name, Owner: l.hold.Owner, Token: l.token, Err: err})
	})
}

// renewalLogInterval is how long no renewal has to fail before the log says that they succeed again. It is also how often
// the log says that they fail. Some leases may fail while others are renewed: those of one master of a Cluster, for
// instance.
const renewalLogInterval = 10 * time.Second

// renewalLog is what the log has said of renewals.
type renewalLog struct {
	mu       sync.Mutex
	failed   clock.Instant // the last one that failed
	warned   clock.Instant // the last warning; zero if renewals are known to succeed
	failures int           // since then
}

// logRenewal warns of the first renewal that fails, then now and then with a count, and says once that they succeed again.
func (k *keeper) logRenewal(err error) {
	switch failures, again := k.renewals.note(k.now(), err); {
	case failures > 0:
		k.logger.Warn("holdfast: renewal failed, retrying while the leases are valid",
			"failures", failures, "error", err)
	case again:
		k.logger.Info("holdfast: renewals succeed again")
	}
}

// note returns how many failures are to be told of, and whether that there are none any more.
func (r *renewalLog) note(now clock.Instant, err error) (failures int, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		again = r.warned != 0 && now.Sub(r.failed) >= renewalLogInterval
		if again {
			r.warned, r.failures = 0, 0
		}
		return 0, again
	}
	r.failed = now
	r.failures++
	if r.warned != 0 && now.Sub(r.warned) < renewalLogInterval {
		return 0, false
	}
	failures = r.failures
	r.warned, r.failures = now, 0
	return failures, false
}

// recovered calls a hook on a goroutine of the client, and logs its panic. Why: the panic would end the process, and the
// renewal of all leases with it.
func (k *keeper) recovered(hook func()) {
	defer func() {
		if p := recover(); p != nil {
			k.logger.Error("holdfast: panic in a hook", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	hook()
}

func (k *keeper) warnOnce(once *sync.Once, message string, args ...any) {
	once.Do(func() { k.logger.Warn("holdfast: "+message, args...) })
}
