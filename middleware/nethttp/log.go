package httplock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// What is logged beside the lines of all guards. Refusals that clients cause are not: their number is up to the clients.
const (
	logKeyFailed = "holdfast: the key of a request could not be made, the request was refused"
	logBodyRead  = "holdfast: the body of a request was read in front of its guard, the request was refused"
)

// logRefused tells of a request that is refused by the server's fault, before it was asked about.
func (g *guard) logRefused(ctx context.Context, w core.Work, c *Conflict) {
	switch c.Code {
	case CodeKeyFailed:
		g.log.Event(ctx, slog.LevelError, c.Code, logKeyFailed, w, keyFailure{c.Cause})
	case CodeGuardFailed:
		g.log.Event(ctx, slog.LevelError, c.Code, logBodyRead, w, c.Cause)
	}
}

// keyFailure is an error of a key function. Its text may have what the client has sent, so the log has only its type, unless it
// is a [slog.LogValuer] or one of this package.
type keyFailure struct{ error }

// LogValue returns what may be logged.
func (f keyFailure) LogValue() slog.Value {
	var v slog.LogValuer
	var wildcard *wildcardError
	switch {
	case errors.As(f.error, &v):
		return v.LogValue()
	case errors.As(f.error, &wildcard):
		return slog.StringValue(wildcard.text)
	case errors.Is(f.error, ErrNoRoute):
		return slog.StringValue(ErrNoRoute.Error())
	}
	return slog.StringValue(fmt.Sprintf("of type %T", innermost(f.error)))
}

// innermost returns the error at the end of a chain, whose type tells more than that of what is wrapped around it.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// sealFailure is an error of a codec. The log has its type only: the codec knows the whole answer.
type sealFailure struct{ error }

func (f sealFailure) Unwrap() error { return f.error }

// LogValue returns the type of the error.
func (f sealFailure) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("the codec could not seal the answer: %T", innermost(f.error)))
}

// failureOf returns why a run failed whose handler has returned: because of the status of its answer, or because there is none. It
// returns nil for other runs, and for a handler that leaves the answer to something around the guard.
func failureOf(status int, answered, reportedErrors bool) error {
	switch {
	case reportedErrors:
		return errors.New("holdfast: the handler reported errors")
	case !answered:
		return errors.New("holdfast: the handler did not answer")
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("holdfast: the handler answered %d", status)
	}
	return nil
}
