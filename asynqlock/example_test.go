package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

// exampleConfig looks often, so that examples are quick.
func exampleConfig() asynq.Config {
	return asynq.Config{
		Concurrency: 10, TaskCheckInterval: 10 * time.Millisecond, DelayedTaskCheckInterval: 100 * time.Millisecond,
		LogLevel: asynq.FatalLevel,
	}
}

// enqueue is what a producer does.
func enqueue(queue asynq.RedisClientOpt, tasks ...*asynq.Task) (last *asynq.TaskInfo) {
	client := asynq.NewClient(queue)
	defer client.Close()
	for _, t := range tasks {
		info, err := client.Enqueue(t)
		if err != nil {
			log.Fatal(err)
		}
		last = info
	}
	return last
}

func ExampleOnce() {
	store := locktest.NewServer()
	defer store.Close()
	var both sync.WaitGroup
	both.Add(2)
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient(core.WithHooks(core.Hooks{
		RunEnd: func(context.Context, core.RunEnd) { both.Done() },
		NotRun: func(_ context.Context, n core.NotRun) {
			if n.Reason == core.ReasonReplayed {
				both.Done()
			}
		},
	}))

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.Once(locks, asynqlock.ByPayload("order"), asynqlock.WithRetryIn(time.Second)))
	mux.HandleFunc("receipt:send", func(ctx context.Context, t *asynq.Task) error {
		fmt.Println("sent", string(t.Payload()))
		return nil
	})
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(mux); err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()

	// The producer heard nothing of the first one and tried again.
	receipt := asynq.NewTask("receipt:send", []byte(`{"order":42}`))
	enqueue(queue, receipt, receipt)
	both.Wait()
	// Output:
	// sent {"order":42}
}

func ExampleExclusive() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()
	var all sync.WaitGroup
	all.Add(3)

	mux := asynq.NewServeMux()
	// Edits of one document wait for each other for a second, then they come again later.
	mux.Use(asynqlock.Exclusive(locks.Mutex, asynqlock.ByPayload("document"), core.WithWait(time.Second)))
	pages := 0 // of the only document: nothing else guards it
	mux.HandleFunc("document:edit", func(ctx context.Context, t *asynq.Task) error {
		defer all.Done()
		before := pages
		time.Sleep(time.Millisecond)
		pages = before + 1
		return nil
	})
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(mux); err != nil {
		log.Fatal(err)
	}

	edit := asynq.NewTask("document:edit", []byte(`{"document":"contract"}`))
	enqueue(queue, edit, edit, edit)
	all.Wait()
	server.Shutdown()
	fmt.Println(pages, "pages")
	// Output:
	// 3 pages
}

func ExampleConfigure() {
	cfg := asynq.Config{
		IsFailure: func(err error) bool { return !errors.Is(err, context.DeadlineExceeded) }, // your own rule
	}
	asynqlock.Configure(&cfg) // last

	busy := &asynqlock.DeferredError{RetryIn: 10 * time.Second, Err: core.ErrInProgress}
	fmt.Println("deferred: failure", cfg.IsFailure(busy), "again in", cfg.RetryDelayFunc(0, busy, nil))
	fmt.Println("yours: failure", cfg.IsFailure(context.DeadlineExceeded))
	fmt.Println("others: failure", cfg.IsFailure(errors.New("no such user")))
	// Output:
	// deferred: failure false again in 10s
	// yours: failure false
	// others: failure true
}

func ExampleWithResult() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()

	mux := asynq.NewServeMux()
	mux.Use(asynqlock.Once(locks, asynqlock.ByPayload("order"), core.WithWait(time.Second)))
	payments := 0
	mux.Handle("payment:charge", asynqlock.WithResult(func(ctx context.Context, t *asynq.Task) ([]byte, error) {
		payments++
		return fmt.Appendf(nil, "payment %d, Idempotency-Key of %d characters", payments, len(core.KeyHash(ctx))), nil
	}))
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(mux); err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()

	charge := asynq.NewTask("payment:charge", []byte(`{"order":42}`), asynq.Retention(time.Hour))
	first, second := enqueue(queue, charge), enqueue(queue, charge)
	fmt.Println(string(await(queue, first, asynq.TaskStateCompleted).Result))
	fmt.Println(string(await(queue, second, asynq.TaskStateCompleted).Result))
	// Output:
	// payment 1, Idempotency-Key of 43 characters
	// payment 1, Idempotency-Key of 43 characters
}

