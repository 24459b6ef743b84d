package cronlock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPauseIsOneKey: a job that was never paused has no key for it, a pause is a hash with who and since that expires, and Resume
// leaves the time of the last pause alone.
func TestPauseIsOneKey(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	r := newReplica(t, newClient(t, rdb), idle)
	job := cronlock.Job(r.locks, "job")
	tick := time.Now().Truncate(time.Second)
	r.fire(tick)
	if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	const key = "holdfast:paused=lock:cron:{job}"
	fields := func() (names []string) {
		for name := range rdb.HGetAll(t.Context(), key).Val() {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	if got := fields(); got != nil {
		t.Errorf("before the first pause: %q", got)
	}
	for range 2 { // pausing again changes nothing
		if err := job.Pause(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
		if got := fields(); !slices.Equal(got, []string{"by", "since"}) || rdb.PTTL(t.Context(), key).Val() < 24*time.Hour {
			t.Errorf("paused: %q for %v", got, rdb.PTTL(t.Context(), key).Val())
		}
	}
	if paused := rdb.Keys(t.Context(), "*paused*").Val(); len(paused) != 1 {
		t.Errorf("keys %q", paused)
	}
	if err := job.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fields(); !slices.Equal(got, []string{"from", "until"}) || rdb.PTTL(t.Context(), key).Val() < 24*time.Hour {
		t.Errorf("resumed: %q for %v", got, rdb.PTTL(t.Context(), key).Val())
	}
	missed := tick.Add(time.Millisecond) // during the pause: for ever, also for who asks right after Resume
	r.fire(missed)
	r.expect(t, 1, cronlock.Paused)
}

// TestForeignPause: data of another program at the key of a pause is no pause, and a tick is refused at once.
func TestForeignPause(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	r := newReplica(t, newClient(t, rdb), idle)
	if err := rdb.Set(t.Context(), "holdfast:paused=lock:cron:{job}", "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now())
	r.expect(t, 0, cronlock.Refused)
	if err := r.skips[0].Err; !errors.Is(err, core.ErrWrongType) {
		t.Error(err)
	}
}

// TestForgedPause: a pause with times that no server has is data of another program: a tick is refused, and the list of jobs does not
// have times for which there is no JSON. Who has paused the job is one short line, whoever has written that.
func TestForgedPause(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	r := newReplica(t, newClient(t, rdb), idle)
	const key = "holdfast:paused=lock:cron:{job}"
	if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"since", "from", "until"} {
		for _, number := range []string{"9223372036854775807", "9007199254740993", "-1", "x", "1e9", "inf"} {
			if err := rdb.HSet(t.Context(), key, field, number).Err(); err != nil {
				t.Fatal(err)
			}
			r.fire(time.Now())
			if skip := r.skips[len(r.skips)-1]; !errors.Is(skip.Err, core.ErrWrongType) {
				t.Errorf("%s %q: %+v", field, number, skip)
			}
			if _, err := cronlock.Job(r.locks, "job").Info(t.Context()); !errors.Is(err, core.ErrWrongType) {
				t.Errorf("%s %q: %v", field, number, err)
			}
			rdb.Del(t.Context(), key)
		}
	}
	by := strings.Repeat("\x1b[31m\u202e\u009bada\n", 1000)
	if err := rdb.HSet(t.Context(), key, "by", by, "since", time.Now().UnixMicro()).Err(); err != nil {
		t.Fatal(err)
	}
	info, err := cronlock.Job(r.locks, "job").Info(t.Context())
	if err != nil || !info.Paused {
		t.Fatalf("%+v, %v", info, err)
	}
	testkit.WantVisible(t, info.PausedBy, 1000)
}
