package httplock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Once returns a middleware that lets a request of each key take effect once: for instance one order per user. A
// second request is refused while the first is running (409 request-in-progress) and after it has succeeded (409
// already-completed), until the record expires. With [WithReplay] it gets the recorded answer instead. The record
// lasts for 24 hours unless [core.WithRetention] says otherwise. A first request that has failed does not count, see
// [core.WithFailurePolicy]. Once panics if client or key is nil or an option is invalid: [NewOnce] returns an error
// instead.
//
// A handler guarded twice with the same key runs: the inner guard lets the run of the outer one pass, whose options
// apply. Only [core.HoldFailures] of either guard counts for both.
func Once(client *core.Client, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return guards.Must(NewOnce(client, key, opts...)).Wrap
}

// NewOnce is [Once] as a value, with methods for an operator. It returns an error instead of panicking.
func NewOnce(client *core.Client, key KeyFunc, opts ...Option) (*Guard, error) {
	return newGuardOf(newOnce(client, key, onceSettings(opts...)))
}

// Idempotent returns a middleware that answers a request as it has answered an earlier one with the same
// Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header). The client's retry gets the first answer, and the
// handler runs once. The scope identifies the user of the key, for instance [ByContext] with the logged-in user: no
// request reaches another user's answer. [Unscoped] is for services all of whose clients are one.
//
// A missing or malformed key gets 400. The same key with another request gets 422 key-reused. While the first request
// is running, others get 409 request-in-progress. Records are kept for 24 hours unless [core.WithRetention] says otherwise.
// Idempotent panics if client or scope is nil or an option is invalid: [NewIdempotent] returns an error instead.
func Idempotent(client *core.Client, scope KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return guards.Must(NewIdempotent(client, scope, opts...)).Wrap
}

// NewIdempotent is [Idempotent] as a value, with methods for an operator. It returns an error instead of panicking.
func NewIdempotent(client *core.Client, scope KeyFunc, opts ...Option) (*Guard, error) {
	return newGuardOf(newOnce(client, scope, idempotentSettings(opts...)))
}

func newGuardOf(o *once, err error) (*Guard, error) {
	if err != nil {
		return nil, err
	}
	return &Guard{o}, nil
}

// once is the guard of [Once] and [Idempotent]. Make it with [newOnce].
type once struct {
	guard
	records *guards.Once
	client  *core.Client
	shapes  shapes
}

// newOnce returns a once that keeps its records with client, or an error that names the wrong argument. The settings are
// [onceSettings] or [idempotentSettings].
func newOnce(client *core.Client, key KeyFunc, s settings) (*once, error) {
	if err := s.checkOnce(); err != nil {
		return nil, err
	}
	c := s.forEngine()
	c.Once = s.onceOptions()
	o := &once{client: client}
	c.FromProof = o.fromProof
	records, err := guards.NewOnce(httpPlace, client, c)
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errNoKey
	}
	o.guard, o.records = newGuard(s, key, records), records
	if s.Scoped {
		o.key = o.scoped(key)
	}
	return o, nil
}

// fromProof makes the value of a record of what a handler has committed with its proof: a response as text, as Resolve of an
// operator takes it. For any other value there is no response, so requests get 409 already-completed.
func (o *once) fromProof(ask guards.Ask, committed []byte) []byte {
	value, err := o.seal(committed, hashOf(core.Record{Key: ask.Name}))
	if err != nil {
		return nil
	}
	return value
}

// scoped returns the key function of Idempotent: it joins the scope of a request to its Idempotency-Key. The scope comes
// first, so that no user reaches another user's records by guessing keys.
func (o *once) scoped(scope KeyFunc) KeyFunc {
	field := http.CanonicalHeaderKey(o.KeyHeader)
	return Keys(scope, orOfText(plainly(IdempotencyKey), func(r *http.Request) (Key, error) {
		value, err := parseKeyField(o.KeyHeader, r.Header[field])
		if err != nil {
			return Key{}, err
		}
		return NewKey(idempotencyKey, value)
	}))
}

