package core

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Leadership is one term of a leader, from its election to its end. The client renews it until the leader resigns. Its
// methods may be called from several goroutines at once. A nil Leadership has ended: its methods return [ErrNotHeld], and zero values.
type Leadership struct {
	election *Election
	lease    *Lease
	number   atomic.Int64 // of the last proclamation

	leading   context.Context         // of the leader's work: cancelled when leadership is lost, and with the context of Run
	stop      context.CancelCauseFunc // ends leading
	beginning sync.Mutex              // held while a call of TryDo begins
	calls     sync.WaitGroup          // of TryDo

	resigning   sync.Mutex // held during Resign
	unconfirmed bool       // a Resign without a reply has ended leadership; guarded by resigning
}

// Context returns a context that is cancelled when leadership ends, before another candidate can win. Its cause is [ErrLeaseLost],
// [ErrNotHeld] after Resign, or [ErrClosed]. It carries the term as its fencing token, see [TokenFrom]. It has the values
// of the context given to Campaign, but not its deadline.
func (l *Leadership) Context() context.Context {
	if l == nil {
		return noLease
	}
	return l.lease.Context()
}

// Term returns the fencing token of the leadership: greater than all earlier terms.
func (l *Leadership) Term() int64 {
	if l == nil {
		return 0
	}
	return l.lease.token
}

// ValidUntil returns the time until which no other candidate can win, see [Lease.ValidUntil]. It moves forward with every
// renewal.
func (l *Leadership) ValidUntil() time.Time {
	if l == nil {
		return time.Time{}
	}
	return l.lease.ValidUntil()
}

// Proclaim changes the value that [Election.Leader] and [Election.Observe] return for this leader. Of two values the one of
// the later call stays, whichever reaches Redis last. Values are as for [WithValue].
//
// Proclaim returns [ErrNotHeld] if leadership had already ended. After any other error the value may have changed or not.
func (l *Leadership) Proclaim(ctx context.Context, value string) error {
	if l == nil {
		return errNoLease
	}
	if err := checkLeaderValue("Proclaim", value); err != nil {
		return err
	}
	if l.lease.end.Cause() != nil {
		return l.lease.notHeld()
	}
	var held bool
	err := l.lease.engine.operate(ctx, "proclaim in election", l.election.lock.name, l.lease.hold.Keys, func() error {
		number := l.number.Add(1)
		return transport.Retry(ctx, 0, transport.Transient, func() (err error) {
			held, err = l.send(ctx, number, value)
			return err
		})
	})
	if err == nil && !held {
		return l.lease.notHeld()
	}
	return err
}

// send proclaims a value once. If Redis replies that leadership is over, it ends the lease.
func (l *Leadership) send(ctx context.Context, number int64, value string) (held bool, err error) {
	h := &l.lease.hold
	held, err = l.election.redis.Proclaim(ctx, h.Keys, h.ID, l.lease.token, number, value)
	if err == nil && !held && l.lease.engine.renewer.Remove(&l.lease.entry) {
		l.lease.engine.lost(l.lease, errTaken)
	}
	return held, err
}

// introduce proclaims the first value, which notifies the observers of the new leader. Without a reply it continues in the
// background while leadership lasts, because the leader can lead without it.
func (l *Leadership) introduce(ctx context.Context) {
	e, number, value := l.lease.engine, l.number.Add(1), l.election.value
	if !e.operations.StartInternal() {
		return
	}
	defer e.operations.Finish()
	_, err := l.send(transport.Detached(ctx), number, value)
	if err == nil {
		return
	}
	e.background(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer l.lease.end.Bind(func(error) { cancel() })()
		err := transport.Retry(ctx, transport.NoLimit, transport.Transient, func() error {
			bounded, cancel := context.WithTimeout(ctx, transport.AnswerTimeout)
			defer cancel()
			_, err := l.send(bounded, number, value)
			return err
		})
		if err != nil && ctx.Err() == nil {
			e.logger.Warn("holdfast: the leader's value could not be written",
				"lock", digest(l.lease.hold.Keys.Lock), "error", err)
		}
	})
}

