package core

import (
	"errors"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/oncescript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// question is what an answer depends on beside the record: callers of one [Once] key with equal questions get equal
// answers from one state of Redis.
type question struct {
	ack              transport.Ack
	fingerprint      string
	holdFailures     bool
	group            oncescript.Group
	size             int64 // that the attempt counts in the group
	earliest, latest any
}

// questionOf returns nil for a lock, to which no answer holds for two.
func questionOf(h *lockscript.Hold) any {
	r, ok := h.Own.(*oncescript.Terms)
	if !ok {
		return nil
	}
	return question{
		ack: h.Ack, fingerprint: string(r.Fingerprint), holdFailures: r.HoldFailures, group: r.Group,
		size: oncescript.Counted(r.Content(r.MaxValue)), earliest: oncescript.WindowBound(r.Earliest), latest: oncescript.WindowBound(r.Latest),
	}
}

// settles reports whether a refusal says that no attempt will begin unless an operator decides so.
func settles(refusal error) bool {
	var unknown *OutcomeUnknownError
	return errors.Is(refusal, ErrCompleted) || errors.As(refusal, &unknown) && unknown.Record.State == StateUnknown
}

// ownRefusal returns a copy of a refusal, so that callers may write to what they get. Other errors it returns as they are.
func ownRefusal(refusal error) error {
	switch e := refusal.(type) {
	case *CompletedError:
		return &CompletedError{Record: e.Record.clone()}
	case *OutcomeUnknownError:
		return &OutcomeUnknownError{Record: e.Record.clone()}
	case *TooManyKeysError:
		own := *e
		return &own
	case *OutsideWindowError:
		own := *e
		return &own
	}
	return refusal
}
