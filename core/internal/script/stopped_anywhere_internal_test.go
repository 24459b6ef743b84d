package script

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// stoppedBeforeAny have a script that is stopped before one of its commands, until the shorter of two leases has ended.
var stoppedBeforeAny = map[string]func(l, stopped stoppedLock){
	"permits granted by a release": func(l, stopped stoppedLock) {
		l.acquire(never, "w:1", "w:1", "writing", late)
		l.acquire(never, "a:1", "a:1", "semaphore:2:1", brief)
		l.acquire(never, "b:1", "b:1", "semaphore:2:1", late)
		stopped.release(never, "w:1", "w:1")
		l.wantAtMostTwo("a:1", "b:1", "c:1", "d:1")
	},
	"permits granted beside those of a compact lock": func(l, stopped stoppedLock) {
		l.acquireCompact("a:1", "semaphore:2:1")
		stopped.acquire(never, "b:1", "b:1", "semaphore:2:1", late)
		l.wantAtMostTwo("a:1", "b:1", "c:1", "d:1")
	},
	"waiter that asks again after the holder's lease": func(l, stopped stoppedLock) {
		l.acquire(never, "x:1", "x:1", "fair", brief)
		l.acquire(never, "a:1", "a:1", "fair", brief)
		l.await(l.now(), brief)
		stopped.acquire(never, "a:1", "a:1", "fair", brief)
		l.wantGranted("a:1", "fair")
	},
	"reader that asks again after the holder's lease": func(l, stopped stoppedLock) {
		l.acquire(never, "x:1", "x:1", "writing", brief)
		l.acquire(never, "a:1", "a:1", "reading", brief)
		l.await(l.now(), brief)
		stopped.acquire(never, "a:1", "a:1", "reading", brief)
		l.wantGranted("a:1", "reading")
	},
	"writer that enters again": func(l, stopped stoppedLock) {
		l.acquire(never, "a:1", "a:1", "writing", brief)
		stopped.acquire(never, "a:1", "a:2", "writing", brief)
		l.wantGranted("b:1", "writing")
	},
	"owner of a mutex that enters by another strategy": func(l, stopped stoppedLock) {
		l.acquireCompact("a:1", "")
		stopped.acquire(never, "a:1", "a:2", "fair", brief)
		l.wantGranted("b:1", "fair")
	},
}

// acquireCompact grants a free lock as the fast paths do: a mutex, or what else the mode says.
func (l stoppedLock) acquireCompact(owner, mode string) {
	l.t.Helper()
	if mode != "" {
		mode += " "
	}
	ctx := l.t.Context()
	l.rdb.HSet(ctx, l.keys.Lock, owner, 1, "mode", fmt.Sprint(mode, Milliseconds(brief), " 7"))
	l.rdb.PExpire(ctx, l.keys.Lock, brief)
}

// wantAtMostTwo checks that Redis grants two of these owners a semaphore of two permits, whatever they have by now, and gives
// them different slots.
func (l stoppedLock) wantAtMostTwo(owners ...string) {
	l.t.Helper()
	l.await(l.now(), brief)
	slots := make(map[any]string)
	granted := 0
	for _, owner := range owners {
		reply := l.acquire(never, owner, owner, "semaphore:2:1", late).([]any)
		if reply[0] != int64(1) {
			continue
		}
		granted++
		slot := append(reply, int64(0))[2] // which the reply leaves out if it is 0
		if slots[slot] != "" {
			l.t.Errorf("%s and %s have slot %v", owner, slots[slot], slot)
		}
		slots[slot] = owner
	}
	if granted != 2 {
		l.t.Errorf("%d owners have a permit of 2", granted)
	}
}

// wantGranted checks that an owner gets the lock once the leases of others have ended. Its first request may grant the lock
// to the stopped one: that queued if its owner's hold had ended, as on Redis 7.0 in the last ms of a TTL.
func (l stoppedLock) wantGranted(owner, mode string) {
	l.t.Helper()
	var reply any
	for range 2 {
		l.await(l.now(), 2*brief)
		reply = l.acquire(never, owner, owner, mode, late)
		if told, ok := reply.([]any); !ok || told[0] == int64(1) {
			break
		}
	}
	if told, ok := reply.([]any); ok && told[0] != int64(1) {
		l.t.Errorf("%s was told %v", owner, reply)
	}
	if left := l.rdb.PTTL(l.t.Context(), l.keys.Lock).Val(); left <= 0 || left > late {
		l.t.Errorf("the lock expires after %v", left)
	}
}

// TestStoppedAnywhere: a server that is stopped before any command of a script grants no more permits than there are, and
// answers with no error.
func TestStoppedAnywhere(t *testing.T) {
	t.Parallel()
	const commands = 60 // more than the longest of these scripts sends
	for name, story := range stoppedBeforeAny {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			for before := range commands {
				l := stoppedLock{t: t, rdb: rdb, keys: NewKeys("lock:", fmt.Sprint(before))}
				stopped := l
				stopped.before = before
				story(l, stopped)
				if t.Failed() {
					t.Fatalf("stopped before command %d", before)
				}
			}
		})
	}
}

// endedBefore comes before a script, which it ends right before one of its commands, as a server does that dies there, or that
// refuses the command to the user.
const endedBefore = `local redis = (function(server)
  local left = %d
  return setmetatable({call = function(...)
    left = left - 1
    if left == 0 then
      error('ERR ended here')
    end
    return server.call(...)
  end}, {__index = server})
end)(redis)
`

// TestEndedAnywhere: what a request leaves that ends before any of its commands is a lock still, for each strategy that asks
// once the other holds have ended. It is none of another program.
func TestEndedAnywhere(t *testing.T) {
	t.Parallel()
	const commands = 60 // more than the longest of these scripts sends
	modes := []string{"fair", "writing", "reading", "semaphore:2:1", "semaphore:9:5"}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			left := make(map[string]stoppedLock)
			for how, story := range map[string]func(l, ended stoppedLock){
				"free": func(_, ended stoppedLock) { ended.acquire(never, "a:1", "a:1", mode, soon) },
				"entered again": func(l, ended stoppedLock) {
					l.acquireCompact("a:1", mode)
					ended.acquire(never, "a:1", "a:2", mode, soon)
				},
				"beside that of others": func(l, ended stoppedLock) {
					l.acquireCompact("b:1", mode)
					ended.acquire(never, "a:1", "a:1", mode, soon)
				},
			} {
				for before := 1; before <= commands; before++ {
					name := fmt.Sprintf("%s, ended before command %d", how, before)
					l := stoppedLock{t: t, rdb: rdb, keys: NewKeys("lock:", name)}
					ended := l
					ended.ends = before
					story(l, ended)
					left[name] = l
				}
			}
			stoppedLock{rdb: rdb}.await(stoppedLock{rdb: rdb}.now(), soon)
			for name, l := range left {
				for _, next := range modes {
					l.acquire(never, "c:1", "c:1", next, soon)
				}
				if t.Failed() {
					t.Fatal(name)
				}
			}
		})
	}
}
