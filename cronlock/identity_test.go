package cronlock_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMismatch: a replica that finds the record of another service, or of another schedule, under the name of its job
// says so: by a log line now and then, and by a hook each time.
func TestMismatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		spec    string
		service string
		want    []cronlock.Mismatch
		logged  string
	}{
		{"the same", "0 3 * * *", "shop", nil, ""},
		{
			"another service", "0 3 * * *", "bank",
			[]cronlock.Mismatch{{Job: "job", Service: "shop", Replica: "a"}},
			"another service has a job of the same name",
		},
		{
			"another schedule", "0 4 * * *", "shop",
			[]cronlock.Mismatch{{Job: "job", Service: "shop", Replica: "a", SameService: true}},
			"right only in a rollout",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			tick := time.Now().Truncate(time.Second)
			a := cron.New()
			if _, err := cronlock.AddFunc(a, newClient(t, rdb), "0 3 * * *", "job", idle, cronlock.WithLogger(quiet),
				cronlock.WithService("shop"), cronlock.WithReplica("a")); err != nil {
				t.Fatal(err)
			}
			cronlock.Fire(a, "job", tick)

			var logged bytes.Buffer
			var told []cronlock.Mismatch
			b := cron.New()
			hooks := cronlock.Hooks{Mismatched: func(m cronlock.Mismatch) { told = append(told, m) }}
			if _, err := cronlock.AddFunc(b, newClient(t, rdb), test.spec, "job", idle,
				cronlock.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))),
				cronlock.WithService(test.service), cronlock.WithReplica("b"), cronlock.WithHooks(hooks)); err != nil {
				t.Fatal(err)
			}
			const meetings = 3
			for range meetings {
				cronlock.Compare(b, "job", tick)
			}
			if len(told) != meetings*len(test.want) || len(told) > 0 && told[0] != test.want[0] {
				t.Errorf("told of %+v, want %d times %+v", told, meetings, test.want)
			}
			lines := strings.Count(logged.String(), "level=WARN msg=\"holdfast: cronlock: another")
			if lines != len(test.want) || !strings.Contains(logged.String(), test.logged) {
				t.Errorf("logged %d times: %s", lines, logged.String())
			}
		})
	}
}

// TestMismatchInProgress: also if the other service is still at it.
func TestMismatchInProgress(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	long := newBlocking()
	a := newReplica(t, newClient(t, rdb), long.run, cronlock.WithService("shop"))
	var told []cronlock.Mismatch
	b := newReplica(t, newClient(t, rdb), idle, cronlock.WithService("bank"), cronlock.WithHooks(cronlock.Hooks{
		Mismatched: func(m cronlock.Mismatch) { told = append(told, m); panic("in a hook") },
	}))
	tick := time.Now().Truncate(time.Second)
	ended := a.start(tick)
	receive(t, long.running, "the run")
	cronlock.Compare(b.cron, "job", tick)
	if len(told) != 1 || told[0].Service != "shop" {
		t.Errorf("told of %+v", told)
	}
	close(long.release)
	ended()
}

// TestMismatchOfRegistration: services whose ticks never meet are told apart by what they have registered.
func TestMismatchOfRegistration(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var told []cronlock.Mismatch
	hooks := cronlock.WithHooks(cronlock.Hooks{Mismatched: func(m cronlock.Mismatch) { told = append(told, m) }})
	for _, service := range []string{"shop", "shop", "bank", "bank", "shop"} {
		r := newReplica(t, newClient(t, rdb), idle, cronlock.WithService(service), cronlock.WithReplica(service+"1"), hooks)
		if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 2 || told[0].Service != "shop" || told[0].Replica != "shop1" || told[1].Service != "bank" {
		t.Errorf("told of %+v", told)
	}
}

// TestOddNames: each is taken as it is, and no job is taken for another.
func TestOddNames(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	c, tick := cron.New(), time.Now().Truncate(time.Second)
	names := []string{
		"a", "a\n", "a\r\n*1\r\n$8\r\nFLUSHALL\r\n", "'); redis.call('FLUSHALL') --", "\xff", "\xfe", "ä", " ", "*", "%s",
		"a:at:", "a:at:2026-01-01T00:00:00Z", "a:now:", "a:paused", "cron:a", "lock:cron:a", "holdfast:once:a", "\x1b[2J",
		strings.Repeat("x", 200),
	}
	for _, name := range names {
		if _, err := cronlock.AddSchedule(c, locks, after(time.Hour), name, idle, cronlock.WithLogger(quiet)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for i, name := range names { // the ticks tell whose they are
		cronlock.Fire(c, name, tick.Add(-time.Duration(i)*time.Second))
	}
	if err := cronlock.Job(locks, "a").Pause(t.Context()); err != nil {
		t.Error(err)
	}
	for i, name := range names {
		job := cronlock.Job(locks, name)
		runs, err := job.History(t.Context())
		if err != nil || len(runs) != 1 || runs[0].Job != name || !runs[0].Tick.Equal(tick.Add(-time.Duration(i)*time.Second)) {
			t.Errorf("%q: %+v, %v", name, runs, err)
		}
		if paused, err := job.Paused(t.Context()); paused != (name == "a") || err != nil {
			t.Errorf("%q: paused %v, %v", name, paused, err)
		}
	}
}

// TestRefusedNames: wherever they come in, with what is wrong with them, in a few words.
func TestRefusedNames(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	huge := strings.Repeat("\xff{\n", 10<<20/3)
	for name, says := range map[string]string{
		"": "has no name", "a{b}": `"a{b}"`, "}\n": `"}\n"`, "\x00": `"\x00"`, strings.Repeat("x", 201): "201 bytes",
		huge: fmt.Sprintf("%d bytes", len(huge)),
	} {
		job := cronlock.Job(locks, name)
		for what, err := range map[string]error{
			"AddFunc":     second(cronlock.AddFunc(cron.New(), locks, "@hourly", name, idle)),
			"AddSchedule": second(cronlock.AddSchedule(cron.New(), locks, after(1), name, idle)),
			"Exclusive":   second(cronlock.NewExclusive(locks.Mutex, name)),
			"Run":         job.Run(ctx, cron.New()),
			"History":     second(job.History(ctx)),
			"Info":        second(job.Info(ctx)),
			"Pause":       job.Pause(ctx),
			"Resume":      job.Resume(ctx),
			"Paused":      second(job.Paused(ctx)),
		} {
			if err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 1000 {
				t.Errorf("%s of %.20q: %.200v", what, name, err)
			}
		}
	}
	for command := range server.CommandStats() {
		if strings.HasPrefix(command, "eval") {
			t.Errorf("Redis was asked: %s", command)
		}
	}
}
