package script

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// endMemory is how long Redis remembers an end that the record does not show. A repetition within that time gets the true
// answer. It is also leastMemory in lua/once/finish.lua.
const endMemory = 15 * time.Second

// The answers of the scripts that end an attempt.
const (
	Stale     = int64(0) // a later attempt has ended in the record, or the record was resolved: nothing was written
	Recorded  = int64(1) // the end is recorded
	Recreated = int64(2) // the end is recorded, in a new record: the one of the attempt was lost or overwritten
)

// Complete records that the attempt has taken effect, with a value. A value longer than Terms.MaxValue is not recorded. The
// token and the number are the attempt's. It returns Stale, Recorded or Recreated. While another attempt is running, it
// returns an error that is transport.ErrNotYet for [errors.Is].
func (s *Once) Complete(ctx context.Context, h *Hold, token int64, number int, value []byte) (int64, error) {
	value, omitted := h.Terms.recorded(value)
	return s.finish(ctx, h, token, number, value, h.Terms.Fingerprint, omitted)
}

// Hold records that the outcome of the attempt is unknown, with a reason. It returns what Complete returns.
func (s *Once) Hold(ctx context.Context, h *Hold, token int64, number int, reason string) (int64, error) {
	return s.finish(ctx, h, token, number, []byte(reason), nil, "unknown")
}

// finish runs lua/once/finish.lua. The content is the value or the reason.
func (s *Once) finish(
	ctx context.Context, h *Hold, token int64, number int, content, fingerprint []byte, omitted any,
) (int64, error) {
	t := h.Terms
	args := []any{
		h.ID, Milliseconds(t.Retention), token, s.PublishVerbArg, h.Keys.Channel, text(content), endMemoryArg(h),
		omitted, text(fingerprint), "", t.Instance, t.Label,
	}
	if number != 1 {
		args[9] = number
	}
	if t.Group.Key != "" {
		args = append(args, Counted(t.content(len(content))))
	}
	c := transport.NewCommand(onceFinishScript, t.Group.withGroup(h.Keys.Lock, h.Released, h.Keys.EndMarks()), trimDefaults(args)...)
	c.Ack = h.Ack
	if err := h.sendRelease(ctx, s.Exec, c); err != nil {
		return 0, err
	}
	if d := newDecoder(c.Reply); d.Len() == 3 {
		d.Int(0, 0)
		by := WaitState{HolderTTL: d.TTL(), Holder: d.Text()}
		if err := d.End(); err != nil {
			return 0, err
		}
		return 0, &overtaken{by}
	}
	return s.readEnd(c.Reply)
}

// endMemoryArg returns for how many ms Redis remembers an end that it records, as an argument of scripts. It returns "" if the
// record is memory enough: no request of the attempt is without an answer, and the record outlasts the repetitions.
func endMemoryArg(h *Hold) any {
	switch {
	case h.Unanswered > 0:
		return abandonMemoryArg
	case h.ReleasesUnanswered > 0, h.Terms.Retention < endMemory:
		return Milliseconds(endMemory)
	}
	return ""
}

// recorded returns the value as it is recorded, and whether it is omitted, as an argument of scripts.
func (t *Terms) recorded(value []byte) (kept []byte, omitted any) {
	if len(value) > t.MaxValue {
		return nil, 1
	}
	return value, ""
}

// readEnd returns the answer in the reply of a script that ends an attempt. It calls PublishRefused if Redis has refused to
// announce the end.
func (s *Once) readEnd(reply any) (int64, error) {
	d := newDecoder(reply)
	result := d.Int(Stale, Recreated)
	_, unpublished := reply.([]any)
	if unpublished {
		d.Int(0, 0)
	}
	if err := d.End(); err != nil {
		return 0, err
	}
	if unpublished {
		s.PublishRefused()
	}
	return result, nil
}

// Release implements [Strategy]. It discards an attempt that no caller was given. It leaves any other attempt as it is and
// returns true, even if the lease was lost or the client is closed, because the run may have taken effect. Its outcome on
// expiry decides when the lease has expired.
func (s *Once) Release(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	if what != NeverHeld {
		return true, nil
	}
	return s.Discard(ctx, h, what)
}

