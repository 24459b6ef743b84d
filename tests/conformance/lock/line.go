package lockconformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// outcome is what a call in another goroutine came to.
type outcome struct {
	lease *core.Lease
	err   error
}

// lineUp lets the rival wait for a name that is held, and returns when it is in line, so that calls made one after
// another are in line one after another.
func (p *process) lineUp(ctx context.Context, name string, opts ...core.LockOption) <-chan outcome {
	p.w.t.Helper()
	if p.pair.Rival.Waiters == nil {
		return start(ctx, p.rival(name), opts...)
	}
	before := p.waiters(name)
	done := start(ctx, p.rival(name), opts...) // may be on its way to Redis
	testkit.Eventually(p.w.t, within, "the waiter to be in line", func() bool {
		return len(done) > 0 || p.waiters(name) > before
	})
	return done
}

// waiters counts who is in line in Redis.
func (p *process) waiters(name string) int {
	p.w.t.Helper()
	var n int
	var err error
	testkit.Eventually(p.w.t, within, "the waiters to be counted", func() bool {
		n, err = p.pair.Rival.Waiters(context.Background(), name)
		return !errors.Is(err, core.ErrUnavailable) // as on a busy machine
	})
	if err != nil {
		p.w.t.Fatalf("count the waiters: %v", err)
	}
	return n
}

// start calls Lock in another goroutine and returns when the call has begun to wait: for an answer, for its turn or
// for news.
func start(ctx context.Context, l *core.Lock, opts ...core.LockOption) <-chan outcome {
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
