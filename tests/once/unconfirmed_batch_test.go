package once_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestBatchesOfUnconfirmedEnds: batches whose members need the same unconfirmed completions do not wait for each other. Otherwise
// no command is sent before the timeout of the first one, although Redis replies. The deadline is below that timeout.
func TestBatchesOfUnconfirmedEnds(t *testing.T) {
	t.Parallel()
	for name, batches := range map[string]func(onces []*core.Once) [][]*core.Once{
		"each key twice": func(onces []*core.Once) [][]*core.Once { return [][]*core.Once{slices.Concat(onces, onces)} },
		"two batches": func(onces []*core.Once) [][]*core.Once {
			reversed := slices.Clone(onces)
			slices.Reverse(reversed)
			return [][]*core.Once{onces, reversed}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay := testkit.Start(t).Relay()
			rdb := relay.Client()
			coretest.WarmPool(t, rdb)
			locks := coretest.NewClient(t, rdb)
			onces := allOf(locks, 40)
			attempts, errs := locks.BeginAll(t.Context(), onces...)
			wantBegun(t, attempts, errs)
			relay.Refuse(true)
			relay.Reset()
			var all sync.WaitGroup
			ended, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			for _, a := range attempts {
				all.Go(func() {
					if err := a.Complete(ended, []byte("v")); err == nil {
						t.Error("completed without Redis")
					}
				})
			}
			all.Wait()
			relay.Refuse(false)
			relay.Heal()
			bounded, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			for _, batch := range batches(onces) {
				all.Go(func() {
					_, errs := locks.BeginAll(bounded, batch...)
					for i, err := range errs {
						if !errors.Is(err, core.ErrCompleted) {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
