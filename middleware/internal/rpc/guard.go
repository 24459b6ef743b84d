package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Place is the [core.Work.Place] of calls.
const Place = "rpc"

// Guard guards calls. It is safe for concurrent use.
type Guard struct {
	config
	engine guard.Config
	key    KeyFunc
	idem   bool // Idempotent: key is the scope's
	once   *guard.Once
	do     func(context.Context, guard.Ask, guard.Run) (*guard.Outcome, error)
	log    *guard.Log
	warned sync.Map // types of requests whose ignored fields were checked, by their name
}

// sort returns a guard with the options, in which the engine is still missing.
func sort(name string, takes []string, key KeyFunc, opts []Option) (*Guard, error) {
	if key == nil {
		return nil, errNoKeyFunc
	}
	g := &Guard{key: key, config: config{key: ByMetadata("idempotency-key")}}
	var err error
	g.engine, err = guard.Sort(guard.Place{Name: name, Takes: takes}, opts, &g.config)
	return g, err
}

// NewExclusive returns a guard that runs no two calls of a key at the same time. The name is the caller's, for errors.
func NewExclusive(name string, strategy core.Strategy, key KeyFunc, opts []Option) (*Guard, error) {
	g, err := sort(name, exclusiveTakes, key, opts)
	if err != nil {
		return nil, err
	}
	if !g.engine.Given("core.WithWait") {
		g.engine.Wait = defaultExclusiveWait
	}
	e, err := guard.NewExclusive(Place, strategy, g.engine)
	if err != nil {
		return nil, err
	}
	g.do, g.log = e.Do, &e.Log
	return g, nil
}

// NewExclusiveStream returns a guard of [NewExclusive] for streams, which have no request when the guard is asked.
func NewExclusiveStream(name string, strategy core.Strategy, key KeyFunc, opts []Option) (*Guard, error) {
	if key != nil && needsMessage(key) {
		return nil, fmt.Errorf("%w: %s: the key has a ByField, but a stream has no message yet when its guard is asked",
			core.ErrInvalidOption, name)
	}
	return NewExclusive(name, strategy, key, opts)
}

// NewOnce returns a guard that lets a call of each method and key take effect once. The method is part of the key, as what one method has
// done says nothing of another: a service has a guard for all of its methods, whose keys are often just the user.
func NewOnce(name string, client *core.Client, key KeyFunc, opts []Option) (*Guard, error) {
	if key != nil {
		key = Keys(ByMethod(), key)
	}
	return newOnce(name, onceTakes, client, key, opts)
}

// NewIdempotent returns a guard that answers a call as it has answered an earlier one with the same key of the same scope.
func NewIdempotent(name string, client *core.Client, scope KeyFunc, opts []Option) (*Guard, error) {
	g, err := newOnce(name, idempotentTakes, client, scope, opts)
	if err == nil {
		g.idem, g.replay = true, true
	}
	return g, err
}

func newOnce(name string, takes []string, client *core.Client, key KeyFunc, opts []Option) (*Guard, error) {
	g, err := sort(name, takes, key, opts)
	if err != nil {
		return nil, err
	}
	if g.engine.MaxValue == 0 {
		g.engine.MaxValue = defaultMaxValue
		g.engine.Once = append(g.engine.Once, core.WithMaxValue(defaultMaxValue))
	}
	if g.engine.FailurePolicy == core.HoldFailures {
		g.detached = guard.FromAnyContext // a deadline is the client's too
	}
	g.engine.FromProof = g.fromProof
	o, err := guard.NewOnce(Place, client, g.engine)
	if err != nil {
		return nil, err
	}
	g.do, g.log, g.once = o.Do, &o.Log, o
	return g, nil
}

// Exclusive reports whether the guard has no records.
func (g *Guard) Exclusive() bool { return g.once == nil }

