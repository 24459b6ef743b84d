package httplock

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/middleware/internal/request"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// guard is what the guards of Exclusive, Once and Idempotent have in common.
type guard struct {
	settings
	key    KeyFunc
	engine engine
	log    *guards.Log
	gate   *gate
	bodies *shares
}

// engine is what the two guards of package guard have in common.
type engine interface {
	Do(ctx context.Context, ask guards.Ask, run guards.Run) (*guards.Outcome, error)
	Patience(ask guards.Ask, wait time.Duration) guards.Patience
}

func newGuard(s settings, key KeyFunc, e engine, log *guards.Log) guard {
	return guard{
		settings: s, key: key, engine: e, log: log,
		gate: newGate(s.WaitersPerKey, s.Waiters), bodies: newShares(s.BodyMemory),
	}
}

var errNoKey = errors.New("holdfast: the key function is nil: a guard needs a key")

// Guards reports whether requests of that method are guarded.
func (g *guard) Guards(method string) bool { return g.guards(method) }

// visit is a request at a guard.
type visit struct {
	w     http.ResponseWriter
	next  http.Handler
	outer *http.Request // as it came
	inner *http.Request // a copy, whose body may be replaced and whose form may be parsed
	key   Key
}

// serve lets a request pass, has it run under the guard, or refuses it.
func (g *guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler, run func(*visit) *Conflict) {
	if !g.guards(r.Method) {
		next.ServeHTTP(w, r)
		return
	}
	v := &visit{w: w, next: next, outer: r, inner: r.WithContext(r.Context())}
	defer func() { request.GiveBack(r, v.inner) }()
	defer g.admit(v.inner)()
	var err error
	if v.key, err = g.key(v.inner); err == nil {
		err = g.bufferRequest(v.inner, v.key)
	}
	host, hosted := writer.Behind(w).(writer.Host)
	var conflict *Conflict
	switch {
	case hosted && host.Answered():
		return
	case err == nil:
		conflict = run(v)
	case g.OptionalKey && errors.Is(err, ErrKeyRequired):
		v.handle(r.Context(), w)
	default:
		conflict = g.refuse(r.Context(), labelOf(r.Method, r.Pattern), err)
	}
	if conflict == nil {
		return
	}
	if hosted {
		host.Refused(conflict)
	}
	if conflict.Code == CodeClientGone {
		// For the log. It also keeps net/http from answering 200, which a client that has merely closed its
		// sending side would take for success.
		w.WriteHeader(conflict.Status)
		refusalSent(r.Context(), conflict.Status)
		return
	}
	g.reject(w, r, conflict)
}

// reject has a request answered that was refused, and tells the runs of the guards around this one how. If the handler of
// refusals writes nothing, net/http would answer 200, as if the request had run.
func (g *guard) reject(w http.ResponseWriter, r *http.Request, conflict *Conflict) {
	watched := watch(w)
	g.Refusal(watched.exposed(), r, conflict)
	if !watched.wrote() {
		Refuse(watched, r, conflict)
	}
	refusalSent(r.Context(), watched.status)
}

// handle runs the handler with that context and writer.
func (v *visit) handle(ctx context.Context, w http.ResponseWriter) {
	r := v.inner.WithContext(ctx)
	r.Trailer = v.outer.Trailer // where net/http puts trailers that were not announced
	defer func() { request.GiveBack(v.inner, r) }()
	v.next.ServeHTTP(w, r)
}

// refuse makes the Conflict of a request that failed before it was asked about, by its key or by its body. The label is that of
// the request: see [labelOf].
func (g *guard) refuse(ctx context.Context, label string, err error) (conflict *Conflict) {
	_, _ = g.engine.Do(ctx, guards.Ask{Work: core.Work{Label: label}, NoKey: err}, guards.Run{
		Refuse: func(ctx context.Context, not *core.NotRun) {
			conflict = newConflict(requestCode(ctx, err), err)
			conflict.tell(ctx, not)
			g.logRefused(ctx, not.Work, conflict)
		},
	})
	return conflict
}

// run is a request at a guard, and in the context of its handler.
type run struct {
	*guard
	once  *once // nil for Exclusive
	ask   guards.Ask
	owner string // whose places to wait the request takes
	early bool   // it has come in early data
	outer *run   // in which it is; nil for the outermost

	request context.Context // that of the request, also if the handler's is detached from it
	ctx     context.Context // of the handler

	refusal atomic.Int32 // the status with which a guard inside refused the request, or notRefused or unsent
	inside  atomic.Int32 // what became of a run inside that did not answer, a Disposition: see [run.instead]

	outcome  Handled  // of Once, once the handler has returned
	cause    error    // why the context of the handler has ended
	answered answered // of Exclusive
	replay   *Response
	conflict *Conflict
}

// runFrom returns the innermost run of which ctx is the context, nil if there is none.
func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(request.RunKey{}).(*run)
	return r
}

// newRun returns the run of a request that is going to be asked about.
func (g *guard) newRun(ctx context.Context, req item, name, hash string) *run {
	r := &run{guard: g, owner: req.answering(), outer: runFrom(ctx), request: ctx}
	r.refusal.Store(notRefused)
	r.ask = guards.Ask{Work: core.Work{Label: req.label(), KeyHash: hash}, Name: name, By: req.AnswerBy}
	if g.Wait > 0 {
		r.ask.Turn = r.turn
	}
	return r
}

// turn asks about the request for as long as it may wait, if one more may wait.
func (r *run) turn(ctx context.Context, ask func(ctx context.Context, wait time.Duration) error) error {
	if r.early {
		if err := r.once.refuseEarly(ctx, r.ask); err != nil {
			return err
		}
	}
	patience := r.engine.Patience(r.ask, r.Wait)
	switch {
	case patience.Wait == 0:
	case r.gate.enter(r.ask.KeyHash, r.owner):
		defer r.gate.leave(r.ask.KeyHash, r.owner)
	default:
		patience.Wait = 0
	}
	return patience.Begin(ctx, ask)
}

// begin returns the context for the handler.
func (r *run) begin(ctx context.Context) context.Context {
	letThroughInside(r.request)
	r.ctx = context.WithValue(ctx, request.RunKey{}, r)
	return r.ctx
}

// tell has the hooks told of a refusal, and the runs around.
func (c *Conflict) tell(ctx context.Context, not *core.NotRun) {
	c.KeyHash, c.Waited = not.KeyHash, not.Waited
	not.Reason, not.RetryAfter, not.Err = c.Code, c.RetryAfter, c
	refusedInside(ctx)
}

// Degraded returns true if ctx is that of a request which runs unguarded: see [FailOpen].
func Degraded(ctx context.Context) bool { return guards.Degraded(ctx) }

// answerBy returns the time until which the server of a request writes answers, by its WriteTimeout. [exclusive.Do]
// takes it. ctx is the context of the request. The time counts from the call, which is a little late: the server's
// time began when it had read the header. The zero time is no limit.
func answerBy(ctx context.Context) time.Time {
	srv, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok || srv.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(srv.WriteTimeout)
}
