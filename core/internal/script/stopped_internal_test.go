package script

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// stoppedAt comes before a script, whose first TIME it answers with an earlier time: as if the server had been stopped right
// after that command, for as long as a busy host or a move of its virtual machine takes.
const stoppedAt = `local redis = (function(server)
  local time = {'%d', '%d'}
  return setmetatable({call = function(name, ...)
    if name == 'TIME' and time then
      local earlier = time
      time = nil
      return earlier
    end
    return server.call(name, ...)
  end}, {__index = server})
end)(redis)
`

// stoppedBefore comes before a script. It stops the server right before one of the script's commands, for so many ms. From
// Redis 7.2 on, TIME stands still within a script, and so do all expiries. There is nothing to stop for then.
const stoppedBefore = `local redis = (function(server)
  local left = %d
  local function ms()
    local time = server.call('TIME')
    return time[1] * 1000 + time[2] / 1000
  end
  return setmetatable({call = function(...)
    left = left - 1
    if left == 0 then
      local began, looked = ms(), 0
      while ms() < began + %d and (looked < 1000 or ms() > began) do
        looked = looked + 1
      end
    end
    return server.call(...)
  end}, {__index = server})
end)(redis)
`

// TTLs of a hold that ends while the server is stopped, and of one that does not. Tests that hold however late a request
// arrives have the brief one: the server spends twice that time in a loop, before each command.
const (
	brief = 20 * time.Millisecond
	soon  = 50 * time.Millisecond
	late  = time.Minute
)

// never is the moment of a script that is not stopped.
var never time.Time

// stoppedLock is a lock whose scripts may be stopped.
type stoppedLock struct {
	t      *testing.T
	rdb    *redis.Client
	keys   Keys
	before int // the command before which the next script is stopped, counted from 1; 0 for none
	ends   int // the command before which the next script ends, likewise
}

// now returns the time of the server.
func (l stoppedLock) now() time.Time { return l.rdb.Time(context.Background()).Val() }

// await waits until what was granted at a moment for so long has ended.
func (l stoppedLock) await(moment time.Time, ttl time.Duration) {
	end := moment.Add(ttl + time.Millisecond)
	for left := end.Sub(l.now()); left > 0; left = end.Sub(l.now()) {
		time.Sleep(left)
	}
}

// eval runs a script, with KEYS[7] and KEYS[8]. It is stopped since the moment, unless that is never.
func (l stoppedLock) eval(script *transport.Script, moment time.Time, key7, key8 string, args ...any) any {
	l.t.Helper()
	source := script.Source
	if !moment.IsZero() {
		source = fmt.Sprintf(stoppedAt, moment.Unix(), moment.Nanosecond()/1000) + source
	}
	if l.before > 0 {
		source = fmt.Sprintf(stoppedBefore, l.before, Milliseconds(2*brief)) + source
	}
	if l.ends > 0 {
		source = fmt.Sprintf(endedBefore, l.ends) + source
	}
	keys := []string{l.keys.Lock, "token" + l.keys.tag, l.keys.ShareExpiries(), l.keys.ExclusiveQueue(), l.keys.SharedQueue(), l.keys.Waiters(), key7}
	if key8 != "" {
		keys = append(keys, key8)
	}
	reply, err := l.rdb.Eval(context.Background(), source, append(keys, l.keys.Slots()), append([]any{l.keys.Channel, "PUBLISH"}, args...)...).Result()
	if err != nil && (l.ends == 0 || !strings.Contains(err.Error(), "ended here")) {
		l.t.Error(err)
	}
	return reply
}

// acquire requests the lock, and takes a place in the queue if it is not granted. owner may have another hold already.
func (l stoppedLock) acquire(moment time.Time, owner, id, mode string, ttl time.Duration) (reply any) {
	l.t.Helper()
	return l.eval(queueAcquireScript, moment, l.keys.Released(id), "", owner, Milliseconds(ttl), mode, 1, id, 0)
}

// release returns true if Redis had the hold.
func (l stoppedLock) release(moment time.Time, owner, id string) bool {
	l.t.Helper()
	return l.eval(queueReleaseScript, moment, l.keys.Released(id), "", owner, 0, id, 0) == int64(1)
}

// fullBeside makes a semaphore of two permits full, with a waiter. The permit of a:1 ends while a script is stopped since the
// moment, the others do not.
func (l stoppedLock) fullBeside() (moment time.Time) {
	l.t.Helper()
	l.acquire(never, "b:1", "b:1", "semaphore:2:1", late)
	l.acquire(never, "a:1", "a:1", "semaphore:2:1", soon)
	l.acquire(never, "c:1", "c:1", "semaphore:2:1", late)
	moment = l.now()
	l.await(moment, soon)
	return moment
}