// await waits until a task has a state.
func await(queue asynq.RedisClientOpt, task *asynq.TaskInfo, want asynq.TaskState) *asynq.TaskInfo {
	inspector := asynq.NewInspector(queue)
	defer inspector.Close()
	for {
		info, err := inspector.GetTaskInfo(task.Queue, task.ID)
		if err != nil {
			log.Fatal(err)
		}
		if info.State == want {
			return info
		}
		time.Sleep(time.Millisecond)
	}
}

// An operator has found out that a payment of unknown outcome was made.
func ExampleGuard_Resolve() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()

	// Workers and operators make the same guard. An operator's program does not call Wrap.
	payments, err := asynqlock.NewOnce(locks, asynqlock.ByPayload("payment"), core.WithFailurePolicy(core.HoldFailures))
	if err != nil {
		log.Fatal(err)
	}
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(payments.Wrap(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		return errors.New("the bank did not reply")
	}))); err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()
	task := enqueue(queue, asynq.NewTask("payment:charge", []byte(`{"payment":42}`), asynq.Retention(time.Hour)))
	info := await(queue, task, asynq.TaskStateArchived) // which asynq's Inspector returns

	ctx := context.Background()
	seen, err := payments.Peek(ctx, info)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen.State)
	if err := payments.Resolve(ctx, seen, []byte("paid")); err != nil {
		log.Fatal(err)
	}
	queues := asynq.NewInspector(queue)
	defer queues.Close()
	if err := queues.RunTask(info.Queue, info.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(await(queue, task, asynq.TaskStateCompleted).Result))
	// Output:
	// unknown
	// paid
}

func ExampleRuns_Drain() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()
	var runs asynqlock.Runs
	started := make(chan struct{})

	guard := asynqlock.Once(locks, asynqlock.ByTaskID(), asynqlock.WithRuns(&runs))
	slow := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		close(started)
		time.Sleep(100 * time.Millisecond)
		fmt.Println("done")
		return nil
	})
	cfg := exampleConfig()
	cfg.ShutdownTimeout = time.Millisecond // far too short: asynq gives the task to somebody else
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(guard(slow)); err != nil {
		log.Fatal(err)
	}
	enqueue(queue, asynq.NewTask("receipt:send", nil))
	<-started

	server.Shutdown()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	fmt.Println("drained:", runs.Drain(ctx))
	// Output:
	// done
	// drained: <nil>
}

func ExampleEnqueue() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()

	// On every worker: a tick takes effect once, however often its task is delivered or enqueued.
	ran := make(chan time.Time, 10)
	mux := asynq.NewServeMux()
	mux.Handle("report:write", asynqlock.Once(locks, asynqlock.ByTick())(asynq.HandlerFunc(
		func(ctx context.Context, t *asynq.Task) error {
			_, tick, _ := asynqlock.TickFrom(ctx) // the time on the schedule, also if the task runs late
			ran <- tick
			return nil
		})))
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(mux); err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()

	// On every replica: each tick enqueues the task once.
	client := asynq.NewClient(queue)
	defer client.Close()
	c := cron.New(cron.WithLocation(time.UTC))
	task := asynq.NewTask("report:write", nil, asynq.Queue("default"), asynq.MaxRetry(5))
	if _, err := asynqlock.Enqueue(c, locks, client, "@every 1s", "report", task); err != nil {
		log.Fatal(err)
	}
	c.Start()
	first, second := <-ran, <-ran
	<-c.Stop().Done()
	fmt.Println("two ticks:", !second.Equal(first), "at full seconds:", first.Nanosecond()+second.Nanosecond() == 0)
	// Output:
	// two ticks: true at full seconds: true
}

// The changes to one document are applied one right after the other, although there are ten workers.
func ExampleWithLine() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()
	const changes = 20
	var all sync.WaitGroup
	all.Add(changes)

	document := 0 // no mutex: the guard excludes
	handler := asynqlock.Exclusive(locks.Fair, asynqlock.ByPayload("document"), asynqlock.WithLine(store.Redis()))(
		asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			defer all.Done()
			document++
			return nil
		}))
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(handler); err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()

	for range changes {
		enqueue(queue, asynq.NewTask("document:change", []byte(`{"document":"report"}`)))
	}
	all.Wait()
	fmt.Println(document, "changes")
	// Output: 20 changes
}
