package httpguard

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// answerTime is what is kept of the time until the server stops writing, for the answer itself.
const answerTime = time.Second

// leastFinish is enough for a Redis that works to confirm the end of a run.
const leastFinish = 100 * time.Millisecond

// guard is what all engines have in common.
type guard struct {
	config Config
	gate   *gate
	log    failureLog
	hooks  guards.Hooks
	bodies *shares
	memory outage.Memory // of a guard that fails open
}

// newGuard returns a guard with the logger and the hooks of a client, or of the client of a lock.
func newGuard(config Config, facts seal.Facts) guard {
	return guard{
		config: config, gate: newGate(config.WaitersPerKey, config.Waiters), log: failureLog{logger: facts.Logger},
		hooks: guards.HooksOf(facts), bodies: newShares(config.BodyMemory),
	}
}

// Guards reports whether requests of that method are guarded.
func (g *guard) Guards(method string) bool { return g.config.guards(method) }

// BodyLimit returns up to how many bytes of body [Buffer] should read, and whether a request with a larger one is to be
// refused with [ErrBodyTooLarge].
func (g *guard) BodyLimit() (limit int64, strict bool) {
	return g.config.BodyLimit, g.config.StrictBody
}

// Passes reports whether a request is not guarded because it has no key: err is why there is none.
func (g *guard) Passes(err error) bool { return g.config.OptionalKey && isKeyRequired(err) }

// Refuse makes the Conflict of a request that failed before it was asked about, by its key or by its body. The label is that of
// the request: see [Label].
func (g *guard) Refuse(ctx context.Context, label string, err error) *Conflict {
	return g.refused(ctx, label, g.config.conflict(requestCode(ctx, err), err))
}

// wait returns for how long a request may wait, 0 if it may not. If it returns more, the caller must call gate.leave.
func (g *guard) wait(hash, owner string, answerBy time.Time) time.Duration {
	wait := g.config.Wait
	if !answerBy.IsZero() {
		wait = min(wait, time.Until(answerBy)-answerTime)
	}
	if wait <= 0 || !g.gate.enter(hash, owner) {
		return 0
	}
	return wait
}

// patience returns how long a request waits that may wait for another one of its key for that long.
func (g *guard) patience(wait time.Duration) outage.Patience {
	return outage.Patience{Wait: wait, Ask: g.config.AskTimeout, FailOpen: g.config.FailOpen}
}

// question is what the memory of the guard is asked about a key.
func question(hash string, lock *core.Lock, fingerprint []byte) outage.Question {
	return outage.Question{Key: hash, Lock: lock, Fingerprint: fingerprint}
}

// opens reports whether a request runs without Redis because of an error, if no run of its key is known of. It notes what
// the error says of the key.
func (g *guard) opens(ctx context.Context, hash string, err error) bool {
	if !g.config.FailOpen {
		return false
	}
	g.memory.Refused(hash, err)
	return outage.Is(err) && ctx.Err() == nil
}

// granted notes a run for which Redis has granted the key, if the guard fails open. end must be called when it has ended. The
// error says that a run without Redis has used the key.
func (g *guard) granted(q outage.Question) (end func(), err error) {
	if !g.config.FailOpen {
		return func() {}, nil
	}
	return g.memory.Granted(q)
}

// await returns the error of a key that a run without Redis uses in this process or has used, after waiting for a run in
// progress. It returns how much of the wait is left.
func (g *guard) await(ctx context.Context, q outage.Question, wait time.Duration) (left time.Duration, err error) {
	if !g.config.FailOpen {
		return wait, nil
	}
	began := time.Now()
	err = g.memory.Await(ctx, q, wait)
	return max(wait-time.Since(began), 0), err
}

// finishTimeout returns how long the end of a run may wait for Redis. It is at most half of the time in which the server
// still writes an answer: after that the answer is lost, though the handler has written it.
func (g *guard) finishTimeout(answerBy time.Time) time.Duration {
	if left := time.Until(answerBy); !answerBy.IsZero() && left > 0 {
		return min(g.config.FinishTimeout, max(left/2, leastFinish))
	}
	return g.config.FinishTimeout
}
