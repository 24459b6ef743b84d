package httpguard

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// guard is what Exclusive and Once have in common.
type guard struct {
	config Config
	engine engine
	log    *guards.Log
	gate   *gate
	bodies *shares
}

// engine is what the two guards of package guard have in common.
type engine interface {
	Do(ctx context.Context, ask guards.Ask, run guards.Run) (*guards.Outcome, error)
	Patience(ask guards.Ask, wait time.Duration) guards.Patience
}

func newGuard(config Config, e engine, log *guards.Log) guard {
	return guard{
		config: config, engine: e, log: log,
		gate: newGate(config.WaitersPerKey, config.Waiters), bodies: newShares(config.BodyMemory),
	}
}

// forEngine returns what the engine has to know. A request keeps its lease until its handler returns, and only one kind of
// request without a key passes: see [guard.Passes].
func (c *Config) forEngine() guards.Config {
	config := c.Config
	config.ZombieGrace, config.OptionalKey = 0, false
	return config
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
func (g *guard) Refuse(ctx context.Context, label string, err error) (conflict *Conflict) {
	_, _ = g.engine.Do(ctx, guards.Ask{Work: core.Work{Label: label}, NoKey: err}, guards.Run{
		Refuse: func(ctx context.Context, not *core.NotRun) {
			conflict = g.config.conflict(requestCode(ctx, err), err)
			conflict.tell(ctx, not)
			g.logRefused(ctx, not.Work, conflict)
		},
	})
	return conflict
}
