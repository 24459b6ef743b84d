package guard

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// newClient returns a client that makes lockers, and is not asked for anything.
func newClient(t *testing.T) *core.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:0"})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := core.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

var errAway = fmt.Errorf("away: %w", core.ErrUnavailable)

func ask(key string, lock *core.Lock) question { return question{Key: key, Lock: lock} }

// granted notes a run that Redis has granted.
func granted(t *testing.T, m *memory, key string) (end func()) {
	t.Helper()
	end, err := m.Granted(ask(key, nil))
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return end
}

// done is the end of a run that Redis has granted, and whose record it has not confirmed.
func done() end {
	return end{state: core.StateCompleted, until: time.Now().Add(time.Hour)}
}

// wantKnown checks that both questions have the same answer, nil for a key that is not in use.
func wantKnown(t *testing.T, client *core.Client, m *memory, key string, left time.Duration) {
	t.Helper()
	record, lock := m.Known(ask(key, nil), errAway), m.Known(ask(key, client.Mutex(key)), errAway)
	if left == 0 {
		if record != nil || lock != nil {
			t.Errorf("%s: %v, %v, want nothing known", key, record, lock)
		}
		return
	}
	var running *core.InProgressError
	if !errors.As(record, &running) || running.RetryAfter != left || !Busy(record) || IsOutage(record) {
		t.Errorf("%s: record %v, want %v left", key, record, left)
	}
	var held *core.NotAcquiredError
	if !errors.As(lock, &held) || held.RetryAfter != left || !Busy(lock) || IsOutage(lock) {
		t.Errorf("%s: lock %v, want %v left", key, lock, left)
	}
	if !strings.Contains(record.Error(), "away") {
		t.Errorf("%s: %v does not say why Redis was not asked", key, record)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		wantKnown(t, client, &m, "a", 0)
		first, second := granted(t, &m, "a"), granted(t, &m, "a")
		wantKnown(t, client, &m, "a", 30*time.Second)
		wantKnown(t, client, &m, "b", 0)
		for _, beside := range []*core.Lock{client.Semaphore("a", 3), client.Read("a"), client.FairRead("a")} {
			if err := m.Known(ask("a", beside), errAway); err != nil {
				t.Errorf("%s: a third one may not run: %v", seal.FactsOf(beside).Lock.Mode, err)
			}
		}
		for _, alone := range []*core.Lock{client.Semaphore("a", 2), client.Write("a"), client.Fair("a")} {
			if err := m.Known(ask("a", alone), errAway); err == nil {
				t.Errorf("%s: a third one may run", seal.FactsOf(alone).Lock.Mode)
			}
		}
		first()
		first()
		wantKnown(t, client, &m, "a", 30*time.Second)
		second()
		wantKnown(t, client, &m, "a", 0)
	})
}

// TestMemoryOfAnswers: an answer counts until the lease ends that it has named, or until the key is granted.
func TestMemoryOfAnswers(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		m.Refused("task", fmt.Errorf("asked: %w", &core.InProgressError{RetryAfter: 10 * time.Second}))
		m.Refused("lock", &core.NotAcquiredError{RetryAfter: 10 * time.Second})
		m.Refused("full", core.ErrNotAcquired)
		m.Refused("away", errAway)
		m.Refused("granted", nil)
		if err := m.Known(ask("lock", client.Read("lock")), errAway); err == nil {
			t.Error("a reader may run beside a writer")
		}
		time.Sleep(9 * time.Second)
		for key, left := range map[string]time.Duration{
			"task": time.Second, "lock": time.Second, "full": 0, "away": 0, "granted": 0,
		} {
			wantKnown(t, client, &m, key, left)
		}
		granted(t, &m, "task")()
		time.Sleep(time.Second)
		for _, key := range []string{"task", "lock"} {
			wantKnown(t, client, &m, key, 0)
		}
	})
}

