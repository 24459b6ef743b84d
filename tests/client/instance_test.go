package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// clientOf returns the UUID of the client that has made an owner.
func clientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}

// instanceKey returns the key of what a client says of itself.
func instanceKey(owner string) string { return "holdfast:client:{" + clientOf(owner) + "}" }

// TestInstanceOfTheHolder: each kind of refusal names the holder at once, and the instance of its client once that is known.
func TestInstanceOfTheHolder(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ours := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	theirs := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-2:8"))
	for name, kind := range map[string]func(*core.Client) *core.Lock{
		"mutex":     func(c *core.Client) *core.Lock { return c.Mutex("mutex") },
		"fair":      func(c *core.Client) *core.Lock { return c.Fair("fair") },
		"write":     func(c *core.Client) *core.Lock { return c.Write("write") },
		"semaphore": func(c *core.Client) *core.Lock { return c.Semaphore("semaphore", 1) },
		"at once":   func(c *core.Client) *core.Lock { return core.Multi(c.Mutex("{m}a"), c.Mutex("{m}b")) },
		"in turn":   func(c *core.Client) *core.Lock { return core.Multi(c.Mutex("c"), c.Fair("d")) },
	} {
		lease := coretest.MustLock(t, kind(ours))
		_, err := kind(theirs).TryLock(t.Context())
		var busy *core.NotAcquiredError
		if !errors.As(err, &busy) || clientOf(busy.Holder) != clientOf(lease.Owner()) {
			t.Errorf("%s: %+v, held by %s", name, busy, lease.Owner())
		}
		busy = coretest.AwaitInstance(t, func() error { _, err := kind(theirs).TryLock(t.Context()); return err })
		if busy.Instance != "web-1:7" || !strings.Contains(busy.Error(), "held by another owner of web-1:7, whose lease ends in") {
			t.Errorf("%s: %v", name, busy)
		}
	}
	coretest.MustBegin(t, ours.Once("once"))
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
	ours := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	theirs := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-2:8"))
	coretest.MustLock(t, ours.Read("name"), core.WithTTL(time.Minute))
	coretest.MustLock(t, ours.Read("name"))
	if busy := coretest.AwaitInstance(t, func() error { _, err := theirs.Write("name").TryLock(t.Context()); return err }); busy.Instance != "web-1:7" {
		t.Errorf("%+v", busy)
	}
	done := coretest.LockLater(theirs.Write("name"))
	awaitPlaces(t, ours, "name", 1)
	var info core.Info
	testkit.Eventually(t, coretest.Within, "the text of the waiter's client, which is written in the background", func() bool {
		var err error
		info, err = ours.Inspect(t.Context(), "name")
		return err == nil && info.Queue[0].Instance != ""
	})
	if len(info.Holders) != 2 || info.Holders[0].Instance != "web-1:7" || info.Queue[0].Instance != "web-2:8" {
		t.Errorf("%+v", info)
	}
	_ = theirs.Close()
	coretest.WantErr(t, coretest.Receive(t, done), core.ErrClosed)
}

// awaitPlaces waits until so many are in the queue of a lock.
func awaitPlaces(t *testing.T, locks *core.Client, name string, n int) {
	t.Helper()
	testkit.Eventually(t, coretest.Within, "the places in the queue", func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && info.Places == n
	})
}

// TestNoInstance: owners of WithOwner have none, nor have clients with an empty text, and neither costs a key.
func TestNoInstance(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	silent := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance(""))
	named := coretest.MustLock(t, silent.Mutex("named"), core.WithOwner("Ada"))
	plain := coretest.MustLock(t, silent.Mutex("plain"))
	other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
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
		coretest.WantErr(t, err, core.ErrInvalidOption)
		if err != nil && !strings.Contains(err.Error(), "WithInstance") {
			t.Errorf("%v does not name the option", err)
		}
	}
	_, err := core.New(rdb, core.WithInstance(strings.Repeat("a", 128)))
	coretest.WantErr(t, err, nil)
}

