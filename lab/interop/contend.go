package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// contend locks and unlocks over and over, and tells the referee of each hold of the resources, by default the resources of the
// lock's names. It returns the number of holds.
func (t *thread) contend(c Command, locker *core.Lock) (string, error) {
	how := "exclusive"
	if c.Arguments["kind"] == "read" {
		how = "go"
	}
	hold, think := c.duration("hold", time.Microsecond), c.duration("think", time.Microsecond)
	who, resources := c.Arguments["party"]+":"+t.name, c.names()
	if c.has("resource") {
		resources = []string{c.Arguments["resource"]}
	}
	holds := 0
	for end := time.Now().Add(c.duration("for", time.Millisecond)); time.Now().Before(end); holds++ {
		err := locker.Do(t.site.ctx, func(ctx context.Context) error {
			return t.hold(ctx, resources, who, how, hold)
		})
		if err != nil {
			return "", fmt.Errorf("hold %d: %w", holds, err)
		}
		pause(think)
	}
	return strconv.Itoa(holds), nil
}

// hold is inside all resources at once.
func (t *thread) hold(ctx context.Context, resources []string, who, how string, most time.Duration) error {
	began := now()
	entered := make([]string, len(resources))
	for i, resource := range resources {
		var err error
		if entered[i], err = t.site.referee.enter(ctx, resource, who, how); err != nil {
			return err
		}
	}
	pause(most)
	token, _ := core.TokenFrom(ctx)
	for i, resource := range resources {
		if err := t.site.referee.leave(ctx, resource, who, how, entered[i], began, token); err != nil {
			return err
		}
	}
	return nil
}

// pause pauses for at most so long, at random, so that the callers do not fall into step.
func pause(most time.Duration) {
	if most > 0 {
		time.Sleep(rand.N(most))
	}
}

// pairs locks and unlocks as fast as it can, and returns how many pairs were done in how many microseconds.
func (t *thread) pairs(c Command, locker *core.Lock) (string, error) {
	start := time.Now()
	length := c.duration("for", time.Millisecond)
	pairs := 0
	for ; pairs == 0 || time.Since(start) < length; pairs++ {
		lease, err := locker.Lock(t.site.ctx)
		if err != nil {
			return "", err
		}
		if err := lease.Unlock(t.site.ctx); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d %d", pairs, time.Since(start).Microseconds()), nil
}