// stoppedStories have a script that is stopped at a moment until a hold has ended. They return true if the others are still held.
var stoppedStories = map[string]func(l stoppedLock) bool{
	"granted by a release, beside a share that has expired": func(l stoppedLock) bool {
		return l.release(l.fullBeside(), "b:1", "b:1") && l.release(never, "c:1", "c:1")
	},
	"granted by a forced release, beside a share that has expired": func(l stoppedLock) bool {
		l.eval(forceHolderScript, l.fullBeside(), "done"+l.keys.tag, l.keys.Forced(), 1000, "b:1", 0, 0)
		return l.release(never, "c:1", "c:1")
	},
	"granted by a release, beside a reader with a shorter time": func(l stoppedLock) bool {
		l.acquire(never, "w:1", "w:1", "writing", late)
		l.acquire(never, "a:1", "a:1", "reading", soon)
		l.acquire(never, "b:1", "b:1", "reading", late)
		moment := l.now()
		l.await(moment, soon)
		return l.release(moment, "w:1", "w:1") && l.release(never, "b:1", "b:1")
	},
	"writer that enters again, after the clock was set back": func(l stoppedLock) bool {
		l.acquire(never, "a:1", "a:1", "writing", late)
		moment := l.now()
		l.acquire(never, "a:1", "a:2", "reading", soon) // ends the compact state
		ahead := moment.Add(late)
		l.rdb.HSet(context.Background(), l.keys.Lock, "exclusive_until", ahead.UnixMilli(), "ttl", soon.Milliseconds())
		l.rdb.PExpireAt(context.Background(), l.keys.Lock, ahead)
		l.await(moment, soon)
		l.acquire(moment, "a:1", "a:3", "writing", late)
		return l.release(never, "a:1", "a:3")
	},
	"beside a share that is granted for a shorter time": func(l stoppedLock) bool {
		l.acquire(never, "a:1", "a:1", "reading", late)
		moment := l.now()
		l.await(moment, soon)
		l.acquire(moment, "b:1", "b:1", "reading", soon)
		return l.release(never, "a:1", "a:1")
	},
	"beside permits that are granted for a shorter time": func(l stoppedLock) bool {
		l.acquire(never, "a:1", "a:1", "semaphore:2:1", late)
		moment := l.now()
		l.await(moment, soon)
		l.acquire(moment, "b:1", "b:1", "semaphore:2:1", soon)
		slots := l.rdb.ZCard(context.Background(), l.keys.Slots()).Val()
		return l.release(never, "a:1", "a:1") && slots > 0
	},
	"beside a share that is requested again": func(l stoppedLock) bool {
		l.acquire(never, "a:1", "a:1", "reading", late)
		l.acquire(never, "b:1", "b:1", "reading", soon)
		moment := l.now()
		l.await(moment, soon)
		l.acquire(moment, "b:1", "b:1", "reading", soon)
		return l.release(never, "a:1", "a:1")
	},
	"read side of a writer that enters again": func(l stoppedLock) bool {
		l.acquire(never, "a:1", "a:1", "writing", soon)
		moment := l.now()
		l.acquire(moment, "a:1", "a:2", "reading", late)
		l.await(moment, soon)
		l.acquire(moment, "a:1", "a:3", "writing", soon)
		return l.release(never, "a:1", "a:2")
	},
}

// TestStoppedScript: a server that is stopped between TIME and the writes of a script loses no hold, and makes none that
// cannot be released. Redis before 7.2 deletes a key whose new expiry has passed meanwhile.
func TestStoppedScript(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for name, held := range stoppedStories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := stoppedLock{t: t, rdb: rdb, keys: NewKeys("lock:", name)}
			if !held(l) {
				t.Error("the hold was lost")
			}
			if left := rdb.PTTL(context.Background(), l.keys.Lock).Val(); left > 0 && left > late || left == -1 {
				t.Errorf("the lock expires after %v", left)
			}
		})
	}
}

// TestForcedReleaseSetsTheExpiry: a lock expires with the last hold that a forced release leaves or grants.
func TestForcedReleaseSetsTheExpiry(t *testing.T) {
	t.Parallel()
	l := stoppedLock{t: t, rdb: testkit.Start(t).Client(), keys: NewKeys("lock:", "forced")}
	force := func(owner string) (lock, shares time.Duration) {
		l.eval(forceHolderScript, never, "done"+l.keys.tag+owner, l.keys.Forced(), 1000, owner, 0, 0)
		lock = l.rdb.PTTL(context.Background(), l.keys.Lock).Val() // first, so it is not smaller if they expire together
		return lock, l.rdb.PTTL(context.Background(), l.keys.ShareExpiries()).Val()
	}
	l.acquire(never, "a:1", "a:1", "semaphore:2:1", PlaceTTL/2)
	l.acquire(never, "b:1", "b:1", "semaphore:2:1", late)
	if lock, _ := force("b:1"); lock > PlaceTTL/2 {
		t.Errorf("the lock expires after %v, its hold within %v", lock, PlaceTTL/2)
	}
	l.acquire(never, "b:2", "b:2", "semaphore:2:1", PlaceTTL/2)
	l.acquire(never, "c:1", "c:1", "semaphore:2:1", late)
	if lock, shares := force("b:2"); lock < shares {
		t.Errorf("the lock expires after %v, its holds after %v", lock, shares)
	}
}

// TestStoppedConversion: the lease of a Mutex does not become shorter when its owner takes the Fair of that name.
func TestStoppedConversion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l := stoppedLock{t: t, rdb: testkit.Start(t).Client(), keys: NewKeys("lock:", "converted")}
	granted := l.now()
	l.rdb.HSet(ctx, l.keys.Lock, "a:1", 1, "hold:a:1", 1, "mode", "mutex", "token", 7, "granted", strconv.FormatInt(granted.UnixMicro(), 10), "ttl", Milliseconds(late))
	l.rdb.PExpire(ctx, l.keys.Lock, late)
	moment := l.now()
	l.await(moment, soon)
	l.acquire(moment, "a:1", "a:3", "fair", soon)
	left := l.rdb.PTTL(ctx, l.keys.Lock).Val()
	at := granted.Truncate(time.Millisecond).Add(late) // Redis counts whole milliseconds
	if until := l.now().Add(left); until.Before(at) {
		t.Errorf("expires before %v, was granted until %v", until, at)
	}
}
