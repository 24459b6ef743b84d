package cronlock

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// closedClient answers at once, without I/O, that it is closed: so tests of the scheduler can have a clock of their
// own.
func closedClient(t *testing.T) *core.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	locks, err := core.New(rdb, core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = locks.Close(), rdb.Close()
	return locks
}

// reports are the ticks that a job has reported, and when.
type reports struct {
	mu    sync.Mutex
	skips []Skip
	at    []time.Time
}

func (r *reports) add(s Skip) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skips, r.at = append(r.skips, s), append(r.at, time.Now())
}

// once checks that there is a report of each tick from the first to the last one, in any order, and none twice.
func (r *reports) once(t *testing.T, s cron.Schedule) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var ticks []time.Time
	for _, skip := range r.skips {
		ticks = append(ticks, skip.Tick)
	}
	slices.SortFunc(ticks, time.Time.Compare)
	for i := 1; i < len(ticks); i++ {
		if want := s.Next(ticks[i-1]); !ticks[i].Equal(want) {
			t.Errorf("after %v comes %v, want %v", ticks[i-1], ticks[i], want)
		}
	}
}

// stalling is the logger of a scheduler, which it freezes when the timer of a tick has fired, as SIGSTOP does: the
// scheduler believes the time for which the timer was set.
type stalling struct {
	at    time.Time
	stall time.Duration
}

func (s stalling) Info(message string, _ ...any) {
	if message == "wake" && time.Now().Equal(s.at) {
		time.Sleep(s.stall)
	}
}

func (stalling) Error(error, string, ...any) {}

// TestStall: after the scheduler was frozen, the next tick is in time, those that may still start are claimed, and
// those that are too late are reported.
func TestStall(t *testing.T) {
	t.Parallel()
	const period = 4 * time.Second
	locks := closedClient(t)
	for _, test := range []struct {
		name    string
		stall   time.Duration
		late    int // too late
		claimed int // after their time
	}{
		{"none", 0, 0, 0},
		{"within a period", 3 * time.Second, 0, 1},
		{"over a tick", 5 * time.Second, 0, 2},
		{"over some", 11 * time.Second, 1, 2},
		{"over many", 61 * time.Second, 13, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				froze := aligned{int64(period / time.Second)}.Next(time.Now()).Add(period)
				c, told := cron.New(cron.WithLogger(stalling{froze, test.stall})), new(reports)
				_, err := AddFunc(c, locks, "@every 4s", "job", func(context.Context) error { return nil },
					WithLogger(slog.New(slog.DiscardHandler)), WithHooks(Hooks{Skipped: told.add}))
				if err != nil {
					t.Fatal(err)
				}
				c.Start()
				time.Sleep(time.Until(froze.Add(test.stall + 3*period + period/2)))
				<-c.Stop().Done()
				told.once(t, aligned{4})
				if n, want := len(told.skips), 2+int((test.stall+3*period+period/2)/period); n != want {
					t.Errorf("%d ticks, want %d", n, want)
				}
				late, claimed := told.afterTheirTime()
				if late != test.late || claimed != test.claimed {
					t.Errorf("%d too late and %d claimed after their time, want %d and %d", late, claimed, test.late, test.claimed)
				}
			})
		})
	}
}

// afterTheirTime counts the ticks that were too late, and those that were claimed after their time.
func (r *reports) afterTheirTime() (late, claimed int) {
	for i, skip := range r.skips {
		if skip.Reason == Late {
			late++
		} else if r.at[i].Sub(skip.Tick) > time.Second/2 {
			claimed++
		}
	}
	return late, claimed
}
