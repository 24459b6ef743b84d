package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// clientOf returns the UUID of the client that has made an owner.
func clientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}

// instanceKey returns the key of what a client says of itself.
func instanceKey(owner string) string { return "holdfast:client:{" + clientOf(owner) + "}" }

// awaitInstance waits until a refusal of the lock has the instance of its holder, and returns the error.
func awaitInstance(t *testing.T, refuse func() error) *core.NotAcquiredError {
	t.Helper()
	var busy *core.NotAcquiredError
	testkit.Eventually(t, within, "the instance of the holder", func() bool {
		err := refuse()
		if !errors.As(err, &busy) {
			t.Fatalf("error %v", err)
		}
		return busy.Instance != ""
	})
	return busy
}

// TestInstanceOfTheHolder: each kind of refusal names the holder at once, and the instance of its client once that is known.
func TestInstanceOfTheHolder(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ours := newClient(t, rdb, core.WithTTL(long), core.WithInstance("web-1:7"))
	theirs := newClient(t, rdb, core.WithTTL(long), core.WithInstance("web-2:8"))
	for name, kind := range map[string]func(*core.Client) core.Locker{
		"mutex":     func(c *core.Client) core.Locker { return c.Mutex("mutex") },
		"fair":      func(c *core.Client) core.Locker { return c.Fair("fair") },
		"write":     func(c *core.Client) core.Locker { return c.Write("write") },
		"semaphore": func(c *core.Client) core.Locker { return c.Semaphore("semaphore", 1) },
		"at once":   func(c *core.Client) core.Locker { return core.Multi(c.Mutex("{m}a"), c.Mutex("{m}b")) },
		"in turn":   func(c *core.Client) core.Locker { return core.Multi(c.Mutex("c"), c.Fair("d")) },
	} {
		lease := mustLock(t, kind(ours))
		_, err := kind(theirs).TryLock(t.Context())
		var busy *core.NotAcquiredError
		if !errors.As(err, &busy) || clientOf(busy.Holder) != clientOf(lease.Owner()) {
			t.Errorf("%s: %+v, held by %s", name, busy, lease.Owner())
		}
		busy = awaitInstance(t, func() error { _, err := kind(theirs).TryLock(t.Context()); return err })
		if busy.Instance != "web-1:7" || !strings.Contains(busy.Error(), "held by another owner of web-1:7, whose lease ends in") {
			t.Errorf("%s: %v", name, busy)
		}
	}
	mustBegin(t, ours.Once("once"))
	_, err := theirs.Once("once").Begin(t.Context())
	var running *core.InProgressError
	if !errors.As(err, &running) || running.Instance != "web-1:7" || clientOf(running.Holder) == "" {
		t.Errorf("%+v", running)
	}
}

// TestInstanceOfReaders: a writer is told one of the readers, and the first waiters of a fair lock the present holder.
func TestInstanceOfReaders(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ours := newClient(t, rdb, core.WithTTL(long), core.WithInstance("web-1:7"))
	theirs := newClient(t, rdb, core.WithTTL(long), core.WithInstance("web-2:8"))
	mustLock(t, ours.Read("name"), core.WithTTL(time.Minute))
	mustLock(t, ours.Read("name"))
	if busy := awaitInstance(t, func() error { _, err := theirs.Write("name").TryLock(t.Context()); return err }); busy.Instance != "web-1:7" {
		t.Errorf("%+v", busy)
	}
	done := lockLater(theirs.Write("name"))
	awaitPlaces(t, ours, "name", 1)
	var info core.Info
	testkit.Eventually(t, within, "the text of the waiter's client, which is written in the background", func() bool {
		var err error
		info, err = ours.Inspect(t.Context(), "name")
		return err == nil && info.Queue[0].Instance != ""
	})
	if len(info.Holders) != 2 || info.Holders[0].Instance != "web-1:7" || info.Queue[0].Instance != "web-2:8" {
		t.Errorf("%+v", info)
	}
	_ = theirs.Close()
	wantErr(t, receive(t, done), core.ErrClosed)
}

// awaitPlaces waits until so many are in the queue of a lock.
func awaitPlaces(t *testing.T, locks *core.Client, name string, n int) {
	t.Helper()
	testkit.Eventually(t, within, "the places in the queue", func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && info.Places == n
	})
}

// TestNoInstance: owners of WithOwner have none, nor have clients with an empty text, and neither costs a key.
func TestNoInstance(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	silent := newClient(t, rdb, core.WithTTL(long), core.WithInstance(""))
	named := mustLock(t, silent.Mutex("named"), core.WithOwner("Ada"))
	plain := mustLock(t, silent.Mutex("plain"))
	other := newClient(t, rdb, core.WithTTL(long))
	for _, lease := range []*core.Lease{named, plain} {
		for range 2 { // the second refusal comes after the question for the instance
			_, err := other.Mutex(lease.Name()).TryLock(t.Context())
			var busy *core.NotAcquiredError
			if !errors.As(err, &busy) || busy.Holder != lease.Owner() || busy.Instance != "" {
				t.Errorf("%+v", busy)
			}
		}
		info, err := other.Inspect(t.Context(), lease.Name())
		if err != nil || info.Holders[0].Instance != "" {
			t.Errorf("%+v, %v", info, err)
		}
	}
	if keys := rdb.Keys(t.Context(), "holdfast:client:*").Val(); len(keys) != 0 {
		t.Errorf("keys %q", keys)
	}
}

// TestInstanceIsChecked: what would break lines of a log, or is too long, is refused.
func TestInstanceIsChecked(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close() //nolint:errcheck // it has no connection
	for _, text := range []string{"a\nb", "naïve", "\x1b[31m", strings.Repeat("a", 129)} {
		_, err := core.New(rdb, core.WithInstance(text))
		wantErr(t, err, core.ErrInvalidOption)
		if err != nil && !strings.Contains(err.Error(), "WithInstance") {
			t.Errorf("%v does not name the option", err)
		}
	}
	_, err := core.New(rdb, core.WithInstance(strings.Repeat("a", 128)))
	wantErr(t, err, nil)
}

// TestInstanceOfARedlock: each server has it, so that any majority can tell it.
func TestInstanceOfARedlock(t *testing.T) {
	t.Parallel()
	three := startMasters(t, 3)
	ours := three.redlock(t, core.WithTTL(long), core.WithInstance("web-1:7"))
	theirs := three.redlock(t, core.WithTTL(long))
	lease := mustLock(t, ours.Mutex("name"))
	testkit.Eventually(t, within, "the key on all servers", func() bool { return three.holders(instanceKey(lease.Owner())) == 3 })
	busy := awaitInstance(t, func() error { _, err := theirs.Mutex("name").TryLock(t.Context()); return err })
	if busy.Instance != "web-1:7" || busy.Holder != lease.Owner() {
		t.Errorf("%+v", busy)
	}
	infos, err := theirs.Inspect(t.Context(), "name")
	for _, info := range infos {
		for _, h := range info.Holders {
			if h.Instance != "web-1:7" {
				t.Errorf("%+v, %v", info, err)
			}
		}
	}
}