// Resign ends leadership and elects the next candidate at once. It works although ctx was cancelled. A limit of some seconds
// bounds it, and ctx does only if it ends while Resign waits. Call it after the work of the leader has stopped: the
// leader's context ends at once, and another candidate may win before Resign returns.
//
// Resign returns [ErrNotHeld] if leadership had already ended, by a loss or an earlier Resign. A lost leadership may stay in
// Redis for the rest of its TTL, so that the work has time to stop: Resign then ends it early. Any other error means that
// Redis did not confirm it. The client then retries in the background, and Redis ends leadership after the TTL. Resign may
// be called again to learn when it has ended: nil says that it has, unless the leader's context has entered a lock of the
// same name.
func (l *Leadership) Resign(ctx context.Context) error {
	if l == nil {
		return errNoLease
	}
	l.resigning.Lock()
	defer l.resigning.Unlock()
	if !l.unconfirmed {
		err := l.lease.Unlock(ctx)
		l.unconfirmed = err != nil && !errors.Is(err, ErrNotHeld)
		return err
	}
	e, h := l.lease.engine, *l.lease.outstanding() // a copy, because the background uses another one
	if !e.operations.StartInternal() {
		return ErrClosed
	}
	defer e.operations.Finish()
	err := e.acquiring.RunDetached(ctx, func(ctx context.Context) error {
		_, err := l.lease.strategy.Release(ctx, &h, script.HeldByCaller) // if it is gone, it has ended too
		return err
	})
	if err != nil {
		return errorf("holdfast: resignation from election %q not confirmed: %w", l.election.lock.name,
			failure(ctx, h.Keys.Lock, err))
	}
	l.unconfirmed = false
	return nil
}

// valid returns true if neither the leadership nor the context of Run has ended. It also looks at the end of the lease,
// because a loss cancels the contexts of jobs before leading is cleared, and a job whose context was cancelled must not
// find its leadership valid. It compares with the clock because, after a pause of the process, the timer that ends the
// lease may fire later than this call.
func (l *Leadership) valid() bool {
	e := l.lease.engine
	return l.leading.Err() == nil && l.lease.end.Cause() == nil && e.now() < e.renewer.ValidUntil(&l.lease.entry)
}

// run calls lead and ends the term. It returns the cause if leadership was lost before lead returned. The context of lead
// is cancelled before leadership is given up, because lead may have left goroutines behind.
func (l *Leadership) run(ctx context.Context, lead func(context.Context) error) (err, lost error) {
	returned := false
	defer func() {
		if !returned { // a panic or Goexit: goroutines of lead may still be at work
			l.lease.Abandon()
		}
	}()
	err = lead(l.leading)
	returned = true
	lost = l.lease.end.Cause()
	l.endWork()
	inTime := l.lease.end.Cause() == nil
	if cause := l.lease.finish(ctx); inTime {
		lost = cause
	}
	return err, lost
}

// TryDo calls fn if a call of Run or Campaign of this very Election leads, and returns what fn returns. It returns
// [ErrNotLeader] at once if none leads. It does no I/O. Use it for schedulers that start their jobs themselves.
//
// The context of fn descends from ctx, and carries the term as its fencing token: see [TokenFrom]. It also ends with the
// lead, with [ErrLeaseLost] as its cause if leadership was lost, and when the context of the function of Run does. If leadership
// ended before fn returned, the error is the cause too, even if fn returned nil: another leader may have worked meanwhile.
//
// Run waits until fn has returned before it gives up leadership, and before it campaigns again after a loss. So fn must
// return when its context ends, and must not wait for Run. [Leadership.Resign] does not wait: call it after fn has returned.
func (e *Election) TryDo(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		return invalidOption("TryDo: the function is nil")
	}
	l, err := e.leadership()
	if err != nil {
		return err
	}
	work, end := l.begin(ctx)
	if end == nil {
		return e.notLeader()
	}
	defer func() {
		ended := l.lease.end.Cause()
		end()
		if ended != nil && !errors.Is(err, ended) {
			err = errors.Join(err, ended)
		}
	}()
	return fn(work)
}

// leadership returns the term in which this Election leads, or [ErrNotLeader].
func (e *Election) leadership() (*Leadership, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	l := e.current
	e.mu.Unlock()
	if l == nil || !l.valid() {
		return nil, e.notLeader()
	}
	return l, nil
}

func (e *Election) notLeader() error { return errorf("%w: election %q", ErrNotLeader, e.lock.name) }

// begin returns the context of a call of TryDo, which lasts until end is called. It returns a nil end if the term is over.
// It takes mu so that no call begins after endWork has waited for all of them.
func (l *Leadership) begin(ctx context.Context) (work context.Context, end func()) {
	l.beginning.Lock()
	defer l.beginning.Unlock()
	if !l.valid() {
		return nil, nil
	}
	l.calls.Add(1)
	work, cancel, unbind := l.lease.end.Within(l.lease.within(ctx), keptLease{l.lease}) // at once at a loss; the function below may run later
	stop := context.AfterFunc(l.leading, func() { cancel(context.Cause(l.leading)) })
	return work, func() {
		stop()
		unbind()
		cancel(nil)
		l.calls.Done()
	}
}

// endWork ends the contexts of the term's work, and waits for the calls of TryDo.
func (l *Leadership) endWork() {
	l.beginning.Lock() // a call that has found the term valid is counted
	l.stop(l.lease.notHeld())
	l.beginning.Unlock()
	l.calls.Wait()
}
