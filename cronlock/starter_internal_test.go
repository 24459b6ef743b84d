package cronlock

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// TestBegin: the scheduler asks for the first tick when it begins, and others ask before or about other times.
func TestBegin(t *testing.T) {
	t.Parallel()
	now := clock("10:00:00")
	p, s := new(progress), secondly(t, "* * * * * *")
	p.add(now.Add(-time.Minute))
	for _, at := range []time.Time{now.Add(-time.Hour), now.Add(time.Hour), {}} {
		if p.begin(s, at, now) {
			t.Errorf("began at %v, now it is %v", at, now)
		}
	}
	if !p.begin(s, now, now.Add(time.Millisecond)) || p.begin(s, now.Add(time.Second), now.Add(time.Second)) || !p.started().Equal(now) {
		t.Errorf("began at %v, want %v", p.started(), now)
	}
}

// TestBeginHelper: the entry that lets a job begin is due until it has run, later and later, and runs once.
func TestBeginHelper(t *testing.T) {
	t.Parallel()
	c := cron.New()
	j := newJob("job", nil, config{attempts: 1}, seal.Facts{})
	j.cron = c
	c.Schedule(aligned{1}, j)
	j.help(time.Time{})
	h := c.Entries()[1].Job.(*helper)
	last := time.Duration(0)
	for now := h.added; now.Sub(h.added) < time.Minute; now = h.Next(now) {
		next := h.Next(now).Sub(now)
		if next < last || next > 2*time.Second {
			t.Fatalf("due in %v after %v", next, last)
		}
		last = next
	}
	h.Run()
	h.Run()
	if !h.Next(h.added).IsZero() || len(c.Entries()) != 1 {
		t.Error("it is not over")
	}
}

// closedClient answers at once, without I/O, that it is closed: so tests of the scheduler can have a clock of their
// own.
func closedClient(t *testing.T, opts ...core.Option) *core.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = locks.Close(), rdb.Close()
	return locks
}

// reports are the ticks that a job has reported, and when.
type reports struct {
	mu    sync.Mutex
	skips []core.NotRun
	at    []time.Time
}

func (r *reports) add(_ context.Context, s core.NotRun) {
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
		ticks = append(ticks, skip.Due)
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
			told := new(reports)
			locks := closedClient(t, core.WithHooks(core.Hooks{NotRun: told.add}))
			synctest.Test(t, func(t *testing.T) {
				froze := aligned{int64(period / time.Second)}.Next(time.Now()).Add(period)
				c := cron.New(cron.WithLogger(stalling{froze, test.stall}))
				_, err := AddFunc(c, locks, "@every 4s", "job", func(context.Context) error { return nil })
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
		} else if r.at[i].Sub(skip.Due) > time.Second/2 {
			claimed++
		}
	}
	return late, claimed
}

