package httplock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
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
	engine guards.Guard
	gate   *gate
	bodies *shares
}

func newGuard(s settings, key KeyFunc, engine guards.Guard) guard {
	bodies := commonBodies
	if s.Given("httplock.WithBodyMemory") {
		bodies = newShares(s.BodyMemory)
	}
	return guard{settings: s, key: key, engine: engine, gate: newGate(s.WaitersPerKey, s.Waiters), bodies: bodies}
}

// commonBodyMemory is the default of [WithBodyMemory].
const commonBodyMemory = 64 << 20

// commonBodies is the memory for bodies of all guards without one of their own: a service has a guard for each route.
var commonBodies = newShares(commonBodyMemory)

var errNoKey = errors.New("holdfast: the key function is nil: a guard needs a key")

// Guards reports whether requests of that method are guarded.
func (g *guard) Guards(method string) bool {
	if g.Methods == nil {
		return !slices.Contains(safe, method)
	}
	// A handler that folds the case of the method does the same for "post" as for POST.
	return slices.ContainsFunc(g.Methods, func(guarded string) bool { return strings.EqualFold(guarded, method) })
}

// safe are the methods of RFC 9110, section 9.2.1: they change nothing that needs a lock.
var safe = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

// run is a request at a guard, and in the context of its handler.
type run struct {
	*guard
	once *once // nil for Exclusive

	w       http.ResponseWriter
	next    http.Handler
	came    *http.Request // as it came
	request *http.Request // a copy, whose body may be replaced and whose form may be parsed
	by      time.Time     // until which an answer can be written, see [answerBy]
	key     Key
	ask     guards.Ask
	early   bool // it has come in early data

	outer   *run            // in which it is; nil for the outermost
	ctx     context.Context // of the handler
	refusal atomic.Int32    // the status with which a guard inside refused the request, or notRefused or unsent
	inside  atomic.Int32    // what became of a run inside that did not answer, a Disposition: see [run.instead]

	watched  *watchedWriter // of Exclusive
	capture  *capture       // of Once, until it is sent
	outcome  Handled        // of Once, once the handler has returned
	cause    error          // why the context of the handler has ended
	replay   *Response
	conflict *Conflict
}

// runFrom returns the innermost run of which ctx is the context, nil if there is none.
func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(request.RunKey{}).(*run)
	return r
}

func (g *guard) newRun(w http.ResponseWriter, came *http.Request, next http.Handler) *run {
	r := &run{guard: g, w: w, next: next, came: came, outer: runFrom(came.Context())}
	r.by = answerBy(came.Context()) // the request's time begins before its body is read
	r.request = came.WithContext(came.Context())
	r.refusal.Store(notRefused)
	r.ask = guards.Ask{Work: core.Work{Label: labelOf(came.Method, came.Pattern)}, By: r.by}
	return r
}

// handler is a guarded handler.
type handler struct {
	*guard
	next http.Handler
	do   func(*run) *Conflict // runs a request under the guard
}

func (g *guard) wrap(next http.Handler, do func(*run) *Conflict) http.Handler {
	if next == nil {
		panic("holdfast: the handler to guard is nil")
	}
	return &handler{g, next, do}
}

// ServeHTTP lets a request pass, runs it under the guard, or refuses it.
func (g *handler) ServeHTTP(w http.ResponseWriter, came *http.Request) {
	if !g.Guards(came.Method) {
		g.next.ServeHTTP(w, came)
		return
	}
	r := g.newRun(w, came, g.next)
	defer func() { request.GiveBack(came, r.request) }()
	defer g.admit(r.request)()
	err := r.identify()
	if err == nil {
		err = g.bufferRequest(r.request, r.key)
	}
	host, hosted := writer.Behind(w).(writer.Host)
	var conflict *Conflict
	switch {
	case hosted && host.Answered():
		return
	case err == nil:
		conflict = g.do(r)
	default:
		conflict = r.keyless(err, !errors.Is(err, ErrKeyRequired))
	}
	if conflict == nil {
		return
	}
	if hosted {
		host.Refused(conflict)
	}
	if conflict.Code == CodeClientGone {
		// For the log. It also keeps net/http from answering 200, which a client that has only closed its
		// sending side would take for success.
		w.WriteHeader(conflict.Status)
		refusalSent(came.Context(), conflict.Status)
		return
	}
	g.reject(w, came, conflict)
}

// identify makes the key of the request.
func (r *run) identify() (err error) {
	defer guards.Recovered(&err)
	r.key, err = r.guard.key(r.request)
	return err
}