// Do lets a call run, or returns what to answer instead: the answer of an earlier one, or a refusal. handle runs the handler with
// that context, and returns how it ended. If both results are nil, the call has run, and the answer of its handler is to be sent.
func (g *Guard) Do(ctx context.Context, c *Call, handle func(context.Context) *Answer) (replay *Answer, refusal *Refusal) {
	ask := guard.Ask{Work: core.Work{Label: label(c)}, Detached: g.detached}
	ask.By, _ = ctx.Deadline()
	if err := g.identify(c, &ask); err != nil {
		ask.NoKey, ask.KeyFailed = err, !errors.Is(err, ErrKeyRequired)
	} else {
		g.checkIgnored(ctx, c.Message, ask.Work)
	}
	var answer *Answer
	var run context.Context
	o, _ := g.do(ctx, ask, guard.Run{
		Call:  func(ctx context.Context) { run, answer = ctx, handle(ctx).checked() },
		Pass:  func(ctx context.Context) { answer = handle(ctx).checked() },
		Judge: func(o *guard.Outcome) { g.judge(o, run, answer, ask.KeyHash) },
		Replay: func(_ context.Context, r core.Record) (err error) {
			if replay, err = g.recorded(r); err != nil {
				return fmt.Errorf("%w: %w", &core.CompletedError{Record: r}, err)
			}
			return nil
		},
		Refuse: func(ctx context.Context, not *core.NotRun) {
			v := of(ctx, not.Err)
			if ask.NoKey != nil {
				v = ofKey(ask.NoKey)
			}
			refusal = v.refusal(not.Err, not.RetryAfter)
			not.Reason, not.RetryAfter, not.Err = refusal.word(), refusal.retryAfter, refusal
			if v == keyFailed {
				g.log.Event(ctx, slog.LevelError, "key", logKeyFailed, not.Work, guard.KeyFailed(ask.NoKey))
			}
		},
	})
	if o == nil {
		return replay, refusal
	}
	return nil, after(ctx, o, answer)
}

const logKeyFailed = "holdfast: the key of a call could not be made, the call was refused"

// checkIgnored warns of a path of [WithIgnoredFields] that no request has, of this or another method.
func (g *Guard) checkIgnored(ctx context.Context, m proto.Message, w core.Work) {
	if len(g.paths) == 0 {
		return
	}
	request := m.ProtoReflect().Descriptor()
	if _, known := g.warned.LoadOrStore(request.FullName(), true); known {
		return
	}
	for _, path := range g.paths {
		if !hasPath(request, path) && !linkedHas(path) {
			g.log.Line(ctx, slog.LevelWarn, logNoField, w, slog.String("path", path))
		}
	}
}

const logNoField = "holdfast: WithIgnoredFields has a path that no request has, so it does nothing"

// label returns the method for operators. That of a stream may be one that no service has, of a client's choice.
func label(c *Call) string {
	if c.stream && descriptor(c.Method) == nil {
		return ""
	}
	return guard.Label(c.Method)
}

// identify reads the key of a call.
func (g *Guard) identify(c *Call, ask *guard.Ask) (err error) {
	defer guard.Recovered(&err)
	key, err := g.key(c)
	if err != nil {
		return err
	}
	if key.IsZero() {
		return ErrKeyRequired
	}
	if !g.idem {
		ask.KeyHash = key.HashWith(g.engine.KeySecret)
		ask.Name = Place + ":" + ask.KeyHash
		return nil
	}
	chosen, err := g.config.key(c)
	if err != nil {
		return err
	}
	if ask.Name, ask.KeyHash, err = g.name(key, chosen); err != nil || c.parts != nil {
		return err
	}
	if c.Message == nil {
		return mistake("holdfast: the request is no protobuf message, so it cannot be compared")
	}
	ask.Fingerprint = fingerprint(g.engine.KeySecret, c.Method, c.Message, g.ignored)
	return nil
}

// name returns the name of the record of a key of a scope. Those of one scope have the same braces, so that they can be counted.
func (g *Guard) name(scope, chosen Key) (name, hash string, err error) {
	key, err := httplock.Join(scope, chosen)
	if err != nil {
		return "", "", err
	}
	hash = key.HashWith(g.engine.KeySecret)
	return Place + ":{" + scope.HashWith(g.engine.KeySecret) + "}:" + hash, hash, nil
}

