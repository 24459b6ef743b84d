package release_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// releases counts the goroutines that send releases again.
func releases() int {
	stacks := make([]byte, 16<<20)
	text := string(stacks[:runtime.Stack(stacks, true)])
	return strings.Count(text, "transport.(*Pending).run(")
}

// tryMany calls TryLock on many names side by side, and returns the errors.
func tryMany(locks *core.Client, n int, within time.Duration) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			_, errs[i] = locks.Mutex(fmt.Sprint("name", i)).TryLock(ctx)
		})
	}
	all.Wait()
	return errs
}

// open is a circuit breaker that lets nothing through once it is open.
type open struct{ refused atomic.Int64 }

var errOpen = errors.New("circuit open")

func (o *open) Allow() error {
	o.refused.Add(1)
	return errOpen
}

func (*open) ReportResult(error) {}

// refusing is a hook that refuses scripts, and looks at their arguments as a tracing hook does.
type refusing struct{ coretest.Witness }

func (r *refusing) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		r.Seen.Add(1)
		_ = fmt.Sprint(cmd.Args()...)
		cmd.SetErr(errOpen)
		return errOpen
	}
}

func (r *refusing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			r.Seen.Add(1)
			_ = cmd.String()
			cmd.SetErr(errOpen)
		}
		return errOpen
	}
}

// TestRefusedCallsLeaveNothing: a command that has not run is not taken back.
func TestRefusedCallsLeaveNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	breaker, hook := new(open), new(refusing)
	hooked := server.Client()
	hooked.AddHook(hook)
	renamed := testkit.Start(t)
	renamed.Client().Do(ctx, "ACL", "SETUSER", "default", "-evalsha", "-eval")
	for name, c := range map[string]struct {
		rdb    *redis.Client
		target error
		sent   func() int64
	}{
		"keys":     {coretest.Restricted(t, server, "resetkeys", "~other", "+@all"), core.ErrPermission, rejected(server)},
		"commands": {renamed.Client(), core.ErrPermission, rejected(renamed)},
		"limiter":  {server.Client(func(o *redis.Options) { o.Limiter = breaker }), core.ErrUnavailable, breaker.refused.Load},
		"hook":     {hooked, core.ErrUnavailable, hook.Seen.Load},
	} {
		t.Run(name, func(t *testing.T) {
			locks, err := core.New(c.rdb, core.WithLogger(nil))
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range tryMany(locks, 100, coretest.Within) {
				coretest.WantErr(t, err, c.target)
			}
			before := c.sent()
			if err := locks.Close(); err != nil { // it waits for what continues in the background
				t.Error(err)
			}
			if again := c.sent() - before; again != 0 {
				t.Errorf("%d commands followed in the background", again)
			}
		})
	}
}

// rejected counts scripts that a server has refused before it ran them.
func rejected(s *testkit.Server) func() int64 {
	return func() int64 {
		stats := s.CommandStats()
		return stats["evalsha"].Rejected + stats["eval"].Rejected
	}
}

// TestFrozenServerCostsOneGoroutine: however many calls have failed, one goroutine takes back what they may come to.
func TestFrozenServerCostsOneGoroutine(t *testing.T) {
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long), core.WithLogger(nil))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	server.Pause()
	const calls = 300
	for _, err := range tryMany(locks, calls, 500*time.Millisecond) {
		coretest.WantErr(t, err, core.ErrUnavailable)
	}
	if n := releases(); n != 1 {
		t.Errorf("%d goroutines send releases again", n)
	}
	server.Resume()
	testkit.Eventually(t, coretest.Within, "what the calls have come to, to be taken back", func() bool {
		return releases() == 0 && len(rdb.Keys(context.Background(), "lock:*").Val()) == 0
	})
	for _, err := range tryMany(locks, calls, coretest.Within) {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestFoundHoldIsForgottenSoon: the release of a call that gave up has found its hold, so no request of it is on its way.
func TestFoundHoldIsForgottenSoon(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay := server.Relay()
	// Without the direct path, which would send the request twice, and with no connection for INFO.
	once := func(o *redis.Options) { o.ReadTimeout = coretest.Within }
	plain := struct{ redis.UniversalClient }{relay.Client(once)}
	locks, rdb := coretest.NewClient(t, plain, core.WithLogger(nil)), server.Client()
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	// Only the grant loses its answer: a release without one would be repeated, and would not find the hold then.
	relay.LoseReplies("lock:name", 1, testkit.Silent)
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := locks.Mutex("name").Lock(ended)
		done <- err
	}()
	testkit.Eventually(t, coretest.Within, "the hold to be granted", func() bool { return rdb.Exists(ctx, "lock:name").Val() == 1 })
	cancel()
	coretest.WantErr(t, coretest.Receive(t, done), context.Canceled)
	coretest.Gone(t, rdb, "lock:name")
	for _, key := range rdb.Keys(ctx, "holdfast:released*").Val() {
		if rest := rdb.PTTL(ctx, key).Val(); rest > 15*time.Second {
			t.Errorf("%s is kept for %v", key, rest)
		}
	}
}

// TestRefusedReleaseDelaysNoOther: a release that the server continues refusing waits by itself.
func TestRefusedReleaseDelaysNoOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all"), core.WithTTL(coretest.Long), core.WithLogger(nil))
	stuck := coretest.MustLock(t, locks.Mutex("stuck"))
	rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "resetkeys", "~lock:free", "~holdfast:*")
	if err := stuck.Unlock(ctx); !errors.Is(err, core.ErrPermission) {
		t.Errorf("unlock without the right to the key: %v", err)
	}
	free := coretest.MustLock(t, locks.Mutex("free"))
	coretest.Unlock(t, free)
	rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "allkeys")
	coretest.Gone(t, rdb, "lock:stuck")
}

// TestCloseDoesNotHurryARefusal: what a server refuses at once is sent with the same pauses while a client closes.
func TestCloseDoesNotHurryARefusal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	breaker := new(breaker)
	locks, err := core.New(server.Client(func(o *redis.Options) { o.Limiter = breaker }), core.WithLogger(nil), core.WithTTL(coretest.Long))
	if err != nil {
		t.Fatal(err)
	}
	lease := coretest.MustLock(t, locks.Mutex("name"))
	breaker.open.Store(true)
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrUnavailable)
	before := breaker.refused.Load()
	_ = locks.Close() // some seconds later it does without
	if sent := breaker.refused.Load() - before; sent > 200 {
		t.Errorf("%d commands while the client closed", sent)
	}
}

// breaker is a limiter that can be opened.
type breaker struct {
	open    atomic.Bool
	refused atomic.Int64
}

func (b *breaker) Allow() error {
	if !b.open.Load() {
		return nil
	}
	b.refused.Add(1)
	return errOpen
}

func (*breaker) ReportResult(error) {}

// TestNothingIsLeftWithoutARight: a reader whose user lacks a right is refused before anything is written.
func TestNothingIsLeftWithoutARight(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	for _, right := range []string{"zrevrange", "zadd", "hset", "pexpire", "set", "zscore", "zcount", "hmget"} {
		user := coretest.Restricted(t, server, "+@all", "-"+right)
		locks := coretest.NewClient(t, user, core.WithLogger(nil), core.WithTTL(coretest.Long))
		for name, lock := range coretest.Strategies(locks) {
			lease, err := lock(right + name).TryLock(ctx)
			if err == nil {
				_ = lease.Unlock(ctx) // which may need the right
				continue
			}
			if n := server.Client().Exists(ctx, "lock:"+right+name).Val(); n != 0 {
				t.Errorf("%s without %s: %v, and Redis has the lock", name, right, err)
			}
		}
	}
}
