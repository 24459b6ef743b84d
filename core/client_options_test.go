package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestArguments: what New refuses and takes.
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]redis.UniversalClient{"nil": nil, "typed nil": (*redis.Client)(nil)} {
		if _, err := core.New(rdb); !errors.Is(err, core.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rdb := testkit.Start(t).Client()
	_, err := core.New(rdb, core.WithTTL(-1))
	wantErr(t, err, core.ErrInvalidOption)
	locks := newClient(t, rdb, core.WithLogger(nil))
	lease := mustLock(t, locks.Mutex(strings.Repeat("x", 512)), core.WithTTL(10*time.Millisecond), core.WithFixedTTL(time.Second))
	waitFor(t, lease.Done(), "the lease to end, which is logged")
	for _, owner := range []string{"granted", "min_hold_until", "ttl", "token", "token_committed", "ä", "x\x7f"} {
		_, err := locks.Mutex("name", core.WithOwner(owner)).TryLock(context.Background())
		wantErr(t, err, core.ErrInvalidOption)
	}
}
