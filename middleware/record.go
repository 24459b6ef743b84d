package middleware

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core"
)

// IdempotencyKey returns the key that Idempotent joins to its scope for a client's Idempotency-Key, without quotes. The
// error is that of [NewKey].
func IdempotencyKey(value string) (Key, error) { return NewKey(idempotencyKey, value) }

// Peek reads what is recorded of a key behind Once or Idempotent, for a page that tells clients what became of their
// requests for instance. The secret is that of [WithKeySecret], nil if there is none. The value of the record is for
// [DecodeResponse]. Errors are [ErrKeyRequired] for the zero Key and those of [core.Once.Peek].
func Peek(ctx context.Context, client *core.Client, key Key, secret []byte) (core.Record, error) {
	once, err := recordOf(client, key, secret)
	if err != nil {
		return core.Record{}, err
	}
	return once.Peek(ctx)
}

// Forget deletes the record of a key behind Once or Idempotent, so that the next request runs: the order was cancelled,
// or somebody has found out how a run of unknown outcome ended. A run in progress is not stopped. The secret is that of
// [WithKeySecret], nil if there is none. Errors are [ErrKeyRequired] for the zero Key and those of [core.Once.Forget].
func Forget(ctx context.Context, client *core.Client, key Key, secret []byte) error {
	once, err := recordOf(client, key, secret)
	if err != nil {
		return err
	}
	return once.Forget(ctx)
}

func recordOf(client *core.Client, key Key, secret []byte) (*core.Once, error) {
	switch {
	case client == nil:
		return nil, errors.New("holdfast: the client is nil: pass that of core.New")
	case key.IsZero():
		return nil, ErrKeyRequired
	}
	return client.Once(key.record(secret)), nil
}
