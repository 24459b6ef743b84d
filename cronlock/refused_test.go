package cronlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestFullRedisIsAskedAgain: a server that refuses writes for a moment costs no tick.
func TestFullRedisIsAskedAgain(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	admin := server.Client()
	refused := make(chan struct{}, 100)
	hooks := core.WithHooks(core.Hooks{BeginEnd: func(_ context.Context, end core.BeginEnd) {
		if end.Err != nil {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
	}})
	r := newReplica(t, newClient(t, server.Client(), hooks), idle)
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	wait := r.start(time.Now().Truncate(time.Second))
	for range 4 {
		receive(t, refused, "a refusal")
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	wait()
	r.expect(t, 1)
}

// TestRemovedJobIsNotTakenOver: a replica that watches a tick of a job which was removed meanwhile does not start it.
func TestRemovedJobIsNotTakenOver(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	begun, release := make(chan struct{}), make(chan struct{})
	ctx, shutDown := context.WithCancel(t.Context())
	runner := newReplica(t, newClient(t, server.Client()), func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		<-release
		return ctx.Err()
	}, cronlock.WithFailover(3), cronlock.WithContext(ctx))
	skipped := make(chan cronlock.Skip, 10)
	c := cron.New()
	id, err := cronlock.AddFunc(c, newClient(t, server.Client()), "@every 24h", "job", func(context.Context) error {
		t.Error("the removed job runs")
		return nil
	}, cronlock.WithFailover(3), cronlock.WithLogger(quiet), cronlock.WithHooks(cronlock.Hooks{Skipped: func(s cronlock.Skip) { skipped <- s }}))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	defer c.Stop()
	tick := time.Now().Truncate(time.Second)
	wait := runner.start(tick)
	receive(t, begun, "the run")
	cronlock.Fire(c, "job", tick) // it watches from now on
	c.Remove(id)
	shutDown()
	close(release)
	wait()
	if skip := receive(t, skipped, "the watcher"); skip.Reason != cronlock.Stopped {
		t.Errorf("skipped as %q: %v", skip.Reason, skip.Err)
	}
}
