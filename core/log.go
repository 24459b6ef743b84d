package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"runtime/debug"
	"sync"
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
	held := k.now().sub(l.granted)
	k.logger.Warn("holdfast: lease lost",
		"lock", digest(l.hold.keys.lock), "token", l.token, "held", held, "cause", cause)
	k.shielded(func() {
		k.hooks.lost(Lost{
			Name: l.hold.name, Owner: l.hold.owner, Token: l.token, Held: held, Cause: cause,
		})
	})
}

// renewed takes note of a renewal. The log tells of the first failure and of the first success after it.
func (k *keeper) renewed(l *Lease, err error) {
	if failed := err != nil; k.failing.Swap(failed) != failed {
		if failed {
			k.logger.Warn("holdfast: renewal failed, trying again while the leases are valid", "error", err)
		} else {
			k.logger.Info("holdfast: renewals succeed again")
		}
	}
	k.shielded(func() {
		k.hooks.renewed(Renewed{Name: l.hold.name, Owner: l.hold.owner, Token: l.token, Err: err})
	})
}

// shielded calls a hook from a goroutine of the client, where a panic would end the process, and the renewal of all
// leases with it.
func (k *keeper) shielded(hook func()) {
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
