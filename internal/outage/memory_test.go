package outage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
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

// wantKnown checks that both questions have the same answer, nil for a key that is not in use.
func wantKnown(t *testing.T, client *core.Client, m *outage.Memory, key string, left time.Duration) {
	t.Helper()
	record, lock := m.Record(key, errAway), m.Lock(key, client.Mutex(key), errAway)
	if left == 0 {
		if record != nil || lock != nil {
			t.Errorf("%s: %v, %v, want nothing known", key, record, lock)
		}
		return
	}
	var running *core.InProgressError
	if !errors.As(record, &running) || running.RetryAfter != left || !outage.Busy(record) || outage.Is(record) {
		t.Errorf("%s: record %v, want %v left", key, record, left)
	}
	var held *core.NotAcquiredError
	if !errors.As(lock, &held) || held.RetryAfter != left || !outage.Busy(lock) || outage.Is(lock) {
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
		var m outage.Memory
		wantKnown(t, client, &m, "a", 0)
		first, second := m.Run("a"), m.Run("a")
		wantKnown(t, client, &m, "a", 30*time.Second)
		wantKnown(t, client, &m, "b", 0)
		for _, beside := range []core.Locker{client.Semaphore("a", 3), client.Read("a"), client.FairRead("a")} {
			if err := m.Lock("a", beside, errAway); err != nil {
				t.Errorf("%s: a third one may not run: %v", core.ModeOf(beside), err)
			}
		}
		for _, alone := range []core.Locker{client.Semaphore("a", 2), client.Write("a"), client.Fair("a")} {
			if err := m.Lock("a", alone, errAway); err == nil {
				t.Errorf("%s: a third one may run", core.ModeOf(alone))
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
		var m outage.Memory
		m.Refused("task", fmt.Errorf("asked: %w", &core.InProgressError{RetryAfter: 10 * time.Second}))
		m.Refused("lock", &core.NotAcquiredError{RetryAfter: 10 * time.Second})
		m.Refused("full", core.ErrNotAcquired)
		m.Refused("away", errAway)
		m.Refused("granted", nil)
		if err := m.Lock("lock", client.Read("lock"), errAway); err == nil {
			t.Error("a reader may run beside a writer")
		}
		m.Unconfirmed("done")
		time.Sleep(9 * time.Second)
		for key, left := range map[string]time.Duration{
			"task": time.Second, "lock": time.Second, "full": 0, "away": 0, "granted": 0, "done": outage.PendingEnd - 9*time.Second,
		} {
			wantKnown(t, client, &m, key, left)
		}
		m.Run("task")()
		time.Sleep(time.Second)
		for _, key := range []string{"task", "lock"} {
			wantKnown(t, client, &m, key, 0)
		}
		time.Sleep(outage.PendingEnd)
		wantKnown(t, client, &m, "done", 0)
	})
}

// TestMemoryIsBounded: keys that clients choose do not fill it. What has expired makes room.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	synctest.Test(t, func(t *testing.T) {
		var m outage.Memory
		refused := &core.NotAcquiredError{RetryAfter: time.Second}
		for i := range 10_000 {
			m.Refused(fmt.Sprint(i), refused)
		}
		m.Refused("more", refused)
		wantKnown(t, client, &m, "more", 0)
		time.Sleep(time.Second)
		m.Refused("later", refused)
		wantKnown(t, client, &m, "later", time.Second)
	})
}
