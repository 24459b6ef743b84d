package middleware

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// answerTime is what is kept of the time until the server stops writing, for the answer itself.
const answerTime = time.Second

// guard is what all engines have in common.
type guard struct {
	config Config
	gate   *gate
	holds  holds
	bodies *bodyMemory
}

func newGuard(config Config) guard {
	return guard{
		config: config, gate: newGate(config.WaitersPerKey, config.Waiters), bodies: &bodyMemory{limit: config.BodyMemory},
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

// Refuse makes the Conflict of a request that failed before it was asked about, by its key or by its body.
func (g *guard) Refuse(ctx context.Context, err error) *Conflict {
	return g.refused(ctx, g.config.conflict(requestCode(ctx, err), err))
}

func (g *guard) refused(ctx context.Context, c *Conflict) *Conflict {
	refusedInside(ctx)
	if g.config.Hooks.Refused != nil {
		g.config.Hooks.Refused(ctx, c)
	}
	return c
}

func (g *guard) acquired(ctx context.Context, a Acquired) {
	if g.config.Hooks.Acquired != nil {
		g.config.Hooks.Acquired(ctx, a)
	}
}

func (g *guard) failed(ctx context.Context, f Failure) {
	if g.config.Hooks.Failed != nil {
		g.config.Hooks.Failed(ctx, f)
	}
}

// wait returns for how long a request may wait, 0 if it may not. Otherwise it owes a leave of the gate. prefer is what
// the client said, negative if it said nothing.
func (g *guard) wait(hash string, answerBy time.Time, prefer time.Duration) time.Duration {
	wait := g.config.Wait
	if prefer >= 0 && g.config.PreferWait > 0 {
		wait = min(prefer, g.config.PreferWait)
	}
	if !answerBy.IsZero() {
		wait = min(wait, time.Until(answerBy)-answerTime)
	}
	if wait <= 0 || !g.gate.enter(hash) {
		return 0
	}
	return wait
}

// Applied returns the Preference-Applied of an answer to a request with that header (RFC 7240), "" if there is none.
func (g *guard) Applied(h http.Header) string {
	prefer := preferred(h)
	if prefer < 0 || g.config.PreferWait <= 0 {
		return ""
	}
	return "wait=" + strconv.Itoa(int(min(prefer, g.config.PreferWait)/time.Second))
}

// retryAfter returns when to come back to a key whose holder's lease has that much left. That is the honest guess as
// long as nothing is known of this guard's runs: the holder may be done sooner or renew it.
func (g *guard) retryAfter(left time.Duration) time.Duration {
	if most, known := g.holds.most(); known {
		left = min(left, most)
	}
	return jittered(left)
}
