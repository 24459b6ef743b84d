package keepalive

import (
	"context"
	"sync"
	"time"
)

// Operations counts the running operations of a client, so that Close can wait for them. After Close has begun, no call
// of a user starts, but internal work for what is running still does. The zero value is not usable, see [NewOperations].
type Operations struct {
	mu      sync.Mutex
	running int // guarded by mu

	// Closing is closed when Close begins. Only BeginClose closes it.
	Closing chan struct{}
	// Finished is closed after Closing, when no operation is running any more. Only Finish closes it.
	Finished chan struct{}
}

// NewOperations returns a count of zero operations.
func NewOperations() *Operations {
	return &Operations{Closing: make(chan struct{}), Finished: make(chan struct{})}
}

// Start counts a call of a user. It returns false once Close has begun. If it returns true, the caller must call Finish.
func (o *Operations) Start() bool { return o.addUnless(o.Closing) }

// StartInternal counts internal work. It returns false if the client is closing and no operation is running any more. If
// it returns true, the caller must call Finish.
func (o *Operations) StartInternal() bool { return o.addUnless(o.Finished) }

// addUnless counts one more operation and returns true, unless the channel over is closed.
func (o *Operations) addUnless(over <-chan struct{}) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if Closed(over) {
		return false
	}
	o.running++
	return true
}

// Finish ends an operation that Start, StartInternal or BeginClose has counted. It must be called once for each.
func (o *Operations) Finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running--; o.running == 0 && Closed(o.Closing) {
		close(o.Finished)
	}
}

// BeginClose lets no more calls of users start. It returns false if it was called before. If it returns true, the close
// counts as a running operation, and the caller must call Finish.
func (o *Operations) BeginClose() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if Closed(o.Closing) {
		return false
	}
	close(o.Closing)
	o.running++
	return true
}

// IsClosed returns true if Close has begun, even if operations are still running.
func (o *Operations) IsClosed() bool { return Closed(o.Closing) }

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
