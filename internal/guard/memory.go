package guard

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

const (
	// mostRemembered bounds the keys of which a memory knows that another process has them, and those that ran without Redis.
	mostRemembered = 10_000
	// sweepInterval lies between two searches of a full memory for what has expired.
	sweepInterval = time.Second
	// endMemory is how long the end of a run counts that Redis does not know: as long as a client continues to send its record.
	endMemory = 10 * time.Minute
	// mostValues bounds the bytes of all remembered results. A run that ends beyond it is recorded without its result.
	mostValues = 32 << 20
	// runLease is the time to come back after a run of this process whose end is not known.
	runLease = 30 * time.Second
	// pollInterval lies between two looks at a run of this process that is waited for.
	pollInterval = 10 * time.Millisecond
)

// memory is what a guard that fails open knows of its keys without Redis: the runs in this process, what Redis has replied about
// others, and which runs have ended here without a record in Redis. It is safe for concurrent use. The zero value knows nothing.
//
// [Patience] remembers a reply within one call only. A task that is redelivered, or a client that repeats its request, comes
// with a further call. During an outage that call would run beside the run which was in its way a moment ago. After the outage
// it would run again, because Redis has no record of a run that began without it. So the memory refuses the key until the
// end of such a run is recorded, which it does itself as soon as Redis replies again: see [End].
//
// A memory that is full does not forget. It lets no further key run without Redis: see [memory.Enter]. It is bounded by 10,000 keys
// that others hold, 10,000 that ran without Redis, and 500,000 that Redis has recorded within ten minutes.
type memory struct {
	// Most bounds how many keys are remembered; 0 is 10,000.
	Most int

	mu      sync.Mutex
	runs    map[string]runs // in progress in this process
	opened  int             // how many of them have begun without Redis and may leave an end
	refused deadlines       // until then another holder has a lease
	unnoted time.Time       // until then another holder may have a lease of a key that is not in refused
	ends    map[string]*end // of runs that Redis may have no record of
	swept   time.Time       // when the expired ends were last deleted
	values  int             // bytes of the values in ends
	late    lateRecords

	recorded recorded // keys of which Redis has a record; counts only in an outage
}

// question is what a guard asks about a key.
type question struct {
	Key string
	// Lock is nil for a record.
	Lock *core.Lock
	// Fingerprint is the request's, see [core.WithFingerprint]; nil if none is compared.
	Fingerprint []byte
}

// runs are the runs of a key in this process.
type runs struct {
	all  int
	open int // of these, how many have begun without Redis
}

// Granted notes a run for which Redis has granted the key, unless the key is in use by a run without Redis: then it returns the
// error of [memory.Unrecorded], and the guard must give the key back. The guard must call end when the run has ended.
func (m *memory) Granted(q question) (end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unrecorded(q, nil); err != nil {
		return nil, err
	}
	delete(m.refused.until, q.Key)
	m.drop(q.Key)
	m.recorded.drop(q.Key)
	return m.count(q, false), nil
}

// Enter notes a run that begins in an outage, unless the key is in use as far as is known: then it returns an error which is no
// outage for [IsOutage]. For a record the error may be a [core.CompletedError] or a [core.OutcomeUnknownError]. The error is
// [core.ErrUnavailable] if the memory is full. The guard must call end when the run has ended.
//
// It is one call so that of two requests for which an outage ends the wait together, one sees the other.
func (m *memory) Enter(q question, unavailable error) (end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.inUse(q, unavailable); err != nil {
		return nil, err
	}
	return m.count(q, true), nil
}

// Known returns the error of [memory.Enter], and notes no run.
func (m *memory) Known(q question, unavailable error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inUse(q, unavailable)
}

// Unrecorded returns why a key must not run although Redis may grant it: a run of this process that began without Redis is in
// progress, or has ended without a record so far. The guard asks before it asks Redis.
func (m *memory) Unrecorded(q question) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unrecorded(q, nil)
}

// Await is [memory.Unrecorded] for a guard that may wait for a run in progress.
func (m *memory) Await(ctx context.Context, q question, wait time.Duration) error {
	for until := time.Now().Add(wait); ; {
		err := m.Unrecorded(q)
		if !Busy(err) || time.Until(until) < pollInterval || !Pause(ctx, pollInterval) {
			return err
		}
	}
}