// run has the handler answer into a capture, which is sent once the answer is recorded. That nothing is recovered keeps
// the stack of a panic, and covers http.ErrAbortHandler and runtime.Goexit.
func (o *once) run(r *run) *Conflict {
	defer func() {
		if r.capture != nil { // also if the handler, a judge or a hook has panicked
			r.capture.Abandon()
		}
	}()
	recorded, conflict := o.do(r, guards.Run{
		Call: func(ctx context.Context) { r.outcome = r.captured(r.begin(ctx)) },
		Pass: r.pass,
	})
	switch {
	case recorded != nil:
		if r.capture != nil { // the handler has found the effect of an earlier request
			r.capture.Abandon()
			r.capture = nil
		}
		replay(recorded, r.w)
	case r.capture != nil && conflict == nil:
		_ = r.capture.Send() // an error means that the client is gone, and does not need it
		r.capture = nil
	}
	return conflict
}

// captured runs the handler into a [capture].
func (r *run) captured(ctx context.Context) Handled {
	// A judge needs the body too.
	r.capture = newCapture(r.w, r.came.Method, r.MaxValue, r.Replay || r.Completion != nil)
	r.handle(ctx, r.capture.exposed())
	return r.capture.Handled()
}

// pass runs the handler of a request that is inside a run of its key already, since it is guarded twice, or that needs no key.
func (r *run) pass(ctx context.Context) { r.handle(ctx, r.w) }

// do lets a request run, or returns what to answer instead: the response of an earlier one, or a refusal. If both results are nil, the
// request has run, and its answer is to be sent. A request that has run may also have found, by its proof, that an earlier one had
// taken effect: then there is a replay or a conflict in place of its answer. If the handler has written nothing because its context
// was over, the conflict is what to answer in its place.
func (o *once) do(r *run, handle guards.Run) (replay *Response, conflict *Conflict) {
	if r.key.IsZero() {
		return nil, r.keyless(ErrKeyRequired, true)
	}
	o.shapes.learn(r.key)
	r.once, r.early, r.ask.Detached = o, early(r.came.Header), o.Detached
	r.named(r.key.record(o.KeySecret))
	if o.RetentionUntil != nil {
		r.ask.Retention = o.untilThen(time.Now())
	}
	if o.Compare {
		r.ask.Fingerprint = o.fingerprint(o.payload(r.request))
	}
	handle.Judge, handle.Replay, handle.Refuse = r.judge, r.again, r.refuse
	ended, _ := o.records.Do(r.came.Context(), r.ask, handle)
	switch {
	case ended != nil:
		return nil, r.instead(ended.State)
	case r.outcome.Response != nil && r.outcome.Response.streamed: // before its transaction found the effect of an earlier request
		return nil, nil
	}
	return r.replay, r.conflict
}

// again finds the recorded answer of an earlier request. The error is why there is none to send.
func (r *run) again(ctx context.Context, found core.Record) error {
	switch {
	case r.ofOtherRoute(found):
		r.engine.Event(ctx, slog.LevelWarn, "other route", logOtherRoute, r.ask.Work, nil, slog.String("recorded", foreign.Line(found.Label, mostReason)))
	case !gone(ctx):
		r.replay = r.once.replay(found, r.ask.KeyHash)
	}
	if r.replay == nil {
		return &core.CompletedError{Record: found}
	}
	return nil
}

// ofOtherRoute reports whether the recorded answer is one of another route, whose key is the same. Idempotent compares requests instead.
func (r *run) ofOtherRoute(found core.Record) bool {
	return !r.Compare && found.Label != "" && r.ask.Label != "" && found.Label != r.ask.Label
}

