package watermilllock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
)

// KeyFunc returns the key of a message. Do not use the UUID unless your producer sets it: message.NewUUID is new at every publish.
type KeyFunc = msglock.KeyFunc[*message.Message]

// ByMetadata returns the key that producers have set under a name in the metadata.
func ByMetadata(name string) KeyFunc {
	return func(_ context.Context, m *message.Message) (string, error) { return m.Metadata.Get(name), nil }
}

// Parked reports whether an error of a guarded handler says that a person has to look at the message. It is a filter for
// middleware.PoisonQueueWithFilter.
func Parked(err error) bool {
	action, _ := msglock.Disposition(err)
	return action == msglock.Park
}

// Once returns a middleware that lets a message of each key take effect once for a consumer and a handler of the router. It panics
// if an argument is invalid: [NewOnce] returns an error instead, and a [Guard] that operators can use.
func Once(locks *core.Client, consumer string, key KeyFunc, opts ...msglock.Option) message.HandlerMiddleware {
	g, err := NewOnce(locks, consumer, key, opts...)
	if err != nil {
		panic(err)
	}
	return g.Wrap
}

// NewOnce returns the guard of [Once] as a value. It does no I/O.
func NewOnce(locks *core.Client, consumer string, key KeyFunc, opts ...msglock.Option) (*Guard, error) {
	if key == nil {
		return nil, fmt.Errorf("%w: watermilllock: the key function is nil", core.ErrInvalidOption)
	}
	g := &Guard{locks: locks, consumer: consumer, opts: opts, key: func(ctx context.Context, m *message.Message) (string, error) {
		text, err := key(ctx, m)
		if err != nil || text == "" {
			return "", err
		}
		return keyOf(message.HandlerNameFromCtx(m.Context()), text), nil
	}}
	records, err := msglock.NewOnce(locks, consumer, g.key, func(context.Context, *message.Message) error { return nil }, opts...)
	if err != nil {
		return nil, err
	}
	_, err = g.guarded(message.PassthroughHandler)
	g.records = records
	return g, err
}

// keyOf returns the key of a message of a handler. The length keeps two handlers apart whatever their names.
func keyOf(handler, key string) string { return fmt.Sprintf("%d %s %s", len(handler), handler, key) }

// Guard is a guard of [NewOnce] as a value. Wrap is the middleware. Peek, Resolve and Forget are for operators.
type Guard struct {
	locks    *core.Client
	consumer string
	key      KeyFunc
	opts     []msglock.Option
	records  *msglock.Guard[*message.Message]
}

// Peek reads the record of a key of a handler of the router. It returns the errors of [core.Once.Peek].
func (g *Guard) Peek(ctx context.Context, handler, key string) (core.Record, error) {
	return g.records.Peek(ctx, keyOf(handler, key))
}

// Resolve records that a message has taken effect, and has produced these messages. It applies to the record that Peek returned.
// It returns the errors of [core.Once.Resolve].
func (g *Guard) Resolve(ctx context.Context, seen core.Record, messages ...*message.Message) error {
	value, err := json.Marshal(newProduced(messages))
	if err != nil {
		return err
	}
	return g.records.Resolve(ctx, seen, value)
}

// Forget deletes the record of a message, so that it is handled when it is delivered again. It applies to the record that Peek
// returned. It returns the errors of [core.Once.Forget].
func (g *Guard) Forget(ctx context.Context, seen core.Record) error {
	return g.records.Forget(ctx, seen)
}

// Wrap returns the guarded handler: it is a message.HandlerMiddleware.
func (g *Guard) Wrap(h message.HandlerFunc) message.HandlerFunc {
	guarded, err := g.guarded(h)
	if err != nil {
		panic(err) // of the arguments, which NewOnce has checked
	}
	return func(m *message.Message) ([]*message.Message, error) {
		ctx := context.Background()
		if m != nil { // the guard parks a nil message
			ctx = m.Context()
		}
		result, err := guarded(ctx, m)
		if err == nil {
			return result.messages, nil
		}
		var deferred *msglock.DeferredError
		if errors.As(err, &deferred) {
			pause(ctx, deferred.RetryAfter)
		}
		return nil, err
	}
}

// guarded guards a handler. While that runs, the message has the context of the run.
func (g *Guard) guarded(h message.HandlerFunc) (func(context.Context, *message.Message) (produced, error), error) {
	return msglock.NewOnceValue(g.locks, g.consumer, g.key, func(ctx context.Context, m *message.Message) (produced, error) {
		outer := m.Context()
		m.SetContext(ctx)
		defer m.SetContext(outer)
		messages, err := h(m)
		select {
		case <-m.Nacked():
			if err == nil {
				err = errNacked
			}
		default:
		}
		return newProduced(messages), err
	}, g.opts...)
}

// errNacked is the error of a handler that returned none.
var errNacked = errors.New("watermilllock: the handler has negatively acknowledged the message, so its run counts as failed")

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// produced are the messages that a handler returned, as they are recorded.
type produced struct{ messages []*message.Message }

// newProduced returns messages without those that are nil.
func newProduced(messages []*message.Message) produced {
	if slices.Contains(messages, nil) {
		messages = slices.DeleteFunc(slices.Clone(messages), func(m *message.Message) bool { return m == nil })
	}
	return produced{messages}
}

type recorded struct {
	UUID     string            `json:"uuid"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Payload  []byte            `json:"payload,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (p produced) MarshalJSON() ([]byte, error) {
	var all []recorded
	for _, m := range p.messages {
		all = append(all, recorded{m.UUID, m.Metadata, m.Payload})
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *produced) UnmarshalJSON(data []byte) error {
	var all []recorded
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	p.messages = nil
	for _, r := range all {
		m := message.NewMessage(r.UUID, r.Payload)
		maps.Copy(m.Metadata, r.Metadata)
		p.messages = append(p.messages, m)
	}
	return nil
}
