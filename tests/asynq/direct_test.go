package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// desk hands tasks to guards as an asynq server does, but one by one.
type desk struct {
	t     *testing.T
	redis *testkit.Server
	rdb   *redis.Client
	locks *core.Client
}

func newDesk(t *testing.T, opts ...core.Option) *desk {
	t.Helper()
	server := testkit.Start(t)
	rdb := server.Client()
	return &desk{t: t, redis: server, rdb: rdb, locks: clientOf(t, rdb, opts...)}
}

// delivery is what asynq knows of a task that has many retries left.
func delivery(id string, edit ...func(*asynq.TaskInfo)) *asynq.TaskInfo {
	info := &asynq.TaskInfo{ID: id, Queue: "default", MaxRetry: 25}
	for _, e := range edit {
		e(info)
	}
	return info
}

// lastTry leaves no retry.
func lastTry(info *asynq.TaskInfo) { info.Retried = info.MaxRetry }

// deliver runs a task behind guards, the first of which is the outermost.
func (d *desk) deliver(info *asynq.TaskInfo, t *asynq.Task, handler asynq.HandlerFunc, guards ...asynq.MiddlewareFunc) error {
	return deliver(d.t.Context(), info, t, handler, guards...)
}

func deliver(
	ctx context.Context, info *asynq.TaskInfo, t *asynq.Task, handler asynq.HandlerFunc, guards ...asynq.MiddlewareFunc,
) error {
	mux := asynq.NewServeMux()
	mux.Use(guards...)
	mux.Handle(t.Type(), handler)
	return mux.ProcessTask(asynqlock.ContextWithTask(ctx, info), t)
}

// nothing is a handler that succeeds.
func nothing(context.Context, *asynq.Task) error { return nil }

// occupied runs a task that continues until release is called, or the test ends; then wait for ended.
type occupied struct {
	ctx  context.Context // of the handler
	free chan struct{}
	err  chan error
	once sync.Once
}

// occupy returns once the handler runs. What it returns is given to release.
func (d *desk) occupy(info *asynq.TaskInfo, t *asynq.Task, guards ...asynq.MiddlewareFunc) *occupied {
	d.t.Helper()
	return occupy(d.t, d.t.Context(), info, t, guards...)
}

func occupy(
	t *testing.T, ctx context.Context, info *asynq.TaskInfo, task *asynq.Task, guards ...asynq.MiddlewareFunc,
) *occupied {
	t.Helper()
	o := &occupied{free: make(chan struct{}), err: make(chan error, 1)}
	started, ended := make(chan struct{}), make(chan struct{})
	handler := func(ctx context.Context, _ *asynq.Task) error {
		o.ctx = ctx
		close(started)
		<-o.free
		return nil
	}
	go func() {
		defer close(ended)
		err := deliver(ctx, info, task, handler, guards...)
		// The machine may be too busy for an answer in time, and what was asked for is then in the way for a while.
		for late := errors.Is(err, core.ErrUnavailable); late && o.ctx == nil && err != nil && !isFailure(err); {
			err = deliver(ctx, info, task, handler, guards...)
		}
		o.err <- err
	}()
	t.Cleanup(func() {
		o.leave()
		<-ended
	})
	select {
	case <-started:
	case err := <-o.err:
		o.err <- err
		t.Fatalf("it did not run: %v", err)
	}
	return o
}

func (o *occupied) leave() { o.once.Do(func() { close(o.free) }) }

// release lets the handler return nil, and returns what the guard makes of that.
func (o *occupied) release() error {
	o.leave()
	err := <-o.err
	o.err <- err
	return err
}

// hashOf returns the hash of the key of a task behind Exclusive.
func hashOf(t *testing.T, key asynqlock.KeyFunc, info *asynq.TaskInfo, task *asynq.Task) string {
	t.Helper()
	text, err := key(asynqlock.ContextWithTask(t.Context(), info), task)
	wantNil(t, err)
	return guard.Hash(nil, text)
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// wantErrors checks that err is each of want.
func wantErrors(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%v, want %v", err, w)
		}
	}
}

// configured is the config of a server after Configure, with a handler of errors unless it is nil.
func configured(handle asynq.ErrorHandlerFunc) (cfg asynq.Config) {
	if handle != nil {
		cfg.ErrorHandler = handle
	}
	asynqlock.Configure(&cfg)
	return cfg
}

// isFailure is how asynq treats what a guard returns.
func isFailure(err error) bool { return configured(nil).IsFailure(err) }

// wantDeferred checks that the task was deferred for a reason.
func wantDeferred(t *testing.T, err, reason error) *asynqlock.DeferredError {
	t.Helper()
	var deferred *asynqlock.DeferredError
	if !errors.As(err, &deferred) || !errors.Is(err, reason) {
		t.Errorf("%v, want it deferred: %v", err, reason)
		return new(asynqlock.DeferredError)
	}
	return deferred
}

// diary is what was logged.
type diary struct{ testkit.Log }

func (d *diary) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// panicOf returns what fn panics with, "" if it does not.
// newOnce makes a guard whose records a test reads.
func newOnce(t *testing.T, locks *core.Client, key asynqlock.KeyFunc, opts ...asynqlock.Option) *asynqlock.Guard {
	t.Helper()
	g, err := asynqlock.NewOnce(locks, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func panicOf(fn func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	fn()
	return ""
}
