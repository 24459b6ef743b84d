package sentinel_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// replacements are the ways in which a master is replaced; what it has is on the replica by then.
var replacements = map[string]func(s *testkit.Sentinel) *testkit.Server{
	"planned": func(s *testkit.Sentinel) *testkit.Server { return s.Failover() },
	"crash": func(s *testkit.Sentinel) *testkit.Server {
		old := s.Master()
		old.Kill()
		return s.AwaitMaster(old)
	},
}

// joins counts how often a client asks for a place in a fair lock, or for the lock.
type joins struct{ n atomic.Int64 }

func (j *joins) DialHook(next redis.DialHook) redis.DialHook { return next }

func (j *joins) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		j.see(cmd)
		return next(ctx, cmd)
	}
}

func (j *joins) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			j.see(cmd)
		}
		return next(ctx, cmds)
	}
}

func (j *joins) see(cmd redis.Cmder) {
	if slices.Contains(cmd.Args(), any("fair")) {
		j.n.Add(1)
	}
}

// TestLocksFollowTheMaster replaces the master under leases and waiters whose state the replica has: leases stay, with
// their tokens; waiters hear the new master, which does not know a single script.
func TestLocksFollowTheMaster(t *testing.T) {
	t.Parallel()
	for kind, replace := range replacements {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := testkit.StartSentinel(t, testkit.DownAfter(time.Second))
			holder := coretest.NewClient(t, s.Client(), core.WithTTL(coretest.Long))
			rdb, asked := s.Client(), &joins{}
			rdb.AddHook(asked)
			other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			mutex, fair := coretest.MustLock(t, holder.Mutex("mutex")), coretest.MustLock(t, holder.Fair("fair"))
			first, next := coretest.LeaseLater(t, coretest.AskingAgain{Locker: other.Mutex("mutex")}), coretest.LeaseLater(t, coretest.AskingAgain{Locker: other.Fair("fair")})
			coretest.AwaitListeners(t, holder, "mutex", 1)
			coretest.AwaitQueue(t, holder, "fair", 1)
			s.AwaitInSync()

			now := replace(s)
			coretest.ExtendSoon(t, mutex)
			coretest.ExtendSoon(t, fair)
			there := now.Client()
			awaitSubscribed(t, there, "redisson_lock__channel:{lock:mutex}")
			awaitSubscribed(t, there, "redisson_lock__channel:{lock:fair}:*")
			coretest.AwaitQueue(t, coretest.NewClient(t, there), "fair", 1)

			coretest.Unlock(t, fair)
			handed := coretest.AwaitLease(t, next)
			wantPushed(t, holder, other, asked)
			coretest.Unlock(t, mutex)
			woken := coretest.AwaitLease(t, first)
			if handed.Token() <= fair.Token() || woken.Token() <= mutex.Token() {
				t.Error("tokens do not grow")
			}
			coretest.ExtendSoon(t, handed)
			coretest.Unlock(t, handed)
			coretest.Unlock(t, woken)
			if now.CommandStats()["eval"].Calls == 0 {
				t.Error("no script was sent to the new master: it was not replaced")
			}
		})
	}
}

// wantPushed hands a fair lock to a waiter many times. One that is notified asks once, for its place in line; one that finds
// out by a sign of life asks again. Some may do that on a busy machine.
func wantPushed(t *testing.T, holder, other *core.Client, asked *joins) {
	t.Helper()
	const rounds = 20
	before := asked.n.Load()
	for range rounds {
		held := coretest.MustLock(t, holder.Fair("pushed"))
		next := coretest.LeaseLater(t, other.Fair("pushed"))
		coretest.AwaitQueue(t, holder, "pushed", 1)
		coretest.Unlock(t, held)
		coretest.Unlock(t, coretest.AwaitLease(t, next))
	}
	if n := asked.n.Load() - before; n >= rounds*3/2 {
		t.Errorf("%d waiters asked %d times", rounds, n)
	}
}

// awaitSubscribed returns once a client listens to a channel that is like this.
func awaitSubscribed(t *testing.T, rdb *redis.Client, pattern string) {
	t.Helper()
	testkit.Eventually(t, coretest.Within, "somebody to listen to "+pattern, func() bool {
		return len(rdb.PubSubChannels(context.Background(), pattern).Val()) > 0
	})
}

