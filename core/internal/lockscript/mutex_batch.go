package lockscript

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// MutexBatch is the [Strategy] of several mutexes that one script grants, all or none. Its hold stands for one hold of each
// mutex, with the same ID. Each mutex has a lease of its own.
type MutexBatch struct {
	Mutex
	Holds []Hold // without ID; without owner if the owner holds none of the locks yet
}

// MemberPointers returns pointers to the elements of Holds.
func (m MutexBatch) MemberPointers() (holds []*Hold) {
	for i := range m.Holds {
		holds = append(holds, &m.Holds[i])
	}
	return holds
}

// MemberHolds returns copies of the holds, with the ID and the owner of h.
func (m MutexBatch) MemberHolds(h *Hold) []Hold {
	holds := slices.Clone(m.Holds)
	for i := range holds {
		holds[i].SetID(h.ID)
		holds[i].Unanswered, holds[i].Stored = h.Unanswered, h.Stored
		if holds[i].Owner == "" {
			holds[i].Owner = h.Owner
		}
	}
	return holds
}

// Acquire implements [Strategy], for all mutexes or none. If one is held, h gets its name, for the error. If one is held by
// another strategy, the error is ErrOtherStrategy.
func (m MutexBatch) Acquire(ctx context.Context, h *Hold, want Wanted) (Result, error) {
	holds := m.MemberHolds(h)
	keys := make([]string, 0, 3*len(holds))
	args := []any{h.ID}
	tokenKey := m.TokenKeys.Of(h.Keys.Lock) // all are in one slot
	for _, member := range holds {
		keys = append(keys, member.Keys.Lock, tokenKey, member.Released)
		args = append(args, member.Owner, Milliseconds(member.TTL), Milliseconds(member.MinHold), member.ParentID)
	}
	reply, err := h.Do(ctx, m.Exec, acquireAllScript, keys, args...)
	if m.TokenKeys.LearnSlots(err, h.Keys.Lock, tokenKey) {
		return m.Acquire(ctx, h, want)
	}
	if err != nil {
		return Result{}, err
	}
	list, holder, err := Refused(reply, 3)
	if err != nil {
		return Result{}, err
	}
	switch status, value, which := list[0], list[1], list[2]; status {
	case 1:
		return Result{Granted: true, Token: value}, nil
	case 0:
		h.Name = holds[which-1].Name // the mutex that refuses, for the error
		return Result{WaitState: WaitState{Holder: holder, HolderTTL: time.Duration(value) * time.Millisecond}}, nil
	case -2:
		return Result{}, ErrOtherStrategy
	default:
		return Result{HoldReleased: true}, nil
	}
}

// Bar implements [Strategy], for each mutex.
func (m MutexBatch) Bar(h *Hold) {
	var released []string
	for _, member := range m.MemberHolds(h) {
		released = append(released, member.Released)
	}
	m.barAll(h.Keys.Lock, released...)
}

// Release implements [Strategy]: each mutex has its own command, and one batch has all commands. It returns true if all
// mutexes were held.
func (m MutexBatch) Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	holds := m.MemberHolds(h)
	held := make([]bool, len(holds))
	errs := transport.DoGrouped(ctx, len(holds), func(ctx context.Context, i int) (err error) {
		held[i], err = m.Mutex.Release(ctx, &holds[i], what)
		return err
	})
	return !slices.Contains(held, false), cmp.Or(errs...)
}