// judge judges how the handler ended.
func (g *Guard) judge(o *guard.Outcome, run context.Context, a *Answer, hash string) {
	var inside *Refusal
	switch {
	case !o.Returned:
		return
	case errors.As(a.Err, &inside): // a guard further in has refused the call, so nothing has happened
		o.Verdict = guard.Released
		return
	case a.Status == nil && a.Message == nil:
		o.Err, o.Reason = errNoAnswer, "the handler did not answer"
		return
	}
	o.Value, o.NoEffect = func() ([]byte, error) { return g.encode(a, hash) }, a.Status != nil
	c := a.Status.GetCode()
	switch classOf(c) {
	case completed:
		o.Verdict = guard.Completed
	case released:
		o.Verdict = guard.Released
	case decided:
		if o.Verdict = guard.Released; g.idem {
			o.Verdict = guard.Completed
		}
	case failed:
		o.Err, o.Reason = fmt.Errorf("holdfast: the handler returned %s", codeName(c)), "the handler returned "+codeName(c)
	}
	if o.Verdict == guard.Released && run.Err() != nil { // it may have stopped in the middle, whatever it made of that
		o.Verdict, o.Reason = guard.Failed, "the handler returned "+codeName(c)+" after its context had ended"
	}
}

var errNoAnswer = errors.New("holdfast: the handler returned neither a message nor an error")

// after returns what to answer in place of a handler that ran: it has returned nothing, or its error would make a client retry a
// call whose outcome is unknown, or it ended because its lease was lost, which the client would read as its own cancellation.
func after(ctx context.Context, o *guard.Outcome, a *Answer) *Refusal {
	c := a.Status.GetCode()
	switch {
	case o.State == core.StateUnknown && (retried(c) || a.Message == nil && a.Status == nil):
		return unknownNow(a, a.Err)
	case o.Lost != nil && ctx.Err() == nil && reportsLoss(a):
		if o.State == core.StateUnknown {
			return unknownNow(a, o.Lost)
		}
		return leaseLost.refusal(o.Lost, 0)
	}
	return empty(a)
}

// reportsLoss reports whether the answer of a run whose lease was lost says so: by the error of its context or the cause of that, or
// by a status made of either. A handler may as well have ignored the loss, and have a result of its own.
func reportsLoss(a *Answer) bool {
	if classOf(a.Status.GetCode()) != failed {
		return false
	}
	return errors.Is(a.Err, context.Canceled) || errors.Is(a.Err, core.ErrLeaseLost) ||
		code.Code(a.Status.GetCode()) == code.Code_CANCELLED || strings.Contains(a.Status.GetMessage(), core.ErrLeaseLost.Error())
}

// unknownNow is the refusal of the call itself after which the outcome is unknown. It has what the handler meant to answer.
func unknownNow(a *Answer, cause error) *Refusal {
	v := outcomeUnknown
	v.text = "the outcome of the call is unknown; an operator has to find out"
	r := v.refusal(errors.Join(core.ErrOutcomeUnknown, cause), 0)
	if a.Status != nil {
		r.Status.Message += ": the handler returned " + string(a.text())
	}
	return r
}

// empty returns what to answer for a handler that returned neither a message nor an error.
func empty(a *Answer) *Refusal {
	if a.Message != nil || a.Status != nil {
		return nil
	}
	return noAnswer.refusal(errNoAnswer, 0)
}

// encode makes the value of a record; nil if nothing of the answer is replayed.
func (g *Guard) encode(a *Answer, hash string) ([]byte, error) {
	if !g.replay {
		return nil, nil
	}
	value, err := a.encode(g.engine.MaxValue)
	if err != nil || g.codec == nil || value == nil {
		return value, err
	}
	sealed, err := g.codec.Seal(value, hash)
	if err != nil {
		return nil, errors.New("holdfast: the codec could not seal the response: of type " + guard.InnerType(err))
	}
	return sealed, nil
}

