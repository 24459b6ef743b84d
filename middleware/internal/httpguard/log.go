package httpguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/throttle"
)

// What is logged. Refusals that clients cause are not: their number is up to the clients.
const (
	logKeyFailed   = "holdfast: the key of a request could not be made, the request was refused"
	logGuardFailed = "holdfast: a guard cannot be used like this, the request was refused"
	logUnavailable = "holdfast: Redis did not answer or refused the guard's command, the request was refused"
	logUnguarded   = "holdfast: Redis could not be asked, the request runs unguarded"
	logLost        = "holdfast: a request has lost its lease while it ran"
	logUnrecorded  = "holdfast: the end of a request could not be recorded"
	logUnknown     = "holdfast: the outcome of a request is unknown, its key is held until Resolve or Forget"
)

// failureLog tells an operator of what clients can do nothing about: the first failure of each kind and then how many
// there were; of an unknown outcome each key at least once. Keys appear by their hash only.
type failureLog struct {
	logger   *slog.Logger
	throttle throttle.Throttle
	unknown  throttle.Seen // keys of unknown outcome
}

// refused tells of a refusal that is the server's fault.
func (l *failureLog) refused(ctx context.Context, c *Conflict) {
	switch c.Code {
	case CodeKeyFailed:
		l.write(ctx, slog.LevelError, logKeyFailed, c.Code, c.KeyHash, keyFailure(c.Cause))
	case CodeGuardFailed:
		l.write(ctx, slog.LevelError, logGuardFailed, c.Code, c.KeyHash, lockFailure(c.Cause))
	case CodeLockUnavailable:
		l.write(ctx, slog.LevelError, logUnavailable, c.Code+" "+replyCode(c.Cause), c.KeyHash, lockFailure(c.Cause))
	case CodeOutcomeUnknown:
		if l.unknown.First(c.KeyHash) { // a run whose process crashed, for instance
			l.held(ctx, c.KeyHash)
			return
		}
		l.write(ctx, slog.LevelWarn, logUnknown, c.Code, c.KeyHash, slog.Attr{})
	}
}

// incident tells of a run with less than its guard promises.
func (l *failureLog) incident(ctx context.Context, work core.Work, kind core.IncidentKind, err error) {
	level, text := slog.LevelWarn, logUnrecorded
	switch kind {
	case core.IncidentUnguarded:
		level, text = slog.LevelError, logUnguarded
	case core.IncidentLost:
		text = logLost
	}
	l.write(ctx, level, text, string(kind), work.KeyHash, lockFailure(err))
}

// held logs each run after which its key lets no request run until an operator has looked.
func (l *failureLog) held(ctx context.Context, hash string) {
	l.unknown.First(hash)
	_, _ = l.throttle.Event(CodeOutcomeUnknown) // the refusals that follow are no news
	l.line(ctx, slog.LevelWarn, logUnknown, hash)
}

// write logs an event of that kind, unless one was logged lately.
func (l *failureLog) write(ctx context.Context, level slog.Level, text, kind, hash string, cause slog.Attr) {
	if !l.logger.Enabled(ctx, level) {
		return
	}
	seen, within := l.throttle.Event(kind)
	if seen == 0 {
		return
	}
	var attrs []slog.Attr
	if cause.Key != "" {
		attrs = append(attrs, cause)
	}
	if within > 0 {
		attrs = append(attrs, slog.Int("seen", seen), slog.Duration("within", within))
	}
	l.line(ctx, level, text, hash, attrs...)
}

// line logs an event.
func (l *failureLog) line(ctx context.Context, level slog.Level, text, hash string, attrs ...slog.Attr) {
	if hash != "" {
		attrs = append([]slog.Attr{slog.String("key_hash", hash)}, attrs...)
	}
	l.logger.LogAttrs(ctx, level, text, attrs...)
}

// lockFailure is what the log says of an error of the lock or record. Its text has names by their hash only. An error
// that is a [slog.LogValuer] says itself what is to be logged.
func lockFailure(err error) slog.Attr {
	var v slog.LogValuer
	if errors.As(err, &v) {
		return slog.Any("error", v)
	}
	return slog.Any("error", err)
}

// keyFailure is what the log says of an error of a key function. Its text may have what the client has sent, so only
// its type is logged, unless it is a [slog.LogValuer] or one of this package.
func keyFailure(err error) slog.Attr {
	var v slog.LogValuer
	var wildcard *wildcardError
	switch {
	case errors.As(err, &v):
		return slog.Any("error", v)
	case errors.As(err, &wildcard):
		return slog.String("error", wildcard.text)
	case errors.Is(err, ErrNoRoute):
		return slog.String("error", ErrNoRoute.Error())
	}
	return slog.String("error_type", fmt.Sprintf("%T", innermost(err)))
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

// replyCode returns the code of an error that Redis has answered, OOM or NOPERM for instance, "" for any other error:
// a wrong password is another kind of failure than the outage before it.
func replyCode(err error) string {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return ""
	}
	code, _, _ := strings.Cut(reply.Error(), " ")
	return code
}

// sealFailure is an error of a codec. The log has its type only: the codec knows the whole answer.
type sealFailure struct{ error }

func (f sealFailure) Unwrap() error { return f.error }

// LogValue returns the type of the error.
func (f sealFailure) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("the codec could not seal the answer: %T", innermost(f.error)))
}
