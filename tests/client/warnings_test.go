package client_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// The tests in this file run in virtual time, with the defaults of the warnings.

// lines returns the lines of the log with that message.
func lines(log *coretest.Record, message string) (found []string) {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, message) {
			found = append(found, line)
		}
	}
	return found
}

const (
	waitedLong = "still waiting for lock"
	heldLong   = "lease held for a long time"
)

// attribute returns the value of an attribute in a line of the log.
func attribute(line, name string) string {
	found := regexp.MustCompile(` ` + name + `=("[^"]*"|\S*)`).FindStringSubmatch(line)
	if found == nil {
		return ""
	}
	return strings.Trim(found[1], `"`)
}

// wantDurations checks the durations in these lines: each is late by some seconds at most.
func wantDurations(t *testing.T, found []string, name string, late time.Duration, want ...time.Duration) {
	t.Helper()
	if len(found) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(found), len(want), strings.Join(found, ""))
	}
	for i, line := range found {
		d, err := time.ParseDuration(attribute(line, name))
		if err != nil || d < want[i] || d > want[i]+late {
			t.Errorf("%s %v, want %v, %v", name, d, want[i], err)
		}
	}
}

// TestLongWaitIsWarnedOf: once after ten seconds, then at doubling intervals, with the holder and its host.
func TestLongWaitIsWarnedOf(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]func(*core.Client, string, ...core.LockOption) *core.Lock{
		"Mutex": (*core.Client).Mutex, "Fair": (*core.Client).Fair,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, log := locktest.Start(t), new(coretest.Record)
				holder := coretest.MustLock(t, strategy(server.NewClient(core.WithInstance("web-1:7")), "customer Lovelace"))
				began := time.Now()
				locks := server.NewClient(core.WithLogger(coretest.TextLogger(log)))
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				_, err := strategy(locks, "customer Lovelace").Lock(ctx)
				coretest.WantErr(t, err, core.ErrNotAcquired)
				found := lines(log, waitedLong)
				wantDurations(t, found, "waited", 6*time.Second, 10*time.Second, 20*time.Second, 40*time.Second, 80*time.Second, 160*time.Second)
				line := found[0]
				if attribute(line, "holder") != holder.Owner() || attribute(line, "instance") != "web-1:7" || attribute(line, "waiting") != "1" ||
					attribute(line, "lock") != "3d7121ef" || strings.Contains(line, "Lovelace") {
					t.Errorf("%s", line)
				}
				if since, err := time.Parse("2006-01-02T15:04:05.999Z07:00", attribute(line, "since")); err != nil || since.Sub(began).Abs() > time.Second {
					t.Errorf("%s: since %v, began %v, %v", line, since, began, err)
				}
			})
		})
	}
}

// TestLongWaitsOfManyCallers: 10,000 callers that wait for one name are one line at a time, with their number.
func TestLongWaitsOfManyCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, log := locktest.Start(t), new(coretest.Record)
		coretest.MustLock(t, server.NewClient().Mutex("name"))
		locks := server.NewClient(core.WithLogger(coretest.TextLogger(log)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 10_000 {
			all.Go(func() { _, _ = locks.Mutex("name").Lock(ctx) })
		}
		all.Wait()
		found := lines(log, waitedLong)
		wantDurations(t, found, "waited", 4*time.Second, 10*time.Second, 20*time.Second, 40*time.Second)
		for _, line := range found {
			if attribute(line, "waiting") != "10000" {
				t.Errorf("%s", line)
			}
		}
	})
}

