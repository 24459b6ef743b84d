package testkit

import (
	"testing"
	"time"
)

// Eventually waits until cond is true, and fails the test at once if it is not
// within the time given. It looks once per millisecond at first, and less often
// the longer it takes. What says in the failure message what was waited for.
func Eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	poll(t, within, time.Millisecond, what, cond)
}

// agreeTimeout bounds how long the servers of a deployment take to agree. It is generous like startTimeout, and leaves
// room for a second try of theirs.
const agreeTimeout = time.Minute

// await waits until the servers of a deployment agree. To ask them all is not for nothing, and they take their time.
func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	poll(t, agreeTimeout, 20*time.Millisecond, what, cond)
}

// rarest is how seldom poll looks if that is less often than asked for: what takes long may be seen a bit later.
const rarest = 10 * time.Millisecond

func poll(t testing.TB, within, pause time.Duration, what string, cond func() bool) {
	t.Helper()
	began := time.Now()
	for !cond() {
		took := time.Since(began)
		if took > within {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(max(pause, min(took/16, rarest)))
	}
}
