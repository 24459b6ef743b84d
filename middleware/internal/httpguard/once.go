package httpguard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Once lets a request of each key take effect once. Make it with [NewOnce]. It is safe for concurrent use.
type Once struct {
	guard
	records *guards.Once
	client  *core.Client
	shapes  shapes
}

// NewOnce returns a Once that keeps its records with client, or an error that names the wrong argument. A client that
// [core.New] has not made is one. The config is [OnceConfig] or [IdempotentConfig], changed by options.
func NewOnce(client *core.Client, config Config) (*Once, error) {
	if err := config.checkOnce(); err != nil {
		return nil, err
	}
	c := config.forEngine()
	c.Once = config.onceOptions()
	o := &Once{client: client}
	c.FromProof = o.fromProof
	records, err := guards.NewOnce(Place, client, c)
	if err != nil {
		return nil, err
	}
	o.guard, o.records = newGuard(config, records, &records.Log), records
	return o, nil
}

// fromProof makes the value of a record of what a handler has committed with its proof: a response as text, as Resolve of an
// operator takes it. For any other value there is no response, so requests get 409 already-completed.
func (o *Once) fromProof(ask guards.Ask, committed []byte) []byte {
	value, err := o.seal(committed, hashOf(core.Record{Key: ask.Name}))
	if err != nil {
		return nil
	}
	return value
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

// Capture returns how many bytes of an answer to hold back until [Once.Do] has returned, so that a client that has
// read its answer finds it recorded. It also returns true if the record or a judge needs the body.
func (o *Once) Capture() (bytes int, body bool) {
	return o.config.MaxValue, o.config.Replay || o.config.Completion != nil
}

// Handler is what an adapter does with a request.
type Handler struct {
	// Run runs the handler with that context into a [Capture], and returns how it ended.
	Run func(ctx context.Context) Handled
	// Pass runs the handler without one: the request is inside a run of its key, since it is guarded twice.
	Pass func(ctx context.Context)
}

// Do lets a request run, or returns what to answer instead: the answer of an earlier one, or a refusal. It waits for another
// request of the key as long as the config says, at most until ctx ends, and at most so long that an answer can still be
// written. However the handler ends, that is recorded, within a few seconds at most, even if the client has left. If the
// handler, or a judge, codec or hook of the application panics, the panic continues after that. A judge that panicked has not
// judged.
//
// If both results are nil, the request has run, and its answer is to be sent. A request that has run may also have found, by its
// proof, that an earlier one had taken effect: then there is a replay or a conflict in place of its answer. If the handler has written nothing because its
// context was over, the conflict is what to answer in its place: call [Capture.Abandon], and send that as a refusal.
func (o *Once) Do(ctx context.Context, req Request, h Handler) (replay *Response, conflict *Conflict) {
	if req.Key.IsZero() {
		return nil, o.Refuse(ctx, req.label(), ErrKeyRequired)
	}
	o.shapes.learn(req.Key)
	r := o.newRun(ctx, req, o.recordName(req.Key), req.Key.HashWith(o.config.KeySecret))
	r.once, r.ask.Detached = o, o.config.Detached
	if r.early = early(req.Header); r.early {
		r.ask.Turn = r.turn
	}
	if o.config.RetentionUntil != nil {
		r.ask.Retention = o.config.untilThen(time.Now())
	}
	if o.config.Compare {
		req.Payload.Header = o.config.comparedHeader(req.Header)
		r.ask.Fingerprint = o.config.fingerprint(req.Payload)
	}
	ended, _ := o.records.Do(ctx, r.ask, guards.Run{
		Call: func(ctx context.Context) { r.outcome = h.Run(r.begin(ctx)) },
		Pass: h.Pass, Judge: r.judge, Replay: r.again, Refuse: r.refuse,
	})
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
	if !gone(ctx) {
		r.replay = r.once.replay(found, r.ask.KeyHash)
	}
	if r.replay == nil {
		return &core.CompletedError{Record: found}
	}
	return nil
}

// refuse makes the Conflict of a request that Redis, or what this process knows, has refused.
func (r *run) refuse(ctx context.Context, not *core.NotRun) {
	err := not.Err
	r.conflict = r.config.conflict(onceCode(ctx, err), err)
	r.conflict.KeyHash = r.ask.KeyHash
	r.once.complement(r.conflict, err)
	r.conflict.tell(ctx, not)
}

// refuseEarly lets early data do nothing but read what is recorded.
func (o *Once) refuseEarly(ctx context.Context, ask guards.Ask) error {
	ctx, cancel := context.WithTimeout(ctx, o.config.AskTimeout)
	defer cancel()
	record, err := o.records.Of(ask).Peek(ctx)
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
