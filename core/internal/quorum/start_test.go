package quorum

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// startQuorum starts three servers and returns the quorum of them.
func startQuorum(t *testing.T) *Strategy {
	t.Helper()
	var rdbs []*redis.Client
	for range 3 {
		rdbs = append(rdbs, testkit.Start(t).Client())
	}
	return quorumOf(t, rdbs...)
}

// quorumOf returns a quorum of these servers, which ends with the test.
func quorumOf(t *testing.T, rdbs ...*redis.Client) *Strategy {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	running := keepalive.NewOperations()
	env := &Environment{
		Background: transport.Background{Now: keepalive.SystemClock, Operations: running, Go: func(work func(context.Context)) bool {
			if !running.StartInternal() {
				return false
			}
			go func() {
				defer running.Finish()
				work(ctx)
			}()
			return true
		}, Recovered: func(call func()) { call() }, Confirmed: func() {}},
		IDs: &script.IDs{Client: "client"}, Logger: slog.New(slog.DiscardHandler),
		TrustedUntil: func(at keepalive.Instant, ttl time.Duration) keepalive.Instant { return at.Add(ttl) },
	}
	var instances []*script.Instance
	for _, rdb := range rdbs {
		exec := transport.NewExecutor(rdb, env.Background, ctx.Done())
		instances = append(instances, &script.Instance{
			OfRedlock: true, Exec: exec, Subs: transport.NewSubscriptions(rdb, exec.Nodes, func(error, bool) {}), IDs: env.IDs, Now: env.Now,
			PublishVerbArg: "PUBLISH", PublishRefused: func() {},
		})
	}
	t.Cleanup(func() {
		running.BeginClose()
		running.Finish()
		cancel()
		<-running.Finished
		for _, s := range instances {
			s.Subs.Close(time.Second)
			s.Exec.Nodes.Close(time.Second)
		}
	})
	return New(env, instances)
}
