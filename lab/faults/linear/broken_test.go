package linear_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// locking is a lock as other programs write it. Both scripts have KEYS lock and counter of tokens, and ARGV id, TTL in ms
// and n. take returns a token, or 0 if the lock is held; release returns how many holds it has ended.
type locking struct {
	model         string
	n             int // of a semaphore, 0 for a mutex
	take, release *redis.Script
}

var (
	takeIfFree = redis.NewScript(`
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and redis.call('INCR', KEYS[2]) or 0`)
	deleteAnyway = redis.NewScript(`return redis.call('DEL', KEYS[1])`)
	deleteOwn    = redis.NewScript(`return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`)

	countUp = redis.NewScript(`
if redis.call('INCR', KEYS[1]) > tonumber(ARGV[3]) then
  redis.call('DECR', KEYS[1])
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('INCR', KEYS[2])`)
	countDown = redis.NewScript(`return redis.call('DECR', KEYS[1]) >= 0 and 1 or 0`)

	addToSet = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('INCR', KEYS[2])`)
	removeFromSet = redis.NewScript(`return redis.call('ZREM', KEYS[1], ARGV[1])`)
)

// drive lets a holder release after its lease has run out, while others have the lock, and one more ask for it. It
// returns the history.
func (l locking) drive(t *testing.T) []history.Event {
	t.Helper()
	ctx := context.Background()
	d := &driver{t: t, locking: l, rdb: testkit.Start(t).Client()}
	d.lock("late", 20*time.Millisecond)
	testkit.Eventually(t, 10*time.Second, "the lease to run out", func() bool {
		return d.rdb.Exists(ctx, "lock").Val() == 0
	})
	for i := range max(l.n, 1) {
		d.lock(string(rune('a'+i)), time.Minute)
	}
	d.unlock("late")
	d.lock("one more", time.Minute)
	return d.events
}

// driver calls a lock and writes the history.
type driver struct {
	locking
	t      *testing.T
	rdb    *redis.Client
	events []history.Event
}

func (d *driver) say(kind history.Kind, e history.Event) {
	e.Kind, e.Call, e.Names, e.Limit, e.Shared, e.Slot = kind, 1, []string{"n"}, d.n, d.n > 0, -1
	if e.At == 0 {
		e.At = history.Now()
	}
	d.events = append(d.events, e)
}

func (d *driver) run(script *redis.Script, by string, ttl time.Duration) int64 {
	d.t.Helper()
	reply, err := script.Run(context.Background(), d.rdb, []string{"lock", "token"}, by, ttl.Milliseconds(), d.n).Int64()
	if err != nil {
		d.t.Fatal(err)
	}
	return reply
}

func (d *driver) lock(by string, ttl time.Duration) {
	d.t.Helper()
	called := history.Now()
	d.say(history.Call, history.Event{At: called, By: by, Op: "lock"})
	e := history.Event{By: by, Op: "lock", Token: d.run(d.take, by, ttl), Until: called + int64(ttl)}
	if e.Token == 0 {
		e.Err = worker.Held
	}
	d.say(history.Return, e)
}

func (d *driver) unlock(by string) {
	d.t.Helper()
	d.say(history.Call, history.Event{By: by, Op: "unlock"})
	e := history.Event{By: by, Op: "unlock"}
	if d.run(d.release, by, time.Minute) == 0 {
		e.Err = worker.NotHeld
	}
	d.say(history.Return, e)
}

// TestBrokenLocks is the baseline: locks with well-known bugs, on a real server, are illegal. With the bug mended, the same
// calls are legal.
func TestBrokenLocks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		locking
		illegal int
	}{
		"release without owner check":   {locking{"mutex", 0, takeIfFree, deleteAnyway}, 1},
		"release with owner check":      {locking{"mutex", 0, takeIfFree, deleteOwn}, 0},
		"semaphore as a counter":        {locking{"semaphore", 2, countUp, countDown}, 1},
		"semaphore as a set of holders": {locking{"semaphore", 2, addToSet, removeFromSet}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := linear.Check(test.drive(t))
			if c := r.Models[test.model]; c.Partitions != 1 || c.Illegal != test.illegal || c.Unknown != 0 {
				t.Errorf("%+v, illegal %q; want %d illegal", r.Models, r.Illegal, test.illegal)
			}
		})
	}
}
