package httpconformance

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var retryAfterTests = tests{
	"RetryAfterIsNotTheLease": testRetryAfter,
}

// testRetryAfter: a client is not sent away for the time after which the lease of a crashed run expires.
func testRetryAfter(t *testing.T, s *suite) {
	ttl := core.WithTTL(40 * time.Second)
	for name, guard := range map[string]Guard{
		httplock.CodeLockConflict:      s.exclusive(t, ttl, core.WithWait(0)),
		httplock.CodeRequestInProgress: s.once(t, ttl),
	} {
		a := s.whileRunning(t, request{user: "retry-after"}, guard)
		if p := a.refused(t, http.StatusConflict, name); p.RetryAfter < 1 || p.RetryAfter > 2 {
			t.Errorf("%s: Retry-After %d s at a conflict, want 1 or 2", name, p.RetryAfter)
		}
	}
}
