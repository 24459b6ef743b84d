package lockconformance

import (
	"testing"
	"time"
)

// No test asserts that something is quick. These bound how long a test waits for what must happen, and make
// sure that it cannot happen by itself meanwhile.
const (
	// within is how long anything may take on a busy machine.
	within = time.Minute
	// long is a TTL that outlasts every test.
	long = 5 * time.Minute
	// short is a TTL whose end a test waits for.
	short = time.Second
	// clockGap is how far ValidUntil, which is made of readings of two clocks, may be off on a busy machine.
	clockGap = 200 * time.Millisecond
	// readTimeout is what impatient connections wait for a reply.
	readTimeout = 500 * time.Millisecond
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
