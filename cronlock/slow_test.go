package cronlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSlowAnswerIsNoOutage: the lock is held, and Redis takes more than a second to say so: it stalls, or each reply to a
// new connection is late. FailOpen opens nothing, however short or long the wait is.
func TestSlowAnswerIsNoOutage(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Millisecond, time.Second, 2 * time.Second} {
		for name, slow := range map[string]func(*testkit.Relay){
			"stall": func(relay *testkit.Relay) {
				relay.Hold(testkit.ToClient)
				time.AfterFunc(2500*time.Millisecond, relay.Heal)
			},
			"late": func(relay *testkit.Relay) { relay.Delay(testkit.ToClient, 400*time.Millisecond) },
		} {
			t.Run(fmt.Sprint(name, wait), func(t *testing.T) {
				t.Parallel()
				expectOverlap(t, wait, slow)
			})
		}
	}
}

// expectOverlap runs a job that waits, while another run has its lock.
func expectOverlap(t *testing.T, wait time.Duration, slow func(*testkit.Relay)) {
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:job").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		relay := server.Relay()
		locks := newClient(t, relay.Client())
		slow(relay)
		ran, began := false, time.Now()
		skips := runExclusive(locks, func() { ran = true }, cronlock.WithWait(wait))
		took := time.Since(began)
		relay.Heal()
		switch {
		case !ran && slices.Equal(skips, []cronlock.Reason{cronlock.Overlapping}):
			return
		case took < 5*time.Second: // a busy machine may take longer
			t.Fatalf("ran %v, skipped for %q, after %v", ran, skips, took)
		}
	}
}

// TestLateAnswersToATick: a run holds the lock of the job, and each reply takes more than a second. A claimed tick waits,
// and FailOpen opens nothing, because Redis answers.
func TestLateAnswersToATick(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:{job}").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay := server.Relay()
	locks := newClient(t, relay.Client())
	r := newReplica(t, locks, idle, cronlock.FailOpen(), cronlock.WithWait(30*time.Second), cronlock.WithStartDeadline(10*time.Second))
	r.fire(time.Now().Add(-time.Hour)) // connects, and is too late
	relay.Delay(testkit.ToClient, 1200*time.Millisecond)
	r.fire(time.Now().Truncate(time.Second))
	relay.Heal()
	r.expect(t, 0, cronlock.Late, cronlock.Overlapping)
}
