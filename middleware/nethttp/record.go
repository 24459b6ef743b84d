package httplock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// IdempotencyKey returns the key that [Idempotent] joins to its scope for a client's Idempotency-Key, for [Join]: after
// the keys of the scope.
func IdempotencyKey(value string) (Key, error) { return middleware.IdempotencyKey(value) }

// Peek reads what is recorded of a key behind [Once] or [Idempotent], see [middleware.Peek]. The secret is that of
// [WithKeySecret], nil if there is none.
func Peek(ctx context.Context, client *core.Client, key Key, secret []byte) (core.Record, error) {
	return middleware.Peek(ctx, client, key, secret)
}

// Forget deletes the record of a key behind [Once] or [Idempotent], so that the next request runs, see
// [middleware.Forget]. The secret is that of [WithKeySecret], nil if there is none.
func Forget(ctx context.Context, client *core.Client, key Key, secret []byte) error {
	return middleware.Forget(ctx, client, key, secret)
}
