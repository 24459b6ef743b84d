package script

import "testing"

// TestSlotOutOfRange: a slot is read only for a semaphore, and only one that the semaphore has. An owner that had permits before may
// have got them by a request with a larger limit.
func TestSlotOutOfRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slot    int
		slots   int
		refused bool
	}{
		{0, 3, true}, // the script leaves it out
		{-1, 3, true},
		{1, 3, false},
		{2, 3, false},
		{3, 3, true},
		{1, 1, true},
		{1, 0, true}, // no semaphore
		{MaxLimit - 1, MaxLimit, false},
		{MaxLimit, MaxLimit, true},
	} {
		result, _, err := readQueueReply(reply(1, 5, c.slot), c.slots)
		if refused := err != nil; refused != c.refused || !refused && result.Slot != c.slot {
			t.Errorf("slot %d of %d: %+v, %v", c.slot, c.slots, result, err)
		}
	}
}

// TestSlotsOfRequest: a request that can only be granted anew gets a slot below its own limit.
func TestSlotsOfRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit     int
		owner, id string
		want      int
	}{{0, "c:1", "c:1", 0}, {0, "o", "c:1", 0}, {3, "c:1", "c:1", 3}, {3, "o", "c:1", MaxLimit}} {
		h := &Hold{Owner: c.owner}
		h.SetID(c.id)
		if got := (Queue{Limit: c.limit}).slots(h); got != c.want {
			t.Errorf("limit %d, owner %s, id %s: %d slots, want %d", c.limit, c.owner, c.id, got, c.want)
		}
	}
}
