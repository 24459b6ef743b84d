package core_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// announcements counts the commands of a client that have the key of an instance.
type announcements struct {
	redis.Hook
	n atomic.Int32
}

func (a *announcements) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *announcements) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(fmt.Sprint(cmd.Args()...), "holdfast:client:") && cmd.Name() == "evalsha" {
			a.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (a *announcements) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
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
	held := mustLock(t, locks.Mutex("held"))
	for i := range 100 {
		unlock(t, mustLock(t, locks.Mutex(fmt.Sprint("name ", i))))
	}
	key := instanceKey(held.Owner())
	awaitLeft(t, look, key, 3*time.Minute)
	if n := counted.n.Load(); n != 1 {
		t.Errorf("written %d times", n)
	}
	unlock(t, mustLock(t, locks.Mutex("longer"), core.WithTTL(5*time.Hour)))
	awaitLeft(t, look, key, 5*time.Hour+4*time.Minute)
	mustLock(t, locks.Mutex("abandoned"), core.WithTTL(3*time.Minute)).Abandon()
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	awaitLeft(t, look, key, 5*time.Hour) // an abandoned lease may last as long
}

// awaitLeft waits until Redis keeps the key for about so long.
func awaitLeft(t *testing.T, rdb *redis.Client, key string, want time.Duration) {
	t.Helper()
	testkit.Eventually(t, within, fmt.Sprint("the key to be kept for ", want), func() bool {
		left := rdb.PTTL(context.Background(), key).Val()
		return left > want-time.Minute && left <= want
	})
}

// TestInstanceNeedsAGrantOrAWait: a refused TryLock writes nothing, a wait does.
func TestInstanceNeedsAGrantOrAWait(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	holder := mustLock(t, newClient(t, rdb, core.WithTTL(long)).Mutex("name"))
	locks := newClient(t, rdb, core.WithInstance("web-1:7"), core.WithTTL(long))
	_, err := locks.Mutex("name").TryLock(t.Context())
	wantErr(t, err, core.ErrNotAcquired)
	_, err = locks.Inspect(t.Context(), "name") // behind anything that the refusal had sent
	wantErr(t, err, nil)
	if keys := rdb.Keys(t.Context(), "holdfast:client:*").Val(); len(keys) != 0 {
		t.Errorf("keys %q", keys)
	}
	done := lockLater(locks.Mutex("name"))
	testkit.Eventually(t, within, "the key of the waiting client", func() bool {
		return len(rdb.Keys(context.Background(), "holdfast:client:*").Val()) == 1
	})
	unlock(t, holder)
	if err := receive(t, done); err != nil {
		t.Error(err)
	}
}

// TestInstanceIsRefused: a user without the right to the key locks as before, and the log says so once.
func TestInstanceIsRefused(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	setUser(t, server, []string{"~lock:*", "~holdfast:token*", "~holdfast:released*", "~holdfast:waiting*", "&*", "+@all"})
	log := new(record)
	locks := newClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }),
		core.WithInstance("web-1:7"),
		core.WithTTL(time.Hour), core.WithLogger(textLogger(log)))
	const line = "the instance of this client could not be written"
	for i := range 3 {
		lease := mustLock(t, locks.Mutex("name"), core.WithTTL(time.Duration(i+1)*2*time.Hour)) // longer each time, so it is written anew
		testkit.Eventually(t, within, "the warning", func() bool { return strings.Contains(log.String(), line) })
		unlock(t, lease)
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
	ours := newClient(t, cluster.Client(), core.WithTTL(long), core.WithInstance("web-1:7"))
	theirs := newClient(t, cluster.Client(), core.WithTTL(long))
	for i := range 5 {
		name := fmt.Sprint("name ", i)
		mustLock(t, ours.Mutex(name))
		busy := awaitInstance(t, func() error { _, err := theirs.Mutex(name).TryLock(t.Context()); return err })
		if busy.Instance != "web-1:7" {
			t.Errorf("%+v", busy)
		}
	}
}
