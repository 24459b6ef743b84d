package guard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	// lateInterval lies between two tries to record what has run without Redis.
	lateInterval = time.Second
	// shortestRetention is the least that core takes. A record that would expire sooner is not written any more.
	shortestRetention = 10 * time.Millisecond
)

// end is how a run of a record has ended of which Redis may know nothing.
type end struct {
	// state is [core.StateCompleted] if the run has taken effect, and [core.StateUnknown] if that has to be found out.
	state       core.State
	value       []byte // what is to be recorded of a completed run
	reason      string // why the outcome is unknown
	fingerprint []byte
	note        string
	until       time.Time // when the record would expire
	// once returns the record with that retention, for a run that began without Redis. It is nil for a run that Redis has
	// granted: then its client continues to send the end, and what is remembered counts only while Redis cannot be asked.
	once func(retention time.Duration) *core.Once
	// failed is called if the end could not be recorded for as long as it is remembered. It may be nil.
	failed func(error)

	taken bool // while a call of recordEnd or Forget decides about it

	// Set by [memory.Ended].
	omitted bool      // there is no room for the value
	forget  time.Time // it counts until then
	failure error     // of the last try to record it
}

// Ended notes the end of a run of this process that Redis has not confirmed. From then on the key is refused, and the end of a
// run without Redis is recorded as soon as Redis replies, unless another run of the key has left a record by then.
func (m *memory) Ended(key string, kept end) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(key)
	kept.forget = time.Now().Add(endMemory)
	if kept.until.Before(kept.forget) {
		kept.forget = kept.until
	}
	if m.values+len(kept.value) > mostValues {
		kept.value, kept.omitted = nil, true
	}
	m.values += len(kept.value)
	if m.ends == nil {
		m.ends = make(map[string]*end)
	}
	m.ends[key] = &kept
	if kept.once != nil {
		m.late.keys = append(m.late.keys, key)
		m.armLate()
	}
}

// Forget calls forget to delete the record of a key, and then forgets that the key has run. Late says that it was a run without Redis
// which is not recorded yet. The error is forget's, or a [core.InProgressError] while that run is being recorded: the record
// would be written after Forget.
func (m *memory) Forget(key string, forget func(late bool) error) (late bool, err error) {
	e, free := m.take(key)
	if !free {
		return false, &core.InProgressError{Key: key}
	}
	late = e != nil && time.Until(e.forget) > 0
	err = forget(late)
	m.mu.Lock()
	defer m.mu.Unlock()
	if e != nil {
		e.taken = false
	}
	if err != nil { // after a refusal the run counts
		return false, err
	}
	m.recorded.drop(key)
	if late && m.ends[key] == e {
		m.drop(key)
	}
	return late, nil
}

// take returns the end of a run without Redis for one who decides about it, nil if there is none. It returns false if another one
// does. The caller must reset taken.
func (m *memory) take(key string) (e *end, free bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e = m.ends[key]; e == nil || e.once == nil {
		return nil, true
	}
	free, e.taken = !e.taken, true
	return e, free
}

func (m *memory) drop(key string) {
	if e := m.ends[key]; e != nil {
		m.values -= len(e.value)
		delete(m.ends, key)
	}
}

// roomForEnd returns true if the end of another run without Redis could be remembered.
func (m *memory) roomForEnd() bool {
	if now := time.Now(); len(m.ends)+m.opened >= m.most() && now.Sub(m.swept) >= sweepInterval {
		m.swept = now
		for key, e := range m.ends {
			if e.once == nil && !e.forget.After(now) { // the others are dropped by those who record them
				m.drop(key)
			}
		}
	}
	return len(m.ends)+m.opened < m.most()
}