// Discard ends an attempt without an outcome, so that the next attempt may begin. It returns false if the attempt is not
// running in the record any more.
//
// Redis always remembers it, because the next attempt overwrites the record.
func (s *Once) Discard(ctx context.Context, h *Hold, what ReleaseReason) (bool, error) {
	found, missing := s.releaseMemories(h, what)
	found, missing = atLeast(endMemory, found), atLeast(endMemory, missing)
	args := []any{h.ID, found, what == NeverHeld, s.PublishVerbArg, h.Keys.Channel, missing}
	if h.Terms.Group.bounded() {
		args = append(args, Counted(h.Terms.content(0)))
	}
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, onceReleaseScript, h.Terms.Group.withGroup(h.Keys.Lock, h.Released), args...)
	if err != nil {
		return false, err
	}
	result, err := s.readEnd(reply)
	return result != Stale, err
}

// Seen is what an operator saw of a record: an action applies to that and nothing else.
type Seen struct {
	State    string // as in [Record]
	Attempt  int    // counts if there was no state
	Token    int64
	Ended    time.Time // zero if the record had no end
	OnExpiry string    // as in [Record]
}

// end returns the end as an argument of scripts.
func (s Seen) end() int64 {
	if us := s.Ended.UnixMicro(); us > 0 && us <= TokenLimit {
		return us
	}
	return 0
}

// Resolve records that the run has taken effect, on behalf of an operator. It returns a refusal if the record has changed since
// the operator saw it, if a run has completed before, or if an attempt is running. If it returns nil for both, the record is
// completed.
func (s *Once) Resolve(ctx context.Context, h *Hold, g Group, seen Seen, value []byte) (refused *Refusal, err error) {
	t := h.Terms
	value, omitted := t.recorded(value)
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, onceResolveScript, g.withGroup(h.Keys.Lock, h.Released, h.Keys.EndMarks()),
		h.ID, Milliseconds(t.Retention), abandonMemoryArg, s.PublishVerbArg, h.Keys.Channel,
		value, omitted, t.Fingerprint, t.Grouped, seen.State, seen.Token, seen.end(), seen.Attempt, seen.OnExpiry,
		Counted(t.content(len(value))))
	if err != nil {
		return nil, err
	}
	d := newDecoder(reply)
	switch status := d.Int(-5, 1); {
	case status == -5:
		refused = &Refusal{Kind: Changed, Record: decodeRecord(&d)}
	case status == -4:
		refused = &Refusal{Kind: Completed, Record: decodeRecord(&d)}
	case status == 0:
		refused = &Refusal{Kind: InProgress, RetryAfter: d.TTL()}
	case status == 1:
		_, err = s.readEnd(reply)
		return nil, err
	default:
		d.Fail()
	}
	return refused, d.End()
}

// Forget deletes the record, and takes it out of its group. It returns a refusal if the record has changed since the operator
// saw it, or if an attempt is running, unless evenRunning is true. The key forgot makes it idempotent: a repetition with the
// same key deletes no later record, for AbandonMemory.
func (s *Once) Forget(
	ctx context.Context, a transport.Ack, k Keys, g Group, seen Seen, evenRunning bool, forgot string,
) (refused *Refusal, err error) {
	reply, err := s.Exec.DoWithAck(ctx, a, onceForgetScript, g.withGroup(k.Lock, forgot, k.EndMarks()),
		abandonMemoryArg, s.PublishVerbArg, k.Channel, seen.State, seen.Token, evenRunning, seen.end(), seen.Attempt, seen.OnExpiry)
	if err != nil {
		return nil, err
	}
	d := newDecoder(reply)
	switch d.Int(-2, 1) {
	case -2:
		refused = &Refusal{Kind: InProgress, RetryAfter: d.TTL()}
	case -1:
		refused = &Refusal{Kind: Changed, Record: decodeRecord(&d)}
	default:
		_, err = s.readEnd(reply)
		return nil, err
	}
	return refused, d.End()
}