func TestClockOffset(t *testing.T) {
	t.Parallel()
	server := clock("10:00:00")
	for _, test := range []struct {
		name            string
		asked, answered time.Duration // by the clock of this replica
		want            time.Duration
	}{
		{"same", -time.Millisecond, time.Millisecond, 0},
		{"slow answer", -time.Minute, time.Millisecond, 0},
		{"ahead", 20 * time.Second, 21 * time.Second, 20 * time.Second},
		{"behind", -21 * time.Second, -20 * time.Second, -20 * time.Second},
	} {
		if got := clockOffset(server.Add(test.asked), server.Add(test.answered), server); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestSkewed: the hook hears it each time, the log now and then.
func TestSkewed(t *testing.T) {
	t.Parallel()
	const line = "the clock of this replica differs from Redis's; if all replicas log this, look at Redis"
	var logged bytes.Buffer
	var offsets []string
	hooks := core.Hooks{Incident: func(_ context.Context, incident core.Incident) {
		offsets = append(offsets, fmt.Sprintf("%s of %s: %v", incident.Kind, incident.Label, incident.Err))
	}}
	config, err := newConfig(jobPlace("cronlock.AddFunc"), []Option{WithMaxSkew(10 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	j := newJob("job", nil, config, seal.Facts{Hooks: &hooks, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	now := clock("10:00:00")
	for _, offset := range []time.Duration{0, 5 * time.Second, 6 * time.Second, -7 * time.Second} {
		j.skewed(now, now, now, now.Add(-offset))
	}
	want := []string{
		"skew of job: holdfast: cronlock: the clock of this replica is 6s ahead of the clock of Redis",
		"skew of job: holdfast: cronlock: the clock of this replica is 7s behind the clock of Redis",
	}
	if !slices.Equal(offsets, want) {
		t.Errorf("reported %q, want %q", offsets, want)
	}
	if n := strings.Count(logged.String(), line); n != 1 {
		t.Errorf("logged %d times: %s", n, logged.String())
	}
	j.skewed(now, now.Add(time.Hour), now.Add(time.Hour), now)
	if n := strings.Count(logged.String(), line); n != 2 {
		t.Errorf("after an hour logged %d times", n)
	}
}

// ahead is a schedule that is asked with a clock that is ahead, until the clock is set back.
type ahead struct {
	cron.Schedule
	by atomic.Int64
}

func (a *ahead) Next(t time.Time) time.Time {
	return a.Schedule.Next(t.Add(time.Duration(a.by.Load())))
}

// TestClockSetBack: when the clock is set back, a job continues with the next tick by the new clock, although its entry
// sleeps until the clock has caught up.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	told := new(reports)
	locks := closedClient(t, core.WithHooks(core.Hooks{NotRun: told.add}))
	synctest.Test(t, func(t *testing.T) {
		const step = time.Hour
		s := &ahead{Schedule: aligned{2}}
		s.by.Store(int64(step))
		c := cron.New(cron.WithLocation(time.UTC))
		id, err := AddSchedule(c, locks, s, "job", func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		c.Start()
		time.Sleep(3 * time.Second)
		if next := time.Until(c.Entry(id).Next); next < step-time.Minute || len(told.skips) > 0 {
			t.Fatalf("%d ticks, the next one in %v: the entry does not sleep", len(told.skips), next)
		}
		s.by.Store(0)
		set := time.Now()
		time.Sleep(step + time.Minute)
		<-c.Stop().Done()
		told.once(t, aligned{2})
		if n := len(told.skips); n == 0 || told.at[0].Sub(set) > lookInterval+2*time.Second {
			t.Fatalf("%d ticks, claimed at %v", n, told.at)
		}
		if last := told.skips[len(told.skips)-1]; time.Since(last.Due) > 3*time.Second {
			t.Errorf("no tick since %v, now it is %v", last.Due, time.Now())
		}
		// The ticks at 2 s and 4 s had passed when the step was noticed.
		if late, claimed := told.afterTheirTime(); late != 0 || claimed != 2 {
			t.Errorf("%d ticks late, %d claimed after their time; want 0 and 2", late, claimed)
		}
		if entries := c.Entries(); len(entries) != 1 || entries[0].ID != id {
			t.Errorf("%d entries are left, want the job alone", len(entries))
		}
	})
}

// TestHelperUntil: which ticks the entry of a job passes over when the clock is set back.
func TestHelperUntil(t *testing.T) {
	t.Parallel()
	for next, want := range map[string][]string{
		"12:01:00": {"11:58:00", "11:59:00", "12:00:00"}, "11:58:00": nil, "11:50:00": nil,
	} {
		b := &helper{job: &job{schedule: secondly(t, "0 * * * * *")}, until: clock(next)}
		var got []string
		for tick := b.Next(clock("11:57:30")); !tick.IsZero(); tick = b.Next(tick) {
			got = append(got, tick.Format(time.TimeOnly))
		}
		if !slices.Equal(got, want) {
			t.Errorf("until %s: ticks %q, want %q", next, got, want)
		}
	}
}

// TestWatchIsShared by the jobs of a cron, and end with them.
func TestWatchIsShared(t *testing.T) {
	t.Parallel()
	locks, c := closedClient(t), cron.New()
	nothing := func(context.Context) error { return nil }
	var ids []cron.EntryID
	for _, name := range []string{"a", "b"} {
		id, err := AddFunc(c, locks, "@every 1h", name, nothing)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	a, _ := find(c, "a")
	b, _ := find(c, "b")
	if w := a.watch; w != b.watch || !needed(w) {
		t.Error("two jobs of a cron do not share their watch")
	}
	w := a.watch
	c.Remove(ids[0])
	if !needed(w) {
		t.Error("the watch of the other job ends")
	}
	c.Remove(ids[1])
	if needed(w) {
		t.Error("the watch of a cron without jobs goes on")
	}
	if _, err := AddFunc(c, locks, "@every 1h", "c", nothing); err != nil {
		t.Fatal(err)
	}
	if needed(w) {
		t.Error("a watch that has ended goes on for another job")
	}
	other := cron.New()
	if _, err := AddFunc(other, locks, "@every 1h", "a", nothing); err != nil {
		t.Fatal(err)
	}
	j, _ := find(other, "a")
	w = j.watch
	other, j = nil, nil
	for range 10 {
		runtime.GC()
		if !needed(w) {
			return
		}
		runtime.Gosched()
	}
	t.Error("the watch keeps a cron alive")
}

func needed(w *watch) bool {
	c := w.cron.Value()
	return c != nil && w.look(c, false)
}
