package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// Rows of the catalogue that a worker brings about itself.
const (
	rowCancelled     = 15
	rowCancelledLate = 16
	rowUnlockedTwice = 22
	rowPanic         = 23
	rowForgotten     = 24
	rowReplicas      = 51
)

// visit locks something, works under it and lets go, each in one of many ways.
func (w *worker) visit(ctx context.Context, random *rand.Rand, t target) {
	ttl := w.order.TTL
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*ttl+upTo(random, ttl))
	defer cancel()
	switch n := random.IntN(100); {
	case n < 12:
		early, cancel := context.WithTimeout(wait, upTo(random, 60*time.Millisecond))
		defer cancel()
		w.work(random, w.lock(early, t, "lock", rowCancelled, t.lock.Lock))
	case n < 24:
		w.work(random, w.lock(wait, t, "trylock", 0, t.lock.TryLock))
	case n < 26 && !w.calm.Load():
		w.overstay(w.lock(wait, t, "lock", rowUnlockedTwice, t.lock.Lock, core.WithFixedTTL(ttl/2)))
	case n < 28 && !w.calm.Load():
		w.forget(w.lock(wait, t, "lock", rowForgotten, t.lock.Lock, core.WithMaxHold(ttl/2)))
	case n < 32:
		w.panics(wait, t)
	default:
		w.work(random, w.lock(wait, t, "lock", 0, t.lock.Lock))
	}
}

// work is what a holder does who looks before it writes.
func (w *worker) work(random *rand.Rand, h *held) {
	if h == nil {
		return
	}
	name := h.event.Names[random.IntN(len(h.event.Names))]
	if random.IntN(4) == 0 {
		h.probe(h.event.Names[0])
	}
	if random.IntN(8) == 0 {
		h.enterAgain()
	}
	for range random.IntN(4) {
		time.Sleep(upTo(random, 8*time.Millisecond))
		if h.valid() && h.event.Limit > 0 { // each slot is a resource of its own
			w.write(h.call, fmt.Sprintf("%s slot %d", name, h.event.Slot), h.event.Token, false)
		}
		if h.valid() && !h.event.Shared {
			w.write(h.call, name, h.event.Token, false)
		}
		if !h.event.Shared {
			w.write(h.call, name, h.event.Token, true) // as one does who does not look
		}
	}
	switch n := random.IntN(100); {
	case n < 5:
		h.extend(random)
	case n < 6:
		time.Sleep(w.order.TTL) // long enough for some renewals
		h.valid()
		h.probe(h.event.Names[0])
	}
	w.leave(random, h)
}

// leave unlocks.
func (w *worker) leave(random *rand.Rand, h *held) {
	ctx := context.Background()
	switch n := random.IntN(10); n {
	case 0:
		over, cancel := context.WithCancel(ctx)
		cancel()
		h.unlock(over, rowCancelledLate)
	case 1:
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.unlock(ctx, rowUnlockedTwice)
		}()
		<-done
		h.unlock(ctx, rowUnlockedTwice)
	default:
		h.unlock(ctx, 0)
	}
}

// enterAgain takes the lock that is held once more.
func (h *held) enterAgain() {
	ctx, cancel := context.WithTimeout(h.lease.Context(), h.w.order.TTL)
	defer cancel()
	h.say(history.Event{Kind: history.Call, Op: "enter", Reentry: true})
	lease, err := h.lock.Lock(ctx)
	e := history.Event{Kind: history.Return, Op: "enter", Reentry: true, Err: Class(err), Detail: detail(err)}
	if err == nil {
		e.Value = lease.Token()
	}
	h.say(e)
	if err == nil {
		h.say(history.Event{Kind: history.Call, Op: "leave", Reentry: true})
		err = lease.Unlock(context.Background()) // it may have been lost with the outer one
		h.say(history.Event{Kind: history.Return, Op: "leave", Reentry: true, Err: Class(err), Detail: detail(err)})
	}
}

func (h *held) extend(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), h.w.order.TTL)
	defer cancel()
	h.say(history.Event{Kind: history.Call, Op: "extend"})
	err := h.lease.Extend(ctx, (h.w.order.TTL + upTo(random, h.w.order.TTL)).Round(time.Millisecond))
	h.say(history.Event{
		Kind: history.Return, Op: "extend", Err: Class(err), Detail: detail(err), Until: until(h.lease.ValidUntil),
	})
}

// overstay works on past the end of the lease, and finds out when it unlocks.
func (w *worker) overstay(h *held) {
	if h == nil {
		return
	}
	time.Sleep(time.Until(h.lease.ValidUntil()) + 40*time.Millisecond)
	if !h.event.Shared {
		w.write(h.call, h.event.Names[0], h.event.Token, false)
		w.write(h.call, h.event.Names[0], h.event.Token, true)
	}
	h.unlock(context.Background(), rowUnlockedTwice)
}

// forget leaves the lease to its own.
func (w *worker) forget(h *held) {
	if h != nil && h.valid() && !h.event.Shared {
		w.write(h.call, h.event.Names[0], h.event.Token, false)
	}
}

// panics panics under the lock. What it knows of the lease is what the context says.
func (w *worker) panics(ctx context.Context, t target) {
	call := w.next()
	e := history.Event{Call: call, Op: "do", Strategy: t.strategy, Names: t.names, Shared: t.shared, Limit: t.limit, Permits: t.permits}
	if t.limit > 0 {
		e.Slot = -1 // not known
	}
	e.Kind, e.Row = history.Call, rowPanic
	w.log.Say(e)
	e.Row = 0
	defer func() {
		if recover() == nil {
			return
		}
		e.Kind, e.Op = history.Return, "unlock"
		w.log.Say(e)
	}()
	err := t.lock.Do(ctx, func(ctx context.Context) error {
		e.Kind, e.At = history.Return, history.Now()
		e.Token, _ = core.TokenFrom(ctx)
		if ctx.Err() == nil {
			e.Until = e.At // certain now, and no one knows how much longer
		}
		w.log.Say(e)
		e.Kind, e.Op, e.At, e.Until = history.Call, "unlock", 0, 0
		w.log.Say(e)
		panic("on purpose")
	})
	e.Kind, e.At, e.Err, e.Detail, e.Deadline = history.Return, history.Now(), Class(err), detail(err), deadlineOf(ctx)
	w.log.Say(e)
}

func upTo(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}
