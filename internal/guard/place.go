package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

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

// Recovered makes a panic of a user's function an error. It must be deferred itself. Each place has it around its key functions, to
// which callers pass what they like: where no recovery is in front, as in gRPC, a panic would end the process.
func Recovered(err *error) {
	if p := recover(); p != nil {
		*err = &panicError{p, panicPlace()}
	}
}

// panicError is the error of a user's function that has panicked. It does not unwrap, because a panic is a mistake whatever its value.
type panicError struct {
	value any
	at    string
}

func (e *panicError) Error() string {
	return fmt.Sprintf("a function of the guard panicked: %v%s", e.value, e.at)
}

// LogValue implements [slog.LogValuer]. Of a value that is not the runtime's, the log has only the type: it may have what a client sent.
func (e *panicError) LogValue() slog.Value {
	if _, ok := e.value.(runtime.Error); ok {
		return slog.StringValue(e.Error())
	}
	return slog.StringValue(fmt.Sprintf("a function of the guard panicked: %T%s", e.value, e.at))
}

// panicPlace returns where the innermost panic began, " (at keys.go:7)". It is for deferred functions.
func panicPlace() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		frame, more := frames.Next()
		switch inRuntime := strings.HasPrefix(strings.TrimPrefix(frame.Function, "internal/"), "runtime"); {
		case inRuntime:
			panicking = true
		case panicking:
			return fmt.Sprintf(" (at %s:%d)", path.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// Try calls a user's function. Its error is a panic of fn.
func Try(fn func()) (err error) {
	defer Recovered(&err)
	fn()
	return nil
}

// NotNil returns an error as it is, unless it is a nil pointer: its methods may panic, and it is a mistake of the function that returned
// it.
func NotNil(err error) error {
	if err != nil && IsNil(err) {
		return fmt.Errorf("the error is a nil %T", err)
	}
	return err
}

// The reasons of a [core.NotRun] that several places have.
const (
	ReasonBusy        = "busy"
	ReasonUnavailable = "unavailable"
	ReasonUndecided   = "undecided"
	ReasonNoKey       = "no-key"
	ReasonKeyReused   = "key-reused"
	ReasonUnknown     = "outcome-unknown"
	ReasonNoResult    = "no-result"
	ReasonEnded       = "ended"
	ReasonGuardFailed = "guard-failed"
)

// whyNot returns the reason of a [core.NotRun] for an item of which a guard says that it does not run.
func whyNot(ask Ask, err error) string {
	switch {
	case ask.NoKey != nil:
		return ReasonNoKey
	case errors.Is(err, core.ErrFingerprintMismatch):
		return ReasonKeyReused
	case errors.Is(err, core.ErrOutcomeUnknown):
		return ReasonUnknown
	case errors.Is(err, core.ErrCompleted):
		return ReasonNoResult
	case Mistaken(err):
		return ReasonGuardFailed
	case errors.Is(err, core.ErrUndecided):
		return ReasonUndecided
	case Busy(err):
		return ReasonBusy
	}
	return ReasonUnavailable
}

// IdleError is the error of an item whose function was not called: for a guard around it, the item has done nothing.
type IdleError struct{ error }

// Idle makes an error an IdleError.
func Idle(err error) error { return IdleError{err} }

// IsIdle reports whether an error is an IdleError itself: what a function makes of one is the function's error.
func IsIdle(err error) bool {
	_, idle := err.(IdleError)
	return idle
}

// Unwrap returns the reason.
func (e IdleError) Unwrap() error { return e.error }

// JSON is the value of a run of a place that records it as JSON.
type JSON[T any] struct{ Value T }

// Encode returns the value as it is recorded.
func (j *JSON[T]) Encode() ([]byte, error) { return json.Marshal(j.Value) }

// Decode sets the value to a recorded one. It leaves the value as it is if there is none, or another type's.
func (j *JSON[T]) Decode(data []byte) error {
	if len(data) == 0 {
		return errors.New("its result was not recorded")
	}
	var whole T
	err := json.Unmarshal(data, &whole)
	if err == nil {
		j.Value = whole
	}
	return err
}

// Recorded returns the value of a run that was recorded as completed, nil if it has none.
func (o *Outcome) Recorded() []byte {
	if o.Value == nil {
		return nil
	}
	value, err := o.Value()
	if err != nil {
		return nil
	}
	return value
}

// IsNil returns true for nil, and for a nil pointer, map, slice, function or channel.
func IsNil(x any) bool {
	switch v := reflect.ValueOf(x); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// FuncName returns the name of a function, for readers of records and to tell functions apart: "billing.charge".
func FuncName(fn any) string {
	const most = 64 // the longest field of a small hash in Redis
	name := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name()
	name = strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], "-fm")
	return name[max(len(name)-most, 0):]
}

// Heartbeat calls beat at intervals until stop is called, which waits for the last call. A panic of beat is its error; failed gets
// the errors. The end of ctx does not stop it, because a function may continue after that.
func Heartbeat(ctx context.Context, every time.Duration, beat func(context.Context) error, failed func(context.Context, error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	once := func() (err error) {
		defer Recovered(&err)
		return beat(ctx)
	}
	var beating sync.WaitGroup
	beating.Go(func() {
		for Pause(ctx, every) {
			if err := once(); err != nil && ctx.Err() == nil {
				failed(ctx, err)
			}
		}
	})
	return func() {
		cancel()
		beating.Wait()
	}
}
