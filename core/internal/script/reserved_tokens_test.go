package script_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// TestReservedTokens: the tokens that a grant has for hand-overs are greater than all before it, smaller than all after it, and
// never later than the server's time. What the last token was may just have been lost: then none are reserved.
func TestReservedTokens(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	instance := startInstance(t)
	mutex, rdb := script.Mutex{Instance: instance}, instance.Exec.Client
	last, reserved := int64(0), 0
	for i := range 200 {
		h := &script.Hold{Name: "name", Keys: script.NewKeys("lock:", fmt.Sprint("name", i)), TTL: time.Minute}
		instance.IDs.Renew(h)
		h.Owner = h.ID
		want := script.Wanted{Tokens: i % 3 * 5000}
		got, err := mutex.Acquire(ctx, h, want)
		if err != nil || !got.Granted {
			t.Fatalf("not granted: %+v, %v", got, err)
		}
		if got.Token <= last {
			t.Errorf("token %d after %d", got.Token, last)
		}
		if got.Reserved > max(want.Tokens-1, 0) || (i == 0 || i == 2) && got.Reserved > 0 {
			t.Errorf("grant %d: %d tokens are reserved, wanted %d", i, got.Reserved, want.Tokens)
		}
		last, reserved = got.Token+int64(got.Reserved), reserved+got.Reserved
		if now := rdb.Time(ctx).Val().UnixMicro(); last > now {
			t.Errorf("token %d is later than %d", last, now)
		}
		if i == 1 {
			rdb.FlushAll(ctx)
		}
	}
	if reserved == 0 {
		t.Error("no tokens were reserved")
	}
}
