package cronlock

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// TestPlan: a schedule that was registered has the same ticks where it is read.
func TestPlan(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec      string
		scheduler *time.Location
	}{
		{"@every 90s", time.UTC},
		{"30 2 * * *", load(t, "America/Los_Angeles")},
		{"CRON_TZ=Africa/Cairo 0 0 * * *", time.UTC},
		{"15 */5 4 1-7 * 1", time.UTC},
		{"0 12 * * *", time.Local},
	} {
		s := secondly(t, test.spec)
		text, err := json.Marshal(planOf(s, test.scheduler))
		if err != nil {
			t.Fatal(err)
		}
		var p plan
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		want, got := clock("10:00:00").In(test.scheduler), clock("10:00:00")
		if test.scheduler == time.Local { // its offset is today's
			want, got = time.Now(), time.Now().UTC()
			if next := s.Next(want); !p.schedule().Next(got).Equal(next) && zoneOf(next) == zoneOf(want) {
				t.Errorf("%s: the next tick is at %v, want %v", test.spec, p.schedule().Next(got), next)
			}
			continue
		}
		for range 20 {
			if want, got = s.Next(want), p.schedule().Next(got); !got.Equal(want) {
				t.Errorf("%s: tick at %v, want %v", test.spec, got, want)
			}
		}
	}
	if p := planOf(short(time.Second), time.UTC); p != (plan{}) || p.schedule() != nil {
		t.Errorf("a schedule of another type has the plan %+v", p)
	}
	if p := (plan{Fields: [6]uint64{1, 1, 1, 1, 1, 1}, Zone: "Nowhere/Land"}); p.schedule() != nil {
		t.Error("a zone that is not known here has ticks")
	}
}

