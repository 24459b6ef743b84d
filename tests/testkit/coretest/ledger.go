package coretest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// LocalWaiter is one passage through a lock, in microseconds of Redis's clock, which is what numbers in line and tokens are
// made of. A token may be tokenLag earlier than its grant.
type LocalWaiter struct {
	Who    int  // as the test counts
	Write  bool // as opposed to a share
	Owner  string
	Number int64 // in line; a time not after the request, if the lock was granted at once; 0 if unknown
	Token  int64
	To     int64 // the release was over by then

	Asked, Entered, Left time.Time // by the client's clock
}

// ledger records the turns in one lock, and when they came: the order of arrival is decided in Redis, so it is
// read there, from the line, over and over while the test runs.
type ledger struct {
	rdb  *redis.Client
	name string

	mu      sync.Mutex
	turns   []LocalWaiter
	waited  map[string]bool  // by owner
	numbers map[string]int64 // the same
}

// NewLedger begins to watch the line.
func NewLedger(t testing.TB, rdb *redis.Client, name string) *ledger {
	l := &ledger{rdb: rdb, name: name, waited: make(map[string]bool), numbers: make(map[string]int64)}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for ticker := time.NewTicker(4 * time.Millisecond); ; <-ticker.C {
			select {
			case <-stop:
				ticker.Stop()
				return
			default:
				l.look()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return l
}

// look notes the numbers of those in line; an owner that enters once is named like its hold.
func (l *ledger) look() {
	for _, queue := range []string{"exclusive_queue", "shared_queue"} {
		entries := l.rdb.ZRangeWithScores(context.Background(), "holdfast:"+queue+":{lock:"+l.name+"}", 0, -1).Val()
		l.mu.Lock()
		for _, e := range entries {
			l.numbers[e.Member.(string)] = int64(e.Score)
		}
		l.mu.Unlock()
	}
}

// Hooks lets the ledger know which callers had to wait.
func (l *ledger) Hooks() core.Option {
	return core.WithHooks(core.Hooks{Wait: func(_ context.Context, w core.Wait) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waited[w.Owner] = true
	}})
}

// Pass locks, does something, unlocks, and writes that down.
func (l *ledger) Pass(ctx context.Context, lock *core.Lock, by LocalWaiter, do func()) error {
	by.Asked = time.Now()
	lease, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	by.Entered, by.Owner, by.Token = time.Now(), lease.Owner(), lease.Token()
	do()
	by.Left = time.Now()
	if err := lease.Unlock(context.Background()); err != nil {
		return err
	}
	by.To = l.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns = append(l.turns, by)
	return nil
}

// Now returns the time by Redis's clock.
func (l *ledger) Now() int64 {
	now, _ := l.rdb.Time(context.Background()).Result()
	return now.UnixMicro()
}

// History returns all turns in the order of their tokens. The test fails if it is known of too few when they came.
func (l *ledger) History(t testing.TB) []LocalWaiter {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	turns := slices.SortedFunc(slices.Values(l.turns), func(a, b LocalWaiter) int { return cmp.Compare(a.Token, b.Token) })
	unknown, latest := 0, int64(0)
	for i, turn := range turns {
		switch number, seen := l.numbers[turn.Owner]; {
		case seen:
			turns[i].Number = number
		case l.waited[turn.Owner]:
			unknown++
		default:
			turns[i].Number = max(turn.Token, latest+1) // it came after those that were granted the lock before
		}
		latest = max(latest, turns[i].Number, turn.Token)
	}
	if unknown > len(turns)*9/10 { // a busy machine looks less often
		t.Errorf("%d of %d turns were not seen in line", unknown, len(turns))
	}
	return turns
}

// Overtakers lists the turns that were granted the lock before one that had come earlier. The turns are in the order of their
// tokens.
func Overtakers(turns []LocalWaiter) (found []string) {
	var earliest LocalWaiter // of those that were granted the lock later
	for _, turn := range slices.Backward(turns) {
		switch {
		case turn.Number == 0:
		case earliest.Number == 0 || turn.Number < earliest.Number:
			earliest = turn
		default:
			found = append(found, fmt.Sprintf("%+v went before %+v", turn, earliest))
		}
	}
	return found
}

// Unruly lists breaches of the turns of [sync.RWMutex]. The turns are in the order of their tokens.
func Unruly(turns []LocalWaiter) (found []string) {
	reads := slices.DeleteFunc(slices.Clone(turns), func(t LocalWaiter) bool { return t.Write || t.Number == 0 })
	writes := slices.DeleteFunc(slices.Clone(turns), func(t LocalWaiter) bool { return !t.Write })
	found = Overtakers(writes)
	for _, r := range reads {
		next, _ := slices.BinarySearchFunc(writes, r, func(w, r LocalWaiter) int { return cmp.Compare(w.Token, r.Token) })
		if next > 1 && writes[next-2].Token > r.Number {
			found = append(found, fmt.Sprintf("%+v waited for two writers, %+v and one more", r, writes[next-2]))
		}
		if next > 0 && r.Number <= writes[next-1].To {
			continue // came during that write: goes next, whatever else waits
		}
		for _, w := range writes[next:] {
			if 0 < w.Number && w.Number < r.Number {
				found = append(found, fmt.Sprintf("%+v went before %+v", r, w))
			}
		}
	}
	return found
}
