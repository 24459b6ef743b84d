package core

import (
	"context"
	"errors"
)

// TryDo calls fn if a call of Run or Campaign of this very Election leads, and returns what fn returns. It returns
// [ErrNotLeader] at once if none leads. It does no I/O. Use it for schedulers that start their jobs themselves.
//
// The context of fn descends from ctx, and carries the term as its fencing token: see [TokenFrom]. It also ends with the
// lead, with [ErrLeaseLost] as its cause if the lead was lost, and when the context of the function of Run does. If the lead
// ended before fn returned, the error is the cause too, even if fn returned nil: another leader may have worked meanwhile.
//
// Run waits until fn has returned before it gives up the lead, and before it campaigns again after a loss. So fn must
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
	if err := e.lock.check(); err != nil {
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
// Why mu: no call may begin after endWork has waited for all of them.
func (l *Leadership) begin(ctx context.Context) (work context.Context, end func()) {
	l.beginning.Lock()
	defer l.beginning.Unlock()
	if !l.valid() {
		return nil, nil
	}
	l.calls.Add(1)
	work, cancel, unbind := l.lease.end.Within(l.lease.within(ctx), expirer{l.lease}) // at once at a loss; the function below may run later
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