func zoneOf(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// TestMissedTicks: a tick counts as missed once it is too late and was neither claimed nor paused.
func TestMissedTicks(t *testing.T) {
	t.Parallel()
	at := func(minute string) time.Time { return clock("10:" + minute + ":00") }
	tick := func(minute, digest string) core.Record {
		return core.Record{Key: tickKey("job", at(minute)), Note: "shop\n" + digest}
	}
	registered := registration{identity: identity{Digest: "d"}, Late: 30_000, History: 20}
	registered.Plan = planOf(align(cron.Every(time.Minute)), time.UTC)
	for _, test := range []struct {
		name            string
		registered      string
		records         []core.Record
		paused, resumed pause
		missed          int
		latest          string
	}{
		{
			"none", "05",
			[]core.Record{tick("06", "d"), tick("07", "d"), tick("08", "d"), tick("09", "d"), tick("10", "d")},
			pause{},
			pause{},
			0, "",
		},
		{"one may still start", "08", []core.Record{tick("09", "d")}, pause{}, pause{}, 0, ""},
		{"since the earliest run", "09", []core.Record{tick("05", "d"), tick("09", "d")}, pause{}, pause{}, 3, "08"},
		{"not of another schedule", "07", []core.Record{tick("05", "x")}, pause{}, pause{}, 2, "09"},
		{"paused", "05", []core.Record{tick("06", "d")}, pause{at("07"), at("23")}, pause{}, 0, ""},
		{"paused after some", "05", nil, pause{at("08"), at("23")}, pause{}, 2, "07"},
		{"resumed", "05", nil, pause{}, pause{at("06"), at("08")}, 1, "09"},
	} {
		info := JobInfo{Name: "job", Registered: at(test.registered)}
		_ = info.miss(t.Context(), registered, test.records, test.paused, test.resumed, clock("10:10:20"))
		if info.Missed != test.missed || info.Missed > 0 && !info.MissedTick.Equal(at(test.latest)) {
			t.Errorf("%s: %d missed, the latest at %v; want %d and %s", test.name, info.Missed, info.MissedTick, test.missed,
				test.latest)
		}
		if !info.NextTick.Equal(at("11")) {
			t.Errorf("%s: the next tick is at %v", test.name, info.NextTick)
		}
	}
}

// TestForgottenTicksAreNotMissed: a tick whose record has expired may have run, so it does not count.
func TestForgottenTicksAreNotMissed(t *testing.T) {
	t.Parallel()
	const registeredAt = "09:00:00" // replicas register once an hour
	now := clock("10:00:20")
	for _, test := range []struct {
		name, spec string
		history    int
		ran        []string
		missed     int
		latest     string
	}{
		{"all that are remembered have run", "@every 10m", 3, []string{"09:40:00", "09:50:00", "10:00:00"}, 0, ""},
		{"one of these has not", "@every 10m", 3, []string{"09:40:00", "10:00:00"}, 1, "09:50:00"},
		{"none has run", "@every 10m", 3, nil, 2, "09:50:00"}, // the one of 9:30 is not remembered, and 10:00 may still start
		{"none has run since the registration", "@every 10m", 20, nil, 5, "09:50:00"},
		{"one period is remembered", "@every 10m", 1, nil, 0, ""},
		{"one that ran early may have expired", "30 */10 * * * *", 3, []string{"09:40:30", "09:50:30"}, 0, ""},
		{"the period of each tick counts", "0,1,2,3,30 * * * *", 2, []string{"10:00:00"}, 1, "09:30:00"},
	} {
		r := registration{identity: identity{Digest: "d"}, Late: 30_000, History: test.history, Skew: 30_000}
		r.Plan = planOf(secondly(t, test.spec), time.UTC)
		var records []core.Record
		for _, tick := range test.ran {
			records = append(records, core.Record{Key: tickKey("job", clock(tick)), Note: "shop\nd"})
		}
		info := JobInfo{Name: "job", Registered: clock(registeredAt)}
		_ = info.miss(t.Context(), r, records, pause{}, pause{}, now)
		if info.Missed != test.missed || info.Missed > 0 && !info.MissedTick.Equal(clock(test.latest)) {
			t.Errorf("%s: %d missed, the latest at %v; want %d and %s", test.name, info.Missed, info.MissedTick, test.missed,
				test.latest)
		}
	}
}

// TestImpossibleRegistration: a registration with numbers that no replica has is none, so that the lists of jobs always
// have a form as JSON. The greatest that are allowed have one.
func TestImpossibleRegistration(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{
		`{"plan":{"every":9223372036}}`:             true,
		`{"plan":{"every":9223372037}}`:             false,
		`{"plan":{"every":4611686018427387904}}`:    false,
		`{"plan":{"every":-1}}`:                     false,
		`{"late":-1}`:                               false,
		`{"late":9223372036854}`:                    true,
		`{"late":9223372036854775807}`:              false,
		`{"skew":9223372036855}`:                    false,
		`{"history":10000}`:                         true,
		`{"history":10001}`:                         false,
		`{"plan":{"zone":"Local","offset":86400}}`:  false,
		`{"plan":{"zone":"Local","offset":-86399}}`: true,
		`{"plan":{"every":1e300}}`:                  false,

		`{"plan":{"fields":[1,1,1,1,1,1],"zone":"UTC"}}`:                   true,
		`{"plan":{"fields":[1,1,1,2,2,0],"zone":"UTC"}}`:                   true,
		`{"plan":{"fields":[0,1,1,2,2,1],"zone":"UTC"}}`:                   false,
		`{"plan":{"fields":[1,0,1,2,2,1],"zone":"UTC"}}`:                   false,
		`{"plan":{"fields":[1,1,0,2,2,1],"zone":"UTC"}}`:                   false,
		`{"plan":{"fields":[1152921504606846976,1,1,2,2,1],"zone":"UTC"}}`: false, // a second of 60
		`{"plan":{"fields":[9223372036854775808,1,1,2,2,1],"zone":"UTC"}}`: false, // robfig's bit of a star
		`{"plan":{"fields":[1,1,16777216,2,2,1],"zone":"UTC"}}`:            false, // an hour of 24
		`{"plan":{"fields":[1,1,1,1073741824,4,0],"zone":"UTC"}}`:          true,  // on February 30
	} {
		job, ok := read(core.Record{Key: registry + "job", Value: []byte(text), Ended: time.Now()})
		if ok != valid {
			t.Errorf("%s: %t", text, ok)
		}
		_ = job.info.miss(t.Context(), job.registration, nil, pause{}, pause{}, time.Now())
		if _, err := json.Marshal(job.info); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestTicksEndWithContext: the ticks of a job that was registered long ago are not computed beyond the context of the caller.
func TestTicksEndWithContext(t *testing.T) {
	t.Parallel()
	job, ok := read(core.Record{Key: registry + "job", Value: []byte(`{"history":10000,"plan":{"every":1}}`), Ended: time.Now().Add(-time.Hour)})
	if !ok {
		t.Fatal("no registration")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := job.info.miss(ctx, job.registration, nil, pause{}, pause{}, time.Now()); !errors.Is(err, context.Canceled) || job.info.Missed > 0 {
		t.Errorf("%v, %d missed", err, job.info.Missed)
	}
}
