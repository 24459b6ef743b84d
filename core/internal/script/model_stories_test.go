package script_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// The kinds of the stories.
var (
	aMutex     = kind{strategy: "Mutex", mode: modeMutex}
	aFair      = kind{strategy: "Fair", mode: modeFair}
	aWrite     = kind{strategy: "Write", mode: modeWrite, readersNext: true}
	aFairWrite = kind{strategy: "FairWrite", mode: modeWrite}
	aRead      = kind{strategy: "Read", mode: modeRead}

	aPermit      = kind{strategy: "Semaphore(3)", mode: modeSemaphore, limit: 3, k: 1}
	twoPermits   = kind{strategy: "Semaphore(4) for 2", mode: modeSemaphore, limit: 4, k: 2}
	threePermits = kind{strategy: "Semaphore(5) for 3", mode: modeSemaphore, limit: 5, k: 3}
	oneOfFive    = kind{strategy: "Semaphore(5)", mode: modeSemaphore, limit: 5, k: 1}
	theOnly      = kind{strategy: "Semaphore(1)", mode: modeSemaphore, limit: 1, k: 1}
)

// stories are short courses of events of which the scripts once had, or easily might have, another idea than the model,
// and which random ones do not meet often.
var stories = map[string]func(*episode){
	"permits last as long as the renewals of their share": func(e *episode) {
		a, b := e.asks("A", aPermit, 3), e.asks("B", aPermit, 3)
		e.renew(a, 29)
		e.renew(b, 29)
		e.pass(4)
		e.asks("C", aPermit, 9)
		e.check()
	},
	"several permits take the slots on both sides of one that is taken": func(e *episode) {
		a, b := e.asks("A", aPermit, 29), e.asks("B", aPermit, 29)
		e.release(a, script.HeldByCaller)
		e.asks("C", threePermits, 29)
		e.asks("D", oneOfFive, 29)
		e.release(b, script.HeldByCaller)
		e.asks("E", oneOfFive, 29)
		e.check()
	},
	"a waiter whose owner was let in enters too, and leaves the line": func(e *episode) {
		other, first, second := e.asks("B", aFair, 9), e.asks("A", aFair, 9), e.asks("A", aFair, 9)
		e.release(other, script.HeldByCaller)
		e.acquire(second)
		e.check()
		e.forceIt()
		e.release(first, script.HeldByCaller)
	},
	"an owner whose own reader is let in right now cannot wait for the lock": func(e *episode) {
		e.asks("B", aFair, 3)
		e.asks("A", aRead, 9)
		e.pass(4)
		e.asks("A", aFair, 9)
	},
	"readers who died are forgotten though writers still wait": func(e *episode) {
		e.asks("B", aFair, 29)
		e.asks("A", aRead, 9)
		e.pass(4)
		e.asks("C", aFair, 9)
		e.pass(2)
	},
	"a writer whose time is over cannot renew while its share lasts": func(e *episode) {
		writer, reader := e.asks("A", aWrite, 1), e.asks("A", aRead, 9)
		e.pass(2)
		e.asks("B", aRead, 9)
		e.renew(writer, 9)
		e.renew(reader, 9)
	},
	"a share that expired while only its owner's write was renewed is gone": func(e *episode) {
		writer, reader := e.asks("A", aWrite, 3), e.asks("A", aRead, 1)
		e.renew(writer, 29)
		e.pass(4)
		again := e.asks("A", aRead, 9)
		e.asks("C", aRead, 9)
		e.acquire(reader)
		e.release(reader, script.HeldByCaller)
		e.release(writer, script.HeldByCaller)
		e.release(again, script.HeldByCaller)
		e.asks("A", aRead, 9)
	},
	"a release that another strategy repeats is still one": func(e *episode) {
		first := e.asks("A", aMutex, 9)
		e.asks("A", aMutex, 9)
		e.release(first, script.HeldByCaller)
		e.asks("A", aFair, 9)
		e.release(first, script.HeldByCaller)
	},
	"force lets somebody in though the lock is free": func(e *episode) {
		e.asks("B", aFair, 1)
		e.asks("A", aFair, 9)
		e.pass(2)
		e.forceIt()
	},
	"an owner reads again within the minimum time of its write": func(e *episode) {
		writer := e.contend("A", aWrite, 9)
		writer.MinHold = 3 * time.Second
		e.acquire(writer)
		e.asks("A", aRead, 9)
		e.release(writer, script.HeldByCaller)
		e.asks("A", aRead, 9)
		e.asks("B", aRead, 9)
	},
	"a reader who comes back does not go before a writer once more": func(e *episode) {
		before := e.asks("A", aWrite, 9)
		writer, short, long := e.asks("B", aFair, 9), e.asks("C", aRead, 1), e.asks("D", aRead, 29)
		e.release(before, script.HeldByCaller)
		e.renew(long, 29)
		e.pass(2)
		e.acquire(short)
		e.beat([]*contender{writer, short})
		e.release(long, script.HeldByCaller)
	},
	"a Mutex that is asked for again has its minimum time from then on": func(e *episode) {
		mutex := e.contend("A", aMutex, 7)
		mutex.MinHold = 7 * time.Second
		e.acquire(mutex)
		e.pass(4)
		e.acquire(mutex)
		e.release(mutex, script.HeldByCaller)
	},
	"an owner whose lease is over is not in by another of its holds": func(e *episode) {
		outer, other := e.asks("A", aWrite, 1), e.asks("A", aRead, 29)
		e.pass(2)
		e.asks("B", aWrite, 29)
		for _, k := range []kind{aMutex, aFair, aWrite, aRead} {
			late := e.contend("A", k, 9)
			e.comesBy(late, outer)
			e.acquire(late)
			inTime := e.contend("A", k, 9)
			e.comesBy(inTime, other)
			e.acquire(inTime)
		}
	},
	"callers with one outdated lease exclude each other": func(e *episode) {
		for _, k := range []kind{aMutex, aFair, aWrite} {
			outer := e.asks("A", k, 1)
			e.pass(2)
			for range 3 {
				late := e.contend("A", k, 9)
				e.comesBy(late, outer)
				e.acquire(late)
			}
			e.forceIt()
		}
	},
	"permits stay taken when the other lease of their owner expires": func(e *episode) {
		if !modelPermits {
			return
		}
		for _, crashed := range []string{"A", "B"} {
			outer, inner := e.contend(crashed, threePermits, 5), e.contend(crashed, threePermits, 5)
			ends := map[string]*contender{"A": outer, "B": inner}[crashed]
			ends.MinHold = 9 * time.Second
			e.acquire(outer)
			e.acquire(inner)
			e.release(ends, script.HeldByCaller)
			e.pass(6)
			e.asks("C", threePermits, 9)
			e.check()
			e.pass(4)
			e.asks("D", threePermits, 1)
			e.check()
			e.pass(40)
		}
	},
	"a share that is granted once more under its id has its minimum time anew": func(e *episode) {
		reader := e.contend("A", aRead, 1)
		reader.MinHold = 3 * time.Second
		e.acquire(reader)
		e.release(reader, script.HeldByCaller)
		other, writer := e.asks("B", aRead, 9), e.asks("C", aFair, 9)
		e.acquire(reader)
		e.release(writer, script.HeldByCaller)
		e.release(other, script.HeldByCaller)
		e.release(reader, script.HeldByCaller)
		e.check()
	},
	"a share that is granted from the queue once more under its id has its minimum time anew": func(e *episode) {
		reader := e.contend("A", aRead, 9)
		reader.MinHold = 7 * time.Second
		e.acquire(reader)
		e.release(reader, script.HeldByCaller)
		writer := e.asks("B", aFair, 3)
		e.acquire(reader)
		e.release(writer, script.OnlyQueued)
		e.check()
	},
	"readers who waited for a write go first when its minimum time is over": func(e *episode) {
		writer := e.contend("A", aWrite, 9)
		writer.MinHold = 5 * time.Second
		e.acquire(writer)
		next, early, late := e.asks("B", aWrite, 9), e.asks("C", aRead, 9), e.contend("D", aRead, 9)
		e.release(writer, script.HeldByCaller)
		e.pass(2)
		e.acquire(late)
		e.beat([]*contender{next, early, late})
		e.pass(4)
		e.beat([]*contender{next, early, late})
		e.release(early, script.HeldByCaller)
		e.release(next, script.HeldByCaller)
	},
	"what is left of an expired write is a read": func(e *episode) {
		e.asks("A", aWrite, 1)
		e.asks("A", aRead, 9)
		e.pass(2)
	},
}