// Unconfirmed has the ends of attempts of one client that Redis has not answered yet. No attempt of this client begins for a
// key that has one. Otherwise:
//
//  1. A run takes effect. Redis is unreachable, and so long that the lease expires. The end waits to be sent again.
//  2. Redis returns. The same client is asked to run the same key, before the end is sent.
//  3. The request would begin another attempt, and the work would take effect twice.
//
// So [Once.Acquire] sends the ends of its key first. The zero value has no ends. It is safe for concurrent use.
type Unconfirmed struct {
	count atomic.Int64 // of all ends: mostly 0, and then a begin reads nothing else

	mu    sync.Mutex
	byKey map[string][]*End // guarded by mu: by the key of the record, the end with the greatest token first
}

// End is the end of one attempt, which may be sent any number of times. The zero value becomes one by [Unconfirmed.Add].
type End struct {
	of    *Unconfirmed
	key   string // of the record
	token int64
	err   error // why the end is not answered, see failed; guarded by of.mu

	turn     chan struct{} // holds one element while a goroutine sends the end; only that one uses the fields below
	send     func(ctx context.Context) (int64, error)
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
	e.of, e.key, e.token, e.send, e.turn = u, h.Keys.Lock, token, send, make(chan struct{}, 1)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey == nil {
		u.byKey = make(map[string][]*End)
	}
	u.count.Add(1)
	ends := append(u.byKey[e.key], e)
	slices.SortStableFunc(ends, func(a, b *End) int { return cmp.Compare(b.token, a.token) })
	u.byKey[e.key] = ends
}

// remove takes an end out. It does nothing if that was done before.
func (u *Unconfirmed) remove(e *End) {
	u.mu.Lock()
	defer u.mu.Unlock()
	ends := u.byKey[e.key]
	at := slices.Index(ends, e)
	if at < 0 {
		return
	}
	u.count.Add(-1)
	if ends = slices.Delete(ends, at, at+1); len(ends) == 0 {
		delete(u.byKey, e.key)
	} else {
		u.byKey[e.key] = ends
	}
}

// first returns the end of a key with the greatest token, nil if there is none.
func (u *Unconfirmed) first(key string) *End {
	if u.count.Load() == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if ends := u.byKey[key]; len(ends) > 0 {
		return ends[0]
	}
	return nil
}

// settle sends all ends of a key, and returns nil once there is none. The greatest token comes first because a later attempt of
// this client that is released makes way for the end of an earlier one. A temporary error has the outcome NotExecuted, because
// what comes behind the ends was not sent.
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

// Left returns the number of ends, and why one of them is not answered. The error is one of Redis being unreachable, if an end has
// such an error. Otherwise a refusal comes first, and then transport.ErrNotYet for [errors.Is]. It is nil if no end was sent.
func (u *Unconfirmed) Left() (ends int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, ends := range u.byKey {
		for _, e := range ends {
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
	select {
	case e.turn <- struct{}{}: // first: a detached context may have ended
	default:
		transport.LeaveGroup(ctx) // the command of the other goroutine may wait for this one in the group
		select {
		case e.turn <- struct{}{}:
		case <-ctx.Done():
			return 0, transport.ErrNotSent
		}
	}
	defer func() { <-e.turn }()
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
// did not reply, because it says less.
func (e *End) failed(ctx context.Context, err error) {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if ctx.Err() == nil || !transport.Transient(e.err) {
		e.err = err
	}
}

// GiveUp says that the end is not sent again.
func (e *End) GiveUp() { e.of.remove(e) }

// SendLater has the end sent in the background until it is answered, or given up at until or for good. Then ended is called, with
// the error of the last sending, or nil if there was an answer. If the end is given up because the client closes, ended is not
// called, and the end stays in Unconfirmed.
func (e *End) SendLater(pending *transport.Pending, until keepalive.Instant, ended func(result int64, err error)) {
	var result int64
	taken := pending.Add(&transport.PendingCommand{
		Send: func(ctx context.Context) (err error) {
			result, err = e.Send(transport.Detached(ctx))
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
