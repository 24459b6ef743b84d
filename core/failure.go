package core

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// failure is what a caller gets to see of a command's error: with the key that it is about, and recognizable as
// an outage if it was one, with the end of ctx if that came first.
func failure(ctx context.Context, key string, err error) error {
	err = publicAck(err)
	switch {
	case err == nil:
		return nil
	case transport.WrongType(err):
		return errorf("%w: %q: %w", ErrWrongType, key, err)
	case transport.Unauthenticated(err):
		return errorf("%w: NOAUTH, it wants a password: %w", ErrPermission, err)
	case transport.RefusesUser(err):
		return errorf("%w: %w", ErrPermission, err)
	case !transport.Transient(err):
		return err
	case ctx.Err() != nil:
		return errorf("%w: %w: %w", ErrUnavailable, err, ctx.Err())
	}
	return errorf("%w: %w", ErrUnavailable, err)
}
