package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// digestLength is how many hex digits a digest has.
const digestLength = 8

// digest stands for a lock in logs, where names do not belong: they may carry a user's data.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:digestLength/2])
}

// nameless returns the part of an error after the name of the lock that it begins with.
func nameless(err error) error {
	if errors.Is(err, ErrWrongType) {
		return ErrWrongType // its text has the key
	}
	return cmp.Or(errors.Unwrap(err), err)
}

// report logs a lost lease if it is the first of a burst, and calls the hook for each.
func (e *engine) report(l *Lease, cause error) {
	lock := func() string { return digest(l.hold.Keys.Lock) }
	if e.losses.Note(cause, lock) {
		held := e.now().Sub(l.entry.Granted)
		e.logger.Warn("holdfast: lease lost",
			"lock", lock(), "token", l.token, "held", held, "cause", cause)
	}
	e.loses(l, cause)
}

// reportFurther logs how many leases were lost since the line about the first of them.
func (e *engine) reportFurther(f keepalive.Further) {
	e.logger.Warn("holdfast: further leases lost", "count", f.Count, "cause", f.Cause, "locks", f.Locks)
}

// renewed records a renewal.
func (e *engine) renewed(l *Lease, answer keepalive.Answer) {
	answer.Err = publicAck(answer.Err)
	e.logRenewal(e.now(), answer.Err)
	e.renewEnds(l, answer)
}

// logRenewal warns of the first failed renewal, then at intervals with a count, and logs once that renewals succeed again.
func (e *engine) logRenewal(now keepalive.Instant, err error) {
	switch failures, again := e.renewals.Note(now, err); {
	case failures > 0:
		e.logger.Warn("holdfast: renewal failed, retrying while the leases are valid",
			"failures", failures, "error", err)
	case again:
		e.logger.Info("holdfast: renewals succeed again")
	}
}

// recovered calls a hook on a goroutine of the client, and logs its panic. Otherwise the panic would end the process,
// and with it the renewal of all leases.
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
	e.logger.Warn("holdfast: an abandoned acquisition could not be removed from Redis",
		"lock", digest(h.Keys.Lock), "error", err)
}

// warnRunning warns of the attempts among the leases of a client that closes: nobody records how they end.
func (e *engine) warnRunning(leases []keepalive.Lease[script.Hold]) {
	attempts, named := 0, []string(nil)
	for _, kept := range leases {
		l := kept.(keptLease).Lease
		if modeOf(l.strategy) != ModeOnce {
			continue
		}
		if attempts++; attempts <= keepalive.MaxNamed {
			named = append(named, digest(l.hold.Keys.Lock))
		}
	}
	if attempts > 0 {
		e.logger.Warn("holdfast: closed while attempts were running", "attempts", attempts, "locks", named)
	}
}

// warnPending warns that holds are left to expire.
func (e *engine) warnPending() {
	e.warnOnce("too many releases are pending: further holds are left to expire", "waiting", transport.MaxPending)
}

// warnOnce logs a warning, unless the log has that message already.
func (e *engine) warnOnce(message string, args ...any) {
	if e.warned.First(message) {
		e.logger.Warn("holdfast: "+message, args...)
	}
}

// Digest implements [seal.Names].
func (c clientFacts) Digest(name string, record bool) string {
	if record {
		return digest(script.NewKeys(c.prefix, name).Once().Lock)
	}
	return digest(c.prefix + name)
}

// FindDigest implements [seal.Names].
func (c clientFacts) FindDigest(ctx context.Context, digest string) iter.Seq2[seal.Named, error] {
	matches, ok := matcher(strings.TrimSpace(digest))
	if !ok {
		return func(yield func(seal.Named, error) bool) {
			yield(seal.Named{}, invalidOption("find digest: %q: wanted are %d hex digits, or the %d characters of a key_hash",
				digest, digestLength, keyHashLength))
		}
	}
	locks, records := c.withDigest(ctx, matches, false), c.withDigest(ctx, matches, true)
	return func(yield func(seal.Named, error) bool) {
		for _, found := range []iter.Seq2[seal.Named, error]{locks, records} {
			for m, err := range found {
				if !yield(m, err) || err != nil {
					return
				}
			}
		}
	}
}

// keyHashLength is how many characters a SHA-256 has in base64 without padding.
const keyHashLength = 43

// matcher returns a function that returns true for the keys with a digest, or that a guard has made of a key with that hash. It
// returns false for a text that is neither.
func matcher(wanted string) (func(key string) bool, bool) {
	if _, err := hex.DecodeString(wanted); err == nil && len(wanted) == digestLength {
		wanted = strings.ToLower(wanted)
		return func(key string) bool { return digest(key) == wanted }, true
	}
	if _, err := base64.RawURLEncoding.DecodeString(wanted); err == nil && len(wanted) == keyHashLength {
		return func(key string) bool { return strings.HasSuffix(strings.TrimSuffix(key, "}"), ":"+wanted) }, true
	}
	return nil, false
}

// withDigest is FindDigest for locks, or for records. It reads only the names of keys.
func (c clientFacts) withDigest(ctx context.Context, matches func(key string) bool, records bool) iter.Seq2[seal.Named, error] {
	return pages(ctx, func(p *seal.Page) (found []seal.Named, err error) {
		err = c.listing(ctx, "find digest", 0, func(l *inventory.Lister, want int) error {
			names, next, err := l.Find(ctx, records, matches, p.Cursor)
			p.Next = next
			for _, name := range names {
				found = append(found, seal.Named{Name: name, Record: records})
			}
			return err
		})
		return found, err
	})
}

const (
	waitWarningInterval = 10 * time.Second
	holdWarningInterval = 10 * time.Minute
)

// WithWaitWarning sets how long a call waits for a lock, or in a [Once] with [WithWait], before the client logs a warning.
// The warning has the digest of the lock, its holder with its instance, and how many callers of this client wait. It is
// repeated at doubling intervals. All callers that wait for one name share the warnings. Candidates of an [Election] wait
// without. A warning may be some seconds late. 1 ms to a year. 0 switches it off. Defaults to 10 seconds.
func WithWaitWarning(after time.Duration) Option {
	return clientOption(func(c *clientConfig) {
		c.checkWarning("WithWaitWarning", after)
		c.waitWarning = after
	})
}

// WithHoldWarning sets how long a lease is held before the client logs a warning: a holder that never unlocks is renewed
// forever, unless [WithMaxHold] bounds it. The warning has the digest of the lock and the token, and is repeated at
// doubling intervals. Attempts of a [Once] count too, and leaders of an [Election] do not. A warning is late by a sixtieth
// of the time at most, or by a second. Of the leases that are due together it names the first, and the number of the
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
	e.logger.Warn("holdfast: still waiting for lock",
		"lock", digest(lock), "strategy", a.Strategy.Name(), "since", time.Now().Add(-waited), "waited", waited,
		"waiting", e.acquiring.Waits.Count(lock), "holder", ownerForLog(a.Holder), "instance", instance)
}

// HeldLong implements keepalive.Lease: it warns of a lease that lasts.
func (l keptLease) HeldLong(others int) {
	e := l.engine
	held := e.now().Sub(l.entry.Granted)
	e.logger.Warn("holdfast: lease held for a long time",
		"lock", digest(l.hold.Keys.Lock), "strategy", l.strategy.Name(), "token", l.token, "since", time.Now().Add(-held),
		"held", held, "others", others)
}
