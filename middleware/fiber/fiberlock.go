package fiberlock

import (
	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Exclusive is [httplock.Exclusive] for handlers of fiber: no two requests of one key run at the same time. It panics if an argument is nil
// or an option is invalid: [NewExclusive] returns an error instead.
func Exclusive(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) fiber.Handler {
	return guards.Must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) (fiber.Handler, error) {
	guard, err := httplock.NewExclusive(strategy, keyFunc(key), opts...)
	if err != nil {
		return nil, err
	}
	return handler(guard), nil
}

// Once is [httplock.Once] for handlers of fiber: a request of each key takes effect once. It panics if an argument is nil or an option is
// invalid: [NewOnce] returns an error instead.
func Once(client *core.Client, key httplock.KeyFunc, opts ...httplock.Option) fiber.Handler {
	return guards.Must(NewOnce(client, key, opts...)).Wrap
}

// NewOnce is [Once] as a value, with methods for an operator. It returns an error instead of panicking.
func NewOnce(client *core.Client, key httplock.KeyFunc, opts ...httplock.Option) (*Guard, error) {
	return newGuard(httplock.NewOnce(client, keyFunc(key), opts...))
}

// Idempotent is [httplock.Idempotent] for handlers of fiber: a request with the Idempotency-Key of an earlier one of its scope gets the
// same response. It panics if an argument is nil or an option is invalid: [NewIdempotent] returns an error instead.
func Idempotent(client *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) fiber.Handler {
	return guards.Must(NewIdempotent(client, scope, opts...)).Wrap
}

// NewIdempotent is [Idempotent] as a value, with methods for an operator. It returns an error instead of panicking.
func NewIdempotent(client *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) (*Guard, error) {
	return newGuard(httplock.NewIdempotent(client, keyFunc(scope), opts...))
}

// ledger has the methods of a guard that are the same for all adapters.
type ledger = httplock.Guard

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value: Wrap is what [Once] and [Idempotent] return, and the methods of
// [httplock.Guard] are for operators. The zero Guard guards nothing: its methods return errors, or panic.
type Guard struct {
	*ledger
	handle fiber.Handler
}

func newGuard(guard *httplock.Guard, err error) (*Guard, error) {
	if err != nil {
		return nil, err
	}
	return &Guard{guard, handler(guard.Wrap)}, nil
}

// Wrap guards the handlers behind it in a chain: app.Post("/orders", guard.Wrap, handler). It panics if g is the zero Guard.
func (g *Guard) Wrap(c fiber.Ctx) error {
	if g == nil || g.handle == nil {
		panic("holdfast: the guard is the zero Guard: make it with NewOnce or NewIdempotent")
	}
	return g.handle(c)
}