// ended returns the error for a key of which a run has ended here, nil if there is none.
func (m *memory) ended(q question, unavailable error) error {
	e := m.ends[q.Key]
	if e == nil || q.Lock != nil {
		return nil
	}
	left := time.Until(e.forget)
	switch {
	case left <= 0:
		return nil
	case len(q.Fingerprint) > 0 && len(e.fingerprint) > 0 && !bytes.Equal(q.Fingerprint, e.fingerprint):
		return known{fmt.Errorf("%w: once %q", core.ErrFingerprintMismatch, q.Key), unavailable}
	}
	r := core.Record{
		Key: q.Key, State: e.state, Value: bytes.Clone(e.value), Omitted: e.omitted || e.value == nil,
		Fingerprint: bytes.Clone(e.fingerprint), Reason: e.reason, Note: e.note, Retention: time.Until(e.until),
	}
	if e.state == core.StateUnknown {
		return known{&core.OutcomeUnknownError{Record: r}, unavailable}
	}
	return known{&core.CompletedError{Record: r}, unavailable}
}

// lateRecords are the keys whose ends have to be recorded yet.
type lateRecords struct {
	keys  []string
	armed bool // a timer or a call of recordLate is going to look at them
}

func (m *memory) armLate() {
	if !m.late.armed && len(m.late.keys) > 0 {
		m.late.armed = true
		time.AfterFunc(lateInterval, m.recordLate)
	}
}

// recordLate tries to record each end once, until Redis cannot be asked.
func (m *memory) recordLate() {
	m.mu.Lock()
	keys := m.late.keys
	m.late.keys = nil
	m.mu.Unlock()
	var again []string
	away := false
	for _, key := range keys {
		waits, err := m.recordEnd(key, away)
		if errors.Is(err, core.ErrClosed) {
			return // and no timer is armed any more: nothing can be recorded
		}
		if waits {
			again = append(again, key)
		}
		away = away || errors.Is(err, core.ErrUnavailable)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.late.keys, m.late.armed = append(again, m.late.keys...), false
	m.armLate()
}

// recordEnd tries to record the end of a run, unless Redis is known to be unreachable. It returns true if it has to be tried again.
func (m *memory) recordEnd(key string, away bool) (again bool, err error) {
	e, free := m.take(key)
	switch {
	case e == nil:
		return false, nil
	case !free:
		return true, nil
	case time.Until(e.forget) <= shortestRetention:
		if e.failed != nil && time.Until(e.until) > shortestRetention {
			defer e.failed(cmp.Or(e.failure, core.ErrUnavailable)) // without the mutex
		}
	case away:
		again = true
	default:
		if err = e.record(); err != nil {
			e.failure, again = err, true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.taken = false
	if !again && m.ends[key] == e {
		m.drop(key)
		m.recorded.add(key, e.state, e.fingerprint, time.Until(e.forget))
	}
	return again, err
}

// record writes the record, and returns nil if there is one. It reads first: each attempt that is not answered has to be taken
// back, which lasts for as long as Redis does not reply.
func (e *end) record() (err error) {
	defer func() {
		if p := recover(); p != nil { // of a hook, which would end the process here
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), AskTimeout)
	defer cancel()
	once := e.once(time.Until(e.until).Truncate(time.Millisecond))
	found, err := once.Peek(ctx)
	switch {
	case err != nil:
		return err
	case found.State == core.StateCompleted, found.State == core.StateUnknown:
		return nil
	case found.State == core.StateRunning:
		return &core.InProgressError{Key: found.Key, RetryAfter: found.Lease}
	}
	attempt, err := once.Begin(ctx)
	switch {
	case errors.Is(err, core.ErrCompleted), errors.Is(err, core.ErrOutcomeUnknown), errors.Is(err, core.ErrFingerprintMismatch):
		return nil
	case err != nil:
		return err
	case e.state == core.StateUnknown:
		return attempt.Hold(ctx, e.reason)
	}
	if err := attempt.Complete(ctx, e.value); !errors.Is(err, core.ErrValueTooLarge) {
		return err
	}
	return nil // recorded without its value
}
