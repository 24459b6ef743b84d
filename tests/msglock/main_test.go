package msglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// patient puts more time for Redis in front of the options of a test: on a busy machine it may not reply within the default of 1 s.
func patient(opts []msglock.Option) []msglock.Option {
	return append([]msglock.Option{msglock.WithAskTimeout(10 * time.Second)}, opts...)
}

func patientOnce[M any](
	locks *core.Client, consumer string, key msglock.KeyFunc[M], handler func(context.Context, M) error, opts ...msglock.Option,
) func(context.Context, M) error {
	return msglock.Once(locks, consumer, key, handler, patient(opts)...)
}

func newPatientOnce[M any](
	locks *core.Client, consumer string, key msglock.KeyFunc[M], handler func(context.Context, M) error, opts ...msglock.Option,
) (*msglock.Guard[M], error) {
	return msglock.NewOnce(locks, consumer, key, handler, patient(opts)...)
}

func patientBatch[M any](
	locks *core.Client, consumer string, key msglock.KeyFunc[M], handler func(context.Context, M) error, opts ...msglock.Option,
) func(context.Context, []M) []error {
	return msglock.OnceBatch(locks, consumer, key, handler, patient(opts)...)
}

func patientValue[M, T any](
	locks *core.Client, consumer string, key msglock.KeyFunc[M], handler func(context.Context, M) (T, error), opts ...msglock.Option,
) func(context.Context, M) (T, error) {
	return msglock.OnceValue(locks, consumer, key, handler, patient(opts)...)
}

func patientExclusive[M any](
	strategy core.Strategy, key msglock.KeyFunc[M], handler func(context.Context, M) error, opts ...msglock.Option,
) func(context.Context, M) error {
	return msglock.Exclusive(strategy, key, handler, patient(opts)...)
}