// reject has a request answered that was refused, and reports that to the runs of the guards around this one. If the handler of
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
func (r *run) handle(ctx context.Context, w http.ResponseWriter) {
	inner := r.request.WithContext(ctx)
	inner.Trailer = r.came.Trailer // where net/http puts trailers that were not announced
	defer func() { request.GiveBack(r.request, inner) }()
	r.next.ServeHTTP(w, inner)
}

// keyless lets a request without a key pass, or makes the Conflict of one that is refused, or has failed by its key or by its body.
func (r *run) keyless(err error, failed bool) *Conflict {
	ask := guards.Ask{Work: r.ask.Work, NoKey: err, KeyFailed: failed}
	_, _ = r.engine.Do(r.came.Context(), ask, guards.Run{
		Pass: r.pass,
		Refuse: func(ctx context.Context, not *core.NotRun) {
			r.conflict = newConflict(requestCode(ctx, err), err)
			r.conflict.tell(ctx, not)
			r.logRefused(ctx, not.Work, r.conflict)
		},
	})
	return r.conflict
}

// named sets the name of the lock or record that is asked for, and how long the request may wait.
func (r *run) named(name, hash string) {
	r.ask.Name, r.ask.KeyHash = name, hash
	if r.Wait > 0 || r.early {
		r.ask.Turn = r.turn
	}
}

// turn asks about the request for as long as it may wait, if one more may wait.
func (r *run) turn(ctx context.Context, ask func(ctx context.Context, wait time.Duration) error) error {
	if r.early {
		if err := r.once.refuseEarly(ctx, r.ask); err != nil {
			return err
		}
	}
	patience := r.engine.Patience(r.ask, r.Wait)
	if patience.Wait > 0 {
		owner := ownerOf(r.key, addressOf(r.came))
		if r.gate.enter(r.ask.KeyHash, owner) {
			defer r.gate.leave(r.ask.KeyHash, owner)
		} else {
			patience.Wait = 0
		}
	}
	return patience.Begin(ctx, ask)
}

// gate bounds how many requests wait: of one key, so that a client that repeats itself does not use up what the server
// can hold open, and of all keys together, shared among the owners of the keys.
type gate struct {
	mu      sync.Mutex
	waiting map[string]int
	perKey  int
	places  *shares
}

func newGate(perKey, most int) *gate {
	return &gate{waiting: make(map[string]int), perKey: perKey, places: newShares(int64(most))}
}

// enter reports whether a request of that key and owner may wait. If so, the caller must call leave.
func (g *gate) enter(key, owner string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[key] >= g.perKey || !g.places.take(owner, 1) {
		return false
	}
	g.waiting[key]++
	return true
}

func (g *gate) leave(key, owner string) {
	g.places.give(owner, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[key]--; g.waiting[key] == 0 {
		delete(g.waiting, key)
	}
}

// begin returns the context for the handler.
func (r *run) begin(ctx context.Context) context.Context {
	letThroughInside(r.came.Context())
	r.ctx = context.WithValue(ctx, request.RunKey{}, r)
	return r.ctx
}

// tell reports a refusal to the hooks and to the runs around.
func (c *Conflict) tell(ctx context.Context, not *core.NotRun) {
	c.KeyHash, c.Waited = not.KeyHash, not.Waited
	not.Reason, not.RetryAfter, not.Err = c.Code, c.RetryAfter, c
	refusedInside(ctx)
}

// Degraded returns true if ctx belongs to a request that runs unguarded: see [FailOpen].
func Degraded(ctx context.Context) bool { return guards.Degraded(ctx) }

// answerBy returns the time until which the server of a request writes answers, by its WriteTimeout. ctx is the context
// of the request. The time counts from the call, which is a little late: the server's time began when it had read the
// header. The zero time is no limit.
func answerBy(ctx context.Context) time.Time {
	srv, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok || srv.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(srv.WriteTimeout)
}

// gone reports whether the client left. A deadline is the server's doing, and so is the lost lease of a guard around this
// one: the client is still there.
func gone(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), core.ErrLeaseLost)
}

// httpPlace is what hooks are told of requests as [core.Work.Place].
const httpPlace = "http"

// labelOf returns the route of a request for operators, "POST /orders/{id}" for instance. The pattern is in the form of
// [http.ServeMux]. The label is "" if no pattern is known: the path is a client's. So is a method that is not one of the
// standard, of which the label has nothing.
func labelOf(method, pattern string) string {
	return guards.Label(request.MethodPattern(method, pattern))
}

