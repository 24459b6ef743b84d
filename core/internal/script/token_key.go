package script

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// tokenKey is the key of the last fencing token that a server has granted. All names share it, so a name leaves no key behind.
//
// A script may use only keys of one slot of a Cluster. So a Cluster has one such key for each slot that is in use. Why not one
// for each name: each would have to outlive its lock, and a lock may be one of millions.
//
// To raise the token of one name raises the tokens of all names that share the key. That does no harm: tokens need to grow, and
// need not be consecutive.
const tokenKey = Reserved + "token"

// slotTokenKeys returns the keys for all slots, by slot, as arguments of scripts. The key of the slot of tokenKey is tokenKey
// itself. Why: a client that does not know yet that its server is part of a Cluster uses tokenKey in that slot without an error.
var slotTokenKeys = sync.OnceValue(func() *[16384]any {
	var keys [16384]any
	keys[transport.Slot(tokenKey)] = tokenKey
	for n, missing := 0, len(keys)-1; missing > 0; n++ {
		key := tokenKey + ":{" + strconv.Itoa(n) + "}"
		if slot := transport.Slot(key); keys[slot] == nil {
			keys[slot] = key
			missing--
		}
	}
	return &keys
})

// SlotKey returns a key in that slot, to find its master.
func SlotKey(slot int) string {
	key, _ := slotTokenKeys()[slot].(string)
	return key
}

// tokenKeyArg is tokenKey as an argument of scripts.
var tokenKeyArg any = tokenKey

// TokenKeys decides which key has the last token for a lock. The zero value uses one key for all.
type TokenKeys struct{ bySlot atomic.Bool }

// UseSlots makes TokenKeys use one key for each slot.
func (t *TokenKeys) UseSlots() { t.bySlot.Store(true) }

// arg returns the key for the lock at that key, as an argument of scripts.
func (t *TokenKeys) arg(lock string) any {
	if !t.bySlot.Load() {
		return tokenKeyArg
	}
	return slotTokenKeys()[transport.Slot(lock)]
}

// Of returns the key for the lock at that key.
func (t *TokenKeys) Of(lock string) string {
	key, _ := t.arg(lock).(string)
	return key
}

// learnSlots takes note of the error of a command whose token key was used. It returns true if the server wants all keys of a
// script in one slot, and used is not in that of the lock. Then the caller must send the command again.
//
// Why not told by the type of the client alone: a proxy may show a Cluster as one server.
func (t *TokenKeys) learnSlots(err error, lock string, used any) bool {
	if err == nil || !transport.CrossSlot(err) {
		return false
	}
	t.bySlot.Store(true)
	return t.arg(lock) != used
}
