package cronlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWindow: who comes too early or too late by the clock of Redis claims nothing.
func TestWindow(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for i, test := range []struct {
		name string
		tick time.Duration // from now
		want []string
		opts []cronlock.Option
	}{
		{"in time", 0, nil, nil},
		{"ahead within the skew", 20 * time.Second, nil, nil},
		{"early", 40 * time.Second, []string{cronlock.Early}, nil},
		{"a year ahead", 365 * 24 * time.Hour, []string{cronlock.Early}, nil},
		{
			"early for a small skew", time.Minute,
			[]string{cronlock.Early},
			[]cronlock.Option{cronlock.WithMaxSkew(time.Second)},
		},
		{"late within the deadline", -4 * time.Minute, nil, nil},
		{"late", -6 * time.Minute, []string{cronlock.Late}, nil},
		{
			"late for a short deadline", -time.Minute,
			[]string{cronlock.Late},
			[]cronlock.Option{cronlock.WithStartDeadline(10 * time.Second)},
		},
		{
			"in time for a long deadline", -time.Hour, nil,
			[]cronlock.Option{cronlock.WithStartDeadline(2 * time.Hour)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, server.Client(), core.WithPrefix(fmt.Sprintf("%d:", i)))
			r := newReplica(t, locks, idle, test.opts...)
			r.fire(time.Now().Add(test.tick).Truncate(time.Second))
			runs := 1 - len(test.want)
			r.expect(t, runs, test.want...)
			records, err := locks.GroupRecords(t.Context(), "cron:{job}")
			if len(records) != runs || err != nil {
				t.Errorf("%d records, error %v, want %d", len(records), err, runs)
			}
		})
	}
}

// TestRemembered: a tick is kept for longer than anybody may come for it: from a claim that was early by the whole skew
// until the deadline or the window of catching up has passed twice. A forgotten tick is always too late.
func TestRemembered(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for i, test := range []struct {
		name   string
		period time.Duration
		least  time.Duration
		opts   []cronlock.Option
	}{
		{"hourly", time.Hour, 20 * time.Hour, nil},
		{"every second", time.Second, 50 * time.Second, nil},
		{"daily", 24 * time.Hour, 20 * 24 * time.Hour, nil},
		{"monthly, 30 days", 31 * 24 * time.Hour, 30 * 24 * time.Hour, nil},
		{
			"a long deadline", time.Minute, 4*time.Hour + 30*time.Second,
			[]cronlock.Option{cronlock.WithStartDeadline(2 * time.Hour)},
		},
		{
			"catching up", time.Minute, 12*time.Hour + 30*time.Second,
			[]cronlock.Option{cronlock.WithCatchUp(6 * time.Hour)},
		},
		{
			"catching up by the year", 8760 * time.Hour, 3 * 8760 * time.Hour,
			[]cronlock.Option{cronlock.WithCatchUp(6 * time.Hour)},
		},
		{
			"a great skew", time.Second, 2*10*time.Second + time.Hour,
			[]cronlock.Option{cronlock.WithMaxSkew(time.Hour)},
		},
		{"much history", time.Second, 1000 * time.Second, []cronlock.Option{cronlock.WithHistory(1000)}},
		{"with failover", time.Second, 2*time.Minute + 30*time.Second, []cronlock.Option{cronlock.WithFailover(2)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			locks := newClient(t, server.Client(), core.WithPrefix(fmt.Sprintf("%d:", i)))
			r := &replica{cron: cron.New(), locks: locks}
			r.add(t, after(test.period), idle, test.opts...)
			r.fire(time.Now().Truncate(time.Second))
			records, err := locks.GroupRecords(t.Context(), "cron:{job}")
			if err != nil || len(records) != 1 {
				t.Fatalf("records %v, error %v", records, err)
			}
			if got := records[0].Retention; got < test.least-time.Minute/2 {
				t.Errorf("kept for %v, want %v", got, test.least)
			}
		})
	}
}

// scriptsOf returns how many scripts a server has run.
func scriptsOf(server *testkit.Server) int {
	n := 0
	for name, stat := range server.CommandStats() {
		if name == "evalsha" || name == "eval" {
			n += int(stat.Calls)
		}
	}
	return n
}

// TestCostOfATick measures what docs/cron.md says of it: scripts per tick and replica, and bytes at rest.
func TestCostOfATick(t *testing.T) {
	t.Parallel()
	const ticks = 200
	for _, test := range []struct {
		name                     string
		opts                     []cronlock.Option
		runs, takes, bytesAtRest float64 // at most
	}{
		{"by default", nil, 5, 2, 1700},
		{"with AllowOverlap", []cronlock.Option{cronlock.AllowOverlap()}, 3, 2, 1700},
		{"with failover", []cronlock.Option{cronlock.WithFailover(2)}, 5, 2, 1700},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			opts := append(test.opts, cronlock.WithMaxSkew(time.Hour))
			a := newReplica(t, newClient(t, server.Client()), idle, opts...)
			b := newReplica(t, newClient(t, server.Client()), idle, opts...)
			now := time.Now().Add(10 * time.Minute) // so that no tick is late, however slow the machine is
			come := func(r *replica) float64 {
				before := scriptsOf(server)
				for i := range ticks {
					cronlock.Claim(r.cron, "job", now.Add(time.Duration(i)*time.Millisecond))
				}
				return float64(scriptsOf(server)-before) / ticks
			}
			cronlock.Claim(a.cron, "job", now.Add(-time.Millisecond))
			keys, bytes := memory(t, server)
			runs := come(a)
			keysAfter, bytesAfter := memory(t, server)
			takes := come(b)
			atRest := float64(bytesAfter-bytes) / ticks
			t.Logf("%.2f scripts to run a tick, %.2f to find it taken, %.0f bytes in %.1f keys", runs, takes, atRest,
				float64(keysAfter-keys)/ticks)
			if runs > test.runs+0.1 || takes > test.takes+0.1 || atRest > test.bytesAtRest {
				t.Errorf("at most %v, %v and %v are documented", test.runs, test.takes, test.bytesAtRest)
			}
		})
	}
}

// memory returns how many keys there are and the sum of their bytes.
func memory(t *testing.T, server *testkit.Server) (keys int, bytes int64) {
	t.Helper()
	rdb := server.Client()
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		keys, bytes = keys+1, bytes+rdb.MemoryUsage(t.Context(), key, 0).Val()
	}
	return keys, bytes
}
