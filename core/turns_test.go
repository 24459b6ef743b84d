package core_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/redis/go-redis/v9"
)

// turn is one passage through a lock, in microseconds of Redis's clock, which is what numbers in line and tokens are
// made of. So they can be compared with each other, too.
type turn struct {
	Who    int  // as the test counts
	Write  bool // as opposed to a share
	Owner  string
	Number int64 // in line; the token, if the lock was granted at once; 0 if unknown
	Token  int64
	To     int64 // the release was over by then

	asked, entered, left time.Time // by the client's clock
}

// ledger records who passed through one lock, and when they came: the order of arrival is decided in Redis, so it is
// read there, from the line, over and over while the test runs.
type ledger struct {
	rdb  *redis.Client
	name string

	mu      sync.Mutex
	turns   []turn
	waited  map[string]bool  // by owner
	numbers map[string]int64 // the same
}

// newLedger begins to watch the line.
func newLedger(t testing.TB, rdb *redis.Client, name string) *ledger {
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
	for _, line := range []string{"writers", "readers"} {
		entries := l.rdb.ZRangeWithScores(context.Background(), "holdfast:"+line+":{lock:"+l.name+"}", 0, -1).Val()
		l.mu.Lock()
		for _, e := range entries {
			l.numbers[e.Member.(string)] = int64(e.Score)
		}
		l.mu.Unlock()
	}
}

// hooks lets the ledger know who had to wait.
func (l *ledger) hooks() core.Option {
	return core.WithHooks(core.Hooks{Wait: func(_ context.Context, w core.Wait) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waited[w.Owner] = true
	}})
}

// pass locks, does something, unlocks, and writes that down.
func (l *ledger) pass(ctx context.Context, lock core.Locker, by turn, do func()) error {
	by.asked = time.Now()
	lease, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	by.entered, by.Owner, by.Token = time.Now(), lease.Owner(), lease.Token()
	do()
	by.left = time.Now()
	if err := lease.Unlock(context.Background()); err != nil {
		return err
	}
	to, err := l.rdb.Time(context.Background()).Result()
	if err != nil {
		return err
	}
	by.To = to.UnixMicro()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns = append(l.turns, by)
	return nil
}

// history returns all turns in the order of their tokens.
func (l *ledger) history() []turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	turns := slices.Clone(l.turns)
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.Token, b.Token) })
	for i, turn := range turns {
		if turns[i].Number = l.numbers[turn.Owner]; turns[i].Number == 0 && !l.waited[turn.Owner] {
			turns[i].Number = turn.Token
		}
	}
	return turns
}

// arrivals returns the turns of which it is known when they came. The test fails if these are few.
func arrivals(t testing.TB, turns []turn) []turn {
	t.Helper()
	known := slices.DeleteFunc(slices.Clone(turns), func(turn turn) bool { return turn.Number == 0 })
	if len(known) < len(turns)/2 || len(known) == 0 {
		t.Errorf("of %d turns only %d were seen in line", len(turns), len(known))
	}
	return known
}

// overtakers lists who was granted the lock before somebody who had come earlier. The turns are in the order of their
// tokens.
func overtakers(turns []turn) (found []string) {
	for i, earliest := len(turns)-1, (turn{}); i >= 0; i-- {
		if earliest.Number != 0 && turns[i].Number > earliest.Number {
			found = append(found, fmt.Sprintf("%+v went before %+v", turns[i], earliest))
		}
		if earliest.Number == 0 || turns[i].Number < earliest.Number {
			earliest = turns[i]
		}
	}
	return found
}

// unruly lists breaches of the turns of [sync.RWMutex]. The turns are in the order of their tokens.
func unruly(turns []turn) (found []string) {
	var writes, reads []turn
	for _, turn := range turns {
		if turn.Write {
			writes = append(writes, turn)
		} else {
			reads = append(reads, turn)
		}
	}
	found = overtakers(writes)
	for _, r := range reads {
		next, _ := slices.BinarySearchFunc(writes, r.Token, func(w turn, token int64) int {
			return cmp.Compare(w.Token, token)
		})
		if next > 1 && writes[next-2].Token > r.Number {
			found = append(found, fmt.Sprintf("reader %+v waited for more writers than %+v", r, writes[next-2]))
		}
		// Having come while the write before it went on, it goes first whoever waits. Otherwise it must not have
		// come after a writer that was still waiting.
		if next > 0 && r.Number <= writes[next-1].To {
			continue
		}
		for _, w := range writes[next:] {
			if w.Number < r.Number {
				found = append(found, fmt.Sprintf("reader %+v went before writer %+v", r, w))
			}
		}
	}
	return found
}

// TestBreachesAreFound shows that the checks can fail.
func TestBreachesAreFound(t *testing.T) {
	t.Parallel()
	write := func(number, token int64) turn { return turn{Write: true, Number: number, Token: token, To: token + 5} }
	read := func(number, token int64) turn { return turn{Number: number, Token: token, To: token + 5} }
	for name, turns := range map[string][]turn{
		"overtaken": {write(1, 10), write(3, 20), write(2, 30)},
		"barging":   {write(1, 10), read(25, 25), write(20, 30)},
		"starving":  {write(1, 10), write(2, 20), read(9, 30)},
	} {
		if len(unruly(turns)) == 0 {
			t.Errorf("%s was not found", name)
		}
	}
	fair := []turn{write(1, 10), read(2, 20), read(3, 21), write(22, 30)}
	preferred := []turn{write(1, 10), read(12, 20), read(13, 21), write(11, 30), read(35, 35)}
	for _, turns := range [][]turn{fair, preferred} {
		if found := unruly(turns); len(found) != 0 {
			t.Errorf("a sound history was refused: %v", found)
		}
	}
	if len(overtakers(fair)) != 0 || len(overtakers(preferred)) == 0 {
		t.Error("arrival order is not told from that of readers who go first")
	}
}
