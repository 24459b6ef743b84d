package script_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// TestReleaseDuringRenewal: a renewal that was due may still read a hold while its lease releases it, so the release must not write
// what the renewal reads, also if it finds that the lock has lost its compact state.
func TestReleaseDuringRenewal(t *testing.T) {
	t.Parallel()
	instance := startInstance(t)
	queue := func(mode string) script.Queue { return script.Queue{Instance: instance, Mode: mode} }
	for name, strategy := range map[string]script.Strategy{
		"mutex": script.Mutex{Instance: instance}, "fair": queue("fair"), "reading": queue("reading"), "semaphore": queue("semaphore"),
	} {
		keys, err := script.KeysOf("", name)
		if err != nil {
			t.Fatal(err)
		}
		ask := func() (*script.Hold, script.Result) {
			h := &script.Hold{Name: name, Keys: keys, TTL: time.Minute}
			if name == "semaphore" {
				h.Permits, h.Limit = 1, 2
			}
			instance.IDs.Renew(h)
			h.Owner = h.ID
			result, err := strategy.Acquire(t.Context(), h, script.Wanted{})
			if err != nil {
				t.Fatal(err)
			}
			h.Compact = result.Compact
			return h, result
		}
		held, result := ask()
		if !result.Granted || !result.Compact {
			t.Fatalf("%s: %+v", name, result)
		}
		ask() // ends the compact state
		held.ValidUntil = instance.Now().Add(time.Minute)
		var renewal sync.WaitGroup
		renewal.Go(func() { instance.RenewalCommand(&script.Renewal{Hold: held}, nil) }) // not sent: that would synchronize it
		if found, err := strategy.Release(context.WithoutCancel(t.Context()), held, script.HeldByCaller); !found || err != nil {
			t.Errorf("%s: found: %v, error: %v", name, found, err)
		}
		renewal.Wait()
		if !held.Compact {
			t.Errorf("%s: the release has written to what renewals read", name)
		}
	}
}
