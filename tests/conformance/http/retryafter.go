package httpconformance

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

var retryAfterTests = tests{
	"RetryAfterBeginsShort": testRetryAfterFirst,
	"RetryAfterIsLearned":   testRetryAfterLearned,
	"RetryAfterIsAtLeast1s": testRetryAfterShort,
}

// lease is the TTL in these tests, in seconds: far longer than any run.
const lease = 40

// testRetryAfterFirst: a guard that knows nothing of its runs does not send a client away for the time of a crash.
func testRetryAfterFirst(t *testing.T, s *suite) {
	ttl := middleware.WithLock(core.WithTTL(lease * time.Second))
	for name, guard := range map[string]Guard{
		middleware.CodeLockConflict:      s.exclusive(t, ttl, middleware.WithWait(0)),
		middleware.CodeRequestInProgress: s.once(t, ttl),
	} {
		a := s.whileRunning(t, request{user: "retry-first"}, guard)
		if p := a.refused(t, http.StatusConflict, name); p.RetryAfter != 1 {
			t.Errorf("%s: Retry-After %d s at the first conflict, want 1", name, p.RetryAfter)
		}
	}
}

// testRetryAfterLearned: whoever knows that runs take milliseconds does not send anybody away for the time of a crash.
func testRetryAfterLearned(t *testing.T, s *suite) {
	ttl := middleware.WithLock(core.WithTTL(lease * time.Second))
	for name, guard := range map[string]Guard{
		"lock-conflict": s.exclusive(t, ttl, middleware.WithWait(0)), "request-in-progress": s.once(t, ttl),
	} {
		quick := s.mount(t, &counter{}, guard)
		for i := range 20 {
			quick.do(request{user: fmt.Sprint("retry-learned-", i)}).want(t, http.StatusCreated)
		}
		p := s.whileRunning(t, request{user: "retry-learned"}, guard).refused(t, http.StatusConflict, name)
		if p.RetryAfter < 1 || p.RetryAfter > lease/4 {
			t.Errorf("%s: Retry-After %d s after 20 short runs", name, p.RetryAfter)
		}
	}
}

func testRetryAfterShort(t *testing.T, s *suite) {
	guard := s.once(t, middleware.WithLock(core.WithTTL(900*time.Millisecond)))
	p := s.whileRunning(t, request{user: "retry-short"}, guard).
		refused(t, http.StatusConflict, middleware.CodeRequestInProgress)
	if p.RetryAfter != 1 {
		t.Errorf("Retry-After %d s, want 1", p.RetryAfter)
	}
}
