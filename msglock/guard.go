package msglock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// workPlace is the place of messages in [core.Work].
const workPlace = "message"

// prefix keeps the locks and records of messages apart from others.
const prefix = "msg:"

// guard is what Once and Exclusive have in common. The engine lets a message be handled or not, and records the end. This package
// reads keys and says what becomes of the message.
type guard[M any] struct {
	guards.Config
	engine  engine
	key     KeyFunc[M]
	handler func(context.Context, M) error
	label   string
	note    string   // the name of the handler
	scope   []string // before the key in its hash: the consumer

	own[M]
	pointer bool // an M may be nil
}

// asking asks Redis for a lock or an attempt, and waits for so long.
type asking = func(ctx context.Context, wait time.Duration) error

// engine is a [guards.Once] or a [guards.Exclusive].
type engine interface {
	Do(ctx context.Context, ask guards.Ask, run guards.Run) (*guards.Outcome, error)
	Patience(ask guards.Ask, wait time.Duration) guards.Patience
	Event(ctx context.Context, level slog.Level, kind, text string, w core.Work, err error, more ...slog.Attr)
}

func newGuard[M any](place guards.Place, key KeyFunc[M], handler any, opts []Option) (*Guard[M], error) {
	if key == nil || reflect.ValueOf(handler).IsNil() {
		return nil, fmt.Errorf("%w: %s: the key function or the handler is nil", core.ErrInvalidOption, place.Name)
	}
	g := &Guard[M]{guard: guard[M]{key: key, note: nameOf(handler)}}
	var err error
	if g.Config, err = guards.Sort(place, opts, &g.own); err != nil {
		return nil, err
	}
	switch reflect.TypeFor[M]().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		g.pointer = true
	}
	return g, g.own.check(&g.Config)
}

// nameOf returns the name of a handler, for readers of records and to tell handlers apart: "billing.charge".
func nameOf(handler any) string {
	const most = 64 // the longest field of a small hash in Redis
	fn := runtime.FuncForPC(reflect.ValueOf(handler).Pointer())
	if fn == nil {
		return ""
	}
	name := strings.TrimSuffix(fn.Name()[strings.LastIndex(fn.Name(), "/")+1:], "-fm")
	return name[max(len(name)-most, 0):]
}

// visit is a message that has come to a guard.
type visit[M any] struct {
	*guard[M]
	handler func(context.Context, M) error
	ctx     context.Context
	m       M
	ask     guards.Ask
	run     guards.Run
	err     error // the handler's

	// Of OnceValue; nil for other guards.
	value func() ([]byte, error) // of a run that has succeeded
	load  func([]byte) error     // sets the value to that of an earlier run
	peek  func(context.Context) (core.Record, error)
}

// nameOf returns the hash of a key, and the name of its lock or record.
func (g *guard[M]) nameOf(key string) (hash, name string) {
	hash = guards.Hash(g.KeySecret, append(g.scope[:len(g.scope):len(g.scope)], key)...)
	return hash, prefix + hash
}

// visit describes a message to the engine.
func (g *guard[M]) visit(ctx context.Context, m M) *visit[M] {
	v := &visit[M]{guard: g, handler: g.handler, ctx: ctx, m: m}
	v.ask.Label, v.ask.Note = g.label, g.note
	v.run = guards.Run{
		Call:   func(ctx context.Context) { v.err = v.handler(ctx, m) },
		Judge:  v.judge,
		Replay: func(_ context.Context, r core.Record) error { return v.replay(r) },
		Refuse: func(_ context.Context, not *core.NotRun) { v.refuse(not) },
	}
	key, err := v.read()
	switch {
	case err != nil:
		v.ask.NoKey, v.ask.KeyFailed = err, true
		return v
	case key == "":
		v.ask.NoKey = ErrNoKey
		return v
	}
	v.ask.KeyHash, v.ask.Name = g.nameOf(key)
	return v
}

// read reads the key of the message, and what else the engine has to know of it.
func (v *visit[M]) read() (key string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: a function of the guard panicked: %v", ErrNoKey, p)
		}
		if err != nil && v.ctx.Err() == nil {
			v.engine.Event(v.ctx, slog.LevelError, "no key", "holdfast: msglock: a message has no key", v.ask.Work, err)
		}
	}()
	if v.pointer && reflect.ValueOf(&v.m).Elem().IsNil() {
		return "", fmt.Errorf("%w: the message is nil", ErrNoKey)
	}
	if key, err = v.key(v.ctx, v.m); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	if v.sent != nil {
		v.ask.Due = v.sent(v.m)
	}
	return key, nil
}

// handle lets the engine handle the message or not, and returns what to tell the consumer.
func (v *visit[M]) handle() error {
	defer v.beats()()
	o, err := v.engine.Do(v.ctx, v.ask, v.run)
	switch {
	case err != nil:
		return err
	case o == nil: // an earlier message with the key has completed
		return nil
	case o.State == core.StateUnknown:
		return joined(v.err, core.ErrOutcomeUnknown)
	case errors.Is(o.Unrecorded, core.ErrStale) && (v.err == nil || o.State == core.StateCompleted):
		return deferral(o.Unrecorded, 0, false) // how the other run fares decides
	case o.State == core.StateCompleted && v.err != nil && v.load != nil:
		return v.loadRecorded()
	case o.State == core.StateCompleted: // also if the handler failed after core.Complete
		return nil
	case v.err != nil && o.Lost != nil:
		return deferral(joined(v.err, o.Lost), 0, false)
	}
	return v.err
}

// judge judges how the handler ended. What a guard inside has refused has done nothing.
func (v *visit[M]) judge(o *guards.Outcome) {
	if o.Err = v.err; v.err == nil {
		o.Value = v.value
	}
	deferred, _ := v.err.(*DeferredError)
	parked, _ := v.err.(*ParkedError)
	switch {
	case !o.Returned:
	case v.err == nil:
		o.Verdict = guards.Completed
	case deferred != nil && deferred.idle, parked != nil && parked.idle:
		o.Verdict = guards.Released
	}
}

// joined returns an error that is both; the first may be nil.
func joined(err, more error) error {
	if err == nil || errors.Is(err, more) {
		return errors.Join(err, more)
	}
	return fmt.Errorf("%w: %w", err, more)
}

// beats calls the function of WithHeartbeat until stop is called, which waits for the last call.
func (v *visit[M]) beats() (stop func()) {
	if v.beat == nil || v.ask.NoKey != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.ctx)) // the handler may go on after its end
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(v.every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := v.beatOnce(ctx); err != nil && ctx.Err() == nil {
				v.engine.Event(ctx, slog.LevelWarn, "heartbeat", "holdfast: msglock: a heartbeat failed", v.ask.Work, err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (v *visit[M]) beatOnce(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return v.beat(ctx, v.m)
}
