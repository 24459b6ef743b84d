package outage

import (
	"hash/maphash"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// mostRecorded bounds the keys of which a Memory knows that Redis has a record.
const mostRecorded = 100_000

// recorded are the keys of which Redis has confirmed the end of a run, or has replied it. In an outage they do not run again in
// this process: an outage that begins right after an effect must not repeat it. Redis decides again when it replies. The zero value
// is empty.
//
// There are far more of them than of runs without Redis, so a key is kept as a hash of 8 bytes. Of two keys with one hash, which is
// as likely as a collision of 8 random bytes, one would be refused in an outage. Two maps take turns: when the newer one is full,
// the older one is dropped whole.
type recorded struct {
	seed         maphash.Seed
	newer, older map[uint64]recordedKey
}

type recordedKey struct {
	until   int64 // ms since 1970
	unknown bool  // the outcome of the run is unknown
}

// Recorded notes that Redis has a record of a key, with that state, for so long.
func (m *Memory) Recorded(key string, state core.State, retention time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recorded.add(key, state, min(retention, endMemory))
}

func (r *recorded) add(key string, state core.State, left time.Duration) {
	if left <= 0 || state != core.StateCompleted && state != core.StateUnknown {
		return
	}
	if r.newer == nil {
		r.seed, r.newer = maphash.MakeSeed(), make(map[uint64]recordedKey)
	}
	if len(r.newer) >= mostRecorded/2 {
		r.newer, r.older = make(map[uint64]recordedKey), r.newer
	}
	hash := maphash.String(r.seed, key)
	delete(r.older, hash)
	r.newer[hash] = recordedKey{time.Now().Add(left).UnixMilli(), state == core.StateUnknown}
}

func (r *recorded) drop(key string) {
	if r.newer != nil {
		hash := maphash.String(r.seed, key)
		delete(r.newer, hash)
		delete(r.older, hash)
	}
}

// end returns the error for a key of which Redis has a record, nil if it has none as far as is known.
func (r *recorded) end(q Question, unavailable error) error {
	if r.newer == nil || q.Lock != nil {
		return nil
	}
	hash := maphash.String(r.seed, q.Key)
	k, ok := r.newer[hash]
	if !ok {
		k, ok = r.older[hash]
	}
	left := time.Until(time.UnixMilli(k.until))
	switch {
	case !ok || left <= 0:
		return nil
	case k.unknown:
		return known{&core.OutcomeUnknownError{Record: core.Record{Key: q.Key, State: core.StateUnknown, Retention: left}}, unavailable}
	}
	return known{&core.CompletedError{Record: core.Record{Key: q.Key, State: core.StateCompleted, Omitted: true, Retention: left}}, unavailable}
}
