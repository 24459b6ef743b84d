package httpguard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

type skip struct{ seal.Mark }

// TestOwnOptions: an adapter gets its own options, and they are an error for any other.
func TestOwnOptions(t *testing.T) {
	t.Parallel()
	never := coretest.Unused(t)
	own := skip{seal.Mark{Name: "chilock.WithSkip"}}
	skipped := 0
	makes := func(a httpguard.Adapter) error {
		config := httpguard.ExclusiveConfig()
		a.Own = func(httpguard.Option) { skipped++ }
		config.Apply(a, nil, own, core.WithTTL(time.Second))
		_, err := httpguard.NewExclusive(never, config)
		return err
	}
	if err := makes(httpguard.Adapter{Package: "chilock", Takes: []string{"chilock.WithSkip"}}); err != nil || skipped == 0 {
		t.Errorf("error %v, called %d times", err, skipped)
	}
	skipped = 0
	err := makes(httpguard.Adapter{Package: "echolock"})
	if !errors.Is(err, core.ErrInvalidOption) || !strings.Contains(err.Error(), "echolock.Exclusive does not take chilock.WithSkip") || skipped > 0 {
		t.Errorf("error %v, called %d times", err, skipped)
	}
}

// TestDefaults: what options do not say is the default of the guard.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, config := range []httpguard.Config{httpguard.ExclusiveConfig(), httpguard.OnceConfig(), httpguard.IdempotentConfig()} {
		applied := config
		applied.Apply(httpguard.Adapter{Package: "httplock"})
		if applied.Wait != config.Wait || applied.MaxValue != config.MaxValue || applied.AskTimeout != time.Second ||
			applied.FinishTimeout != 5*time.Second || applied.Retention != 24*time.Hour {
			t.Errorf("%+v, want %+v", applied, config)
		}
		applied.Apply(httpguard.Adapter{Package: "httplock"}, core.WithWait(0))
		if applied.Wait != 0 {
			t.Errorf("wait %v", applied.Wait)
		}
	}
	config := httpguard.OnceConfig()
	config.RetentionUntil = func(now time.Time) time.Time { return now }
	config.Apply(httpguard.Adapter{Package: "httplock"}, core.WithRetention(time.Hour))
	if config.RetentionUntil != nil || config.Retention != time.Hour {
		t.Errorf("retention %v, until %v: the last one counts", config.Retention, config.RetentionUntil != nil)
	}
}