// TestMemoryOfRecords: a key of which Redis has a record does not run in an outage, for as long as that lasts and ten minutes at
// most. It may be granted again, and locks have no records.
func TestMemoryOfRecords(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		m.Recorded("done", core.StateCompleted, nil, time.Hour)
		m.Recorded("brief", core.StateCompleted, nil, time.Minute)
		m.Recorded("released", core.StateNone, nil, time.Hour)
		m.Refused("told", &core.CompletedError{Record: core.Record{Retention: time.Hour}})
		m.Refused("unknown", &core.OutcomeUnknownError{Record: core.Record{Retention: time.Hour}})
		want := func(key string, want error) {
			t.Helper()
			if err := m.Known(ask(key, nil), errAway); !errors.Is(err, want) || IsOutage(err) {
				t.Errorf("%s: %v, want %v", key, err, want)
			}
			if err := m.Unrecorded(ask(key, nil)); err != nil {
				t.Errorf("%s: Redis cannot decide: %v", key, err)
			}
		}
		for range 2 {
			for _, key := range []string{"done", "told"} {
				want(key, core.ErrCompleted)
			}
			want("unknown", core.ErrOutcomeUnknown)
			want("released", nil)
			want("other", nil)
			if err := m.Known(ask("done", client.Mutex("done")), errAway); err != nil {
				t.Errorf("a lock has no record: %v", err)
			}
			time.Sleep(9 * time.Minute)
		}
		want("brief", nil)
		want("done", nil) // after 18 minutes
	})
}

// TestFingerprintsOfRecords: in an outage, another request under the key of a record is refused as one, as by Redis.
func TestFingerprintsOfRecords(t *testing.T) {
	t.Parallel()
	one, other := []byte("one"), []byte("other")
	var m memory
	m.Recorded("done", core.StateCompleted, one, time.Hour)
	m.Recorded("uncompared", core.StateCompleted, nil, time.Hour)
	m.Refused("told", &core.CompletedError{Record: core.Record{Fingerprint: one, Retention: time.Hour}})
	m.Refused("unknown", &core.OutcomeUnknownError{Record: core.Record{Fingerprint: one, Retention: time.Hour}})
	for _, test := range []struct {
		key         string
		fingerprint []byte
		want        error
	}{
		{"done", one, core.ErrCompleted},
		{"done", other, core.ErrFingerprintMismatch},
		{"done", nil, core.ErrCompleted},
		{"uncompared", other, core.ErrCompleted},
		{"told", one, core.ErrCompleted},
		{"told", other, core.ErrFingerprintMismatch},
		{"unknown", one, core.ErrOutcomeUnknown},
		{"unknown", other, core.ErrFingerprintMismatch},
	} {
		if err := m.Known(question{Key: test.key, Fingerprint: test.fingerprint}, errAway); !errors.Is(err, test.want) {
			t.Errorf("%s, %s: %v, want %v", test.key, test.fingerprint, err, test.want)
		}
	}
}

// TestMemoryFullOfRecords: keys that clients choose do not make it forget that another one took effect within ten minutes. Beyond its
// bound, no key runs without Redis that it does not know.
func TestMemoryFullOfRecords(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		record := func(from, to int) {
			for i := from; i < to; i++ {
				m.Recorded(fmt.Sprint(i), core.StateCompleted, nil, time.Hour)
			}
		}
		record(0, 500_000)
		wantKnown(t, client, &m, "new", 0)
		time.Sleep(9 * time.Minute)
		record(500_000, 500_001)
		for _, key := range []string{"0", "499999"} {
			wantEffect(t, &m, key, true)
		}
		wantFull(t, &m, "500000")
		wantFull(t, &m, "new")
		if err := m.Known(ask("new", client.Mutex("new")), errAway); err != nil {
			t.Errorf("a lock leaves no record: %v", err)
		}
		granted(t, &m, "0")()
		_, _ = m.Forget("1", func(bool) error { return nil })
		for _, key := range []string{"0", "1"} {
			wantFull(t, &m, key)
		}
		time.Sleep(time.Minute)
		record(500_001, 1_000_001) // the next ten minutes
		time.Sleep(8 * time.Minute)
		wantFull(t, &m, "new")
		time.Sleep(time.Minute)
		wantKnown(t, client, &m, "new", 0)
		wantKnown(t, client, &m, "0", 0)
		wantEffect(t, &m, "500001", true)
	})
}

// wantFull checks that a key may not run without Redis, because its end or its holder could not be remembered.
func wantFull(t *testing.T, m *memory, key string) {
	t.Helper()
	end, err := m.Enter(ask(key, nil), errAway)
	if !errors.Is(err, core.ErrUnavailable) || Busy(err) || end != nil || !strings.Contains(err.Error(), "not run without Redis") {
		t.Errorf("%s: %v, want that the memory is full", key, err)
	}
}