// TestLongWaitOfAnElection: candidates wait for a long time as a rule, so they are not mentioned. Nor is any wait with 0.
func TestLongWaitOfAnElection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, log := locktest.Start(t), new(coretest.Record)
		locks := server.NewClient()
		lead, err := locks.Election("name").Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		coretest.MustLock(t, locks.Mutex("lock"))
		ctx, cancel := context.WithTimeout(t.Context(), 12*10*time.Second) // there would be four warnings
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			_, _ = server.NewClient(core.WithLogger(coretest.TextLogger(log))).Election("name").Campaign(ctx)
		})
		all.Go(func() {
			_, _ = server.NewClient(core.WithLogger(coretest.TextLogger(log)), core.WithWaitWarning(0)).Mutex("lock").Lock(ctx)
		})
		all.Wait()
		if found := lines(log, waitedLong); len(found) > 0 {
			t.Errorf("%q", found)
		}
		_ = lead.Resign(t.Context())
	})
}

// TestLongHoldIsWarnedOf: of a lease and of an attempt, after ten minutes and at doubling intervals. A leader leads in
// silence, and so does any holder with 0.
func TestLongHoldIsWarnedOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, log := locktest.Start(t), new(coretest.Record)
		locks := server.NewClient(core.WithLogger(coretest.TextLogger(log)))
		if _, err := locks.Election("leader").Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		coretest.MustLock(t, server.NewClient(core.WithLogger(coretest.TextLogger(log)), core.WithHoldWarning(0)).Mutex("silent"))
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("short")))
		lease := coretest.MustLock(t, locks.Mutex("customer Lovelace"))
		time.Sleep(time.Minute)
		attempt := coretest.MustBegin(t, locks.Once("once"))
		time.Sleep(time.Hour)
		var ofLease, ofAttempt []string
		for _, line := range lines(log, heldLong) {
			switch attribute(line, "token") {
			case fmt.Sprint(lease.Token()):
				ofLease = append(ofLease, line)
			case fmt.Sprint(attempt.Token()):
				ofAttempt = append(ofAttempt, line)
			default:
				t.Errorf("%s", line)
			}
		}
		minutes := []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute}
		wantDurations(t, ofLease, "held", time.Minute, minutes...)
		wantDurations(t, ofAttempt, "held", time.Minute, minutes...)
		if line := ofLease[0]; attribute(line, "lock") != "3d7121ef" || attribute(line, "others") != "0" || attribute(ofAttempt[0], "strategy") != "once" {
			t.Errorf("%s%s", line, ofAttempt[0])
		}
		coretest.Unlock(t, lease)
		before := log.String()
		time.Sleep(2 * time.Hour)
		if after := lines(log, heldLong); slices.ContainsFunc(after[len(strings.Split(before, heldLong))-1:], func(line string) bool {
			return attribute(line, "token") == fmt.Sprint(lease.Token())
		}) {
			t.Errorf("after Unlock: %q", after)
		}
	})
}

// TestLongHoldsOfManyLeases: leases that are due together are one line, with the number of the others.
func TestLongHoldsOfManyLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, log := locktest.Start(t), new(coretest.Record)
		locks := server.NewClient(core.WithLogger(coretest.TextLogger(log)))
		for i := range 500 {
			coretest.MustLock(t, locks.Mutex(fmt.Sprint("name ", i)), core.WithFixedTTL(time.Hour))
		}
		time.Sleep(15 * time.Minute)
		found := lines(log, heldLong)
		wantDurations(t, found, "held", time.Minute, 10*time.Minute)
		if attribute(found[0], "others") != "499" {
			t.Errorf("%s", found[0])
		}
	})
}

// TestWarningsAreChecked: negative times, and more than a year, are refused by name.
func TestWarningsAreChecked(t *testing.T) {
	t.Parallel()
	rdb := locktest.Start(t).Redis()
	for name, option := range map[string]func(time.Duration) core.Option{
		"WithWaitWarning": core.WithWaitWarning, "WithHoldWarning": core.WithHoldWarning,
	} {
		for _, after := range []time.Duration{-1, 367 * 24 * time.Hour} {
			_, err := core.New(rdb, option(after))
			coretest.WantErr(t, err, core.ErrInvalidOption)
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%v does not name %s", err, name)
			}
		}
	}
}
