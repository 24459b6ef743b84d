package script

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Unconfirmed has the ends of attempts of one client that Redis has not answered yet. No attempt of this client begins for a
// key that has one. Why:
//
//  1. A run takes effect. Redis is away, and so long that the lease expires. The end waits to be sent again.
//  2. Redis returns. The same client is asked to run the same key, before the end is sent.
//  3. The request would begin another attempt, and the work would take effect twice.
//
// So [Once.Acquire] sends the ends of its key first. The zero value has no ends. It is safe for concurrent use.
type Unconfirmed struct {
	count atomic.Int64 // of all ends: mostly 0, and then a begin reads nothing else

	mu    sync.Mutex
	byKey map[string]*End // guarded by mu: by the key of the record, the end with the greatest token first
}

// End is the end of one attempt, which may be sent any number of times. The zero value becomes one by [Unconfirmed.Add].
type End struct {
	of    *Unconfirmed
	key   string // of the record
	token int64
	send  func(ctx context.Context) (int64, error)

	// Guarded by of.mu.
	next    *End          // of the same key, with a lesser token
	sending bool          // true while a goroutine sends the end; only that one uses send, result and answered
	free    chan struct{} // closed when sending becomes false; nil if no goroutine waits for that
	err     error         // why the end is not answered, see failed

	result   int64
	answered bool
}

// overtaken is the answer to Complete or Hold that another attempt is running. It is sent again, because that attempt may yet
// be released.
type overtaken struct{ by WaitState }

func (*overtaken) Error() string              { return "another attempt is running" }
func (*overtaken) Is(target error) bool       { return target == transport.ErrNotYet }
func (*overtaken) Outcome() transport.Outcome { return transport.Rejected }

// Add makes e the end of an attempt, and bars the key until the end is answered or given up. send must be idempotent.
func (u *Unconfirmed) Add(e *End, h *Hold, token int64, send func(ctx context.Context) (int64, error)) {
	e.of, e.key, e.token, e.send = u, h.Keys.Lock, token, send
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey == nil {
		u.byKey = make(map[string]*End)
	}
	u.count.Add(1)
	first := u.byKey[e.key]
	if first == nil || first.token < token {
		e.next, u.byKey[e.key] = first, e
		return
	}
	for first.next != nil && first.next.token > token {
		first = first.next
	}
	e.next, first.next = first.next, e
}

// remove takes an end out. It does nothing if that was done before.
func (u *Unconfirmed) remove(e *End) {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := u.byKey[e.key]
	at := &first
	for *at != nil && *at != e {
		at = &(*at).next
	}
	if *at == nil {
		return
	}
	u.count.Add(-1)
	if *at = e.next; first == nil {
		delete(u.byKey, e.key)
	} else {
		u.byKey[e.key] = first
	}
}

// first returns the end of a key with the greatest token, nil if there is none.
func (u *Unconfirmed) first(key string) *End {
	if u.count.Load() == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.byKey[key]
}

// settle sends all ends of a key, and returns nil once there is none. Why the greatest token first: a later attempt of this
// client that is released makes way for the end of an earlier one. A temporary error has the outcome NotExecuted, because what
// comes behind the ends was not sent.
func (u *Unconfirmed) settle(ctx context.Context, key string) error {
	for e := u.first(key); e != nil; e = u.first(key) {
		if _, err := e.Send(ctx); transport.Transient(err) {
			return transport.WithOutcome(err, transport.NotExecuted)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Len returns the number of ends.
func (u *Unconfirmed) Len() int { return int(u.count.Load()) }

// Left returns the number of ends, and why one of them is not answered. The error is one of Redis being away, if an end has
// such an error. Otherwise a refusal comes first, and then transport.ErrNotYet for [errors.Is]. It is nil if no end was sent.
func (u *Unconfirmed) Left() (ends int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.byKey {
		for ; e != nil; e = e.next {
			if rank(e.err) > rank(err) {
				err = e.err
			}
		}
	}
	return u.Len(), err
}

// rank returns a greater number for an error that Left prefers.
func rank(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, transport.ErrNotYet):
		return 1
	case !transport.Transient(err):
		return 2
	}
	return 3
}

// Send sends the end once, unless it was answered before, and returns the answer. The error is transport.ErrNotYet for
// [errors.Is] if another attempt is running. It waits while another goroutine sends the end, and returns
// transport.ErrNotSent if ctx ends during that.
func (e *End) Send(ctx context.Context) (int64, error) {
	if !e.lock(ctx) {
		return 0, transport.ErrNotSent
	}
	defer e.unlock()
	if e.answered {
		return e.result, nil
	}
	result, err := e.send(ctx)
	if err != nil {
		e.failed(ctx, err)
		return 0, err
	}
	e.result, e.answered = result, true
	e.of.remove(e)
	return result, nil
}

// failed keeps the error of a sending. One that was cut short by the end of ctx replaces no other error that says that Redis
// did not answer, because it tells less.
func (e *End) failed(ctx context.Context, err error) {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if ctx.Err() == nil || !transport.Transient(e.err) {
		e.err = err
	}
}

// GiveUp says that the end is not sent again.
func (e *End) GiveUp() { e.of.remove(e) }

// lock waits until no other goroutine sends the end. It returns false if ctx has ended before.
func (e *End) lock(ctx context.Context) bool {
	for {
		e.of.mu.Lock()
		if !e.sending {
			e.sending = true
			e.of.mu.Unlock()
			return true
		}
		if e.free == nil {
			e.free = make(chan struct{})
		}
		free := e.free
		e.of.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return false
		}
	}
}

// unlock lets other goroutines send the end.
func (e *End) unlock() {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if e.sending = false; e.free != nil {
		close(e.free)
		e.free = nil
	}
}

// SendLater has the end sent in the background until it is answered, or given up at until or for good. Then ended is called, with
// the error of the last sending, or nil if there was an answer. If the end is given up because the client closes, ended is not
// called, and the end stays in Unconfirmed.
func (e *End) SendLater(pending *transport.Pending, until keepalive.Instant, ended func(result int64, err error)) {
	var result int64
	taken := pending.Add(&transport.PendingCommand{
		Send: func(ctx context.Context) (err error) {
			result, err = e.Send(new(transport.DetachedContext).Reset(ctx, transport.FirstAnswerTimeout))
			return err
		},
		Until: until,
		Ended: func(err error) {
			e.of.remove(e)
			ended(result, err)
		},
	})
	if !taken {
		e.of.remove(e)
		ended(Stale, errors.New("too many ends wait, or the client is closed"))
	}
}
