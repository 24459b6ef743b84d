package httpguard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Once lets a request of each key take effect once. Make it with [NewOnce]. It is safe for concurrent use.
type Once struct {
	guard
	client  *core.Client
	options []core.OnceOption
	shapes  shapes
}

// NewOnce returns a Once that keeps its records with client, or an error that names the wrong argument. A client that
// [core.New] has not made is one. The config is [OnceConfig] or [IdempotentConfig], changed by options.
func NewOnce(client *core.Client, config Config) (*Once, error) {
	if client == nil {
		return nil, errors.New("holdfast: the client is nil: pass that of core.New")
	}
	if *client == (core.Client{}) {
		return nil, errors.New("holdfast: the client is the zero Client: pass that of core.New")
	}
	if err := config.checkOnce(); err != nil {
		return nil, err
	}
	return &Once{guard: newGuard(config, seal.FactsOf(client)), client: client, options: config.onceOptions()}, nil
}

// ScopedKey returns the key function of Idempotent: it joins the scope of a request to its Idempotency-Key. The scope comes
// first, so that no user reaches another user's records by guessing keys. It returns nil for a nil scope.
func ScopedKey[F ~func(*http.Request) (Key, error)](o *Once, scope F) F {
	if scope == nil {
		return nil
	}
	return func(r *http.Request) (Key, error) {
		user, err := scope(r)
		if err != nil {
			return Key{}, err
		}
		chosen, err := o.chosen(r)
		if err != nil {
			return Key{}, err
		}
		return Join(user, chosen)
	}
}

// chosen returns the part of a key that the client has chosen.
func (o *Once) chosen(r *http.Request) (Key, error) {
	if parts := PartsOf(r); parts != nil {
		return parts.Key(IdempotencyKey)
	}
	value, err := ParseKeyField(o.config.KeyHeader, r.Header[http.CanonicalHeaderKey(o.config.KeyHeader)])
	if err != nil {
		return Key{}, err
	}
	return NewKey(idempotencyKey, value)
}

// Entered returns true if ctx is that of a run of the same key in progress: the request is guarded twice. Let it pass,
// since it would wait for itself. Entered returns false for a run that has finished, or has lost its lease, because
// another one may have begun.
func (o *Once) Entered(ctx context.Context, key Key) bool {
	hash := o.hash(key)
	for r := runFrom(ctx); r != nil; r = r.outer {
		if r.hash == hash && r.once.client == o.client && r.goesOn() {
			if o.config.FailurePolicy == core.HoldFailures {
				if err := r.holdFailures(ctx); err != nil {
					o.incident(ctx, r.work(), core.IncidentUnrecorded, err)
				}
			}
			return true
		}
	}
	return false
}

func (o *Once) hash(key Key) string { return key.HashWith(o.config.KeySecret) }

// Begin lets a request run, or returns what to answer instead: the answer of an earlier one, or a refusal. Exactly one
// of the three results is not nil. Begin waits for another request of the key as long as the config says, at most
// until ctx ends, and at most so long that an answer can still be written.
func (o *Once) Begin(ctx context.Context, req Request) (*Run, *Response, *Conflict) {
	if req.Key.IsZero() {
		return nil, nil, o.Refuse(ctx, req.label(), ErrKeyRequired)
	}
	o.shapes.learn(req.Key)
	c, asked := o.claim(req), time.Now()
	hash := c.hash
	attempt, err := o.begin(ctx, c, req)
	waited := time.Since(asked)
	if err == nil {
		var run *Run
		if run, err = o.grant(ctx, c, attempt, waited); run != nil {
			return run, nil, nil
		}
	}
	if o.opens(ctx, hash, err) {
		var run *Run
		if run, err = o.open(ctx, c, waited, err); run != nil {
			return run, nil, nil
		}
	}
	var done *core.CompletedError
	if errors.As(err, &done) && !gone(ctx) {
		if replay := o.replay(done.Record, hash); replay != nil {
			o.hooks.NotRun(ctx, core.NotRun{
				Work: workOf(c.label, hash), Reason: core.ReasonReplayed, Attempt: done.Record.Attempt, Waited: waited,
			})
			return nil, replay, nil
		}
	}
	conflict := o.config.conflict(onceCode(ctx, err), err)
	conflict.KeyHash, conflict.Waited = hash, waited
	o.complement(conflict, err)
	return nil, nil, o.refused(ctx, c.label, conflict)
}

// claim is the record that a request asks for.
type claim struct {
	name, hash  string
	label       string
	options     []core.OnceOption
	fingerprint []byte
	answerBy    time.Time
	retention   time.Duration
}

func (o *Once) claim(req Request) claim {
	c := claim{
		name: o.recordName(req.Key), hash: o.hash(req.Key), label: req.label(), answerBy: req.AnswerBy, retention: o.config.Retention,
	}
	c.options = append(slices.Clip(o.options), core.WithLabel(c.label))
	if o.config.RetentionUntil != nil {
		c.retention = o.config.untilThen(time.Now())
		c.options = append(slices.Clip(c.options), core.WithRetention(c.retention))
	}
	if o.config.Compare {
		req.Payload.Header = o.config.comparedHeader(req.Header)
		c.fingerprint = o.config.fingerprint(req.Payload)
		c.options = append(slices.Clip(c.options), core.WithFingerprint(c.fingerprint))
	}
	return c
}

