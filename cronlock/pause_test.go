package cronlock_test

import (
	"errors"
	"slices"
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
