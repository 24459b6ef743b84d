package once_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestAttemptBind: the bound context has the values of the given context and the token of the attempt. It ends with the
// first of the two, with its cause.
func TestAttemptBind(t *testing.T) {
	t.Parallel()
	type value struct{}
	given := errors.New("given context")
	for name, test := range map[string]struct {
		end  func(a *core.Attempt, cancelGiven context.CancelCauseFunc)
		want error
	}{
		"given context ends":   {func(_ *core.Attempt, cancel context.CancelCauseFunc) { cancel(given) }, given},
		"attempt is abandoned": {func(a *core.Attempt, _ context.CancelCauseFunc) { a.Abandon() }, core.ErrLeaseLost},
		"attempt is completed": {func(a *core.Attempt, _ context.CancelCauseFunc) { _ = a.Complete(context.Background(), nil) }, core.ErrNotHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := coretest.MustBegin(t, coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long)).Once("name"))
			ctx, cancelGiven := context.WithCancelCause(context.WithValue(t.Context(), value{}, "x"))
			defer cancelGiven(nil)
			bound, cancel := seal.AttemptOf(a).Bind(ctx)
			defer cancel()
			if token, ok := core.TokenFrom(bound); !ok || token != a.Token() || bound.Value(value{}) != "x" {
				t.Errorf("token %d of %d, value %v", token, a.Token(), bound.Value(value{}))
			}
			if bound.Err() != nil {
				t.Fatalf("ended before anything else did: %v", context.Cause(bound))
			}
			test.end(a, cancelGiven)
			coretest.WaitFor(t, bound.Done(), "the bound context to end")
			coretest.WantErr(t, context.Cause(bound), test.want)
		})
	}
}

// TestAttemptOutlivesBind: the end of a bound context ends neither the attempt nor another bound context. A context that
// is bound after the attempt has ended has ended too.
func TestAttemptOutlivesBind(t *testing.T) {
	t.Parallel()
	a := coretest.MustBegin(t, coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long)).Once("name"))
	first, cancelFirst := seal.AttemptOf(a).Bind(t.Context())
	second, cancelSecond := seal.AttemptOf(a).Bind(t.Context())
	defer cancelSecond()
	cancelFirst()
	coretest.WantErr(t, first.Err(), context.Canceled)
	if second.Err() != nil || a.Context().Err() != nil {
		t.Errorf("another bound context: %v, the attempt: %v", second.Err(), a.Context().Err())
	}
	if err := a.Release(t.Context()); err != nil {
		t.Error(err)
	}
	coretest.WaitFor(t, second.Done(), "the bound context to end with the attempt")
	coretest.WantErr(t, context.Cause(first), context.Canceled)
	late, cancelLate := seal.AttemptOf(a).Bind(t.Context())
	defer cancelLate()
	coretest.WaitFor(t, late.Done(), "a context that was bound too late")
}
