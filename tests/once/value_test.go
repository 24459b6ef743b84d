package once_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

type rate struct {
	Currency string
	Cents    int
}

var euro = rate{"EUR", 108}

func fetch(context.Context) (rate, error) { return euro, nil }

func never(context.Context) (rate, error) { panic("ran again") }

// TestOnceValue: the second caller gets the value of the first one, as JSON or in the encoding that the Once says.
func TestOnceValue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	asGob := core.WithEncoding(func(value any) ([]byte, error) {
		var b bytes.Buffer
		err := gob.NewEncoder(&b).Encode(value)
		return b.Bytes(), err
	}, func(data []byte, value any) error { return gob.NewDecoder(bytes.NewReader(data)).Decode(value) })
	for name, opts := range map[string][]core.OnceOption{"json": nil, "gob": {asGob}} {
		once := locks.Once(name, opts...)
		for i, fn := range []func(context.Context) (rate, error){fetch, never} {
			if got, err := core.OnceValue(ctx, once, fn); err != nil || got != euro {
				t.Errorf("%s: call %d returns %v, %v", name, i+1, got, err)
			}
		}
	}
	if got := string(coretest.MustPeek(t, locks.Once("json")).Value); got != `{"Currency":"EUR","Cents":108}` {
		t.Errorf("recorded %s", got)
	}
}

// TestOnceValueThatCannotBeEncoded: the run has happened, so the caller gets the value, and the failure policy decides.
func TestOnceValueThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for policy, want := range map[core.FailurePolicy]core.State{
		core.RetryFailures: core.StateNone, core.HoldFailures: core.StateUnknown,
	} {
		once := locks.Once("policy:"+string(want), core.WithFailurePolicy(policy))
		got, err := core.OnceValue(t.Context(), once, func(context.Context) (chan int, error) { return make(chan int), nil })
		if err == nil || !strings.Contains(err.Error(), "chan int cannot be encoded") || got == nil {
			t.Errorf("returned %v, %v", got, err)
		}
		if r := coretest.MustPeek(t, once); r.State != want {
			t.Errorf("the record is %q, want %q", r.State, want)
		}
	}
}

// TestOnceValueThatCannotBeDecoded: the error names the type, and the record stays.
func TestOnceValueThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	once := locks.Once("name")
	for _, value := range []string{"no JSON", `{"Currency":"USD","Cents":"many"}`} {
		if err := coretest.MustBegin(t, once).Complete(ctx, []byte(value)); err != nil {
			t.Fatal(err)
		}
		got, err := core.OnceValue(ctx, once, never)
		if err == nil || !strings.Contains(err.Error(), "once_test.rate") || got != (rate{}) {
			t.Errorf("returned %v, %v", got, err)
		}
		if r := coretest.WantState(t, once, core.StateCompleted, 1); string(r.Value) != value {
			t.Errorf("the record has %q", r.Value)
		}
		coretest.Forget(t, once)
	}
	small := locks.Once("small", core.WithMaxValue(1))
	got, err := core.OnceValue(ctx, small, fetch)
	if coretest.WantErr(t, err, core.ErrValueTooLarge); got != euro {
		t.Errorf("the run returned %v", got)
	}
	_, err = core.OnceValue(ctx, small, never)
	if coretest.WantErr(t, err, core.ErrCompleted); err == nil || !strings.Contains(err.Error(), "not recorded") {
		t.Errorf("the second call returned %v", err)
	}
}

// TestOnceValueErrors: errors of fn and of the arguments.
func TestOnceValueErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	failure := errors.New("failure")
	got, err := core.OnceValue(ctx, locks.Once("name"), func(context.Context) (rate, error) { return euro, failure })
	if !errors.Is(err, failure) || got != (rate{}) {
		t.Errorf("returned %v, %v", got, err)
	}
	_, err = core.OnceValue(ctx, nil, fetch)
	coretest.WantErr(t, err, core.ErrInvalidOption)
	_, err = core.OnceValue[rate](ctx, locks.Once("name"), nil)
	coretest.WantErr(t, err, core.ErrInvalidOption)
	_, err = core.OnceValue(ctx, locks.Once("name", core.WithEncoding(nil, nil)), never)
	coretest.WantErr(t, err, core.ErrInvalidOption)
}
