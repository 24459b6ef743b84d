package transport

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// silent is a Redis that answers INFO with an error, or only when ctx ends.
type silent struct {
	redis.UniversalClient
	asked atomic.Int32
	err   error
}

func (s *silent) Info(ctx context.Context, _ ...string) *redis.StringCmd {
	s.asked.Add(1)
	cmd := redis.NewStringCmd(ctx)
	cmd.SetErr(s.err)
	if s.err == nil {
		<-ctx.Done()
		cmd.SetErr(ctx.Err())
	}
	return cmd
}

// TestInspectionGivesUp: it is tried a few times only, and not once more after Redis has refused it.
func TestInspectionGivesUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want int32
	}{
		"no connection": {io.EOF, inspections},
		"no answer":     {nil, inspections},
		"refused":       {redis.Nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := &silent{err: test.err}
				running := keepalive.NewOperations()
				exec := NewExecutor(rdb, Background{
					Operations: running,
					Go: func(work func(context.Context)) bool {
						running.StartInternal()
						go func() {
							defer running.Finish()
							work(context.Background())
						}()
						return true
					},
					Recovered: func(call func()) { call() },
				}, nil)
				check := &SettingsCheck{Exec: exec, Logger: slog.Default()}
				check.Start()
				time.Sleep(10 * inspectionInterval)
				if asked := rdb.asked.Load(); asked != test.want {
					t.Errorf("asked %d times, want %d", asked, test.want)
				}
				running.BeginClose()
				running.Finish()
				<-running.Finished
			})
		})
	}
}