// TestInstanceOfARedlock: each server has it, so that any majority can tell it.
func TestInstanceOfARedlock(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	ours := three.Redlock(t, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	theirs := three.Redlock(t, core.WithTTL(coretest.Long))
	lease := coretest.MustLock(t, ours.Mutex("name"))
	testkit.Eventually(t, coretest.Within, "the key on all servers", func() bool { return three.Holders(instanceKey(lease.Owner())) == 3 })
	busy := coretest.AwaitInstance(t, func() error { _, err := theirs.Mutex("name").TryLock(t.Context()); return err })
	if busy.Instance != "web-1:7" || busy.Holder != lease.Owner() {
		t.Errorf("%+v", busy)
	}
	for _, server := range three.Servers {
		info, err := coretest.NewClient(t, server.Client()).Inspect(t.Context(), "name")
		for _, h := range info.Holders {
			if h.Instance != "web-1:7" {
				t.Errorf("%+v, %v", info, err)
			}
		}
	}
}

// TestInstanceOfShortProcess: a client that is closed at once, and its client of go-redis right after it, leaves its instance
// for the longest TTL. Few of them may have had no answer in time: the machine is busy.
func TestInstanceOfShortProcess(t *testing.T) {
	t.Parallel()
	const clients, ttl = 20, time.Minute
	server := testkit.Start(t)
	for range clients {
		rdb := server.Client()
		locks, err := core.New(rdb, core.WithTTL(ttl))
		if err != nil {
			t.Fatal(err)
		}
		if err := locks.Mutex("name").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
		_ = rdb.Close()
	}
	rdb, soon := server.Client(), 0
	keys := rdb.Keys(t.Context(), "holdfast:client:*").Val()
	for _, key := range keys {
		left := rdb.PTTL(t.Context(), key).Val()
		if left > ttl+2*time.Minute {
			t.Errorf("kept for %v after a short run", left)
		}
		if left <= ttl {
			soon++
		}
	}
	if len(keys) < clients/2 || soon < len(keys)-clients/4 {
		t.Errorf("%d clients have left %d instances, only %d of them for the TTL", clients, len(keys), soon)
	}
}

// TestInstanceOfKilledProcess: without a Close, the instance lasts little longer than the longest TTL at first.
func TestInstanceOfKilledProcess(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	lease := coretest.MustLock(t, coretest.NewClient(t, rdb, core.WithTTL(time.Minute), core.WithInstance("web-1:7")).Mutex("name"))
	awaitLeft(t, rdb, instanceKey(lease.Owner()), 3*time.Minute)
}

// TestCloseOfIdleClientBesideFrozenRedis: Close does not wait for the end of the instance without a bound.
func TestCloseOfIdleClientBesideFrozenRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = -1 })
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	awaitLeft(t, server.Client(), instanceKey(lease.Owner()), coretest.Long+2*time.Minute)
	coretest.Unlock(t, lease)
	server.Pause()
	defer server.Resume()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		coretest.WantErr(t, locks.Close(), nil)
	}()
	coretest.WaitFor(t, closed, "Close")
}

// announcements counts the commands of a client that have the key of an instance.
type announcements struct {
	redis.Hook
	n atomic.Int32
}

func (a *announcements) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *announcements) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a.count(cmd)
		return next(ctx, cmd)
	}
}

func (a *announcements) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		a.count(cmds...)
		return next(ctx, cmds)
	}
}

func (a *announcements) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if strings.Contains(fmt.Sprint(cmd.Args()...), "holdfast:client:") && cmd.Name() == "evalsha" {
			a.n.Add(1)
		}
	}
}

