package middleware

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		left          time.Duration
		least, atMost int64
	}{
		{0, 1, 1},
		{time.Millisecond, 1, 1},
		{time.Second, 1, 1},
		{1001 * time.Millisecond, 2, 2},
		{4 * time.Second, 4, 5},
		{30 * time.Second, 30, 37},
		{time.Minute, 60, 75},
		{time.Hour, 60, 75},
		{math.MaxInt64, 60, 75},
	} {
		seen := map[int64]bool{}
		for range 500 {
			seconds := int64(jittered(test.left) / time.Second)
			seen[seconds] = true
			if seconds < test.least || seconds > test.atMost {
				t.Fatalf("%v left: %d s, want %d to %d", test.left, seconds, test.least, test.atMost)
			}
		}
		if test.least < test.atMost && len(seen) < 2 {
			t.Errorf("%v left: no jitter", test.left)
		}
	}
}

func TestRetryAfterOutage(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 500 {
		seen[afterOutage()] = true
	}
	for s := range seen {
		if s < time.Second || s > 5*time.Second {
			t.Errorf("%v", s)
		}
	}
	if len(seen) < 2 {
		t.Error("no jitter")
	}
}

func TestWaitIsBoundedByTheServer(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.Wait = time.Minute
	g := newGuard(config, slog.Default)
	if got := g.wait("key", "owner", time.Time{}); got != time.Minute {
		t.Errorf("without limit: %v", got)
	}
	if got := g.wait("key", "owner", time.Now().Add(time.Hour)); got != time.Minute {
		t.Errorf("an hour: %v", got)
	}
	if got := g.wait("key", "owner", time.Now().Add(30*time.Second)); got > 29*time.Second || got <= 0 {
		t.Errorf("30 s: %v", got)
	}
	if got := g.wait("key", "owner", time.Now().Add(time.Second/2)); got != 0 {
		t.Errorf("half a second: %v", got)
	}
}

func TestLockCodes(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	held := error(&core.NotAcquiredError{Name: "x"})
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{t.Context(), held, CodeLockConflict},
		{expired, held, CodeLockConflict},
		{t.Context(), errors.Join(held, core.ErrUnavailable), CodeLockUnavailable},
		{t.Context(), core.ErrUnavailable, CodeLockUnavailable},
		{t.Context(), core.ErrClosed, CodeLockUnavailable},
		{t.Context(), errors.New("other"), CodeLockUnavailable},
		{cancelled, held, CodeClientGone},
		{cancelled, core.ErrUnavailable, CodeClientGone},
	} {
		if got := lockCode(test.ctx, test.err); got != test.want {
			t.Errorf("%v with context %v: %s, want %s", test.err, test.ctx.Err(), got, test.want)
		}
	}
}

func TestEveryCodeHasItsTexts(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		CodeKeyRequired, CodeKeyInvalid, CodeScopeRequired, CodeLockConflict, CodeLimitReached, CodeClientGone, CodeKeyFailed, CodeGuardFailed,
		CodeLockUnavailable, CodeRequestInProgress, CodeAlreadyCompleted, CodeOutcomeUnknown, CodePayloadTooLarge,
		CodeKeyReused, CodeTooEarly, CodeTooManyKeys,
		CodeBodyUnreadable, CodeBodyTimeout, CodeTooManyBodies,
	} {
		config := DefaultConfig()
		p := config.conflict(code, core.ErrUnavailable).Problem()
		if p.Status < 400 || p.Title == "" || p.Detail == "" || p.Code != code {
			t.Errorf("%s: %+v", code, p)
		}
	}
}

func TestInstanceIsTheRequest(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	p := config.conflict(CodeLockConflict, core.ErrNotAcquired).Problem()
	for id, want := range map[string]string{
		"0a6b5c3e-1f2d-4c3b-8a9e-7d6c5b4a3f2e": "urn:uuid:0a6b5c3e-1f2d-4c3b-8a9e-7d6c5b4a3f2e",
		"":                                     "", "42": "", "<script>": "",
	} {
		if got := p.For(http.Header{"X-Request-Id": {id}}).Instance; got != want {
			t.Errorf("request id %q: instance %q, want %q", id, got, want)
		}
	}
}
