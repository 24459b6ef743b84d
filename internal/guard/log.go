package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/throttle"
)

// What is logged. Refusals that callers cause are not: their number is up to the callers.
const (
	logUnavailable = "holdfast: Redis did not answer or refused the guard's command, the work was not run"
	logUndecided   = "holdfast: the proof could not be asked whether an earlier run took effect, the work was not run"
	logMistake     = "holdfast: a guard cannot be used like this, the work was not run"
	logUnguarded   = "holdfast: Redis could not be asked, the work runs unguarded"
	logLost        = "holdfast: the work has lost its lease while it ran"
	logUnrecorded  = "holdfast: the end of the work could not be recorded"
	logNoResult    = "holdfast: the work is recorded without its result, which could not be encoded"
	logOverrun     = "holdfast: the work continues long after it was told to end, its lease is not renewed any more"
	logUnknown     = "holdfast: the outcome of the work is unknown, its key is held until Resolve or Forget"
	logPanic       = "holdfast: a hook or a function of a guard panicked"
)

// mostShown bounds what the log has of a label.
const mostShown = 100

// Log logs what only an operator can mend: the first event of each kind, and then how many there were. Keys
// appear by their hash only.
type Log struct {
	Logger *slog.Logger

	place    string
	throttle throttle.Throttle
	unknown  throttle.Seen // keys of unknown outcome
}

// Event logs an event of work, unless one of that kind was logged lately. A place calls it for events of its own. A nil err is
// not logged.
func (l *Log) Event(ctx context.Context, level slog.Level, kind, text string, w core.Work, err error, more ...slog.Attr) {
	if !l.Logger.Enabled(ctx, level) {
		return
	}
	seen, within := l.throttle.Event(kind)
	if seen == 0 {
		return
	}
	if err != nil {
		more = append(more, errorAttr(err))
	}
	if within > 0 {
		more = append(more, slog.Int("seen", seen), slog.Duration("within", within))
	}
	l.Line(ctx, level, text, w, more...)
}

// Line logs an event of work, however many there are.
func (l *Log) Line(ctx context.Context, level slog.Level, text string, w core.Work, more ...slog.Attr) {
	attrs := []slog.Attr{slog.String("place", l.place)}
	if w.Label != "" {
		attrs = append(attrs, slog.String("label", foreign.Line(w.Label, mostShown)))
	}
	if !w.Due.IsZero() {
		attrs = append(attrs, slog.Time("due", w.Due))
	}
	if w.KeyHash != "" {
		attrs = append(attrs, slog.String("key_hash", w.KeyHash))
	}
	l.Logger.LogAttrs(ctx, level, text, append(attrs, more...)...)
}

// errorAttr has the text of an error, or what an error in its chain says for the log.
func errorAttr(err error) slog.Attr {
	var v slog.LogValuer
	if errors.As(err, &v) {
		return slog.Any("error", v)
	}
	return slog.Any("error", err)
}

// KeyFailure is an error of a key function or a handler. Its text may have what a client has sent, so the log has only its type, unless an error
// in its chain is a [slog.LogValuer].
type KeyFailure struct{ error }

// KeyFailed returns such an error in the form in which it may be logged.
func KeyFailed(err error) KeyFailure { return KeyFailure{err} }

// Unwrap returns the error of the function.
func (f KeyFailure) Unwrap() error { return f.error }

// LogValue returns what may be logged.
func (f KeyFailure) LogValue() slog.Value {
	var v slog.LogValuer
	if errors.As(f.error, &v) {
		return v.LogValue()
	}
	return slog.StringValue("of type " + InnerType(f.error))
}

// InnerType returns the type of the error at the end of a chain, which says more than the type of what is wrapped around it.
func InnerType(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return fmt.Sprintf("%T", err)
}

// shortestSilence is how long Redis must have been silent before the log blames it for work whose caller stopped waiting. A shorter
// deadline may pass while Redis is well. AskTimeout would be too long: the deadlines of many calls are shorter.
const shortestSilence = 100 * time.Millisecond

// callerLeft returns true if work was not run only because ctx ended. silence is the time since Redis was asked. A cancelled call counts
// like one whose deadline has passed: at its deadline a client cancels the call, which often arrives first.
func callerLeft(ctx context.Context, err error, silence time.Duration) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err()) && silence < shortestSilence
}

// logRefused logs work that is not run, unless that is the guard's purpose or the caller's doing. silence is as for
// [callerLeft].
func (l *Log) logRefused(ctx context.Context, w core.Work, err error, silence time.Duration) {
	switch {
	case errors.Is(err, core.ErrOutcomeUnknown):
		if l.unknown.First(w.KeyHash) { // a run whose process crashed, for instance
			l.logUnknown(ctx, w, "")
			return
		}
		l.Event(ctx, slog.LevelWarn, "unknown", logUnknown, w, nil)
	case Mistaken(err):
		l.Event(ctx, slog.LevelError, "mistake", logMistake, w, err)
	case callerLeft(ctx, err, silence):
	case errors.Is(err, core.ErrUndecided):
		l.Event(ctx, slog.LevelError, "undecided", logUndecided, w, err)
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrMisconfigured), errors.Is(err, core.ErrPermission), replyCode(err) != "":
		l.Event(ctx, slog.LevelError, "unavailable "+replyCode(err), logUnavailable, w, err)
	}
}

// Mistaken reports whether an error is a mistake in the program, which no retry mends.
func Mistaken(err error) bool {
	for _, mistake := range []error{core.ErrInvalidName, core.ErrInvalidOption, core.ErrUpgrade, core.ErrWrongType} {
		if errors.Is(err, mistake) {
			return true
		}
	}
	return false
}

// replyCode returns the code of an error that Redis has answered, OOM or NOPERM for instance, "" for any other error: a wrong
// password is another kind of failure than the outage before it.
func replyCode(err error) string {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return ""
	}
	code, _, _ := strings.Cut(reply.Error(), " ")
	return code
}

// logUnknown logs each run after whose end nothing with its key runs until an operator has looked.
func (l *Log) logUnknown(ctx context.Context, w core.Work, reason string) {
	l.unknown.First(w.KeyHash)
	_, _ = l.throttle.Event("unknown") // the refusals that follow are no news
	var more []slog.Attr
	if reason != "" {
		more = append(more, slog.String("reason", foreign.Line(reason, mostShown)))
	}
	l.Line(ctx, slog.LevelWarn, logUnknown, w, more...)
}

func (l *Log) logIncident(ctx context.Context, i core.Incident) {
	level, text := slog.LevelWarn, ""
	switch i.Kind {
	case core.IncidentUnguarded:
		level, text = slog.LevelError, logUnguarded
	case core.IncidentLost:
		text = logLost
	case core.IncidentUnrecorded:
		if text = logUnrecorded; errors.As(i.Err, new(noResultError)) {
			text = logNoResult
		}
	case core.IncidentOverrun:
		text = logOverrun
	default:
		return // the place logs its own kinds
	}
	l.Event(ctx, level, string(i.Kind), text, i.Work, i.Err)
}

// recovered logs a panic on a goroutine of the guard. It must be deferred itself.
func (l *Log) recovered(ctx context.Context, w core.Work) {
	if p := recover(); p != nil {
		l.Line(ctx, slog.LevelError, logPanic, w, slog.Any("panic", p))
	}
}
