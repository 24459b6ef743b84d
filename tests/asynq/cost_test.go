package asynq_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// costs are what guards have asked of Redis.
type costs struct{ scripts, commands int64 }

func (d *desk) costs() (c costs) {
	for name, stat := range d.redis.CommandStats() {
		switch {
		case name == "evalsha" || name == "eval":
			c.scripts += stat.Calls
		case name != "info" && name != "ping" && !strings.HasPrefix(name, "client"):
			c.commands += stat.Calls
		}
	}
	return c
}

// bytes returns what the keys of guards take, by how long they are kept.
func (d *desk) bytes() (all int64, each string) {
	sums := map[string]int64{}
	ctx := d.t.Context()
	for _, key := range d.rdb.Keys(ctx, "*").Val() {
		kind, _, _ := strings.Cut(key, "{")
		n := d.rdb.MemoryUsage(ctx, key, 0).Val()
		sums[fmt.Sprintf("%s %v", kind, d.rdb.PTTL(ctx, key).Val().Round(1e9))] += n
		all += n
	}
	return all, fmt.Sprint(sums)
}

// TestCostOfATask measures what a guard costs for each task: the table in lab/tasks/RESULTS.md. Commands are those that INFO
// commandstats counts. A client sends scripts only, each of which runs several commands.
func TestCostOfATask(t *testing.T) {
	t.Parallel()
	const tasks = 20
	for name, test := range map[string]struct {
		guard     func(d *desk) asynq.MiddlewareFunc
		first     costs // at most, for a task that runs
		duplicate costs // at most, for one whose key was there before
	}{
		"Once, ByPayload(field)": {func(d *desk) asynq.MiddlewareFunc {
			return asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
		}, costs{2, 15}, costs{1, 9}},
		"Once, ByTaskID": {func(d *desk) asynq.MiddlewareFunc {
			return asynqlock.Once(d.locks, asynqlock.ByTaskID())
		}, costs{2, 16}, costs{1, 9}},
		"Exclusive": {func(d *desk) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByPayload("order"))
		}, costs{2, 10}, costs{2, 10}},
		"Exclusive, WithLine": {func(d *desk) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByPayload("order"), asynqlock.WithLine(d.rdb))
		}, costs{4, 18}, costs{4, 18}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			guard := test.guard(d)
			id := func(n int) string { return fmt.Sprintf("51e95400-3655-4284-8f9e-%012d", n) }
			wantNil(t, d.deliver(delivery(id(0)), receipt("load the scripts"), nothing, guard))
			wantNil(t, d.deliver(delivery(id(0)), receipt("load the scripts"), nothing, guard))
			round := func() costs {
				before := d.costs()
				for n := range tasks {
					wantNil(t, d.deliver(delivery(id(n+1)), receipt(id(n+1)), nothing, guard))
				}
				after := d.costs()
				return costs{(after.scripts - before.scripts) / tasks, (after.commands - before.commands) / tasks}
			}
			first, duplicate := round(), round()
			wantAtMost(t, "a task that runs", first, test.first)
			wantAtMost(t, "a duplicate", duplicate, test.duplicate)
			wantNil(t, d.rdb.FlushAll(t.Context()).Err())
			busy := d.occupy(delivery(id(1)), receipt("7"), guard)
			running, each := d.bytes()
			t.Logf("%s: while it runs: %d bytes: %s", name, running, each)
			wantNil(t, busy.release())
			rest, each := d.bytes()
			t.Logf("%s: after it: %d bytes: %s", name, rest, each)
		})
	}
}

func wantAtMost(t *testing.T, what string, got, most costs) {
	t.Helper()
	t.Logf("%s: %s: %d scripts, with %d commands", t.Name(), what, got.scripts, got.commands)
	if got.scripts > most.scripts || got.commands > most.commands {
		t.Errorf("%s: %+v, want at most %+v", what, got, most)
	}
}
