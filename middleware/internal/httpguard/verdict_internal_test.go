package httpguard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// TestRetryAfterHasJitter: clients that were refused together do not come back together.
func TestRetryAfterHasJitter(t *testing.T) {
	t.Parallel()
	for most, after := range map[time.Duration]func() time.Duration{
		2 * time.Second: afterConflict, 5 * time.Second: afterOutage,
	} {
		seen := map[time.Duration]bool{}
		for range 500 {
			seen[after()] = true
		}
		for s := range seen {
			if s < time.Second || s > most {
				t.Errorf("%v, want 1s to %v", s, most)
			}
		}
		if len(seen) < 2 {
			t.Error("no jitter")
		}
	}
}

func TestWaitIsBoundedByTheServer(t *testing.T) {
	t.Parallel()
	config := ExclusiveConfig()
	config.Wait = time.Minute
	g := newGuard(config, seal.Facts{Logger: slog.Default()})
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
		config := ExclusiveConfig()
		p := config.conflict(code, core.ErrUnavailable).Problem()
		if p.Status < 400 || p.Title == "" || p.Detail == "" || p.Code != code {
			t.Errorf("%s: %+v", code, p)
		}
	}
}

func TestInstanceIsTheRequest(t *testing.T) {
	t.Parallel()
	config := ExclusiveConfig()
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
