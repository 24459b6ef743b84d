package msglock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// workPlace is the place of messages in [core.Work].
const workPlace = "message"

// prefix keeps the locks and records of messages apart from others.
const prefix = "msg:"

// Guard is a guard of [NewOnce] as a value. Handle and HandleBatch handle messages. Peek, Resolve and Forget are for operators:
// they read and change the record of a key of the consumer.
//
// The engine lets a message be handled or not, and records the end. This package reads keys and decides what becomes of the message.
type Guard[M any] struct {
	config  guards.Config
	own     own[M]
	engine  guards.Guard
	key     KeyFunc[M]
	handler func(context.Context, M) error
	label   string
	note    string // the name of the handler

	// Not for Exclusive.
	once  *guards.Once
	scope []string // before the key in its hash: the consumer
}

func newGuard[M any](place guards.Place, key KeyFunc[M], handler any, opts []Option) (g *Guard[M], err error) {
	if key == nil || guards.IsNil(handler) {
		return nil, fmt.Errorf("%w: %s: the key function or the handler is nil", core.ErrInvalidOption, place.Name)
	}
	g = &Guard[M]{key: key, note: guards.FuncName(handler)}
	g.config, err = guards.Sort(place, opts, &g.own)
	return g, err
}

// nameOf returns the hash of a key, and the name of its lock or record.
func (g *Guard[M]) nameOf(key string) (hash, name string) {
	hash = guards.Hash(g.config.KeySecret, append(g.scope[:len(g.scope):len(g.scope)], key)...)
	return hash, prefix + hash
}

// Handle handles a message, see [Once].
func (g *Guard[M]) Handle(ctx context.Context, m M) error { return g.visit(ctx, m).handle() }

// visit is a message that has come to a guard.
type visit[M any] struct {
	*Guard[M]
	handler func(context.Context, M) error
	ctx     context.Context
	m       M
	ask     guards.Ask
	run     guards.Run
	err     error // the handler's

	// Of OnceValue; nil for other guards.
	value func() ([]byte, error) // of a run that has succeeded
	load  func([]byte) error     // sets the value to an earlier run's
}

// visit describes a message to the engine.
func (g *Guard[M]) visit(ctx context.Context, m M) *visit[M] {
	v := &visit[M]{Guard: g, handler: g.handler, ctx: ctx, m: m}
	v.ask.Label, v.ask.Note = g.label, g.note
	v.run = guards.Run{
		Call:   func(ctx context.Context) { v.err = guards.NotNil(v.handler(ctx, m)) },
		Judge:  v.judge,
		Replay: func(_ context.Context, r core.Record) error { return v.replay(r) },
		Refuse: func(_ context.Context, not *core.NotRun) { v.refuse(not) },
	}
	key, err := v.read()
	if err == nil && key != "" && v.own.payload != nil {
		err = guards.Try(v.fingerprint)
	}
	switch {
	case err != nil:
		v.ask.NoKey, v.ask.KeyFailed = fmt.Errorf("%w: %w", ErrNoKey, err), true
	case key == "":
		v.ask.NoKey = ErrNoKey
	default:
		v.ask.KeyHash, v.ask.Name = g.nameOf(key)
		if v.own.sent == nil {
			break
		}
		if err := guards.Try(func() { v.ask.Due = v.own.sent(m) }); err != nil {
			v.engine.Event(ctx, slog.LevelWarn, sentTime, "holdfast: msglock: WithSentTime panicked, the message has no age", v.ask.Work, err)
		}
	}
	return v
}

// read reads the key of the message.
func (v *visit[M]) read() (key string, err error) {
	defer guards.Recovered(&err)
	if guards.IsNil(v.m) {
		return "", errors.New("the message is nil")
	}
	key, err = v.key(v.ctx, v.m)
	if err == nil && key == noField {
		err = errors.New("the key is the text of a field that is missing")
	}
	return key, err
}

// fingerprint sets what is compared with the record. It is the beginning of a digest, since it is kept in each record: 16 bytes are equal
// by accident as rarely as two UUIDs are.
func (v *visit[M]) fingerprint() {
	digest := guards.Digest(v.config.KeySecret, string(v.own.payload(v.m)))
	v.ask.Fingerprint = digest[:16]
}

// noField is what fmt makes of a field that a message does not have. No producer means it as a key.
const noField = "<nil>"

// handle lets the engine handle the message or not, and returns the consumer's result.
func (v *visit[M]) handle() error {
	if v.own.beat != nil {
		defer v.beats()()
	}
	o, err := v.engine.Do(v.ctx, v.ask, v.run)
	switch {
	case err != nil:
		err = guards.Idle(err)
	case o != nil: // otherwise an earlier message with the key has completed
		err = v.ended(o)
	}
	v.logParked(err)
	return err
}

// ended returns what to tell the consumer about a message whose handler was called.
func (v *visit[M]) ended(o *guards.Outcome) error {
	switch {
	case o.State == core.StateUnknown:
		return guards.Joined(v.err, core.ErrOutcomeUnknown)
	case errors.Is(o.Unrecorded, core.ErrStale) && (v.err == nil || o.State == core.StateCompleted):
		return deferral(o.Unrecorded, 0) // how the other run fares decides
	case o.State == core.StateCompleted && v.err != nil && v.load != nil && v.load(o.Recorded()) != nil: // it has none, unless its proof has
		return &ParkedError{guards.Joined(v.err, core.ErrCompleted)}
	case o.State == core.StateCompleted: // also if the handler failed after core.Complete
		return nil
	case v.err != nil && o.Lost != nil:
		return deferral(guards.Joined(v.err, o.Lost), 0)
	}
	return v.err
}

// judge judges how the handler ended. What a guard inside has refused has done nothing.
func (v *visit[M]) judge(o *guards.Outcome) {
	o.Err = v.err
	switch {
	case !o.Returned:
	case v.err == nil:
		o.Verdict, o.Value = guards.Completed, v.value
	case guards.IsIdle(v.err):
		o.Verdict = guards.Released
	}
}

// beats calls the function of WithHeartbeat until stop is called.
func (v *visit[M]) beats() (stop func()) {
	beat := func(ctx context.Context) error { return v.own.beat(ctx, v.m) }
	return guards.Heartbeat(v.ctx, v.own.every, beat, func(ctx context.Context, err error) {
		v.engine.Event(ctx, slog.LevelWarn, "heartbeat", "holdfast: msglock: a heartbeat failed", v.ask.Work, err)
	})
}