// early reports whether the request has come in TLS early data, which an attacker can send again. Several fields, and an
// invalid value, count as 1 (RFC 8470, section 5.1).
func early(h http.Header) bool {
	lines := h["Early-Data"]
	return len(lines) > 1 || len(lines) == 1 && textproto.TrimString(lines[0]) != "0"
}

// A guard that refuses a request reports that to the guards around it in the same process, whose runs are in the context: the
// handler behind it did not run, so there is nothing to record, whatever the status of the refusal. A later guard in the
// same runs that lets the request through takes that back.

const (
	notRefused = -1 // no guard inside has refused the request, or one has let it through since
	unsent     = -2 // one has refused it, and its answer is not known yet
)

// refusedInside notes in all runs of ctx that a guard inside of them has refused the request.
func refusedInside(ctx context.Context) { tellRuns(ctx, unsent) }

// letThroughInside notes in all runs of ctx that a guard inside of them has let the request through.
func letThroughInside(ctx context.Context) {
	unansweredInside(runFrom(ctx), Auto)
	tellRuns(ctx, notRefused)
}

func tellRuns(ctx context.Context, refusal int32) {
	for r := runFrom(ctx); r != nil; r = r.outer {
		r.refusal.Store(refusal)
	}
}

// refusalSent notifies the runs of ctx that a guard inside of them has refused a request, and with which status; 0
// means that it has answered nothing. It is called after the refusal is written. It does nothing outside of a run.
//
// A handler between two guards may answer in its own way after the inner guard has refused, and after work of its
// own. That answer counts as any other.
func refusalSent(ctx context.Context, status int) { tellRuns(ctx, int32(status)) }

// refused reports whether an answer is the refusal of a guard inside this run: by its status, or as one that is left to
// something around, or was not given.
func (r *run) refused(status int, failed, unanswered bool) bool {
	switch sent := r.refusal.Load(); sent {
	case notRefused:
		return false
	case unsent:
		return true // by an adapter that does not report it
	case 0:
		return unanswered || failed
	default:
		return failed || status == int(sent)
	}
}

// failureOf returns why a run failed whose handler has returned: because of the status of its answer, or because there is none. It
// returns nil for other runs, and for a handler that leaves the answer to something around the guard.
func failureOf(status int, answered, reportedErrors bool) error {
	switch {
	case reportedErrors:
		return errors.New("holdfast: the handler reported errors")
	case !answered:
		return errors.New("holdfast: the handler did not answer")
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("holdfast: the handler answered %d", status)
	}
	return nil
}

// A handler may return without an answer because its context was over, while its client still waits: a lease was lost, or
// a timeout around the guard has passed. The server would answer 200 then. So the outermost guard that keeps a record
// answers in its place, by what a retry is going to find. Without such a guard the innermost one answers.

// instead returns what to answer in place of a handler that has not answered because its context was over, nil for any
// other. It leaves that to the run around this one that keeps a record, if there is one.
func (r *run) instead(state core.State) *Conflict {
	if o := r.outcome; !o.Unanswered || o.answered() {
		return nil
	}
	d := Released
	switch state {
	case core.StateCompleted:
		d = Completed
	case core.StateUnknown:
		d = Held
	}
	if inside := Disposition(r.inside.Load()); d == Released && inside != Auto {
		d = inside // a retry gets past this guard
	}
	if r.outer.recorded() {
		unansweredInside(r.outer, d)
		return nil
	}
	code := CodeNotAnswered
	switch d {
	case Held:
		code = CodeOutcomeUnknown
	case Completed:
		code = CodeAlreadyCompleted
	}
	c := newConflict(code, r.cause)
	c.KeyHash, c.ran = r.ask.KeyHash, true
	return c
}

// recorded reports whether a run or one around it keeps a record.
func (r *run) recorded() bool {
	for ; r != nil; r = r.outer {
		if r.once != nil {
			return true
		}
	}
	return false
}

// unansweredInside notes in a run and the runs around it what became of a run inside that has not answered.
func unansweredInside(r *run, d Disposition) {
	for ; r != nil; r = r.outer {
		r.inside.Store(int32(d))
	}
}

// HandlerFailed is called by [request.HandlerFailed].
func (r *run) HandlerFailed() { unansweredInside(r, Released) }

// unanswered returns what to answer in place of a silent handler of an Exclusive, nil if a guard around this one is going to answer.
func (r *run) unanswered() *Conflict {
	if r.outer.recorded() {
		unansweredInside(r.outer, Released)
		return nil
	}
	c := newConflict(CodeNotAnswered, context.Cause(r.came.Context()))
	c.KeyHash, c.ran = r.ask.KeyHash, true
	c.Retryable, c.RetryAfter = false, 0
	return c
}
