package cronlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPausedAndThenSilent: Redis has said that the job is paused, and is silent at the next tick. FailOpen opens nothing.
// It does so again once Redis has said that the job is resumed, and for a replica that has never had an answer.
func TestPausedAndThenSilent(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	operator := newClient(t, server.Client())
	opts := []cronlock.Option{cronlock.FailOpen(), cronlock.WithStartDeadline(3 * time.Second)}
	relay := server.Relay()
	t.Cleanup(relay.Heal) // so that the clients can close soon
	r := newReplica(t, newClient(t, relay.Client()), idle, opts...)
	if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	if err := cronlock.Pause(t.Context(), operator, "job"); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now())
	r.expect(t, 0, cronlock.Paused)

	relay.Hold(testkit.Both)
	r.fire(time.Now())
	r.expect(t, 0, cronlock.Paused, cronlock.Paused)
	started := newReplica(t, newClient(t, relay.Client()), idle, opts...)
	started.fire(time.Now())
	started.expect(t, 1)

	relay.Heal()
	if err := cronlock.Resume(t.Context(), operator, "job"); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now().Add(time.Second))
	r.expect(t, 1, cronlock.Paused, cronlock.Paused)
	relay.Hold(testkit.Both)
	r.fire(time.Now())
	r.expect(t, 2, cronlock.Paused, cronlock.Paused)
}
