package inspector

import (
	"context"
	"errors"
	"net/url"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// lockView is everything stored in Redis about one lock.
type lockView struct {
	Name    string    `json:"name"`
	Digest  string    `json:"digest"`
	NotLock bool      `json:"not_a_lock,omitempty"` // a hash of other data, of which nothing is shown
	Mode    core.Mode `json:"mode"`                 // "" if the lock is free
	Holders []holder  `json:"holders"`
	Shares  int       `json:"shares,omitempty"`
	TTL     countdown `json:"ttl"`
	Waiters int       `json:"waiters"` // clients that listen; -1 if unknown
	Queue   []waiter  `json:"queue"`
	Places  int       `json:"places"`
	Value   string    `json:"value,omitempty"` // of a leader
}

// waiter is a place in the queue of a lock.
type waiter struct {
	Owner    string    `json:"owner"`
	Instance string    `json:"instance,omitempty"`
	Mode     core.Mode `json:"mode"`
	Permits  int       `json:"permits,omitempty"`
	Limit    int       `json:"limit,omitempty"`
}

// Free returns true if nothing holds the lock.
func (l lockView) Free() bool { return l.Mode == "" }

// Taken returns the permits that the holders have.
func (l lockView) Taken() (permits int) {
	for _, h := range l.Holders {
		permits += h.Permits
	}
	return permits
}

// Limit returns the greatest n of the holders, 0 if the lock is no semaphore.
func (l lockView) Limit() (n int) {
	for _, h := range l.Holders {
		n = max(n, h.Limit)
	}
	return n
}

func readLock(ctx context.Context, h *Handler, q url.Values) (any, error) {
	name := q.Get("name")
	info, err := h.locks.Inspect(ctx, name)
	if errors.Is(err, core.ErrWrongType) {
		return lockView{Name: name, Digest: seal.NamesOf(h.locks).Digest(name, false), NotLock: true, Holders: []holder{}, Queue: []waiter{}}, nil
	}
	if err != nil {
		return nil, err
	}
	return h.newLock(name, info), nil
}

func (h *Handler) newLock(name string, info core.Info) lockView {
	view := lockView{
		Name: name, Digest: seal.NamesOf(h.locks).Digest(name, false), Mode: info.Mode, Holders: h.newHolders(info.Holders), Shares: info.Shares,
		TTL: newCountdown(info.TTL, seal.FactsOf(h.locks).Client.TTL()), Waiters: info.Waiters, Queue: []waiter{}, Places: info.Places,
		Value: info.Value,
	}
	for _, w := range info.Queue {
		view.Queue = append(view.Queue, waiter{w.Owner, w.Instance, w.Mode, w.Permits, w.Limit})
	}
	return view
}
