package keepalive

import (
	"context"
	"time"
)

// Pause returns after d, when ctx ends, or when one of the channels can be received from. Each channel may be nil, which
// is never ready. If d is not positive, Pause returns at once. A value on wake or stop is consumed.
func Pause(ctx context.Context, d time.Duration, wake, stop <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-wake:
	case <-stop:
	}
}

// Signal sends a value on a channel of capacity one. It does nothing if the channel holds a value. It never blocks.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Closed returns true if c is closed. It never blocks. No value may be sent on c: Closed would consume it. A nil channel
// counts as open.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
