package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// defaults makes a server look as seldom as asynq does by itself.
func defaults(cfg *asynq.Config) {
	cfg.TaskCheckInterval, cfg.DelayedTaskCheckInterval, cfg.RetryDelayFunc = 0, 0, nil
}

// deferrals counts how often each task was deferred.
type deferrals struct {
	mu    sync.Mutex
	tasks map[string]int
}

func (d *deferrals) hooks() core.Option {
	return core.WithHooks(core.Hooks{NotRun: func(ctx context.Context, e core.NotRun) {
		var deferred *asynqlock.DeferredError
		if !errors.As(e.Err, &deferred) {
			return
		}
		id, _ := asynq.GetTaskID(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.tasks == nil {
			d.tasks = make(map[string]int)
		}
		d.tasks[id]++
	}})
}

func (d *deferrals) count() (all, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.tasks {
		all, most = all+n, max(most, n)
	}
	return all, most
}

// sequence is the order in which tasks ran.
type sequence struct {
	mu  sync.Mutex
	ids []string
}

func (s *sequence) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, id)
}

// TestLineDrainsAKey: with asynq's default intervals, the tasks of one key run one right after the other.
func TestLineDrainsAKey(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var bounces deferrals
	var ran sequence
	const tasks = 40
	guard := asynqlock.Exclusive(s.newLocks(bounces.hooks()).Mutex, asynqlock.ByPayload("order"),
		asynqlock.WithLine(s.redis.Client()))
	var want []string
	for i := range tasks {
		want = append(want, s.enqueue(receipt("7"), asynq.TaskID(fmt.Sprintf("task-%03d", i))).ID)
	}
	since := time.Now()
	s.serveWith(defaults, func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		s.effects.begin("7")
		defer s.effects.end("7", true)
		ran.add(id)
		time.Sleep(100 * time.Millisecond)
		return nil
	}, guard)
	s.awaitEmpty()
	s.effects.want(t, "7", tasks, 1)
	all, most := bounces.count()
	moved := 0
	for i, id := range ran.ids {
		if at := slices.Index(want, id); at-i > 10 || i-at > 10 {
			moved++
		}
	}
	t.Logf("%d tasks of 100 ms in %v; %d deferrals, %d at most of one task; %d not in order: %v", tasks, time.Since(since), all, most, moved, ran.ids)
	if all > 2*tasks { // on a busy machine a task or two may come a moment too early
		t.Errorf("%d tasks were deferred %d times", tasks, all)
	}
}

// lineOf returns the guard of a shop with a line.
func (s *shop) lineOf(opts ...asynqlock.Option) asynq.MiddlewareFunc {
	return asynqlock.Exclusive(s.locks.Mutex, asynqlock.ByPayload("order"),
		append(opts, asynqlock.WithLine(s.redis.Client()))...)
}

// work is a handler that counts, and waits until free is closed.
func (s *shop) work(free <-chan struct{}) asynq.HandlerFunc {
	return func(_ context.Context, t *asynq.Task) error {
		thing := string(t.Payload())
		s.effects.begin(thing)
		defer s.effects.end(thing, true)
		if free != nil && thing == string(receipt("7").Payload()) {
			<-free
		}
		return nil
	}
}

func payloadOf(thing string) string { return string(receipt(thing).Payload()) }

// TestLineOfLastAttempts: tasks that asynq would archive wait in their workers, and those for which there is no worker
// are archived, as the log says. What is in the archive stays there.
func TestLineOfLastAttempts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var log diary
	s.locks = s.newLocks(core.WithLogger(log.logger()))
	free := make(chan struct{})
	s.serveWith(func(cfg *asynq.Config) { cfg.Concurrency = 6 }, s.work(free), s.lineOf())
	const tasks, room = 10, 1 + 4
	for range tasks {
		s.enqueue(receipt("7"), asynq.MaxRetry(0))
	}
	testkit.Eventually(t, within, "the others to be archived", func() bool { return len(s.archived()) == tasks-room })
	close(free)
	s.awaitEmpty()
	s.effects.want(t, payloadOf("7"), room, 1)
	if n := len(s.archived()); n != tasks-room {
		t.Errorf("%d archived, want %d", n, tasks-room)
	}
	if !strings.Contains(log.String(), "give tasks a retry") {
		t.Errorf("log: %s", log.String())
	}
}

