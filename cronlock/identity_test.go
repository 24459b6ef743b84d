package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMismatch: a replica that finds the registration of another service, or of another schedule, under the name of its job
// says so: by a log line now and then, and by a hook each time.
func TestMismatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		spec    string
		service string
		want    string // in the incident; "" for none
		logged  string
	}{
		{"the same", "0 3 * * *", "shop", "", ""},
		{
			"another service", "0 3 * * *", "bank",
			`service "shop" of replica "a" has a job of the same name`,
			"another service has a job of the same name",
		},
		{
			"another schedule", "0 4 * * *", "shop",
			`replica "a" has another schedule for the job`,
			"right only in a rollout",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			a := cron.New()
			if _, err := cronlock.AddFunc(a, newClient(t, rdb, core.WithInstance("a")), "0 3 * * *", "job", idle,
				cronlock.WithService("shop")); err != nil {
				t.Fatal(err)
			}
			var logged logBuffer
			b, locks := cron.New(), newClient(t, rdb, logTo(&logged))
			if _, err := cronlock.AddFunc(b, locks, test.spec, "job", idle,
				cronlock.WithService(test.service)); err != nil {
				t.Fatal(err)
			}
			const meetings = 3
			for range meetings {
				if err := errors.Join(cronlock.Register(t.Context(), a, "job"), cronlock.Register(t.Context(), b, "job")); err != nil {
					t.Fatal(err)
				}
			}
			told, times := reportsOf(locks).of(cronlock.IncidentMismatch), 0
			if test.want != "" {
				times = 1
			}
			if len(told) != meetings*times || times > 0 && !strings.Contains(told[0].Error(), test.want) {
				t.Errorf("reported %q, want %d times %q", told, meetings*times, test.want)
			}
			lines := strings.Count(logged.String(), "level=WARN msg=\"holdfast: cronlock: another")
			if lines != times || !strings.Contains(logged.String(), test.logged) {
				t.Errorf("logged %d times: %s", lines, logged.String())
			}
		})
	}
}

// TestMismatchAtATick: each tick that runs looks at the registration, in the background, where a hook that panics does no harm.
func TestMismatchAtATick(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	a := newReplica(t, newClient(t, rdb), idle, cronlock.WithService("shop"))
	hooks := core.WithHooks(core.Hooks{Incident: func(context.Context, core.Incident) { panic("in a hook") }})
	b := newReplica(t, newClient(t, rdb, hooks), idle, cronlock.WithService("bank"))
	if err := cronlock.Register(t.Context(), a.cron, "job"); err != nil {
		t.Fatal(err)
	}
	b.fire(time.Now().Truncate(time.Second))
	testkit.Eventually(t, patience, "the other service is reported", func() bool {
		told := b.of(cronlock.IncidentMismatch)
		return len(told) == 1 && strings.Contains(told[0].Error(), `service "shop"`)
	})
}

// TestMismatchOfRegistration: services whose ticks never meet are told apart by what they have registered.
func TestMismatchOfRegistration(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var told []string
	for _, service := range []string{"shop", "shop", "bank", "bank", "shop"} {
		r := newReplica(t, newClient(t, rdb, core.WithInstance(service+"1")), idle, cronlock.WithService(service))
		if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
			t.Fatal(err)
		}
		for _, err := range r.of(cronlock.IncidentMismatch) {
			told = append(told, err.Error())
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], `service "shop" of replica "shop1"`) || !strings.Contains(told[1], `service "bank"`) {
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
		if _, err := cronlock.AddSchedule(c, locks, after(time.Hour), name, idle); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for i, name := range names { // the ticks tell whose they are
		cronlock.Fire(c, name, tick.Add(-time.Duration(i)*time.Second))
	}
	if err := cronlock.Job(locks, "a").Pause(t.Context(), "anna"); err != nil {
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
			"Pause":       job.Pause(ctx, "anna"),
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
