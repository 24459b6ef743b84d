package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// A work is an operation that clients repeat, on names that no other client uses.
type work struct {
	name string
	do   func(ctx context.Context, c *core.Client, name string, hold time.Duration) error
}

// onceName is the operation that leaves a record.
const onceName = "Once"

// A strategy is a kind of lock.
type strategy struct {
	name string
	of   func(*core.Client, string, ...core.LockOption) *core.Lock
}

func strategies() []strategy {
	return []strategy{
		{"Mutex", (*core.Client).Mutex},
		{"Fair", (*core.Client).Fair},
		{"Read", (*core.Client).Read},
		{"Write", (*core.Client).Write},
	}
}

// works are the operations that have costs of their own.
func works() (all []work) {
	for _, s := range strategies() {
		all = append(all, work{s.name, s.pair})
	}
	return append(all, work{onceName, beginAndComplete})
}

// pair locks and unlocks.
func (s strategy) pair(ctx context.Context, c *core.Client, name string, hold time.Duration) error {
	lease, err := s.of(c, name).Lock(ctx)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	pause(hold)
	return lease.Unlock(ctx)
}

func beginAndComplete(ctx context.Context, c *core.Client, name string, hold time.Duration) error {
	attempt, err := c.Once(name).Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	pause(hold)
	return attempt.Complete(ctx, nil)
}

// pause waits for a random time, because work that begins at random times must not end in step.
func pause(mean time.Duration) {
	if mean > 0 {
		time.Sleep(time.Duration(rand.ExpFloat64() * float64(mean)))
	}
}
