package script

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// MutexBatch is the [Strategy] of several mutexes that one script grants, all or none. Its hold stands for one hold of each
// mutex, with the same ID. Each mutex has a lease of its own.
type MutexBatch struct {
	Mutex
	Holds []Hold // without ID; without owner if the owner holds none of the locks yet
}

// NewMutexBatch returns the strategy of so many mutexes, whose holds the caller must set.
func NewMutexBatch(redis *Instance, mutexes int) MutexBatch {
	return MutexBatch{Mutex: Mutex{Instance: redis}, Holds: make([]Hold, mutexes)}
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
	reply, err := h.do(ctx, m.Exec, acquireAllScript, keys, args...)
	if m.TokenKeys.learnSlots(err, h.Keys.Lock, tokenKey) {
		return m.Acquire(ctx, h, want)
	}
	if err != nil {
		return Result{}, err
	}
	result, status, which, err := readBatchReply(reply, len(holds))
	switch {
	case err != nil:
		return Result{}, err
	case status == refused:
		h.Name = holds[which-1].Name // the mutex that refuses, for the error
	case status == otherStrategy:
		return Result{}, ErrOtherStrategy
	}
	return result, nil
}

// readBatchReply returns what a reply of acquire_all.lua about so many mutexes says, its status, and which mutex
// refuses, from 1.
func readBatchReply(reply any, mutexes int) (result Result, status int64, which int, err error) {
	d := newDecoder(reply)
	switch status = d.Int(otherStrategy, granted); status {
	case granted:
		result.Granted, result.Token = true, d.Token()
		d.Int(0, 0)
	case refused:
		result.HolderTTL, which, result.Holder = d.TTL(), int(d.Int(1, int64(mutexes))), d.Text()
	case wasReleased, otherStrategy:
		d.Int(0, 0)
		which, result.HoldReleased = int(d.Int(1, int64(mutexes))), status == wasReleased
	}
	if err := d.End(); err != nil {
		return Result{}, 0, 0, err
	}
	return result, status, which, nil
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
