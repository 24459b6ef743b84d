package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// No test asserts that something is quick. These bound how long a test waits for what must happen, and make
// sure that it cannot happen by itself meanwhile.
const (
	// within is how long anything may take on a busy machine.
	within = 20 * time.Second
	// long is a TTL that outlasts every test.
	long = 2 * time.Minute
	// short is a TTL whose end a test waits for.
	short = 300 * time.Millisecond
	// clockGap is how far ValidUntil, which is made of readings of two clocks, may be off on a busy machine.
	clockGap = 20 * time.Millisecond
	// readTimeout is what connections through a relay wait for a reply.
	readTimeout = 300 * time.Millisecond
)

// wait returns once done is closed, or ends the test.
func wait(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatalf("waited %v for %s", within, what)
	}
}

// outcome is what a call in another goroutine came to.
type outcome struct {
	lease *core.Lease
	err   error
}

// start calls Lock in another goroutine and returns when the call has begun to wait for its turn or for news,
// so that calls started one after another are in line one after another.
func start(ctx context.Context, l core.Locker, opts ...core.LockOption) <-chan outcome {
	watched := &watchedContext{Context: ctx, waiting: make(chan struct{}, 1)}
	done := make(chan outcome, 1)
	go func() {
		lease, err := l.Lock(watched, opts...)
		done <- outcome{lease, err}
		watched.note()
	}()
	<-watched.waiting
	return done
}

// watchedContext notes when somebody asks for its Done channel, which a call does when it begins to wait.
type watchedContext struct {
	context.Context
	waiting chan struct{}
}

func (c *watchedContext) note() {
	select {
	case c.waiting <- struct{}{}:
	default:
	}
}

func (c *watchedContext) Done() <-chan struct{} {
	c.note()
	return c.Context.Done()
}

func (o outcome) check(t *testing.T) *core.Lease {
	t.Helper()
	if o.err != nil {
		t.Fatalf("lock: %v", o.err)
	}
	return o.lease
}

// receive returns the outcome of a started call, or ends the test.
func receive(t *testing.T, done <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(within):
		t.Fatalf("waited %v for Lock to return", within)
		return outcome{}
	}
}