// Refused notes until when another holder has the key, or that there is a record of it, if err is such an answer. A run of this
// process counts by itself.
func (m *memory) Refused(key string, err error) {
	var held *core.NotAcquiredError
	var running *core.InProgressError
	var completed *core.CompletedError
	var unknown *core.OutcomeUnknownError
	left := time.Duration(0)
	switch {
	case errors.As(err, &completed):
		m.Recorded(key, core.StateCompleted, completed.Record.Fingerprint, completed.Record.Retention)
		return
	case errors.As(err, &unknown):
		m.Recorded(key, core.StateUnknown, unknown.Record.Fingerprint, unknown.Record.Retention)
		return
	case errors.As(err, &running):
		left = running.RetryAfter
	case errors.As(err, &held):
		left = held.RetryAfter
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if left <= 0 || m.runs[key].all > 0 || m.refused.set(key, left, m.most()) {
		return
	}
	if until := time.Now().Add(left); until.After(m.unnoted) {
		m.unnoted = until
	}
}

// count notes a run; open says that it has begun without Redis.
func (m *memory) count(q question, open bool) (end func()) {
	if m.runs == nil {
		m.runs = make(map[string]runs)
	}
	add := func(n int) {
		r := m.runs[q.Key]
		r.all += n
		if open {
			r.open += n
		}
		if open && q.Lock == nil {
			m.opened += n
		}
		m.runs[q.Key] = r
		if r.all == 0 {
			delete(m.runs, q.Key)
		}
	}
	add(1)
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		add(-1)
	})
}

func (m *memory) inUse(q question, unavailable error) error {
	if err := m.ended(q, unavailable); err != nil {
		return err
	}
	if err := m.recorded.end(q, unavailable); err != nil {
		return err
	}
	left := m.refused.left(q.Key)
	if m.runs[q.Key].all >= besides(q.Lock) {
		left = max(left, runLease)
	}
	switch {
	case left > 0:
		return busy(q, left, unavailable)
	case time.Until(m.unnoted) > 0:
		return full{fmt.Errorf("more than %d keys were held by others when the outage began", m.most()), unavailable}
	case q.Lock == nil && time.Until(m.recorded.unnoted) > 0:
		return full{fmt.Errorf("more than %d keys were recorded within %v", mostRecorded, endMemory), unavailable}
	case q.Lock == nil && !m.roomForEnd():
		return full{fmt.Errorf("%d keys have run without Redis, and are not recorded yet", m.most()), unavailable}
	}
	return nil
}

// unrecorded returns the error for a key that a run without Redis has used or is using, nil if there is none.
func (m *memory) unrecorded(q question, unavailable error) error {
	if e := m.ends[q.Key]; e != nil && e.once != nil {
		if err := m.ended(q, unavailable); err != nil {
			return err
		}
	}
	if r := m.runs[q.Key]; r.open > 0 && r.all >= besides(q.Lock) {
		return busy(q, runLease, unavailable)
	}
	return nil
}

func busy(q question, left time.Duration, unavailable error) error {
	if q.Lock == nil {
		return known{&core.InProgressError{Key: q.Key, RetryAfter: left}, unavailable}
	}
	return known{&core.NotAcquiredError{Name: q.Key, RetryAfter: left}, unavailable}
}

func (m *memory) most() int {
	if m.Most > 0 {
		return m.Most
	}
	return mostRemembered
}

// besides returns how many runs there can be beside each other. lock is nil for a record.
func besides(lock *core.Lock) int {
	facts := seal.FactsOf(lock).Lock
	if facts.Mode == string(core.ModeRead) {
		return math.MaxInt
	}
	return max(facts.Limit, 1)
}

// deadlines are keys with a time. The zero value is empty.
type deadlines struct {
	until map[string]time.Time
	swept time.Time
}

// set keeps the later one of two times of a key. It returns false if there are too many keys to keep another one.
func (d *deadlines) set(key string, left time.Duration, most int) bool {
	if d.until == nil {
		d.until = make(map[string]time.Time)
	}
	now := time.Now()
	if len(d.until) >= most && now.Sub(d.swept) >= sweepInterval {
		maps.DeleteFunc(d.until, func(_ string, until time.Time) bool { return !until.After(now) })
		d.swept = now
	}
	before, has := d.until[key]
	if !has && len(d.until) >= most {
		return false
	}
	if until := now.Add(left); until.After(before) {
		d.until[key] = until
	}
	return true
}

func (d *deadlines) left(key string) time.Duration { return time.Until(d.until[key]) }

// known is what this process knows of a key, and Redis does not reply or has no record of. It is no outage for [IsOutage].
type known struct {
	error
	unavailable error // why Redis was not asked; nil if it was not necessary
}

