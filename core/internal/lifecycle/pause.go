package lifecycle

import (
	"context"
	"time"
)

// Pause returns after d, when ctx ends, or when one of the channels is ready. Each channel may be nil.
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

// Signal sends on a channel of capacity one, unless it holds a value already.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Closed reports whether c is closed. Nothing may be sent on c.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
