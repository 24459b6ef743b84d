package transport

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// Background is what commands need of the client on whose behalf they are sent, beyond the call that started them.
type Background struct {
	Now        keepalive.Clock
	Operations *keepalive.Operations
	// Go runs work on a goroutine that Close waits for. It returns false, and runs nothing, if the client has finished.
	Go func(work func(ctx context.Context)) bool
	// Recovered calls a function that may run hooks of the user's Redis client, and logs a panic in them. It may be nil.
	Recovered func(call func())
	// Confirmed is called after a server has confirmed a command of Pending. It may be nil.
	Confirmed func()
}

// recovered calls Recovered. If that is nil, it calls the function without recovering from panics.
func (b *Background) recovered(call func()) {
	if b.Recovered == nil {
		call()
		return
	}
	b.Recovered(call)
}

// confirmed calls Confirmed, if it is set.
func (b *Background) confirmed() {
	if b.Confirmed != nil {
		b.Confirmed()
	}
}
