package worker

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// until returns the end of the certain time of a lease, by the clock of the history. It reads that first: should the
// process be stopped in between, the end comes out too early, never too late.
func until(validUntil func() time.Time) int64 {
	now := history.Now()
	return now + int64(time.Until(validUntil()))
}

// held is a lease and what the history calls it.
type held struct {
	w     *worker
	call  int64
	event history.Event // what all events about it have in common
	lock  *core.Lock
	lease *core.Lease
}

// lock asks for a lock, in one of several ways, and tells of it.
func (w *worker) lock(
	ctx context.Context, t target, op string, row int, ask func(context.Context, ...core.LockOption) (*core.Lease, error),
	opts ...core.LockOption,
) *held {
	h := &held{w: w, call: w.next(), lock: t.lock}
	h.event = history.Event{Call: h.call, Op: op, Strategy: t.strategy, Names: t.names, Shared: t.shared, Limit: t.limit, Permits: t.permits}
	call := h.event
	call.Kind, call.Row = history.Call, row
	deadline := deadlineOf(ctx)
	w.log.Say(call)
	lease, err := ask(ctx, opts...)
	back := h.event
	back.Kind, back.At, back.Deadline = history.Return, history.Now(), deadline
	back.Err, back.Detail = Class(err), detail(err)
	if err == nil {
		h.lease, h.event.Token, h.event.Slot = lease, lease.Token(), lease.Slot()
		back.Slot = lease.Slot()
		back.Token, back.Until = lease.Token(), until(lease.ValidUntil) // Owner would keep the lease from being handed over
	}
	w.log.Say(back)
	if err != nil {
		return nil
	}
	go h.watch()
	return h
}

// deadlineOf returns the end of a context by the clock of the history, 0 if it has none.
func deadlineOf(ctx context.Context) int64 {
	if end, ok := ctx.Deadline(); ok {
		return history.Now() + int64(time.Until(end))
	}
	return 0
}

// watch tells when the lease is lost.
func (h *held) watch() {
	<-h.lease.Done()
	at := history.Now()
	err := context.Cause(h.lease.Context())
	if c := Class(err); c != NotHeld && c != Closed {
		h.say(history.Event{Kind: history.End, At: at, Err: c, Until: until(h.lease.ValidUntil)})
	}
}

func (h *held) say(e history.Event) {
	e.Call, e.Strategy, e.Names, e.Shared, e.Token = h.call, h.event.Strategy, h.event.Names, h.event.Shared, h.event.Token
	e.Limit, e.Permits, e.Slot = h.event.Limit, h.event.Permits, h.event.Slot
	h.w.log.Say(e)
}

// valid looks at the lease as a careful holder does, and tells what it saw.
func (h *held) valid() bool {
	at, end := history.Now(), until(h.lease.ValidUntil)
	if h.lease.Context().Err() != nil || at >= end {
		return false
	}
	h.say(history.Event{Kind: history.Valid, At: at, Until: end})
	return true
}

// unlock lets go, and tells so first.
func (h *held) unlock(ctx context.Context, row int) {
	h.say(history.Event{Kind: history.Call, Op: "unlock", Row: row})
	err := h.lease.Unlock(ctx)
	h.say(history.Event{Kind: history.Return, Op: "unlock", Err: Released(err, h.lease.Context()), Detail: detail(err)})
}