// TestMemoryFullOfHolders: keys that clients choose do not make it forget that a key is held. What has expired makes room.
func TestMemoryFullOfHolders(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		refused := &core.NotAcquiredError{RetryAfter: time.Second}
		for i := range 10_000 {
			m.Refused(fmt.Sprint(i), refused)
		}
		wantKnown(t, client, &m, "more", 0)
		m.Refused("more", refused)
		wantFull(t, &m, "more")
		wantKnown(t, client, &m, "1", time.Second)
		time.Sleep(time.Second)
		wantKnown(t, client, &m, "more", 0)
		m.Refused("later", refused)
		wantKnown(t, client, &m, "later", time.Second)
	})
}

// TestMemoryFullOfEnds: what has run without Redis is not forgotten before its time, so there is a bound for what may run.
func TestMemoryFullOfEnds(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	for _, most := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			m := memory{Most: most}
			most := cmp.Or(most, 10_000)
			for i := range most {
				end, err := m.Enter(ask(fmt.Sprint(i), nil), errAway)
				if err != nil {
					t.Fatalf("%d of %d: %v", i, most, err)
				}
				if i == most-1 {
					wantFull(t, &m, "while the last one runs")
				}
				m.Ended(fmt.Sprint(i), done())
				end()
			}
			wantFull(t, &m, "more")
			wantEffect(t, &m, "0", true)
			if err := m.Known(ask("more", client.Mutex("more")), errAway); err != nil {
				t.Errorf("a lock leaves no end: %v", err)
			}
			time.Sleep(10*time.Minute - time.Second)
			wantFull(t, &m, "more")
			wantEffect(t, &m, "0", true)
			time.Sleep(time.Second)
			wantKnown(t, client, &m, "more", 0)
		})
	}
}

// wantEffect checks whether a success without a record is known of.
func wantEffect(t *testing.T, m *memory, key string, want bool) {
	t.Helper()
	var done *core.CompletedError
	switch err := m.Known(ask(key, nil), errAway); {
	case errors.As(err, &done) != want:
		t.Errorf("%s: %v, want an effect: %v", key, err, want)
	case want && (IsOutage(err) || Busy(err) || !done.Record.Omitted || !strings.Contains(err.Error(), "away")):
		t.Errorf("%s: %v", key, err)
	}
}

// TestMemoryOfEffects: a success counts for as long as its record may be on its way, or until Redis grants the key.
func TestMemoryOfEffects(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		m.Ended("granted", done())
		m.Ended("done", done())
		granted(t, &m, "granted")()
		m.Refused("done", &core.InProgressError{RetryAfter: time.Second})
		time.Sleep(10*time.Minute - time.Second)
		wantEffect(t, &m, "granted", false)
		wantEffect(t, &m, "done", true)
		if err := m.Known(ask("done", client.Mutex("done")), errAway); err != nil {
			t.Errorf("a lock: %v", err)
		}
		time.Sleep(time.Second)
		wantEffect(t, &m, "done", false)
	})
}

// TestMemoryKeepsTheLongestTime: a refusal that arrives late does not shorten the time of another one. A run of this process
// is no lease of another holder.
func TestMemoryKeepsTheLongestTime(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		refused := func(left time.Duration) error { return &core.InProgressError{RetryAfter: left} }
		m.Refused("held", refused(30*time.Second))
		m.Refused("held", refused(time.Second))
		end := granted(t, &m, "here")
		m.Refused("here", refused(30*time.Second))
		end()
		wantKnown(t, client, &m, "held", 30*time.Second)
		wantKnown(t, client, &m, "here", 0)
	})
}

// TestMemoryFullOfRefusals: keys that clients choose do not crowd out an effect.
func TestMemoryFullOfRefusals(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m memory
		for i := range 10_000 {
			m.Refused(fmt.Sprint(i), &core.NotAcquiredError{RetryAfter: time.Second})
		}
		m.Refused("1", &core.NotAcquiredError{RetryAfter: time.Minute})
		m.Ended("done", done())
		wantKnown(t, client, &m, "1", time.Minute)
		wantEffect(t, &m, "done", true)
	})
}

// TestMemoryEntersOnce: of many calls that an outage ends together, as many begin as the lock lets run beside each other.
func TestMemoryEntersOnce(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	for most, lock := range map[int64]*core.Lock{1: nil, 2: client.Semaphore("key", 2), 100: client.Read("key")} {
		var m memory
		var entered atomic.Int64
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				end, err := m.Enter(ask("key", lock), errAway)
				if err == nil {
					entered.Add(1)
				} else if !Busy(err) || IsOutage(err) || end != nil {
					t.Errorf("of %d: %v", most, err)
				}
			})
		}
		calls.Wait()
		if n := entered.Load(); n != most {
			t.Errorf("%d entered, want %d", n, most)
		}
	}
}
