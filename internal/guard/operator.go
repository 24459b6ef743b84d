package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// Peek reads the record of a name.
func (o *Once) Peek(ctx context.Context, name string) (core.Record, error) {
	return o.Of(Ask{Name: name}).Peek(ctx)
}

// ResolveSeen resolves a record that an operator has read before, see [core.Once.Resolve]. The error is [core.ErrInvalidName] if its
// name does not begin with the prefix of the place.
func (o *Once) ResolveSeen(ctx context.Context, prefix string, seen core.Record, value []byte) error {
	if err := o.ofPlace(prefix, seen); err != nil {
		return err
	}
	return o.Of(Ask{Name: seen.Key}).Resolve(ctx, seen, value)
}

// ForgetSeen deletes a record that an operator has read before, see [core.Once.Forget], and what this process knows of its name. The
// error is [core.ErrInvalidName] if its name does not begin with the prefix of the place.
func (o *Once) ForgetSeen(ctx context.Context, prefix string, seen core.Record) error {
	if err := o.ofPlace(prefix, seen); err != nil {
		return err
	}
	if err := o.Of(Ask{Name: seen.Key}).Forget(ctx, seen); err != nil {
		return err
	}
	o.Forget(seen.Key) // only now: after a refusal the run counts
	return nil
}

func (o *Once) ofPlace(prefix string, r core.Record) error {
	if strings.HasPrefix(r.Key, prefix) {
		return nil
	}
	return fmt.Errorf("%w: %q is not the record of a %s: pass what Peek returned", core.ErrInvalidName, r.Key, o.place)
}

// Must returns the value of a constructor, and panics with its error.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Joined returns an error that is all of errs, of which the first may be nil. One that an earlier one wraps is not added.
func Joined(errs ...error) error {
	if errs[0] == nil {
		errs = errs[1:]
	}
	err := errs[0]
	for _, more := range errs[1:] {
		if !errors.Is(err, more) {
			err = fmt.Errorf("%w: %w", err, more)
		}
	}
	return err
}

// Recovered makes a panic of a user's function an error. It must be deferred itself.
func Recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("a function of the guard panicked: %v", p)
	}
}
