package readwrite_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// tokenLag is how much earlier than its grant a token may be, in microseconds, see core/internal/script/lua/lock/compact_grant.lua.
const tokenLag = 10_000

// readWrite is a read-write lock, and what its turns must not be.
type readWrite struct {
	read, write func(*core.Client) *core.Lock
	breaches    func([]coretest.LocalWaiter) []string
}

var readWrites = map[string]readWrite{
	"preferring": {
		read:     func(c *core.Client) *core.Lock { return c.Read("name") },
		write:    func(c *core.Client) *core.Lock { return c.Write("name") },
		breaches: coretest.Unruly,
	},
	"fair": {
		read:     func(c *core.Client) *core.Lock { return c.FairRead("name") },
		write:    func(c *core.Client) *core.Lock { return c.FairWrite("name") },
		breaches: coretest.Overtakers,
	},
}

// TestReadersAndWritersTakeTurns sends streams of both against one lock. A writer must get in as soon as those that
// read when it came have left, a reader after one write at most, or in the order of arrival; whatever the streams.
func TestReadersAndWritersTakeTurns(t *testing.T) {
	t.Parallel()
	for name, kind := range readWrites {
		for _, streams := range []struct{ readers, writers int }{{24, 1}, {8, 8}, {1, 8}} {
			t.Run(fmt.Sprintf("%s/%d readers %d writers", name, streams.readers, streams.writers), func(t *testing.T) {
				t.Parallel()
				turns := streamReadersAndWriters(t, kind, streams.readers, streams.writers)
				for _, breach := range kind.breaches(turns) {
					t.Error(breach)
				}
				for _, overlap := range overlaps(turns) {
					t.Error(overlap)
				}
			})
		}
	}
}

// streamReadersAndWriters returns what happened until there were some dozens of reads and of writes.
func streamReadersAndWriters(t *testing.T, kind readWrite, readers, writers int) []coretest.LocalWaiter {
	t.Helper()
	server := testkit.Start(t)
	ledger := coretest.NewLedger(t, server.Client(), "name")
	ctx, stop := context.WithCancel(context.Background())
	var clients [4]*core.Client
	for i := range clients {
		clients[i] = coretest.NewClient(t, server.Client(), ledger.Hooks())
	}
	var reads, writes atomic.Int64
	var all sync.WaitGroup
	stream := func(n int, side func(*core.Client) *core.Lock, by coretest.LocalWaiter, done *atomic.Int64) {
		for i := range n {
			lock := side(clients[i%len(clients)])
			all.Go(func() {
				for ledger.Pass(ctx, lock, by, func() { time.Sleep(time.Millisecond) }) == nil {
					done.Add(1)
				}
			})
		}
	}
	stream(readers, kind.read, coretest.LocalWaiter{}, &reads)
	stream(writers, kind.write, coretest.LocalWaiter{Write: true}, &writes)
	defer all.Wait()
	defer stop()
	testkit.Eventually(t, 3*coretest.Within, "dozens of turns", func() bool { return min(reads.Load(), writes.Load()) >= 30 })
	end := ledger.Now()
	stop()
	all.Wait()
	// What was granted at the moment of the end, and given up again, has left no trace but its effects.
	return slices.DeleteFunc(ledger.History(t), func(turn coretest.LocalWaiter) bool { return turn.Token > end-tokenLag })
}

// overlaps lists the turns that overlapped although one of them wrote.
func overlaps(turns []coretest.LocalWaiter) (found []string) {
	for i, a := range turns {
		for _, b := range turns[i+1:] {
			if (a.Write || b.Write) && a.Entered.Before(b.Left) && b.Entered.Before(a.Left) {
				found = append(found, fmt.Sprintf("%+v and %+v were inside together", a, b))
			}
		}
	}
	return found
}

// TestReadersTurnAfterAMinimumTime: a write that is unlocked stays taken for its minimum time. The readers that waited for
// it go before the writer that came earlier.
func TestReadersTurnAfterAMinimumTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	queued := func(n int) func() bool {
		return func() bool {
			info, err := locks.Inspect(ctx, "name")
			return err == nil && len(info.Queue) == n
		}
	}
	holder := coretest.MustLock(t, locks.Write("name"), core.WithTTL(coretest.Long), core.WithMinHold(time.Minute))
	entered, leave := make(chan string, 2), make(chan struct{})
	var all sync.WaitGroup
	enter := func(kind string, l *core.Lock) {
		lease, err := l.Lock(ctx, core.WithTTL(coretest.Long))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			return
		}
		entered <- kind
		<-leave
		_ = lease.Unlock(ctx)
	}
	all.Go(func() { enter("writer", locks.Write("name")) })
	testkit.Eventually(t, coretest.Within, "a writer to wait", queued(1))
	all.Go(func() { enter("reader", locks.Read("name")) })
	testkit.Eventually(t, coretest.Within, "a reader to wait", queued(2))
	coretest.Unlock(t, holder)
	server.Client().PExpire(ctx, "lock:name", time.Millisecond) // the minute is over
	if first := <-entered; first != "reader" {
		t.Errorf("the %s was first", first)
	}
	close(leave)
	all.Wait()
}
