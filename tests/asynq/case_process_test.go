package asynq_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// process is one that runs a server, with clients of its own.
type process struct {
	cfg   asynq.Config
	queue *redis.Client // asynq's
	locks *redis.Client
}

// start starts the server of another process.
func (s *stage) start(edit ...func(*process)) *asynq.Server {
	s.t.Helper()
	p := &process{cfg: config(), queue: s.redis.Client(), locks: s.redis.Client()}
	for _, change := range edit {
		change(p)
	}
	mux := asynq.NewServeMux()
	mux.Use(s.outermost)
	if s.guarded() {
		asynqlock.Configure(&p.cfg)
		mux.Use(s.guard(clientOf(s.t, p.locks, core.WithLogger(nil))))
	}
	mux.HandleFunc(kind, s.process)
	server := asynq.NewServerFromRedisClient(p.queue, p.cfg)
	if err := server.Start(mux); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(server.Shutdown)
	return server
}

// leisurely lets failed tasks come again so late that a test can see them wait.
func leisurely(p *process) {
	p.cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return 3 * time.Second }
}

// tap lets a test see what asynq sends, change it, or answer in the place of Redis.
type tap func(cmd redis.Cmder, send func() error) error

// tapped gives asynq's client a tap.
func tapped(fn tap) func(*process) {
	return func(p *process) { p.queue.AddHook(fn) }
}

// DialHook leaves connections as they are.
func (tap) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook leaves pipelines as they are: asynq's servers send none.
func (tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook { return next }

// ProcessHook hands commands to the tap.
func (fn tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return fn(cmd, func() error { return next(ctx, cmd) })
	}
}

// scriptKeys returns the keys of a script of asynq without their prefix, in one string: "active lease t:<id> ...".
// Scripts are told apart by them.
func scriptKeys(cmd redis.Cmder) string {
	args := cmd.Args()
	if !strings.HasPrefix(cmd.Name(), "eval") || len(args) < 3 {
		return ""
	}
	n, _ := args[2].(int)
	keys := make([]string, n)
	for i := range keys {
		_, keys[i], _ = strings.Cut(fmt.Sprint(args[3+i]), "}:")
	}
	return strings.Join(keys, " ")
}

// isDequeue, isDone and so on tell what asynq does.
func isDequeue(cmd redis.Cmder) bool {
	return strings.HasPrefix(scriptKeys(cmd), "pending paused active lease")
}

func isDone(cmd redis.Cmder) bool { return strings.HasPrefix(scriptKeys(cmd), "active lease ") }

func isRetry(cmd redis.Cmder) bool { return strings.Contains(scriptKeys(cmd), " active lease retry ") }

func isDeleteSet(cmd redis.Cmder) bool {
	return strings.HasPrefix(scriptKeys(cmd), "g:") && strings.HasSuffix(scriptKeys(cmd), " aggregation_sets") &&
		len(cmd.Args()) == 6
}

// isExtendLease tells the heartbeat of tasks.
func isExtendLease(cmd redis.Cmder) bool {
	return cmd.Name() == "zadd" && strings.HasSuffix(fmt.Sprint(cmd.Args()[1]), "}:lease")
}

// beats counts the heartbeats of tasks of a queue that have reached Redis.
func beats(queue string, n *atomic.Int32) tap {
	return func(cmd redis.Cmder, send func() error) error {
		err := send()
		if isExtendLease(cmd) && cmd.Args()[1] == leases(queue) {
			n.Add(1)
		}
		return err
	}
}

// leases is where asynq keeps when the leases of tasks end.
func leases(queue string) string { return "asynq:{" + queue + "}:lease" }

// expired reports whether asynq's lease of a task is one that the next recoverer takes.
func (s *stage) expired(queue, id string) bool {
	score, err := s.redis.Client().ZScore(context.Background(), leases(queue), id).Result()
	return err == nil && score == 0
}

// expire lets asynq's lease of a task have ended long ago: the recoverer of the server that starts next takes it.
func (s *stage) expire(queue, id string) {
	s.t.Helper()
	lease := redis.ZAddArgs{XX: true, Ch: true, Members: []redis.Z{{Member: id}}}
	if n, err := s.redis.Client().ZAddArgs(context.Background(), leases(queue), lease).Result(); n != 1 {
		s.t.Fatalf("%s has no lease: %d, %v", id, n, err)
	}
}

// stray makes a task that a worker has taken from the queue, but will not work at: it died just then.
func (s *stage) stray(t *asynq.Task, opts ...asynq.Option) *asynq.TaskInfo {
	s.t.Helper()
	info := s.enqueue(t, opts...)
	ctx, rdb := context.Background(), s.redis.Client()
	const queue = "asynq:{default}:"
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.RPopLPush(ctx, queue+"pending", queue+"active")
		p.HSet(ctx, queue+"t:"+info.ID, "state", "active")
		p.HDel(ctx, queue+"t:"+info.ID, "pending_since")
		p.ZAdd(ctx, queue+"lease", redis.Z{Member: info.ID})
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// record returns the key of the only record.
func (s *stage) record() string {
	s.t.Helper()
	records := s.redis.Client().Keys(context.Background(), "holdfast:once:{lock:asynq:*}").Val()
	if len(records) != 1 {
		s.t.Fatalf("%d records: %v", len(records), records)
	}
	return records[0]
}

// awaitRenewal returns once the lease of the only record was renewed.
func (s *stage) awaitRenewal() {
	s.t.Helper()
	ctx, rdb, record := context.Background(), s.redis.Client(), s.record()
	before := rdb.HGet(ctx, record, "deadline").Val()
	testkit.Eventually(s.t, within, "the lease to be renewed", func() bool {
		return rdb.HGet(ctx, record, "deadline").Val() != before
	})
}

// state returns where asynq has a task, 0 if it has none of that ID.
func (s *stage) state(id string) asynq.TaskState {
	info, err := s.inspector.GetTaskInfo("default", id)
	if err != nil {
		return 0
	}
	return info.State
}

// awaitState returns once asynq has the task there.
func (s *stage) awaitState(id string, want asynq.TaskState) {
	s.t.Helper()
	testkit.Eventually(s.t, within, "the task to be "+want.String(), func() bool { return s.state(id) == want })
}
