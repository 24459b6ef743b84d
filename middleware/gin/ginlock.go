package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Exclusive is [httplock.Exclusive] for handlers of gin: no two requests of one key run at the same time. It panics if an argument is nil
// or an option is invalid: [NewExclusive] returns an error instead.
//
// A chain that returns without a response after its context has ended is answered for: 503 not-answered, in place of the empty 200
// of gin. A status that is set and an error in c.Errors count as a response. A handler that is reached through gin's HandleContext
// runs in the lock of the one that called it.
func Exclusive(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) gin.HandlerFunc {
	return guards.Must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key httplock.KeyFunc, opts ...httplock.Option) (gin.HandlerFunc, error) {
	guard, err := httplock.NewExclusive(strategy, framework.Key(key), opts...)
	if err != nil {
		return nil, err
	}
	return handler(guard), nil
}

// Once is [httplock.Once] for handlers of gin: a request of each key takes effect once. It panics if an argument is nil or an option is
// invalid: [NewOnce] returns an error instead. Errors in c.Errors without a response are a failure too.
//
// The response is held back until it is recorded, with what HandleContext adds to it. If another middleware around the guard has
// replaced c.Writer, what HandleContext writes for another route is not recorded.
func Once(client *core.Client, key httplock.KeyFunc, opts ...httplock.Option) gin.HandlerFunc {
	return guards.Must(NewOnce(client, key, opts...)).Wrap
}

// NewOnce is [Once] as a value, with methods for an operator. It returns an error instead of panicking.
func NewOnce(client *core.Client, key httplock.KeyFunc, opts ...httplock.Option) (*Guard, error) {
	return newGuard(httplock.NewOnce(client, framework.Key(key), opts...))
}

// Idempotent is [httplock.Idempotent] for handlers of gin: a request with the Idempotency-Key of an earlier one of its scope gets the
// same response. It panics if an argument is nil or an option is invalid: [NewIdempotent] returns an error instead.
func Idempotent(client *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) gin.HandlerFunc {
	return guards.Must(NewIdempotent(client, scope, opts...)).Wrap
}

// NewIdempotent is [Idempotent] as a value, with methods for an operator. It returns an error instead of panicking.
func NewIdempotent(client *core.Client, scope httplock.KeyFunc, opts ...httplock.Option) (*Guard, error) {
	return newGuard(httplock.NewIdempotent(client, framework.Key(scope), opts...))
}

// ledger has the methods of a guard that are the same for all adapters.
type ledger = httplock.Guard

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value: Wrap is what [Once] and [Idempotent] return, and the methods of
// [httplock.Guard] are for operators. The zero Guard guards nothing: its methods return errors, or panic.
type Guard struct {
	*ledger
	handle gin.HandlerFunc
}

func newGuard(guard *httplock.Guard, err error) (*Guard, error) {
	if err != nil {
		return nil, err
	}
	return &Guard{guard, handler(guard.Wrap)}, nil
}

// Wrap guards the handlers behind it in a chain: router.POST("/orders", guard.Wrap, handler). It panics if g is the
// zero Guard.
func (g *Guard) Wrap(c *gin.Context) {
	if g == nil || g.handle == nil {
		panic("holdfast: the guard is the zero Guard: make it with NewOnce or NewIdempotent")
	}
	g.handle(c)
}

// handler returns a guard of net/http as a handler in front of the rest of a chain.
func handler(guard func(http.Handler) http.Handler) gin.HandlerFunc {
	if _, known := blank.Type().Elem().FieldByName(field); !known {
		panic("holdfast: the writer of this version of gin is not known: use another version of gin or of holdfast")
	}
	guarded := framework.Middleware(guard, next)
	return func(c *gin.Context) {
		real := c.Writer
		defer func() { c.Writer = real }() // also if a key function has panicked
		_ = guarded(c)                     // errors of a chain are in c.Errors
	}
}