// TestLineSkipsAbsentTasks: tasks in a paused queue stand in front, and tasks of another queue run. There are
// more of the paused ones than a call reaches, and none waits in a worker.
func TestLineSkipsAbsentTasks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	free := make(chan struct{})
	s.serveWith(func(cfg *asynq.Config) {
		cfg.Concurrency, cfg.Queues = 4, map[string]int{"default": 1, "paused": 1}
	}, s.work(free), s.lineOf(soon))
	s.enqueue(receipt("7"))
	testkit.Eventually(t, within, "the first to run", func() bool {
		_, most := s.effects.of(payloadOf("7"))
		return most == 1
	})
	const each = 12
	for i := range each {
		s.enqueue(receipt("7"), asynq.Queue("paused"), asynq.TaskID(fmt.Sprint("p", i)))
	}
	testkit.Eventually(t, within, "all of them to be deferred", func() bool {
		info, err := s.inspector.GetQueueInfo("paused")
		return err == nil && info.Retry == each
	})
	if err := s.inspector.PauseQueue("paused"); err != nil {
		t.Fatal(err)
	}
	for range each {
		s.enqueue(receipt("7"))
	}
	close(free)
	testkit.Eventually(t, 4*within, "the tasks of the other queue to run", func() bool { // asynq's own intervals add up
		info, err := s.inspector.GetQueueInfo("default")
		return err == nil && info.Size == 0
	})
}

// TestLineOnAnotherRedis: a client of another Redis, where asynq's tasks are not, is reported, and tasks run as without.
func TestLineOnAnotherRedis(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var hooks heard
	other := testkit.Start(t)
	s.serve(s.work(nil), asynqlock.Exclusive(s.newLocks(core.WithHooks(hooks.hooks())).Mutex, asynqlock.ByPayload("order"),
		asynqlock.WithLine(other.Client()), soon))
	s.enqueue(receipt("7"))
	s.awaitEmpty()
	if text := hooks.text.String(); !strings.Contains(text, "is not in the Redis of this client") {
		t.Errorf("told %s", text)
	}
}

// TestLineLeavesWorkersToOthers: while a task continues for a long time, those behind it do not keep tasks of other keys from
// running, whether they may be deferred or not.
func TestLineLeavesWorkersToOthers(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]asynq.Option{"retries": nil, "last attempts": {asynq.MaxRetry(0)}} {
		s := newShop(t)
		free := make(chan struct{})
		release := sync.OnceFunc(func() { close(free) })
		defer release()
		s.serveWith(func(cfg *asynq.Config) { cfg.Concurrency = 4 }, s.work(free), s.lineOf())
		for range 20 {
			s.enqueue(receipt("7"), opts...)
		}
		for i := range 10 {
			s.enqueue(receipt(fmt.Sprint("other-", i)))
		}
		testkit.Eventually(t, within, name+": the others to run", func() bool {
			ran := 0
			for i := range 10 {
				done, _ := s.effects.of(payloadOf(fmt.Sprint("other-", i)))
				ran += done
			}
			return ran == 10
		})
		release()
	}
}

