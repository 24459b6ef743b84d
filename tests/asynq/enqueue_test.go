package asynq_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestEachTickIsEnqueuedOnce: two replicas and a worker, while Redis stands still for a second and a half. Ticks that
// come meanwhile are enqueued afterwards.
func TestEachTickIsEnqueuedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ticks := newTicker()
	s.serve(ticks.handle, asynqlock.Once(s.locks, asynqlock.ByTick()))
	var stops []func()
	for range 2 {
		stops = append(stops, s.schedule(s.conn(), ticks))
	}
	awaitRuns := func(n int) {
		testkit.Eventually(t, within, "ticks to run", func() bool { _, run := ticks.count(); return run >= n })
	}
	awaitRuns(1)
	s.redis.Pause()
	time.Sleep(1500 * time.Millisecond) // a tick at least comes meanwhile
	s.redis.Resume()
	awaitRuns(4)
	var all sync.WaitGroup
	for _, stop := range stops {
		all.Go(stop)
	}
	all.Wait()
	s.awaitEmpty()
	ticks.wantOnce(t)
}

// TestAnotherReplicaEnqueues: the replica that has the ticks cannot reach the Redis of asynq, and is shut down. The
// other one takes its ticks over.
func TestAnotherReplicaEnqueues(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ticks := newTicker()
	s.serve(ticks.handle, asynqlock.Once(s.locks, asynqlock.ByTick()))
	relay := s.redis.Relay()
	relay.Refuse(true)
	ctx, shutdown := context.WithCancel(t.Context())
	defer shutdown()
	stopSecond := s.schedule(s.conn(), ticks)
	stopFirst := s.schedule(asynq.RedisClientOpt{Addr: relay.Addr()}, ticks,
		cronlock.WithContext(ctx))
	testkit.Eventually(t, within, "the first replica to have a tick", func() bool {
		ticks.mu.Lock()
		defer ticks.mu.Unlock()
		return ticks.by[relay.Addr()] > 0
	})
	shutdown()
	stopFirst()
	testkit.Eventually(t, within, "all ticks to run", func() bool { started, run := ticks.count(); return run == started })
	stopSecond()
	s.awaitEmpty()
	ticks.wantOnce(t)
}

// job adds a job that enqueues a task, and returns what runs it out of turn.
func (s *shop) job(client *asynq.Client, task *asynq.Task, opts ...cronlock.Option) (now func() error) {
	s.t.Helper()
	c := cron.New(cron.WithLocation(time.UTC))
	if _, err := asynqlock.Enqueue(c, s.locks, client, "@yearly", "report", task, opts...); err != nil {
		s.t.Fatal(err)
	}
	return func() error { return cronlock.Job(s.locks, "report").Run(s.t.Context(), c) }
}

// TestEnqueueIsTriedAgain: Redis of asynq refuses connections at first, and then the reply is lost.
func TestEnqueueIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	relay := s.redis.Relay()
	client := asynq.NewClientFromRedisClient(relay.Client())
	now := s.job(client, asynq.NewTask(kind, nil))
	s.enqueue(asynq.NewTask("other", nil)) // Redis has the script from here on
	relay.Refuse(true)
	relay.LoseReplies(kind, 1, testkit.Closed)
	done := make(chan error, 1)
	refused := make(chan struct{})
	go func() {
		defer close(refused)
		for range 3 {
			if _, err := client.Enqueue(asynq.NewTask("other", nil)); err == nil {
				t.Error("Redis is there")
			}
		}
	}()
	go func() { done <- now() }()
	<-refused
	select {
	case err := <-done:
		t.Fatalf("it has ended, with Redis away: %v", err)
	default:
	}
	relay.Refuse(false)
	wantNil(t, <-done)
	if info, err := s.inspector.GetQueueInfo("default"); err != nil || info.Pending != 2 || relay.LostReplies() != 1 {
		t.Errorf("%+v, %v, %d replies lost; want two tasks", info, err, relay.LostReplies())
	}
}

// TestEnqueueGivesUp: when it is told to stop, naming the job.
func TestEnqueueGivesUp(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	away := s.redis.Client(func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			cancel()
			return nil, errors.New("no route")
		}
	})
	c := cron.New()
	_, err := asynqlock.Enqueue(c, s.locks, asynq.NewClientFromRedisClient(away), "@yearly", "report",
		asynq.NewTask(kind, nil))
	wantNil(t, err)
	err = cronlock.Job(s.locks, "report").Run(ctx, c)
	wantErrors(t, err, context.Canceled)
	if err == nil || !strings.Contains(err.Error(), `job "report": not enqueued after`) {
		t.Errorf("%v, want what it is about", err)
	}
}

// TestEnqueueKeepsTheOptions of the task, but its TaskID. Two runs make two tasks.
func TestEnqueueKeepsTheOptions(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	spare := make([]asynq.Option, 0, 10) // into which asynq appends
	spare = append(spare, asynq.Queue("low"), asynq.MaxRetry(7), asynq.Retention(time.Hour), asynq.TaskID("mine"))
	now := s.job(s.client, asynq.NewTaskWithHeaders(kind, []byte("p"), map[string]string{"h": "v"}, spare...))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { wantNil(t, now()) })
	}
	both.Wait()
	tasks, err := s.inspector.ListPendingTasks("low")
	if err != nil || len(tasks) != 2 {
		t.Fatalf("%d tasks, %v, want 2", len(tasks), err)
	}
	for _, got := range tasks {
		if got.MaxRetry != 7 || got.Retention != time.Hour || string(got.Payload) != "p" || got.Headers["h"] != "v" {
			t.Errorf("%+v", got)
		}
		job, tick, ok := asynqlock.TickFrom(asynqlock.ContextWithTask(t.Context(), got))
		if !ok || job != "report" || time.Since(tick) > within {
			t.Errorf("task ID %s", got.ID)
		}
	}
}