// refuse makes the Conflict of a request that Redis, or what this process knows, has refused.
func (r *run) refuse(ctx context.Context, not *core.NotRun) {
	err := not.Err
	r.conflict = newConflict(engineCode(ctx, err), err)
	r.conflict.KeyHash = r.ask.KeyHash
	r.once.complement(r.conflict, err)
	r.conflict.tell(ctx, not)
}

// refuseEarly lets early data do nothing but read what is recorded.
func (o *once) refuseEarly(ctx context.Context, ask guards.Ask) error {
	ctx, cancel := context.WithTimeout(ctx, o.AskTimeout)
	defer cancel()
	record, err := o.records.Of(ask).Peek(ctx)
	if err == nil && record.State != core.StateCompleted {
		return errEarly
	}
	return err
}

// complement adds what the error behind a conflict knows.
func (o *once) complement(c *Conflict, err error) {
	var full *core.TooManyKeysError
	var done *core.CompletedError
	switch {
	case c.Code == CodeTooManyKeys && errors.As(err, &full):
		c.RetryAfter = wholeSeconds(full.RetryAfter)
	case c.Code == CodeAlreadyCompleted && errors.As(err, &done):
		if response, err := o.decode(done.Record.Value, c.KeyHash); err == nil {
			c.Recorded = response
		}
		if o.RetentionUntil != nil {
			c.RetryAfter, c.Retryable = wholeSeconds(done.Record.Retention), true
		}
	}
}

// replay returns what to send again, nil if nothing is.
//
// A 4xx is sent again without its body too: its status says that the request was refused, and 409 already-completed would
// say that it took effect.
func (o *once) replay(record core.Record, hash string) *Response {
	if !o.Replay || record.Omitted {
		return nil
	}
	response, err := o.decode(record.Value, hash)
	switch {
	case err != nil, !replayable(response):
		return nil
	case response.Omitted && response.Status/100 != 4:
		return nil
	}
	response.marker = o.Marker
	return response
}

// encode makes the value of a record. Of an answer that nobody will get again, only where to find the thing is kept.
func (o *once) encode(r *Response, hash string) ([]byte, error) {
	kept := *r
	if kept.Omitted {
		kept.Body = nil
	}
	if !o.Replay {
		kept.Body, kept.Omitted, kept.Header, kept.around = nil, true, nil, nil
		if location := r.Header["Location"]; location != nil {
			kept.Header = map[string][]string{"Location": location}
		}
	}
	value, err := o.codec().Seal(kept.encode(), hash)
	if err != nil {
		err = sealFailure{err}
	}
	return value, err
}

func (o *once) decode(value []byte, hash string) (*Response, error) {
	text, err := o.codec().Open(value, hash)
	if err != nil {
		return nil, err
	}
	return decodeResponse(text)
}

func (o *once) codec() Codec {
	if o.Codec == nil {
		return plain{}
	}
	return o.Codec
}

// mostReason bounds what an error shows of the reason that a handler gave to Hold, in bytes.
const mostReason = 200

// judge judges how the handler of a Once ended.
func (r *run) judge(o *guards.Outcome) {
	out := r.outcome.normalized(r)
	r.outcome, r.cause = out, context.Cause(r.ctx)
	o.Reason, o.NoEffect = out.reason(), out.Response.Status/100 == 4
	if out.answered() {
		o.Value = func() ([]byte, error) { return r.once.encode(out.Response, r.ask.KeyHash) }
	}
	said, reason := seal.Undecided, ""
	if run := seal.RunFrom(r.ctx); run != nil { // a hook may have returned a context of its own
		said, reason = run.Word().Said()
	}
	refused := r.refused(out.Response.Status, out.Failed, out.Unanswered) && out.Returned
	judged := func(d Disposition) {
		o.Verdict = guards.Verdict(d) // the values are the same
		switch {
		case d == Completed, !out.Returned, refused:
			o.Err = nil
		case said == seal.Held && reason != "":
			o.Err = errors.New("holdfast: the handler called Hold: " + foreign.Line(reason, mostReason))
		default:
			o.Err = failureOf(out.Response.Status, out.answered(), out.Failed)
		}
	}
	judged(r.disposition(out)) // which stays if the application's judge panics
	switch {
	case said != seal.Undecided:
		judged(Disposition(said)) // the values are the same
	case refused:
		judged(Released)
	case r.once.Completion != nil:
		if d := r.once.Completion(out); d > Auto && d <= Held {
			judged(d)
		}
	}
}