// TestModelStories compares the scripts with the model in certain courses of events.
func TestModelStories(t *testing.T) {
	instance := startInstance(t)
	ears := listenAll(t, instance)
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			inTime(t, instance, ears, func(e *episode) {
				tell(e)
				e.check()
				e.finish()
			})
		})
	}
}

// inTime runs an episode, again if it took too long.
func inTime(t *testing.T, instance *script.Instance, ears *ears, tell func(*episode)) {
	for range 10 {
		e := newEpisode(instance, ears, uint64(time.Now().UnixNano()))
		tell(e)
		e.clear()
		switch {
		case e.tooLate():
		case e.err != nil:
			t.Fatal(e.report())
		default:
			return
		}
	}
	t.Skip("the machine is too slow for this")
}

// contend returns a contender that will wait in line if need be.
func (e *episode) contend(owner string, k kind, ttl time.Duration) *contender {
	e.nextID++
	c := &contender{kind: k}
	c.Name, c.Keys, c.Owner = e.name, e.keys, owner
	c.SetID(fmt.Sprintf("%s:%d", owner, e.nextID))
	c.TTL, c.mayQueue, c.Shares, c.Permits, c.Limit = ttl*time.Second, !k.plain(), k.shared(), k.k, k.limit
	e.active = append(e.active, c)
	return c
}

// asks lets a contender ask for the first time.
func (e *episode) asks(owner string, k kind, ttl time.Duration) *contender {
	c := e.contend(owner, k, ttl)
	e.acquire(c)
	return c
}