// TestInstanceIsWrittenOnce: not for each lock, and with an expiry that outlasts the longest lease. It soon expires after
// Close.
func TestInstanceIsWrittenOnce(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	counted := new(announcements)
	rdb, look := server.Client(), server.Client()
	rdb.AddHook(counted)
	locks, err := core.New(rdb, core.WithTTL(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	held := coretest.MustLock(t, locks.Mutex("held"))
	for i := range 100 {
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex(fmt.Sprint("name ", i))))
	}
	key := instanceKey(held.Owner())
	awaitLeft(t, look, key, 3*time.Minute)
	if n := counted.n.Load(); n != 1 {
		t.Errorf("written %d times", n)
	}
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("longer"), core.WithTTL(5*time.Hour)))
	awaitLeft(t, look, key, 5*time.Hour+4*time.Minute)
	coretest.MustLock(t, locks.Mutex("abandoned"), core.WithTTL(3*time.Minute)).Abandon()
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	awaitLeft(t, look, key, 5*time.Hour) // an abandoned lease may last as long
}

// awaitLeft waits until Redis keeps the key for about so long.
func awaitLeft(t *testing.T, rdb *redis.Client, key string, want time.Duration) {
	t.Helper()
	testkit.Eventually(t, coretest.Within, fmt.Sprint("the key to be kept for ", want), func() bool {
		left := rdb.PTTL(context.Background(), key).Val()
		return left > want-time.Minute && left <= want
	})
}

// TestInstanceNeedsAGrantOrAWait: a refused TryLock writes nothing, a wait does.
func TestInstanceNeedsAGrantOrAWait(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	holder := coretest.MustLock(t, coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Mutex("name"))
	locks := coretest.NewClient(t, rdb, core.WithInstance("web-1:7"), core.WithTTL(coretest.Long))
	_, err := locks.Mutex("name").TryLock(t.Context())
	coretest.WantErr(t, err, core.ErrNotAcquired)
	_, err = locks.Inspect(t.Context(), "name") // behind anything that the refusal had sent
	coretest.WantErr(t, err, nil)
	if keys := rdb.Keys(t.Context(), "holdfast:client:*").Val(); len(keys) != 0 {
		t.Errorf("keys %q", keys)
	}
	done := coretest.LockLater(locks.Mutex("name"))
	testkit.Eventually(t, coretest.Within, "the key of the waiting client", func() bool {
		return len(rdb.Keys(context.Background(), "holdfast:client:*").Val()) == 1
	})
	coretest.Unlock(t, holder)
	if err := coretest.Receive(t, done); err != nil {
		t.Error(err)
	}
}

// TestInstanceIsRefused: a user without the right to the key locks as before, and the log says so once.
func TestInstanceIsRefused(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	coretest.SetUser(t, server, []string{"~lock:*", "~holdfast:token*", "~holdfast:released*", "~holdfast:waiting*", "~holdfast:forced*", "&*", "+@all"})
	log := new(coretest.Record)
	locks := coretest.NewClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }),
		core.WithInstance("web-1:7"),
		core.WithTTL(time.Hour), core.WithLogger(coretest.TextLogger(log)))
	const line = "the entry of this client's instance could not be written"
	for i := range 3 {
		lease := coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(time.Duration(i+1)*2*time.Hour)) // longer each time, so it is written anew
		testkit.Eventually(t, coretest.Within, "the warning", func() bool { return strings.Contains(log.String(), line) })
		coretest.Unlock(t, lease)
	}
	_ = locks.Close()
	if n := strings.Count(log.String(), line); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

// TestInstanceInACluster: the keys of clients and locks are in different slots, and no script needs both.
func TestInstanceInACluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	ours := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	theirs := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long))
	for i := range 5 {
		name := fmt.Sprint("name ", i)
		coretest.MustLock(t, ours.Mutex(name))
		busy := coretest.AwaitInstance(t, func() error { _, err := theirs.Mutex(name).TryLock(t.Context()); return err })
		if busy.Instance != "web-1:7" {
			t.Errorf("%+v", busy)
		}
	}
}