// normalized fills in what a capture cannot know: whether the handler returned because its context was over, or the context of a
// run inside. If it wrote nothing, the empty answer that the server would send is not the handler's. If it was streaming
// its answer, the rest of that may be missing: a handler that stops at its context never meets a failing write. A handler
// with a detached context may stop as well when the client leaves, because CloseNotify of net/http reports it.
func (o Handled) normalized(r *run) Handled {
	over, left := r.ctx.Err() != nil, r.came.Context().Err() != nil
	switch {
	case o.Response == nil, !o.Returned, o.Unanswered && (over || r.inside.Load() != 0):
		o.Response = &Response{}
	case o.Response.streamed && (over || left):
		part := *o.Response
		part.Body, part.Omitted = nil, true
		o.Response = &part
	}
	return o
}

// reason is what an operator reads in the record of an unknown outcome.
func (o Handled) reason() string {
	switch {
	case !o.Returned:
		return "the handler did not return"
	case o.Failed:
		return "the handler reported errors"
	case !o.answered():
		return "the handler did not answer"
	}
	return "the handler answered with a failure"
}

// Disposition is what becomes of the record of a run, as [WithCompletion] decides.
type Disposition int

const (
	// Auto leaves it to the status, the panic, the errors. It is the zero value.
	Auto Disposition = iota
	// Completed: the run took effect and never runs again.
	Completed
	// Released: nothing happened, another request may run.
	Released
	// Held: the outcome is unknown, and no request may run until an operator has found out.
	Held
)

// String returns the name.
func (d Disposition) String() string {
	if d < Auto || d > Held {
		return fmt.Sprintf("Disposition(%d)", int(d))
	}
	return [...]string{"auto", "completed", "released", "held"}[d]
}

// Handled is how a handler ended, for [WithCompletion].
type Handled struct {
	// Returned is false if the handler panicked, with http.ErrAbortHandler too, or called runtime.Goexit.
	Returned bool
	// Failed is true if the handler reported errors and wrote nothing: a middleware around the guard will answer.
	Failed bool
	// Unanswered is true if the handler returned without writing anything. If its context was alive then, Response is
	// the empty answer that the server sends. If its context had ended, the status of Response is 0, because there is
	// no answer.
	Unanswered bool
	// Response is the handler's answer, with the body up to the record limit. If Omitted is true, the body is not
	// complete. Response is never nil. Its status is 0 if nothing was answered, and if the handler did not return.
	Response *Response
}

// answered reports whether there is an answer to record. A status of 0 is none, unless the handler took over the
// connection. Status 499 is none either: it says that no client was there to be answered.
func (o Handled) answered() bool {
	switch {
	case !o.Returned, o.Failed, o.Response.Status == StatusClientGone:
		return false
	}
	return o.Response.Status != 0 || o.Response.Omitted
}

// disposition judges an outcome that neither the handler nor the application has judged: a run whose handler did not
// answer has no outcome to record. What it did is not known, so the failure policy decides.
func (c *settings) disposition(o Handled) Disposition {
	status := o.Response.Status
	switch {
	case !o.answered(), status >= 500:
		return Auto
	case o.Unanswered && status >= 400: // of something around the guard, as of gin's for a path without a route
		return Released
	case temporary(status), status >= 400 && !c.CompleteRefusals:
		return Released
	}
	return Completed
}

// temporary reports whether a status says that the same request may fare better later: nothing has happened.
func temporary(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusConflict, http.StatusMisdirectedRequest, http.StatusLocked, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return true
	}
	return false
}