// fromProof makes the value of a record of what a handler has committed with its proof: the bytes of an Any with the response. Of any
// other value there is no response to replay.
func (g *Guard) fromProof(ask guard.Ask, committed []byte) []byte {
	a := new(anypb.Any)
	if err := proto.Unmarshal(committed, a); err != nil {
		return nil
	}
	response, err := a.UnmarshalNew()
	if err != nil {
		return nil
	}
	value, _ := g.encode(&Answer{Message: response}, ask.Name[strings.LastIndexByte(ask.Name, ':')+1:])
	return value
}

// recorded returns the answer in a record. The error is why there is none.
func (g *Guard) recorded(r core.Record) (*Answer, error) {
	if !g.replay || r.Omitted || len(r.Value) == 0 {
		return nil, errNotRecorded
	}
	value := r.Value
	if g.codec != nil {
		var err error
		if value, err = g.codec.Open(value, r.Key[strings.LastIndexByte(r.Key, ':')+1:]); err != nil {
			return nil, err
		}
	}
	return decode(value)
}

var errNotRecorded = errors.New("holdfast: its response is not recorded")

// Peek reads the record of the key of these texts: one for each key function of the guard, in their order. Its Value is the
// response as text.
func (g *Guard) Peek(ctx context.Context, parts ...string) (core.Record, error) {
	if g.once == nil {
		return core.Record{}, errNoRecords
	}
	rest := slices.Clone(parts)
	c := NewCall(ctx, "", false)
	c.parts = &rest
	var ask guard.Ask
	if err := g.identify(c, &ask); err != nil {
		return core.Record{}, err
	}
	if len(rest) > 0 {
		return core.Record{}, fmt.Errorf("%w: the key has fewer parts than %d", ErrKeyInvalid, len(parts))
	}
	r, err := g.once.Of(ask).Peek(ctx)
	if err != nil || r.State != core.StateCompleted {
		return r, err
	}
	answer, failure := g.recorded(r)
	if r.Value = nil; failure == nil {
		r.Value = answer.text()
	}
	return r, nil
}

// Resolve records that a call of which Peek has returned the record has taken effect, with a response or with nil.
func (g *Guard) Resolve(ctx context.Context, seen core.Record, response proto.Message) error {
	if err := g.seen(seen); err != nil {
		return err
	}
	var value []byte
	if response != nil {
		// The retry could make nothing but an empty message of another type.
		got := response.ProtoReflect().Descriptor().FullName()
		if d := descriptor(seen.Label); d != nil && d.Output().FullName() != got {
			return fmt.Errorf("holdfast: %s returns a %s, so no retry can get this %s", seen.Label, d.Output().FullName(), got)
		}
		var err error
		if value, err = g.encode(&Answer{Message: response}, seen.Key[strings.LastIndexByte(seen.Key, ':')+1:]); err != nil {
			return err
		}
	}
	return g.once.Of(guard.Ask{Name: seen.Key}).Resolve(ctx, seen, value)
}

// Forget deletes the record that Peek has returned, so that the next call of its key runs.
func (g *Guard) Forget(ctx context.Context, seen core.Record) error {
	if err := g.seen(seen); err != nil {
		return err
	}
	had, err := g.once.Forget(ctx, seen)
	if err == nil && !had {
		return ErrNoRecord
	}
	return err
}

// ErrNoRecord says that nothing is recorded of a key.
var ErrNoRecord = errors.New("holdfast: nothing is recorded of the key")

var errNoRecords = errors.New("holdfast: the guard has no records: make one with NewOnce or NewIdempotent")

func (g *Guard) seen(r core.Record) error {
	switch {
	case g.once == nil:
		return errNoRecords
	case !strings.HasPrefix(r.Key, Place+":"):
		return fmt.Errorf("%w: %q is not the record of a guard of RPC: pass what Peek returned", core.ErrInvalidName, r.Key)
	}
	return nil
}