// TestLineTouchesNoOtherTasks: what an operator has archived stays there, and what has failed waits for its own retry.
func TestLineTouchesNoOtherTasks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	free := make(chan struct{})
	s.serveWith(func(cfg *asynq.Config) {
		cfg.Concurrency = 2
		cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return time.Hour }
	}, func(ctx context.Context, task *asynq.Task) error {
		if id, _ := asynq.GetTaskID(ctx); id == "failing" {
			return errOwn
		}
		return s.work(free)(ctx, task)
	}, s.lineOf(soon))
	s.enqueue(receipt("7"), asynq.TaskID("failing"))
	s.awaitState("failing", asynq.TaskStateRetry)
	s.enqueue(receipt("7"), asynq.TaskID("first"))
	testkit.Eventually(t, within, "the first to run", func() bool {
		_, most := s.effects.of(payloadOf("7"))
		return most == 1
	})
	for _, id := range []string{"waits", "archived", "deferred"} {
		s.enqueue(receipt("7"), asynq.TaskID(id))
	}
	s.awaitState("archived", asynq.TaskStateRetry)
	s.awaitState("deferred", asynq.TaskStateRetry)
	if err := s.inspector.ArchiveTask("default", "archived"); err != nil {
		t.Fatal(err)
	}
	close(free)
	testkit.Eventually(t, within, "those in line to run", func() bool {
		done, _ := s.effects.of(payloadOf("7"))
		return done == 3
	})
	s.awaitState("failing", asynq.TaskStateRetry)
	s.awaitState("archived", asynq.TaskStateArchived)
}

// TestQueueOfDeletedTasks: tasks in front that asynq does not know hold nobody up for longer than a delay.
func TestQueueOfDeletedTasks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.serve(s.work(nil), s.lineOf(soon))
	s.enqueue(receipt("7"))
	s.awaitEmpty()
	key := "asynqlock:line:{" + hashOf(t, asynqlock.ByPayload("order"), delivery("1"), receipt("7")) + "}"
	for i := range 50 {
		s.redis.Client().ZAdd(t.Context(), key, redis.Z{Score: float64(i), Member: fmt.Sprintf("default\x00no%02d", i)})
	}
	for range 5 {
		s.enqueue(receipt("7"))
	}
	testkit.Eventually(t, 4*within, "all to run", func() bool {
		done, _ := s.effects.of(payloadOf("7"))
		return done == 6
	})
}

// TestLineIsRefused: for records, together with another rule for waiting, and without a client.
func TestLineIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	_, err := asynqlock.NewOnce(s.locks, asynqlock.ByTaskID(), asynqlock.WithLine(s.redis.Client()))
	if err == nil || !strings.Contains(err.Error(), "asynqlock.Once does not take asynqlock.WithLine") {
		t.Errorf("Once: %v", err)
	}
	_, err = asynqlock.NewExclusive(s.locks.Mutex, asynqlock.ByTaskID(), asynqlock.WithLine(s.redis.Client()),
		core.WithWait(time.Second))
	if err == nil || !strings.Contains(err.Error(), "WithWait with WithLine") {
		t.Errorf("WithWait: %v", err)
	}
	for _, rdb := range []redis.UniversalClient{nil, (*redis.Client)(nil)} {
		_, err := asynqlock.NewExclusive(s.locks.Mutex, asynqlock.ByTaskID(), asynqlock.WithLine(rdb))
		if err == nil || !strings.Contains(err.Error(), "client is nil") {
			t.Errorf("nil: %v", err)
		}
	}
}

// runFive enqueues five tasks of a thing and waits until each has run, one at a time.
func (s *shop) runFive(thing string) {
	s.t.Helper()
	for range 5 {
		s.enqueue(receipt(thing))
	}
	testkit.Eventually(s.t, within, thing, func() bool {
		done, _ := s.effects.of(payloadOf(thing))
		return done == 5
	})
	s.effects.want(s.t, payloadOf(thing), 5, 1)
}

