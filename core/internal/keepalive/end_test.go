package keepalive

import (
	"context"
	"errors"
	"slices"
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
		if name == "c" && e.Context(t.Context(), lasting{}).Err() != nil {
			t.Error("over before its end")
		}
	}
	early := e.Context(t.Context(), lasting{})
	e.Set(first)
	e.Set(second)
	e.Bind(end("late"))()
	if len(ended) != 3 || ended["a"] != first || ended["c"] != first || ended["late"] != first {
		t.Errorf("ended: %v", ended)
	}
	var over End
	over.Set(first)
	for when, ctx := range map[string]context.Context{"before": early, "after": over.Context(t.Context(), lasting{})} {
		if context.Cause(ctx) != first {
			t.Errorf("a context asked for %s the end: cause %v", when, context.Cause(ctx))
		}
	}
}

// TestEndFollows: what follows an End is told of its end, and of those that it follows in turn, even if one between has ended
// before. After its own end it is told of none, and no list keeps a function of it.
func TestEndFollows(t *testing.T) {
	t.Parallel()
	regular, hard := errors.New("regular"), errors.New("hard")
	var outer, middle, inner, left End
	told := map[string][]error{}
	tell := func(name string) context.CancelCauseFunc {
		return func(cause error) { told[name] = append(told[name], cause) }
	}
	middle.Follow(&outer, tell("middle"))
	inner.Follow(&middle, tell("inner"))
	left.Follow(&middle, tell("left"))
	left.Set(regular)
	middle.Set(regular)
	outer.Set(hard)
	if len(told["middle"]) != 0 || !slices.Equal(told["inner"], []error{regular, hard}) || len(told["left"]) != 0 {
		t.Errorf("told %v", told)
	}
	var late End
	late.Follow(&inner, func(cause error) {
		if cause == hard {
			late.Set(cause) // while nothing is locked
		}
	})
	if late.Cause() != hard {
		t.Errorf("followed after the end: %v", late.Cause())
	}
	outer = End{}
	inner = End{}
	inner.Follow(&outer, tell("again"))
	if inner.Set(regular); outer.bound != nil {
		t.Error("the outer End still refers to one that has ended")
	}
}

// lasting is a lease that never ends by the clock.
type lasting struct{}

func (lasting) EndIfOver() {}
