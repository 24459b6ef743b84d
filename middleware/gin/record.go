package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value. Wrap is what [Once] and [Idempotent] return. The other methods are
// for operators: Peek, Records, Resolve and Forget are those of [httplock.Guard]. The zero Guard guards nothing: its methods
// return errors, or panic.
type Guard struct {
	*httpguard.Ledger
	handle gin.HandlerFunc
}

// Wrap guards the handlers behind it in a chain: router.POST("/orders", guard.Wrap, handler). It panics if g is the
// zero Guard.
func (g *Guard) Wrap(c *gin.Context) {
	if g == nil || g.handle == nil {
		panic("holdfast: the guard is the zero Guard: make it with NewOnce or NewIdempotent")
	}
	g.handle(c)
}