// TestLineIsLost: tasks run when the Redis client of the line is closed.
func TestLineIsLost(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var hooks heard
	rdb := s.redis.Client()
	s.serve(s.work(nil), asynqlock.Exclusive(s.newLocks(core.WithHooks(hooks.hooks())).Mutex, asynqlock.ByPayload("order"),
		asynqlock.WithLine(rdb), soon))
	s.runFive("calm")
	s.awaitEmpty()
	testkit.Eventually(t, within, "the line to be gone", func() bool {
		return len(s.redis.Client().Keys(t.Context(), "asynqlock:*").Val()) == 0
	})
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	s.runFive("closed")
	if !strings.Contains(hooks.text.String(), "Kind:"+string(asynqlock.IncidentLine)) {
		t.Error("the hook is not told that there is no line")
	}
}

// TestLineIsDeleted: tasks run when the key of their line is deleted while they stand in it.
func TestLineIsDeleted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	free := make(chan struct{})
	s.serve(s.work(free), s.lineOf(soon))
	for range 5 {
		s.enqueue(receipt("7"))
	}
	rdb := s.redis.Client()
	testkit.Eventually(t, within, "all to stand in line", func() bool {
		keys := rdb.Keys(t.Context(), "asynqlock:line:*").Val()
		return len(keys) == 1 && rdb.ZCard(t.Context(), keys[0]).Val() == 5 &&
			rdb.Del(t.Context(), keys[0]).Val() == 1
	})
	close(free)
	s.awaitEmpty()
	s.effects.want(t, payloadOf("7"), 5, 1)
}

// panics is a hook of a go-redis client that panics once it is told to.
type panics struct{ on atomic.Bool }

func (p *panics) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *panics) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p.on.Load() {
			panic("a hook of the application")
		}
		return next(ctx, cmd)
	}
}

func (p *panics) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestLineSurvivesItsClient: a client of the line that panics neither ends the process nor makes asynq run a task again.
func TestLineSurvivesItsClient(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var hook panics
	rdb := s.redis.Client()
	rdb.AddHook(&hook)
	free := make(chan struct{})
	s.serve(s.work(free), asynqlock.Exclusive(s.locks.Mutex, asynqlock.ByPayload("order"),
		asynqlock.WithLine(rdb), soon))
	for range 5 {
		s.enqueue(receipt("7"))
	}
	testkit.Eventually(t, within, "the first to run", func() bool {
		_, most := s.effects.of(payloadOf("7"))
		return most == 1
	})
	hook.on.Store(true) // the run that continues calls the next ones when it ends
	close(free)
	s.awaitEmpty()
	s.effects.want(t, payloadOf("7"), 5, 1)
	s.runFive("panics")
	s.awaitEmpty()
}

// TestQueueContinuesWithoutCalledTasks: a task that is called may never come to the guard. Those behind it come after
// their own delays.
func TestQueueContinuesWithoutCalledTasks(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"fails": errOwn, "archived": asynq.SkipRetry} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			free := make(chan struct{})
			blocks := func(next asynq.Handler) asynq.Handler {
				return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
					if id, _ := asynq.GetTaskID(ctx); id == "blocked" && isClosed(free) {
						return failure
					}
					return next.ProcessTask(ctx, task)
				})
			}
			s.serveWith(func(cfg *asynq.Config) {
				cfg.Concurrency = 2 // one waits in a worker, so one is called at a time
				cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return time.Hour }
			}, s.work(free), blocks, s.lineOf(soon))
			s.standInLine("blocked", "next", "last")
			close(free)
			testkit.Eventually(t, within, "those behind it to run", func() bool {
				done, _ := s.effects.of(payloadOf("7"))
				return done == 4
			})
		})
	}
}

// standInLine lets a task run until it is freed and another one wait in a worker, and has others deferred behind them.
func (s *shop) standInLine(deferred ...string) {
	s.t.Helper()
	for _, id := range []string{"running", "waiting"} {
		s.enqueue(receipt("7"), asynq.TaskID(id))
		s.awaitState(id, asynq.TaskStateActive)
	}
	for _, id := range deferred {
		s.enqueue(receipt("7"), asynq.TaskID(id))
		s.awaitState(id, asynq.TaskStateRetry)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
