package asynqlock

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestEnterWithoutPEXPIRE: a line that could not expire is not begun.
func TestEnterWithoutPEXPIRE(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	if err := rdb.Do(ctx, "ACL", "SETUSER", "worker", "on", "nopass", "~*", "+@all", "-pexpire").Err(); err != nil {
		t.Fatal(err)
	}
	worker := server.Client(func(o *redis.Options) { o.Username, o.Password = "worker", "any" })
	if err := enterScript.Run(ctx, worker, []string{"line"}, "task", 1000).Err(); err == nil {
		t.Error("entered")
	}
	if rdb.Exists(ctx, "line").Val() != 0 {
		t.Error("the line stays for ever")
	}
}

// TestEnterAmongForeignScores: another program gives a task of the line a score that is no time. The line is refused before
// anything is written to it.
func TestEnterAmongForeignScores(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	for _, score := range []float64{math.Inf(1), math.Inf(-1), 1e300, -1} {
		for _, member := range []string{"task", "another"} {
			key := fmt.Sprint("line", score, member)
			rdb.ZAdd(ctx, key, redis.Z{Score: score, Member: member})
			before := rdb.Dump(ctx, key).Val()
			reply, err := enterScript.Run(ctx, rdb, []string{key}, "task", 1000).Int64Slice()
			switch {
			case member == "another" && score < 0: // the task comes after it as after any other
				if err != nil || len(reply) != 2 {
					t.Errorf("%s: %v, %v", key, reply, err)
				}
			case !redis.HasErrorPrefix(err, "WRONGTYPE"):
				t.Errorf("%s: %v, %v", key, reply, err)
			case rdb.Dump(ctx, key).Val() != before || rdb.TTL(ctx, key).Val() != -1:
				t.Errorf("%s has changed", key)
			}
		}
	}
}

// TestEnterReplies: a server replies what enter.lua does not.
func TestEnterReplies(t *testing.T) {
	t.Parallel()
	for _, reply := range [][]any{{}, {int64(0)}, {int64(-1), int64(1)}, {int64(0), int64(1), int64(1)}} {
		rdb := testkit.Start(t).Client()
		rdb.AddHook(replying{reply})
		l := newLine(rdb)
		l.found.Store(true)
		if ahead, _, err := l.enter(context.Background(), &visit{ctx: context.Background()}); err == nil {
			t.Errorf("%v: %d ahead", reply, ahead)
		}
	}
}

// replying answers each script with a reply.
type replying struct{ reply []any }

func (r replying) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r replying) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*redis.Cmd).SetVal(r.reply)
		return nil
	}
}

func (r replying) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestNear: a task waits in its worker if it is one of the first of its line, or if it was called from further back.
func TestNear(t *testing.T) {
	t.Parallel()
	l := newLine(testkit.Start(t).Client())
	v := &visit{guard: &guard{config: config{line: l}}, ctx: t.Context(), limit: 1}
	v.ask.KeyHash = "key"
	v.task.Queue, v.task.ID = "default", "task"
	if v.ahead = 0; !l.near(v) {
		t.Error("the first one does not wait")
	}
	if v.ahead = 1000; l.near(v) {
		t.Error("one far behind waits")
	}
	l.mean.Store(int64(time.Hour))
	if v.ahead = 4; l.near(v) {
		t.Error("one behind tasks that take an hour waits")
	}
	if v.limit = 5; !l.near(v) {
		t.Error("the fifth of a line whose tasks run five at a time does not wait")
	}
	v.limit, v.ahead = 1, 1000
	l.mean.Store(int64(time.Millisecond))
	if l.called.Store(v.member(), nil); !l.near(v) {
		t.Error("one that was called does not wait")
	}
}

// TestCallOfARunningTask: a task that is with a worker is not called.
func TestCallOfARunningTask(t *testing.T) {
	t.Parallel()
	redis := testkit.Start(t)
	l := newLine(redis.Client())
	conn := asynq.RedisClientOpt{Network: redis.Network(), Addr: redis.Addr()}
	client := asynq.NewClient(conn)
	defer client.Close()
	if _, err := client.Enqueue(asynq.NewTask("type", nil), asynq.TaskID("task")); err != nil {
		t.Fatal(err)
	}
	free, runs := make(chan struct{}), make(chan struct{})
	server := asynq.NewServer(conn, asynq.Config{LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond})
	err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		close(runs)
		<-free
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	defer close(free)
	<-runs
	if got := l.makeDue("default\x00task"); got != isElsewhere {
		t.Errorf("%v", got)
	}
}
