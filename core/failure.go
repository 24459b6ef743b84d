package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// failure returns the error of the API for the error of a command. It has the key that it is about. It is [ErrUnavailable] if
// waiting may help, together with the end of ctx if that came first.
func failure(ctx context.Context, key string, err error) error {
	if err = publicAck(err); err == nil {
		return nil
	}
	if transport.Transient(err) {
		return unavailable(err, ctx.Err())
	}
	return refusal(key, err)
}

// trouble is failure for a call whose time is up, and ended is why; nil if it is not. err is nil if nothing is known.
func trouble(key string, err, ended error) error {
	switch {
	case err == nil || transport.Transient(err) || errors.Is(publicAck(err), ErrNotReplicated):
		return unavailable(err, ended)
	case ended == nil:
		return refusal(key, err)
	}
	return errorf("%w: %w", refusal(key, err), ended)
}

// refusal returns the error of the API for an error that is no outage.
func refusal(key string, err error) error {
	switch {
	case transport.WrongType(err):
		// The server does not say which of the script's keys it was.
		return errorf("%w: %q, or a key beside it as holdfast:token, has data of another program: %w", ErrWrongType, key, err)
	case transport.WantsPassword(err):
		return errorf("%w: NOAUTH, it wants a password: %w", ErrPermission, err)
	case transport.RefusesUser(err):
		return errorf("%w: %w", ErrPermission, err)
	case errors.Is(err, ErrMisconfigured):
		return errorf("%w: %w", ErrMisconfigured, err)
	}
	if advice := transport.Advice(err); advice != "" {
		return errorf("%w: %s: %w", ErrMisconfigured, advice, err)
	}
	return err
}

// errCannotServe is [ErrUnavailable] with another text, for a server that has answered.
var errCannotServe = &wrapError{text: errorPrefix + "Redis cannot serve this now", err: ErrUnavailable}

// errTooManyFiles is [ErrUnavailable] with another text, for a connection that this process, not Redis, could not have.
var errTooManyFiles = &wrapError{text: errorPrefix + "this process or its host has too many open files (raise ulimit -n)", err: ErrUnavailable}

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
	case transport.TooManyFiles(err):
		outage = errTooManyFiles
	}
	switch {
	case ended == nil:
		return errorf("%w: %w", outage, err)
	}
	return errorf("%w: %w: %w", outage, err, ended)
}

// maxShownText bounds a text of others within the text of an error, in bytes.
const maxShownText = 4096

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
	return foreign.Line(strings.Join(lines, "; "), maxShownText) // also of an error of the caller, such as the cause of its context
}

// wrapError is what errorf returns.
type wrapError struct {
	text string
	err  error // the error that is wrapped, or one that wraps all of them
}

func (e *wrapError) Error() string { return e.text }
func (e *wrapError) Unwrap() error { return e.err }