// TestArchivedTaskBlocksItsTickOnly: the baseline is a fixed task ID, under which nothing can be enqueued any more.
func TestArchivedTaskBlocksItsTickOnly(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var mu sync.Mutex
	ran := map[string]int{}
	s.serve(func(ctx context.Context, _ *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		id, _ := asynq.GetTaskID(ctx)
		ran[id]++
		return asynq.SkipRetry
	})
	now := s.job(s.client, asynq.NewTask(kind, nil))
	awaitArchived := func(n int) {
		testkit.Eventually(t, within, "tasks to be archived", func() bool { return len(s.archived()) == n })
	}
	for n := range 3 {
		wantNil(t, now())
		awaitArchived(n + 1)
	}
	s.enqueue(asynq.NewTask(kind, nil), asynq.TaskID("report"))
	awaitArchived(4)
	for range 2 {
		_, err := s.client.Enqueue(asynq.NewTask(kind, nil), asynq.TaskID("report"))
		wantErrors(t, err, asynq.ErrTaskIDConflict)
	}
	mu.Lock()
	defer mu.Unlock()
	for id, n := range maps.Clone(ran) {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	if len(ran) != 4 {
		t.Errorf("ran %v, want three ticks and one fixed ID", ran)
	}
}

// TestTasksThatAreAllowed: checking a task sends nothing, and keeps no option from it.
func TestTasksThatAreAllowed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, opts := range [][]asynq.Option{
		nil,
		{asynq.TaskID("mine")},
		{asynq.Queue(":unique:")},
		{asynq.ProcessIn(time.Hour)},
		{asynq.Timeout(time.Second), asynq.Retention(time.Hour)},
	} {
		s.job(s.client, asynq.NewTask(kind, []byte("}:unique:"), opts...))
	}
	if keys := s.redis.Client().Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("Redis has %q", keys)
	}
}

// TestEnqueueArguments: what is missing is an error when the program starts.
func TestEnqueueArguments(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	task := asynq.NewTask(kind, nil)
	for want, task := range map[string]*asynq.Task{
		"typename cannot be empty":  asynq.NewTask(" ", nil),
		"has the option":            asynq.NewTask(kind, nil, asynq.Unique(time.Hour)),
		"option asynq.Unique":       asynq.NewTask(kind, nil, asynq.Unique(time.Hour), asynq.ProcessIn(time.Minute)),
		"option asynq.Group":        asynq.NewTask(kind, nil, asynq.Unique(time.Hour), asynq.Group("g")),
		"one task of several ticks": asynq.NewTask(kind, nil, asynq.Group("g")),
		"use asynq.Timeout":         asynq.NewTask(kind, nil, asynq.Deadline(time.Now().Add(time.Hour))),
		"Unique TTL":                asynq.NewTask(kind, nil, asynq.Unique(time.Millisecond)),
		"queue name":                asynq.NewTask(kind, nil, asynq.Queue("")),
		"group key cannot be empty": asynq.NewTask(kind, nil, asynq.Group(" ")),
		"asynqlock: the task: ":     asynq.NewTask(kind, nil, asynq.TaskID(" ")),
	} {
		c := cron.New()
		_, err := asynqlock.Enqueue(c, s.locks, s.client, "@hourly", "report", task)
		if err == nil || !strings.Contains(err.Error(), want) || len(c.Entries()) != 0 {
			t.Errorf("%v, %d entries, want %s", err, len(c.Entries()), want)
		}
	}
	for want, enqueue := range map[string]func(c *cron.Cron) (cron.EntryID, error){
		"asynq's client is nil": func(c *cron.Cron) (cron.EntryID, error) {
			return asynqlock.Enqueue(c, s.locks, nil, "@hourly", "report", task)
		},
		"the task is nil": func(c *cron.Cron) (cron.EntryID, error) {
			return asynqlock.Enqueue(c, s.locks, s.client, "@hourly", "report", nil)
		},
		"the cron is nil": func(*cron.Cron) (cron.EntryID, error) {
			return asynqlock.Enqueue(nil, s.locks, s.client, "@hourly", "report", task)
		},
		"the client is nil": func(c *cron.Cron) (cron.EntryID, error) {
			return asynqlock.Enqueue(c, nil, s.client, "@hourly", "report", task)
		},
		"the job has no name": func(c *cron.Cron) (cron.EntryID, error) {
			return asynqlock.Enqueue(c, s.locks, s.client, "@hourly", "", task)
		},
		"WithMaxSkew": func(c *cron.Cron) (cron.EntryID, error) {
			return asynqlock.Enqueue(c, s.locks, s.client, "@hourly", "report", task, cronlock.WithMaxSkew(-1))
		},
	} {
		c := cron.New()
		if _, err := enqueue(c); err == nil || !strings.Contains(err.Error(), want) || len(c.Entries()) != 0 {
			t.Errorf("%v, %d entries, want %s", err, len(c.Entries()), want)
		}
	}
}
