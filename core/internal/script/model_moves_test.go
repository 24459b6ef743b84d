package script_test

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// move is a kind of operation and how often it is made.
type move struct {
	weight int
	make   func()
}

// draw decides what this episode is about: each has its own mixture of operations, strategies and owners.
func (e *episode) draw() {
	often := func() int { return []int{1, 3, 10}[e.rand.IntN(3)] }
	seldom := func(n int) int { return max(0, e.rand.IntN(n+2)-n) }
	e.moves = []move{
		{10 + often(), e.begin},
		{often(), e.ask},
		{2 * often(), e.finishOne},
		{1, e.finishAgain},
		{often(), e.renewOne},
		{often(), e.beatSome},
		{often(), e.age},
		{seldom(1) * often(), e.rest},
		{often(), e.repeat},
		{1, e.crash},
		{1, e.giveUpUnused},
		{seldom(1), e.forceIt},
		{seldom(2), e.loseLock},
		{seldom(4), e.loseAll},
	}
	all := []kind{aMutex, aFair, aWrite, aFairWrite, aRead, aRead}
	if modelPermits && e.rand.IntN(2) == 0 {
		all = append(all, aPermit, aPermit, twoPermits, threePermits, theOnly)
	}
	for len(e.kinds) == 0 {
		for _, k := range all {
			if e.rand.IntN(3) > 0 {
				e.kinds = append(e.kinds, k)
			}
		}
	}
	e.owners = []string{"A", "B", "7", "read", "E"}[:some(e, []int{2, 2, 3, 4, 5})]
	e.crowd = 4 + e.rand.IntN(10)
	e.minHolds = some(e, []int{0, 10, 10, 2})
}

// step makes one move.
func (e *episode) step() {
	total := 0
	for _, m := range e.moves {
		total += m.weight
	}
	n := e.rand.IntN(total)
	for _, m := range e.moves {
		if n -= m.weight; n < 0 {
			m.make()
			break
		}
	}
	if e.err == nil && e.rand.IntN(10) == 0 {
		e.check()
	}
}

// protocol returns the strategy that is called for a kind, and counts the call.
func (e *episode) protocol(k kind) script.Strategy {
	r := e.instance
	name, _, _ := strings.Cut(k.strategy, "(")
	e.calls[name]++
	switch k.mode {
	case modeMutex:
		return script.Mutex{Instance: r}
	case modeSemaphore:
		return script.Queue{Instance: r, Mode: "semaphore"}
	case modeRead:
		return script.Queue{Instance: r, Mode: "reading"}
	case modeWrite:
		return script.Queue{Instance: r, Mode: "writing", ReadersNext: k.readersNext}
	}
	return script.Queue{Instance: r, Mode: "fair"}
}

// some returns one of the elements at random.
func some[T any](e *episode, all []T) T { return all[e.rand.IntN(len(all))] }

// newcomer returns a contender that has not asked yet.
func (e *episode) newcomer() *contender {
	c := e.contend(some(e, e.owners), some(e, e.kinds), some(e, []time.Duration{1, 3, 5, 7, 9, 29}))
	if e.minHolds > 0 && e.rand.IntN(e.minHolds) == 0 {
		c.MinHold = some(e, []time.Duration{1, 3, 7}) * time.Second
	}
	if e.rand.IntN(4) == 0 {
		c.mayQueue = false
	}
	c.unheard = e.rand.IntN(4) == 0
	if c.plain() {
		c.tokens = e.rand.IntN(4)
	}
	if e.rand.IntN(3) == 0 {
		e.comesBy(c, some(e, append(slices.Clone(e.active), e.ended...)))
	}
	return c
}

// comesBy lets a contender come with the context of another one's lease, which may be over.
func (e *episode) comesBy(c, parent *contender) {
	c.Owner, c.by, c.ParentID = parent.Owner, parent, parent.ID
	e.note("%s is of %s, by %s", c.ID, c.Owner, parent.ID)
}

// begin lets a contender ask for the first time.
func (e *episode) begin() {
	if len(e.active) >= e.crowd {
		e.ask()
		return
	}
	e.acquire(e.newcomer())
}

// ask lets a contender ask again that may hold the lock or be in line; often one that has lost that.
func (e *episode) ask() {
	var lost []*contender
	for _, c := range e.active {
		if !e.model.holds(c) && e.model.seatOf(c.ID) == nil {
			lost = append(lost, c)
		}
	}
	switch {
	case len(lost) > 0 && e.rand.IntN(3) == 0:
		e.acquire(some(e, lost))
	case len(e.active) > 0:
		e.acquire(some(e, e.active))
	}
}

// rest is a time in which holds are renewed and expire, but no contender comes or goes, so that no script finds that out.
func (e *episode) rest() {
	for range 2 + e.rand.IntN(4) {
		if e.rand.IntN(2) == 0 {
			e.renewOne()
		} else {
			e.age()
		}
		if e.err != nil {
			return
		}
	}
}

func (e *episode) finishOne() {
	if len(e.active) == 0 {
		return
	}
	c := some(e, e.active)
	e.forget(c)
	e.release(c, e.usageOf(c))
}

func (e *episode) usageOf(c *contender) script.ReleaseReason {
	switch n := e.rand.IntN(10); {
	case n == 0:
		return script.NeverHeld
	case n <= 2 && c.mayQueue:
		return script.OnlyQueued
	}
	return script.HeldByCaller
}

// forget takes a contender out of those that may ask again.
func (e *episode) forget(c *contender) {
	for i, other := range e.active {
		if other == c {
			e.active = append(e.active[:i], e.active[i+1:]...)
			break
		}
	}
	if e.ended = append(e.ended, c); len(e.ended) > 8 {
		e.ended = e.ended[1:]
	}
}

// finishAgain releases once more, after others have had their chance, or asks for what was released.
func (e *episode) finishAgain() {
	if len(e.ended) == 0 {
		return
	}
	if c := some(e, e.ended); e.rand.IntN(3) == 0 {
		e.acquire(c)
	} else {
		e.release(c, script.HeldByCaller)
	}
}

// giveUpUnused gives up a hold before its acquire arrives, which may happen at any time later.
func (e *episode) giveUpUnused() {
	e.release(e.newcomer(), script.NeverHeld)
}

// crash lets a contender do nothing any more, or an owner with all its holds.
func (e *episode) crash() {
	if len(e.active) == 0 {
		return
	}
	dead := some(e, e.active)
	whole := e.rand.IntN(2) == 0
	var alive []*contender
	for _, c := range e.active {
		if c != dead && (!whole || c.Owner != dead.Owner) {
			alive = append(alive, c)
		}
	}
	e.active = alive
	e.note("crash of %s, whole owner: %v", dead.ID, whole)
}

func (e *episode) renewOne() {
	all := e.active
	if e.rand.IntN(8) == 0 {
		all = e.ended
	}
	if len(all) > 0 {
		e.renew(some(e, all), some(e, []int{1, 3, 5, 9, 29}))
	}
}

func (e *episode) beatSome() {
	var all []*contender
	for _, c := range e.active {
		if !c.plain() && e.rand.IntN(3) > 0 {
			all = append(all, c)
		}
	}
	e.beat(all)
}

func (e *episode) repeat() {
	if e.last == nil {
		return
	}
	e.note("once more:")
	if again := e.last(); again != e.answer {
		e.differs("repeated at once, the command answers %s instead of %s", again, e.answer)
	}
}