// TestLostStateIsReported kills a master that has granted what its replica does not know: the holder is told at its next
// renewal, and the next token is greater.
func TestLostStateIsReported(t *testing.T) {
	t.Parallel()
	s := testkit.StartSentinel(t, testkit.DownAfter(time.Second))
	locks := coretest.NewClient(t, s.Client(), core.WithTTL(coretest.Long))
	other := coretest.NewClient(t, s.Client(), core.WithTTL(coretest.Long))
	kept := coretest.MustLock(t, locks.Fair("kept"))
	s.AwaitInSync()
	s.Servers[1].CutReplication()
	lost := coretest.MustLock(t, locks.Mutex("lost"), core.WithTTL(15*time.Second))
	s.Servers[0].Kill()
	s.AwaitMaster(s.Servers[0])
	again := coretest.MustLock(t, other.Mutex("lost"))
	if again.Token() <= lost.Token() {
		t.Errorf("token %d came after %d", again.Token(), lost.Token())
	}
	coretest.WaitFor(t, lost.Done(), "the holder to be told")
	coretest.WantErr(t, context.Cause(lost.Context()), core.ErrLeaseLost)
	coretest.WantErr(t, lost.Unlock(context.Background()), core.ErrNotHeld)
	coretest.ExtendSoon(t, kept)
	coretest.Unlock(t, kept)
	coretest.Unlock(t, again)
}

// TestAcknowledgedGrantOutlivesTheMaster: the same with an acknowledgement. Without the replica nothing is granted;
// what was granted before is known to the next master.
//
// The servers have a file, because the sentinels of a busy machine may make the old master the master again as soon as it is back. Without
// its data, it would know no lock.
func TestAcknowledgedGrantOutlivesTheMaster(t *testing.T) {
	t.Parallel()
	s := testkit.StartSentinel(t, testkit.DownAfter(time.Second), testkit.AOF())
	locks := coretest.NewClient(t, s.Client(), core.WithTTL(coretest.Long), core.WithReplicaAck(1, time.Second))
	kept := coretest.MustLock(t, locks.Mutex("kept"))
	s.Servers[1].CutReplication()
	_, err := locks.Mutex("refused").TryLock(context.Background(), core.WithReplicaAck(1, coretest.Soon))
	coretest.WantNotReplicated(t, err, 0, 1)
	s.Servers[0].Kill()
	now := s.AwaitMaster(s.Servers[0])
	if token := coretest.TokenOf(t, now.Client(), "lock:kept"); token != kept.Token() {
		t.Errorf("the new master knows token %d, want %d", token, kept.Token())
	}
	s.Servers[1].RestoreReplication()
	s.Servers[0].Restart() // as a replica, without which nothing is acknowledged
	s.AwaitInSync()
	coretest.ExtendSoon(t, kept)
	coretest.Unlock(t, kept)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("refused")))
}

// TestCallsDuringFailover: calls that are under way while the master goes get the lock, or are told of an outage, and
// leave nothing behind.
func TestCallsDuringFailover(t *testing.T) {
	t.Parallel()
	for kind, replace := range replacements {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := testkit.StartSentinel(t, testkit.DownAfter(time.Second))
			rdb := s.Client()
			locks := coretest.NewClient(t, rdb, core.WithTTL(5*time.Second), core.WithLogger(nil))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var ended []<-chan struct{}
			var granted atomic.Int64
			for _, lock := range coretest.Locks(locks) {
				done := make(chan struct{})
				ended = append(ended, done)
				go func() {
					defer close(done)
					for ctx.Err() == nil {
						lease, err := lock.Lock(ctx, core.WithWait(100*time.Millisecond))
						if err == nil {
							granted.Add(1)
							err = lease.Unlock(context.Background())
						}
						if err != nil && ctx.Err() == nil {
							allowed(t, lock.Name(), err)
						}
					}
				}()
			}
			testkit.Eventually(t, coretest.Within, "some grants", func() bool { return granted.Load() > 20 })
			replace(s)
			before := granted.Load()
			testkit.Eventually(t, coretest.Within, "grants by the new master", func() bool { return granted.Load() > before+20 })
			cancel()
			for _, done := range ended {
				coretest.WaitFor(t, done, "the calls to return")
			}
			coretest.AwaitTidy(t, rdb)
		})
	}
}

// allowed checks an error that a call may return while the master is replaced. A lock whose release was lost stays
// held, one whose grant was lost is not held any more.
func allowed(t *testing.T, name string, err error) {
	t.Helper()
	for _, target := range []error{core.ErrUnavailable, core.ErrNotAcquired, core.ErrNotHeld} {
		if errors.Is(err, target) {
			return
		}
	}
	t.Errorf("%s: %v", name, err)
}
