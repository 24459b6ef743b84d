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
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestBegin: the scheduler asks for the first tick when it begins, and others ask before or about other times.
func TestBegin(t *testing.T) {
	t.Parallel()
	now := clock("10:00:00")
	p := &progress{added: now.Add(-time.Minute)}
	for _, at := range []time.Time{now.Add(-time.Hour), now.Add(time.Hour), {}} {
		if p.begin(at, now) {
			t.Errorf("began at %v, now it is %v", at, now)
		}
	}
	if !p.begin(now, now.Add(time.Millisecond)) || p.begin(now.Add(time.Second), now.Add(time.Second)) || !p.start().Equal(now) {
		t.Errorf("began at %v, want %v", p.start(), now)
	}
}

// TestStarter: it is due until it has run, later and later, and runs once.
func TestStarter(t *testing.T) {
	t.Parallel()
	c := cron.New()
	j := newJob("job", nil, config{attempts: 1}, seal.Facts{})
	j.cron = c
	j.await()
	s := c.Entries()[0].Job.(*starter)
	now := time.Now()
	for last := time.Duration(0); last < time.Second/2; {
		next := s.Next(now).Sub(now)
		if next <= last || next > 2*time.Second {
			t.Fatalf("due in %v after %v", next, last)
		}
		last = next
	}
	s.Run()
	s.Run()
	if !s.Next(now).IsZero() || len(c.Entries()) != 0 {
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
	const line = "the clock of this replica differs from Redis's; if all replicas say so, look at Redis"
	var logged bytes.Buffer
	var offsets []string
	hooks := core.Hooks{Incident: func(_ context.Context, incident core.Incident) {
		offsets = append(offsets, fmt.Sprintf("%s of %s: %v", incident.Kind, incident.Label, incident.Err))
	}}
	config := newConfig(jobPlace("cronlock.AddFunc"), []Option{WithMaxSkew(10 * time.Second)})
	j := newJob("job", nil, config, seal.Facts{Hooks: &hooks, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	now := clock("10:00:00")
	for _, offset := range []time.Duration{0, 5 * time.Second, 6 * time.Second, -7 * time.Second} {
		j.skewed(now, now, now, now.Add(-offset))
	}
	want := []string{
		"skew of job: holdfast: cronlock: the clock of this replica is 6s ahead of that of Redis",
		"skew of job: holdfast: cronlock: the clock of this replica is 7s behind that of Redis",
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
// sleeps until the clock has caught up. The step is logged once.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	told := new(reports)
	locks := closedClient(t, core.WithHooks(core.Hooks{NotRun: told.add}),
		core.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
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
		j, _ := find(c, "job")
		j.clocks.mu.Lock()
		j.clocks.last.wall = j.clocks.last.wall.Add(step) // at the last look
		j.clocks.mu.Unlock()
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
		if n := strings.Count(log.String(), "the clock of this host was set"); n != 1 || !strings.Contains(log.String(), "by=-1h0m0s") {
			t.Errorf("the step is logged %d times:\n%s", n, log.String())
		}
	})
}

// TestBridge: which ticks the entry of a job passes over when the clock is set back.
func TestBridge(t *testing.T) {
	t.Parallel()
	for next, want := range map[string][]string{
		"12:01:00": {"11:58:00", "11:59:00", "12:00:00"}, "11:58:00": nil, "11:50:00": nil,
	} {
		b := &bridge{job: &job{schedule: secondly(t, "0 * * * * *")}, until: clock(next)}
		var got []string
		for tick := b.Next(clock("11:57:30")); !tick.IsZero(); tick = b.Next(tick) {
			got = append(got, tick.Format(time.TimeOnly))
		}
		if !slices.Equal(got, want) {
			t.Errorf("until %s: ticks %q, want %q", next, got, want)
		}
	}
}

// TestSetBack: ticks that were refused as too early are claimed when the clock comes to them again, and none is reported
// again.
func TestSetBack(t *testing.T) {
	t.Parallel()
	p, s := new(progress), secondly(t, "*/2 * * * * *")
	deadline := func(time.Time) time.Duration { return 4 * time.Second }
	p.begin(clock("10:00:18"), clock("10:00:18"))
	for _, look := range []struct{ set, at, want string }{
		{"", "20.1s", "20"},
		{"18.5s", "20.2s", "20"},
		{"6.5s", "8.1s", "8"},
		{"", "10.1s", "10"},
		{"", "12.1s", "12"},
		{"", "22.5s", "20 22"}, // set forward: 14 to 18 were reported
		{"1s", "2.1s", "2"},
		{"", "40.1s", "(24 26 28 30 32 34 36) 38 40"},
	} {
		at := func(text string) time.Time {
			d, _ := time.ParseDuration(text)
			return clock("10:00:00").Add(d)
		}
		if look.set != "" {
			p.setBack(at(look.set))
		}
		due := p.advance(s, time.UTC, func() reading { return reading{wall: at(look.at)} }, deadline)
		if got := inSeconds(due); got != look.want {
			t.Errorf("at %s: %q, want %q", look.at, got, look.want)
		}
	}
}

// TestSuspendedHost: a tick that was due while the host was suspended may start until its start deadline after the host
// has woken up, if no other replica has run it.
func TestSuspendedHost(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	tick := time.Now().Truncate(time.Second).Add(-20 * time.Minute).UTC()
	for _, test := range []struct {
		name, job string
		suspended time.Duration // until now
		awake     time.Duration // since then
		want      string        // "" if it runs
	}{
		{"not suspended", "a", 0, 0, Late},
		{"awake for too long", "a", 40 * time.Minute, 10 * time.Minute, Late},
		{"suspended after the tick", "a", 15 * time.Minute, 0, Late},
		{"suspended", "a", 40 * time.Minute, 0, ""},
		{"another replica has run it", "a", 40 * time.Minute, 0, Taken},
		{"for longer than a period", "b", 400 * time.Minute, 0, ""},
		{"awake for a while", "c", 40 * time.Minute, 3 * time.Minute, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			told := new(reports)
			locks, err := core.New(server.Client(), core.WithLogger(nil), core.WithHooks(core.Hooks{NotRun: told.add}))
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close()
			c, ran := cron.New(), []Run(nil)
			hourly := scheduleFunc(func(t time.Time) time.Time {
				return tick.Add((t.Sub(tick) + 1000*time.Hour).Truncate(time.Hour) - 999*time.Hour)
			})
			id, err := AddSchedule(c, locks, hourly, test.job, func(ctx context.Context) error {
				run, _ := RunFrom(ctx)
				ran = append(ran, run)
				return nil
			}, WithHistory(1))
			if err != nil {
				t.Fatal(err)
			}
			j, _ := find(c, test.job)
			j.progress.begin(tick.Add(-time.Minute), tick.Add(-time.Minute))
			now := readSample()
			before := now
			before.wall = now.wall.Add(-test.suspended - test.awake)
			before.monotonic -= test.awake
			before.known, now.known = true, true
			before.suspended -= test.suspended
			woken := before
			woken.wall, woken.suspended = woken.wall.Add(test.suspended), now.suspended
			samples := []sample{woken, now}
			j.clocks.mu.Lock()
			j.clocks.last = before
			j.clocks.read = func() sample {
				s := samples[0]
				samples = samples[min(1, len(samples)-1):]
				return s
			}
			j.clocks.mu.Unlock()
			c.Start()
			defer c.Stop()
			j.clocks.look()
			c.Entry(id).WrappedJob.Run()
			if test.want != "" {
				if len(ran) > 0 || len(told.skips) != 1 || told.skips[0].Reason != test.want {
					t.Errorf("%d runs, skipped %+v; want %v", len(ran), told.skips, test.want)
				}
				return
			}
			if len(ran) != 1 || !ran[0].Tick.Equal(tick) || len(told.skips) > 0 {
				t.Fatalf("runs %+v, skipped %+v", ran, told.skips)
			}
			record, err := locks.Once(tickKey(test.job, tick)).Peek(t.Context())
			if least := time.Hour + 10*time.Minute; err != nil || record.Retention < least {
				t.Errorf("remembered for %v, error %v; a replica that wakes up may ask for it for %v", record.Retention, err, least)
			}
			if latest := woken.wall.Add(5 * time.Minute); ran[0].Deadline.Sub(latest).Abs() > 10*time.Second {
				t.Errorf("it may start until %v, want %v", ran[0].Deadline, latest)
			}
		})
	}
}

// TestMomentsAwake: two suspends with a moment between them are one, and a clock that is set is told from a suspend.
func TestMomentsAwake(t *testing.T) {
	t.Parallel()
	var now sample
	w := &clocks{read: func() sample { return now }}
	pass := func(awake, asleep, set time.Duration) (time.Duration, time.Duration) {
		now.wall = now.wall.Add(awake + asleep + set)
		now.monotonic += awake
		now.suspended += asleep
		return w.compare()
	}
	for _, known := range []bool{true, false} {
		now = sample{reading{clock("10:00:00"), 0}, 0, known}
		w.last, w.slept = now, sleep{}
		if set, slept := pass(time.Minute, time.Hour, 0); set != 0 || slept != time.Hour {
			t.Errorf("known %v: set by %v, suspended for %v", known, set, slept)
		}
		pass(3*time.Second, 0, 0)
		pass(3*time.Second, time.Hour, 0)
		if got := w.sinceTick(clock("10:30:00")); got != 91*time.Minute+6*time.Second {
			t.Errorf("known %v: a tick of the first suspend is %v old, want that of both", known, got)
		}
		if set, slept := pass(time.Minute, 0, -time.Hour); set != -time.Hour || slept != 0 {
			t.Errorf("known %v: set back, but by %v, suspended for %v", known, set, slept)
		}
		pass(time.Minute, 0, 0)
		if set, slept := pass(time.Minute, 0, 900*time.Millisecond); set != 0 || slept != 0 {
			t.Errorf("known %v: slewed, but set by %v, suspended for %v", known, set, slept)
		}
		pass(time.Minute, time.Hour, 0)
		if got := w.sinceTick(clock("10:30:00")); got != 0 {
			t.Errorf("known %v: a tick of a suspend long ago is %v old", known, got)
		}
	}
	now.known = true
	if set, slept := pass(time.Minute, time.Hour, -2*time.Hour); set != -2*time.Hour || slept != time.Hour {
		t.Errorf("set in a suspend: by %v, suspended for %v", set, slept)
	}
}

// TestClocksAreShared by the jobs of a cron, and end with them.
func TestClocksAreShared(t *testing.T) {
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
	if w := a.clocks; w != b.clocks || !w.needed() {
		t.Error("two jobs of a cron do not share their clocks")
	}
	w := a.clocks
	c.Remove(ids[0])
	if !w.needed() {
		t.Error("the clocks of the other job end")
	}
	c.Remove(ids[1])
	if w.needed() {
		t.Error("the clocks of a cron without jobs go on")
	}
	if _, err := AddFunc(c, locks, "@every 1h", "c", nothing); err != nil {
		t.Fatal(err)
	}
	if w.needed() {
		t.Error("clocks that have ended go on for another job")
	}
	other := cron.New()
	if _, err := AddFunc(other, locks, "@every 1h", "a", nothing); err != nil {
		t.Fatal(err)
	}
	j, _ := find(other, "a")
	w = j.clocks
	other, j = nil, nil
	for range 10 {
		runtime.GC()
		if !w.needed() {
			return
		}
		runtime.Gosched()
	}
	t.Error("the clocks keep a cron alive")
}
