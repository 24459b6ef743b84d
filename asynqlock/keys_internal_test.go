package asynqlock

import (
	"math/rand/v2"
	"testing"
	"time"
)

// periods are lengths that users choose, and some that nobody would.
var periods = []time.Duration{
	1, 3, time.Millisecond, time.Second, 90 * time.Second, time.Minute, 2 * time.Minute, 7 * time.Minute, time.Hour,
	24 * time.Hour, 7 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// TestTicksOfSchedulersKeepTheirPeriods: tasks of a schedule arrive 200 ms before or after their ticks, by the clock of
// whichever worker gets them. Each tick has a period of its own, at full minutes and half-way between too.
func TestTicksOfSchedulersKeepTheirPeriods(t *testing.T) {
	t.Parallel()
	const deviation = 200 * time.Millisecond
	for _, period := range []time.Duration{2 * time.Second, time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour} {
		for _, phase := range []time.Duration{0, period / 2, time.Minute % period, (period - time.Minute) % period} {
			ticks := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(phase)
			first := periodAt(ticks, period)
			for n := range int64(1000) {
				tick := ticks.Add(time.Duration(n) * period)
				for _, at := range []time.Time{tick.Add(-deviation), tick, tick.Add(deviation)} {
					if got := periodAt(at, period); got != first+n {
						t.Fatalf("every %v + %v: at %v in period %d, want %d", period, phase, at, got, first+n)
					}
				}
			}
		}
	}
}

// TestPeriodsAreExact: at random instants, the period begins where the documentation says, and is as long as it should
// be.
func TestPeriodsAreExact(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		period := periods[random.IntN(len(periods))]
		at := time.Unix(random.Int64N(4e9)-1e9, random.Int64N(1e9))
		n := periodAt(at, period)
		begin := time.Unix(0, 0).Add(-min(period/4, 30*time.Second)).Add(time.Duration(n) * period)
		if at.Before(begin) || !at.Before(begin.Add(period)) {
			t.Fatalf("%v: %v is in period %d, from %v to %v", period, at, n, begin, begin.Add(period))
		}
		if later := periodAt(at.Add(period), period); later != n+1 {
			t.Fatalf("%v: %v is in period %d, a period later in %d", period, at, n, later)
		}
	}
}

// TestPeriodBoundaries: the first and the last instant of some.
func TestPeriodBoundaries(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for _, test := range []struct {
		period time.Duration
		begin  time.Time
	}{
		{day, time.Date(2026, 3, 1, 23, 59, 30, 0, time.UTC)},
		{time.Hour, time.Date(2026, 3, 1, 11, 59, 30, 0, time.UTC)},
		{2 * time.Minute, time.Date(2026, 3, 1, 11, 59, 30, 0, time.UTC)},
		{time.Minute, time.Date(2026, 3, 1, 11, 59, 45, 0, time.UTC)},
		{time.Second, time.Date(2026, 3, 1, 11, 59, 59, 750_000_000, time.UTC)},
	} {
		n := periodAt(test.begin, test.period)
		if before := periodAt(test.begin.Add(-1), test.period); before != n-1 {
			t.Errorf("%v: %d before %v, %d then", test.period, before, test.begin, n)
		}
		if last := periodAt(test.begin.Add(test.period-1), test.period); last != n {
			t.Errorf("%v: %d at %v, %d at the end", test.period, n, test.begin, last)
		}
	}
}
