package script

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestTokenKeysOfSlots: each slot has a token key of its own, in that slot. The slot of tokenKey has tokenKey.
func TestTokenKeysOfSlots(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for slot, arg := range slotTokenKeys() {
		key, _ := arg.(string)
		if got := transport.Slot(key); int(got) != slot {
			t.Fatalf("the token key %q of slot %d is in slot %d", key, slot, got)
		}
		seen[key] = true
	}
	if len(seen) != 16384 || !seen[tokenKey] {
		t.Errorf("%d keys, with %s: %v", len(seen), tokenKey, seen[tokenKey])
	}
}

// TestTokenKeysLearnSlots: after an error that only a Cluster returns, each lock has a token key in its slot. Each command with
// another key is worth another try, even if it is one of several that fail at the same time.
func TestTokenKeysLearnSlots(t *testing.T) {
	t.Parallel()
	var keys TokenKeys
	crossSlot := redisError("CROSSSLOT Keys in request don't hash to the same slot")
	for i := range 3 {
		lock := fmt.Sprintf("lock:%d", i)
		if got := keys.Of(lock); i == 0 && got != tokenKey {
			t.Errorf("%q before the error", got)
		}
		if !keys.learnSlots(crossSlot, lock, tokenKey) {
			t.Error("the command is not worth another try")
		}
		if used := keys.arg(lock); keys.learnSlots(crossSlot, lock, used) {
			t.Errorf("%q fails, and is worth another try", used)
		}
		if transport.Slot(keys.Of(lock)) != transport.Slot(lock) {
			t.Errorf("%q is not in the slot of %q", keys.Of(lock), lock)
		}
	}
	if new(TokenKeys).learnSlots(errors.New("other"), "lock", tokenKey) || new(TokenKeys).learnSlots(nil, "lock", tokenKey) {
		t.Error("another error is taken for one of a Cluster")
	}
}

// redisError is an error reply of a server.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
