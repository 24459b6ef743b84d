package otellock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

// initZeros makes the metrics of named locks exist before the first acquisition, so that "no leader" is a sum of 0 and
// not a missing series.
func (t *telemetry) initZeros(ctx context.Context) {
	t.named = map[string]*measurement{}
	for name := range t.config.elections {
		t.named[name] = newMeasurement(nameKey.String(valid(name)))
		t.leader.Add(ctx, 0, t.named[name].add...)
	}
	for name := range t.config.semaphores {
		t.named[name] = newMeasurement(nameKey.String(valid(name)))
		t.permitsUsage.Add(ctx, 0, t.named[name].add...)
	}
}

// permitsOf notes the limit of a named semaphore, and returns how many permits a granted call takes of it. It returns 0 for
// any other lock, and for a re-entry, which takes none.
func (c *call) permitsOf(end core.AcquireEnd) int {
	if end.Mode != core.ModeSemaphore || !c.config.semaphores[end.Name] {
		return 0
	}
	c.permitsLimit.Record(c, int64(end.Limit), c.named[end.Name].record...)
	if end.Reentered {
		return 0
	}
	return end.Permits
}
