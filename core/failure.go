package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
		// The server does not say which of the script's keys it was.
		return errorf("%w: %q, or a key beside it as holdfast:token: %w", ErrWrongType, key, err)
	case transport.WantsPassword(err):
		return errorf("%w: NOAUTH, it wants a password: %w", ErrPermission, err)
	case transport.RefusesUser(err):
		return errorf("%w: %w", ErrPermission, err)
	case !transport.Transient(err):
		return err
	}
	return unavailable(err, ctx.Err())
}

// errCannotServe is [ErrUnavailable] with another text, for a server that has answered.
var errCannotServe = &wrapError{text: errorPrefix + "Redis cannot serve this now", err: ErrUnavailable}

// unavailable returns the [ErrUnavailable] of a request that has failed with err: the reply of the server, such as LOADING,
// or what has kept the server from a reply. err is nil if neither is known. ended is why the caller's time is up, nil if it
// is not.
func unavailable(err, ended error) error {
	outage := ErrUnavailable
	if err = publicAck(err); errors.Is(err, ErrNotReplicated) || err != nil && transport.Replied(err) {
		outage = errCannotServe
	}
	switch {
	case err == nil:
		return outage
	case ended == nil:
		return errorf("%w: %w", outage, err)
	}
	return errorf("%w: %w: %w", outage, err, ended)
}

// errorPrefix begins every error of this package.
const errorPrefix = "holdfast: "

// errorf is [fmt.Errorf] for errors that wrap others of this package: the prefix stands once, in front, and the text is
// one line.
func errorf(format string, args ...any) error {
	wrapped := fmt.Errorf(format, args...)
	texts := slices.Clone(args)
	for i, arg := range args {
		if err, ok := arg.(error); ok && (i > 0 || !strings.HasPrefix(format, "%w")) {
			texts[i] = bareText(err)
		}
	}
	e := &wrapError{text: fmt.Sprintf(strings.ReplaceAll(format, "%w", "%v"), texts...), err: wrapped}
	if inner := errors.Unwrap(wrapped); inner != nil {
		e.err = inner
	}
	return e
}

// bareText returns the text of an error without prefixes; the texts of several are separated by semicolons.
func bareText(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, errorPrefix)
	}
	return strings.Join(lines, "; ")
}

// wrapError is what errorf returns.
type wrapError struct {
	text string
	err  error // the error that is wrapped, or one that wraps all of them
}

func (e *wrapError) Error() string { return e.text }
func (e *wrapError) Unwrap() error { return e.err }
