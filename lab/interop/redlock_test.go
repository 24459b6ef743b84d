//go:build unix

package interop_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/interop"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var redlock = as("redlock", "name")

// TestRedlock is about a RedissonRedLock and a Mutex of a core.Redlock on the same three masters.
func TestRedlock(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		p, servers := masters(t)
		java, golang := p.java(t, version, short), p.golang(t, short)
		turn{java, "redlock"}.keepsOut(t, turn{golang, "redlock"})
		turn{golang, "redlock"}.keepsOut(t, turn{java, "redlock"})
		for _, pair := range [][2]*party{{java, java}, {java, golang}, {golang, golang}, {golang, java}} {
			forgotten(t, p, servers[:2], pair[0], pair[1])
		}
		lastMasterDown(t, servers[2], java, golang)
	})
}

// forgotten: if a majority loses its data, the next caller has the lock beside its holder, whichever library each uses.
// holdfast tells the holder. Redisson does not, not even when it unlocks.
func forgotten(t *testing.T, p *place, majority []*testkit.Server, holder, other *party) {
	t.Helper()
	holder.must("x", "lock", redlock...)
	forget(t, p, majority)
	other.must("y", "lock", redlock...)
	if holder.name == "java" {
		holder.want("released", "x", "unlock", redlock...)
	} else {
		holder.want("ErrLeaseLost", "x", "lost", redlock...)
		holder.want("ErrNotHeld", "x", "unlock", redlock...)
	}
	other.must("y", "unlock", redlock...)
}

// forget lets servers lose their data at once. A renewal between them would give the lock back to a Go holder, so it comes
// right after one, and again if the lock is back.
func forget(t *testing.T, p *place, servers []*testkit.Server) {
	t.Helper()
	var clients []*redis.Client
	for _, s := range servers {
		clients = append(clients, s.Client())
	}
	for left := int64(1); left > 0; {
		awaitRenewal(t, p, "name")
		for _, rdb := range clients {
			if err := rdb.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		left = 0
		for _, rdb := range clients {
			left += rdb.Exists(t.Context(), "name").Val()
		}
	}
}

// attempt is how long lock of a RedissonRedLock on three masters gives one attempt.
const attempt = 4500 * time.Millisecond

// retryDelay is how long Redisson waits on average before each of the four further tries that it gives a server. By default
// the first delay is random between 0.5 and 1 s, and the others are between 1 and 2 s.
const retryDelay = (750 + 3*1500) * time.Millisecond / 4

// TestRedlockFirstMasterDown: while the first master is down, tryLock of Redisson takes the lock, and lock does not
// return: it tries that master for longer than it gives an attempt, and begins again. holdfast asks the others. The delays
// are not random here, because lock returns when four short ones come together.
func TestRedlockFirstMasterDown(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		p, servers := masters(t)
		java, golang := p.java(t, version, short, "retrydelay", retryDelay.Milliseconds()), p.golang(t, short)
		servers[0].Kill()
		tryWithoutFirst(t, java)
		lockWithoutFirst(t, servers[0], java, golang)
	})
}

func tryWithoutFirst(t *testing.T, java *party) {
	t.Helper()
	for _, verb := range []string{"trylock", "unlock"} {
		a := java.must("x", verb, redlock...)
		if a.Value == "false" {
			t.Error("the first master is down, and tryLock takes the lock for held")
		}
		t.Logf("java: %s without the first of three masters: %v", verb, since(a, a))
	}
}

func lockWithoutFirst(t *testing.T, first *testkit.Server, java, golang *party) {
	t.Helper()
	waiting := java.begin("x", "lock", redlock...)
	for end := time.After(2*attempt + attempt/3); ; {
		golang.must("x", "lock", redlock...)
		golang.must("x", "unlock", redlock...)
		select {
		case a := <-waiting:
			t.Fatalf("lock returned without the first master: %s", a.Value)
		case <-end:
			first.Restart()
			if a := java.answer(waiting, within); a.Failed {
				t.Error(a.Value)
			}
			java.must("x", "unlock", redlock...)
			return
		case <-time.After(attempt / 30):
		}
	}
}

// lastMasterDown: without the last master Redisson's lock returns, though it and unlock wait for that master.
func lastMasterDown(t *testing.T, last *testkit.Server, java, golang *party) {
	t.Helper()
	last.Kill()
	for _, q := range []*party{golang, java} {
		for _, verb := range []string{"lock", "unlock"} {
			a := q.must("x", verb, redlock...)
			t.Logf("%s: %s without the last of three masters: %v", q.name, verb, since(a, a))
		}
	}
}

// TestRedlockContention lets two processes contend for one name on three masters: of both sides, and as baselines of each
// side alone. One more process of each side is killed in the middle, though not in the baselines. Then the last master is
// killed, and comes back with its data.
func TestRedlockContention(t *testing.T) {
	t.Parallel()
	version := versions(t)[0]
	java := func(p *place, t *testing.T) *party { return p.java(t, version, short) }
	golang := func(p *place, t *testing.T) *party { return p.golang(t, short) }
	for name, start := range map[string][]func(*place, *testing.T) *party{
		"both": {java, golang}, "Redisson alone": {java, java}, "holdfast alone": {golang, golang},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, servers := masters(t)
			var parties, dying []*party
			for _, side := range start {
				parties = append(parties, side(p, t))
				if name == "both" {
					dying = append(dying, side(p, t))
				}
			}
			length := *contest/2 + 2*short
			contenders := beginToContend(parties, 4, length, redlock)
			p.killInTheMiddle(t, dying)
			p.restartInTheMiddle(t, servers[2])
			mustFinish(t, contenders, length)
			holds := p.journal(t, "name")
			p.mustNotMeet(t, "name", holds)
			mustAllHold(t, parties, holds)
			for i, q := range dying {
				holds = slices.Concat(holds, p.journal(t, label(q, i)))
			}
			if found := overlaps(holds); len(found) > 0 {
				t.Errorf("overlaps with those that died: %+v", found)
			}
			slices.SortFunc(holds, func(a, b held) int { return cmp.Compare(a.entered, b.entered) })
			mustGrow(t, holds)
		})
	}
}

// killInTheMiddle lets processes contend, and kills them when each has had the lock. Each has a resource of its own,
// because a dead holder never leaves it.
func (p *place) killInTheMiddle(t *testing.T, dying []*party) {
	t.Helper()
	for i, q := range dying {
		for _, thread := range []string{"0", "1"} {
			q.begin(thread, "contend", append(redlock, "resource", label(q, i), "party", label(q, i),
				"for", time.Hour.Milliseconds(), "hold", 2000, "think", 8000)...)
		}
	}
	for i, q := range dying {
		p.awaitHolds(t, label(q, i))
	}
	for _, q := range dying {
		q.kill()
	}
}

// restartInTheMiddle kills a master for longer than an attempt of Redisson takes. Few get the lock meanwhile: a thread of
// Redisson that has one master waits for the dead one, and keeps others from a majority.
func (p *place) restartInTheMiddle(t *testing.T, master *testkit.Server) {
	t.Helper()
	master.Kill()
	before, down := len(p.journal(t, "name")), max(attempt, *contest/4)
	time.Sleep(down)
	t.Logf("%d holds in %v without a master", len(p.journal(t, "name"))-before, down)
	master.Restart()
}

// awaitHolds waits for a hold of a resource.
func (p *place) awaitHolds(t *testing.T, resource string) {
	t.Helper()
	referee := p.referee.Client()
	testkit.Eventually(t, within, "a hold of "+resource, func() bool {
		return referee.Exists(t.Context(), interop.Journal(resource)).Val() > 0
	})
}
