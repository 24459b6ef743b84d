package httplock

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
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

// TestWaitIsBounded: a request waits until a second before the server stops writing, and as long as there is room.
func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	config := exclusiveSettings()
	config.Wait, config.WaitersPerKey = time.Minute, 1
	e, err := newExclusive(coretest.Unused(t), Unscoped(), config)
	if err != nil {
		t.Fatal(err)
	}
	r := item{}.run(t.Context(), &e.guard)
	r.named("http:hash", "hash")
	r.ask.By = time.Now().Add(30 * time.Second)
	ask := func(min, max time.Duration) func(context.Context, time.Duration) error {
		return func(_ context.Context, wait time.Duration) error {
			if wait < min || wait > max {
				t.Errorf("waits %v, want %v to %v", wait, min, max)
			}
			return nil
		}
	}
	err = r.turn(t.Context(), func(ctx context.Context, wait time.Duration) error {
		if err := r.turn(ctx, ask(0, 0)); err != nil {
			t.Error(err)
		}
		return ask(time.Second, 29*time.Second)(ctx, wait)
	})
	if err != nil {
		t.Error(err)
	}
	r.ask.By = time.Now().Add(time.Second / 2)
	if err := r.turn(t.Context(), ask(0, 0)); err != nil {
		t.Error(err)
	}
	if len(e.gate.waiting) != 0 {
		t.Errorf("%v still wait", e.gate.waiting)
	}
}

func TestEngineCodes(t *testing.T) {
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
		{t.Context(), core.ErrWrongType, CodeGuardFailed},
		{t.Context(), errors.New("other"), CodeLockUnavailable},
		{cancelled, held, CodeClientGone},
		{cancelled, core.ErrUnavailable, CodeClientGone},
	} {
		if got := engineCode(test.ctx, test.err); got != test.want {
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
		p := newConflict(code, core.ErrUnavailable).Problem()
		if p.Status < 400 || p.Title == "" || p.Detail == "" || p.Code != code {
			t.Errorf("%s: %+v", code, p)
		}
	}
}

func TestInstanceIsTheRequest(t *testing.T) {
	t.Parallel()
	p := newConflict(CodeLockConflict, core.ErrNotAcquired).Problem()
	for id, want := range map[string]string{
		"0a6b5c3e-1f2d-4c3b-8a9e-7d6c5b4a3f2e": "urn:uuid:0a6b5c3e-1f2d-4c3b-8a9e-7d6c5b4a3f2e",
		"":                                     "", "42": "", "<script>": "",
	} {
		if got := p.For(http.Header{"X-Request-Id": {id}}).Instance; got != want {
			t.Errorf("request id %q: instance %q, want %q", id, got, want)
		}
	}
}