// question is what the memory of the guard is asked about the record.
func (c *claim) question() outage.Question { return question(c.hash, nil, c.fingerprint) }

// once returns the record, with further options.
func (c *claim) once(client *core.Client, more ...core.OnceOption) *core.Once {
	return client.Once(c.name, slices.Concat(c.options, more)...)
}

// grant lets a request run for which Redis has granted the key, unless a run without Redis has used the key.
func (o *Once) grant(ctx context.Context, c claim, attempt *core.Attempt, waited time.Duration) (*Run, error) {
	end, err := o.granted(c.question())
	if err != nil {
		_ = attempt.Release(ctx)
		return nil, err
	}
	run := o.newRun(ctx, c, attempt, end)
	if err := o.admit(ctx, run, waited); err != nil {
		return nil, err
	}
	return run, nil
}

// open lets a request run without Redis, unless it is known that the key is in use: then the error says so.
func (o *Once) open(ctx context.Context, c claim, waited time.Duration, unavailable error) (*Run, error) {
	end, err := o.memory.Enter(c.question(), unavailable)
	if err != nil {
		return nil, err
	}
	run, opened := o.newRun(ctx, c, nil, end), false
	defer func() {
		if !opened { // the hook panicked
			run.cancel()
		}
	}()
	o.incident(ctx, run.work(), core.IncidentUnguarded, unavailable)
	run.start(waited)
	letThroughInside(ctx)
	opened = true
	return run, nil
}

// admit tells the hook of a run that has begun. It releases the key if the handler is not going to run: because the
// client left just when its turn had come, or the hook panicked. The error is the end of the request's context.
func (o *Once) admit(ctx context.Context, run *Run, waited time.Duration) (err error) {
	admitted := false
	defer func() {
		if !admitted {
			_ = run.attempt.Release(ctx)
			run.cancel()
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	run.start(waited)
	letThroughInside(ctx)
	admitted = true
	return nil
}

// begin asks Redis, for as long as the request may wait.
func (o *Once) begin(ctx context.Context, c claim, req Request) (*core.Attempt, error) {
	owner := req.answering()
	wait := o.wait(c.hash, owner, req.AnswerBy)
	if wait > 0 {
		defer o.gate.leave(c.hash, owner)
	}
	wait, err := o.await(ctx, c.question(), wait)
	if err != nil {
		return nil, err
	}
	if early(req.Header) {
		if err := o.refuseEarly(ctx, c.once(o.client)); err != nil {
			return nil, err
		}
	}
	var attempt *core.Attempt
	err = o.patience(wait).Begin(ctx, func(ctx context.Context, wait time.Duration) (err error) {
		attempt, err = c.once(o.client, core.WithWait(wait)).Begin(ctx)
		return err
	})
	return attempt, err
}

// refuseEarly lets early data do nothing but read what is recorded.
func (o *Once) refuseEarly(ctx context.Context, once *core.Once) error {
	ctx, cancel := context.WithTimeout(ctx, o.config.AskTimeout)
	defer cancel()
	record, err := once.Peek(ctx)
	if err == nil && record.State != core.StateCompleted {
		return errEarly
	}
	return err
}

// complement adds what the error behind a conflict knows.
func (o *Once) complement(c *Conflict, err error) {
	var full *core.TooManyKeysError
	var done *core.CompletedError
	switch {
	case c.Code == CodeTooManyKeys && errors.As(err, &full):
		c.RetryAfter = wholeSeconds(full.RetryAfter)
	case c.Code == CodeAlreadyCompleted && errors.As(err, &done):
		if response, err := o.decode(done.Record.Value, c.KeyHash); err == nil {
			c.Recorded = response
		}
		if o.config.RetentionUntil != nil {
			c.RetryAfter, c.Retryable = wholeSeconds(done.Record.Retention), true
		}
	}
}

// replay returns what to send again, nil if nothing is.
//
// A 4xx is sent again without its body too: its status says that the request was refused, and 409 already-completed would
// say that it took effect.
func (o *Once) replay(record core.Record, hash string) *Response {
	if !o.config.Replay || record.Omitted {
		return nil
	}
	response, err := o.decode(record.Value, hash)
	switch {
	case err != nil, !Replayable(response):
		return nil
	case response.Omitted && response.Status/100 != 4:
		return nil
	}
	return response
}

// encode makes the value of a record. Of an answer that nobody will get again, only where to find the thing is kept.
func (o *Once) encode(r *Response, hash string) ([]byte, error) {
	kept := *r
	if kept.Omitted {
		kept.Body = nil
	}
	if !o.config.Replay {
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

func (o *Once) decode(value []byte, hash string) (*Response, error) {
	text, err := o.codec().Open(value, hash)
	if err != nil {
		return nil, err
	}
	return decodeResponse(text)
}

func (o *Once) codec() Codec {
	if o.config.Codec == nil {
		return plain{}
	}
	return o.config.Codec
}
