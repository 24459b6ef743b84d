package keepalive

import (
	"context"
	"errors"
	"testing"
)

// TestEnd: contexts and bound functions end once, with the first cause, whether they come before or after the end. Functions
// that were unbound are not called.
func TestEnd(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	ended := map[string]error{}
	end := func(name string) context.CancelCauseFunc {
		return func(cause error) {
			if before, twice := ended[name]; twice {
				t.Errorf("%s ended twice: %v, %v", name, before, cause)
			}
			ended[name] = cause
		}
	}
	var e End
	for _, name := range []string{"a", "b", "c", "d"} {
		unbind := e.Bind(end(name))
		if name == "b" || name == "d" {
			defer unbind()
			unbind() // and once more later
		}
		if name == "c" && e.Context(t.Context()).Err() != nil {
			t.Error("over before its end")
		}
	}
	early := e.Context(t.Context())
	e.Set(first)
	e.Set(second)
	e.Bind(end("late"))()
	if len(ended) != 3 || ended["a"] != first || ended["c"] != first || ended["late"] != first {
		t.Errorf("ended: %v", ended)
	}
	var over End
	over.Set(first)
	for when, ctx := range map[string]context.Context{"before": early, "after": over.Context(t.Context())} {
		if context.Cause(ctx) != first {
			t.Errorf("a context asked for %s the end: cause %v", when, context.Cause(ctx))
		}
	}
}
