package redistest

import (
	"testing"
	"time"
)

// Eventually waits until cond is true, and fails the test at once if it is not
// within the time given. It looks once per millisecond. What says in the failure
// message what was waited for.
func Eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(time.Millisecond)
	}
}
