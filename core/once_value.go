package core

import (
	"context"
	"encoding/json"
	"reflect"
)

// OnceValue is [Once.Do] for a function that returns a value of type T. It runs fn, or returns the value that an earlier run
// recorded. Values are recorded as JSON, by [encoding/json], unless the Once has [WithEncoding].
//
// Errors are those of Once.Do. If fn returned a value that cannot be encoded, the run counts as failed: the error is that of the
// encoding, the failure policy decides what becomes of the record, and the value is returned too. If a recorded value cannot be
// decoded into a T, the error names the type, and the record stays as it is: the key may be in use for another type, or by an
// older version of the program. If the earlier run had a value that was not recorded, see [Result], the error is [ErrCompleted].
func OnceValue[T any](ctx context.Context, o *Once, fn func(context.Context) (T, error)) (T, error) {
	var value T
	if o == nil || fn == nil {
		return value, invalidOption("OnceValue: the Once or the function is nil")
	}
	result, err := o.Do(ctx, func(ctx context.Context) ([]byte, error) {
		returned, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		value = returned
		return o.encode(value, reflect.TypeFor[T]())
	})
	if err != nil || !result.Replayed {
		return value, err
	}
	if err := o.decode(result, &value, reflect.TypeFor[T]()); err != nil {
		var none T // not half of the value
		return none, err
	}
	return value, nil
}

// WithEncoding sets how [OnceValue] turns values into bytes and back, with functions such as [json.Marshal] and
// [json.Unmarshal]. decode gets a pointer to the value. All programs that share a key need the same encoding. Defaults to JSON.
func WithEncoding(encode func(value any) ([]byte, error), decode func(data []byte, value any) error) OnceOption {
	return newOnceOption("WithEncoding", nil, func(c *onceConfig) {
		if encode == nil || decode == nil {
			c.lock.refuse(invalidOption("WithEncoding: a function is nil"))
		}
		c.encode, c.decode = encode, decode
	})
}

func (o *Once) encode(value any, as reflect.Type) ([]byte, error) {
	encode := o.config.encode
	if encode == nil {
		encode = json.Marshal
	}
	data, err := encode(value)
	if err != nil {
		return nil, errorf("holdfast: once %q: a value of type %v cannot be encoded: %w", o.key, as, err)
	}
	return data, nil
}

// decode decodes the value of an earlier run into the pointer to.
func (o *Once) decode(r Result, to any, as reflect.Type) error {
	if r.Omitted || o.config.encode == nil && len(r.Value) == 0 { // a run that failed after Complete has no value
		return errorf("%w: once %q: its value of type %v was not recorded", ErrCompleted, o.key, as)
	}
	decode := o.config.decode
	if decode == nil {
		decode = json.Unmarshal
	}
	if err := decode(r.Value, to); err != nil {
		return errorf("holdfast: once %q: the recorded value cannot be decoded into type %v: %w", o.key, as, err)
	}
	return nil
}
