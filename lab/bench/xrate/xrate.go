package xrate

import (
	"context"
	"time"

	"github.com/go-redis/redis/v8"
	"github.com/hibiken/asynq/x/rate"

	"github.com/holdfast-go/holdfast/lab/permits"
)

// Module is where the package is.
const Module = "github.com/hibiken/asynq/x"

const (
	// ExamplePause is how long a task that is refused pauses in the example of the package: asynq retries it then.
	ExamplePause = 30 * time.Second
	// ShortPause is for callers that cannot wait so long.
	ShortPause = 5 * time.Millisecond
)

// Contestant is the semaphore for callers that are tasks, and that ask again after a pause.
func Contestant(name string, tasks *Tasks, pause time.Duration) permits.Contestant {
	return permits.Contestant{
		Name: name, Sends: []string{"evalsha", "eval", "zrem"},
		Open: func(c permits.Config) (permits.Process, error) {
			return &process{rate.NewSemaphore(option(c.Addr), c.Name, c.N), tasks, c.TTL, pause}, nil
		},
	}
}

// option makes a client of the version of go-redis that x/rate needs. The options of asynq 0.26 make a newer one, which
// x/rate refuses.
type option string

func (addr option) MakeRedisClient() any {
	return redis.NewClient(&redis.Options{Addr: string(addr), PoolSize: permits.Connections})
}

type process struct {
	*rate.Semaphore
	tasks *Tasks
	ttl   time.Duration
	pause time.Duration
}

// Try gives the task its deadline, which ends the permit too. The context is the task's: if another one ended it, a
// permit that was just granted could not be released.
func (p *process) Try(_ context.Context, caller int) (permits.Permit, error) {
	task, cancel := context.WithTimeout(p.tasks.contexts[caller], p.ttl)
	granted, err := p.Semaphore.Acquire(task)
	if err != nil || !granted {
		cancel()
		return nil, err
	}
	return &permit{p.Semaphore, task, cancel}, nil
}

func (p *process) Acquire(ctx context.Context, caller int) (permits.Permit, error) {
	for {
		permit, err := p.Try(ctx, caller)
		if permit != nil || err != nil {
			return permit, err
		}
		select {
		case <-time.After(p.pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

type permit struct {
	semaphore *rate.Semaphore
	task      context.Context
	cancel    context.CancelFunc
}

// Valid is what a handler knows: its context ends with the deadline.
func (p *permit) Valid() bool { return p.task.Err() == nil }

func (p *permit) Release(context.Context) error {
	defer p.cancel()
	return p.semaphore.Release(p.task)
}
