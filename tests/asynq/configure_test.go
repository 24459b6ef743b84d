package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

var errOwn = errors.New("a mistake of the task")

func deferredBy(reason error) error {
	return fmt.Errorf("handler: %w", &asynqlock.DeferredError{KeyHash: "k", RetryIn: 7 * time.Second, Err: reason})
}

// TestConfigure: deferred tasks are no failures, and all else is asked of the functions that were there.
func TestConfigure(t *testing.T) {
	t.Parallel()
	var asked, delayed, handled []error
	ignored := errors.New("no failure")
	cfg := asynq.Config{
		IsFailure: func(err error) bool {
			asked = append(asked, err)
			return !errors.Is(err, ignored)
		},
		RetryDelayFunc: func(n int, err error, _ *asynq.Task) time.Duration {
			delayed = append(delayed, err)
			return time.Duration(n) * time.Minute
		},
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) { handled = append(handled, err) }),
	}
	asynqlock.Configure(&cfg)
	if text := panicOf(func() { asynqlock.Configure(nil) }); !strings.Contains(text, "the config is nil") {
		t.Errorf("without a config: %q", text)
	}
	busy := deferredBy(fmt.Errorf("x: %w", core.ErrInProgress))
	for _, test := range []struct {
		err          error
		failure      bool
		delay        time.Duration
		asked, heard bool
	}{
		{busy, false, 7 * time.Second, false, false},
		{deferredBy(core.ErrNotAcquired), false, 7 * time.Second, false, false},
		{deferredBy(fmt.Errorf("%w: %w", core.ErrInProgress, core.ErrTooManyWaiters)), false, 7 * time.Second, false, false},
		{deferredBy(fmt.Errorf("%w: %w", core.ErrNotAcquired, core.ErrUnavailable)), false, 7 * time.Second, false, true},
		{deferredBy(core.ErrLeaseLost), false, 7 * time.Second, false, true},
		{errOwn, true, 3 * time.Minute, true, true},
		{ignored, false, 3 * time.Minute, true, true},
		{asynq.ErrLeaseExpired, true, 3 * time.Minute, true, true},
		{context.Canceled, true, 3 * time.Minute, true, true},
	} {
		asked, delayed, handled = nil, nil, nil
		if got := cfg.IsFailure(test.err); got != test.failure || (len(asked) == 1) != test.asked {
			t.Errorf("%v: failure %v, asked %v", test.err, got, asked)
		}
		if got := cfg.RetryDelayFunc(3, test.err, receipt("7")); got != test.delay || (len(delayed) == 1) != test.asked {
			t.Errorf("%v: delay %v, asked %v", test.err, got, delayed)
		}
		if cfg.ErrorHandler.HandleError(t.Context(), receipt("7"), test.err); (len(handled) == 1) != test.heard {
			t.Errorf("%v: told %v", test.err, handled)
		}
	}
}

// TestConfigureNothing: what was not there is as without.
func TestConfigureNothing(t *testing.T) {
	t.Parallel()
	var cfg asynq.Config
	asynqlock.Configure(&cfg)
	if cfg.ErrorHandler != nil {
		t.Error("there is an ErrorHandler")
	}
	if !cfg.IsFailure(errOwn) || cfg.IsFailure(deferredBy(core.ErrInProgress)) || cfg.IsFailure(nil) {
		t.Error("IsFailure")
	}
	if d := cfg.RetryDelayFunc(2, errOwn, receipt("7")); d < 15*time.Second { // asynq's own least
		t.Errorf("delay %v", d)
	}
	if d := cfg.RetryDelayFunc(2, deferredBy(core.ErrInProgress), receipt("7")); d != 7*time.Second {
		t.Errorf("delay %v", d)
	}
}

// TestConfigureTwice: it does no harm.
func TestConfigureTwice(t *testing.T) {
	t.Parallel()
	asked := 0
	cfg := asynq.Config{IsFailure: func(error) bool { asked++; return true }}
	asynqlock.Configure(&cfg)
	asynqlock.Configure(&cfg)
	if !cfg.IsFailure(errOwn) || asked != 1 || cfg.IsFailure(deferredBy(core.ErrInProgress)) {
		t.Errorf("asked %d times", asked)
	}
}

// TestCancelledByShutdown: what the end of the BaseContext has cancelled has not failed, but only then.
func TestCancelledByShutdown(t *testing.T) {
	t.Parallel()
	base, shutdown := context.WithCancel(t.Context())
	cfg := asynq.Config{BaseContext: func() context.Context { return base }}
	asynqlock.Configure(&cfg)
	cancelled := fmt.Errorf("handler: %w", context.Canceled)
	if !cfg.IsFailure(cancelled) {
		t.Error("cancelled before: no failure")
	}
	shutdown()
	if cfg.IsFailure(cancelled) {
		t.Error("cancelled by it: a failure")
	}
	if !cfg.IsFailure(errOwn) || !cfg.IsFailure(context.DeadlineExceeded) || !cfg.IsFailure(asynq.ErrLeaseExpired) {
		t.Error("other errors: no failure")
	}
}

// TestShutdownBurnsNoRetry: a handler that heeds the BaseContext has its task tried again, with as many retries left.
func TestShutdownBurnsNoRetry(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	base, shutdown := context.WithCancel(t.Context())
	defer shutdown()
	started, ended := make(chan struct{}), make(chan struct{})
	s.serveWith(func(cfg *asynq.Config) { cfg.BaseContext = func() context.Context { return base } },
		func(ctx context.Context, _ *asynq.Task) error {
			defer close(ended)
			close(started)
			<-ctx.Done()
			return ctx.Err()
		}, asynqlock.Once(s.locks, asynqlock.ByTaskID()))
	id := s.enqueue(receipt("7"), asynq.MaxRetry(3)).ID
	<-started
	shutdown()
	<-ended
	if info := s.awaitState(id, asynq.TaskStateRetry); info.Retried != 0 || info.LastErr != context.Canceled.Error() {
		t.Errorf("retried %d times, %s", info.Retried, info.LastErr)
	}
}
