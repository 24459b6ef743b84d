package httplock

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// Exclusive returns a middleware that prevents two requests of one key from running at the same time. The strategy
// makes the lock, for instance locks.Mutex; key identifies what must not run at the same time. With locks.Limit(n), at
// most n requests of a key run at a time. Exclusive panics if one of them is nil or an option is invalid:
// [NewExclusive] returns an error instead.
//
// A handler guarded twice with the same key runs: the inner guard enters the lock of the outer one.
//
// A handler that returns without an answer after its context has ended is answered for: 503 not-answered, in place of the
// empty 200 of the server. For that the handler gets a writer around the server's, with the same optional methods.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return guards.Must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (func(http.Handler) http.Handler, error) {
	e, err := newExclusive(strategy, key, exclusiveSettings(opts...))
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler { return e.wrap(next, e.run) }, nil
}

// exclusive is the guard of [Exclusive]. Make it with [newExclusive].
type exclusive struct {
	guard
	locks *guards.Exclusive
}

// newExclusive returns an exclusive whose locks are made by strategy, or an error that names the wrong argument.
func newExclusive(strategy core.Strategy, key KeyFunc, s settings) (*exclusive, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	locks, err := guards.NewExclusive(httpPlace, strategy, s.forEngine())
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errNoKey
	}
	return &exclusive{newGuard(s, key, locks), locks}, nil
}

func (e *exclusive) run(r *run) *Conflict { return e.do(r, r.watch) }

// watch runs the handler with a writer that knows how it answers.
func (r *run) watch(ctx context.Context) {
	w := r.watched
	r.handle(ctx, w.exposed())
	if w.silent = !w.wrote() && !w.failed && ctx.Err() != nil; w.silent {
		w.Header().Del("Content-Length") // of the answer that the handler did not give
	}
}

// do calls handler under the lock of the request's key. The result is the reason for a refusal, and after the call nil, or 503
// not-answered in place of a silent handler. Its outcome is recorded nowhere, so the same request would run again: such a Conflict is
// not retryable.
func (e *exclusive) do(r *run, handler func(ctx context.Context)) *Conflict {
	switch {
	case r.key.IsZero():
		return r.keyless(ErrKeyRequired, true)
	case early(r.came.Header):
		return r.keyless(errEarly, true)
	}
	hash := r.key.HashWith(e.KeySecret)
	r.named(httprecord.Prefix+hash, hash)
	w := watch(r.w)
	r.watched = w
	_, _ = e.locks.Do(r.came.Context(), r.ask, guards.Run{
		Call: func(ctx context.Context) { handler(r.begin(ctx)) },
		Judge: func(o *guards.Outcome) {
			if o.Returned && !r.refused(w.status, w.failed, w.silent) {
				o.Err = failureOf(w.status, !w.silent, w.failed)
			}
		},
		Refuse: func(ctx context.Context, not *core.NotRun) {
			code := engineCode(ctx, not.Err)
			if code == CodeLockConflict && seal.FactsOf(e.locks.Of(r.ask)).Lock.Limit > 0 { // a semaphore's
				code = CodeLimitReached
			}
			r.conflict = newConflict(code, not.Err)
			r.conflict.tell(ctx, not)
		},
	})
	if w.silent {
		return r.unanswered()
	}
	return r.conflict
}

// watchedWriter passes everything on, and remembers the status of the answer: it is the writer of handlers behind
// [Exclusive] and of handlers of refusals.
//
// One thing of net/http's writer is lost on all that wrap it: [http.MaxBytesReader] no longer announces that the
// connection of a client which sends too much will be closed.
type watchedWriter struct {
	writer.Forward
	status   int // 0 until the answer has begun
	hijacked bool
	failed   bool // the handler has reported errors, which something around the guard answers
	silent   bool // it has returned and written nothing, because its context was over
}

func watch(w http.ResponseWriter) *watchedWriter {
	return &watchedWriter{Forward: writer.Forward{ResponseWriter: w}}
}

// exposed returns the writer with the optional methods of the real one.
func (w *watchedWriter) exposed() http.ResponseWriter {
	return writer.ExposeTransparent(w, w.ResponseWriter)
}

// wrote reports whether the answer has begun.
func (w *watchedWriter) wrote() bool { return w.status != 0 || w.hijacked }

// Ended is for frameworks with writers of their own: see [writer.Answer].
func (w *watchedWriter) Ended(status int, answered, failed bool) {
	if answered {
		w.status = status
	}
	w.failed = failed
}

// begin notes the status of the answer, unless it has begun.
func (w *watchedWriter) begin(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *watchedWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *watchedWriter) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	return w.Forward.WriteString(s)
}

func (w *watchedWriter) ReadFrom(src io.Reader) (int64, error) {
	n, err := w.Forward.ReadFrom(src)
	if n > 0 {
		w.begin(http.StatusOK)
	}
	return n, err
}

func (w *watchedWriter) Flush() { _ = w.FlushError() }

func (w *watchedWriter) FlushError() error {
	err := w.Forward.FlushError()
	if !errors.Is(err, http.ErrNotSupported) {
		w.begin(http.StatusOK)
	}
	return err
}

func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.Forward.Hijack()
	w.hijacked = w.hijacked || err == nil
	return conn, buffered, err
}
