package asynq_test

import (
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	// within is how long anything may take on a busy machine.
	within = 30 * time.Second
	// kind is the type of tasks.
	kind = "receipt:send"
)

// shop is a Redis with queues and locks, and what the tasks in it have done, counted elsewhere.
type shop struct {
	t         *testing.T
	redis     *testkit.Server
	locks     *core.Client
	client    *asynq.Client
	inspector *asynq.Inspector
	effects   effects
}

func newShop(t *testing.T, opts ...testkit.Option) *shop {
	t.Helper()
	s := &shop{t: t, redis: testkit.Start(t, opts...)}
	s.locks = s.newLocks()
	s.client = asynq.NewClient(s.conn())
	s.inspector = asynq.NewInspector(s.conn())
	t.Cleanup(func() { _, _ = s.client.Close(), s.inspector.Close() })
	return s
}

// conn leads asynq to the Redis.
func (s *shop) conn() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Network: s.redis.Network(), Addr: s.redis.Addr()}
}

// newLocks is a client of another process.
func (s *shop) newLocks(opts ...core.Option) *core.Client {
	s.t.Helper()
	return clientOf(s.t, s.redis.Client(), opts...)
}

func clientOf(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// config is the config of a server that polls often and logs nothing.
func config() asynq.Config {
	return asynq.Config{
		Concurrency: 10, TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 100 * time.Millisecond,
		ShutdownTimeout: time.Second, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	}
}

// serve starts a server whose tasks all go to handler, through the guards.
func (s *shop) serve(handler asynq.HandlerFunc, guards ...asynq.MiddlewareFunc) *asynq.Server {
	s.t.Helper()
	return s.serveWith(func(*asynq.Config) {}, handler, guards...)
}

// serveWith is serve with another config. It is given to Configure last.
func (s *shop) serveWith(
	edit func(*asynq.Config), handler asynq.HandlerFunc, guards ...asynq.MiddlewareFunc,
) *asynq.Server {
	s.t.Helper()
	cfg := config()
	edit(&cfg)
	asynqlock.Configure(&cfg)
	mux := asynq.NewServeMux()
	mux.Use(guards...)
	mux.HandleFunc(kind, handler)
	server := asynq.NewServer(s.conn(), cfg)
	if err := server.Start(mux); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(server.Shutdown)
	return server
}

func (s *shop) enqueue(t *asynq.Task, opts ...asynq.Option) *asynq.TaskInfo {
	s.t.Helper()
	info, err := s.client.Enqueue(t, opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// awaitEmpty returns once no task is left but those that have completed.
func (s *shop) awaitEmpty() {
	s.t.Helper()
	testkit.Eventually(s.t, within, "the queue to be empty", func() bool {
		info, err := s.inspector.GetQueueInfo("default")
		return err == nil && info.Size == info.Archived+info.Completed
	})
}

// archived returns the tasks that asynq has given up.
func (s *shop) archived() []*asynq.TaskInfo {
	s.t.Helper()
	list, err := s.inspector.ListArchivedTasks("default", asynq.PageSize(1000))
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// effects counts what was done for each thing.
type effects struct {
	mu      sync.Mutex
	done    map[string]int
	running map[string]int
	most    map[string]int // that ran at the same time
}

// begin counts a handler that runs; it owes an end.
func (e *effects) begin(thing string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done, e.running, e.most = map[string]int{}, map[string]int{}, map[string]int{}
	}
	e.running[thing]++
	e.most[thing] = max(e.most[thing], e.running[thing])
}

// end counts its effect, if it has had one.
func (e *effects) end(thing string, effect bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[thing]--
	if effect {
		e.done[thing]++
	}
}

func (e *effects) of(thing string) (done, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done[thing], e.most[thing]
}

// want checks how often a thing was done, and by how many at most at the same time.
func (e *effects) want(t *testing.T, thing string, done, most int) {
	t.Helper()
	if gotDone, gotMost := e.of(thing); gotDone != done || gotMost != most {
		t.Errorf("%s: done %d times, by %d at the same time; want %d, %d", thing, gotDone, gotMost, done, most)
	}
}

// receipt is a task for one thing.
func receipt(thing string) *asynq.Task { return asynq.NewTask(kind, []byte(`{"order":"`+thing+`"}`)) }

// soon lets deferred tasks come again as soon as asynq can.
var soon = asynqlock.WithRetryIn(time.Second)