// Error returns what is known, and why Redis was not asked.
func (k known) Error() string {
	if k.unavailable == nil {
		return fmt.Sprintf("%v, in this process, without Redis", k.error)
	}
	return fmt.Sprintf("%v, as was last known: %v", k.error, k.unavailable)
}

// Unwrap returns what is known.
func (k known) Unwrap() error { return k.error }

// full is the error for a key that may not run without Redis, because its end could not be remembered.
type full struct{ reason, unavailable error }

// Error returns the reason, and why Redis was not asked.
func (f full) Error() string {
	return fmt.Sprintf("holdfast: not run without Redis: %v: %v", f.reason, f.unavailable)
}

// Unwrap returns why Redis was not asked, a [core.ErrUnavailable].
func (f full) Unwrap() error { return f.unavailable }

// mostRecorded bounds the keys of which a memory learns within [endMemory] that Redis has a record.
const mostRecorded = 500_000

// recorded are the keys of which Redis has confirmed the end of a run, or has replied it. In an outage they do not run again in
// this process: an outage that begins right after an effect must not repeat it. Redis decides again when it replies. The zero value
// is empty.
//
// There are far more of them than of runs without Redis, so a key is kept as a hash of 8 bytes, and so is a fingerprint. Of two keys
// with one hash, which is as likely as a collision of 8 random bytes, one would be refused in an outage. Two maps take turns, each for
// endMemory: what the older one has when it is dropped has expired. A key for which there is no room might run again, so until its time
// has passed no key runs without Redis.
type recorded struct {
	seed         maphash.Seed
	newer, older map[uint64]recordedEnd
	began        time.Time // when the newer one was made
	unnoted      time.Time // until then Redis may have the record of a key that is in neither
}

// recordedEnd is the end of one key.
type recordedEnd struct {
	until       int64  // in ms since 1970; negative if the outcome of the run is unknown
	fingerprint uint64 // a hash; 0 if there is none
}

// Recorded notes that Redis has a record of a key, with that state and fingerprint, for so long.
func (m *memory) Recorded(key string, state core.State, fingerprint []byte, retention time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recorded.add(key, state, fingerprint, min(retention, endMemory))
}

func (r *recorded) add(key string, state core.State, fingerprint []byte, left time.Duration) {
	if left <= 0 || state != core.StateCompleted && state != core.StateUnknown {
		return
	}
	now := time.Now()
	switch {
	case r.newer == nil:
		r.seed, r.newer, r.began = maphash.MakeSeed(), make(map[uint64]recordedEnd), now
	case now.Sub(r.began) >= endMemory:
		r.newer, r.older, r.began = make(map[uint64]recordedEnd), r.newer, now
	}
	hash, until := maphash.String(r.seed, key), now.Add(left)
	if _, has := r.newer[hash]; !has && len(r.newer) >= mostRecorded {
		if until.After(r.unnoted) {
			r.unnoted = until
		}
		return
	}
	delete(r.older, hash)
	end := recordedEnd{until.UnixMilli(), r.mark(fingerprint)}
	if state == core.StateUnknown {
		end.until *= -1
	}
	r.newer[hash] = end
}

// mark returns the hash of a fingerprint.
func (r *recorded) mark(fingerprint []byte) uint64 {
	if len(fingerprint) == 0 {
		return 0
	}
	return max(maphash.Bytes(r.seed, fingerprint), 1)
}

func (r *recorded) drop(key string) {
	if r.newer != nil {
		hash := maphash.String(r.seed, key)
		delete(r.newer, hash)
		delete(r.older, hash)
	}
}

// end returns the error for a key of which Redis has a record, nil if it has none as far as is known.
func (r *recorded) end(q question, unavailable error) error {
	if r.newer == nil || q.Lock != nil {
		return nil
	}
	hash := maphash.String(r.seed, q.Key)
	end, ok := r.newer[hash]
	if !ok {
		end, ok = r.older[hash]
	}
	left := time.Until(time.UnixMilli(max(end.until, -end.until)))
	switch mark := r.mark(q.Fingerprint); {
	case !ok || left <= 0:
		return nil
	case mark != 0 && end.fingerprint != 0 && mark != end.fingerprint:
		return known{fmt.Errorf("%w: once %q", core.ErrFingerprintMismatch, q.Key), unavailable}
	case end.until < 0:
		return known{&core.OutcomeUnknownError{Record: core.Record{Key: q.Key, State: core.StateUnknown, Retention: left}}, unavailable}
	}
	return known{&core.CompletedError{Record: core.Record{Key: q.Key, State: core.StateCompleted, Omitted: true, Retention: left}}, unavailable}
}
